//! Which page goes next: a clock with a second chance (Corbató 1968).
//!
//! ```text
//! front                                                            back
//! [brought in by a scan] [longest without a look] ... [given a second chance] [read back by key] [made by a merge]
//!   taken first            not used since: evicted       used since: mark cleared, to the back
//! ```
//!
//! Pages in memory stand in a row. A thread that needs room takes the first: if its mark says that it was used
//! since the last time, the mark is cleared and it goes to the back; otherwise it is evicted. Reads by key set the
//! mark of a page, where it is not set; scans don't, and a page that a scan has brought in is put at the front, so
//! that a scan of more than fits in memory replaces its own pages and leaves alone what is read all the time.
//!
//! A page that no checkpoint has stays where it is; that such pages stood in the way is remembered for the thread
//! that takes checkpoints. The row keeps nothing alive, and entries of pages that are gone are dropped as others
//! come.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::memory::source::PageSource;

/// A page that may stand in the row.
pub(crate) trait Evict: Send + Sync {
    /// Evicts the page, unless something speaks against it.
    fn try_evict(&self) -> Turn;
}

/// The outcome for the page that was next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// So many bytes will come back.
    Evicted(u64),
    /// The page was used since its last turn.
    Recent,
    /// Another thread is busy with it.
    Busy,
    /// No checkpoint has these bytes.
    Unstored(u64),
    /// The page is not in memory.
    Away,
}

/// Where a page comes to stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Front,
    Back,
}

/// Counts of evictions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EvictionStats {
    /// pages evicted
    pub evictions: u64,
    /// their bytes in memory
    pub evicted_bytes: u64,
    /// pages read back
    pub read_backs: u64,
    /// their bytes in memory
    pub read_back_bytes: u64,
    /// times that a page could not be read back
    pub failures: u64,
}

/// The row of pages, and what is counted.
#[derive(Default)]
pub(crate) struct Clock {
    source: OnceLock<Arc<dyn PageSource>>,
    row: Mutex<VecDeque<Weak<dyn Evict>>>,
    /// Bytes evicted that readers may still hold.
    retired: AtomicI64,
    /// Counts what may make a page evictable.
    changes: AtomicU64,
    /// `changes` when the row was last looked through in vain, plus one.
    in_vain: AtomicU64,
    lacks_blobs: AtomicBool,
    evictions: AtomicU64,
    evicted_bytes: AtomicU64,
    read_backs: AtomicU64,
    read_back_bytes: AtomicU64,
    failures: AtomicU64,
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Clock").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Clock {
    pub(crate) fn set_source(&self, source: Arc<dyn PageSource>) {
        // There is one for the life of a database.
        let _ = self.source.set(source);
    }

    pub(crate) fn source(&self) -> Option<&Arc<dyn PageSource>> {
        self.source.get()
    }

    fn row(&self) -> MutexGuard<'_, VecDeque<Weak<dyn Evict>>> {
        self.row.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a page that is in memory, and stands nowhere yet. Without a source there is nowhere to evict to.
    pub(crate) fn enter(&self, page: Weak<dyn Evict>, end: End) {
        if self.source.get().is_none() {
            return;
        }
        let mut row = self.row();
        // Two leave for one that comes, if they are gone: the row is at most twice as long as it has pages.
        for _ in 0..2 {
            if let Some(first) = row.pop_front()
                && first.strong_count() > 0
            {
                row.push_back(first);
            }
        }
        match end {
            End::Front => row.push_front(page),
            End::Back => row.push_back(page),
        }
        drop(row);
        self.has_changed();
    }

    /// A page may have become evictable.
    pub(crate) fn has_changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Evicts pages of at least `wanted` bytes in all, as far as there are any; returns how many bytes. They come
    /// back once these pages have no reader any more.
    pub(crate) fn evict(&self, wanted: u64) -> u64 {
        let changes = self.changes.load(Ordering::Relaxed);
        if wanted == 0 || self.in_vain.load(Ordering::Relaxed) == changes + 1 {
            return 0;
        }
        let (mut evicted, mut unstored, mut has_chances) = (0, 0, false);
        // Each page may have its second chance.
        let mut turns = 2 * self.row().len();
        while evicted < wanted && turns > 0 {
            turns -= 1;
            let Some(first) = self.row().pop_front() else { break };
            let Some(page) = first.upgrade() else { continue };
            match page.try_evict() {
                Turn::Evicted(bytes) => {
                    evicted += bytes;
                    self.evictions.fetch_add(1, Ordering::Relaxed);
                    self.evicted_bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                Turn::Away => {}
                Turn::Recent | Turn::Busy => {
                    has_chances = true;
                    self.row().push_back(first);
                }
                Turn::Unstored(bytes) => {
                    unstored += bytes;
                    self.row().push_back(first);
                }
            }
        }
        if evicted > 0 {
            // Deferred memory of a thread waits for more of the kind; here it is large, and other threads wait for
            // it.
            sync::pin().flush();
        }
        if evicted < wanted && !has_chances {
            self.in_vain.store(changes + 1, Ordering::Relaxed);
        }
        if evicted < wanted && unstored > 0 {
            self.lacks_blobs.store(true, Ordering::Relaxed);
        }
        evicted
    }

    /// Notes that something that no checkpoint has stands in the way.
    pub(crate) fn note_lack_of_blobs(&self) {
        self.lacks_blobs.store(true, Ordering::Relaxed);
    }

    /// Whether pages that no checkpoint has stood in the way since this was last asked.
    pub(crate) fn take_lack_of_blobs(&self) -> bool {
        self.lacks_blobs.load(Ordering::Relaxed) && self.lacks_blobs.swap(false, Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn has_evicted(&self) -> bool {
        self.evictions.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn has_read_back(&self, bytes: u64) {
        self.read_backs.fetch_add(1, Ordering::Relaxed);
        self.read_back_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn has_failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> EvictionStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EvictionStats {
            evictions: count(&self.evictions),
            evicted_bytes: count(&self.evicted_bytes),
            read_backs: count(&self.read_backs),
            read_back_bytes: count(&self.read_back_bytes),
            failures: count(&self.failures),
        }
    }

    /// So many bytes are evicted, and wait for readers; negative once they are back.
    pub(crate) fn has_retired(&self, bytes: i64) {
        self.retired.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes evicted that have not come back yet.
    pub(crate) fn retired_bytes(&self) -> u64 {
        self.retired.load(Ordering::Relaxed).max(0) as u64
    }
}
