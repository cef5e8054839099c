//! Reading and writing a few columns of one record as words: what a short transaction mostly does, with everything known
//! beforehand that can be, and in few instructions.
//!
//! The word paths decide the common case and leave every other to `read` and `write`, so that what a version means is said there
//! alone. A read is common where the record's newest version is an update that the snapshot sees by one compare, or the reader's
//! own, and has the columns or leaves them to the base pages; or where there is nothing but the base record. A write is
//! common where the newest version is such a one, or the base record, and all pages of the range have come equally far.
//!
//! Several records are looked at together, so that their memory is waited for together:
//!
//! ```text
//! prefetch    asks for the Indirection word of each: a hint without a version
//! look        loads the Indirection words, asks for the newest version or for the base values of each, and notes which it was
//! read        if the Indirection word is still what the hint says, goes on from there; else from the start
//! ```
//!
//! Base values are taken from the point rows of a range, where it has such, and else from each column's page.
//!
//! A hint may be old, so a read compares it with the Indirection word. Where it takes base values, it loads the pages before it
//! looks at that word for the last time, as every read does (see `read`): whatever the pages have merged in is then on the chain that
//! the word starts. What a hint points to stays in memory as long as the guard.
use smallvec::SmallVec;
use sync::Guard;
use sync::atomic::{AtomicU64, Ordering};
use types::{Rid, Schema, Timestamp, TxnId};

use crate::memory::source::PageError;
use crate::page::base::{MetaPage, Pages};
use crate::page::point_rows::{PointRow, SAMPLED};
use crate::page::tail::RecordPlace;
use crate::record::append::AppendedRecords;
use crate::record::range::{LATCH, Range, UpdateRange};
use crate::record::view::{Outcomes, View};
use crate::value::cell::{Cell, is_wide};
use crate::value::column_set::{WORD_COLUMNS, columns_of};

mod append;

pub use append::AppendedVersion;

/// Columns of a table that are read or written together. All of them are stored as words.
#[derive(Clone, Debug)]
pub struct PointColumns {
    /// the columns at these positions, a bit each
    mask: u64,
    /// those that a common read looks for
    sought: u64,
    /// the greatest position
    last: usize,
    positions: Box<[usize]>,
    /// by column, its place among the positions: in here, so that a few of them are in the cache line that says which they are
    places: [u8; WORD_COLUMNS],
}

impl PointColumns {
    /// These columns, by their positions; `None` if one is stored as bytes, is not there or is named twice, or the table has
    /// more than 64 columns.
    pub fn new(schema: &Schema, positions: &[usize]) -> Option<PointColumns> {
        let columns = schema.columns();
        let (mut mask, mut places) = (0_u64, [0; WORD_COLUMNS]);
        for (place, position) in positions.iter().enumerate() {
            let column = columns.get(*position).filter(|column| !is_wide(column.data_type))?;
            debug_assert!(!is_wide(column.data_type));
            if columns.len() > WORD_COLUMNS || mask >> position & 1 != 0 {
                return None;
            }
            mask |= 1 << position;
            places[*position] = place as u8;
        }
        let last = positions.iter().copied().max().unwrap_or(0);
        Some(PointColumns { mask, sought: mask, last, positions: positions.into(), places })
    }

    /// Leaves it to the caller of [`PointHint::read`] to put the words of this column, which are known beforehand. The read puts any
    /// there, or none.
    pub fn knowing(self, column: usize) -> PointColumns {
        PointColumns { sought: self.sought & !(1_u64.checked_shl(column as u32).unwrap_or(0)), ..self }
    }

    /// Their positions.
    #[inline]
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// Puts the words of all columns into their places.
    ///
    /// # Safety
    /// The record has a place for each of the columns.
    #[inline(always)]
    unsafe fn put_all(&self, out: &mut [u64], record: RecordPlace<'_>) {
        debug_assert!(record.has(self.last) || self.positions.is_empty());
        // SAFETY: the caller's promise.
        let word = |column: usize| unsafe { record.word_unchecked(column) };
        if let ([a, b, c, d], [first, second, third, fourth]) = (&mut *out, &*self.positions) {
            // A number of them that is known beforehand takes no loop.
            (*a, *b, *c, *d) = (word(*first), word(*second), word(*third), word(*fourth));
            return;
        }
        out.iter_mut().zip(&self.positions).for_each(|(out, column)| *out = word(*column));
    }

    /// Puts the words of some of these columns, a bit each, into their places. False where one is not found.
    ///
    /// # Safety
    /// The columns are among these, and `out` has no fewer words than there are positions.
    #[inline(always)]
    unsafe fn put_words(&self, mut columns: u64, out: &mut [u64], word: impl Fn(usize) -> Option<u64>) -> bool {
        debug_assert!(columns & !self.mask == 0 && out.len() >= self.positions.len());
        while columns != 0 {
            let column = columns.trailing_zeros() as usize;
            let Some(word) = word(column) else { return false };
            // SAFETY: a column of 64 has a place, those of these columns are below the number of positions, and the caller
            // promises as many words.
            unsafe { *out.get_unchecked_mut(usize::from(self.places[column])) = word };
            columns &= columns - 1;
        }
        true
    }
}

/// Where a record is.
#[derive(Clone, Copy)]
pub struct Point<'t> {
    range: &'t Range,
    rid: Rid,
}

/// What was found when a record's memory was asked for.
#[derive(Clone, Copy)]
pub struct PointHint<'g> {
    point: Point<'g>,
    /// the record's Indirection word
    indirection: &'g AtomicU64,
    /// what that word was, or [`NOT_LOOKED`]
    newest: u64,
    /// the newest version, where it is in the tail
    record: Option<RecordPlace<'g>>,
}

/// No version has this number.
const NOT_LOOKED: u64 = LATCH;

#[cfg(test)]
impl PointHint<'_> {
    /// A hint as it might have been before the newest version came.
    pub(crate) fn of_another_version(self) -> Self {
        PointHint { newest: self.newest + 1, record: None, ..self }
    }
}

impl<'t> Point<'t> {
    #[inline]
    pub(crate) fn new(range: &'t Range, rid: Rid) -> Point<'t> {
        Point { range, rid }
    }

    /// Which record it is.
    #[inline]
    pub fn rid(self) -> Rid {
        self.rid
    }

    #[inline]
    fn slot(self) -> usize {
        self.rid.slot()
    }

    /// Writes the outcome of transaction `owner` into versions that it appended.
    #[inline]
    pub(crate) fn stamp(self, guard: &Guard, appended: AppendedRecords, owner: TxnId, stamp: u64) {
        self.range.stamp_tail(guard, self.slot(), appended, owner, stamp);
    }

    /// Whether the record's newest version was committed at or before `from` and is stamped, so that nobody has changed the record
    /// since, by a look at what a reader by key has looked at before. Where it is false there is more to ask. A transaction whose
    /// version is not on the chain yet is not seen here: it gets its commit timestamp after this call.
    #[inline]
    pub fn is_untouched_since(self, guard: &Guard, from: Timestamp) -> bool {
        self.range.is_untouched_since(guard, self.slot(), from)
    }

    /// Asks for the record's Indirection word.
    #[inline]
    pub fn prefetch<'g>(self) -> PointHint<'g>
    where
        't: 'g,
    {
        let indirection = &self.range.indirection[self.slot()];
        sync::prefetch(std::ptr::from_ref(indirection));
        PointHint { point: self, indirection, newest: NOT_LOOKED, record: None }
    }

    /// Looks at the Indirection word, for a caller that goes on at once and asks for nothing beforehand.
    #[inline(always)]
    pub fn glance<'g>(self, guard: &'g Guard) -> PointHint<'g>
    where
        't: 'g,
    {
        let (range, slot) = (self.range, self.slot());
        let (indirection, part) = (&range.indirection[slot], &range.parts[range.part_of(slot)]);
        let newest = indirection.load(Ordering::Acquire) & !LATCH;
        let is_pending = newest > part.merged_hint.load(Ordering::Relaxed);
        let record = if is_pending { part.tails.place_of(guard, newest) } else { None };
        if !is_pending && slot.is_multiple_of(SAMPLED) && range.pages.load(guard).row(guard, slot, 0).is_none() {
            range.count_read_by_key(slot);
        }
        PointHint { point: self, indirection, newest, record }
    }
}

impl<'g> PointHint<'g> {
    /// Where the record is.
    #[inline]
    pub fn point(&self) -> Point<'g> {
        self.point
    }

    /// Looks at the Indirection word and asks for what it leads to: the newest version, or the base values of these columns; with
    /// `for_update` also for what a writer looks at.
    #[inline(always)]
    pub fn look(&mut self, guard: &'g Guard, columns: &PointColumns, for_update: bool) -> &mut Self {
        let Point { range, rid } = self.point;
        let part = self.part();
        self.newest = self.indirection.load(Ordering::Acquire) & !LATCH;
        if self.newest > part.merged_hint.load(Ordering::Relaxed) {
            self.record = part.tails.place_of(guard, self.newest);
            if let Some(record) = self.record {
                record.prefetch();
                if !record.has(columns.last) {
                    range.prefetch_values(guard, rid.slot(), &columns.positions);
                }
            }
        } else {
            self.look_at_base(guard, columns, for_update);
        }
        self
    }

    /// The record's update range.
    #[inline(always)]
    fn part(&self) -> &'g UpdateRange {
        let Point { range, rid } = self.point;
        debug_assert!(range.part_of(rid.slot()) < range.parts.len());
        // SAFETY: a hint is of a slot that the range has (`Point::prefetch`, `Point::glance`), and each is in one of its update ranges.
        unsafe { range.parts.get_unchecked(range.part_of(rid.slot())) }
    }

    /// Asks for the base values.
    #[inline]
    fn look_at_base(&self, guard: &Guard, columns: &PointColumns, for_update: bool) {
        let (range, slot) = (self.point.range, self.point.slot());
        let pages = range.pages.load(guard);
        // A writer needs the old values of columns that nobody has updated yet.
        match pages.row(guard, slot, columns.sought) {
            Some(row) => row.prefetch(),
            None => {
                range.count_read_by_key(slot);
                columns_of(columns.sought).for_each(|column| pages.prefetch(guard, column, slot));
            }
        }
        if for_update && let MetaPage::Base(meta) = &pages.meta {
            meta.prefetch_for_update(guard, slot);
        }
    }

    /// Whether the record's newest version is still the one that was looked at.
    #[inline]
    fn is_newest(&self) -> bool {
        self.indirection.load(Ordering::Acquire) & !LATCH == self.newest
    }

    /// Puts the words of `columns` of the version that `view` sees into `out`, in their order. Tells which of them are NULL, a bit
    /// each in the same order, or `None` where the view sees no record. The word of a column that the caller
    /// [knows](PointColumns::knowing) may be another one.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    #[inline(always)]
    pub fn read<O: Outcomes>(
        &self,
        guard: &Guard,
        view: &View<'_, O>,
        columns: &PointColumns,
        out: &mut [u64],
    ) -> Result<Option<u64>, PageError> {
        match self.read_plain::<false, O>(guard, view, columns, out) {
            true => Ok(Some(0)),
            // A copy, so that the hint itself may be in registers.
            false => (*self).read_otherwise(guard, *view, columns, out),
        }
    }

    /// As [`read`](Self::read), for a snapshot that was taken before the record was [looked](Self::look) at, of a transaction that has
    /// not written to the record since. What it sees was there then, so the Indirection word need not be looked at again: a version
    /// that came since was committed after the snapshot.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline(always)]
    pub fn read_seen<O: Outcomes>(
        &self,
        guard: &Guard,
        view: &View<'_, O>,
        columns: &PointColumns,
        out: &mut [u64],
    ) -> Result<Option<u64>, PageError> {
        debug_assert_ne!(self.newest, NOT_LOOKED, "invariant 4: nobody has looked at the record");
        match self.read_plain::<true, O>(guard, view, columns, out) {
            true => Ok(Some(0)),
            false => (*self).read_otherwise(guard, *view, columns, out),
        }
    }

    #[inline(never)]
    fn read_otherwise<O: Outcomes>(
        self,
        guard: &Guard,
        view: View<'_, O>,
        columns: &PointColumns,
        out: &mut [u64],
    ) -> Result<Option<u64>, PageError> {
        let Point { range, rid } = self.point;
        match range.read_words(guard, view, rid.slot(), &self, columns, out)? {
            Some(nulls) => Ok(Some(nulls)),
            None => range.read_words_otherwise(guard, view, rid.slot(), columns, out),
        }
    }

    /// The most common cases, in which no value is NULL and each is found at once. False where there is more to it; some of
    /// the words may be written then. `SEEN` as for [`read_seen`](Self::read_seen).
    #[inline(always)]
    fn read_plain<const SEEN: bool, O: Outcomes>(
        &self,
        guard: &Guard,
        view: &View<'_, O>,
        columns: &PointColumns,
        out: &mut [u64],
    ) -> bool {
        if out.len() < columns.positions.len() {
            return false;
        }
        let Some(record) = self.record else {
            let pages = self.point.range.pages.load(guard);
            let MetaPage::Base(meta) = &pages.meta else { return false };
            // What base pages have that are all visible is no newer than the snapshot.
            return meta.is_all_visible_at(view.snapshot.at)
                && (SEEN || self.is_newest())
                && self.is_merged(pages)
                // SAFETY: there are no fewer words than positions.
                && unsafe { self.put_base_words(guard, pages, (columns, columns.sought), out) };
        };
        let start = record.start().load(Ordering::Acquire);
        let is_seen = view.is_in_time(start) || view.snapshot.sees_own(start);
        if !(SEEN || self.is_newest()) || !is_seen || !record.is_update() || !record.has(columns.last) {
            return false;
        }
        if columns.sought & record.nulls() != 0 {
            return false;
        }
        let explicit = record.explicit();
        let left = columns.sought & !explicit;
        if left == 0 {
            // SAFETY: the record has the last of the columns, so it has all of them.
            unsafe { columns.put_all(out, record) };
            return true;
        }
        // SAFETY: as above; there are no fewer words than positions.
        unsafe {
            columns.put_words(columns.sought & explicit, out, |column| Some(record.word_unchecked(column)));
            self.put_left_words(guard, record, (columns, left), out)
        }
    }

    /// Whether these pages have merged in the version that was looked at.
    #[inline]
    fn is_merged(&self, pages: &Pages) -> bool {
        self.newest <= pages.floor[self.point.range.part_of(self.point.slot())]
    }

    /// Puts the words of some of the columns, a bit each, which the newest version leaves to the base pages. False where one is
    /// not found at once.
    ///
    /// # Safety
    /// As [`PointColumns::put_words`].
    #[inline(never)]
    unsafe fn put_left_words(
        &self,
        guard: &Guard,
        record: RecordPlace<'_>,
        (columns, left): (&PointColumns, u64),
        out: &mut [u64],
    ) -> bool {
        let range = self.point.range;
        let pages = range.pages.load(guard);
        self.is_newest()
            && (left & record.ever() == 0 || pages.floor[range.part_of(self.point.slot())] >= record.reset())
            // SAFETY: the caller's promise.
            && unsafe { self.put_base_words(guard, pages, (columns, left), out) }
    }

    /// Puts the words of some of the columns, a bit each, which the base pages have. False where one is not found at once.
    ///
    /// # Safety
    /// As [`PointColumns::put_words`].
    #[inline(always)]
    unsafe fn put_base_words(
        &self,
        guard: &Guard,
        pages: &Pages,
        (columns, some): (&PointColumns, u64),
        out: &mut [u64],
    ) -> bool {
        let slot = self.point.slot();
        // SAFETY: the caller's promise; a row has the columns for which it was asked.
        unsafe {
            match pages.row(guard, slot, some) {
                Some(PointRow::Narrow(row)) => columns.put_words(some, out, |column| Some(row.word_unchecked(column))),
                Some(PointRow::Wide(row)) => columns.put_words(some, out, |column| Some(row.word_unchecked(column))),
                None => columns.put_words(some, out, |column| pages.flat_word(guard, column, slot)),
            }
        }
    }
}

impl Range {
    /// Counts a look at a base record without point rows, if it is one of the sample. Of two at once one may be lost.
    #[inline]
    fn count_read_by_key(&self, slot: usize) {
        if slot.is_multiple_of(SAMPLED) {
            self.read_by_key.store(self.read_by_key.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    fn is_untouched_since(&self, guard: &Guard, slot: usize, from: Timestamp) -> bool {
        let (pages, part) = (self.pages.load(guard), self.part_of(slot));
        let newest = self.indirection[slot].load(Ordering::Acquire) & !LATCH;
        let is_committed = |start: &AtomicU64| (1..=from.0).contains(&start.load(Ordering::Acquire));
        if newest <= pages.meta.lineage()[part] {
            return match &pages.meta {
                MetaPage::Base(meta) => meta.newest <= from,
                MetaPage::Insert { pages, .. } => is_committed(pages.start(slot)),
            };
        }
        let Some(record) = self.parts[part].tails.place_of(guard, newest) else { return false };
        // A snapshot record has the time of the values that it keeps, not of the newest version. It is the newest record where an
        // image left the update away to which it belongs.
        is_committed(record.start()) && record.is_update()
    }

    /// The common cases; `None` where there is more to it.
    fn read_words<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        slot: usize,
        hint: &PointHint<'_>,
        columns: &PointColumns,
        out: &mut [u64],
    ) -> Result<Option<u64>, PageError> {
        let pages = self.pages.load(guard);
        if !hint.is_newest() {
            return Ok(None);
        }
        let Some(record) = hint.record else {
            if !hint.is_merged(pages) || !sees_base(guard, pages, view, slot)? {
                return Ok(None);
            }
            let mut is_null = 0;
            for (i, (out, column)) in out.iter_mut().zip(&columns.positions).enumerate() {
                put(out, pages.word(guard, *column, slot)?, i, &mut is_null);
            }
            return Ok(Some(is_null));
        };
        let start = record.start().load(Ordering::Acquire);
        if !(view.is_in_time(start) || view.snapshot.sees_own(start)) || !record.is_update() {
            return Ok(None);
        }
        if !record.has(columns.last) {
            return self.read_words_apart(guard, (pages, hint.newest), slot, columns, out);
        }
        let (explicit, ever, nulls) = record.sets();
        if columns.mask & (!explicit | nulls) == 0 {
            for (out, column) in out.iter_mut().zip(&columns.positions) {
                *out = record.word(*column);
            }
            return Ok(Some(0));
        }
        let in_base = columns.mask & !explicit;
        if in_base & ever != 0 && pages.floor[self.part_of(slot)] < record.reset() {
            return Ok(None);
        }
        let mut is_null = 0;
        for (i, (out, column)) in out.iter_mut().zip(&columns.positions).enumerate() {
            if explicit >> column & 1 == 0 {
                put(out, pages.word(guard, *column, slot)?, i, &mut is_null);
            } else if nulls >> column & 1 == 0 {
                *out = record.word(*column);
            } else {
                is_null |= 1 << i;
            }
        }
        Ok(Some(is_null))
    }

    /// The common case where not all columns have their places in the newest version, which the view sees.
    #[inline(never)]
    fn read_words_apart(
        &self,
        guard: &Guard,
        (pages, newest): (&Pages, u64),
        slot: usize,
        columns: &PointColumns,
        out: &mut [u64],
    ) -> Result<Option<u64>, PageError> {
        let part = self.part_of(slot);
        let Some(record) = self.parts[part].tails.get(guard, newest) else { return Ok(None) };
        let (explicit, ever, nulls) = record.sets();
        if columns.mask & !explicit & ever != 0 && pages.floor[part] < record.reset() {
            return Ok(None);
        }
        let mut is_null = 0;
        for (i, (out, column)) in out.iter_mut().zip(&columns.positions).enumerate() {
            let word = match (explicit >> column & 1, nulls >> column & 1) {
                (0, _) => pages.word(guard, *column, slot)?,
                (_, 0) => Some(record.word(*column)),
                _ => None,
            };
            put(out, word, i, &mut is_null);
        }
        Ok(Some(is_null))
    }

    #[inline(never)]
    fn read_words_otherwise<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        slot: usize,
        columns: &PointColumns,
        out: &mut [u64],
    ) -> Result<Option<u64>, PageError> {
        let mut cells: SmallVec<[Cell<'_>; 16]> = SmallVec::from_elem(Cell::Null, columns.positions.len());
        if !self.read(guard, view, slot, &columns.positions, &mut cells)? {
            return Ok(None);
        }
        let mut is_null = 0;
        for (i, (out, cell)) in out.iter_mut().zip(&cells).enumerate() {
            let word = if let Cell::Word(word) = cell { Some(*word) } else { None };
            put(out, word, i, &mut is_null);
        }
        Ok(Some(is_null))
    }
}

#[inline]
fn put(out: &mut u64, word: Option<u64>, i: usize, is_null: &mut u64) {
    match word {
        Some(word) => *out = word,
        None => *is_null |= 1 << i,
    }
}

/// Whether the base record, which has all that was merged, is what the view sees, by a compare or two; if not, somebody has to
/// look more closely.
#[inline]
fn sees_base<O: Outcomes>(guard: &Guard, pages: &Pages, view: View<'_, O>, slot: usize) -> Result<bool, PageError> {
    match &pages.meta {
        MetaPage::Base(meta) if meta.is_all_visible_at(view.snapshot.at) => Ok(true),
        meta => Ok(meta.settled(guard, slot)?.is_some_and(|at| view.is_in_time(at))),
    }
}
