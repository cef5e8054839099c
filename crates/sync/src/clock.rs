//! Time as the throttling and the biased latch see it: nanoseconds from a clock that tests can move by hand.
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A clock that never goes back. Its first reading is above 0.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the clock's origin.
    fn now_ns(&self) -> u64;
}

/// The monotonic clock of the system, from its first use in the process.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        1 + ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// A clock that stands still until a test moves it. Clones show the same time.
#[derive(Debug, Clone)]
pub struct VirtualClock(Arc<AtomicU64>);

impl Default for VirtualClock {
    fn default() -> Self {
        VirtualClock(Arc::new(AtomicU64::new(1)))
    }
}

impl VirtualClock {
    /// Moves the clock forward.
    pub fn advance_ns(&self, by_ns: u64) {
        self.0.fetch_add(by_ns, Ordering::SeqCst);
    }

    /// Moves the clock forward to a moment; a moment that has passed leaves it where it is.
    pub fn advance_to_ns(&self, now_ns: u64) {
        self.0.fetch_max(now_ns, Ordering::SeqCst);
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
