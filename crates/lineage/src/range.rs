//! One update range: its base or insert pages, its tail pages, its Indirection column, and how a record is read.
//!
//! ```text
//!            Indirection                columns                    tail pages
//! slot s --> [latch|sequence] ----+     [page c] [page d] [meta]   1 2 3 ... 17 ... allocated
//!                                 |        ^ TPS    ^ TPS   ^ TPS         |
//!                                 +-----------------------------> 17 -prev-> 9 -prev-> 8* -prev-> 0
//! ```
//!
//! **Reading a record** (sections 2.2, 3 and 4.2). First the pages are loaded, then the Indirection word: whatever a
//! loaded page has merged in is then on the chain that the word starts. If the newest version's number is within the
//! TPS of every page read, and the record's Last Updated Time is within the snapshot, the base pages hold the answer.
//! Otherwise the chain is walked from the newest version on:
//! - a version that the snapshot does not see is skipped, and the columns that it updated are marked as *newer*:
//!   base pages may have merged it in and must not be used for them;
//! - a snapshot record gives the original values of columns that only invisible versions have updated;
//! - the first visible version decides whether the record exists, and gives its explicit columns. A column that it
//!   lacks is in the base page if it was never updated, or if the page's TPS has reached the number at which the
//!   version's cumulation was reset (the writer left the column out because a page had merged it). Else the walk goes
//!   on.
//!
//! So the newest version of any column is at most two hops away, and an old snapshot's as far as its age asks for.
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;
use sync::{EpochCell, Guard, zeroed_atomics};
use types::{DataType, Schema};

use crate::base::{ColumnPage, MetaPage};
use crate::cell::Cell;
use crate::column_set::ColumnSet;
use crate::insert::InsertPages;
use crate::tail::{Kind, TailPages, TailRecord};
use crate::view::{Outcomes, View, Visibility};

/// The latch bit of an Indirection word.
pub(crate) const LATCH: u64 = 1 << 63;

/// One update range of a table.
pub(crate) struct Range {
    pub(crate) types: Arc<[DataType]>,
    pub(crate) capacity: usize,
    /// Slots handed out; may run past `limit` when the range is full or closed.
    next_slot: AtomicUsize,
    /// Slots that this range will ever have: its capacity, or fewer once it is closed.
    limit: AtomicUsize,
    pub(crate) indirection: Box<[AtomicU64]>,
    pub(crate) columns: Box<[EpochCell<ColumnPage>]>,
    pub(crate) meta: EpochCell<MetaPage>,
    pub(crate) tails: TailPages,
    /// Held by the one merge that may run on a range; transactions never touch it.
    pub(crate) merging: Mutex<MergeProgress>,
}

/// What the merge remembers of a range.
#[derive(Default)]
pub(crate) struct MergeProgress {
    /// The tail records allocated when the range was last looked at, to notice that it is quiet.
    pub(crate) allocated_last: u64,
}

/// The pages of some columns, and the meta-data page, each loaded once.
pub(crate) struct LoadedPages<'g> {
    pub(crate) columns: SmallVec<[&'g ColumnPage; 16]>,
    pub(crate) meta: &'g MetaPage,
    /// the lowest TPS among them
    pub(crate) tps_min: u64,
}

/// What a walk along a record's chain has found so far.
struct Walk {
    /// positions (in the list of columns asked for) whose value is found
    found: ColumnSet,
    missing: usize,
    /// columns updated by versions that the snapshot does not see
    newer: ColumnSet,
    /// whether a visible version was met
    exists: bool,
}

impl Range {
    /// An empty range for `capacity` records of this schema.
    pub(crate) fn new(schema: &Schema, capacity: usize) -> Range {
        let insert = Arc::new(InsertPages::new(schema, capacity));
        let column = |_| EpochCell::new(ColumnPage::Insert(insert.clone()));
        Range {
            types: schema.columns().iter().map(|column| column.data_type).collect(),
            capacity,
            next_slot: AtomicUsize::new(0),
            limit: AtomicUsize::new(capacity),
            indirection: zeroed_atomics(capacity),
            columns: (0..schema.columns().len()).map(column).collect(),
            meta: EpochCell::new(MetaPage::Insert(insert.clone())),
            tails: TailPages::new(schema),
            merging: Mutex::default(),
        }
    }

    /// How many slots were handed out.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // A closed range has run its counter past every limit before the limit was lowered.
        self.next_slot.load(Ordering::Acquire).min(self.limit.load(Ordering::Acquire))
    }

    /// Takes the next free slot, `None` if the range is full or closed.
    pub(crate) fn allocate_slot(&self) -> Option<usize> {
        let slot = self.next_slot.fetch_add(1, Ordering::AcqRel);
        (slot < self.limit.load(Ordering::Acquire).min(self.capacity)).then_some(slot)
    }

    /// Makes `slot` and all before it handed out, for recovery.
    pub(crate) fn raise_len(&self, slot: usize) {
        self.next_slot.fetch_max(slot + 1, Ordering::AcqRel);
    }

    /// Whether no further slot will be handed out.
    pub(crate) fn is_closed(&self) -> bool {
        self.next_slot.load(Ordering::Acquire) >= self.limit.load(Ordering::Acquire)
    }

    /// Lets no further slot be handed out, so that the range can be merged before it is full.
    pub(crate) fn close(&self) {
        let handed_out = self.next_slot.fetch_add(self.capacity, Ordering::AcqRel);
        if handed_out < self.capacity {
            self.limit.fetch_min(handed_out, Ordering::AcqRel);
        }
    }

    /// Writes the record at `slot`, which was handed out to the caller.
    pub(crate) fn write_insert(&self, slot: usize, cells: &[Cell<'_>], start: u64) {
        match self.meta.load(&sync::pin()) {
            MetaPage::Insert(pages) => pages.write(slot, cells, start),
            MetaPage::Base(_) => unreachable!("insert pages stay until every slot handed out is resolved"),
        }
    }

    /// Whether a merge would be worth its while; see [`crate::Table::is_merge_due`].
    pub(crate) fn is_merge_due(&self, tail_records_max: u64, quiet: bool) -> bool {
        let guard = sync::pin();
        let unmerged = self.unmerged(&guard);
        let is_insert = matches!(self.meta.load(&guard), MetaPage::Insert(_));
        if unmerged >= tail_records_max || (is_insert && self.is_closed()) {
            return true;
        }
        if !quiet || is_insert || unmerged == 0 {
            return false;
        }
        let Ok(mut progress) = self.merging.try_lock() else { return false };
        let allocated = self.tails.allocated();
        std::mem::replace(&mut progress.allocated_last, allocated) == allocated
    }

    /// Tail records that the base pages have not taken in yet.
    pub(crate) fn unmerged(&self, guard: &Guard) -> u64 {
        let tps = self.meta.load(guard).tps();
        self.tails.allocated().saturating_sub(tps)
    }

    /// Reads the version of the record at `slot` that `view` sees: fills `out[i]` with the value of `columns[i]` and
    /// returns true, or returns false where the view sees no record.
    pub(crate) fn read<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        view: View<'_, O>,
        slot: usize,
        columns: &[usize],
        out: &mut [Cell<'g>],
    ) -> bool {
        self.read_from(&self.load_pages(guard, columns), view, slot, columns, out)
    }

    /// The same from pages loaded before, which must be those of `columns`.
    pub(crate) fn read_from<'g, O: Outcomes>(
        &'g self,
        pages: &LoadedPages<'g>,
        view: View<'_, O>,
        slot: usize,
        columns: &[usize],
        out: &mut [Cell<'g>],
    ) -> bool {
        let newest = self.indirection[slot].load(Ordering::Acquire) & !LATCH;
        if newest <= pages.tps_min && self.is_merged_version_visible(pages, view, slot) {
            if self.is_deleted_by_merge(pages, slot) || view.visibility(pages.meta.start(slot)) != Visibility::Visible {
                return false;
            }
            for (i, &column) in columns.iter().enumerate() {
                out[i] = pages.columns[i].cell(column, self.types[column], slot);
            }
            return true;
        }
        self.read_chain(pages, view, slot, newest, columns, out)
    }

    pub(crate) fn load_pages<'g>(&'g self, guard: &'g Guard, columns: &[usize]) -> LoadedPages<'g> {
        let loaded: SmallVec<[&ColumnPage; 16]> =
            columns.iter().map(|&column| self.columns[column].load(guard)).collect();
        // The merge publishes this page before the columns, so that here it is at least as new as they are.
        let meta = self.meta.load(guard);
        let tps_min = loaded.iter().map(|page| page.tps()).min().unwrap_or(u64::MAX).min(meta.tps());
        LoadedPages { columns: loaded, meta, tps_min }
    }

    /// Whether the snapshot sees the newest version that was merged into the base record.
    fn is_merged_version_visible<O: Outcomes>(&self, pages: &LoadedPages<'_>, view: View<'_, O>, slot: usize) -> bool {
        match pages.meta {
            MetaPage::Insert(_) => true,
            MetaPage::Base(meta) => meta.last_updated(slot) <= view.snapshot.at.0,
        }
    }

    fn is_deleted_by_merge(&self, pages: &LoadedPages<'_>, slot: usize) -> bool {
        matches!(pages.meta, MetaPage::Base(meta) if meta.is_deleted(slot))
    }

    pub(crate) fn read_chain<'g, O: Outcomes>(
        &'g self,
        pages: &LoadedPages<'g>,
        view: View<'_, O>,
        slot: usize,
        newest: u64,
        columns: &[usize],
        out: &mut [Cell<'g>],
    ) -> bool {
        let mut walk = Walk { found: ColumnSet::EMPTY, missing: columns.len(), newer: ColumnSet::EMPTY, exists: false };
        let mut sequence = newest;
        while sequence != 0 {
            let record = self.tails.published(sequence);
            sequence = record.prev();
            let kind = record.kind();
            match if kind == Kind::Snapshot { Visibility::Visible } else { view.visibility(record.start()) } {
                Visibility::Absent => continue,
                Visibility::Invisible => {
                    walk.newer.insert_all(&record.explicit());
                    continue;
                }
                Visibility::Visible => {}
            }
            walk.take_explicit(&record, columns, out);
            if kind == Kind::Snapshot {
                continue;
            }
            if !walk.exists && kind == Kind::Delete {
                return false;
            }
            walk.exists = true;
            walk.take_base(self, pages, &record, slot, columns, out);
            if walk.missing == 0 {
                return true;
            }
        }
        if !walk.exists && view.visibility(pages.meta.start(slot)) != Visibility::Visible {
            return false;
        }
        for (i, &column) in columns.iter().enumerate() {
            if !walk.found.contains(i) {
                debug_assert!(!walk.newer.contains(column), "a newer update leaves a snapshot record behind it");
                out[i] = pages.columns[i].cell(column, self.types[column], slot);
            }
        }
        true
    }
}

impl Walk {
    fn take<'g>(&mut self, i: usize, cell: Cell<'g>, out: &mut [Cell<'g>]) {
        out[i] = cell;
        self.found.insert(i);
        self.missing -= 1;
    }

    /// Takes the values that `record` has for columns still missing.
    fn take_explicit<'g>(&mut self, record: &TailRecord<'g>, columns: &[usize], out: &mut [Cell<'g>]) {
        for (i, &column) in columns.iter().enumerate() {
            if !self.found.contains(i) && record.is_explicit(column) {
                self.take(i, record.cell(column), out);
            }
        }
    }

    /// Takes from the base pages the columns whose newest version at or before `record` is there.
    fn take_base<'g>(
        &mut self,
        range: &'g Range,
        pages: &LoadedPages<'g>,
        record: &TailRecord<'g>,
        slot: usize,
        columns: &[usize],
        out: &mut [Cell<'g>],
    ) {
        for (i, &column) in columns.iter().enumerate() {
            let page = pages.columns[i];
            if !self.found.contains(i)
                && !self.newer.contains(column)
                && (!record.was_ever_updated(column) || page.tps() >= record.reset())
            {
                self.take(i, page.cell(column, range.types[column], slot), out);
            }
        }
    }
}
