//! Scanning a range: the Arrow border of the storage. No page is seen above it.
//!
//! The scan loads the pages once and folds what the snapshot sees beyond them into a delta (see `fold`). Then it goes
//! block by block (see `block`): rows that fail a test are left out on the encoded form, and a block of which nothing
//! is left is not decoded. A block that is taken whole is handed out as the pages hold it, raw pages without a copy; in
//! others the values of pending rows are laid over the block first.
//!
//! Records appended after the pages were loaded belong to transactions that commit after the snapshot, so nothing
//! visible is missed; neither does a merge that runs meanwhile matter, as the pages held are kept by the epoch.
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_select::filter::FilterBuilder;
use types::Rid;

use crate::memory::source::PageError;
use crate::page::lent::{Ahead, BaseValues};
use crate::record::range::Range;
use crate::record::view::{Outcomes, View};
use crate::scan::block::{BlockRows, RangeView};
use crate::scan::overlay::overlay;
use crate::scan::request::{BLOCK_ROWS, Projection};
use crate::value::cell::{Cell, ColumnBuilder};

impl Range {
    /// The rows of this range that `view` sees, as batches of at most [`BLOCK_ROWS`] rows.
    pub(crate) fn scan<O: Outcomes>(
        &self,
        range_index: usize,
        view: View<'_, O>,
        projection: &Projection,
        ahead: Option<Ahead>,
    ) -> Result<Vec<RecordBatch>, PageError> {
        self.view_for(view, &projection.request, ahead, |seen, len| {
            let block = |from| batch(seen, range_index, projection, from, len.min(from + BLOCK_ROWS));
            (0..len).step_by(BLOCK_ROWS).filter_map(|from| block(from).transpose()).collect()
        })
    }
}

/// The rows of slots `from..to`, `None` if there are none.
fn batch<O: Outcomes>(
    seen: &RangeView<'_, '_, O>,
    range_index: usize,
    projection: &Projection,
    from: usize,
    to: usize,
) -> Result<Option<RecordBatch>, PageError> {
    let rows = seen.rows(from, to)?;
    let mut wanted = rows.base.clone();
    rows.pending.iter().for_each(|row| wanted.set(row.at()));
    let row_count = wanted.count();
    if row_count == 0 {
        return Ok(None);
    }
    let rids: Option<ArrayRef> = projection.with_rid.then(|| {
        let rids = wanted.rows().map(|at| Rid::base(range_index, from + at).word());
        Arc::new(UInt64Array::from_iter_values(rids)) as ArrayRef
    });
    let filter = (row_count < to - from).then(|| {
        let wanted = BooleanArray::new(wanted.into_boolean_buffer(), None);
        FilterBuilder::new(&wanted).optimize().build()
    });
    let column = |i: usize| {
        let array = column(seen, projection, i, (from, to), &rows)?;
        Ok(match &filter {
            Some(filter) => filter.filter(&array).expect("the filter is as long as the block"),
            None => array,
        })
    };
    let columns = (0..projection.request.columns.len()).map(column);
    let arrays = columns.chain(rids.map(Ok)).collect::<Result<Vec<ArrayRef>, PageError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(row_count));
    let batch = RecordBatch::try_new_with_options(projection.schema.clone(), arrays, &options);
    Ok(Some(batch.expect("the arrays have the projection's types and visible rows obey NOT NULL")))
}

/// Output column `i` of a block; values of rows that are not taken are whatever they are.
fn column<O: Outcomes>(
    seen: &RangeView<'_, '_, O>,
    projection: &Projection,
    i: usize,
    (from, to): (usize, usize),
    rows: &BlockRows<'_>,
) -> Result<ArrayRef, PageError> {
    let data_type = seen.range.types[projection.request.columns[i]];
    let values = seen.values(i)?;
    if let BaseValues::Column(encoded) = values {
        let patches: Vec<(usize, Cell<'_>)> = rows.pending.iter().filter_map(|row| seen.patch(i, *row, rows)).collect();
        return Ok(overlay(&encoded.decode(from, to), data_type, &patches));
    }
    let mut cells = vec![Cell::Null; to - from];
    rows.base.rows().for_each(|at| cells[at] = values.cell(from + at));
    for row in &rows.pending {
        cells[row.at()] = seen.pending_cell(i, from, *row, rows)?;
    }
    let mut builder = ColumnBuilder::new(data_type, cells.len());
    cells.into_iter().for_each(|cell| builder.push(cell));
    Ok(builder.finish())
}
