//! Base columns made of insert pages: by the first merge of a range, or before it.
//!
//! The first merge of a range waits until each of its records is resolved. A transaction that inserts millions of rows fills range
//! after range, and resolves them all at its end; what the columns will be is known as soon as the last slot of a range is written, as
//! values of insert pages never change. So columns can be made **early**, while the transaction goes on:
//!
//! ```text
//! the last slot is written   columns are encoded, their bytes go to the log in place of the rows, the columns wait in the range
//! first merge                they are its base pages, if every record was committed and none has a newer version;
//!                            if not, they are forgotten and made again
//! replay of the log          the range gets them as its base pages at once
//! ```
use std::sync::Arc;

use arrow_array::ArrayRef;
use sync::atomic::AtomicU64;
use types::Timestamp;

use crate::codec::{Damage, Reader, Shape, Writer, decode_column, encode_column};
use crate::encoding::EncodedColumn;
use crate::merge::texts::TextRows;
use crate::page::base::{Lineage, MetaColumns, MetaPage, Page, Pages, StartTimes, Starts, Values};
use crate::page::insert::InsertPages;
use crate::page::tail::TailRecord;
use crate::page::text::{TextCell, is_text};
use crate::page::words::Layout;
use crate::record::range::Range;
use crate::value::cell::{Cell, is_wide};
use crate::value::column_builder::ColumnBuilder;
use crate::value::sketch::Sketch;

/// The records of insert pages, as a first merge takes them.
pub(super) struct InsertedRows<'a> {
    pub(super) pages: &'a InsertPages,
    pub(super) starts: Starts<'a>,
    /// how many slots never held a record
    pub(super) tombstones: usize,
}

/// The sketch of a column's values.
pub(super) fn sketch_of(column: &EncodedColumn) -> Sketch {
    let mut sketch = Sketch::default();
    column.each_value(|cell| sketch.add(cell));
    sketch
}

impl Range {
    /// See `Table::build_columns`.
    pub(crate) fn build_early(&self) -> Option<Vec<u8>> {
        let guard = &sync::pin();
        let MetaPage::Insert { pages, .. } = &self.pages.load(guard).meta else { return None };
        if self.options.layout != Layout::Column || !self.is_closed() {
            return None;
        }
        let rows = InsertedRows { pages, starts: Starts::Insert(pages), tombstones: 0 };
        let (mut writer, mut columns) = (Writer::default(), Vec::with_capacity(self.types.len()));
        writer.number(self.len() as u64);
        for column in 0..self.types.len() {
            let (encoded, sketch) = self.build_inserted(column, &rows, &[], &[]);
            let bytes = encode_column(&encoded, &sketch);
            writer.number(bytes.len() as u64);
            writer.bytes(&bytes);
            columns.push((Values::of_column(encoded, &self.meter, None), Some(Arc::new(sketch))));
        }
        let mut progress = self.merging.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Where the transaction was rolled back meanwhile, the first merge may have been.
        if matches!(self.pages.load(guard).meta, MetaPage::Insert { .. }) {
            progress.early = Some(columns);
        }
        Some(writer.finish())
    }

    /// See `Table::forget_columns`.
    pub(crate) fn forget_early(&self) {
        if let Ok(mut progress) = self.merging.try_lock() {
            progress.early = None;
        }
    }

    /// See `Table::restore_columns`.
    pub(crate) fn restore_columns(&self, bytes: &[u8], at: Timestamp) -> Result<(), Damage> {
        let mut reader = Reader::new(bytes, "list of columns");
        let len = reader.count(self.options.range_records, "records")?;
        let is_free = matches!(self.pages.load(&sync::pin()).meta, MetaPage::Insert { .. }) && self.tail_records() == 0;
        reader.check(len > 0 && self.len() <= len && is_free, || "is of a range that has other records".into())?;
        let shape = Shape { types: &self.types, len, at };
        let lineage: Lineage = vec![0; self.parts.len()].into();
        let mut page = |data_type| {
            let size = reader.count(usize::MAX, "the size of a column")?;
            let (encoded, sketch) = decode_column(reader.bytes(size, "a column")?, shape, data_type)?;
            let (values, sketch) = (Values::of_column(encoded, &self.meter, None), Some(Arc::new(sketch)));
            Ok(Arc::new(Page { lineage: lineage.clone(), values, sketch }))
        };
        let columns = self.types.iter().map(|data_type| page(*data_type)).collect::<Result<_, Damage>>()?;
        reader.check_end()?;
        let meta = MetaColumns {
            lineage,
            start: Arc::new(StartTimes::One(AtomicU64::new(at.0))),
            updates: None,
            inserted: at,
            newest: at,
            live_rows: len as u64,
            tombstones: 0,
            has_deleted: false,
        };
        self.raise_len(len - 1);
        self.close();
        self.pages.replace(Pages::new(MetaPage::Base(meta), columns), &sync::pin());
        self.has_published();
        Ok(())
    }

    /// The values of some slots as they were inserted, as arrays; `None` once the range was merged.
    pub(crate) fn inserted(&self, slots: std::ops::Range<usize>) -> Option<Vec<ArrayRef>> {
        let guard = &sync::pin();
        let MetaPage::Insert { pages, .. } = &self.pages.load(guard).meta else { return None };
        let array = |column: usize| {
            let mut builder = ColumnBuilder::new(self.types[column], slots.len());
            slots.clone().for_each(|slot| builder.push(pages.cell(column, slot)));
            builder.finish()
        };
        Some((0..self.types.len()).map(array).collect())
    }

    /// A column of a first merge: insert pages with the newest values over them, given as records and as cells by ascending slot.
    pub(super) fn build_inserted(
        &self,
        column: usize,
        rows: &InsertedRows<'_>,
        newest: &[(usize, TailRecord<'_>)],
        patches: &[(usize, Cell<'_>)],
    ) -> (EncodedColumn, Sketch) {
        debug_assert_eq!(newest.len(), patches.len(), "a value for each record");
        if rows.tombstones == 0
            && patches.is_empty()
            && let Some(built) = self.build_words(column, rows.pages)
        {
            return built;
        }
        let encoded = self.build_texts(column, rows, newest).unwrap_or_else(|| self.build_cells(column, rows, patches));
        let sketch = sketch_of(&encoded);
        (encoded, sketch)
    }

    /// A column of a first merge as it was inserted, if it is stored as words and all of them are values.
    fn build_words(&self, column: usize, pages: &InsertPages) -> Option<(EncodedColumn, Sketch)> {
        let (data_type, slots) = (self.types[column], 0..self.len());
        if is_wide(data_type) || pages.has_null(column, slots.clone()) {
            return None;
        }
        let mut builder = ColumnBuilder::new(data_type, slots.len());
        builder.extend_words(pages.words(column, slots.clone())?);
        let (mut sketch, mut last) = (Sketch::default(), None);
        for word in pages.words(column, slots)? {
            // Neighbours are often equal.
            if last.replace(word) != Some(word) {
                sketch.add_word(word);
            }
        }
        Some((EncodedColumn::encode(&builder.finish(), data_type), sketch))
    }

    /// A column of text of a first merge, if the dictionaries have most of its values.
    fn build_texts(
        &self,
        column: usize,
        InsertedRows { pages, starts, .. }: &InsertedRows<'_>,
        newest: &[(usize, TailRecord<'_>)],
    ) -> Option<EncodedColumn> {
        if !is_text(self.types[column]) || !pages.has_dictionary(column) {
            return None;
        }
        let mut newest = newest.iter().peekable();
        let mut rows = TextRows::new(column, self.len());
        for slot in 0..self.len() {
            let record = newest.next_if(|(at, _)| *at == slot);
            let cell = match record {
                _ if starts.is_tombstone(slot) => TextCell::Null,
                Some((_, record)) => record.text(column),
                None => pages.text(column, slot),
            };
            rows.set(slot, cell);
            if rows.is_loose() {
                return None;
            }
        }
        rows.encode(self.types[column])
    }

    /// A column of a first merge, value by value.
    fn build_cells(
        &self,
        column: usize,
        InsertedRows { pages, starts, .. }: &InsertedRows<'_>,
        patches: &[(usize, Cell<'_>)],
    ) -> EncodedColumn {
        let mut patches = patches.iter().peekable();
        let mut builder = ColumnBuilder::new(self.types[column], self.len());
        for slot in 0..self.len() {
            let patch = patches.next_if(|(at, _)| *at == slot);
            builder.push(match patch {
                _ if starts.is_tombstone(slot) => Cell::Null,
                Some((_, cell)) => *cell,
                None => pages.cell(column, slot),
            });
        }
        EncodedColumn::encode(&builder.finish(), self.types[column])
    }
}
