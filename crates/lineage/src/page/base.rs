//! Base pages: read-only columns of a range, each with its own lineage (L-Store, sections 2.1 and 4.2).
//!
//! A column of a range is at first a column of its insert pages and later a base page made by the merge, encoded (see
//! `encoding`) or, in row layout, part of a page of rows. All are one [`Page`], so readers do not care which they meet.
//! The meta-data columns that base records have (Start Time, Last Updated Time, Schema Encoding, and whether the record
//! was deleted) are a page of their own, [`MetaPage`], merged like any other.
//!
//! Each page carries its lineage: its TPS for each update range that it covers, the number of the last tail record taken
//! in. Pages made by the same merge share it. The [`Pages`] of a range are its part of the page directory: a merge
//! publishes new ones by one pointer swap, in which the pages that it did not touch go on.
use std::sync::Arc;

use sync::Guard;
use sync::atomic::{AtomicU64, Ordering};
use types::{BlobRef, StartTime, Timestamp};

use crate::content::meta_columns::{Times, UpdateColumns};
use crate::content::row_page::RowPage;
use crate::encoding::EncodedColumn;
use crate::memory::budget::Meter;
use crate::memory::evictable::Evictable;
use crate::memory::source::PageError;
use crate::page::insert::InsertPages;
use crate::page::point_rows::{PointRow, PointRows};
use crate::value::cell::{Cell, ColumnCells};
use crate::value::sketch::Sketch;

/// The TPS of each update range that a page covers.
pub(crate) type Lineage = Arc<[u64]>;

/// One data column of a range.
pub(crate) struct Page {
    pub(crate) lineage: Lineage,
    pub(crate) values: Values,
    /// of its distinct values; `None` while the page is an insert page
    pub(crate) sketch: Option<Arc<Sketch>>,
}

/// All pages of a range as they are between two merges.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) meta: MetaPage,
    /// the page of each column
    pub(crate) columns: Box<[Arc<Page>]>,
    /// of each column, what has its values one by one, if something does
    flat: Box<[Option<Arc<Evictable<EncodedColumn>>>]>,
    /// the lowest TPS of any column, for each update range; shared with the pages if all have the same
    pub(crate) floor: Lineage,
    /// the values of the flat columns row by row, where the range is often read by key
    pub(crate) rows: Option<Arc<PointRows>>,
}

impl Pages {
    /// Pages of one range. The meta-data page must be at least as far as each of the others.
    pub(crate) fn new(meta: MetaPage, columns: Box<[Arc<Page>]>) -> Pages {
        let lineage = meta.lineage();
        let floor = if columns.iter().all(|page| Arc::ptr_eq(&page.lineage, lineage)) {
            lineage.clone()
        } else {
            let lowest = |part: usize| columns.iter().map(|page| page.lineage[part]).fold(lineage[part], u64::min);
            (0..lineage.len()).map(lowest).collect()
        };
        let flat = |page: &Arc<Page>| match &page.values {
            Values::Column(encoded) if encoded.is_flat() => Some(encoded.clone()),
            _ => None,
        };
        Pages { meta, flat: columns.iter().map(flat).collect(), columns, floor, rows: None }
    }

    /// These pages with point rows, which were made from them.
    pub(crate) fn with_rows(self, rows: Option<Arc<PointRows>>) -> Pages {
        Pages { rows, ..self }
    }

    /// Point rows of these pages with so many records: those of the pages before with what is at some slots anew, if there
    /// are any that still fit.
    pub(crate) fn make_rows(
        &self,
        guard: &Guard,
        before: Option<&PointRows>,
        records: usize,
        slots: impl Iterator<Item = usize>,
        meter: &Arc<Meter>,
    ) -> Option<Arc<PointRows>> {
        let flat: Box<[_]> = self.flat.iter().map(|page| page.as_ref().and_then(|page| page.flat(guard))).collect();
        let patched = before.and_then(|before| before.patched(guard, &flat, slots));
        patched.or_else(|| PointRows::build(&flat, records, meter))
    }

    /// The values of some columns of the record at `slot` side by side, where there are point rows with all of these, a bit each.
    #[inline]
    pub(crate) fn row<'g>(&'g self, guard: &'g Guard, slot: usize, columns: u64) -> Option<PointRow<'g>> {
        self.rows.as_ref()?.row(guard, slot, columns)
    }

    /// The value at `slot` of a column where it is found at once; such a column has no NULL.
    #[inline]
    pub(crate) fn flat_word(&self, guard: &Guard, column: usize, slot: usize) -> Option<u64> {
        self.flat[column].as_ref()?.flat_word(guard, slot)
    }

    /// The value at `slot` of a column that is stored as words; `None` if it is NULL.
    #[inline]
    pub(crate) fn word(&self, guard: &Guard, column: usize, slot: usize) -> Result<Option<u64>, PageError> {
        match self.flat_word(guard, column, slot) {
            Some(word) => Ok(Some(word)),
            None => self.columns[column].word(guard, column, slot),
        }
    }

    /// Collects the values at `slot` of some columns, each with its column.
    #[inline]
    pub(crate) fn originals<'g>(
        &'g self,
        guard: &'g Guard,
        columns: impl Iterator<Item = usize>,
        slot: usize,
        originals: &mut ColumnCells<'g>,
    ) -> Result<(), PageError> {
        for column in columns {
            originals.push((column, self.columns[column].cell(guard, column, slot)?));
        }
        Ok(())
    }

    /// Asks for the memory of the value at `slot` of a column.
    #[inline]
    pub(crate) fn prefetch(&self, guard: &Guard, column: usize, slot: usize) {
        if !self.flat[column].as_ref().is_some_and(|flat| flat.prefetch_flat(slot)) {
            self.columns[column].prefetch(guard, column, slot);
        }
    }

    /// The lowest TPS of the pages of some columns, and of the meta-data page, in an update range.
    #[inline]
    pub(crate) fn tps_min(&self, part: usize, columns: &[usize]) -> u64 {
        let tps = self.meta.lineage()[part];
        if self.floor[part] == tps {
            return tps;
        }
        columns.iter().map(|column| self.columns[*column].lineage[part]).fold(tps, u64::min)
    }
}

/// Where the values of a column are.
#[derive(Clone)]
pub(crate) enum Values {
    /// Still in the insert pages; the TPS are 0.
    Insert(Arc<InsertPages>),
    /// One value for each slot.
    Column(Arc<Evictable<EncodedColumn>>),
    /// One row for each slot, of all columns.
    Rows(Arc<Evictable<RowPage>>),
}

/// The values of a page and the sketch of them, before it has its lineage.
pub(crate) type NewValues = (Values, Option<Arc<Sketch>>);

impl Values {
    /// Those of a column.
    pub(crate) fn of_column(column: EncodedColumn, meter: &Arc<Meter>, blob: Option<BlobRef>) -> Values {
        let outline = column.outline();
        Values::Column(Evictable::new(column, outline, meter, blob))
    }
}

impl Page {
    /// Asks for the memory of the value at `slot`.
    #[inline(never)]
    pub(crate) fn prefetch(&self, guard: &Guard, column: usize, slot: usize) {
        match &self.values {
            Values::Column(encoded) => encoded.here(guard).into_iter().for_each(|encoded| encoded.prefetch(slot)),
            Values::Rows(rows) => rows.here(guard).into_iter().for_each(|rows| rows.prefetch(column, slot)),
            Values::Insert(_) => {}
        }
    }

    /// The value at `slot` of this page, which is column `column` of the table. The caller has seen the record's
    /// Start Time written.
    #[inline]
    pub(crate) fn cell<'g>(&'g self, guard: &'g Guard, column: usize, slot: usize) -> Result<Cell<'g>, PageError> {
        Ok(match &self.values {
            Values::Column(encoded) => encoded.get(guard)?.cell(slot),
            Values::Rows(rows) => rows.get(guard)?.cell(column, slot),
            Values::Insert(pages) => pages.cell(column, slot),
        })
    }

    /// The word at `slot` of a column that is stored as words, `None` if it is NULL.
    #[inline(never)]
    pub(crate) fn word(&self, guard: &Guard, column: usize, slot: usize) -> Result<Option<u64>, PageError> {
        if let Values::Column(encoded) = &self.values {
            return Ok(encoded.get(guard)?.word(slot));
        }
        Ok(match self.cell(guard, column, slot)? {
            Cell::Word(word) => Some(word),
            Cell::Null | Cell::Bytes(_) => None,
        })
    }
}

/// When what base records have was committed; see [`MetaPage::settled`].
#[derive(Clone, Copy)]
pub(crate) struct SettledTimes<'g> {
    updates: Option<&'g UpdateColumns>,
    starts: Starts<'g>,
}

impl SettledTimes<'_> {
    /// That of the record at `slot`, `None` if it was deleted.
    #[inline]
    pub(crate) fn at(self, slot: usize) -> Option<u64> {
        let updated = self.updates.and_then(|updates| updates.settled(slot));
        updated.unwrap_or_else(|| Some(self.starts.word(slot).load(Ordering::Acquire)))
    }
}

/// The meta-data columns of a range's base records.
#[derive(Clone)]
pub(crate) enum MetaPage {
    /// Start Time is in the insert pages; nothing was merged.
    Insert {
        /// zeros
        lineage: Lineage,
        /// where the records are
        pages: Arc<InsertPages>,
    },
    /// Merged.
    Base(MetaColumns),
}

/// The merged meta-data columns, one entry for each slot.
#[derive(Clone)]
pub(crate) struct MetaColumns {
    /// the last tail records taken in
    pub(crate) lineage: Lineage,
    /// Start Time: when each record was inserted, or a tombstone
    pub(crate) start: Arc<StartTimes>,
    /// what the tail records taken in did; `None` while none was
    pub(crate) updates: Option<Arc<Evictable<UpdateColumns>>>,
    /// the newest time in Start Time
    pub(crate) inserted: Timestamp,
    /// the newest time in Start Time and Last Updated Time
    pub(crate) newest: Timestamp,
    /// how many slots hold a record that is not deleted
    pub(crate) live_rows: u64,
    /// how many slots never held a record
    pub(crate) tombstones: usize,
    /// whether some record is deleted
    pub(crate) has_deleted: bool,
}

/// Start Time of the base records of a range.
pub(crate) enum StartTimes {
    /// All were inserted by one transaction.
    One(AtomicU64),
    /// Slot by slot.
    Each(Arc<Evictable<Times>>),
}

/// The Start Times of a range's records, in memory.
#[derive(Clone, Copy)]
pub(crate) enum Starts<'g> {
    Insert(&'g InsertPages),
    One(&'g AtomicU64),
    Each(&'g [AtomicU64]),
}

impl<'g> Starts<'g> {
    /// The word of a slot.
    #[inline]
    pub(crate) fn word(self, slot: usize) -> &'g AtomicU64 {
        match self {
            Starts::Insert(pages) => pages.start(slot),
            Starts::One(start) => start,
            Starts::Each(starts) => &starts[slot],
        }
    }

    /// Whether `slot` never held a record.
    pub(crate) fn is_tombstone(self, slot: usize) -> bool {
        self.word(slot).load(Ordering::Relaxed) == StartTime::TOMBSTONE
    }
}

impl StartTimes {
    /// All of them, for reads by key.
    #[inline]
    pub(crate) fn get<'g>(&'g self, guard: &'g Guard) -> Result<Starts<'g>, PageError> {
        Ok(match self {
            StartTimes::One(start) => Starts::One(start),
            StartTimes::Each(starts) => Starts::Each(&starts.get(guard)?.0),
        })
    }
}

impl MetaColumns {
    /// What the tail records taken in did, `None` while none was.
    #[inline]
    pub(crate) fn updates<'g>(&'g self, guard: &'g Guard) -> Result<Option<&'g UpdateColumns>, PageError> {
        self.updates.as_ref().map(|updates| updates.get(guard)).transpose()
    }

    /// When the record at `slot` was last updated by a merged tail record, 0 = never.
    #[inline]
    pub(crate) fn last_updated(&self, guard: &Guard, slot: usize) -> Result<u64, PageError> {
        Ok(self.updates(guard)?.map_or(0, |updates| updates.last_updated[slot]))
    }

    /// Asks for what a writer looks at: when the record at `slot` was inserted, and which of its columns were updated since.
    #[inline]
    pub(crate) fn prefetch_for_update(&self, guard: &Guard, slot: usize) {
        if let StartTimes::Each(starts) = &*self.start
            && let Some(starts) = starts.here(guard)
        {
            sync::prefetch(std::ptr::from_ref(&starts.0[slot]));
        }
        if let Some(updates) = self.updates.as_ref().and_then(|updates| updates.here(guard)) {
            let set_words = updates.ever.len() / updates.last_updated.len();
            sync::prefetch(std::ptr::from_ref(&updates.ever[slot * set_words]));
        }
    }

    /// Whether the newest merged tail record of `slot` was a delete.
    #[inline]
    pub(crate) fn is_deleted(&self, guard: &Guard, slot: usize) -> Result<bool, PageError> {
        Ok(self.has_deleted && self.updates(guard)?.is_some_and(|updates| updates.is_deleted(slot)))
    }

    /// Whether a snapshot at `at` sees every slot as the base pages hold it, as far as they have come.
    #[inline]
    pub(crate) fn is_all_visible_at(&self, at: Timestamp) -> bool {
        self.tombstones == 0 && !self.has_deleted && self.newest <= at
    }
}

impl MetaPage {
    /// The last tail records that this page has taken in.
    #[inline]
    pub(crate) fn lineage(&self) -> &Lineage {
        match self {
            MetaPage::Insert { lineage, .. } => lineage,
            MetaPage::Base(columns) => &columns.lineage,
        }
    }

    /// The Start Time words of the base records.
    #[inline]
    pub(crate) fn starts<'g>(&'g self, guard: &'g Guard) -> Result<Starts<'g>, PageError> {
        match self {
            MetaPage::Insert { pages, .. } => Ok(Starts::Insert(pages)),
            MetaPage::Base(columns) => columns.start.get(guard),
        }
    }

    /// The Start Time word of the base record at `slot`.
    #[inline]
    pub(crate) fn start<'g>(&'g self, guard: &'g Guard, slot: usize) -> Result<&'g AtomicU64, PageError> {
        Ok(self.starts(guard)?.word(slot))
    }

    /// When what the base record at `slot` has was committed, by its last update that was merged or by its insert. `None` if
    /// it was deleted. An insert that is not stamped has the word that it has.
    #[inline]
    pub(crate) fn settled(&self, guard: &Guard, slot: usize) -> Result<Option<u64>, PageError> {
        if let MetaPage::Base(meta) = self
            && let Some(settled) = meta.updates(guard)?.and_then(|updates| updates.settled(slot))
        {
            return Ok(settled);
        }
        Ok(Some(self.start(guard, slot)?.load(Ordering::Acquire)))
    }

    /// As [`settled`](Self::settled), for several slots.
    #[inline]
    pub(crate) fn settled_times<'g>(&'g self, guard: &'g Guard) -> Result<SettledTimes<'g>, PageError> {
        let updates = match self {
            MetaPage::Base(meta) => meta.updates(guard)?,
            MetaPage::Insert { .. } => None,
        };
        Ok(SettledTimes { updates, starts: self.starts(guard)? })
    }

    /// When the base record at `slot` was inserted, if that was committed and is stamped.
    #[inline]
    pub(crate) fn inserted_at(&self, guard: &Guard, slot: usize) -> Result<Option<Timestamp>, PageError> {
        Ok(match StartTime::from_word(self.start(guard, slot)?.load(Ordering::Acquire)) {
            StartTime::Committed(at) => Some(at),
            StartTime::Pending(_) | StartTime::Tombstone | StartTime::Unwritten => None,
        })
    }
}
