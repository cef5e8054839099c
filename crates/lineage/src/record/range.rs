//! One range of a table: the records that are merged together. Its slots, its pages, its Indirection column, and the
//! update ranges into which its tails are divided.
//!
//! ```text
//!            Indirection                columns                    tail pages of the slot's update range
//! slot s --> [latch|sequence] ----+     [page c] [page d] [meta]   1 2 3 ... 17 ... allocated
//!                                 |        ^ TPS    ^ TPS   ^ TPS         |
//!                                 +-----------------------------> 17 -prev-> 9 -prev-> 8* -prev-> 0
//! ```
//!
//! Base pages cover the whole range, as the merge works best on many records; the tails of 2^12 to 2^16 neighbouring
//! slots, an *update range*, are numbered and kept for themselves, so that what a reader looks up lies close together
//! (L-Store, section 4.3). A page therefore has a TPS for each update range.
use std::sync::Arc;

use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sync::blocking::Mutex;
use sync::{EpochCell, Guard, zeroed_atomics};
use types::{DataType, Schema, Timestamp};

use crate::content::meta_columns::HINT_SLOTS;
use crate::memory::budget::Meter;
use crate::page::archived::{Archive, ExpiryFindings};
use crate::page::base::{Lineage, MetaPage, NewValues, Page, Pages, Values};
use crate::page::history::History;
use crate::page::insert::InsertPages;
use crate::page::options::TableOptions;
use crate::page::tail::TailPages;
use crate::record::forward::ForwardColumns;
use crate::record::indirection::IndirectionWords;
use crate::record::last_image::LastImage;
use crate::record::late_past::LatePast;
use crate::record::running::RunningTotals;
use crate::value::cell::{ArrayCells, Cell};

/// The latch bit of an Indirection word.
pub(crate) const LATCH: u64 = 1 << 63;

/// One range of a table.
pub(crate) struct Range {
    pub(crate) types: Arc<[DataType]>,
    pub(crate) options: TableOptions,
    /// log2 of the slots in an update range
    part_bits: u32,
    /// Slots handed out; may run past `limit` when the range is full or closed.
    next_slot: AtomicUsize,
    /// Slots that this range will ever have: its capacity, or fewer once it is closed.
    limit: AtomicUsize,
    pub(crate) indirection: IndirectionWords,
    /// The newest insert of every [`HINT_SLOTS`] slots, once all are decided and were looked at; see `validation`.
    pub(crate) inserts_newest: Box<[AtomicU64]>,
    /// Reading a record loads them before its Indirection word.
    pub(crate) pages: EpochCell<Pages>,
    pub(crate) parts: Box<[UpdateRange]>,
    /// How often pages or history were exchanged.
    pub(crate) publications: AtomicU64,
    pub(crate) last_image: Arc<std::sync::Mutex<Option<LastImage>>>,
    /// of a range that was restored and not used yet
    pub(crate) late_past: LatePast,
    /// Whether a caller has been told that the range is due for a merge.
    pub(crate) is_merge_claimed: AtomicBool,
    /// Held by the one merge that may run on a range; transactions never touch it.
    pub(crate) merging: Mutex<MergeProgress>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) running: RunningTotals,
    pub(crate) forward: ForwardColumns,
    /// Looks at base records by key, of a sample, while there are no point rows; see there.
    pub(crate) read_by_key: AtomicUsize,
}

/// The versions of neighbouring slots of a range: recent ones in tail pages, merged ones in history pages.
pub(crate) struct UpdateRange {
    pub(crate) tails: TailPages,
    pub(crate) archive: EpochCell<Archive>,
    /// What the base pages have merged in, or less: a hint where a version is to be looked for first.
    pub(crate) merged_hint: AtomicU64,
}

/// The merge's memory of a range.
#[derive(Default)]
pub(crate) struct MergeProgress {
    /// The tail records allocated when the range was last looked at, to notice that it is quiet.
    pub(crate) allocated_last: u64,
    /// Columns that were made before the first merge.
    pub(crate) early: Option<Vec<NewValues>>,
}

impl Range {
    /// An empty range for records of this schema.
    pub(crate) fn new(schema: &Schema, options: TableOptions, meter: &Arc<Meter>) -> Range {
        let capacity = options.range_records;
        let insert = Arc::new(InsertPages::new(schema, &options, meter));
        let parts = capacity / options.update_range_records;
        let lineage: Lineage = vec![0; parts].into();
        let page =
            |_| Arc::new(Page { lineage: lineage.clone(), values: Values::Insert(insert.clone()), sketch: None });
        let columns = (0..schema.columns().len()).map(page).collect();
        let meta = MetaPage::Insert { lineage: lineage.clone(), pages: insert.clone() };
        let types: Arc<[DataType]> = schema.columns().iter().map(|column| column.data_type).collect();
        let part = |_| {
            let history = History::empty(types.clone(), meter.clone());
            UpdateRange {
                tails: TailPages::new(schema, &options, meter),
                archive: EpochCell::new(Archive::unpublished(history, ExpiryFindings::default(), meter)),
                merged_hint: AtomicU64::new(0),
            }
        };
        let parts = (0..parts).map(part).collect();
        Range {
            types,
            options,
            part_bits: options.update_range_records.trailing_zeros(),
            next_slot: AtomicUsize::new(0),
            limit: AtomicUsize::new(capacity),
            indirection: IndirectionWords::new(capacity, meter),
            inserts_newest: zeroed_atomics(capacity.div_ceil(HINT_SLOTS)),
            pages: EpochCell::new(Pages::new(meta, columns)),
            parts,
            publications: AtomicU64::new(0),
            last_image: Arc::default(),
            late_past: LatePast::default(),
            is_merge_claimed: AtomicBool::new(false),
            merging: Mutex::default(),
            meter: meter.clone(),
            running: RunningTotals::new(schema.columns().len()),
            forward: ForwardColumns::default(),
            read_by_key: AtomicUsize::new(0),
        }
    }

    /// How many slots were handed out.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // A closed range has run its counter past every limit before the limit was lowered.
        self.next_slot.load(Ordering::Acquire).min(self.limit.load(Ordering::Acquire))
    }

    /// The index of the update range of a slot.
    #[inline]
    pub(crate) fn part_of(&self, slot: usize) -> usize {
        slot >> self.part_bits
    }

    /// The update range of a slot.
    #[inline]
    pub(crate) fn part(&self, slot: usize) -> &UpdateRange {
        &self.parts[self.part_of(slot)]
    }

    /// Takes the next free slot, `None` if the range is full or closed.
    pub(crate) fn allocate_slot(&self) -> Option<usize> {
        let slot = self.next_slot.fetch_add(1, Ordering::AcqRel);
        (slot < self.limit.load(Ordering::Acquire)).then_some(slot)
    }

    /// Takes the next free slots, as many as asked for or as there are. The range is full or closed where these are none.
    pub(crate) fn allocate_slots(&self, count: usize) -> std::ops::Range<usize> {
        let first = self.next_slot.fetch_add(count, Ordering::AcqRel);
        let limit = self.limit.load(Ordering::Acquire);
        first.min(limit)..(first + count).min(limit)
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
        let capacity = self.options.range_records;
        let handed_out = self.next_slot.fetch_add(capacity, Ordering::AcqRel);
        if handed_out < capacity {
            self.limit.fetch_min(handed_out, Ordering::AcqRel);
        }
    }

    /// Writes the record at `slot`, which was handed out to the caller. Returns the bytes that the insert pages take then.
    pub(crate) fn write_insert(&self, slot: usize, cells: &[Cell<'_>], start: u64) -> u64 {
        match &self.pages.load(&sync::pin()).meta {
            MetaPage::Insert { pages, .. } => {
                pages.write(slot, cells, start);
                pages.bytes()
            }
            MetaPage::Base(_) => unreachable!("insert pages stay until every slot handed out is resolved"),
        }
    }

    /// Writes rows at neighbouring slots from `slot` on, which were handed out to the caller; the rest as
    /// [`write_insert`](Self::write_insert).
    pub(crate) fn write_inserts(
        &self,
        slot: usize,
        columns: &[ArrayCells<'_>],
        rows: std::ops::Range<usize>,
        start: u64,
    ) -> u64 {
        match &self.pages.load(&sync::pin()).meta {
            MetaPage::Insert { pages, .. } => {
                pages.write_rows(slot, columns, rows, start);
                pages.bytes()
            }
            MetaPage::Base(_) => unreachable!("insert pages stay until every slot handed out is resolved"),
        }
    }

    /// The bytes that its insert pages take, as long as it has some.
    pub(crate) fn insert_bytes(&self, guard: &Guard) -> u64 {
        match &self.pages.load(guard).meta {
            MetaPage::Insert { pages, .. } => pages.bytes(),
            MetaPage::Base(_) => 0,
        }
    }

    /// Whether the base pages have every version, and a snapshot at this time sees the newest: a scan by it needs nothing else.
    pub(crate) fn is_merged_by(&self, at: Timestamp) -> bool {
        let guard = &sync::pin();
        let pages = self.pages.load(guard);
        let MetaPage::Base(meta) = &pages.meta else { return false };
        let mut parts = self.parts.iter().zip(pages.floor.iter());
        meta.newest <= at && parts.all(|(part, tps)| part.tails.allocated() <= *tps)
    }

    /// Whether a merge would be worth its while; see [`crate::Table::is_merge_due`].
    pub(crate) fn is_merge_due(&self, quiet: bool) -> bool {
        let guard = sync::pin();
        let unmerged = self.unmerged(&guard);
        let is_insert = matches!(self.pages.load(&guard).meta, MetaPage::Insert { .. });
        if unmerged >= self.options.merge_tail_records || (is_insert && self.is_closed()) {
            return true;
        }
        if !quiet || is_insert || unmerged == 0 {
            return false;
        }
        let Ok(mut progress) = self.merging.try_lock() else { return false };
        let allocated = self.tail_records();
        std::mem::replace(&mut progress.allocated_last, allocated) == allocated
    }

    /// Tail records numbered so far.
    pub(crate) fn tail_records(&self) -> u64 {
        self.parts.iter().map(|part| part.tails.allocated()).sum()
    }

    /// Tail records that the base pages have not taken in yet.
    pub(crate) fn unmerged(&self, guard: &Guard) -> u64 {
        let lineage = self.pages.load(guard).meta.lineage();
        self.parts.iter().zip(lineage.iter()).map(|(part, tps)| part.tails.allocated().saturating_sub(*tps)).sum()
    }
}

/// Reads of at most so many columns need no allocation.
pub(crate) const FEW_COLUMNS: usize = 16;
