//! What a scan sees of a range, block by block: which rows are taken from the base pages as they are, and which have
//! their values in the tail. Both scans (`scan`) and aggregates (`aggregate`) work on it.
//!
//! ```text
//! block of 8,192 slots     rows of base pages      a mask: visible there, not pending, and passed by every test
//!                          pending rows            one by one: the few whose visible version is elsewhere
//! ```
//!
//! A block whose slots are all visible and that no pending version touches starts with all rows, and its tests are
//! decided on the encoded pages; no Indirection word is read.
use sync::Guard;

use crate::base::{MetaPage, Page, Pages, Values};
use crate::cell::Cell;
use crate::encoding::{Mask, Test};
use crate::fold::{Delta, Pending};
use crate::range::Range;
use crate::tail::TailRecord;
use crate::view::{Outcomes, View, Visibility};

/// What a scan asks of the storage.
pub struct Request {
    /// positions of the columns to read, in output order
    pub columns: Vec<usize>,
    /// predicates that rows must pass, with the positions of their columns
    pub tests: Vec<(usize, Test)>,
}

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
    /// rows whose values are in the base pages
    pub(crate) base: Mask,
    /// whether `base` is every row of the block
    pub(crate) is_whole: bool,
    /// rows whose values are not
    pub(crate) pending: Vec<PendingRow<'g>>,
    cells: Vec<Vec<Cell<'g>>>,
}

impl Range {
    /// Looks at the range for a scan, and passes what it sees on.
    pub(crate) fn view_for<O: Outcomes, R>(
        &self,
        view: View<'_, O>,
        request: &Request,
        scan: impl FnOnce(&RangeView<'_, '_, O>, usize) -> R,
    ) -> R {
        let guard = &sync::pin();
        let mut columns = request.columns.clone();
        for (column, _) in &request.tests {
            if !columns.contains(column) {
                columns.push(*column);
            }
        }
        let position = |column: usize| columns.iter().position(|other| *other == column).unwrap_or_default();
        let tests: Vec<_> = request.tests.iter().map(|(column, test)| (position(*column), test)).collect();
        loop {
            let (pages, len, tests) = (self.pages.load(guard), self.len(), tests.clone());
            if let Ok(delta) = self.fold(guard, pages, &columns, view, len) {
                let seen = RangeView { range: self, guard, view, columns: &columns, tests, pages, delta };
                return scan(&seen, len);
            }
        }
    }
}

impl<'g, O: Outcomes> RangeView<'_, 'g, O> {
    /// The page of an output column.
    pub(crate) fn page(&self, i: usize) -> &'g Page {
        &self.pages.columns[self.columns[i]]
    }

    /// The rows of slots `from..to` that the scan takes.
    pub(crate) fn rows(&self, from: usize, to: usize) -> BlockRows<'g> {
        let mut rows = BlockRows { base: Mask::new_all(to - from), is_whole: true, pending: vec![], cells: vec![] };
        self.leave_out_invisible(from, &mut rows);
        for (at, _) in self.delta.block(from) {
            rows.base.clear(*at as usize);
            rows.is_whole = false;
        }
        for (i, test) in &self.tests {
            self.select(*i, from, test, &mut rows.base);
            rows.is_whole = false;
        }
        for (at, pending) in self.delta.block(from) {
            self.add_pending(from, *at as usize, pending, &mut rows);
        }
        rows
    }

    /// Leaves out slots that show no record in the base pages.
    fn leave_out_invisible(&self, from: usize, rows: &mut BlockRows<'_>) {
        let len = rows.base.len();
        match &self.pages.meta {
            MetaPage::Base(meta) if meta.inserted <= self.view.snapshot.at && !meta.has_tombstones => {
                if let Some(updates) = meta.updates.as_ref().filter(|_| meta.has_deleted) {
                    (0..len).filter(|at| updates.content.is_deleted(from + at)).for_each(|at| rows.base.clear(at));
                    rows.is_whole = false;
                }
            }
            meta => {
                let is_deleted = |slot| matches!(meta, MetaPage::Base(meta) if meta.is_deleted(slot));
                let is_visible =
                    |slot| !is_deleted(slot) && self.view.visibility(meta.start(slot)) == Visibility::Visible;
                (0..len).filter(|at| !is_visible(from + at)).for_each(|at| rows.base.clear(at));
                rows.is_whole = false;
            }
        }
    }

    fn select(&self, i: usize, from: usize, test: &Test, mask: &mut Mask) {
        let page = self.page(i);
        if let Values::Column(encoded) = &page.values {
            return encoded.content.select(from, test, mask);
        }
        let (column, data_type) = (self.columns[i], self.range.types[self.columns[i]]);
        for at in 0..mask.len() {
            if mask.get(at) && !test.passes(page.cell(column, from + at), data_type) {
                mask.clear(at);
            }
        }
    }

    fn add_pending(&self, from: usize, at: usize, pending: &Pending<'g>, rows: &mut BlockRows<'g>) {
        let slot = from + at;
        let row = match pending {
            Pending::Gone => return,
            Pending::Tail(record) if self.is_two_hops_away(record) => PendingRow::Tail(at, *record),
            Pending::Tail(_) | Pending::Chain => {
                let mut cells = vec![Cell::Null; self.columns.len()];
                let (range, columns) = (self.range, self.columns);
                let exists = match range.read_from(self.guard, self.pages, self.view, slot, columns, &mut cells) {
                    Ok(exists) => exists,
                    Err(_) => range.read(self.guard, self.view, slot, columns, &mut cells),
                };
                if !exists {
                    return;
                }
                rows.cells.push(cells);
                PendingRow::Cells(at, rows.cells.len() - 1)
            }
        };
        let passes = |(i, test): &(usize, &Test)| {
            test.passes(self.pending_cell(*i, from, row, rows), self.range.types[self.columns[*i]])
        };
        if self.tests.iter().all(passes) {
            rows.pending.push(row);
        }
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
    pub(crate) fn pending_cell(&self, i: usize, from: usize, row: PendingRow<'g>, rows: &BlockRows<'g>) -> Cell<'g> {
        match row {
            PendingRow::Cells(_, cells) => rows.cells[cells][i],
            PendingRow::Tail(at, record) => {
                self.explicit_cell(i, &record).unwrap_or_else(|| self.base_cell(i, from + at))
            }
        }
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

    /// The value that the base page of loaded column `i` has, of a record that is there.
    #[inline]
    pub(crate) fn base_cell(&self, i: usize, slot: usize) -> Cell<'g> {
        self.page(i).cell(self.columns[i], slot)
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
