//! Rows that are inserted together, as bytes, column by column: how the log has them.
//!
//! ```text
//! rows    | rows | a column for each of the table's |
//! column  | has NULLs (8) | valid rows, a bit each, in words, if it has | form (8) | values
//! values  | 0 | packed |                                             words
//!         | 1 | lengths, packed | size | bytes end to end |          bytes
//!         | 2 | entries | entries as in form 1 | codes, packed |     bytes of which most are repeated
//! ```
//!
//! NULLs take no place among the values. A row of ten columns of whole numbers takes a third of what its cells take one by one, and is
//! written at the speed of packing.
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use foldhash::fast::FixedState;
use types::DataType;

use super::cells::{check_bytes, check_word};
use super::{Damage, Reader, Writer};
use crate::value::cell::{ArrayCells, Cell, is_wide};

const WORDS: u8 = 0;
const BYTES: u8 = 1;
const CODES: u8 = 2;

/// The most different values of a column that is written as codes.
const ENTRIES_MAX: usize = 64;

/// The most rows that are written together.
const ROWS_MAX: usize = 1 << 20;

/// Appends these rows of a batch, given by its columns.
///
/// # Panics
/// If there are more than a million rows.
pub fn write_rows(out: &mut Vec<u8>, columns: &[ArrayCells<'_>], rows: Range<usize>) {
    assert!(rows.len() <= ROWS_MAX, "{} rows at a time", rows.len());
    let mut writer = Writer::default();
    writer.number(rows.len() as u64);
    columns.iter().for_each(|column| write_column(&mut writer, column, rows.clone()));
    out.extend_from_slice(&writer.finish());
}

fn write_column(writer: &mut Writer, column: &ArrayCells<'_>, rows: Range<usize>) {
    let has_null = column.has_null(rows.clone());
    writer.byte(u8::from(has_null));
    if has_null {
        let mut valid = vec![0_u64; rows.len().div_ceil(64)];
        for (at, row) in rows.clone().enumerate() {
            valid[at / 64] |= u64::from(column.get(row) != Cell::Null) << (at % 64);
        }
        writer.array(&valid);
    }
    if !column.is_wide() {
        writer.byte(WORDS);
        writer.numbers(&words_of(column, rows, has_null));
        return;
    }
    // Most columns of few different values are told by their views.
    let by_views = if has_null { None } else { Repeated::of_views(column, rows.clone()) };
    if let Some(repeated) = by_views {
        return repeated.write(writer);
    }
    let bytes = |row| if let Cell::Bytes(bytes) = column.get(row) { Some(bytes) } else { None };
    let values: Vec<&[u8]> = rows.filter_map(bytes).collect();
    match Repeated::of(&values) {
        Some(repeated) => repeated.write(writer),
        None => {
            writer.byte(BYTES);
            write_values(writer, &values);
        }
    }
}

/// The words at these rows, without those that are NULL.
fn words_of(column: &ArrayCells<'_>, rows: Range<usize>, has_null: bool) -> Vec<u64> {
    let mut words = Vec::with_capacity(rows.len());
    if has_null || !column.each_word(rows.clone(), |_, word| words.push(word)) {
        words.extend(rows.filter_map(|row| if let Cell::Word(word) = column.get(row) { Some(word) } else { None }));
    }
    words
}

fn write_values(writer: &mut Writer, values: &[&[u8]]) {
    let lengths: Vec<u64> = values.iter().map(|value| value.len() as u64).collect();
    writer.numbers(&lengths);
    writer.number(lengths.iter().sum());
    values.iter().for_each(|value| writer.bytes(value));
}

/// Values of which most are repeated.
struct Repeated<'a> {
    entries: Vec<&'a [u8]>,
    /// of each value, which entry it is
    codes: Vec<u64>,
}

impl<'a> Repeated<'a> {
    /// The values at these rows, of which none is NULL, told apart by their views alone; `None` if few of those are repeated, or there
    /// are none.
    fn of_views(column: &ArrayCells<'a>, rows: Range<usize>) -> Option<Repeated<'a>> {
        let views = &column.views()?[rows.clone()];
        let value = |row| if let Cell::Bytes(bytes) = column.get(row) { bytes } else { &[] };
        Repeated::by(views.iter().copied(), |at| value(rows.start + at))
    }

    /// `None` if few are repeated.
    fn of(values: &[&'a [u8]]) -> Option<Repeated<'a>> {
        Repeated::by(values.iter().copied(), |at| values[at])
    }

    /// By what values are told apart, each with its place.
    fn by<K: Hash + Eq>(
        keys: impl ExactSizeIterator<Item = K>,
        value: impl Fn(usize) -> &'a [u8],
    ) -> Option<Repeated<'a>> {
        let (count, mut known) = (keys.len(), HashMap::<K, u64, FixedState>::default());
        let mut repeated = Repeated { entries: Vec::new(), codes: Vec::with_capacity(count) };
        for (at, key) in keys.enumerate() {
            let next = repeated.entries.len();
            let code = *known.entry(key).or_insert(next as u64);
            if code == next as u64 {
                repeated.entries.push(value(at));
            }
            if next >= ENTRIES_MAX {
                return None;
            }
            repeated.codes.push(code);
        }
        (repeated.entries.len() * 2 <= count).then_some(repeated)
    }

    fn write(&self, writer: &mut Writer) {
        writer.byte(CODES);
        writer.number(self.entries.len() as u64);
        write_values(writer, &self.entries);
        writer.numbers(&self.codes);
    }
}

/// Rows that were read from their bytes, of which nothing is believed.
#[derive(Debug)]
pub struct WrittenRows<'a> {
    len: usize,
    columns: Vec<Column<'a>>,
}

#[derive(Debug)]
struct Column<'a> {
    /// a bit for each row that has a value; `None` if all have one
    valid: Option<Vec<u64>>,
    values: Values<'a>,
}

#[derive(Debug)]
enum Values<'a> {
    Words(std::vec::IntoIter<u64>),
    Bytes(std::vec::IntoIter<&'a [u8]>),
    Codes { entries: Vec<&'a [u8]>, codes: std::vec::IntoIter<u64> },
}

impl<'a> WrittenRows<'a> {
    /// Reads rows with columns of these types.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn read(bytes: &'a [u8], types: &[DataType]) -> Result<WrittenRows<'a>, String> {
        let read = |mut reader: Reader<'a>| -> Result<WrittenRows<'a>, Damage> {
            let len = reader.count(ROWS_MAX, "rows")?;
            let columns = types.iter().map(|data_type| read_column(&mut reader, *data_type, len));
            let columns = columns.collect::<Result<_, _>>()?;
            reader.check_end()?;
            Ok(WrittenRows { len, columns })
        };
        read(Reader::new(bytes, "list of rows")).map_err(|damage| damage.to_string())
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Passes the rows on, one by one, with their places, as long as none fails.
    ///
    /// # Errors
    /// What `take` fails with.
    pub fn each<E>(mut self, mut take: impl FnMut(usize, &[Cell<'_>]) -> Result<(), E>) -> Result<(), E> {
        let mut cells = Vec::with_capacity(self.columns.len());
        for at in 0..self.len {
            cells.clear();
            cells.extend(self.columns.iter_mut().map(|column| column.next(at)));
            take(at, &cells)?;
        }
        Ok(())
    }
}

impl<'a> Column<'a> {
    /// The value of the row at this place, whose turn it is.
    fn next(&mut self, at: usize) -> Cell<'a> {
        if self.valid.as_ref().is_some_and(|valid| valid[at / 64] >> (at % 64) & 1 == 0) {
            return Cell::Null;
        }
        let cell = match &mut self.values {
            Values::Words(words) => words.next().map(Cell::Word),
            Values::Bytes(values) => values.next().map(Cell::Bytes),
            Values::Codes { entries, codes } => codes.next().map(|code| Cell::Bytes(entries[code as usize])),
        };
        cell.unwrap_or(Cell::Null)
    }
}

fn read_column<'a>(reader: &mut Reader<'a>, data_type: DataType, rows: usize) -> Result<Column<'a>, Damage> {
    let (mut valid, mut count) = (None, rows);
    if reader.flag("has NULLs")? {
        let bits = reader.array::<u64>(rows.div_ceil(64), "valid rows")?;
        let is_beyond = !rows.is_multiple_of(64) && bits.last().is_some_and(|last| last >> (rows % 64) != 0);
        reader.check(!is_beyond, || format!("has valid rows beyond {rows}"))?;
        count = bits.iter().map(|bits| bits.count_ones() as usize).sum();
        valid = Some(bits);
    }
    let form = reader.byte("the form of values")?;
    reader.check(is_wide(data_type) == (form != WORDS), || format!("has {data_type} in form {form}"))?;
    let values = match form {
        WORDS => {
            let words = reader.numbers_of(count, "words")?;
            words.iter().try_for_each(|word| check_word(reader, *word, data_type))?;
            Values::Words(words.into_iter())
        }
        BYTES => Values::Bytes(read_values(reader, data_type, count)?.into_iter()),
        CODES => {
            let entries = reader.count(ENTRIES_MAX, "entries")?;
            let entries = read_values(reader, data_type, entries)?;
            let codes = reader.numbers_of(count, "codes")?;
            let is_known = codes.iter().all(|code| *code < entries.len() as u64);
            reader.check(is_known, || "has codes without an entry".into())?;
            Values::Codes { entries, codes: codes.into_iter() }
        }
        form => return Err(reader.damage(&format!("has values in form {form}"))),
    };
    Ok(Column { valid, values })
}

fn read_values<'a>(reader: &mut Reader<'a>, data_type: DataType, count: usize) -> Result<Vec<&'a [u8]>, Damage> {
    let lengths = reader.numbers_of(count, "lengths")?;
    let size = reader.count(usize::MAX, "the size of values")?;
    let (mut left, mut values) = (reader.bytes(size, "values")?, Vec::with_capacity(count));
    for length in lengths {
        let split = usize::try_from(length).ok().and_then(|length| left.split_at_checked(length));
        let (value, rest) = split.ok_or_else(|| reader.damage("has longer values than bytes"))?;
        check_bytes(reader, value, data_type)?;
        values.push(value);
        left = rest;
    }
    reader.check(left.is_empty(), || format!("has {} bytes that belong to no value", left.len()))?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringViewArray};
    use proptest::prelude::*;

    use super::*;

    const TYPES: [DataType; 4] = [DataType::BigInt, DataType::BigInt, DataType::TEXT, DataType::TEXT];

    fn cells(arrays: &[ArrayRef]) -> Vec<ArrayCells<'_>> {
        arrays.iter().zip(TYPES).map(|(array, of)| ArrayCells::new(array.as_ref(), of)).collect()
    }

    fn arrays(rows: &[(i64, Option<i64>, Option<u8>, String)]) -> Vec<ArrayRef> {
        let repeated = |row: &(i64, Option<i64>, Option<u8>, String)| row.2.map(|n| format!("kind {}", n % 5));
        vec![
            Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()),
            Arc::new(rows.iter().map(repeated).collect::<StringViewArray>()),
            Arc::new(rows.iter().map(|row| Some(row.3.as_str())).collect::<StringViewArray>()),
        ]
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_were_written(
            rows in prop::collection::vec((any::<i64>(), any::<Option<i64>>(), any::<Option<u8>>(), ".{0,9}"), 1..300),
            cut in any::<prop::sample::Index>(),
            flipped in any::<(prop::sample::Index, u8)>(),
        ) {
            let arrays = arrays(&rows);
            let columns = cells(&arrays);
            let from = cut.index(rows.len());
            let mut bytes = b"before".to_vec();
            write_rows(&mut bytes, &columns, from..rows.len());
            let bytes = &bytes[6..];
            let read = WrittenRows::read(bytes, &TYPES).unwrap();
            prop_assert_eq!(read.len(), rows.len() - from);
            read.each(|at, cells| {
                let expected: Vec<_> = columns.iter().map(|column| column.get(from + at)).collect();
                if cells == expected { Ok(()) } else { Err(format!("{cells:?}, not {expected:?}")) }
            }).unwrap();
            // Damaged bytes are refused, or are other rows of these types.
            let mut damaged = bytes.to_vec();
            let place = flipped.0.index(damaged.len());
            damaged[place] ^= flipped.1;
            if let Ok(rows) = WrittenRows::read(&damaged, &TYPES) {
                rows.each(|_, cells| if cells.len() == TYPES.len() { Ok(()) } else { Err(cells.len()) }).unwrap();
            }
            prop_assert!(WrittenRows::read(&bytes[..bytes.len() - 1], &TYPES).is_err());
            prop_assert!(WrittenRows::read(bytes, &TYPES[..3]).is_err(), "bytes are left");
        }
    }

    #[test]
    fn what_repeats_takes_little() {
        let arrays = arrays(&(0..1_024).map(|n| (n, Some(7), Some(n as u8), "x".into())).collect::<Vec<_>>());
        let mut bytes = Vec::new();
        write_rows(&mut bytes, &cells(&arrays), 0..1_024);
        assert!(bytes.len() < 1_024 * 3, "{} bytes", bytes.len());
    }
}
