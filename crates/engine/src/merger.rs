//! The background merge: one thread that looks after the ranges of all tables.
//!
//! It sweeps over the ranges and merges those that are due (see [`lineage::Table::is_merge_due`]). A writer whose
//! range has just reached the bound wakes it; else it looks many times a second. Every few seconds it also takes in the
//! tails of ranges that nobody writes any more, so that a table at rest is scanned at full speed.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::database::Core;
use crate::table::TableData;

/// How long the thread rests when nothing is due.
const REST: Duration = Duration::from_millis(20);
/// How long a range must have been left alone before its remaining tail is merged: long enough that ranges which
/// are written now and then are not merged for each handful of tail records.
const QUIET: Duration = Duration::from_secs(2);

/// The merge thread; it ends when this is dropped.
pub(crate) struct Merger {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Merger {
    /// Starts the thread. Where the system has none left, tables are not merged and work on, more slowly.
    pub(crate) fn start(core: Arc<Core>) -> Merger {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("lstore-merge".into()).spawn(move || sweep(&core, &stopped));
        Merger { stop, thread: thread.ok() }
    }

    /// Lets the thread look now.
    pub(crate) fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened; closing goes on without it.
            let _ = thread.join();
        }
    }
}

fn sweep(core: &Core, stop: &AtomicBool) {
    let mut looked_for_quiet = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let quiet = looked_for_quiet.elapsed() >= QUIET;
        if quiet {
            looked_for_quiet = Instant::now();
        }
        let merged = merge_due(core, stop, quiet);
        if merged == 0 {
            std::thread::park_timeout(REST);
        }
        // Outdated pages go as soon as their readers have, not only when the next merge retires more.
        sync::pin().flush();
    }
}

fn tables(core: &Core) -> Vec<Arc<TableData>> {
    core.tables.read().values().cloned().collect()
}

fn merge_due(core: &Core, stop: &AtomicBool, quiet: bool) -> usize {
    let mut merged = 0;
    for table in tables(core) {
        for range in 0..table.storage.range_count() {
            if stop.load(Ordering::Relaxed) {
                return merged;
            }
            if table.storage.is_merge_due(range, quiet)
                && table.storage.merge_range(range, &core.transactions).is_some()
            {
                merged += 1;
            }
        }
    }
    merged
}

/// Merges every range that has anything to merge.
pub(crate) fn merge_all(core: &Core) -> usize {
    let merge = |table: &Arc<TableData>| {
        let ranges = 0..table.storage.range_count();
        ranges.filter(|range| table.storage.merge_range(*range, &core.transactions).is_some()).count()
    };
    tables(core).iter().map(merge).sum()
}
