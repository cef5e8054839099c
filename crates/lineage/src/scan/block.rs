//! A scan's view of a range, block by block: which rows are taken from the base pages as they are, and which have
//! their values in the tail. Both scans (`scan`) and aggregates (`aggregate`) work on it.
//!
//! ```text
//! block of 8,192 slots     rows of base pages      a mask: visible there, not pending, and passed by every test
//!                          pending rows            one by one: the few whose visible version is elsewhere
//! ```
//!
//! If all slots of a block are visible and no pending version touches it, the block starts with all rows, and its
//! tests are decided on the encoded pages; no Indirection word is read.
use sync::Guard;

use crate::encoding::{Mask, Test};
use crate::memory::source::PageError;
use crate::page::base::{MetaPage, Page, Pages, Values};
use crate::page::interrupted::Interrupted;
use crate::page::lent::{Ahead, BaseValues, Lent};
use crate::page::tail::TailRecord;
use crate::record::range::Range;
use crate::record::view::{Outcomes, View, Visibility};
use crate::scan::fold::{Delta, Pending};
use crate::scan::request::Request;
use crate::value::cell::Cell;

/// The pages of one range as one scan sees them.
pub(crate) struct RangeView<'a, 'g, O> {
    pub(crate) range: &'g Range,
    guard: &'g Guard,
    view: View<'a, O>,
    /// the columns that are read: those of the output first, then others that tests need
    columns: &'a [usize],
    /// the tests, with positions in `columns`
    tests: Vec<(usize, &'a Test)>,
    pages: &'g Pages,
    lent: &'g Lent,
    delta: Delta<'g>,
}

/// A pending row that the scan takes: its place in the block, and where its values are.
#[derive(Clone, Copy)]
pub(crate) enum PendingRow<'g> {
    /// The explicit columns are in the record, all others in the base pages.
    Tail(usize, TailRecord<'g>),
    /// All values are in this row of [`BlockRows::cells`].
    Cells(usize, usize),
}

/// The rows of a block that a scan takes.
pub(crate) struct BlockRows<'g> {
    /// rows with their values in the base pages
    pub(crate) base: Mask,
    /// whether `base` is every row of the block
    pub(crate) is_whole: bool,
    /// rows with their values elsewhere
    pub(crate) pending: Vec<PendingRow<'g>>,
    cells: Vec<Vec<Cell<'g>>>,
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

    /// Looks at the range for a scan, and passes what it sees on.
    pub(crate) fn view_for<O: Outcomes, R>(
        &self,
        view: View<'_, O>,
        request: &Request,
        ahead: Option<Ahead>,
        scan: impl FnOnce(&RangeView<'_, '_, O>, usize) -> Result<R, PageError>,
    ) -> Result<R, PageError> {
        let guard = &sync::pin();
        let columns = request.all_columns();
        let position = |column: usize| columns.iter().position(|other| *other == column).unwrap_or_default();
        let tests: Vec<_> = request.tests.iter().map(|(column, test)| (position(*column), test)).collect();
        let mut ahead = ahead;
        loop {
            let (pages, len) = (self.pages.load(guard), self.len());
            let lent = &Lent::after(ahead.take(), columns.len());
            match self.fold(guard, (pages, lent), &columns, view, len) {
                Ok(delta) => {
                    let columns = &columns;
                    return scan(&RangeView { range: self, guard, view, columns, tests, pages, lent, delta }, len);
                }
                Err(Interrupted::Outdated) => {}
                Err(Interrupted::Page(error)) => return Err(error),
            }
        }
    }
}

impl<'g, O: Outcomes> RangeView<'_, 'g, O> {
    /// The page of an output column.
    pub(crate) fn page(&self, i: usize) -> &'g Page {
        &self.pages.columns[self.columns[i]]
    }

    /// Its values.
    pub(crate) fn values(&self, i: usize) -> Result<BaseValues<'g>, PageError> {
        self.lent.values(self.guard, self.page(i), (i, self.columns[i]))
    }

    /// Whether its values are in memory, or wanted so much that they are here for the scan.
    pub(crate) fn is_here(&self, i: usize) -> bool {
        match &self.page(i).values {
            Values::Column(encoded) => encoded.here(self.guard).is_some(),
            Values::Rows(_) | Values::Insert(_) => true,
        }
    }

    /// The rows of slots `from..to` that the scan takes.
    pub(crate) fn rows(&self, from: usize, to: usize) -> Result<BlockRows<'g>, PageError> {
        let mut rows = BlockRows { base: Mask::new_all(to - from), is_whole: true, pending: vec![], cells: vec![] };
        self.leave_out_invisible(from, &mut rows)?;
        for (at, _) in self.delta.block(from) {
            rows.base.clear(*at as usize);
            rows.is_whole = false;
        }
        for (i, test) in &self.tests {
            self.select(*i, from, test, &mut rows.base)?;
            rows.is_whole = false;
        }
        for (at, pending) in self.delta.block(from) {
            self.add_pending(from, *at as usize, pending, &mut rows)?;
        }
        Ok(rows)
    }

    /// Leaves out slots that show no record in the base pages.
    fn leave_out_invisible(&self, from: usize, rows: &mut BlockRows<'_>) -> Result<(), PageError> {
        let len = rows.base.len();
        let deleted = match &self.pages.meta {
            MetaPage::Base(meta) if meta.has_deleted => self.lent.updates(self.guard, meta)?,
            MetaPage::Base(_) | MetaPage::Insert { .. } => None,
        };
        if let Some(updates) = deleted {
            (0..len).filter(|at| updates.is_deleted(from + at)).for_each(|at| rows.base.clear(at));
            rows.is_whole = false;
        }
        let at = self.view.snapshot.at;
        let are_in_time =
            |meta: &MetaPage| matches!(meta, MetaPage::Base(meta) if meta.inserted <= at && meta.tombstones == 0);
        if !are_in_time(&self.pages.meta) {
            let starts = self.lent.starts(self.guard, &self.pages.meta)?;
            for at in 0..len {
                if rows.base.get(at) && self.view.visibility(starts.word(from + at)) != Visibility::Visible {
                    rows.base.clear(at);
                }
            }
            rows.is_whole = false;
        }
        Ok(())
    }

    fn select(&self, i: usize, from: usize, test: &Test, mask: &mut Mask) -> Result<(), PageError> {
        let page = self.page(i);
        if let Values::Column(encoded) = &page.values
            && encoded.here(self.guard).is_none()
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

    fn add_pending(
        &self,
        from: usize,
        at: usize,
        pending: &Pending<'g>,
        rows: &mut BlockRows<'g>,
    ) -> Result<(), PageError> {
        let slot = from + at;
        let row = match pending {
            Pending::Gone => return Ok(()),
            Pending::Tail(record) if self.is_two_hops_away(record) => PendingRow::Tail(at, *record),
            Pending::Tail(_) | Pending::Chain => {
                let mut cells = vec![Cell::Null; self.columns.len()];
                let (range, columns) = (self.range, self.columns);
                let exists = match range.read_from(self.guard, self.pages, self.view, slot, columns, &mut cells) {
                    Ok(exists) => exists,
                    Err(Interrupted::Outdated) => range.read(self.guard, self.view, slot, columns, &mut cells)?,
                    Err(Interrupted::Page(error)) => return Err(error),
                };
                if !exists {
                    return Ok(());
                }
                rows.cells.push(cells);
                PendingRow::Cells(at, rows.cells.len() - 1)
            }
        };
        for (i, test) in &self.tests {
            if !test.passes(self.pending_cell(*i, from, row, rows)?, self.range.types[self.columns[*i]]) {
                return Ok(());
            }
        }
        rows.pending.push(row);
        Ok(())
    }

    /// Whether the base pages have every column that this version leaves out.
    fn is_two_hops_away(&self, record: &TailRecord<'_>) -> bool {
        let part = self.range.part_of(record.slot());
        let reset = record.reset();
        self.columns.iter().all(|&column| {
            self.pages.columns[column].lineage[part] >= reset
                || record.is_explicit(column)
                || !record.was_ever_updated(column)
        })
    }

    /// The value of a pending row in column `i` of the loaded ones.
    #[inline]
    pub(crate) fn pending_cell(
        &self,
        i: usize,
        from: usize,
        row: PendingRow<'g>,
        rows: &BlockRows<'g>,
    ) -> Result<Cell<'g>, PageError> {
        Ok(match row {
            PendingRow::Cells(_, cells) => rows.cells[cells][i],
            PendingRow::Tail(at, record) => match self.explicit_cell(i, &record) {
                Some(cell) => cell,
                None => self.values(i)?.cell(from + at),
            },
        })
    }

    /// The value of a pending row where it differs from what the base page holds.
    pub(crate) fn patch(&self, i: usize, row: PendingRow<'g>, rows: &BlockRows<'g>) -> Option<(usize, Cell<'g>)> {
        match row {
            PendingRow::Cells(at, cells) => Some((at, rows.cells[cells][i])),
            PendingRow::Tail(at, record) => Some((at, self.explicit_cell(i, &record)?)),
        }
    }

    #[inline]
    fn explicit_cell(&self, i: usize, record: &TailRecord<'g>) -> Option<Cell<'g>> {
        record.is_explicit(self.columns[i]).then(|| record.cell(self.columns[i]))
    }
}

impl PendingRow<'_> {
    /// Its place in the block.
    pub(crate) fn at(self) -> usize {
        match self {
            PendingRow::Tail(at, _) | PendingRow::Cells(at, _) => at,
        }
    }
}
