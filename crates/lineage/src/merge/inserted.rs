//! Base columns made of insert pages: by the first merge of a range, or before it (see `merge/early.rs`).
use arrow_array::ArrayRef;

use crate::encoding::EncodedColumn;
use crate::merge::texts::TextRows;
use crate::page::base::{MetaPage, Starts};
use crate::page::insert::InsertPages;
use crate::page::tail::TailRecord;
use crate::page::text::{TextCell, is_text};
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
