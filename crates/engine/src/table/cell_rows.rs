//! Rows on their way into a table: each value becomes what the storage keeps of it at once, mostly a word, without a copy of the row
//! as values in between.
//!
//! ```text
//! values, row by row ──push──> cells of row 0 | cells of row 1 | ...  ──Transaction::insert_rows──> storage, keys, redo
//!                                      └ a value that holds its bytes otherwise is kept beside them
//! ```
//!
//! A value is taken if it is plainly one of its column's type, or an integer of another width that fits.
use lineage::{Cell, Scratch, VALUE_BYTES_MAX, cell_of_value, value_of_cell, word_of_value, words_of};
use smallvec::SmallVec;
use types::{Column, DataType, Value, has_at_most};

use crate::error::Result;
use crate::table::Table;
use crate::terms::row::{Cells, check_cells, check_width};

/// Rows for a table, value by value in the order of its columns, row after row.
///
/// ```
/// use engine::{CellRows, Column, DataType, Database, Schema, Value};
///
/// let db = Database::in_memory();
/// let columns = vec![Column::new("id", DataType::BigInt), Column::new("name", DataType::TEXT)];
/// let table = db.create_table("people", Schema::new(columns, &["id"])?)?;
///
/// let (id, name) = (Value::Integer(7), Value::from("Anna"));
/// let mut rows = CellRows::new(&table);
/// assert!(rows.push(&id) && rows.push(&name));
/// assert!(!rows.push(&name), "it is no number");
/// let mut transaction = db.begin()?;
/// transaction.insert_rows(&rows)?;
/// transaction.commit()?;
/// # Ok::<(), engine::Error>(())
/// ```
pub struct CellRows<'t, 'v> {
    table: &'t Table,
    columns: &'t [Column],
    /// of the values that are kept beside them NULL
    cells: SmallVec<[Cell<'v>; 16]>,
    /// values whose bytes are made when they are put in, each with its place among the cells, in the order of these
    kept: Vec<(usize, Value)>,
    /// the column of the next value
    column: usize,
    /// whether a cell is something else than a word
    has_others: bool,
}

impl<'t, 'v> CellRows<'t, 'v> {
    /// No rows yet.
    #[inline]
    pub fn new(table: &'t Table) -> CellRows<'t, 'v> {
        let columns = table.data.schema.columns();
        CellRows { table, columns, cells: SmallVec::new(), kept: Vec::new(), column: 0, has_others: false }
    }

    /// The table.
    pub fn table(&self) -> &'t Table {
        self.table
    }

    /// How many rows are complete.
    pub fn len(&self) -> usize {
        self.cells.len() / self.width().max(1)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the value of the next column; `false` if it is not plainly one, and nothing was added.
    #[inline]
    pub fn push(&mut self, value: &'v Value) -> bool {
        let Some(column) = self.columns.get(self.column) else { return false };
        match word(value, column.data_type) {
            Some(cell) => self.add(cell),
            None => match bytes(value, column.data_type) {
                Some(bytes) => self.add(Cell::Bytes(bytes)),
                None => return self.keep(value),
            },
        }
        true
    }

    /// Adds the first of a row's values, as far as each is an integer of exactly its column's type; tells how many these are.
    ///
    /// # Panics
    /// If the row before is not complete.
    #[inline]
    pub fn push_integers<'i>(&mut self, values: impl Iterator<Item = &'i Value>) -> usize {
        assert_eq!(self.column, 0, "a row begins when the one before is complete");
        let first = self.cells.len();
        self.cells.resize(first + self.width(), Cell::Null);
        let (mut cells, columns) = (self.cells[first..].iter_mut(), self.columns);
        let is_put = |(value, column): &(&Value, &Column)| {
            let word = match (value, column.data_type) {
                (Value::BigInt(number), DataType::BigInt) => *number,
                (Value::Integer(number), DataType::Integer) => i64::from(*number),
                _ => return false,
            };
            cells.next().is_some_and(|cell| {
                *cell = Cell::Word(word as u64);
                true
            })
        };
        let count = values.zip(columns).take_while(is_put).count();
        self.cells.truncate(first + count);
        self.column = if count == self.width() { 0 } else { count };
        count
    }

    /// As [`push`](CellRows::push), of a value that does not stay.
    #[inline]
    pub fn push_passing(&mut self, value: &Value) -> bool {
        let cell = self.columns.get(self.column).and_then(|column| word(value, column.data_type));
        match cell {
            Some(cell) => {
                self.add(cell);
                true
            }
            None => self.keep(value),
        }
    }

    /// Adds a text as the value of the next column, as [`push`](CellRows::push) does.
    pub fn push_text(&mut self, text: &'v str) -> bool {
        let Some(column) = self.columns.get(self.column) else { return false };
        let fits = text.len() <= VALUE_BYTES_MAX && text_fits(text, column.data_type);
        if fits {
            self.add(Cell::Bytes(text.as_bytes()));
        }
        fits
    }

    /// Keeps a value beside the cells, of which the column is not one of words.
    #[inline(never)]
    fn keep(&mut self, value: &Value) -> bool {
        let fits = self.columns.get(self.column).is_some_and(|column| value.fits(column.data_type));
        let is_short = !matches!(value, Value::Text(text) | Value::Json(text) if text.len() > VALUE_BYTES_MAX)
            && !matches!(value, Value::Bytea(bytes) if bytes.len() > VALUE_BYTES_MAX);
        if fits && is_short {
            debug_assert!(
                lineage::is_wide(self.columns[self.column].data_type),
                "{value} is a word, and was not taken as one"
            );
            self.kept.push((self.cells.len(), value.clone()));
            self.add(Cell::Null);
        }
        fits && is_short
    }

    /// Puts an integer in the place of one; `false` if it does not fit.
    ///
    /// # Panics
    /// If there is no such value yet.
    pub fn replace_integer(&mut self, row: usize, column: usize, number: i64) -> bool {
        let place = row * self.width() + column;
        let cell = word(&Value::BigInt(number), self.columns[column].data_type);
        cell.is_some_and(|cell| {
            self.cells[place] = cell;
            true
        })
    }

    /// The integer in a column of a row; `None` if it is NULL or the column is none of integers.
    ///
    /// # Panics
    /// If there is no such value yet.
    #[inline]
    pub fn integer(&self, row: usize, column: usize) -> Option<i64> {
        match self.cells[row * self.width() + column] {
            Cell::Word(word) if self.columns[column].data_type.is_integer() => Some(word as i64),
            _ => None,
        }
    }

    /// The value in a column of a row.
    ///
    /// # Panics
    /// If there is no such value yet.
    pub fn value(&self, row: usize, column: usize) -> Value {
        let place = row * self.width() + column;
        match self.kept.binary_search_by_key(&place, |(at, _)| *at) {
            Ok(at) => self.kept[at].1.clone(),
            Err(_) => value_of_cell(self.cells[place], self.columns[column].data_type),
        }
    }

    /// All values of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn values(&self, row: usize) -> Vec<Value> {
        (0..self.width()).map(|column| self.value(row, column)).collect()
    }

    /// Whether a row has NULL in a column that does not take it.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn misses_value(&self, row: usize) -> bool {
        let places = row * self.width()..(row + 1) * self.width();
        let is_kept = |place: usize| self.kept.iter().any(|(at, _)| *at == place);
        places
            .clone()
            .zip(self.columns)
            .any(|(place, column)| !column.nullable && self.cells[place] == Cell::Null && !is_kept(place))
    }

    /// Passes on the rows, each as a cell for each column, once it is known that none is missing.
    ///
    /// # Errors
    /// [`Error::WrongWidth`](crate::Error::WrongWidth) if the last row is not complete; [`Error::NullInColumn`](crate::Error::NullInColumn)
    /// and what `take` fails with, of the first row for which that is so.
    pub(crate) fn for_each(&self, mut take: impl FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()> {
        let data = &self.table.data;
        if self.column > 0 {
            check_width(&data.name, self.width(), self.column)?;
        }
        let mut checked = |row: &[Cell<'_>]| {
            debug_assert_eq!(row.len(), data.schema.columns().len(), "a cell for each column");
            // A word is no NULL, and not too long.
            if self.has_others {
                check_cells(&data.name, &data.schema, row.iter().enumerate())?;
            }
            take(row)
        };
        for (at, row) in self.cells.chunks_exact(self.width().max(1)).enumerate() {
            match self.kept.is_empty() {
                true => checked(row)?,
                false => self.with_kept(at * row.len(), row, &mut checked)?,
            }
        }
        Ok(())
    }

    /// Passes on a row of which the first cell is at a place, with what is kept of it.
    fn with_kept(&self, first: usize, row: &[Cell<'v>], take: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()> {
        let kept = self.kept.iter().filter(|(place, _)| (first..first + row.len()).contains(place));
        let mut kept: SmallVec<[_; 4]> =
            kept.map(|(place, value)| (place - first, value, Scratch::default())).collect();
        let mut cells: Cells<'_> = row.iter().copied().collect();
        for (column, value, scratch) in &mut kept {
            debug_assert_eq!(cells[*column], Cell::Null, "a value is kept twice");
            cells[*column] = cell_of_value(value, self.columns[*column].data_type, scratch);
        }
        take(&cells)
    }

    #[inline]
    fn add(&mut self, cell: Cell<'v>) {
        debug_assert_eq!(self.column, self.cells.len() % self.width(), "the next value is of another column");
        self.has_others |= !matches!(cell, Cell::Word(_));
        self.cells.push(cell);
        self.column += 1;
        if self.column == self.columns.len() {
            self.column = 0;
        }
    }

    #[inline]
    fn width(&self) -> usize {
        self.columns.len()
    }
}

/// The cell of a value that is NULL or a word of this type.
#[inline]
fn word<'v>(value: &Value, data_type: DataType) -> Option<Cell<'v>> {
    let number = match (value, data_type) {
        (Value::BigInt(number), DataType::BigInt) => return Some(Cell::Word(*number as u64)),
        (Value::Null, _) => return Some(Cell::Null),
        (Value::SmallInt(number), _) => i64::from(*number),
        (Value::Integer(number), _) => i64::from(*number),
        (Value::BigInt(number), _) => *number,
        _ => return word_of_value(value, data_type).map(Cell::Word),
    };
    let (least, greatest) = words_of(data_type);
    let fits = data_type.is_integer() && (least..=greatest).contains(&number);
    fits.then_some(Cell::Word(number as u64))
}

/// The bytes of a value that holds them as they are stored.
#[inline(never)]
fn bytes(value: &Value, data_type: DataType) -> Option<&[u8]> {
    let bytes = match (value, data_type) {
        (Value::Text(text), _) if text_fits(text, data_type) => text.as_bytes(),
        (Value::Json(text), DataType::Json) => text.as_bytes(),
        (Value::Jsonb(value), DataType::Jsonb) => value.as_bytes(),
        (Value::Numeric(number), DataType::Numeric) => number.as_bytes(),
        (Value::Bytea(bytes), DataType::Bytea) => bytes,
        _ => return None,
    };
    (bytes.len() <= VALUE_BYTES_MAX).then_some(bytes)
}

/// Whether a text is a value of this type.
fn text_fits(text: &str, data_type: DataType) -> bool {
    match data_type {
        DataType::Text { max_chars } => max_chars.is_none_or(|max| has_at_most(text, max)),
        DataType::Char { chars } => !text.ends_with(' ') && has_at_most(text, chars),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use types::Schema;

    use super::*;
    use crate::{Database, Error};

    const TYPES: [DataType; 13] = [
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        DataType::Decimal { precision: 5, scale: 2 },
        DataType::Decimal { precision: 30, scale: 2 },
        DataType::TEXT,
        DataType::Text { max_chars: Some(2) },
        DataType::Char { chars: 2 },
        DataType::Uuid,
        DataType::Bytea,
        DataType::Boolean,
        DataType::Date,
        DataType::Double,
    ];

    /// Values of all of these types, within them and beyond.
    fn values() -> Vec<Value> {
        let mut values =
            vec![Value::Null, Value::Boolean(true), Value::Date(-3), Value::Double(-0.0), Value::Uuid([7; 16])];
        for number in [0, -1, i64::from(i16::MAX), i64::from(i16::MIN) - 1, i64::from(i32::MAX) + 1, i64::MIN] {
            values.push(Value::BigInt(number));
            values.extend(i32::try_from(number).map(Value::Integer));
            values.extend(i16::try_from(number).map(Value::SmallInt));
            values.extend([2, 0, 3].map(|scale| Value::decimal(i128::from(number), scale)));
        }
        values.extend(["", "a", "a ", "äö", "abc"].map(Value::from));
        values.push(Value::Bytea(vec![0, 255]));
        values
    }

    #[test]
    fn a_value_that_is_taken_is_put_in_as_any_other_way_does() {
        let (db, mut taken) = (Database::in_memory(), 0);
        for (at, data_type) in TYPES.into_iter().enumerate() {
            let columns = vec![Column::new("id", DataType::BigInt), Column::new("v", data_type)];
            let table = db.create_table(&format!("t{at}"), Schema::new(columns, &["id"]).unwrap()).unwrap();
            for (id, value) in values().iter().enumerate() {
                let key = [Value::BigInt(2 * id as i64), Value::BigInt(2 * id as i64 + 1)];
                let mut rows = CellRows::new(&table);
                assert!(rows.push(&key[0]));
                let is_taken = rows.push(value);
                assert!(is_taken || !rows.push_passing(value), "a value is taken either way");
                assert!(is_taken || !value.fits(data_type), "{value} is plainly of type {data_type}");
                let mut transaction = db.begin().unwrap();
                let inserted = transaction.insert(&table, &[key[1].clone(), value.clone()]);
                if is_taken {
                    taken += 1;
                    let mut others = CellRows::new(&table);
                    let plain = others.push_integers([&key[0], value].into_iter());
                    assert!(plain == 2 || (plain == 1 && others.push(value)), "{value} of {data_type}");
                    assert_eq!(others.values(0), rows.values(0), "{value} of {data_type}");
                    let kept = rows.value(0, 1);
                    transaction.insert_rows(&rows).unwrap();
                    inserted.unwrap();
                    let read = |key: &Value| transaction.get(&table, std::slice::from_ref(key)).unwrap().unwrap().pop();
                    let (ours, others) = (read(&key[0]), read(&key[1]));
                    assert_eq!((&ours, Some(&kept)), (&others, others.as_ref()), "{value} in {data_type}");
                }
                transaction.commit().unwrap();
            }
        }
        assert!(taken > 60, "{taken}");
    }

    #[test]
    fn rows_that_are_not_complete_or_have_no_value_where_there_has_to_be_one_are_refused() {
        let db = Database::in_memory();
        let columns = vec![Column::new("id", DataType::BigInt), Column::new("v", DataType::TEXT).not_null()];
        let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
        let (key, text, null) = (Value::BigInt(1), Value::from("one"), Value::Null);
        let mut transaction = db.begin().unwrap();
        let mut rows = CellRows::new(&table);
        assert!(rows.push(&key) && rows.is_empty());
        assert!(matches!(transaction.insert_rows(&rows), Err(Error::WrongWidth { expected: 2, found: 1, .. })));
        assert!(rows.push(&null) && rows.len() == 1 && rows.misses_value(0));
        assert!(matches!(transaction.insert_rows(&rows), Err(Error::NullInColumn { .. })));
        let mut rows = CellRows::new(&table);
        assert!(rows.push_passing(&key) && rows.push_text("eins"));
        assert!(rows.push(&null) && rows.push_passing(&text));
        assert!(!rows.misses_value(0) && rows.misses_value(1));
        assert!(!rows.replace_integer(1, 1, 2) && rows.replace_integer(1, 0, 2) && !rows.misses_value(1));
        assert_eq!((rows.integer(1, 0), rows.integer(1, 1)), (Some(2), None));
        transaction.insert_rows(&rows).unwrap();
        assert_eq!(transaction.get(&table, &[Value::BigInt(1)]).unwrap().unwrap(), rows.values(0));
        assert_eq!(transaction.get(&table, &[Value::BigInt(2)]).unwrap().unwrap(), rows.values(1));
    }
}
