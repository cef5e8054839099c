//! The place of a thread in the queue of a latch, and where it comes from.
//!
//! A place stays where it is while its thread is in the queue. It comes from a small pool of the thread, since a latch
//! may be held while others are acquired.
use std::ptr::{self, NonNull};
use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use sync::hint::SpinWait;

/// The state of a thread in the queue that other threads need; in a cache line of its own.
pub(super) struct WaiterState {
    /// The place behind this one.
    pub(super) next: AtomicPtr<WaiterState>,
    pub(super) is_waiting: AtomicBool,
    // The fields that follow are for the queue by socket only.
    /// Where the thread runs; it looks only when it has to wait.
    pub(super) socket: AtomicUsize,
    /// The first of the places that were passed over, handed from owner to owner.
    pub(super) passed_over: AtomicPtr<WaiterState>,
    /// The last of the places that were passed over, if this is the first.
    pub(super) passed_over_last: AtomicPtr<WaiterState>,
    /// How often the latch was handed on while a place was passed over, up to this owner.
    pub(super) hand_overs: AtomicU32,
}

/// The socket of a place before its thread has asked for it.
pub(super) const SOCKET_UNKNOWN: usize = usize::MAX;

type PaddedPlace = CachePadded<WaiterState>;

/// The place of an owner in the queue; goes back with the release.
pub struct QueuePlace(NonNull<PaddedPlace>);

impl QueuePlace {
    /// A place without a successor.
    #[inline]
    pub(super) fn take() -> Self {
        let taken = QueuePlace(pool::take());
        taken.place().next.store(ptr::null_mut(), Ordering::Relaxed);
        taken
    }

    #[inline]
    pub(super) fn place(&self) -> &WaiterState {
        // SAFETY: the pool hands out each place once, and it is given back with this value.
        unsafe { self.0.as_ref() }
    }

    /// Gives the place back.
    ///
    /// # Safety
    /// It is in no queue any more.
    #[inline]
    pub(super) unsafe fn give_back(self) {
        // SAFETY: the place comes from the pool, goes back with this value, and is in no queue, as the caller promises.
        unsafe { pool::give_back(self.0) };
    }
}

impl WaiterState {
    /// The place as it stands in a queue.
    #[inline]
    pub(super) fn link(&self) -> *mut WaiterState {
        ptr::from_ref(self).cast_mut()
    }

    /// Queues behind `before`.
    ///
    /// # Safety
    /// The tail led to `before` until this place took it over, and this place stays in the queue until it is let in.
    #[inline]
    pub(super) unsafe fn link_behind(&self, before: *mut WaiterState) {
        self.is_waiting.store(true, Ordering::Relaxed);
        // SAFETY: a place leaves the queue only after it knows its successor, which this store tells it. The
        // release publishes what was written to this place before.
        unsafe { (*before).next.store(self.link(), Ordering::Release) };
    }

    /// Waits to be let in.
    #[cold]
    pub(super) fn wait(&self) {
        let mut wait = SpinWait::new();
        while self.is_waiting.load(Ordering::Acquire) {
            wait.pause();
        }
    }

    /// The place behind this one, which is not the last: another thread has taken the tail, and is about to link
    /// itself.
    pub(super) fn successor(&self) -> *mut WaiterState {
        let mut wait = SpinWait::new();
        loop {
            let next = self.next.load(Ordering::Acquire);
            if !next.is_null() {
                return next;
            }
            wait.pause();
        }
    }
}

fn new_place() -> NonNull<PaddedPlace> {
    let place = WaiterState {
        next: AtomicPtr::new(ptr::null_mut()),
        is_waiting: AtomicBool::new(false),
        socket: AtomicUsize::new(SOCKET_UNKNOWN),
        passed_over: AtomicPtr::new(ptr::null_mut()),
        passed_over_last: AtomicPtr::new(ptr::null_mut()),
        hand_overs: AtomicU32::new(0),
    };
    NonNull::from(Box::leak(Box::new(CachePadded::new(place))))
}

/// Frees the memory of a place.
///
/// # Safety
/// The place comes from `new_place`, and the caller has it alone: it is in no queue.
unsafe fn free_place(place: NonNull<PaddedPlace>) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(place.as_ptr()) });
}

/// Places that this thread has used before.
#[cfg(not(any(loom, shuttle)))]
mod pool {
    use super::{NonNull, PaddedPlace, free_place, new_place};
    use std::cell::RefCell;

    struct Pool(Vec<NonNull<PaddedPlace>>);

    impl Drop for Pool {
        fn drop(&mut self) {
            // SAFETY: what is in the pool was given back, and is in no queue.
            self.0.drain(..).for_each(|place| unsafe { free_place(place) });
        }
    }

    thread_local! {
        static POOL: RefCell<Pool> = const { RefCell::new(Pool(Vec::new())) };
    }

    #[inline]
    pub fn take() -> NonNull<PaddedPlace> {
        POOL.try_with(|pool| pool.borrow_mut().0.pop()).ok().flatten().unwrap_or_else(new_place)
    }

    /// A thread that is ending has no pool any more; the place is then freed.
    ///
    /// # Safety
    /// As for `free_place`.
    #[inline]
    pub unsafe fn give_back(place: NonNull<PaddedPlace>) {
        if POOL.try_with(|pool| pool.borrow_mut().0.push(place)).is_err() {
            // SAFETY: the caller's promise.
            unsafe { free_place(place) };
        }
    }
}

/// The threads of a model share one thread of the system, and with it would share a pool.
#[cfg(any(loom, shuttle))]
mod pool {
    pub(super) use super::{free_place as give_back, new_place as take};
}
