//! How code waits for another thread: a hint to the processor, and [`SpinWait`], which gives way more and more.
//!
//! A model checker has to be told that a thread waits for another, or it would follow the waiting loop for ever; under
//! loom and shuttle every wait is therefore a yield.
#[cfg(loom)]
pub use loom::hint::spin_loop;
#[cfg(all(shuttle, not(loom)))]
pub use shuttle::hint::spin_loop;
#[cfg(not(any(loom, shuttle)))]
pub use std::hint::spin_loop;

/// Rounds of doubling length before a waiting thread offers its core to others: 1 + 2 + ... + 64 pauses.
#[cfg(not(any(loom, shuttle)))]
const SPIN_ROUNDS: u32 = 6;

/// Exponential backoff: spins for a while that doubles with each pause, then yields to the scheduler.
#[derive(Debug, Default)]
pub struct SpinWait {
    round: u32,
}

impl SpinWait {
    /// A wait that has not begun.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits a little, longer than the time before.
    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    pub fn pause(&mut self) {
        if self.round > SPIN_ROUNDS {
            crate::thread::yield_now();
            return;
        }
        for _ in 0..1 << self.round {
            spin_loop();
        }
        self.round += 1;
    }

    /// Lets the other threads of the model run. Two threads that wait can take turns without end; from the third
    /// pause on loom therefore follows this one order to its end, without trying others on the way.
    #[cfg(any(loom, shuttle))]
    pub fn pause(&mut self) {
        self.round += 1;
        #[cfg(loom)]
        if self.round > 2 {
            loom::skip_branch();
        }
        crate::thread::yield_now();
    }

    /// Begins anew, as something has moved.
    #[inline]
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}
