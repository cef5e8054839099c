//! The queue latch of Mellor-Crummey and Scott (MCS): each waiter waits on a cache line of its own and is woken by
//! the owner before it, so that a latch under contention costs one transfer of a line for each owner, on any number
//! of cores. Waiters are served in the order in which they came.
//!
//! ```text
//! latch.tail ------------------------------------+
//!                                                v
//! | place of the owner | --next--> | waits | --next--> | waits | --next--> null
//! ```
use crate::place::{QueuePlace, WaiterState};
use std::ptr;
use sync::atomic::{AtomicPtr, Ordering};
use sync::latch::{Elidable, Latch};

/// Lets threads in one by one, in the order in which they came. Readers exclude each other too.
#[derive(Debug)]
pub struct QueueLatch {
    tail: AtomicPtr<WaiterState>,
}

impl Default for QueueLatch {
    fn default() -> Self {
        QueueLatch { tail: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl QueueLatch {
    /// A free latch.
    pub fn new() -> Self {
        Self::default()
    }
}

// SAFETY: a thread is in when it found the queue empty or the one before it has left and told it so; the exchange of
// the tail gives each place exactly one before it. Leaving is a release on the word that the next one acquires by.
unsafe impl Latch for QueueLatch {
    type Exclusive = QueuePlace;
    type Shared = QueuePlace;

    #[inline]
    fn acquire_exclusive(&self) -> QueuePlace {
        let taken = QueuePlace::take();
        let before = self.tail.swap(taken.place().link(), Ordering::AcqRel);
        if !before.is_null() {
            // SAFETY: the tail led to `before` until the exchange above; this thread waits until it is let in.
            unsafe { taken.place().link_behind(before) };
            taken.place().wait();
        }
        taken
    }

    #[inline]
    fn try_acquire_exclusive(&self) -> Option<QueuePlace> {
        try_acquire(&self.tail)
    }

    #[inline]
    unsafe fn release_exclusive(&self, held: QueuePlace) {
        let place = held.place();
        let is_known = !place.next.load(Ordering::Relaxed).is_null();
        if is_known
            || self.tail.compare_exchange(place.link(), ptr::null_mut(), Ordering::Release, Ordering::Relaxed).is_err()
        {
            // SAFETY: the one behind waits for this store and stays in the queue until then.
            unsafe { (*place.successor()).is_waiting.store(false, Ordering::Release) };
        }
        // SAFETY: the place is out of the queue: the tail leads past it, and the one behind has been let in.
        unsafe { held.give_back() };
    }

    #[inline]
    fn acquire_shared(&self) -> QueuePlace {
        self.acquire_exclusive()
    }

    #[inline]
    fn try_acquire_shared(&self) -> Option<QueuePlace> {
        self.try_acquire_exclusive()
    }

    #[inline]
    unsafe fn release_shared(&self, held: QueuePlace) {
        // SAFETY: a shared hold of this latch is an exclusive one.
        unsafe { self.release_exclusive(held) }
    }
}

/// Becomes the owner of an empty queue.
#[inline]
pub(super) fn try_acquire(tail: &AtomicPtr<WaiterState>) -> Option<QueuePlace> {
    if !tail.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let taken = QueuePlace::take();
    match tail.compare_exchange(ptr::null_mut(), taken.place().link(), Ordering::AcqRel, Ordering::Relaxed) {
        Ok(_) => Some(taken),
        Err(_) => {
            // SAFETY: the place has not come into the queue.
            unsafe { taken.give_back() };
            None
        }
    }
}

// SAFETY: there is one word, which every acquire writes.
unsafe impl Elidable for QueueLatch {
    #[inline]
    fn is_free(&self) -> bool {
        self.tail.load(Ordering::Acquire).is_null()
    }

    #[inline]
    fn is_free_of_writers(&self) -> bool {
        self.is_free()
    }
}
