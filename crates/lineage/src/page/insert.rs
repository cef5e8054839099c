//! Insert pages: where new records live, row by row and unencoded, until their range is full and merged. Under a memory limit
//! a range is full when its insert pages take some part of that, however few its records: they can't be evicted.
//!
//! They are aligned slot for slot with the base pages that will replace them, so that a base Rid never changes. All
//! arrays are as long as the range, but memory is taken (and charged) only where slots are written.
use std::ops::Range;
use std::sync::Arc;

use sync::atomic::{AtomicU64, Ordering};
use sync::blocking::OnceLock;
use sync::zeroed_atomics;
use types::Schema;

use crate::memory::budget::{Charge, MemoryKind, Meter};
use crate::page::options::TableOptions;
use crate::page::text::{TextCell, TextOptions, Texts};
use crate::page::wide::WideValues;
use crate::page::words::Words;
use crate::value::cell::{ArrayCells, Cell, is_wide};
use crate::value::column_set::{ColumnSet, words_of};

/// Memory is charged for so many slots at a time: the system hands out 4 KiB of a zeroed array.
pub(crate) const CHARGED_SLOTS: usize = 512;

/// What each slot has beside its values.
struct Heads {
    start: Box<[AtomicU64]>,
    /// which of its values are NULL: so many words for each slot as that takes
    nulls: Box<[AtomicU64]>,
}

/// The insert pages of one range. What nobody has written takes no memory: a range that is restored with base pages has none.
pub struct InsertPages {
    wide: Box<[bool]>,
    set_words: usize,
    heads: OnceLock<Heads>,
    slots: usize,
    words: Words,
    values: WideValues,
    charge: Charge,
}

impl InsertPages {
    /// Empty pages for a range of records of this schema.
    pub(crate) fn new(schema: &Schema, options: &TableOptions, meter: &Arc<Meter>) -> InsertPages {
        let (set_words, capacity) = (words_of(schema), options.range_records);
        let texts = TextOptions::of_inserts(schema, options.text_dictionary);
        InsertPages {
            wide: schema.columns().iter().map(|column| is_wide(column.data_type)).collect(),
            set_words,
            heads: OnceLock::new(),
            slots: capacity,
            words: Words::new(options.layout, schema.columns().len(), capacity),
            values: WideValues::new(Arc::new(Texts::new(&texts, meter))),
            charge: Charge::new(meter, MemoryKind::Insert, 0),
        }
    }

    /// Writes the record at `slot`, which the caller allocated; `start` makes it known to readers.
    pub fn write(&self, slot: usize, cells: &[Cell<'_>], start: u64) {
        debug_assert_eq!(cells.len(), self.wide.len());
        self.charge_slot(slot);
        let (mut nulls, words) = (ColumnSet::EMPTY, self.words.record(slot));
        for (column, cell) in cells.iter().enumerate() {
            match cell {
                Cell::Null => nulls.insert(column),
                Cell::Word(word) => words.column(column).store(*word, Ordering::Relaxed),
                Cell::Bytes(bytes) => {
                    let word = self.values.store(column, bytes, |bytes| self.charge.grow(bytes));
                    words.column(column).store(word, Ordering::Release);
                }
            }
        }
        let heads = self.heads();
        for i in 0..self.set_words {
            heads.nulls[slot * self.set_words + i].store(nulls.word(i), Ordering::Relaxed);
        }
        heads.start[slot].store(start, Ordering::Release);
    }

    /// Writes rows, column by column, at neighbouring slots from `slot` on, which the caller allocated; `start` makes each known to
    /// readers, once all are there.
    pub(crate) fn write_rows(&self, slot: usize, columns: &[ArrayCells<'_>], rows: Range<usize>, start: u64) {
        debug_assert_eq!(columns.len(), self.wide.len());
        let slots = slot..slot + rows.len();
        slots.clone().for_each(|slot| self.charge_slot(slot));
        for (column, cells) in columns.iter().enumerate() {
            let (words, step) = self.words.run(column, slot, |_| {});
            let has_null = cells.has_null(rows.clone());
            if !has_null && cells.each_word(rows.clone(), |at, word| words[at * step].store(word, Ordering::Relaxed)) {
                continue;
            }
            let mut twins = cells.views().filter(|_| !has_null).map(Twins::new);
            for (at, row) in rows.clone().enumerate() {
                if let Some(word) = twins.as_mut().and_then(|twins| twins.word_of(row)) {
                    words[at * step].store(word, Ordering::Release);
                    continue;
                }
                match cells.get(row) {
                    Cell::Null => self.add_null(slot + at, column),
                    Cell::Word(word) => words[at * step].store(word, Ordering::Relaxed),
                    Cell::Bytes(bytes) => {
                        let word = self.values.store(column, bytes, |bytes| self.charge.grow(bytes));
                        words[at * step].store(word, Ordering::Release);
                        twins.iter_mut().for_each(|twins| twins.note(row, word));
                    }
                }
            }
        }
        self.heads().start[slots].iter().for_each(|word| word.store(start, Ordering::Release));
    }

    /// What slots have beside their values; takes memory when it is first asked for.
    #[inline]
    fn heads(&self) -> &Heads {
        match self.heads.get() {
            Some(heads) => heads,
            None => self.make_heads(),
        }
    }

    #[cold]
    fn make_heads(&self) -> &Heads {
        let words = |each: usize| zeroed_atomics(self.slots * each);
        self.heads.get_or_init(|| Heads { start: words(1), nulls: words(self.set_words) })
    }

    /// A word of those that tell which values of a slot are NULL; 0 where nobody has written.
    #[inline]
    fn nulls(&self, slot: usize, word: usize) -> u64 {
        let nulls = |heads: &Heads| heads.nulls[slot * self.set_words + word].load(Ordering::Relaxed);
        self.heads.get().map_or(0, nulls)
    }

    /// Notes a NULL of a record that this thread is writing.
    fn add_null(&self, slot: usize, column: usize) {
        let nulls = &self.heads().nulls[slot * self.set_words + column / 64];
        nulls.store(nulls.load(Ordering::Relaxed) | 1 << (column % 64), Ordering::Relaxed);
    }

    /// Charges the memory of some slots with the first of them.
    pub(crate) fn charge_slot(&self, slot: usize) {
        if slot.is_multiple_of(CHARGED_SLOTS) {
            let slots = CHARGED_SLOTS.min(self.slots);
            self.charge.grow(slots * (1 + self.set_words + self.wide.len()) * size_of::<u64>());
        }
    }

    /// The bytes charged.
    pub(crate) fn bytes(&self) -> u64 {
        self.charge.bytes() + self.values.texts().bytes()
    }

    /// The Start Time word of the record at `slot`.
    #[inline]
    pub fn start(&self, slot: usize) -> &AtomicU64 {
        &self.heads().start[slot]
    }

    /// The value of `column` at `slot`, if the slot's Start Time was seen written, by an acquire load; a value that has
    /// not been written, if not.
    #[inline]
    pub fn cell(&self, column: usize, slot: usize) -> Cell<'_> {
        let nulls = self.nulls(slot, column / 64);
        if nulls & 1 << (column % 64) != 0 {
            return Cell::Null;
        }
        if self.wide[column] {
            let word = self.words.load(column, slot, Ordering::Acquire);
            // SAFETY: the word is 0, or `write` got it for this column and stored it with release.
            Cell::Bytes(unsafe { self.values.get(column, word) })
        } else {
            Cell::Word(self.words.load(column, slot, Ordering::Relaxed))
        }
    }

    /// Whether one of these values of a column is NULL, of slots that were seen written.
    pub(crate) fn has_null(&self, column: usize, slots: impl Iterator<Item = usize>) -> bool {
        let word_of = |slot: usize| self.nulls(slot, column / 64);
        slots.fold(0, |nulls, slot| nulls | word_of(slot)) >> (column % 64) & 1 != 0
    }

    /// These values of a column that is stored as words and not NULL; `None` where none was ever stored.
    pub(crate) fn words(&self, column: usize, slots: impl Iterator<Item = usize>) -> Option<impl Iterator<Item = u64>> {
        debug_assert!(!self.wide[column], "column {column} is stored as bytes");
        let (words, step) = self.words.stored(column)?;
        Some(slots.map(move |slot| words[slot * step].load(Ordering::Relaxed)))
    }

    /// Whether some values of a column are in a dictionary.
    pub(crate) fn has_dictionary(&self, column: usize) -> bool {
        self.values.texts().dictionary(column).is_some()
    }

    /// The value of a column of text, for a merge.
    pub(crate) fn text(&self, column: usize, slot: usize) -> TextCell<'_> {
        match WideValues::id(self.words.load(column, slot, Ordering::Relaxed)) {
            // Of a NULL there is no word.
            Some(id) => TextCell::Known(self.values.texts(), id),
            None => TextCell::of(self.cell(column, slot)),
        }
    }
}

/// Words of values in a dictionary that came in the same rows, by their views: most values of a column of few different ones are told
/// without a look at their bytes.
struct Twins<'a> {
    views: &'a [u128],
    known: [(u128, u64); TWINS],
}

/// So many values are remembered, each at one place.
const TWINS: usize = 32;

impl<'a> Twins<'a> {
    /// None are known.
    fn new(views: &'a [u128]) -> Twins<'a> {
        Twins { views, known: [(0, 0); TWINS] }
    }

    #[inline]
    fn place(view: u128) -> usize {
        /// An odd number without a pattern.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let folded = view as u64 ^ (view >> 64) as u64;
        (folded.wrapping_mul(SPREAD) >> (u64::BITS - TWINS.ilog2())) as usize
    }

    /// The word of the row's value, if it is known. None is 0.
    #[inline]
    fn word_of(&self, row: usize) -> Option<u64> {
        let view = self.views[row];
        let (known, word) = self.known[Self::place(view)];
        (known == view && word != 0).then_some(word)
    }

    #[inline]
    fn note(&mut self, row: usize, word: u64) {
        // What is on the heap belongs to one record.
        if WideValues::id(word).is_some() {
            let view = self.views[row];
            self.known[Self::place(view)] = (view, word);
        }
    }
}

#[cfg(test)]
mod tests {
    use types::{Column, DataType};

    use super::*;

    #[test]
    fn a_value_that_was_not_written_names_no_bytes() {
        let columns = vec![Column::new("n", DataType::BigInt), Column::new("t", DataType::TEXT)];
        let (schema, options) = (Schema::new(columns, &[]).unwrap(), TableOptions::default());
        let pages = InsertPages::new(&schema, &options, &Meter::new(Arc::default()));
        let row = |slot| [pages.cell(0, slot), pages.cell(1, slot)];
        assert_eq!(row(0), [Cell::Word(0), Cell::Bytes(b"")]);
        pages.write(0, &[Cell::Word(7), Cell::Bytes(b"first")], 1);
        assert_eq!(row(0), [Cell::Word(7), Cell::Bytes(b"first")]);
        assert_eq!(row(1), [Cell::Word(0), Cell::Bytes(b"")]);
    }
}
