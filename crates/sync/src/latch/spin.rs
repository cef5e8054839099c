//! The spin latch: one byte, test-and-test-and-set with exponential backoff (tsx-index, section 2.1.1: "Spin Lock",
//! which is the latch to elide, as readers of it share anyway when they are transactions).
use super::{Elidable, Latch};
use crate::atomic::{AtomicBool, Ordering};
use crate::hint::SpinWait;

/// Lets one thread in. Readers exclude each other too.
#[derive(Debug, Default)]
pub struct SpinLatch {
    is_taken: AtomicBool,
}

impl SpinLatch {
    /// A free latch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waiting threads look at the word until it is free before they try to take it: looking keeps the line
    /// shared, trying would tear it from its holder.
    #[cold]
    fn acquire_after_waiting(&self) {
        let mut wait = SpinWait::new();
        loop {
            wait.pause();
            if !self.is_taken.load(Ordering::Relaxed) && self.try_take() {
                return;
            }
        }
    }

    #[inline]
    fn try_take(&self) -> bool {
        self.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

// SAFETY: only one thread at a time changes the word from free to taken, with acquire; releasing stores with release.
unsafe impl Latch for SpinLatch {
    type Exclusive = ();
    type Shared = ();

    #[inline]
    fn acquire_exclusive(&self) {
        if !self.try_take() {
            self.acquire_after_waiting();
        }
    }

    #[inline]
    fn try_acquire_exclusive(&self) -> Option<()> {
        (!self.is_taken.load(Ordering::Relaxed) && self.try_take()).then_some(())
    }

    #[inline]
    unsafe fn release_exclusive(&self, (): ()) {
        self.is_taken.store(false, Ordering::Release);
    }

    #[inline]
    fn acquire_shared(&self) {
        self.acquire_exclusive();
    }

    #[inline]
    fn try_acquire_shared(&self) -> Option<()> {
        self.try_acquire_exclusive()
    }

    #[inline]
    unsafe fn release_shared(&self, (): ()) {
        // SAFETY: a shared hold of this latch is an exclusive one.
        unsafe { self.release_exclusive(()) }
    }
}

// SAFETY: there is one word, which every acquire writes.
unsafe impl Elidable for SpinLatch {
    #[inline]
    fn is_free(&self) -> bool {
        !self.is_taken.load(Ordering::Acquire)
    }

    #[inline]
    fn is_free_of_writers(&self) -> bool {
        self.is_free()
    }
}
