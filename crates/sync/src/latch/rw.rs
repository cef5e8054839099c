//! The reader-writer spin latch after `spin_rw_mutex` of Threading Building Blocks (tsx-index, section 2.1.1: "RW
//! Lock", a spinning latch with backoff that prefers writers).
//!
//! ```text
//! bit 31 .. 2       1                  0
//! | reader count |  writer waits  |  writer inside |
//! ```
//!
//! A waiting writer sets its bit, which keeps new readers out until it has had its turn. A writer that gets in
//! clears the bit for all waiting writers; the others set it again, so that readers get a chance in between.
use super::{Elidable, Latch};
use crate::atomic::{AtomicU32, Ordering};
use crate::hint::SpinWait;

const WRITER: u32 = 1;
const WRITER_WAITS: u32 = 2;
const ONE_READER: u32 = 4;
const READERS: u32 = !(WRITER | WRITER_WAITS);

/// Many readers or one writer in one word.
#[derive(Debug, Default)]
pub struct RwSpinLatch {
    state: AtomicU32,
}

impl RwSpinLatch {
    /// A free latch.
    pub fn new() -> Self {
        Self::default()
    }

    /// One attempt of a writer, from the state that it has seen.
    #[inline]
    fn try_take(&self, seen: u32) -> bool {
        seen & (WRITER | READERS) == 0
            && self.state.compare_exchange(seen, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn acquire_exclusive_after_waiting(&self) {
        let mut wait = SpinWait::new();
        loop {
            let seen = self.state.load(Ordering::Relaxed);
            if self.try_take(seen) {
                return;
            }
            if seen & WRITER_WAITS == 0 {
                self.state.fetch_or(WRITER_WAITS, Ordering::Relaxed);
            }
            wait.pause();
        }
    }

    #[cold]
    fn acquire_shared_after_waiting(&self) {
        let mut wait = SpinWait::new();
        while self.try_acquire_shared().is_none() {
            wait.pause();
        }
    }

    /// Makes a reader the writer, if no other reader wants the same: two would wait for each other. On refusal the
    /// caller is still a reader.
    ///
    /// # Safety
    ///
    /// The calling thread holds this latch shared, once.
    pub unsafe fn try_upgrade(&self) -> bool {
        let mut seen = self.state.load(Ordering::Relaxed);
        while seen & READERS == ONE_READER || seen & WRITER_WAITS == 0 {
            // The writer's bit announces the upgrade; the reader's own count stays until the others have gone.
            match self.state.compare_exchange(seen, seen | WRITER | WRITER_WAITS, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => {
                    let mut wait = SpinWait::new();
                    while self.state.load(Ordering::Acquire) & READERS != ONE_READER {
                        wait.pause();
                    }
                    self.state.fetch_sub(ONE_READER + WRITER_WAITS, Ordering::Relaxed);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Makes the writer a reader without letting another writer in between.
    ///
    /// # Safety
    ///
    /// The calling thread holds this latch exclusively; afterwards it holds it shared.
    pub unsafe fn downgrade(&self) {
        self.state.fetch_add(ONE_READER - WRITER, Ordering::Release);
    }
}

// SAFETY: the writer's bit is set only from a state without readers and writer (or by the last reader, which keeps
// its count until it is alone). A reader counts only where it finds no writer's bit, and takes its count back where
// a writer was faster. Entering is an acquire and leaving a release on the same word.
unsafe impl Latch for RwSpinLatch {
    type Exclusive = ();
    type Shared = ();

    #[inline]
    fn acquire_exclusive(&self) {
        if self.state.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.acquire_exclusive_after_waiting();
        }
    }

    #[inline]
    fn try_acquire_exclusive(&self) -> Option<()> {
        self.try_take(self.state.load(Ordering::Relaxed)).then_some(())
    }

    #[inline]
    unsafe fn release_exclusive(&self, (): ()) {
        // Readers that have counted themselves and not yet taken it back must be kept.
        self.state.fetch_and(READERS, Ordering::Release);
    }

    #[inline]
    fn acquire_shared(&self) {
        if self.try_acquire_shared().is_none() {
            self.acquire_shared_after_waiting();
        }
    }

    #[inline]
    fn try_acquire_shared(&self) -> Option<()> {
        if self.state.load(Ordering::Relaxed) & (WRITER | WRITER_WAITS) != 0 {
            return None;
        }
        if self.state.fetch_add(ONE_READER, Ordering::Acquire) & WRITER == 0 {
            return Some(());
        }
        self.state.fetch_sub(ONE_READER, Ordering::Relaxed);
        None
    }

    #[inline]
    unsafe fn release_shared(&self, (): ()) {
        self.state.fetch_sub(ONE_READER, Ordering::Release);
    }
}

// SAFETY: there is one word, which every acquire writes.
unsafe impl Elidable for RwSpinLatch {
    #[inline]
    fn is_free(&self) -> bool {
        self.state.load(Ordering::Acquire) & (WRITER | READERS) == 0
    }

    #[inline]
    fn is_free_of_writers(&self) -> bool {
        self.state.load(Ordering::Acquire) & WRITER == 0
    }
}
