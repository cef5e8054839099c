//! A cell that readers follow without a latch while a writer swaps what it holds (L-Store, section 4.1, steps 4 and
//! 5: the pointer swap in the page directory and the epoch-based de-allocation of outdated pages).
//!
//! A reader pins the epoch and keeps its [`Guard`]; what it then loads stays alive until the guard is dropped. A
//! swapped-out value waits until every reader pinned at the time of the swap has gone.
use crossbeam_epoch::{Atomic, Owned, Shared};
use std::sync::atomic::Ordering;

use crate::reclaimer::drop_or_hand_over;
#[cfg(not(any(loom, shuttle)))]
use crate::reclaimer::free_handed_over;

pub use crossbeam_epoch::Guard;
#[cfg(any(loom, not(shuttle)))]
pub use crossbeam_epoch::pin;
#[cfg(all(shuttle, not(loom)))]
pub use model::pin;

/// Holds one `T` that can be replaced while readers look at it.
pub struct EpochCell<T> {
    pointer: Atomic<T>,
}

impl<T: Send + Sync + 'static> EpochCell<T> {
    /// A cell that holds `value`.
    pub fn new(value: T) -> Self {
        EpochCell { pointer: Atomic::new(value) }
    }

    /// The value that the cell holds now. It stays valid as long as the guard and the cell. A dropped cell takes
    /// its value with it at once, even while an epoch is pinned:
    ///
    /// ```compile_fail,E0505
    /// let (cell, guard) = (sync::EpochCell::new(7), sync::pin());
    /// let seen = cell.load(&guard);
    /// drop(cell);
    /// assert_eq!(*seen, 7);
    /// ```
    #[inline]
    pub fn load<'g>(&'g self, guard: &'g Guard) -> &'g T {
        #[cfg(all(shuttle, not(loom)))]
        crate::thread::step();
        let shared = self.pointer.load(Ordering::Acquire, guard);
        // SAFETY: the pointer is never null (set in `new`, replaced only by `replace` with an owned value), and a
        // replaced value is destroyed only after every guard pinned before the swap is gone. The one in place is
        // destroyed with the cell, which the result borrows.
        unsafe { shared.deref() }
    }

    /// Publishes `value`; the old one is dropped once no reader can hold it.
    pub fn replace(&self, value: T, guard: &Guard) {
        let old = self.swap(value, guard);
        // SAFETY: the swap made `old` unreachable for readers that pin from now on, and only this call got it.
        unsafe { guard.defer_destroy(old) };
    }

    /// As [`replace`](Self::replace), for values that take long to drop: a [`Reclaimer`](crate::Reclaimer) does it where there is one.
    pub fn replace_large(&self, value: T, guard: &Guard) {
        let old = self.swap(value, guard);
        // SAFETY: as above; a value that is `Send` may be dropped by any thread.
        unsafe { guard.defer_unchecked(move || drop_or_hand_over(old.into_owned().into_box())) };
    }

    fn swap<'g>(&self, value: T, guard: &'g Guard) -> Shared<'g, T> {
        #[cfg(all(shuttle, not(loom)))]
        crate::thread::step();
        self.pointer.swap(Owned::new(value), Ordering::AcqRel, guard)
    }
}

/// Drops a value once no reader is left that has the epoch pinned now, or has a [`Reclaimer`](crate::Reclaimer) do it.
pub fn drop_later<T: Send + 'static>(value: T, guard: &Guard) {
    let value = Box::new(value);
    guard.defer(move || drop_or_hand_over(value));
}

/// Waits until all readers have gone on that were there when this was called, so that what this thread had replaced, and others
/// had and then flushed, is freed; at most so long. Returns whether they have. In vain while the caller itself has the epoch pinned.
#[cfg(not(any(loom, shuttle)))]
pub fn await_readers(wait_max: std::time::Duration) -> bool {
    let (begun, gone) = (std::time::Instant::now(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let has_gone = gone.clone();
    pin().defer(move || has_gone.store(true, Ordering::Release));
    loop {
        pin().flush();
        if gone.load(Ordering::Acquire) || begun.elapsed() >= wait_max {
            free_handed_over();
            return gone.load(Ordering::Acquire);
        }
        std::thread::yield_now();
    }
}

impl<T> Drop for EpochCell<T> {
    fn drop(&mut self) {
        let pointer = std::mem::replace(&mut self.pointer, Atomic::null());
        // SAFETY: `&mut self` proves that no reader is left, and the pointer was never null.
        drop(unsafe { pointer.into_owned() });
    }
}

/// Epochs under shuttle, which knows nothing of what goes on inside crossbeam-epoch: each of its steps is taken whole.
#[cfg(all(shuttle, not(loom)))]
mod model {
    use crossbeam_epoch::{Collector, Guard, LocalHandle};
    use shuttle::{lazy_static, thread_local};

    // The threads of a model share one thread of the system, and each has to pin for itself.
    lazy_static! {
        static ref COLLECTOR: Collector = Collector::new();
    }

    thread_local! {
        static HANDLE: LocalHandle = COLLECTOR.register();
    }

    /// Pins the epoch for this thread of the model, and frees at once what may be freed.
    pub fn pin() -> Guard {
        let guard = HANDLE.with(LocalHandle::pin);
        guard.flush();
        guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    struct Counted(u64, Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_a_guard_sees_outlives_the_swap() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let cell = EpochCell::new(Counted(1, dropped.clone()));
        let reader = pin();
        let seen = cell.load(&reader);
        cell.replace(Counted(2, dropped.clone()), &pin());
        for _ in 0..1_000 {
            pin().flush();
        }
        assert_eq!((seen.0, dropped.load(Ordering::SeqCst)), (1, 0));
        assert_eq!(cell.load(&pin()).0, 2);
        drop(reader);
        // Other tests pin the same epoch; a thread of theirs that is not running holds it up for a while.
        let started = std::time::Instant::now();
        while dropped.load(Ordering::SeqCst) == 0 && started.elapsed() < std::time::Duration::from_secs(20) {
            pin().flush();
            std::thread::yield_now();
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        drop(cell);
        assert_eq!(dropped.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn readers_only_move_forward_under_swaps() {
        const VERSIONS: u64 = if cfg!(miri) { 50 } else { 5_000 };
        let dropped = Arc::new(AtomicUsize::new(0));
        let cell = EpochCell::new(Counted(0, dropped.clone()));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let guard = pin();
                        let now = cell.load(&guard).0;
                        assert!(now >= last);
                        last = now;
                    }
                });
            }
            for version in 1..=VERSIONS {
                cell.replace(Counted(version, dropped.clone()), &pin());
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(cell.load(&pin()).0, VERSIONS);
    }
}
