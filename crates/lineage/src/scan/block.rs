//! A scan's view of a range: which rows are taken from the base pages as they are, block by block, and which have their values in
//! the tail. Scans of rows (`batches`) and totals (`aggregate`) work on it.
//!
//! ```text
//! the range                pending rows            one by one, as the fold meets them
//! block of 8,192 slots     rows of base pages      a mask: visible there and not pending
//!                          with rows that wait     what every test passes of both, see `waiting`
//! ```
//!
//! If all slots of a block are visible and no pending version touches it, the block starts with all rows, and its
//! tests are decided on the encoded pages; no Indirection word is read.
use std::cell::OnceCell;
use std::sync::Arc;

use sync::Guard;

use crate::encoding::{CellTest, EncodedColumn, Mask, Test};
use crate::memory::flat::Flat;
use crate::memory::source::PageError;
use crate::page::base::{MetaPage, Page, Pages, Values};
use crate::page::interrupted::Interrupted;
use crate::page::lent::{Ahead, BaseValues, Lent};
use crate::page::tail::{DigestPart, DigestRow, TailRecord, VersionSet};
use crate::record::range::Range;
use crate::record::view::{Outcomes, View, Visibility};
use crate::scan::fold::{Pending, Take};
use crate::scan::forward::Forwarded;
use crate::scan::request::Request;
use crate::scan::waiting::Waiting;
use crate::value::cell::Cell;
use crate::value::slots::SlotSet;

/// The pages of one range as one scan sees them.
pub(crate) struct RangeView<'a, 'g, O> {
    pub(crate) range: &'g Range,
    guard: &'g Guard,
    view: View<'a, O>,
    /// the columns that are read: those of the output first, then others that tests need
    columns: &'a [usize],
    /// the tests, with positions in `columns`
    pub(crate) tests: &'a [(usize, &'a Test, CellTest<'a>)],
    pages: &'g Pages,
    lent: &'g Lent,
    /// `columns` as other scans have brought them forward, in place of the pages
    forwarded: Option<&'g Forwarded>,
    /// the base values of `columns`, once they are asked for
    values: Box<[OnceCell<FoundValues<'g>>]>,
}

/// The base values of a column, and where they are read by slot with few instructions.
#[derive(Clone, Copy)]
struct FoundValues<'g> {
    all: BaseValues<'g>,
    flat: Option<Flat<'g>>,
}

/// What a scan takes for the values that are not pending.
#[derive(Clone, Copy)]
pub(crate) enum Base {
    /// The pages.
    Pages,
    /// The pages, or copies of columns that were brought forward.
    Forwarded,
}

/// So many pending rows wait for their memory together.
const AHEAD: usize = 16;

/// Pending rows that wait for their memory.
#[derive(Default)]
pub(crate) struct Soon<'g> {
    rows: [Option<(usize, Pending<'g>)>; AHEAD],
    next: usize,
}

impl<'g> Soon<'g> {
    /// Adds a row of which the memory was asked for; gives the one that has waited for the longest time, once there are enough.
    #[inline]
    pub(crate) fn exchange(&mut self, slot: usize, pending: Pending<'g>) -> Option<(usize, Pending<'g>)> {
        let before = self.rows[self.next].replace((slot, pending));
        self.next = (self.next + 1) % AHEAD;
        before
    }

    /// Those that still wait.
    pub(crate) fn rest(self) -> impl Iterator<Item = (usize, Pending<'g>)> {
        self.rows.into_iter().flatten()
    }
}

/// Passes pending rows on one by one, each once its memory is likely to be there.
struct OneByOne<'v, 'a, 'g, O, F> {
    seen: &'v RangeView<'a, 'g, O>,
    soon: Soon<'g>,
    take: F,
}

impl<'g, O, F> Take<'g> for OneByOne<'_, '_, 'g, O, F>
where
    O: Outcomes,
    F: FnMut(usize, PendingRow<'g>) -> Result<(), PageError>,
{
    #[inline]
    fn row(&mut self, slot: usize, pending: Pending<'g>) -> Result<(), Interrupted> {
        self.seen.prefetch(slot, &pending);
        let before = self.soon.exchange(slot, pending);
        before.map_or(Ok(()), |(slot, pending)| self.seen.take_pending(slot, pending, &mut self.take))
    }
}

/// A pending row that the scan takes: where its values are.
pub(crate) enum PendingRow<'g> {
    /// The explicit columns are in the record, all others in the base pages.
    Tail(TailRecord<'g>),
    /// Likewise in a digest.
    Digest(DigestRow<'g>),
    /// Here, those of all columns that are read.
    Cells(Box<[Cell<'g>]>),
}

/// The rows of a block that a scan takes.
pub(crate) struct BlockRows {
    /// which
    pub(crate) rows: Mask,
    /// whether they are every row of the block
    pub(crate) are_all: bool,
}

impl Range {
    /// Whether some page that a scan is likely to need is evicted.
    pub(crate) fn is_away(&self, request: &Request) -> bool {
        let guard = &sync::pin();
        let pages = self.pages.load(guard);
        let is_away = |column: &usize| match &pages.columns[*column].values {
            Values::Column(encoded) => encoded.here(guard).is_none(),
            Values::Rows(rows) => rows.here(guard).is_none(),
            Values::Insert(_) => false,
        };
        request.all_columns().iter().any(is_away) && !self.passes_none(pages, request)
    }

    /// Whether the outlines of the pages tell that no row of theirs passes the tests.
    fn passes_none(&self, pages: &Pages, request: &Request) -> bool {
        request.tests.iter().any(|(column, test)| {
            let values = &pages.columns[*column].values;
            matches!(values, Values::Column(encoded) if encoded.outline.passes_none(0, encoded.outline.len, test))
        })
    }

    /// Reads back the pages that a scan is likely to need. Errors are left to the scan.
    pub(crate) fn read_ahead(&self, request: &Request) -> Ahead {
        let guard = &sync::pin();
        let (pages, columns) = (self.pages.load(guard), request.all_columns());
        let lent = Lent::new(columns.len());
        if !self.passes_none(pages, request) {
            for (i, column) in columns.iter().enumerate() {
                let _ = lent.values(guard, &pages.columns[*column], (i, *column));
            }
        }
        lent.into_ahead()
    }

    /// Looks at the range for a scan, and passes what it sees on; once more where `scan` finds that outdated.
    pub(crate) fn view_for<O: Outcomes, R>(
        &self,
        view: View<'_, O>,
        request: &Request,
        (ahead, base): (Option<Ahead>, Base),
        scan: impl Fn(&RangeView<'_, '_, O>, usize) -> Result<R, Interrupted>,
    ) -> Result<R, PageError> {
        let guard = &sync::pin();
        let columns = &request.all_columns()[..];
        let position = |column: usize| columns.iter().position(|other| *other == column).unwrap_or_default();
        let test = |(column, test)| (position(column), test, CellTest::new(test, self.types[column]));
        let tests = &request.tests.iter().map(|(column, of_column)| test((*column, of_column))).collect::<Vec<_>>()[..];
        let mut ahead = ahead;
        loop {
            let (pages, len) = (self.pages.load(guard), self.len());
            let lent = &Lent::after(ahead.take(), columns.len());
            let forwarded = match base {
                Base::Forwarded => self.forwarded(guard, pages, columns, view.snapshot.at),
                Base::Pages => None,
            };
            let (forwarded, values) = (forwarded.as_ref(), columns.iter().map(|_| OnceCell::new()).collect());
            match scan(&RangeView { range: self, guard, view, columns, tests, pages, lent, forwarded, values }, len) {
                Ok(found) => return Ok(found),
                Err(Interrupted::Outdated) => {}
                Err(Interrupted::Page(error)) => return Err(error),
            }
        }
    }
}

impl<'g, O: Outcomes> RangeView<'_, 'g, O> {
    /// The page of an output column.
    pub(crate) fn page(&self, i: usize) -> &'g Page {
        self.page_of(i)
    }

    /// The page of an output column, to be kept.
    pub(crate) fn page_of(&self, i: usize) -> &'g Arc<Page> {
        &self.pages.columns[self.columns[i]]
    }

    /// Its values.
    #[inline]
    pub(crate) fn values(&self, i: usize) -> Result<BaseValues<'g>, PageError> {
        Ok(self.found_values(i)?.all)
    }

    #[inline]
    fn found_values(&self, i: usize) -> Result<&FoundValues<'g>, PageError> {
        match self.values[i].get() {
            Some(values) => Ok(values),
            None => self.find_values(i),
        }
    }

    #[cold]
    fn find_values(&self, i: usize) -> Result<&FoundValues<'g>, PageError> {
        let all = match self.copy(i) {
            Some(copy) => BaseValues::Column(copy),
            None => self.lent.values(self.guard, self.page(i), (i, self.columns[i]))?,
        };
        let flat = if let BaseValues::Column(encoded) = all { encoded.flat() } else { None };
        let flat = flat.map(|(words, base, bytes)| Flat { words, base, bytes });
        Ok(self.values[i].get_or_init(|| FoundValues { all, flat }))
    }

    /// Its values with those that were brought forward in their places, where there are any.
    fn copy(&self, i: usize) -> Option<&'g EncodedColumn> {
        self.forwarded?.copies[i].as_ref().map(|copy| &copy.values)
    }

    /// The last tail record that all of the columns have, in an update range.
    fn merged(&self, part: usize) -> u64 {
        self.forwarded.map_or_else(|| self.pages.tps_min(part, self.columns), |forwarded| forwarded.through[part])
    }

    /// Whether its values are in memory, or wanted so much that they are here for the scan.
    pub(crate) fn is_here(&self, i: usize) -> bool {
        match &self.page(i).values {
            _ if self.copy(i).is_some() => true,
            Values::Column(encoded) => encoded.here(self.guard).is_some(),
            Values::Rows(_) | Values::Insert(_) => true,
        }
    }

    /// Passes each pending row that is there to `take`, with its slot, and returns the slots whose base values do not count. No test is
    /// asked. `take` may ask for base values.
    #[inline]
    pub(crate) fn fold(
        &self,
        len: usize,
        take: impl FnMut(usize, PendingRow<'g>) -> Result<(), PageError>,
    ) -> Result<SlotSet, Interrupted> {
        let mut one_by_one = OneByOne { seen: self, soon: Soon::default(), take };
        let hidden = self.fold_into(len, &mut one_by_one)?;
        let OneByOne { soon, mut take, .. } = one_by_one;
        soon.rest().try_for_each(|(slot, pending)| self.take_pending(slot, pending, &mut take))?;
        Ok(hidden)
    }

    /// Folds the first `len` slots for `take`.
    #[inline]
    pub(crate) fn fold_into(&self, len: usize, take: &mut impl Take<'g>) -> Result<SlotSet, Interrupted> {
        let merged = |part| self.merged(part);
        self.range.fold(self.guard, (self.pages, self.lent), (self.columns, len), merged, self.view, take)
    }

    /// Asks for the memory of the values of a pending row: of the base values, too, that it may not need, as a wrong guess which these
    /// are takes longer.
    #[inline]
    pub(crate) fn prefetch(&self, slot: usize, pending: &Pending<'g>) {
        match pending {
            Pending::Gone | Pending::Chain => return,
            Pending::Tail(record) => record.prefetch_inline(),
            Pending::Digest(_) => {}
        }
        for values in &self.values {
            if let Some(FoundValues { flat: Some(flat), .. }) = values.get() {
                flat.prefetch(slot);
            }
        }
    }

    /// Passes a pending row to `take` with where its values are, if it is there.
    #[inline]
    pub(crate) fn take_pending(
        &self,
        slot: usize,
        pending: Pending<'g>,
        take: &mut impl FnMut(usize, PendingRow<'g>) -> Result<(), PageError>,
    ) -> Result<(), Interrupted> {
        match pending {
            Pending::Gone => Ok(()),
            Pending::Digest(row) => Ok(take(slot, PendingRow::Digest(row))?),
            Pending::Tail(record) if self.is_two_hops_away(&record) => Ok(take(slot, PendingRow::Tail(record))?),
            Pending::Tail(_) | Pending::Chain => self.take_from_chain(slot, take),
        }
    }

    #[inline(never)]
    fn take_from_chain(
        &self,
        slot: usize,
        take: &mut impl FnMut(usize, PendingRow<'g>) -> Result<(), PageError>,
    ) -> Result<(), Interrupted> {
        let mut cells = vec![Cell::Null; self.columns.len()].into_boxed_slice();
        let (range, guard, view, columns) = (self.range, self.guard, self.view, self.columns);
        let exists = match range.read_from(guard, self.pages, view, slot, columns, &mut cells) {
            // Once more for this record is less than once more for all.
            Err(Interrupted::Outdated) => range.read(guard, view, slot, columns, &mut cells)?,
            exists => exists?,
        };
        if exists { Ok(take(slot, PendingRow::Cells(cells))?) } else { Ok(()) }
    }

    /// The rows of slots `from..to` that the scan takes: of the base pages, and of those that wait.
    pub(crate) fn rows(
        &self,
        hidden: &SlotSet,
        waiting: Option<&Waiting<'_>>,
        (from, to): (usize, usize),
    ) -> Result<BlockRows, PageError> {
        let mut rows = BlockRows { rows: Mask::new_all(to - from), are_all: true };
        self.leave_out_invisible(from, &mut rows)?;
        if rows.rows.leave_out_words(hidden.part(from, to)) {
            rows.are_all = false;
        }
        if let Some(waiting) = waiting {
            rows.rows.add_words(waiting.part(from, to));
        }
        for (at, (i, test, _)) in self.tests.iter().enumerate() {
            let passed = waiting.and_then(|waiting| waiting.passed(at, (from, to), &rows.rows));
            self.select(*i, from, test, &mut rows.rows)?;
            passed.iter().for_each(|passed| rows.rows.add(passed));
            rows.are_all = false;
        }
        Ok(rows)
    }

    /// Leaves out slots that show no record in the base pages.
    fn leave_out_invisible(&self, from: usize, base: &mut BlockRows) -> Result<(), PageError> {
        let len = base.rows.len();
        let deleted = match &self.pages.meta {
            MetaPage::Base(meta) if meta.has_deleted => self.lent.updates(self.guard, meta)?,
            MetaPage::Base(_) | MetaPage::Insert { .. } => None,
        };
        if let Some(updates) = deleted {
            (0..len).filter(|at| updates.is_deleted(from + at)).for_each(|at| base.rows.clear(at));
            base.are_all = false;
        }
        let at = self.view.snapshot.at;
        let are_in_time =
            |meta: &MetaPage| matches!(meta, MetaPage::Base(meta) if meta.inserted <= at && meta.tombstones == 0);
        if !are_in_time(&self.pages.meta) {
            let starts = self.lent.starts(self.guard, &self.pages.meta)?;
            for at in 0..len {
                if base.rows.get(at) && self.view.visibility(starts.word(from + at)) != Visibility::Visible {
                    base.rows.clear(at);
                }
            }
            base.are_all = false;
        }
        Ok(())
    }

    fn select(&self, i: usize, from: usize, test: &Test, mask: &mut Mask) -> Result<(), PageError> {
        if let Values::Column(encoded) = &self.page(i).values
            && !self.is_here(i)
            && encoded.outline.passes_none(from, from + mask.len(), test)
        {
            mask.clear_range(0, mask.len());
            return Ok(());
        }
        if !mask.has_any(0, mask.len()) {
            return Ok(());
        }
        let values = self.values(i)?;
        if let BaseValues::Column(encoded) = values {
            encoded.select(from, test, mask);
            return Ok(());
        }
        let data_type = self.range.types[self.columns[i]];
        for at in 0..mask.len() {
            if mask.get(at) && !test.passes(values.cell(from + at), data_type) {
                mask.clear(at);
            }
        }
        Ok(())
    }

    /// Whether the base pages have every column that this version leaves out.
    fn is_two_hops_away(&self, record: &TailRecord<'_>) -> bool {
        let part = self.range.part_of(record.slot());
        let reset = record.reset();
        self.columns.iter().enumerate().all(|(i, &column)| {
            self.lineage(i, part) >= reset || record.is_explicit(column) || !record.was_ever_updated(column)
        })
    }

    /// The last tail record that column `i` of those that are read has, in an update range.
    fn lineage(&self, i: usize, part: usize) -> u64 {
        let page = &self.page(i).lineage;
        let Some(forwarded) = self.forwarded else { return page[part] };
        let lineage = forwarded.copies[i].as_ref().map_or(page, |copy| &copy.lineage);
        lineage[part].max(forwarded.through[part])
    }

    /// The value of a pending row in column `i` of those that are read.
    #[inline]
    pub(crate) fn cell(&self, i: usize, slot: usize, row: &PendingRow<'g>) -> Result<Cell<'g>, PageError> {
        if let PendingRow::Digest(row) = row
            && let Some(flat) = &self.found_values(i)?.flat
            && let Some(base) = flat.get(slot)
            && let Some(word) = row.word_or(self.columns[i], base)
        {
            return Ok(Cell::Word(word));
        }
        match self.explicit_cell(i, row) {
            Some(cell) => Ok(cell),
            None => self.base_cell(i, slot),
        }
    }

    /// The value of a record in column `i` of those that are read, in the base pages.
    #[inline]
    fn base_cell(&self, i: usize, slot: usize) -> Result<Cell<'g>, PageError> {
        let values = self.found_values(i)?;
        match values.flat.and_then(|flat| flat.get(slot)) {
            Some(word) => Ok(Cell::Word(word)),
            None => Ok(values.all.cell(slot)),
        }
    }

    /// The versions of a page that have a value of their own in column `i` of those that are read, by whether they pass a test.
    pub(crate) fn tested(
        &self,
        i: usize,
        versions: DigestPart<'g>,
        test: &CellTest<'_>,
    ) -> Option<(VersionSet, VersionSet)> {
        versions.tested(self.columns[i], test)
    }

    /// The versions of a page that have a value of their own in column `i` of those that are read.
    #[inline]
    pub(crate) fn with_value(&self, i: usize, versions: DigestPart<'g>) -> VersionSet {
        versions.with_value(self.columns[i])
    }

    /// The value of a pending row where it differs from what the base page holds.
    #[inline]
    pub(crate) fn explicit_cell(&self, i: usize, row: &PendingRow<'g>) -> Option<Cell<'g>> {
        match row {
            PendingRow::Tail(record) => record.is_explicit(self.columns[i]).then(|| record.cell(self.columns[i])),
            PendingRow::Digest(row) => row.explicit(self.columns[i]),
            PendingRow::Cells(cells) => Some(cells[i]),
        }
    }
}
