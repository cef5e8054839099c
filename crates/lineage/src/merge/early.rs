//! Base columns that are made before a range's first merge.
//!
//! The first merge of a range waits until each of its records is resolved. A transaction that inserts millions of rows fills range
//! after range, and resolves them all at its end; what the columns will be is known as soon as the last slot of a range is written, as
//! values of insert pages never change. So columns can be made **early**, while the transaction goes on:
//!
//! ```text
//! the last slot is written   columns are encoded; they wait in the range
//!                            their bytes go to the log in place of the rows, or to blobs, and the log names these
//! first merge                they are its base pages, if every record was committed and none has a newer version;
//!                            if not, they are forgotten and made again
//! replay of the log          the range gets them as its base pages at once (`image/early.rs`)
//! ```
use std::sync::Arc;

use types::BlobRef;

use crate::codec::{ColumnSummary, Writer, encode_column, encode_column_outline};
use crate::memory::evictable::Evictable;
use crate::merge::inserted::InsertedRows;
use crate::page::base::{MetaPage, Starts, Values};
use crate::page::words::Layout;
use crate::record::range::Range;

/// The base columns of a range that were made early, encoded.
pub struct EarlyColumns {
    records: usize,
    columns: Vec<EarlyColumn>,
}

struct EarlyColumn {
    /// as the blob of a checkpoint has it
    bytes: Vec<u8>,
    summary: ColumnSummary,
}

impl EarlyColumns {
    /// The bytes of each column, as a blob is to have it.
    pub fn blobs(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.columns.iter().map(|column| &*column.bytes)
    }

    /// All of it, as [`Table::restore_columns`](crate::Table::restore_columns) takes it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(self.records as u64);
        for EarlyColumn { bytes, .. } in &self.columns {
            writer.number(bytes.len() as u64);
            writer.bytes(bytes);
        }
        writer.finish()
    }

    /// What there is to say of the columns beside these blobs that have them, as [`Table::restore_blobs`](crate::Table::restore_blobs)
    /// takes it.
    ///
    /// # Panics
    /// If there is not a blob for each column.
    pub fn with_blobs(&self, blobs: &[BlobRef]) -> Vec<u8> {
        assert_eq!(blobs.len(), self.columns.len(), "a blob for each column");
        let mut writer = Writer::default();
        writer.number(self.records as u64);
        for (EarlyColumn { summary, .. }, blob) in self.columns.iter().zip(blobs) {
            writer.bytes(&blob.to_bytes());
            encode_column_outline(&summary.outline, summary.flat, &summary.sketch, &mut writer);
        }
        writer.finish()
    }
}

impl Range {
    /// See `Table::build_columns`.
    pub(crate) fn build_early(&self) -> Option<EarlyColumns> {
        let guard = &sync::pin();
        let MetaPage::Insert { pages, .. } = &self.pages.load(guard).meta else { return None };
        if self.options.layout != Layout::Column || !self.is_closed() {
            return None;
        }
        let rows = InsertedRows { pages, starts: Starts::Insert(pages), tombstones: 0 };
        let (mut built, mut waiting) = (Vec::with_capacity(self.types.len()), Vec::with_capacity(self.types.len()));
        for column in 0..self.types.len() {
            let (encoded, sketch) = self.build_inserted(column, &rows, &[], &[]);
            let (bytes, outline) = (encode_column(&encoded, &sketch), encoded.outline());
            let page = Evictable::new(encoded, outline.clone(), &self.meter, None);
            let summary = ColumnSummary { outline, flat: page.flat_form(), sketch: sketch.clone() };
            built.push(EarlyColumn { bytes, summary });
            waiting.push((Values::Column(page), Some(Arc::new(sketch))));
        }
        let mut progress = self.merging.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Where the transaction was rolled back meanwhile, the first merge may have been.
        if matches!(self.pages.load(guard).meta, MetaPage::Insert { .. }) {
            progress.early = Some(waiting);
        }
        Some(EarlyColumns { records: self.len(), columns: built })
    }

    /// See `Table::place_columns`.
    pub(crate) fn place_early(&self, blobs: &[BlobRef]) {
        let progress = self.merging.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for ((values, _), blob) in progress.early.iter().flatten().zip(blobs) {
            if let Values::Column(page) = values {
                page.stored.set(*blob);
            }
        }
    }

    /// See `Table::forget_columns`.
    pub(crate) fn forget_early(&self) {
        if let Ok(mut progress) = self.merging.try_lock() {
            progress.early = None;
        }
    }
}
