//! Waiting for a thread that is a few instructions from doing what is waited for, and may not be running.

use std::time::Duration;

const SPINS: u32 = 100;
const YIELDS: u32 = 400;
const SLEEP_MIN: Duration = Duration::from_micros(50);
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// Waits a little, and longer each time: spins, then offers the processor to others, then sleeps.
#[derive(Debug, Default)]
pub struct Pause {
    turns: u32,
}

impl Pause {
    /// Waits, longer than the time before.
    pub fn wait(&mut self) {
        self.turns = self.turns.saturating_add(1);
        match self.turns {
            0..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            turns => std::thread::sleep((SLEEP_MIN * (turns - YIELDS + 1)).min(SLEEP_MAX)),
        }
    }
}
