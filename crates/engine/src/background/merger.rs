//! The background merge: a pool of threads that look after the ranges of all tables.
//!
//! A writer that brings a range to its bound of unmerged tail records puts it into the queue, once, and a resting
//! thread takes it from there. One of the threads also sweeps over all ranges many times a second, for those that
//! are full but not merged yet; every few seconds it takes in the tails of ranges that are no longer written to, so
//! that a table at rest is scanned at full speed. While no merge is due, the threads turn merged tail records into
//! history and give up what no snapshot needs; of tables where many keys were given up, the indexes are swept
//! ([`crate::indexes`]). The sweeping thread also evicts pages where memory is short (see `evictor`).
//!
//! If the pool can't keep up, and a range has several times as many unmerged records as it should, the transaction that
//! notices merges the range itself once it has committed ([`MergePool::is_crowded`]): writers slow down and none stops.
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use types::Timestamp;

use crate::background::filled::FilledColumns;
use crate::background::sweep::sweep;
use crate::keys::data::{BlockSource, IndexData};
use crate::keys::space_entries::SpaceEntries;
use crate::state::core::Core;
use crate::state::share_out::share_out;
use crate::state::table_data::TableData;
use crate::terms::table_lock::Standing;

/// How long the threads rest when nothing is due.
const REST: Duration = Duration::from_millis(20);
/// How long a range must have been left alone before its remaining tail is merged: long enough that ranges which
/// are written now and then are not merged for each handful of tail records.
const QUIET: Duration = Duration::from_secs(2);
/// A range is crowded with so many times the unmerged tail records at which it is due.
const CROWDED: u64 = 4;
/// Indexes are swept once so many entries were outdated, or as many as a part of the table's records if that is more.
const OUTDATED_MIN: u64 = 20_000;
const OUTDATED_SHARE: u64 = 4;
/// An index is large if it takes such a part of the memory limit.
const LARGE_PART: u64 = 32;

/// The merge threads; they end when this is dropped.
pub(crate) struct MergePool {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<MergeQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct MergeQueue {
    due: VecDeque<(Arc<TableData>, usize)>,
    /// Columns to be made of ranges that transactions have filled, as long as these want them.
    filled: VecDeque<Weak<FilledColumns>>,
    is_stopping: bool,
}

/// What a merge thread does next.
enum Due {
    Merge(Arc<TableData>, usize),
    Columns(Weak<FilledColumns>),
}

impl MergeQueue {
    fn is_empty(&self) -> bool {
        self.due.is_empty() && self.filled.is_empty()
    }

    fn pop(&mut self) -> Option<Due> {
        let columns = self.filled.pop_front().map(Due::Columns);
        columns.or_else(|| self.due.pop_front().map(|(table, range)| Due::Merge(table, range)))
    }
}

impl Due {
    fn run(self, core: &Core) {
        match self {
            Due::Merge(table, range) => merge_and_archive(core, &table, range),
            Due::Columns(columns) => {
                if let Some(columns) = columns.upgrade() {
                    columns.make();
                }
            }
        }
    }
}

impl MergePool {
    /// Starts the threads. Where the system has none left, writers merge what they have crowded.
    pub(crate) fn start(core: &Arc<Core>, threads: usize) -> MergePool {
        let queue = Arc::new(Queue::default());
        let spawn = |number: usize| {
            let (core, queue) = (core.clone(), queue.clone());
            let thread = std::thread::Builder::new().name(format!("lstore-merge-{number}"));
            thread.spawn(move || work(&core, &queue, number == 0)).ok()
        };
        MergePool { threads: (0..threads).filter_map(spawn).collect(), queue }
    }

    /// Notes that a range was written to: queues it if it has become due. Returns whether it is crowded.
    pub(crate) fn is_crowded(&self, table: &Arc<TableData>, range: usize) -> bool {
        let unmerged = table.storage.unmerged(range);
        let bound = table.storage.options().merge_tail_records;
        debug_assert!(bound > 0, "every write would be crowded");
        // Without threads it would stay in the queue, which would keep a dropped table's memory.
        if unmerged >= bound && !self.threads.is_empty() && table.storage.claim_merge(range) {
            self.queue.state.lock().due.push_back((table.clone(), range));
            self.queue.changed.notify_one();
        }
        unmerged >= bound.saturating_mul(CROWDED)
    }

    /// Has the columns of a range made that a transaction has filled; without threads the transaction makes them when it needs them.
    pub(crate) fn make_columns(&self, columns: &Arc<FilledColumns>) {
        if !self.threads.is_empty() {
            self.queue.state.lock().filled.push_back(Arc::downgrade(columns));
            self.queue.changed.notify_one();
        }
    }
}

impl Drop for MergePool {
    fn drop(&mut self) {
        self.queue.state.lock().is_stopping = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A panic of the thread was printed when it happened; closing goes on without it.
            let _ = thread.join();
        }
    }
}

impl Queue {
    /// What is due next, `None` if nothing is, after a rest where that is allowed. `Err` when the pool stops.
    fn next(&self, may_rest: bool) -> Result<Option<Due>, ()> {
        let mut state = self.state.lock();
        if may_rest && state.is_empty() && !state.is_stopping {
            self.changed.wait_for(&mut state, REST);
        }
        if state.is_stopping { Err(()) } else { Ok(state.pop()) }
    }

    /// Whether anything is due, or the pool is to stop.
    fn is_wanted(&self) -> bool {
        let state = self.state.lock();
        state.is_stopping || !state.is_empty()
    }
}

fn work(core: &Core, queue: &Queue, is_sweeper: bool) {
    let (mut swept, mut looked_for_quiet) = (Instant::now(), Instant::now());
    let mut charged_for_indexes = 0;
    let mut has_archived = false;
    let _frees_for_others = sync::Reclaimer::register();
    while let Ok(due) = queue.next(!has_archived) {
        match due {
            Some(due) => due.run(core),
            None => has_archived = archive(core, queue),
        }
        if is_sweeper && swept.elapsed() >= REST {
            core.clock.tick(core.transactions.0.now());
            core.resident.look(&core.budget);
            evict(core);
            let is_quiet = looked_for_quiet.elapsed() >= QUIET;
            merge_due(core, queue, is_quiet);
            swept = Instant::now();
            if is_quiet {
                looked_for_quiet = swept;
                sweep_indexes(core, queue);
                bring_indexes_forward(core, |index| index.is_behind());
                read_images(core, queue);
                charged_for_indexes = charge_indexes(core, charged_for_indexes);
                core.catalog.forget_past(&core.transactions, &core.clock);
            }
        }
        // Outdated pages go as soon as their readers have, not only when the next merge retires more.
        sync::pin().flush();
        sync::free_handed_over();
    }
}

/// Sweeps the indexes of tables where that is due; merges that become due meanwhile go first.
fn sweep_indexes(core: &Core, queue: &Queue) {
    let mut goes_on = || {
        core.clock.tick(core.transactions.0.now());
        core.resident.look(&core.budget);
        evict(core);
        sync::pin().flush();
        loop {
            match queue.next(false) {
                Ok(Some(due)) => due.run(core),
                Ok(None) => return true,
                Err(()) => return false,
            }
        }
    };
    for table in tables(core) {
        let (outdated, before) = (table.outdated_entries.sum(), table.outdated_when_swept.load(Ordering::Relaxed));
        debug_assert!(outdated >= before, "{outdated} entries are outdated, and {before} were");
        let enough = OUTDATED_MIN.max(table.storage.stats().records / OUTDATED_SHARE);
        // As long as everything is kept nothing can go.
        if outdated - before >= enough && table.storage.horizon() > Timestamp::ZERO {
            table.outdated_when_swept.store(outdated, Ordering::Relaxed);
            sweep(&table, &core.transactions, &mut goes_on);
        }
    }
}

/// Takes the entries that are no longer needed out of all indexes.
pub(crate) fn sweep_all(core: &Core) {
    for table in tables(core) {
        sweep(&table, &core.transactions, &mut || true);
    }
}

/// Makes new images of indexes that keep them, where `is_due` says so. Those that were not used since the database was opened have
/// nothing yet, and those that are being made get their first one from their maker.
fn bring_indexes_forward(core: &Core, is_due: impl Fn(&SpaceEntries) -> bool) {
    for table in tables(core) {
        let is_ready = |index: &IndexData| index.is_filled() && index.standing.standing() == Standing::Open;
        for index in table.indexes.which(is_ready) {
            if let Some(space) = index.entries().space().filter(|space| is_due(space)) {
                // Without a new image all is found beside the old one.
                let _stays = space.bring_forward(true);
            }
        }
    }
}

/// Has indexes that were opened as images, and used, read what is left of these, where there is room for all of it.
fn read_images(core: &Core, queue: &Queue) {
    for table in tables(core) {
        for index in table.all_indexes().filter(|index| index.is_filled()) {
            let Some(bytes) = index.bytes_of_blocks() else { continue };
            if core.budget.has_room_for_copies(bytes) {
                // What can't be read is told to those that ask for it.
                let _ended = index.become_whole(&mut || !queue.is_wanted());
            }
        }
    }
}

/// Lets pages and blocks of indexes go where memory is short: of each so much as it has of it. What is there twice goes before.
pub(crate) fn evict(core: &Core) {
    if core.budget.is_crowded() {
        tables(core).iter().for_each(|table| table.storage.forget_columns());
        evict_blocks(core, core.budget.limit_bytes() / LARGE_PART, |bytes| core.budget.part_of_excess(bytes));
        core.budget.evict_to_reserve();
    }
}

/// Lets blocks of indexes go, of each index so many bytes as `wanted` says of those that are here. Large indexes whose newest image has
/// what they have in memory take its blocks before; where there is no such image, the next checkpoint is to come early.
pub(crate) fn evict_blocks(core: &Core, large_bytes: u64, wanted: impl Fn(u64) -> u64) {
    for table in tables(core).iter().filter(|table| !table.is_temporary) {
        for index in table.all_indexes().filter(|index| index.is_filled() && index.has_order()) {
            // Of blocks that are taken now none leaves at once: those that it has go first.
            index.evict(&core.budget, wanted(index.bytes_here()));
            if index.counted_bytes().saturating_sub(index.bytes_here()) >= large_bytes {
                index.take_blocks(|| Arc::downgrade(table) as Weak<dyn BlockSource>);
                if index.imaged.is_due(table.storage.range_count()) {
                    core.budget.note_lack_of_blobs();
                }
                index.evict(&core.budget, wanted(index.bytes_here()));
            }
        }
    }
}

/// Brings the budget up to date with what the indexes take, of which so much was charged before.
fn charge_indexes(core: &Core, before: u64) -> u64 {
    let (mut bytes, mut uncounted) = (0, 0);
    for table in tables(core) {
        // What comes meanwhile is counted twice until the next time.
        let entries = table.index_entries();
        for (of_index, charged) in table.all_indexes().map(|index| index.count(entries)) {
            bytes += of_index;
            uncounted += charged;
        }
    }
    core.budget.add(bytes as i64 - before as i64 - uncounted);
    bytes
}

/// All tables, those that are gone included: their kept past is to be as small, and as little in memory, as any
/// other.
fn tables(core: &Core) -> Vec<Arc<TableData>> {
    core.catalog.all_tables()
}

fn merge_due(core: &Core, queue: &Queue, is_quiet: bool) {
    for table in tables(core) {
        for range in 0..table.storage.range_count() {
            if queue.state.lock().is_stopping {
                return;
            }
            if table.storage.is_merge_due(range, is_quiet) {
                merge(core, &table, range);
                core.resident.look(&core.budget);
                evict(core);
            }
            if is_quiet {
                table.storage.make_point_rows(range);
            }
        }
    }
}

/// Turns merged tail records into history, as long as no merge is due. Returns whether there was anything to do.
fn archive(core: &Core, queue: &Queue) -> bool {
    let mut has_archived = false;
    for table in tables(core) {
        if table.storage.has_archivable() {
            let kept = core.kept(&table);
            for range in 0..table.storage.range_count() {
                if queue.is_wanted() {
                    return true;
                }
                has_archived |= table.storage.archive_range(range, kept.clone(), false);
            }
        }
    }
    has_archived
}

/// Merges one range and gives up history beyond the table's retention; returns whether there was anything to merge.
pub(crate) fn merge(core: &Core, table: &TableData, range: usize) -> bool {
    let kept = core.kept(table);
    table.storage.merge_range(range, &core.transactions, kept).is_some()
}

/// Merges one range and turns what was merged into history: not only when no merge is due, or there would never be history
/// while merges always are.
pub(crate) fn merge_and_archive(core: &Core, table: &TableData, range: usize) {
    merge(core, table, range);
    table.storage.archive_range(range, core.kept(table), false);
}

/// Merges some columns of every range of a table; returns how many merges ran.
pub(crate) fn merge_columns(core: &Core, table: &TableData, columns: &[usize]) -> usize {
    let merge = |range: &usize| {
        let kept = core.kept(table);
        table.storage.merge_columns(*range, columns, &core.transactions, kept).is_some()
    };
    (0..table.storage.range_count()).filter(merge).count()
}

/// Merges every range and drops history that no snapshot and no retention needs. Waits for merges that run in the
/// pool, as the caller needs the memory that they are about to release.
pub(crate) fn reclaim(core: &Core) {
    for table in tables(core) {
        for range in 0..table.storage.range_count() {
            if !merge(core, &table, range) {
                table.storage.await_merge(range);
            }
            table.storage.archive_range(range, core.kept(&table), true);
        }
    }
    flush();
}

/// Frees replaced memory once its readers are gone, which takes a few turns of the epoch.
pub(crate) fn flush() {
    (0..8).for_each(|_| sync::pin().flush());
    sync::free_handed_over();
}

/// Makes base pages of all ranges that are full, on all processors.
pub(crate) fn merge_full(core: &Core) {
    let mut full: Vec<(Arc<TableData>, usize)> = Vec::new();
    for table in tables(core) {
        let due = (0..table.storage.range_count()).filter(|range| table.storage.is_merge_due(*range, false));
        full.extend(due.map(|range| (table.clone(), range)));
    }
    let Ok(()) = share_out(full.len(), |at| {
        let (table, range) = &full[at];
        merge(core, table, *range);
        Ok::<(), Infallible>(())
    });
}

/// Merges every range that has anything to merge.
pub(crate) fn merge_all(core: &Core) -> usize {
    let merge_table = |table: &Arc<TableData>| {
        let ranges = 0..table.storage.range_count();
        ranges.filter(|range| self::merge(core, table, *range)).count()
    };
    let merged = tables(core).iter().map(merge_table).sum();
    bring_indexes_forward(core, |_| true);
    merged
}
