//! A few rows of columns that are stored as words, in a list that its owner fills again and again.
//!
//! ```text
//! words   row 0: a b c | row 1: a b c | ...        nulls   row 0 | row 1 | ...   a bit for each column
//! ```
use smallvec::SmallVec;
use types::{DataType, Schema, Value};

use super::cell::{Cell, is_wide, put_value_of_word};
use super::column_set::WORD_COLUMNS;

/// Rows of words, one behind the other. It keeps its memory from one filling to the next.
#[derive(Default, Debug)]
pub struct WordRows {
    /// their positions in the table, and their types
    columns: SmallVec<[usize; 8]>,
    types: SmallVec<[DataType; 8]>,
    words: Vec<u64>,
    /// which words of a row stand for NULL, a bit each
    nulls: Vec<u64>,
}

impl WordRows {
    /// Forgets its rows, for others of these columns of a table (positions in its schema). False if one is not stored as words, or they
    /// are more than 64: no rows can be added then.
    pub fn begin(&mut self, schema: &Schema, columns: &[usize]) -> bool {
        self.words.clear();
        self.nulls.clear();
        self.columns.clear();
        self.types.clear();
        let types = columns.iter().map(|column| schema.columns()[*column].data_type);
        if columns.len() > WORD_COLUMNS || types.clone().any(is_wide) {
            return false;
        }
        self.columns.extend_from_slice(columns);
        self.types.extend(types);
        true
    }

    /// The positions of its columns in the table.
    #[inline]
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// How many rows it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.nulls.is_empty()
    }

    /// The value in a row of the column at this place among its columns.
    pub fn value(&self, row: usize, place: usize) -> Value {
        let mut value = Value::Null;
        self.put_value(row, place, &mut value);
        value
    }

    /// The word in a row of the column at this place among its columns; `None` for NULL.
    #[inline]
    pub fn word(&self, row: usize, place: usize) -> Option<u64> {
        (self.nulls[row] >> place & 1 == 0).then(|| self.words[row * self.columns.len() + place])
    }

    /// Puts the value in a row of the column at this place among its columns into the place of another value.
    #[inline]
    pub fn put_value(&self, row: usize, place: usize, into: &mut Value) {
        match self.nulls[row] >> place & 1 {
            0 => put_value_of_word(self.words[row * self.columns.len() + place], self.types[place], into),
            _ => *into = Value::Null,
        }
    }

    /// Adds a row, a cell for each column.
    pub fn push(&mut self, cells: &[Cell<'_>]) {
        let row = self.len();
        self.add(1);
        self.put(row, cells);
    }

    /// Adds so many rows, of zeros until they are put.
    pub(crate) fn add(&mut self, count: usize) {
        let len = self.len() + count;
        self.nulls.resize(len, 0);
        self.words.resize(len * self.columns.len(), 0);
    }

    /// Forgets the rows behind the first so many.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.nulls.truncate(len);
        self.words.truncate(len * self.columns.len());
    }

    /// Puts other values into a row, a cell for each column.
    pub(crate) fn put(&mut self, row: usize, cells: &[Cell<'_>]) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.nulls[row] = 0;
        cells.iter().enumerate().for_each(|(place, cell)| self.column_from(row, place).put(0, cell.word()));
    }

    /// The column at this place, of the rows from one on that have no values there yet.
    #[inline]
    pub(crate) fn column_from(&mut self, row: usize, place: usize) -> WordColumn<'_> {
        let width = self.columns.len();
        WordColumn {
            words: &mut self.words[row * width + place..],
            width,
            nulls: &mut self.nulls[row..],
            null: 1 << place,
        }
    }
}

/// A column of rows that have no values there yet.
pub(crate) struct WordColumn<'a> {
    words: &'a mut [u64],
    width: usize,
    nulls: &'a mut [u64],
    null: u64,
}

impl WordColumn<'_> {
    /// Puts the value of a row, counted from the first; `None` for NULL.
    #[inline]
    pub(crate) fn put(&mut self, row: usize, word: Option<u64>) {
        match word {
            Some(word) => self.words[row * self.width] = word,
            None => self.nulls[row] |= self.null,
        }
    }
}

#[cfg(test)]
mod tests {
    use types::Column;

    use super::*;

    #[test]
    fn rows_are_what_was_put_last() {
        let types = [DataType::Integer, DataType::TEXT, DataType::Boolean];
        let column = |(at, data_type): (usize, &DataType)| Column::new(format!("c{at}"), *data_type);
        let schema = Schema::new(types.iter().enumerate().map(column).collect(), &["c0"]).unwrap();
        let mut rows = WordRows::default();
        for _ in 0..2 {
            assert!(rows.begin(&schema, &[2, 0]) && rows.is_empty());
            rows.push(&[Cell::Word(1), Cell::Word(7)]);
            rows.push(&[Cell::Null, Cell::Word(-8_i64 as u64)]);
            rows.add(1);
            rows.put(2, &[Cell::Word(0), Cell::Null]);
            rows.put(1, &[Cell::Word(0), Cell::Word(9)]);
            assert_eq!((rows.len(), rows.columns()), (3, &[2, 0][..]));
            let row = |row| (rows.value(row, 0), rows.value(row, 1));
            assert_eq!(row(0), (Value::Boolean(true), Value::Integer(7)));
            assert_eq!(row(1), (Value::Boolean(false), Value::Integer(9)));
            assert_eq!(row(2), (Value::Boolean(false), Value::Null));
            rows.truncate(1);
            assert_eq!(rows.len(), 1);
        }
        assert!(!rows.begin(&schema, &[0, 1]), "a text is no word");
        assert!(!rows.begin(&schema, &[0; 65]), "a bit for each column");
    }
}
