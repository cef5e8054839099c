//! Time as transactions and latches see it: nanoseconds from a clock that tests can move by hand.
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

/// When the clock of the process was first asked: by the precise clock, and in nanoseconds by the coarse one.
struct Origin {
    precise: Instant,
    coarse_ns: u64,
}

fn origin() -> &'static Origin {
    static ORIGIN: OnceLock<Origin> = OnceLock::new();
    ORIGIN.get_or_init(|| Origin { precise: Instant::now(), coarse_ns: system_coarse_ns().unwrap_or(0) })
}

/// The monotonic clock as of the last tick of the system, where it keeps one.
#[inline]
fn system_coarse_ns() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a timespec of this frame, which is all that the call writes to.
        let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
        (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

impl SystemClock {
    /// The reading of some milliseconds ago, up to a tick of the system, for a fraction of what the precise one costs.
    /// Beside precise readings it may run as much ahead.
    #[inline]
    pub fn coarse_ns(&self) -> u64 {
        let origin = origin();
        match system_coarse_ns() {
            Some(now) => 1 + now.saturating_sub(origin.coarse_ns),
            None => self.now_ns(),
        }
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        1 + origin().precise.elapsed().as_nanos() as u64
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
