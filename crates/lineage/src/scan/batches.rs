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
use crate::scan::block::{Base, PendingRow, RangeView};
use crate::scan::inserted::words_at;
use crate::scan::overlay::overlay;
use crate::scan::request::{BLOCK_ROWS, Projection};
use crate::scan::waiting::Waiting;
use crate::value::cell::Cell;
use crate::value::column_builder::ColumnBuilder;
use crate::value::slots::SlotSet;

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
        self.view_for(view, &projection.request, (ahead, Base::Forwarded), |seen, len| {
            let (hidden, waiting) = seen.waiting(len)?;
            let (mut wanted, mut taken) = (Vec::new(), Vec::with_capacity(len.div_ceil(64)));
            for slots in waiting.blocks() {
                let rows = seen.rows(&hidden, Some(&waiting), slots)?.rows;
                taken.extend_from_slice(rows.words());
                wanted.push(rows);
            }
            let patches = Patches::of(seen, projection.request.columns.len(), (&waiting, &taken))?;
            let mut batches = Vec::new();
            for ((slots, wanted), patches) in waiting.blocks().zip(wanted).zip(&patches.blocks) {
                batches.extend(batch(seen, (range_index, projection), slots, (wanted, &hidden, patches))?);
            }
            Ok(batches)
        })
    }
}

/// Values of pending rows that are not those of the base pages, with their places in their block, by column.
type BlockPatches<'g> = Vec<Vec<(u32, Cell<'g>)>>;

/// Those of all blocks of a range.
struct Patches<'g> {
    blocks: Vec<BlockPatches<'g>>,
    /// by column: whether the array that is patched has the base values
    has_base: Vec<bool>,
    /// how many rows of a block are likely to have some
    rows: usize,
}

impl<'g> Patches<'g> {
    /// Those of the rows that wait among `taken`, which has a bit for each slot.
    fn of<O: Outcomes>(
        seen: &RangeView<'_, 'g, O>,
        columns: usize,
        (waiting, taken): (&Waiting<'g>, &[u64]),
    ) -> Result<Patches<'g>, PageError> {
        let blocks = waiting.blocks().map(|_| vec![Vec::new(); columns]).collect();
        let rows = waiting.count_among(taken) / waiting.blocks().count().max(1) * 9 / 8;
        let mut patches = Patches { blocks, has_base: Vec::new(), rows };
        for (page, versions) in waiting.pages_among(taken) {
            patches.look_at_base(seen, columns)?;
            for i in 0..columns {
                let differ = if patches.has_base[i] { versions.and(&seen.with_value(i, page)) } else { versions };
                for version in differ.each() {
                    let (slot, row) = (page.slot(version), PendingRow::Digest(page.row(version)));
                    patches.add(seen, (i, slot), &row)?;
                }
            }
        }
        for (slot, row) in waiting.others_among(taken) {
            patches.look_at_base(seen, columns)?;
            (0..columns).try_for_each(|i| patches.add(seen, (i, slot), row))?;
        }
        Ok(patches)
    }

    /// Once a row is taken: before, the base pages may not be needed.
    fn look_at_base<O: Outcomes>(&mut self, seen: &RangeView<'_, 'g, O>, columns: usize) -> Result<(), PageError> {
        for i in self.has_base.len()..columns {
            self.has_base.push(matches!(seen.values(i)?, BaseValues::Column(_)));
        }
        Ok(())
    }

    #[inline]
    fn add<O: Outcomes>(
        &mut self,
        seen: &RangeView<'_, 'g, O>,
        (i, slot): (usize, usize),
        row: &PendingRow<'g>,
    ) -> Result<(), PageError> {
        let cell = match seen.explicit_cell(i, row) {
            None if self.has_base[i] => return Ok(()),
            None => seen.cell(i, slot, row)?,
            Some(cell) => cell,
        };
        let of_block = &mut self.blocks[slot / BLOCK_ROWS][i];
        if of_block.is_empty() {
            of_block.reserve(self.rows);
        }
        of_block.push(((slot % BLOCK_ROWS) as u32, cell));
        Ok(())
    }
}

/// The rows of slots `from..to`, `None` if there are none.
fn batch<'g, O: Outcomes>(
    seen: &RangeView<'_, 'g, O>,
    (range_index, projection): (usize, &Projection),
    (from, to): (usize, usize),
    (wanted, hidden, patches): (Mask, &SlotSet, &BlockPatches<'g>),
) -> Result<Option<RecordBatch>, PageError> {
    let row_count = wanted.count();
    if row_count == 0 {
        return Ok(None);
    }
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
