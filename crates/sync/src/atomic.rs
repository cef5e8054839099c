//! The switch between the atomics of `std` and those of the model checkers.
//!
//! Code that is to be modelled takes its atomics from here, waits by [`crate::hint`], asks [`crate::thread`] for the
//! number of its thread and keeps plain data in [`crate::cell::UnsafeCell`]. A normal build then gets `std`; with
//! `RUSTFLAGS="--cfg loom"` every access becomes a point at which loom may switch threads and choose among the values
//! that the memory model allows, and with `--cfg shuttle` a point at which shuttle may switch threads by chance.
#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(all(shuttle, not(loom)))]
pub use shuttle::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(any(loom, shuttle)))]
pub use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// Separates two `SeqCst` accesses that must have one order for all threads. The accesses themselves promise that,
/// so nothing is executed. Loom, however, treats a `SeqCst` access as acquire and release only and knows the total
/// order of fences alone, so its build gets a fence.
#[inline]
pub fn total_order() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}
