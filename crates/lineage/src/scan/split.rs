//! A range in two parts, for readers that keep base pages elsewhere, such as on a coprocessor: the rows that have the values of the base
//! pages, as bits, and all others as batches.
//!
//! ```text
//! base pages   | a | b | c | d | e | ...     the same for all readers, as long as `BasePageId::is` says so
//! rows         | 1 | 1 | 0 | 1 | 0 | ...     what this snapshot takes of them: not pending, visible, passed by every test
//! others       c', f'                        pending rows that pass, with the values that the snapshot sees
//! ```
//!
//! A merge makes new base pages of the columns that were updated. Those of others go on, and what was made from them is as good as before.
use std::sync::{Arc, Weak};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};

use crate::memory::source::PageError;
use crate::page::base::{Page, Values};
use crate::record::range::Range;
use crate::record::view::{Outcomes, View};
use crate::scan::block::{Base, RangeView};
use crate::scan::request::{BLOCK_ROWS, Projection};
use crate::value::column_builder::ColumnBuilder;

/// A range as a snapshot sees it; no row is in both parts.
pub struct SplitRange {
    /// The rows with the values of the base pages.
    pub base: BaseRowSet,
    /// All other rows.
    pub others: Vec<RecordBatch>,
}

/// Rows of the base pages of a range.
pub struct BaseRowSet {
    /// A bit for each slot, lowest first.
    pub rows: Vec<u64>,
    /// How many slots there are.
    pub slots: usize,
    /// The pages of the columns that were asked for, in their order.
    pub pages: Vec<BasePage>,
}

/// The base page of a column of a range. It never changes.
#[derive(Clone)]
pub struct BasePage(Arc<Page>);

/// Which page it was, long after it may have gone.
#[derive(Clone)]
pub struct BasePageId(Weak<Page>);

impl BasePage {
    /// What tells it from all other pages.
    pub fn id(&self) -> BasePageId {
        BasePageId(Arc::downgrade(&self.0))
    }

    /// Its values by slot. Those of slots that hold no record are any.
    ///
    /// # Errors
    /// [`PageError`] if it is evicted and cannot be read back.
    pub fn values(&self) -> Result<ArrayRef, PageError> {
        let guard = &sync::pin();
        let Values::Column(encoded) = &self.0.values else { unreachable!("a split has pages that are columns alone") };
        let encoded = encoded.get(guard)?;
        Ok(encoded.decode(0, encoded.len()))
    }
}

impl BasePageId {
    /// Whether this is that page. A page's place is not used again while somebody knows its id.
    pub fn is(&self, page: &BasePage) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&page.0))
    }

    /// Whether the page has gone, so that no reader comes to it again.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Range {
    /// The rows of this range that `view` sees, in two parts; `None` where some column has no base page that is a column. Rids are not
    /// given.
    pub(crate) fn split<O: Outcomes>(
        &self,
        view: View<'_, O>,
        projection: &Projection,
    ) -> Result<Option<SplitRange>, PageError> {
        debug_assert!(!projection.with_rid, "base pages have no Rids");
        let columns = projection.request.columns.len();
        self.view_for(view, &projection.request, (None, Base::Pages), |seen, len| {
            let pages: Option<Vec<BasePage>> = (0..columns).map(|i| base_page(seen, i)).collect();
            let Some(pages) = pages else { return Ok(None) };
            let types = projection.request.columns.iter().map(|column| self.types[*column]);
            let mut builders: Vec<ColumnBuilder> = types.map(|data_type| ColumnBuilder::new(data_type, 0)).collect();
            let (hidden, waiting) = seen.waiting(len)?;
            let (mut pending, mut rows) = (0, Vec::with_capacity(len.div_ceil(64)));
            for (from, to) in waiting.blocks() {
                let block = seen.rows(&hidden, Some(&waiting), (from, to))?.rows;
                rows.extend_from_slice(block.words());
            }
            waiting.each_among(&rows, |slot, row| {
                pending += 1;
                builders.iter_mut().enumerate().try_for_each(|(i, builder)| {
                    builder.push(seen.cell(i, slot, row)?);
                    Ok(())
                })
            })?;
            rows.iter_mut().zip(hidden.part(0, len)).for_each(|(word, hidden)| *word &= !hidden);
            let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect();
            let others = batches(projection, arrays, pending);
            Ok(Some(SplitRange { base: BaseRowSet { rows, slots: len, pages }, others }))
        })
    }
}

/// The page of an output column, if it is a column.
fn base_page<O: Outcomes>(seen: &RangeView<'_, '_, O>, i: usize) -> Option<BasePage> {
    let page = seen.page_of(i);
    matches!(&page.values, Values::Column(encoded) if encoded.outline.len == seen.range.len())
        .then(|| BasePage(page.clone()))
}

/// The rows of some arrays in batches as those of a scan.
fn batches(projection: &Projection, arrays: Vec<ArrayRef>, rows: usize) -> Vec<RecordBatch> {
    if rows == 0 {
        return Vec::new();
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let whole = RecordBatch::try_new_with_options(projection.schema.clone(), arrays, &options);
    let whole = whole.expect("the arrays have the projection's types and visible rows obey NOT NULL");
    (0..rows).step_by(BLOCK_ROWS).map(|from| whole.slice(from, BLOCK_ROWS.min(rows - from))).collect()
}
