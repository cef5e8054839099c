//! Scanning a range: the Arrow border of the storage. No page is seen above it.
//!
//! The scan loads the pages once and folds what the snapshot sees beyond them (see `fold`), row by row. Then it goes block by block
//! (see `block`): rows that fail a test, pending ones too (see `waiting`), are left out on the encoded form, and a block of which
//! nothing is left is not decoded. A block that is taken whole is handed out as the pages hold it, raw pages without a copy; in
//! others the values of pending rows are laid over the block first.
//!
//! Records appended after the pages were loaded belong to transactions that commit after the snapshot, so nothing
//! visible is missed; neither does a merge that runs meanwhile matter, as the pages held are kept by the epoch.
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_select::filter::FilterBuilder;
use types::Rid;

use crate::encoding::Mask;
use crate::memory::source::PageError;
use crate::page::lent::{Ahead, BaseValues};
use crate::record::range::Range;
use crate::record::view::{Outcomes, View};
use crate::scan::block::{PendingRow, RangeView};
use crate::scan::fold::Hidden;
use crate::scan::inserted::words_at;
use crate::scan::overlay::overlay;
use crate::scan::request::Projection;
use crate::scan::waiting::WaitingBlock;
use crate::value::cell::Cell;
use crate::value::column_builder::ColumnBuilder;

/// Of a block of which one row in so many is taken, or fewer, values are found one by one.
const FEW: usize = 16;

impl Range {
    /// The rows of this range that `view` sees, as a batch for each block that has some.
    pub(crate) fn scan<O: Outcomes>(
        &self,
        range_index: usize,
        view: View<'_, O>,
        projection: &Projection,
        ahead: Option<Ahead>,
    ) -> Result<Vec<RecordBatch>, PageError> {
        self.view_for(view, &projection.request, ahead, |seen, len| {
            let (hidden, waiting) = seen.waiting(len)?;
            let mut batches = Vec::new();
            for (slots, waiting) in waiting.blocks() {
                batches.extend(batch(seen, (range_index, projection), slots, (&hidden, waiting))?);
            }
            Ok(batches)
        })
    }
}

/// By output column: the values of the pending rows among `taken` that are not those of the base pages, with their places in the block,
/// which begins at slot `from`.
fn patches<'g, O: Outcomes>(
    seen: &RangeView<'_, 'g, O>,
    columns: usize,
    from: usize,
    (waiting, taken): (&WaitingBlock<'g>, &Mask),
) -> Result<Vec<Vec<(u32, Cell<'g>)>>, PageError> {
    let rows: Vec<(usize, &PendingRow<'g>)> = waiting.among(taken).collect();
    let of_column = |i| if rows.is_empty() { Ok(Vec::new()) } else { patches_of(seen, i, from, &rows) };
    (0..columns).map(of_column).collect()
}

/// Those of column `i`.
fn patches_of<'g, O: Outcomes>(
    seen: &RangeView<'_, 'g, O>,
    i: usize,
    from: usize,
    rows: &[(usize, &PendingRow<'g>)],
) -> Result<Vec<(u32, Cell<'g>)>, PageError> {
    // The array that is patched has the base values.
    let has_base = matches!(seen.values(i)?, BaseValues::Column(_));
    let (mut cells, mut page) = (Vec::new(), (None, true));
    for (at, row) in rows {
        if let (true, PendingRow::Digest(row)) = (has_base, row) {
            if !row.is_beside(page.0) {
                page = (Some(*row), seen.page_has(i, row));
            }
            if !page.1 {
                continue;
            }
        }
        let cell = match seen.explicit_cell(i, row) {
            None if has_base => continue,
            None => seen.cell(i, from + at, row)?,
            Some(cell) => cell,
        };
        if cells.is_empty() {
            cells.reserve_exact(rows.len());
        }
        cells.push((*at as u32, cell));
    }
    Ok(cells)
}

/// The rows of slots `from..to`, `None` if there are none.
fn batch<'g, O: Outcomes>(
    seen: &RangeView<'_, 'g, O>,
    (range_index, projection): (usize, &Projection),
    (from, to): (usize, usize),
    (hidden, waiting): (&Hidden, &WaitingBlock<'g>),
) -> Result<Option<RecordBatch>, PageError> {
    let wanted = seen.rows(hidden, Some(waiting), (from, to))?.rows;
    let row_count = wanted.count();
    if row_count == 0 {
        return Ok(None);
    }
    let patches = patches(seen, projection.request.columns.len(), from, (waiting, &wanted))?;
    let mut base = wanted.clone();
    base.leave_out_words(hidden.part(from, to));
    let rids: Option<ArrayRef> = projection.with_rid.then(|| {
        let rids = wanted.rows().map(|at| Rid::base(range_index, from + at).word());
        Arc::new(UInt64Array::from_iter_values(rids)) as ArrayRef
    });
    let picked = (row_count < to - from).then(|| wanted.rows().map(|at| at as u32).collect::<Vec<_>>());
    let are_few = row_count * FEW <= to - from;
    let filter = (picked.is_some() && !are_few).then(|| {
        let wanted = BooleanArray::new(wanted.into_boolean_buffer(), None);
        FilterBuilder::new(&wanted).optimize().build()
    });
    let column = |i: usize| {
        if let Some(picked) = &picked
            && (are_few || !matches!(seen.values(i)?, BaseValues::Column(_)))
        {
            return picked_column(seen, projection, i, (from, picked), (&base, &patches[i]));
        }
        let array = column(seen, projection, i, (from, to), (&base, &patches[i]))?;
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

/// Output column `i` of a block, where few of its rows are taken: `picked` has their places, and they are found one by one.
fn picked_column<O: Outcomes>(
    seen: &RangeView<'_, '_, O>,
    projection: &Projection,
    i: usize,
    (from, picked): (usize, &[u32]),
    (base, patches): (&Mask, &[(u32, Cell<'_>)]),
) -> Result<ArrayRef, PageError> {
    let (values, data_type) = (seen.values(i)?, seen.range.types[projection.request.columns[i]]);
    let newer = patches.iter().filter_map(|(at, cell)| Some((picked.binary_search(at).ok()?, *cell)));
    let array = match values {
        BaseValues::Column(encoded) => encoded.pick(from, picked),
        BaseValues::Insert(pages, column) => {
            words_at(pages, (column, data_type), picked.iter().map(|at| from + *at as usize))
        }
        BaseValues::Rows(..) => None,
    };
    if let Some(array) = array {
        return Ok(overlay(array, data_type, &newer.map(|(place, cell)| (place as u32, cell)).collect::<Vec<_>>()));
    }
    let is_there = |at: usize| base.get(at) || matches!(values, BaseValues::Column(_));
    let cell = |at: &u32| if is_there(*at as usize) { values.cell(from + *at as usize) } else { Cell::Null };
    let mut cells: Vec<Cell<'_>> = picked.iter().map(cell).collect();
    newer.for_each(|(place, cell)| cells[place] = cell);
    let mut builder = ColumnBuilder::new(data_type, cells.len());
    cells.into_iter().for_each(|cell| builder.push(cell));
    Ok(builder.finish())
}

/// Output column `i` of a block; values of rows that are not taken are whatever they are.
fn column<O: Outcomes>(
    seen: &RangeView<'_, '_, O>,
    projection: &Projection,
    i: usize,
    (from, to): (usize, usize),
    (base, patches): (&Mask, &[(u32, Cell<'_>)]),
) -> Result<ArrayRef, PageError> {
    let data_type = seen.range.types[projection.request.columns[i]];
    let values = seen.values(i)?;
    let array = match values {
        BaseValues::Column(encoded) => Some(encoded.decode(from, to)),
        BaseValues::Insert(pages, column) => words_at(pages, (column, data_type), from..to),
        BaseValues::Rows(..) => None,
    };
    if let Some(array) = array {
        return Ok(overlay(array, data_type, patches));
    }
    let mut cells = vec![Cell::Null; to - from];
    base.rows().for_each(|at| cells[at] = values.cell(from + at));
    patches.iter().for_each(|(at, cell)| cells[*at as usize] = *cell);
    let mut builder = ColumnBuilder::new(data_type, cells.len());
    cells.into_iter().for_each(|cell| builder.push(cell));
    Ok(builder.finish())
}
