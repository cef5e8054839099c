//! Single values: what bits and bytes a type may have, and columns of values that belong to scattered records.
//!
//! ```text
//! cells   | for each column of words: packed | for each column of bytes: lengths, packed | size | bytes end to end |
//! ```
//!
//! NULLs and values that are not there take no place; the reader knows which records have a value.
use types::{DataType, has_at_most};

use super::{Damage, Reader, Writer};
use crate::value::cell::{Cell, Storage, is_wide, words_of};

/// The first of so many digits that a decimal does not have.
fn decimal_end(precision: u8) -> u128 {
    10u128.checked_pow(u32::from(precision)).unwrap_or(u128::MAX)
}

/// The least and the greatest key of a type of at most 64 bits; see `encoding`.
pub(crate) fn keys_of(data_type: DataType) -> (i64, i64) {
    match Storage::of(data_type) {
        Storage::F32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => words_of(data_type),
    }
}

/// Whether a word is that of a value of the type.
pub(crate) fn check_word(reader: &Reader<'_>, word: u64, data_type: DataType) -> Result<(), Damage> {
    let (least, greatest) = words_of(data_type);
    reader.check((least..=greatest).contains(&(word as i64)), || format!("has {} as {data_type}", word as i64))
}

/// Whether bytes are those of a value of the type.
pub(crate) fn check_bytes(reader: &Reader<'_>, bytes: &[u8], data_type: DataType) -> Result<(), Damage> {
    match Storage::of(data_type) {
        Storage::WideDecimal => {
            let digits: Result<[u8; 16], _> = bytes.try_into();
            let digits = digits.map_err(|_| reader.damage(&format!("has a decimal of {} bytes", bytes.len())))?;
            check_decimal(reader, i128::from_le_bytes(digits), data_type)
        }
        Storage::Text => match std::str::from_utf8(bytes) {
            Ok(text) => check_length(reader, text, data_type),
            Err(error) => Err(reader.damage(&format!("has text that is no UTF-8: {error}"))),
        },
        _ => Ok(()),
    }
}

/// Whether text is as short as its type says.
pub(crate) fn check_length(reader: &Reader<'_>, text: &str, data_type: DataType) -> Result<(), Damage> {
    let (DataType::Text { max_chars: Some(max) } | DataType::Char { chars: max }) = data_type else { return Ok(()) };
    reader.check(has_at_most(text, max), || format!("has text of {} bytes as {data_type}", text.len()))
}

/// Whether a decimal has as few digits as its type says.
pub(crate) fn check_decimal(reader: &Reader<'_>, digits: i128, data_type: DataType) -> Result<(), Damage> {
    let DataType::Decimal { precision, .. } = data_type else { return Ok(()) };
    reader.check(digits.unsigned_abs() < decimal_end(precision), || format!("has {digits} as digits of {data_type}"))
}

/// Collects the values of a column.
enum Column {
    Words(Vec<u64>),
    Bytes { lengths: Vec<u64>, bytes: Vec<u8> },
}

/// Collects values column by column.
pub(crate) struct CellsWriter {
    columns: Vec<Column>,
}

impl CellsWriter {
    pub(crate) fn new(types: &[DataType]) -> CellsWriter {
        let column = |data_type: &DataType| match is_wide(*data_type) {
            true => Column::Bytes { lengths: vec![], bytes: vec![] },
            false => Column::Words(vec![]),
        };
        CellsWriter { columns: types.iter().map(column).collect() }
    }

    /// Adds a value to its column. Returns whether it is one, and not NULL.
    pub(crate) fn push(&mut self, column: usize, cell: Cell<'_>) -> bool {
        match (&mut self.columns[column], cell) {
            (_, Cell::Null) => return false,
            (Column::Words(words), Cell::Word(word)) => words.push(word),
            (Column::Bytes { lengths, bytes }, Cell::Bytes(value)) => {
                lengths.push(value.len() as u64);
                bytes.extend_from_slice(value);
            }
            _ => unreachable!("a column's cells are of one kind"),
        }
        true
    }

    pub(crate) fn finish(&self, writer: &mut Writer) {
        for column in &self.columns {
            match column {
                Column::Words(words) => writer.numbers(words),
                Column::Bytes { lengths, bytes } => {
                    writer.numbers(lengths);
                    writer.number(bytes.len() as u64);
                    writer.bytes(bytes);
                }
            }
        }
    }
}

/// The values of a column that were not handed out yet.
enum Cursor<'a> {
    Words(std::vec::IntoIter<u64>),
    Bytes { lengths: std::vec::IntoIter<u64>, left: &'a [u8] },
}

/// Hands out values column by column, in the order in which they were put in.
pub(crate) struct CellsReader<'a> {
    columns: Vec<Cursor<'a>>,
}

impl<'a> CellsReader<'a> {
    /// Reads columns of so many values each.
    pub(crate) fn read(
        reader: &mut Reader<'a>,
        types: &[DataType],
        counts: &[usize],
    ) -> Result<CellsReader<'a>, Damage> {
        let mut columns = Vec::with_capacity(types.len());
        for (data_type, count) in types.iter().zip(counts) {
            let numbers = reader.numbers_of(*count, "values")?;
            if !is_wide(*data_type) {
                numbers.iter().try_for_each(|word| check_word(reader, *word, *data_type))?;
                columns.push(Cursor::Words(numbers.into_iter()));
                continue;
            }
            let size = reader.count(usize::MAX, "the size of values")?;
            let bytes = reader.bytes(size, "values")?;
            let mut left = bytes;
            for length in &numbers {
                let split = usize::try_from(*length).ok().and_then(|length| left.split_at_checked(length));
                let (value, rest) = split.ok_or_else(|| reader.damage("has longer values than bytes"))?;
                check_bytes(reader, value, *data_type)?;
                left = rest;
            }
            reader.check(left.is_empty(), || format!("has {} bytes that belong to no value", left.len()))?;
            columns.push(Cursor::Bytes { lengths: numbers.into_iter(), left: bytes });
        }
        Ok(CellsReader { columns })
    }

    /// The next value of a column; NULL where there is none left.
    pub(crate) fn next(&mut self, column: usize) -> Cell<'a> {
        match &mut self.columns[column] {
            Cursor::Words(words) => words.next().map_or(Cell::Null, Cell::Word),
            Cursor::Bytes { lengths, left } => match lengths.next() {
                Some(length) => {
                    let (value, rest) = left.split_at(length as usize);
                    *left = rest;
                    Cell::Bytes(value)
                }
                None => Cell::Null,
            },
        }
    }
}
