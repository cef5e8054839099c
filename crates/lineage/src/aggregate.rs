//! Aggregates of a range: count, sum and extremes of columns over the rows that a snapshot sees and that pass some
//! tests, on the encoded form and without making rows.
//!
//! A block that is taken whole is answered from the zones of its pages. If some of its rows are pending, their base
//! values are taken away from that answer again, which is cheaper than masking while they are few; only where one of them
//! may have been an extreme, or the column is of floats, the block is added up under its mask. Pending rows are then
//! added one by one.
use types::DataType;

use crate::base::Values;
use crate::block::{RangeView, Request};
use crate::encoding::{Aggregates, Mask};
use crate::range::Range;
use crate::scan::BLOCK_ROWS;
use crate::view::{Outcomes, View};

/// Base values are taken away again one by one while at most one row in so many is hidden.
const FEW: usize = 8;

/// Aggregates of some rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Totals {
    /// how many rows
    pub rows: u64,
    /// of each column asked for
    pub columns: Vec<Aggregates>,
}

impl Totals {
    /// Of no rows, for columns of these types.
    pub fn new(types: impl Iterator<Item = DataType>) -> Totals {
        Totals { rows: 0, columns: types.map(Aggregates::new).collect() }
    }

    /// Adds those of other rows.
    pub fn merge(&mut self, other: &Totals) {
        self.rows += other.rows;
        self.columns.iter_mut().zip(&other.columns).for_each(|(mine, theirs)| mine.merge(theirs));
    }
}

impl Range {
    /// Aggregates of the requested columns over the rows of this range that `view` sees.
    pub(crate) fn aggregate<O: Outcomes>(&self, view: View<'_, O>, request: &Request) -> Totals {
        self.view_for(view, request, |seen, len| {
            let mut totals = Totals::new(request.columns.iter().map(|column| self.types[*column]));
            for from in (0..len).step_by(BLOCK_ROWS) {
                add_block(seen, request, (from, len.min(from + BLOCK_ROWS)), &mut totals);
            }
            totals
        })
    }
}

fn add_block<O: Outcomes>(
    seen: &RangeView<'_, '_, O>,
    request: &Request,
    (from, to): (usize, usize),
    totals: &mut Totals,
) {
    let rows = seen.rows(from, to);
    totals.rows += (rows.base.count() + rows.pending.len()) as u64;
    for (i, total) in totals.columns.iter_mut().enumerate() {
        let base = match &seen.page(i).values {
            Values::Column(encoded) if rows.is_whole => encoded.content.aggregate(from, to, None),
            Values::Column(encoded) => {
                let whole = || take_away_hidden(seen, i, (from, to), &rows.base);
                let taken = if request.tests.is_empty() { whole() } else { None };
                taken.unwrap_or_else(|| encoded.content.aggregate(from, to, Some(&rows.base)))
            }
            Values::Rows(_) | Values::Insert(_) => {
                let mut base = Aggregates::new(seen.range.types[request.columns[i]]);
                base.add_all(rows.base.rows().map(|at| seen.base_cell(i, from + at)));
                base
            }
        };
        total.merge(&base);
        total.add_all(rows.pending.iter().map(|row| seen.pending_cell(i, from, *row, &rows)));
    }
}

/// The whole block's aggregates without the rows that are not in `base`; `None` where that can't be told exactly.
fn take_away_hidden<O: Outcomes>(
    seen: &RangeView<'_, '_, O>,
    i: usize,
    (from, to): (usize, usize),
    base: &Mask,
) -> Option<Aggregates> {
    let Values::Column(encoded) = &seen.page(i).values else { return None };
    let hidden = (to - from) - base.count();
    if hidden * FEW > to - from {
        return None;
    }
    let mut whole = encoded.content.aggregate(from, to, None);
    let mut missing = Mask::new_all(to - from);
    missing.leave_out(base);
    let is_exact = whole.take_away_all(missing.rows().map(|at| seen.base_cell(i, from + at)));
    is_exact.then_some(whole)
}
