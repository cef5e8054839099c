//! Yielding, and the number of a thread, for `std` and the model checkers alike.
#[cfg(loom)]
pub use loom::thread::yield_now;
#[cfg(all(shuttle, not(loom)))]
pub use shuttle::thread::yield_now;
#[cfg(not(any(loom, shuttle)))]
pub use std::thread::yield_now;

/// A small number for this thread, as [`crate::thread_slot`] gives it.
#[cfg(not(any(loom, shuttle)))]
#[inline]
pub fn number() -> usize {
    crate::thread_slot()
}

// The threads of a model share one thread of the system, and every run of a model must number them alike.
#[cfg(loom)]
use loom::{lazy_static, thread_local};
#[cfg(all(shuttle, not(loom)))]
use shuttle::{lazy_static, thread_local};

#[cfg(any(loom, shuttle))]
lazy_static! {
    static ref NEXT: crate::atomic::AtomicUsize = crate::atomic::AtomicUsize::new(0);
}

#[cfg(any(loom, shuttle))]
thread_local! {
    static NUMBER: usize = NEXT.fetch_add(1, crate::atomic::Ordering::Relaxed);
}

#[cfg(shuttle)]
lazy_static! {
    static ref STEPS: crate::atomic::AtomicBool = crate::atomic::AtomicBool::new(false);
}

/// A point at which shuttle may switch threads.
#[cfg(shuttle)]
pub(crate) fn step() {
    STEPS.load(crate::atomic::Ordering::Relaxed);
}

/// A small number for this thread of the model.
#[cfg(any(loom, shuttle))]
pub fn number() -> usize {
    NUMBER.with(|number| *number)
}
