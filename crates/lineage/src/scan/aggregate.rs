//! Aggregates of a range: count, sum and extremes of columns over the rows that a snapshot sees and that pass some
//! tests, on the encoded form and without making rows.
//!
//! Pending rows are added one by one, while the fold has their memory at hand; where there are tests, once their block has passed them. A
//! block that is taken whole is answered from the zones of its pages. If some of its rows are pending, their base values are taken away
//! from that answer again, which is cheaper than masking while they are few; only where one of them may have been an extreme, or the
//! column is of floats, the block is added up under its mask.
use types::DataType;

use crate::encoding::{Adder, Aggregates, EncodedColumn, Mask};
use crate::memory::source::PageError;
use crate::page::base::Values;
use crate::page::lent::BaseValues;
use crate::record::range::Range;
use crate::record::view::{Outcomes, View};
use crate::scan::block::{Base, BlockRows, PendingRow, RangeView};
use crate::scan::request::BLOCK_ROWS;
use crate::scan::request::Request;

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
    pub(crate) fn aggregate<O: Outcomes>(&self, view: View<'_, O>, request: &Request) -> Result<Totals, PageError> {
        self.view_for(view, request, (None, Base::Forwarded), |seen, len| {
            let types = || request.columns.iter().map(|column| self.types[*column]);
            let mut totals = Totals::new(types());
            let mut pending = PendingTotals { rows: 0, columns: types().map(Adder::new).collect() };
            if request.tests.is_empty() {
                let hidden = &seen.fold(len, |slot, row| pending.add(seen, slot, &row))?;
                for from in (0..len).step_by(BLOCK_ROWS) {
                    let slots = (from, len.min(from + BLOCK_ROWS));
                    add_block(seen, request, slots, &seen.rows(hidden, None, slots)?, &mut totals)?;
                }
            } else {
                let (hidden, waiting) = seen.waiting(len)?;
                let mut taken = Vec::with_capacity(len.div_ceil(64));
                for slots in waiting.blocks() {
                    let mut rows = seen.rows(&hidden, Some(&waiting), slots)?;
                    taken.extend_from_slice(rows.rows.words());
                    rows.rows.leave_out_words(hidden.part(slots.0, slots.1));
                    add_block(seen, request, slots, &rows, &mut totals)?;
                }
                waiting.each_among(&taken, |slot, row| pending.add(seen, slot, row))?;
            }
            totals.merge(&pending.finish());
            Ok(totals)
        })
    }
}

/// Aggregates of pending rows.
struct PendingTotals {
    rows: u64,
    columns: Vec<Adder>,
}

impl PendingTotals {
    #[inline]
    fn add<'g, O: Outcomes>(
        &mut self,
        seen: &RangeView<'_, 'g, O>,
        slot: usize,
        row: &PendingRow<'g>,
    ) -> Result<(), PageError> {
        self.rows += 1;
        for (i, adder) in self.columns.iter_mut().enumerate() {
            adder.add(seen.cell(i, slot, row)?);
        }
        Ok(())
    }

    fn finish(self) -> Totals {
        Totals { rows: self.rows, columns: self.columns.into_iter().map(Adder::finish).collect() }
    }
}

/// Adds the rows of a block that have their values in the base pages.
fn add_block<O: Outcomes>(
    seen: &RangeView<'_, '_, O>,
    request: &Request,
    slots: (usize, usize),
    rows: &BlockRows,
    totals: &mut Totals,
) -> Result<(), PageError> {
    totals.rows += rows.rows.count() as u64;
    for (i, total) in totals.columns.iter_mut().enumerate() {
        total.merge(&base_of_block(seen, request, slots, i, rows)?);
    }
    Ok(())
}

/// Aggregates of a column over the rows with their values in the base pages.
fn base_of_block<O: Outcomes>(
    seen: &RangeView<'_, '_, O>,
    request: &Request,
    (from, to): (usize, usize),
    i: usize,
    base: &BlockRows,
) -> Result<Aggregates, PageError> {
    if let Values::Column(column) = &seen.page(i).values
        && base.are_all
        && !seen.is_here(i)
        && let Some(aggregates) = column.outline.aggregate(from, to)
    {
        return Ok(aggregates);
    }
    if base.rows.count() == 0 {
        return Ok(Aggregates::new(seen.range.types[request.columns[i]]));
    }
    let values = seen.values(i)?;
    Ok(match values {
        BaseValues::Column(encoded) if base.are_all => encoded.aggregate(from, to, None),
        BaseValues::Column(encoded) => {
            let whole = || take_away_hidden(encoded, (from, to), &base.rows);
            let taken = if request.tests.is_empty() { whole() } else { None };
            taken.unwrap_or_else(|| encoded.aggregate(from, to, Some(&base.rows)))
        }
        BaseValues::Rows(..) | BaseValues::Insert(..) => {
            let mut total = Aggregates::new(seen.range.types[request.columns[i]]);
            total.add_all(base.rows.rows().map(|at| values.cell(from + at)));
            total
        }
    })
}

/// The whole block's aggregates without the rows that are not in `base`; `None` where that can't be told exactly.
fn take_away_hidden(encoded: &EncodedColumn, (from, to): (usize, usize), base: &Mask) -> Option<Aggregates> {
    let hidden = (to - from) - base.count();
    if hidden * FEW > to - from {
        return None;
    }
    let mut whole = encoded.aggregate(from, to, None);
    let mut missing = Mask::new_all(to - from);
    missing.leave_out(base);
    let is_exact = whole.take_away_all(missing.rows().map(|at| encoded.cell(from + at)));
    is_exact.then_some(whole)
}
