//! Scanning a range: the Arrow border of the storage, above which nobody sees a page.
//!
//! The scan loads the pages once and folds what the snapshot sees beyond them into a delta (see `fold`). Then it goes
//! block by block: a block of base pages that the delta does not touch, and in which every slot is visible, is handed
//! out as the pages hold it, raw pages without a copy, and no Indirection word is read. In other blocks the values of
//! pending slots are laid over the block, and slots without a visible record are left out.
//!
//! Records appended after the pages were loaded belong to transactions that commit after the snapshot, so nothing
//! visible is missed; neither does a merge that runs meanwhile matter, as the pages held are kept by the epoch.
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;
use arrow_select::filter::FilterBuilder;
use sync::Guard;
use types::Rid;

use crate::base::{MetaPage, Values};
use crate::cell::{Cell, ColumnBuilder};
use crate::fold::{Delta, Pending};
use crate::overlay::overlay;
use crate::range::{LoadedPages, Range};
use crate::view::{Outcomes, View, Visibility};

/// The most rows in a batch of a scan.
pub const BLOCK_ROWS: usize = 8_192;

/// What a scan reads.
pub struct Projection {
    /// positions of the columns to read, in output order
    pub columns: Vec<usize>,
    /// whether a last column holds each row's Rid word
    pub with_rid: bool,
    /// the schema of the batches
    pub schema: SchemaRef,
}

/// The pages of one range as one scan sees them.
struct RangeScan<'a, 'g, O> {
    range: &'g Range,
    range_index: usize,
    guard: &'g Guard,
    view: View<'a, O>,
    projection: &'a Projection,
    pages: LoadedPages<'a, 'g>,
    delta: Delta<'g>,
}

/// Rows of a block whose values come from the tail, each with its place in the block, column by column.
struct Patches<'g> {
    columns: Vec<Vec<(usize, Cell<'g>)>>,
    /// places of rows that the base pages show and the snapshot does not
    gone: Vec<usize>,
    /// places of rows that the snapshot sees
    present: Vec<usize>,
}

impl Range {
    /// The rows of this range that `view` sees, as batches of at most [`BLOCK_ROWS`] rows.
    pub(crate) fn scan<O: Outcomes>(
        &self,
        range_index: usize,
        view: View<'_, O>,
        projection: &Projection,
    ) -> Vec<RecordBatch> {
        let guard = &sync::pin();
        self.with_pages(guard, &projection.columns, |pages| {
            let len = self.len();
            let delta = self.fold(guard, pages, view, len);
            let scan = RangeScan { range: self, range_index, guard, view, projection, pages, delta };
            (0..len).step_by(BLOCK_ROWS).filter_map(|from| scan.block(from, len.min(from + BLOCK_ROWS))).collect()
        })
    }
}

impl<'g, O: Outcomes> RangeScan<'_, 'g, O> {
    /// The visible rows of slots `from..to`, `None` if there are none.
    fn block(&self, from: usize, to: usize) -> Option<RecordBatch> {
        let patches = self.patches(from, to);
        let keep = self.visible_slots(from, to, &patches);
        let rows = keep.as_ref().map_or(to - from, BooleanBuffer::count_set_bits);
        if rows == 0 {
            return None;
        }
        let keep = keep.filter(|_| rows < to - from);
        let filter =
            keep.as_ref().map(|keep| FilterBuilder::new(&BooleanArray::new(keep.clone(), None)).optimize().build());
        let column = |i: usize| {
            let array = self.block_column(i, from, to);
            let array = overlay(&array, self.range.types[self.projection.columns[i]], &patches.columns[i]);
            match &filter {
                Some(filter) => filter.filter(&array).expect("the filter is as long as the block"),
                None => array,
            }
        };
        let mut arrays: Vec<ArrayRef> = (0..self.pages.columns.len()).map(column).collect();
        if self.projection.with_rid {
            let slots = (from..to).filter(|slot| keep.as_ref().is_none_or(|keep| keep.value(slot - from)));
            let rids = slots.map(|slot| Rid::base(self.range_index, slot).word());
            arrays.push(Arc::new(UInt64Array::from_iter_values(rids)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.projection.schema.clone(), arrays, &options);
        Some(batch.expect("the arrays have the projection's types and visible rows obey NOT NULL"))
    }

    /// The values of the rows in `from..to` that the delta names.
    fn patches(&self, from: usize, to: usize) -> Patches<'g> {
        let columns = &self.projection.columns;
        let mut patches = Patches { columns: vec![Vec::new(); columns.len()], gone: Vec::new(), present: Vec::new() };
        let start = self.delta.partition_point(|(slot, _)| *slot < from);
        let mut cells = vec![Cell::Null; columns.len()];
        for (slot, pending) in self.delta[start..].iter().take_while(|(slot, _)| *slot < to) {
            let at = slot - from;
            let exists = match pending {
                Pending::Gone => false,
                Pending::Tail(record) if self.is_two_hops_away(record) => {
                    for (i, &column) in columns.iter().enumerate() {
                        if record.is_explicit(column) {
                            patches.columns[i].push((at, record.cell(column)));
                        }
                    }
                    patches.present.push(at);
                    continue;
                }
                Pending::Tail(_) | Pending::Chain => self.read(*slot, &mut cells),
            };
            if exists {
                patches.columns.iter_mut().zip(&cells).for_each(|(patches, cell)| patches.push((at, *cell)));
                patches.present.push(at);
            } else {
                patches.gone.push(at);
            }
        }
        patches
    }

    /// Whether the base pages have every column that this version leaves out.
    fn is_two_hops_away(&self, record: &crate::tail::TailRecord<'_>) -> bool {
        let part = self.range.part_of(record.slot());
        let reset = record.reset();
        self.projection.columns.iter().zip(self.pages.columns).all(|(&column, page)| {
            page.lineage[part] >= reset || record.is_explicit(column) || !record.was_ever_updated(column)
        })
    }

    fn read(&self, slot: usize, cells: &mut [Cell<'g>]) -> bool {
        let columns = &self.projection.columns;
        match self.range.read_from(self.guard, self.pages, self.view, slot, columns, cells) {
            Ok(exists) => exists,
            Err(_) => self.range.read(self.guard, self.view, slot, columns, cells),
        }
    }

    /// The slots in `from..to` with a visible record, `None` for all.
    fn visible_slots(&self, from: usize, to: usize, patches: &Patches<'_>) -> Option<BooleanBuffer> {
        let base_holds_all = matches!(self.pages.meta, MetaPage::Base(meta) if meta.is_complete);
        if base_holds_all && patches.gone.is_empty() && self.is_inserted_in_time() {
            return None;
        }
        let mut visible: Vec<bool> = (from..to).map(|slot| self.is_base_visible(slot)).collect();
        patches.present.iter().for_each(|at| visible[*at] = true);
        patches.gone.iter().for_each(|at| visible[*at] = false);
        Some(BooleanBuffer::from(visible))
    }

    /// Whether the snapshot sees the insert of every record, by one compare.
    fn is_inserted_in_time(&self) -> bool {
        matches!(self.pages.meta, MetaPage::Base(meta) if meta.inserted <= self.view.snapshot.at)
    }

    fn is_base_visible(&self, slot: usize) -> bool {
        let is_deleted = matches!(self.pages.meta, MetaPage::Base(meta) if meta.is_deleted(slot));
        !is_deleted && self.view.visibility(self.pages.meta.start(slot)) == Visibility::Visible
    }

    fn block_column(&self, i: usize, from: usize, to: usize) -> ArrayRef {
        let page = self.pages.columns[i];
        if let Values::Column(encoded) = &page.values {
            return encoded.content.decode(from, to);
        }
        let column = self.projection.columns[i];
        let mut builder = ColumnBuilder::new(self.range.types[column], to - from);
        for slot in from..to {
            // Only a record that is visible is known to be written.
            let is_written = self.view.visibility(self.pages.meta.start(slot)) == Visibility::Visible;
            builder.push(if is_written { page.cell(column, slot) } else { Cell::Null });
        }
        builder.finish()
    }
}
