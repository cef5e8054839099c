//! The queue latch of Mellor-Crummey and Scott (MCS): whoever waits, waits on a cache line of its own and is woken by
//! the one before it, so that a latch under contention costs one transfer of a line for each owner, on any number of
//! cores. First come, first served.
//!
//! ```text
//! latch.tail ------------------------------------+
//!                                                v
//! | place of the owner | --next--> | waits | --next--> | waits | --next--> null
//! ```
//!
//! A place stays where it is while its thread is in the queue. It comes from a small pool of the thread, since a latch
//! may be held while others are acquired.
use super::{Elidable, Latch};
use crate::CachePadded;
use crate::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::hint::SpinWait;
use std::ptr::{self, NonNull};

struct Place {
    next: AtomicPtr<Place>,
    is_waiting: AtomicBool,
}

type PaddedPlace = CachePadded<Place>;

/// The place of an owner in the queue; goes back with the release.
pub struct QueuePlace(NonNull<PaddedPlace>);

/// Lets threads in one by one, in the order in which they came. Readers exclude each other too.
#[derive(Debug)]
pub struct QueueLatch {
    tail: AtomicPtr<Place>,
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

    /// Queues behind `before` and waits for it to leave.
    #[cold]
    fn wait_behind(before: *mut Place, place: &Place) {
        place.is_waiting.store(true, Ordering::Relaxed);
        // SAFETY: a place leaves the queue only after it has seen who is behind it, and that is told here. The release
        // publishes `is_waiting`.
        unsafe { (*before).next.store(ptr::from_ref(place).cast_mut(), Ordering::Release) };
        let mut wait = SpinWait::new();
        while place.is_waiting.load(Ordering::Acquire) {
            wait.pause();
        }
    }

    /// Who stands behind `place`, which is not the last.
    fn successor(place: &Place) -> *mut Place {
        let mut wait = SpinWait::new();
        loop {
            let next = place.next.load(Ordering::Acquire);
            if !next.is_null() {
                return next;
            }
            wait.pause();
        }
    }
}

// SAFETY: a thread is in when it found the queue empty or the one before it has left and told it so; the exchange of
// the tail gives each place exactly one before it. Leaving is a release on the word that the next one acquires by.
unsafe impl Latch for QueueLatch {
    type Exclusive = QueuePlace;
    type Shared = QueuePlace;

    #[inline]
    fn acquire_exclusive(&self) -> QueuePlace {
        let taken = pool::take();
        // SAFETY: the pool hands out each place once.
        let place: &Place = unsafe { taken.as_ref() };
        place.next.store(ptr::null_mut(), Ordering::Relaxed);
        let before = self.tail.swap(ptr::from_ref(place).cast_mut(), Ordering::AcqRel);
        if !before.is_null() {
            Self::wait_behind(before, place);
        }
        QueuePlace(taken)
    }

    #[inline]
    fn try_acquire_exclusive(&self) -> Option<QueuePlace> {
        if !self.tail.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let taken = pool::take();
        // SAFETY: the pool hands out each place once.
        let place: &Place = unsafe { taken.as_ref() };
        place.next.store(ptr::null_mut(), Ordering::Relaxed);
        let mine = ptr::from_ref(place).cast_mut();
        match self.tail.compare_exchange(ptr::null_mut(), mine, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Some(QueuePlace(taken)),
            Err(_) => {
                pool::give_back(taken);
                None
            }
        }
    }

    #[inline]
    unsafe fn release_exclusive(&self, held: QueuePlace) {
        // SAFETY: the place belongs to this thread until it is given back below.
        let place: &Place = unsafe { held.0.as_ref() };
        let mine = ptr::from_ref(place).cast_mut();
        let is_known = !place.next.load(Ordering::Relaxed).is_null();
        if is_known || self.tail.compare_exchange(mine, ptr::null_mut(), Ordering::Release, Ordering::Relaxed).is_err()
        {
            let next = Self::successor(place);
            // SAFETY: the one behind waits for this store and stays in the queue until then.
            unsafe { (*next).is_waiting.store(false, Ordering::Release) };
        }
        pool::give_back(held.0);
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

fn new_place() -> NonNull<PaddedPlace> {
    let place = Place { next: AtomicPtr::new(ptr::null_mut()), is_waiting: AtomicBool::new(false) };
    NonNull::from(Box::leak(Box::new(CachePadded::new(place))))
}

fn free_place(place: NonNull<PaddedPlace>) {
    // SAFETY: places come from `new_place` only, and whoever frees one has it alone: it is in no queue.
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
            self.0.drain(..).for_each(free_place);
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
    #[inline]
    pub fn give_back(place: NonNull<PaddedPlace>) {
        if POOL.try_with(|pool| pool.borrow_mut().0.push(place)).is_err() {
            free_place(place);
        }
    }
}

/// The threads of a model share one thread of the system, and with it would share a pool.
#[cfg(any(loom, shuttle))]
mod pool {
    pub(super) use super::{free_place as give_back, new_place as take};
}
