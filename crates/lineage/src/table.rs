//! A table: a growing list of ranges, and the doors through which rows enter, change and leave.
//!
//! New records go to open insert ranges, one for each worker thread (section 2.1 and the report it points to: insert
//! ranges with pre-allocated base Rids), so that inserters do not meet. A range that is full is never opened again.
mod changes;
pub(crate) mod gather;
mod insert;
mod places;
mod read;

use std::sync::Arc;

use arrow_array::RecordBatch;
use sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use sync::blocking::Mutex;
use sync::{CachePadded, Directory, Guard};
use types::{Rid, Schema, Timestamp, TxnId};

use crate::encoding::Encoding;
use crate::memory::budget::{MemoryBudget, MemoryUse, Meter};
use crate::memory::source::PageError;
use crate::merge::pages::MergeReport;
use crate::page::lent::Ahead;
use crate::page::options::TableOptions;
use crate::record::append::AppendedRecords;
use crate::record::hold::Hold;
use crate::record::point::Point;
use crate::record::range::Range;
use crate::record::view::{Outcomes, View};
use crate::record::write::{Change, WriteError, Writer};
use crate::scan::aggregate::Totals;
use crate::scan::request::Projection;
use crate::scan::request::Request;
use crate::scan::split::SplitRange;
use crate::scan::statistics::{FoundColumns, MergedColumns, TableStatistics};
use crate::value::cell::Cell;
use crate::value::kept::{Horizon, Kept, KeptFrom};

use places::Places;
pub use places::Points;

/// What a table holds and what was done to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// base records with their tombstones and deleted records, an upper bound of the rows
    pub records: u64,
    /// ranges
    pub ranges: u64,
    /// merges that ran to their end
    pub merges: u64,
    /// tail records numbered since the table was made
    pub tail_records: u64,
    /// tail records that no merge has taken in yet
    pub tail_records_unmerged: u64,
}

/// The storage of one table.
pub struct Table {
    schema: Schema,
    options: TableOptions,
    meter: Arc<Meter>,
    ranges: Directory<Range>,
    range_count: AtomicUsize,
    places: Places,
    /// The open range of each worker, as its index plus one; 0 before the first.
    open: Box<[CachePadded<AtomicUsize>]>,
    /// Held while a range is added.
    growing: Mutex<()>,
    merges: AtomicU64,
    found_columns: FoundColumns,
    horizon: Horizon,
}

impl Table {
    /// Creates an empty table that counts its memory towards `budget`.
    ///
    /// # Panics
    /// If `options` name a range that is not a power of two up to 2^16, or an update range that is not a power of two
    /// from a sixteenth of a range to a whole one.
    pub fn new(schema: Schema, options: TableOptions, budget: Arc<MemoryBudget>) -> Table {
        let (range, update_range) = (options.range_records, options.update_range_records);
        assert!(range.is_power_of_two() && range <= 1 << 16, "range of 2^16 at most");
        assert!(update_range.is_power_of_two() && update_range <= range && range / update_range <= 16);
        Table {
            schema,
            options,
            meter: Meter::new(budget),
            ranges: Directory::new(),
            range_count: AtomicUsize::new(0),
            places: Places::new(),
            open: (0..options.workers.max(1)).map(|_| CachePadded::new(AtomicUsize::new(0))).collect(),
            growing: Mutex::new(()),
            merges: AtomicU64::new(0),
            found_columns: FoundColumns::default(),
            horizon: Horizon::new(),
        }
    }

    /// The columns.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How many records a range has room for.
    pub fn range_records(&self) -> usize {
        self.options.range_records
    }

    /// How many ranges there are now.
    pub fn range_count(&self) -> usize {
        self.range_count.load(Ordering::Acquire)
    }

    /// How many records of a range this table has handed out.
    pub fn range_len(&self, range: usize) -> usize {
        self.range_as_is(range).len()
    }

    /// Whether `rid` names a base record that this table has handed out.
    pub fn contains(&self, rid: Rid) -> bool {
        !rid.is_tail() && rid.range() < self.range_count() && rid.slot() < self.range_as_is(rid.range()).len()
    }

    /// When a base record was inserted; `None` if its transaction has not committed, or not stamped it.
    ///
    /// # Errors
    /// [`PageError`] if the evicted page of Start Times cannot be read back.
    pub fn inserted_at(&self, rid: Rid) -> Result<Option<Timestamp>, PageError> {
        let guard = sync::pin();
        self.range_as_is(rid.range()).pages.load(&guard).meta.inserted_at(&guard, rid.slot())
    }

    /// A range, with its past.
    #[inline]
    pub(crate) fn range(&self, index: usize) -> &Range {
        let range = self.range_as_is(index);
        if range.late_past.is_here() { range } else { self.range_used_first(index) }
    }

    /// A range that may be without its past: to look at its pages and counts.
    #[inline]
    pub(crate) fn range_as_is(&self, index: usize) -> &Range {
        self.ranges.get(index).expect("a Rid names a range of its table")
    }

    /// A range for a scan of what a snapshot at this time sees, with its past if that is needed.
    fn range_to_scan(&self, index: usize, at: Timestamp) -> &Range {
        let range = self.range_as_is(index);
        let needs_none = range.late_past.is_here() || range.is_merged_by(at);
        if needs_none { range } else { self.range_used_first(index) }
    }

    #[cold]
    fn range_used_first(&self, index: usize) -> &Range {
        let range = self.range_as_is(index);
        range.late_past.bring(range);
        let _growing = self.growing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: as in `add_range`.
        unsafe { self.places.show(index, range) };
        range
    }

    /// From here on the first use of a range brings its past. For recovery.
    pub(crate) fn put_past_off(&self, index: usize, bring: impl FnOnce(&Range) + Send + 'static) {
        self.range_as_is(index).late_past.put_off(bring);
        let _growing = self.growing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.places.hide(index);
    }

    /// Writes a record at the Rid that it had before a restart. Recovery only: nobody else uses the table yet.
    pub fn insert_at(&self, rid: Rid, cells: &[Cell<'_>], start: u64) {
        while self.range_count() <= rid.range() {
            self.add_range();
        }
        self.range(rid.range()).raise_len(rid.slot());
        self.range(rid.range()).write_insert(rid.slot(), cells, start);
    }

    /// The range with this number, made if it is not there.
    pub(crate) fn range_for_recovery(&self, index: usize) -> &Range {
        let growing = self.growing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while self.range_count() <= index {
            self.add_range();
        }
        drop(growing);
        self.range(index)
    }

    /// What was given up before a restart is not there, or not in every index.
    pub fn restore_horizon(&self, at: Timestamp) {
        self.horizon.restore(at);
    }

    pub(crate) fn horizon_decided(&self) -> Timestamp {
        self.horizon.decided()
    }

    /// Ends recovery: slots that no committed transaction filled become tombstones, and ranges with room are opened, but for those whose
    /// insert pages take more than a range may under the memory limit: it may be another one than that under which they were filled.
    pub fn finish_recovery(&self) {
        let (guard, bytes_max) = (sync::pin(), self.meter.budget().open_range_bytes_max(self.open.len()));
        let mut open = self.open.iter();
        for range in (0..self.range_count()).map(|index| self.range_as_is(index)) {
            range.bury_unwritten(&guard);
            if range.insert_bytes(&guard) > bytes_max {
                range.close();
            }
        }
        for index in (0..self.range_count()).filter(|index| !self.range_as_is(*index).is_closed()) {
            match open.next() {
                Some(open) => open.store(index + 1, Ordering::Release),
                None => self.range_as_is(index).close(),
            }
        }
    }

    fn add_range(&self) -> usize {
        let index = self.range_count.load(Ordering::Acquire);
        let range = self.ranges.get_or_init(index, || Range::new(&self.schema, self.options, &self.meter));
        // SAFETY: entries of the directory stay where they are until it is dropped with the table.
        unsafe { self.places.add(range) };
        self.range_count.store(index + 1, Ordering::Release);
        index
    }

    /// Appends a version to a record. `start` is the Start Time word as in [`Table::insert`].
    ///
    /// # Errors
    /// - [`WriteError::NotVisible`] if the view sees no such record.
    /// - [`WriteError::Locked`] if another transaction that has not ended has written the newest version, or holds
    ///   the record.
    /// - [`WriteError::Changed`] if the newest version was committed after the snapshot of the view.
    /// - [`WriteError::Page`] if an evicted page that it takes cannot be read back.
    pub fn append<O: Outcomes>(
        &self,
        view: View<'_, O>,
        start: u64,
        rid: Rid,
        change: Change<'_>,
    ) -> Result<AppendedRecords, WriteError> {
        self.range(rid.range()).append(&sync::pin(), view, start, rid.slot(), change)
    }

    /// Makes a record the transaction's own as an update would, and changes nothing: until the transaction ends, no
    /// other one appends a version. `None` if it holds as much of the record already. Otherwise
    /// its transaction stamps what was appended, whichever way it ends, and sooner if it rolls
    /// back to a savepoint before; whatever the stamp, the lock becomes a tombstone.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn lock<O: Outcomes>(
        &self,
        view: View<'_, O>,
        start: u64,
        rid: Rid,
        hold: Hold,
    ) -> Result<Option<AppendedRecords>, WriteError> {
        self.range(rid.range()).lock(&sync::pin(), view, start, rid.slot(), hold)
    }

    /// How much of a record a transaction holds that [`Table::newest_writer`] has named.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn hold<O: Outcomes>(&self, view: View<'_, O>, rid: Rid, owner: TxnId) -> Result<Hold, PageError> {
        self.range(rid.range()).hold(&sync::pin(), view, rid.slot(), owner)
    }

    /// Finds the transaction that wrote the newest version of a record, or has locked it.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn newest_writer<O: Outcomes>(&self, view: View<'_, O>, rid: Rid) -> Result<Writer, PageError> {
        self.range(rid.range()).newest_writer(&sync::pin(), view, rid.slot())
    }

    /// Finds the writer of the newest version of a record, with the record's latch held for a moment.
    ///
    /// This is for locks that are not in the record, such as share locks. A locker registers its lock somewhere and
    /// then calls this; a writer appends (or locks) and then looks for registered locks. They can't miss each
    /// other: both hold the record's latch once, the locker after it has registered, the writer while it publishes
    /// its version, and one of them is first. If the writer is first, the locker finds its version here. If the
    /// locker is, its registration came before it released the latch, the writer acquired the latch after that, and
    /// looks later still, so it finds the registration. (Without the latch each could read before the other's store
    /// is visible.)
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn newest_writer_latched<O: Outcomes>(&self, view: View<'_, O>, rid: Rid) -> Result<Writer, PageError> {
        self.range(rid.range()).newest_writer_latched(&sync::pin(), view, rid.slot())
    }

    /// Writes the outcome of transaction `owner` into a record that it inserted: a commit timestamp's word, or
    /// [`types::StartTime::TOMBSTONE`].
    pub fn stamp_insert(&self, guard: &Guard, rid: Rid, owner: TxnId, stamp: u64) {
        self.range(rid.range()).stamp_base(guard, rid.slot(), owner, stamp);
    }

    /// Writes the outcome of transaction `owner` into versions that it appended to a record.
    #[inline]
    pub fn stamp_versions(&self, guard: &Guard, rid: Rid, appended: AppendedRecords, owner: TxnId, stamp: u64) {
        self.points(guard).at(rid).stamp(guard, appended, owner, stamp);
    }

    /// Where a record is, to read and write it as words.
    #[inline]
    pub fn point(&self, rid: Rid) -> Point<'_> {
        Point::new(self.range(rid.range()), rid)
    }

    /// Where records are, to read and write several of them as words.
    #[inline]
    pub fn points<'g>(&'g self, guard: &'g Guard) -> Points<'g> {
        Points::of(self, guard)
    }

    /// First step of looking at several records at once: asks for their Indirection words and base values.
    #[inline]
    pub fn prefetch_base(&self, guard: &Guard, rid: Rid, columns: &[usize]) {
        self.range(rid.range()).prefetch_base(guard, rid.slot(), columns);
    }

    /// Second step: asks for the newest version in the tail. The third, [`Table::prefetch_values`], for its values.
    #[inline]
    pub fn prefetch_newest(&self, guard: &Guard, rid: Rid) {
        self.range(rid.range()).prefetch_newest(guard, rid.slot());
    }

    /// Third step: asks for the values of the newest version.
    #[inline]
    pub fn prefetch_values(&self, guard: &Guard, rid: Rid, columns: &[usize]) {
        self.range(rid.range()).prefetch_values(guard, rid.slot(), columns);
    }

    /// The rows of range `index` that `view` sees.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn scan_range<O: Outcomes>(
        &self,
        index: usize,
        view: View<'_, O>,
        projection: &Projection,
    ) -> Result<Vec<RecordBatch>, PageError> {
        self.range_to_scan(index, view.snapshot.at).scan(index, view, projection, None)
    }

    /// Scans range `index` with pages that were read ahead for it.
    ///
    /// # Errors
    /// As [`scan_range`](Self::scan_range).
    pub fn scan_range_after<O: Outcomes>(
        &self,
        index: usize,
        view: View<'_, O>,
        projection: &Projection,
        ahead: Ahead,
    ) -> Result<Vec<RecordBatch>, PageError> {
        self.range_to_scan(index, view.snapshot.at).scan(index, view, projection, Some(ahead))
    }

    /// The rows of range `index` that `view` sees, those with the values of the base pages apart; `None` where there are no such pages. See
    /// the `split` module.
    ///
    /// # Errors
    /// As [`scan_range`](Self::scan_range).
    pub fn split_range<O: Outcomes>(
        &self,
        index: usize,
        view: View<'_, O>,
        projection: &Projection,
    ) -> Result<Option<SplitRange>, PageError> {
        self.range_to_scan(index, view.snapshot.at).split(view, projection)
    }

    /// Whether it would pay to read ahead for a scan of range `index`: pages that it is likely to need are evicted.
    pub fn is_away(&self, index: usize, request: &Request) -> bool {
        self.range_as_is(index).is_away(request)
    }

    /// Reads evicted pages of range `index` back, for a scan that comes there next. Where memory is short they are in what is
    /// returned, and nowhere else.
    pub fn read_ahead(&self, index: usize, request: &Request) -> Ahead {
        self.range(index).read_ahead(request)
    }

    /// Aggregates of the requested columns over the rows of range `index` that `view` sees.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn aggregate_range<O: Outcomes>(
        &self,
        index: usize,
        view: View<'_, O>,
        request: &Request,
    ) -> Result<Totals, PageError> {
        self.range_to_scan(index, view.snapshot.at).aggregate(view, request)
    }

    /// How many rows of range `index` `view` sees, and how many values they have in some columns, and the sums of these. Extremes
    /// are not told. The next call pays for what has been written since; see the `running` module.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn sum_range<O: Outcomes>(
        &self,
        index: usize,
        view: View<'_, O>,
        columns: &[usize],
    ) -> Result<Totals, PageError> {
        self.range_to_scan(index, view.snapshot.at).sums(view, columns)
    }

    /// Whether a range is worth merging: full and not merged yet, over the bound of unmerged tail records, or (with
    /// `quiet`) merged before and left alone since it was last looked at.
    pub fn is_merge_due(&self, index: usize, quiet: bool) -> bool {
        let range = self.range_as_is(index);
        // What was quiet before a restart stays so until it is used.
        range.is_merge_due(quiet && range.late_past.is_here())
    }

    /// Puts the base values of a range side by side, row by row, if readers by key have often looked at them.
    pub fn make_point_rows(&self, index: usize) {
        self.range(index).make_point_rows();
    }

    /// How the table's storage is laid out.
    pub fn options(&self) -> &TableOptions {
        &self.options
    }

    /// The tail records of a range that no merge has taken in.
    pub fn unmerged(&self, index: usize) -> u64 {
        self.range_as_is(index).unmerged(&sync::pin())
    }

    /// Whether the caller is the first, since the range was last merged, to say that it is due.
    pub fn claim_merge(&self, index: usize) -> bool {
        let claimed = &self.range_as_is(index).is_merge_claimed;
        !claimed.load(Ordering::Relaxed) && !claimed.swap(true, Ordering::Relaxed)
    }

    /// Merges one range (see the `merge` module); `None` if there was nothing to do or a running transaction is in the way.
    ///
    /// No snapshot but those that are `kept` is asked for any more; see [`Table::raise_horizon`].
    pub fn merge_range<O: Outcomes>(&self, index: usize, outcomes: &O, kept: impl Into<Kept>) -> Option<MergeReport> {
        self.merge(index, outcomes, None, &kept.into())
    }

    /// Merges some columns of one range only. Merging columns apart pays where few of many are updated all the
    /// time.
    pub fn merge_columns<O: Outcomes>(
        &self,
        index: usize,
        columns: &[usize],
        outcomes: &O,
        kept: impl Into<Kept>,
    ) -> Option<MergeReport> {
        self.merge(index, outcomes, Some(columns), &kept.into())
    }

    /// Waits for the merge of a range that another thread is at, if there is one. The caller must not have pinned
    /// the epoch, as a merge may wait for memory.
    pub fn await_merge(&self, index: usize) {
        drop(self.range_as_is(index).merging.lock());
    }

    /// Whether [`Table::archive_range`] would find something worth it in some range, if the horizon has moved far enough.
    pub fn has_archivable(&self) -> bool {
        let guard = sync::pin();
        let mut ranges = (0..self.range_count()).map(|index| self.range_as_is(index));
        ranges.any(|range| range.late_past.is_here() && range.has_archivable(&guard))
    }

    /// Turns what a range has merged into history, and gives up what none of the `kept` snapshots needs: some thousand
    /// records, or all of it. Returns whether there was anything worth it. Does nothing while a merge runs on the range.
    pub fn archive_range(&self, index: usize, kept: impl Into<Kept>, all: bool) -> bool {
        let range = self.range_as_is(index);
        if !range.late_past.is_here() && !all {
            return false;
        }
        let range = self.range(index);
        match range.merging.try_lock() {
            Ok(_one_at_a_time) => range.archive(&sync::pin(), &kept.into(), all).unwrap_or_default(),
            Err(_) => false,
        }
    }

    fn merge<O: Outcomes>(
        &self,
        index: usize,
        outcomes: &O,
        columns: Option<&[usize]>,
        kept: &Kept,
    ) -> Option<MergeReport> {
        let range = self.range(index);
        range.is_merge_claimed.store(false, Ordering::Relaxed);
        // What can't be read back stays as it is: it is counted, and told to the statement that needs it.
        let report = range.merge(outcomes, columns, kept).ok().flatten()?;
        self.merges.fetch_add(1, Ordering::Release);
        Some(report)
    }

    /// Decides which snapshots are given up: those before `wanted`, and before the last that `in_use` answers, unless it
    /// answers them too. Returns what is kept.
    ///
    /// `in_use` is asked for the snapshots in use, ascending. They are exact, but for the last: it may stand for
    /// all others, in use or taken later, provided that none of these is older. The `kept` module says when
    /// snapshots have to be announced.
    pub fn raise_horizon(&self, wanted: Timestamp, in_use: impl FnOnce() -> Vec<Timestamp>) -> Kept {
        self.horizon.raise(wanted, in_use)
    }

    /// From here on everything is kept.
    pub fn horizon(&self) -> Timestamp {
        self.horizon.get()
    }

    /// The snapshots that are kept now. Later it may be fewer.
    pub fn kept(&self) -> Kept {
        self.horizon.kept()
    }

    /// Whether the table has its rows as of a snapshot. If the caller has announced it as in use before, the answer holds as
    /// long as that is so.
    pub fn keeps(&self, at: Timestamp) -> bool {
        self.horizon.keeps(at)
    }

    /// Keeps every version that there is from the horizon on, while what is returned lives.
    pub fn keep_all(&self) -> KeptFrom<'_> {
        self.horizon.keep_all()
    }

    /// Keeps every version from `from` on while what is returned lives; `None` if some were given up already. (A snapshot in
    /// use keeps what it sees, and not what was there between it and the next one.)
    pub fn keep_from(&self, from: Timestamp) -> Option<KeptFrom<'_>> {
        self.horizon.keep_from(from)
    }

    /// The memory that the table takes.
    pub fn memory(&self) -> MemoryUse {
        self.meter.used()
    }

    /// What the optimizer may know of the table.
    pub fn statistics(&self) -> TableStatistics {
        let (ranges, guard) = (self.range_count(), sync::pin());
        let all = || (0..ranges).map(|index| self.range_as_is(index));
        let rows = all().map(|range| range.estimated_rows(&guard)).sum();
        // Read first: a merge that ends meanwhile is looked at again.
        let merges = self.merges.load(Ordering::Acquire);
        self.found_columns.at(ranges, merges, || MergedColumns::of(&self.schema, all())).of_rows(rows)
    }

    /// How the base pages of a column are encoded, range by range; `None` for ranges that are not merged yet, and for rows.
    pub fn encodings(&self, column: usize) -> Vec<Option<Encoding>> {
        let guard = sync::pin();
        (0..self.range_count()).map(|index| self.range_as_is(index).encoding(&guard, column)).collect()
    }

    /// What the table holds now.
    pub fn stats(&self) -> TableStats {
        let guard = sync::pin();
        let mut stats = TableStats { merges: self.merges.load(Ordering::Relaxed), ..TableStats::default() };
        for index in 0..self.range_count() {
            let range = self.range_as_is(index);
            stats.ranges += 1;
            stats.records += range.len() as u64;
            stats.tail_records += range.tail_records();
            stats.tail_records_unmerged += range.unmerged(&guard);
        }
        stats
    }
}
