//! Scanning a range: the Arrow border of the storage, above which nobody sees a page.
//!
//! The scan loads the pages once, then looks at the tail records that they have not all taken in, and marks the slots
//! that these touch as *pending*; so are slots whose Last Updated Time lies after the snapshot. Blocks of base pages
//! without pending, deleted or rolled-back slots are handed out as slices, without a copy and without a look at any
//! Indirection word. In other blocks those slots are left out. The rows of pending slots are read one by one along
//! their chains (see [`crate::range`]) and follow as batches of their own.
//!
//! Records appended after the pages were loaded belong to transactions that commit after the snapshot, so nothing
//! visible is missed; neither does a merge that runs meanwhile matter, as the pages held are kept by the epoch.
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use types::Rid;

use crate::base::{ColumnPage, MetaPage};
use crate::cell::{Cell, ColumnBuilder};
use crate::range::{LoadedPages, Range};
use crate::tail::Kind;
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
    view: View<'a, O>,
    projection: &'a Projection,
    pages: LoadedPages<'g>,
    len: usize,
    /// slots whose visible version is not what the base pages hold; empty if there are none
    pending: Vec<bool>,
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
        let pages = self.load_pages(guard, &projection.columns);
        let len = self.len();
        let mut scan = RangeScan { range: self, range_index, view, projection, pages, len, pending: vec![] };
        scan.mark_pending();
        let mut batches: Vec<RecordBatch> =
            (0..len).step_by(BLOCK_ROWS).filter_map(|from| scan.block(from, len.min(from + BLOCK_ROWS))).collect();
        scan.pending_rows(&mut batches);
        batches
    }
}

impl<'g, O: Outcomes> RangeScan<'_, 'g, O> {
    fn mark_pending(&mut self) {
        for sequence in self.pages.tps_min + 1..=self.range.tails.allocated() {
            let Some(record) = self.range.tails.get(sequence) else { continue };
            if self.view.visibility(record.start()) == Visibility::Visible && record.kind() != Kind::Snapshot {
                self.mark(record.slot());
            }
        }
        // Versions that the pages have taken in and that are too new for this snapshot.
        if let MetaPage::Base(meta) = self.pages.meta
            && meta.newest > self.view.snapshot.at
        {
            for slot in 0..self.len {
                if meta.last_updated(slot) > self.view.snapshot.at.0 {
                    self.mark(slot);
                }
            }
        }
    }

    fn mark(&mut self, slot: usize) {
        if self.pending.is_empty() {
            self.pending.resize(self.len, false);
        }
        // A record inserted after `len` was read belongs to a later transaction, or its table was being opened.
        if let Some(mark) = self.pending.get_mut(slot) {
            *mark = true;
        }
    }

    /// The rows of slots `from..to` that are as the base pages hold them, `None` if there are none.
    fn block(&self, from: usize, to: usize) -> Option<RecordBatch> {
        let pending = self.pending.get(from..to).is_some_and(|marks| marks.contains(&true));
        let whole = match self.pages.meta {
            MetaPage::Base(meta) => {
                !pending && meta.complete && meta.newest <= self.view.snapshot.at && meta.deleted.is_empty()
            }
            MetaPage::Insert(_) => false,
        };
        let keep = if whole { None } else { Some(self.visible_slots(from, to)) };
        let rows = keep.as_ref().map_or(to - from, |keep| keep.count_set_bits());
        if rows == 0 {
            return None;
        }
        let keep = keep.filter(|_| rows < to - from);
        let filter =
            keep.as_ref().map(|keep| FilterBuilder::new(&BooleanArray::new(keep.clone(), None)).optimize().build());
        let arrays =
            (0..self.pages.columns.len()).map(|i| self.block_column(i, from, to, keep.as_ref(), filter.as_ref()));
        let mut arrays: Vec<ArrayRef> = arrays.collect();
        if self.projection.with_rid {
            let slots = (from..to).filter(|slot| keep.as_ref().is_none_or(|keep| keep.value(slot - from)));
            arrays.push(self.rids(slots));
        }
        Some(self.batch(arrays, rows))
    }

    fn visible_slots(&self, from: usize, to: usize) -> BooleanBuffer {
        BooleanBuffer::collect_bool(to - from, |i| {
            let slot = from + i;
            let base_holds = !self.pending.get(slot).copied().unwrap_or(false)
                && !matches!(self.pages.meta, MetaPage::Base(meta) if meta.is_deleted(slot));
            base_holds && self.view.visibility(self.pages.meta.start(slot)) == Visibility::Visible
        })
    }

    fn block_column(
        &self,
        i: usize,
        from: usize,
        to: usize,
        keep: Option<&BooleanBuffer>,
        filter: Option<&FilterPredicate>,
    ) -> ArrayRef {
        let column = self.projection.columns[i];
        match self.pages.columns[i] {
            ColumnPage::Base { array, .. } => {
                let block = array.slice(from, to - from);
                filter
                    .map_or(block.clone(), |filter| filter.filter(&block).expect("the filter is as long as the block"))
            }
            ColumnPage::Insert(pages) => {
                let mut builder = ColumnBuilder::new(self.range.types[column], to - from);
                for slot in (from..to).filter(|slot| keep.is_none_or(|keep| keep.value(slot - from))) {
                    builder.push(pages.cell(column, slot));
                }
                builder.finish()
            }
        }
    }

    /// Reads the pending slots' rows along their chains.
    fn pending_rows(&self, batches: &mut Vec<RecordBatch>) {
        let columns = &self.projection.columns;
        let mut cells = vec![Cell::Null; columns.len()];
        let slots: Vec<usize> = (0..self.pending.len()).filter(|slot| self.pending[*slot]).collect();
        for slots in slots.chunks(BLOCK_ROWS) {
            let builder = |column: &usize| ColumnBuilder::new(self.range.types[*column], slots.len());
            let mut builders: Vec<ColumnBuilder> = columns.iter().map(builder).collect();
            let mut visible = Vec::with_capacity(slots.len());
            for &slot in slots {
                if self.range.read_from(&self.pages, self.view, slot, columns, &mut cells) {
                    builders.iter_mut().zip(&cells).for_each(|(builder, cell)| builder.push(*cell));
                    visible.push(slot);
                }
            }
            if visible.is_empty() {
                continue;
            }
            let mut arrays: Vec<ArrayRef> = builders.iter_mut().map(ColumnBuilder::finish).collect();
            let rows = visible.len();
            if self.projection.with_rid {
                arrays.push(self.rids(visible.into_iter()));
            }
            batches.push(self.batch(arrays, rows));
        }
    }

    fn rids(&self, slots: impl Iterator<Item = usize>) -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(slots.map(|slot| Rid::base(self.range_index, slot).word())))
    }

    fn batch(&self, arrays: Vec<ArrayRef>, rows: usize) -> RecordBatch {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.projection.schema.clone(), arrays, &options)
            .expect("the arrays have the projection's types and visible rows obey NOT NULL")
    }
}
