//! What can be known beforehand of reads and writes by key: a table, some of its columns, how their values are stored.
use std::sync::Arc;

use lineage::{Cell, PointColumns, words_of};
use types::{DataType, Snapshot, Timestamp, Value};

use crate::error::{Error, Result};
use crate::table::Table;
use crate::table::newest_rows::HeldSlot;

/// Columns of a table that are read or written together, of rows that are found by a primary key of one whole number. It is
/// made once, by [`Table::point_access`], and used by any number of transactions and threads.
///
/// Values are passed as words of 64 bits: whole numbers, dates and times as they are, sign-extended; numbers of floating point
/// by their bits; booleans as 0 and 1; decimals as their digits without the point. [`PointAccess::value`] and
/// [`PointAccess::word`] translate.
#[derive(Clone)]
pub struct PointAccess {
    pub(crate) table: Table,
    pub(crate) columns: PointColumns,
    /// Where the key is among the columns.
    pub(crate) key_place: Option<usize>,
    /// The least and the greatest word of each column, as signed numbers; none at all if every word is a value.
    bounds: Box<[(i64, i64)]>,
}

/// Columns of a table of which a row's new values are made, and those that are set, of rows that are found by a primary key of one whole
/// number; see [`Transaction::update_at_once`](crate::Transaction::update_at_once). Words are as those of [`PointAccess`]. It is of one
/// table, and does not hold it.
#[derive(Clone, Debug)]
pub struct WordsUpdate {
    pub(crate) reads: PointColumns,
    pub(crate) sets: PointColumns,
    /// the types of those that are read, then of those that are set
    types: Box<[DataType]>,
    table: u32,
    /// as those of [`PointAccess`], of the columns that are set
    bounds: Box<[(i64, i64)]>,
}

impl WordsUpdate {
    /// Whether it is of this table.
    pub(crate) fn is_of(&self, table: &Table) -> bool {
        self.table == table.id()
    }

    /// Whether all words that are set are values of their columns.
    pub(crate) fn are_values(&self, words: &[u64]) -> bool {
        first_beyond(&self.bounds, words).is_none()
    }

    /// The value that a word stands for in the column numbered `at` among those that are read.
    pub fn value(&self, at: usize, word: u64) -> Value {
        lineage::value_of_cell(Cell::Word(word), self.types[at])
    }

    /// The value that a word stands for in the column numbered `at` among those that are set.
    pub fn new_value(&self, at: usize, word: u64) -> Value {
        self.value(self.reads.positions().len() + at, word)
    }

    /// The word of a value of the column numbered `at` among those that are set; `None` if it has not exactly the column's type, or is
    /// NULL.
    pub fn word(&self, at: usize, value: &Value) -> Option<u64> {
        lineage::word_of_value(value, self.types[self.reads.positions().len() + at])
    }
}

/// The place of the first word that is not between its bounds.
#[inline]
fn first_beyond(bounds: &[(i64, i64)], words: &[u64]) -> Option<usize> {
    let mut words = bounds.iter().zip(words);
    words.position(|((least, greatest), word)| !(*least..=*greatest).contains(&(*word as i64)))
}

impl Table {
    /// Prepares updates of some columns by values made of others; `None` where rows or values are not of the kind that
    /// [`point_access`](Table::point_access) is for, or the key is among the columns.
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] if the table has fewer columns.
    pub fn words_update(&self, reads: &[usize], sets: &[usize]) -> Result<Option<WordsUpdate>> {
        let (Some(reads), Some(sets)) = (self.point_access(reads)?, self.point_access(sets)?) else { return Ok(None) };
        let has_key = reads.key_place.is_some() || sets.key_place.is_some();
        let columns = reads.columns().iter().chain(sets.columns());
        let types = columns.map(|column| self.schema().columns()[*column].data_type).collect();
        let bounds = sets.bounds;
        Ok((!has_key).then_some(WordsUpdate {
            reads: reads.columns,
            sets: sets.columns,
            types,
            table: self.id(),
            bounds,
        }))
    }

    /// Prepares reads and writes of some columns, by their positions, of rows that are found by key. `None` where rows or
    /// values are not of that kind, and the general calls are to be used: the primary key is not one whole number, the table
    /// has more than 64 columns, a column has text or another type of more than eight bytes, or it is named twice.
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] if the table has fewer columns.
    pub fn point_access(&self, columns: &[usize]) -> Result<Option<PointAccess>> {
        self.data.check_positions(columns.iter().copied())?;
        let Some(primary_key) = self.data.primary_key.as_ref().filter(|_| self.data.array.is_none()) else {
            return Ok(None);
        };
        if !primary_key.is_one_integer(&self.data.schema) {
            return Ok(None);
        }
        let Some(prepared) = PointColumns::new(&self.data.schema, columns) else { return Ok(None) };
        let mut bounds: Box<[(i64, i64)]> =
            columns.iter().map(|column| words_of(self.data.schema.columns()[*column].data_type)).collect();
        if bounds.iter().all(|bounds| *bounds == (i64::MIN, i64::MAX)) {
            bounds = Box::default();
        }
        debug_assert!(bounds.is_empty() || bounds.len() == columns.len(), "bounds for all words or none");
        debug_assert_eq!(prepared.positions(), columns, "words come in the order that was asked for");
        let key = primary_key.columns[0];
        let key_place = columns.iter().position(|column| *column == key);
        Ok(Some(PointAccess { table: self.clone(), columns: prepared.knowing(key), key_place, bounds }))
    }
}

impl PointAccess {
    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The positions of the columns in the table.
    #[inline]
    pub fn columns(&self) -> &[usize] {
        self.columns.positions()
    }

    /// The type of the column numbered `at` among these.
    pub fn data_type(&self, at: usize) -> DataType {
        self.table.data.schema.columns()[self.columns()[at]].data_type
    }

    /// The value that a word stands for in the column numbered `at` among these.
    pub fn value(&self, at: usize, word: u64) -> Value {
        lineage::value_of_cell(Cell::Word(word), self.data_type(at))
    }

    /// The word of a value of the column numbered `at` among these; `None` if it has not exactly the column's type, or is NULL.
    pub fn word(&self, at: usize, value: &Value) -> Option<u64> {
        lineage::word_of_value(value, self.data_type(at))
    }

    /// Whether the newest meaning of the table's name is this table.
    pub fn is_current(&self) -> bool {
        self.is_meant(Snapshot::at(Timestamp::MAX))
    }

    fn is_meant(&self, seen: Snapshot) -> bool {
        let (core, data) = (&self.table.database.shared.core, &self.table.data);
        core.catalog.find(&core.transactions, seen, &data.name).is_some_and(|meant| Arc::ptr_eq(&meant, data))
    }

    /// Puts the words of the row with this key, as it was committed last, into `out`; returns which of them are NULL, a bit each. The
    /// word of a NULL is left as it is. No transaction is begun, and the snapshot is held while this runs. `None` where
    /// [`Table::lookup_values`] is to be asked instead: there is no such row, rows have changed their keys, or the table's name means
    /// another one.
    ///
    /// # Errors
    /// [`Error::WrongWidth`] if `out` has not one word for each column; those of [`Table::lookup_values`].
    pub fn newest(&self, key: i64, out: &mut [u64]) -> Result<Option<u64>> {
        self.check_width(out.len())?;
        let (core, data) = (&self.table.database.shared.core, &self.table.data);
        let held = HeldSlot::now(&core.transactions.0)?;
        // The snapshot is held first: the table and the row are those of one commit.
        if !self.is_meant(held.snapshot()) {
            return Ok(None);
        }
        Ok(held.row(core, data, (&self.columns, self.key_place), key, out)?.flatten())
    }

    /// Whether so many words are one for each column.
    #[inline]
    pub(crate) fn has_width(&self, len: usize) -> bool {
        len == self.columns().len()
    }

    #[inline]
    pub(crate) fn check_width(&self, len: usize) -> Result<()> {
        if self.has_width(len) { Ok(()) } else { Err(self.wrong_width(len)) }
    }

    #[cold]
    fn wrong_width(&self, found: usize) -> Error {
        let expected = self.columns().len();
        Error::WrongWidth { table: self.table.data.name.to_string(), expected, found }
    }

    /// Whether there is a word for each column, and each is a value of it.
    #[inline]
    pub(crate) fn are_values(&self, words: &[u64]) -> bool {
        self.has_width(words.len()) && first_beyond(&self.bounds, words).is_none()
    }

    /// Refuses words that are no values of their columns.
    #[inline]
    pub(crate) fn check_words(&self, words: &[u64]) -> Result<()> {
        self.check_width(words.len())?;
        first_beyond(&self.bounds, words).map_or(Ok(()), |at| Err(self.bad_word(at, words[at])))
    }

    /// Refuses a row whose key is not among its words, or another one.
    pub(crate) fn check_key(&self, key: i64, words: &[u64]) -> Result<()> {
        let position = self.table.data.primary_key()?.columns[0];
        match self.columns().iter().zip(words).find(|(column, _)| **column == position) {
            Some((_, word)) if *word as i64 == key => Ok(()),
            Some((_, word)) => Err(self.bad_word_of(position, *word)),
            None => {
                let column = self.table.data.schema.columns()[position].name.clone();
                Err(Error::NullInColumn { table: self.table.data.name.to_string(), column, row: None })
            }
        }
    }

    #[cold]
    fn bad_word(&self, at: usize, word: u64) -> Error {
        self.bad_word_of(self.columns()[at], word)
    }

    fn bad_word_of(&self, position: usize, word: u64) -> Error {
        let column = &self.table.data.schema.columns()[position];
        Error::BadValue {
            table: self.table.data.name.to_string(),
            column: column.name.clone(),
            data_type: column.data_type,
            value: (word as i64).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use types::{Column, Decimal, Schema};

    use super::*;
    use crate::Database;

    #[test]
    fn words_beyond_a_type_are_refused() {
        let types = [
            DataType::Integer,
            DataType::Boolean,
            DataType::SmallInt,
            DataType::Real,
            DataType::Double,
            DataType::Decimal { precision: 3, scale: 1 },
        ];
        let column = |(at, data_type): (usize, DataType)| Column::new(format!("c{at}"), data_type);
        let columns = types.into_iter().enumerate().map(column).collect();
        let table = Database::in_memory().create_table("t", Schema::new(columns, &["c0"]).unwrap()).unwrap();
        let access = table.point_access(&[0, 1, 2, 3, 4, 5]).unwrap().unwrap();
        let values = [
            Value::Integer(-7),
            Value::Boolean(true),
            Value::SmallInt(i16::MIN),
            Value::Real(-0.5),
            Value::Double(f64::NEG_INFINITY),
            Value::Decimal(Decimal { unscaled: -999, scale: 1 }),
        ];
        let words: Vec<u64> = values.iter().enumerate().map(|(at, value)| access.word(at, value).unwrap()).collect();
        access.check_words(&words).unwrap();
        assert!(values.iter().zip(&words).enumerate().all(|(at, (value, word))| access.value(at, *word) == *value));
        let too_much: [i64; 6] = [1 << 31, 2, i64::from(i16::MIN) - 1, 1 << 32, 0, -1000];
        for (at, word) in too_much.into_iter().enumerate().filter(|(at, _)| *at != 4) {
            let mut words = words.clone();
            words[at] = word as u64;
            assert!(matches!(access.check_words(&words), Err(Error::BadValue { .. })), "{word} in column {at}");
        }
        assert!(matches!(access.check_words(&words[1..]), Err(Error::WrongWidth { expected: 6, found: 5, .. })));
    }

    #[test]
    fn what_is_not_of_the_kind_has_none() {
        let db = Database::in_memory();
        let made = |name: &str, types: &[DataType], key: &[&str]| {
            let column = |(at, data_type): (usize, &DataType)| Column::new(format!("c{at}"), *data_type);
            let columns = types.iter().enumerate().map(column).collect();
            db.create_table(name, Schema::new(columns, key).unwrap()).unwrap()
        };
        let table = made("t", &[DataType::BigInt, DataType::TEXT], &["c0"]);
        assert!(table.point_access(&[0]).unwrap().is_some() && table.point_access(&[]).unwrap().is_some());
        assert!(table.point_access(&[1]).unwrap().is_none() && table.point_access(&[0, 0]).unwrap().is_none());
        assert!(matches!(table.point_access(&[2]), Err(Error::NoSuchColumn { .. })));
        assert!(made("no_key", &[DataType::BigInt], &[]).point_access(&[0]).unwrap().is_none());
        assert!(made("text_key", &[DataType::TEXT, DataType::BigInt], &["c0"]).point_access(&[1]).unwrap().is_none());
        let two = made("two", &[DataType::BigInt, DataType::BigInt], &["c0", "c1"]);
        assert!(two.point_access(&[1]).unwrap().is_none());
        let wide = made("wide", &[DataType::BigInt; 65], &["c0"]);
        assert!(wide.point_access(&[1]).unwrap().is_none());
    }
}
