//! The optimistic version latch: a sequence lock that can also be held by readers. Readers that only look note the
//! version, read, and look whether the version is still the same; they write nothing (Cha and others, "OLFIT"; Leis and
//! others, "Optimistic Lock Coupling").
//!
//! ```text
//! bit 63 .. 14     13 .. 2           1                  0
//! | version  | reader count |  writer waits  |  writer inside |
//! ```
//!
//! A writer counts the version up when it leaves. Reader count and waiting bit do not concern an optimistic reader.
//! The version would have to be counted up 2^50 times between a read and its check to fool a reader.
//!
//! Data that an optimistic reader reads must be atomics: the reader may see values half changed, and throws them
//! away.
use super::{Elidable, Latch, Reading, Restart, body_until_done, is_unchanged};
use crate::atomic::{AtomicU64, Ordering, fence};
use crate::hint::SpinWait;

const WRITER: u64 = 1;
const WRITER_WAITS: u64 = 2;
const ONE_READER: u64 = 4;
const READERS: u64 = ((1 << 12) - 1) << 2;
const ONE_VERSION: u64 = 1 << 14;

/// The bits that an optimistic reader compares: the version and whether a writer is inside.
const WATCHED: u64 = !(READERS | WRITER_WAITS);

/// Optimistic attempts of [`Latch::read`] before it waits like other readers.
#[cfg(not(any(loom, shuttle)))]
const ATTEMPTS: usize = 8;
#[cfg(any(loom, shuttle))]
const ATTEMPTS: usize = 2;

/// The version under which an optimistic read has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

/// Many readers or one writer, and any number of readers that only look.
#[derive(Debug, Default)]
pub struct VersionLatch {
    word: AtomicU64,
}

impl VersionLatch {
    /// A free latch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an optimistic read, once no writer is inside.
    #[inline]
    pub fn read_version(&self) -> Version {
        let mut wait = SpinWait::new();
        loop {
            if let Some(version) = self.try_read_version() {
                return version;
            }
            wait.pause();
        }
    }

    /// Begins an optimistic read unless a writer is inside.
    #[inline]
    pub fn try_read_version(&self) -> Option<Version> {
        let seen = self.word.load(Ordering::Acquire);
        (seen & WRITER == 0).then_some(Version(seen & WATCHED))
    }

    /// Whether all that was read since `version` belongs together: no writer has been inside.
    #[inline]
    pub fn validate(&self, version: Version) -> bool {
        is_unchanged(&self.word, version.0, WATCHED)
    }

    /// Makes an optimistic reader the writer, if no thread has written since `version` and no other reader is
    /// inside. Ends with a release like any exclusive hold.
    #[inline]
    pub fn try_upgrade(&self, version: Version) -> Option<()> {
        // No fence as in a check: the exchange looks at the newest word, and a writer that comes after this one cannot
        // have been read before.
        let seen = self.word.load(Ordering::Relaxed);
        (seen & WATCHED == version.0 && self.try_take(seen)).then_some(())
    }

    /// One attempt of a writer, from the word that it has seen. The fence keeps the writer's first store behind the
    /// taking of the word, for the readers that only look.
    #[inline]
    fn try_take(&self, seen: u64) -> bool {
        let is_taken = seen & (WRITER | READERS) == 0
            && self
                .word
                .compare_exchange(seen, (seen & WATCHED) | WRITER, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if is_taken {
            fence(Ordering::Release);
        }
        is_taken
    }

    #[cold]
    fn acquire_exclusive_after_waiting(&self) {
        let mut wait = SpinWait::new();
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if self.try_take(seen) {
                return;
            }
            if seen & WRITER_WAITS == 0 {
                self.word.fetch_or(WRITER_WAITS, Ordering::Relaxed);
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
}

// SAFETY: a writer takes the word only where it shows neither writer nor reader; a reader counts only by exchanging a
// word without a writer. Entering is an acquire and leaving a release on the same word.
unsafe impl Latch for VersionLatch {
    type Exclusive = ();
    type Shared = ();

    #[inline]
    fn acquire_exclusive(&self) {
        if !self.try_take(self.word.load(Ordering::Relaxed)) {
            self.acquire_exclusive_after_waiting();
        }
    }

    #[inline]
    fn try_acquire_exclusive(&self) -> Option<()> {
        self.try_take(self.word.load(Ordering::Relaxed)).then_some(())
    }

    #[inline]
    unsafe fn release_exclusive(&self, (): ()) {
        // A writer may have announced itself meanwhile; the sum leaves its bit alone.
        self.word.fetch_add(ONE_VERSION - WRITER, Ordering::Release);
    }

    #[inline]
    fn acquire_shared(&self) {
        if self.try_acquire_shared().is_none() {
            self.acquire_shared_after_waiting();
        }
    }

    #[inline]
    fn try_acquire_shared(&self) -> Option<()> {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & (WRITER | WRITER_WAITS) == 0 && seen & READERS != READERS {
            match self.word.compare_exchange_weak(seen, seen + ONE_READER, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(()),
                Err(now) => seen = now,
            }
        }
        None
    }

    #[inline]
    unsafe fn release_shared(&self, (): ()) {
        self.word.fetch_sub(ONE_READER, Ordering::Release);
    }

    #[inline]
    fn read<R>(&self, mut body: impl FnMut(&Reading<'_>) -> Result<R, Restart>) -> R {
        for _ in 0..ATTEMPTS {
            let version = self.read_version();
            let result = body(&Reading::watching(&self.word, version.0, WATCHED));
            if let Ok(result) = result
                && self.validate(version)
            {
                return result;
            }
        }
        let _held = self.shared();
        body_until_done(&mut body)
    }
}

// SAFETY: there is one word, which every acquire writes.
unsafe impl Elidable for VersionLatch {
    #[inline]
    fn is_free(&self) -> bool {
        self.word.load(Ordering::Acquire) & (WRITER | READERS) == 0
    }

    #[inline]
    fn is_free_of_writers(&self) -> bool {
        self.word.load(Ordering::Acquire) & WRITER == 0
    }
}
