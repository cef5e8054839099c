//! Rows of a batch as messages. The type and form of each column are looked at once for a batch, not for each value.
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, BinaryViewArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    StringViewArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::arrow::buffer::NullBuffer;
use engine::DataType;

use super::encodings::{self, Encoding};
use super::pairs;
use super::{EPOCH_DAYS, EPOCH_MICROS, binary, oids};
use crate::error::SqlError;
pub use crate::values::blanks::blanks_to;
use crate::values::blanks::{fill, missing, put_blanks};
use crate::values::pg_types;
use crate::values::text::text_value;
use crate::values::text_column::TextColumn;
use crate::values::types::vector_text;

/// A column of a batch, and how its values are written.
#[expect(missing_debug_implementations, reason = "arrays and writers of their text")]
pub struct Column<'a> {
    array: &'a dyn Array,
    nulls: Option<&'a NullBuffer>,
    is_all_null: bool,
    oid: u32,
    is_binary: bool,
    is_vector: bool,
    /// How many characters a value is filled up to with blanks.
    chars: u32,
    values: Values<'a>,
    text: TextColumn<'a>,
    /// The values, where these are texts that are written as they are.
    as_they_are: Option<&'a StringViewArray>,
    /// Into which texts are brought.
    encoding: Option<&'static Encoding>,
}

/// The arrays that are common, each as what it is.
enum Values<'a> {
    Boolean(&'a BooleanArray),
    Int16(&'a Int16Array),
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    Float32(&'a Float32Array),
    Float64(&'a Float64Array),
    Text(&'a StringViewArray),
    Uuid(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
    Date(&'a Date32Array),
    Timestamp(&'a TimestampMicrosecondArray),
    Other,
}

impl<'a> Column<'a> {
    /// A column whose values are written in the text (0) or binary (1) form of a type.
    pub fn new(array: &'a dyn Array, oid: u32, format: i16) -> Column<'a> {
        let values = match array.data_type() {
            ArrowType::Boolean => Values::Boolean(array.as_boolean()),
            ArrowType::Int16 => Values::Int16(array.as_primitive::<Int16Type>()),
            ArrowType::Int32 => Values::Int32(array.as_primitive::<Int32Type>()),
            ArrowType::Int64 => Values::Int64(array.as_primitive::<Int64Type>()),
            ArrowType::Float32 => Values::Float32(array.as_primitive::<Float32Type>()),
            ArrowType::Float64 => Values::Float64(array.as_primitive::<Float64Type>()),
            ArrowType::Utf8View if oid == oids::UUID => Values::Uuid(array.as_string_view()),
            ArrowType::Utf8View => Values::Text(array.as_string_view()),
            ArrowType::BinaryView => Values::Bytes(array.as_binary_view()),
            ArrowType::Date32 => Values::Date(array.as_primitive::<Date32Type>()),
            ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
                Values::Timestamp(array.as_primitive::<TimestampMicrosecondType>())
            }
            _ => Values::Other,
        };
        let (is_binary, is_vector) = (format == 1, oids::item_of_vector(oid).is_some());
        let as_they_are = match values {
            Values::Text(texts) if oid != pg_types::HSTORE && !is_vector => Some(texts),
            _ => None,
        };
        Column {
            array,
            nulls: array.nulls(),
            is_all_null: array.data_type().is_null(),
            oid,
            is_binary,
            is_vector,
            chars: 0,
            values,
            text: TextColumn::new(array),
            as_they_are,
            encoding: None,
        }
    }

    /// The column with each value filled up to so many characters with blanks, as those of a `char(n)` are ([`blanks_to`]).
    #[must_use]
    pub fn filled_to(self, chars: u32) -> Column<'a> {
        Column { chars, ..self }
    }

    /// The column with its texts in this encoding.
    #[must_use]
    pub fn in_encoding(self, encoding: Option<&'static Encoding>) -> Column<'a> {
        let as_they_are = self.as_they_are.filter(|_| encoding.is_none());
        Column { encoding, as_they_are, ..self }
    }

    /// Appends a value with its length.
    ///
    /// # Errors
    /// Where the type has no such form.
    pub fn put(&self, out: &mut Vec<u8>, row: usize) -> Result<(), SqlError> {
        if self.is_all_null || self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            return Ok(());
        }
        if let Some(texts) = self.as_they_are {
            return self.put_as_it_is(out, texts.value(row).as_bytes());
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self.is_binary {
            true => self.put_binary(out, row)?,
            false => self.put_text(out, row),
        }
        if self.chars > 0 {
            fill(out, start + 4, self.chars);
        }
        if let Some(encoding) = self.encoding.filter(|_| !self.is_binary || encodings::is_text(self.oid)) {
            encoding.encode_from(out, start + 4)?;
        }
        let length = length_of(out.len() - start - 4)?;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// Appends a text with its length, which is known before, and its blanks.
    fn put_as_it_is(&self, out: &mut Vec<u8>, text: &[u8]) -> Result<(), SqlError> {
        let blanks = if self.chars == 0 { 0 } else { missing(text, self.chars) };
        out.extend_from_slice(&length_of(text.len() + blanks)?.to_be_bytes());
        out.extend_from_slice(text);
        put_blanks(out, blanks);
        Ok(())
    }

    fn put_text(&self, out: &mut Vec<u8>, row: usize) {
        if self.is_vector {
            out.extend_from_slice(vector_text(&text_value(self.array, row).unwrap_or_default()).as_bytes());
        } else {
            self.text.append_value(out, row);
        }
    }

    fn put_binary(&self, out: &mut Vec<u8>, row: usize) -> Result<(), SqlError> {
        match self.values {
            Values::Boolean(values) => out.push(u8::from(values.value(row))),
            Values::Int16(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            Values::Int32(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            // The catalog's numbers are told as shorter ones.
            Values::Int64(values) if matches!(self.oid, oids::INT4 | oids::OID) => {
                out.extend_from_slice(&(values.value(row) as u32).to_be_bytes());
            }
            Values::Int64(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            Values::Float32(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            Values::Float64(values) => out.extend_from_slice(&values.value(row).to_be_bytes()),
            Values::Text(values) if self.oid == pg_types::HSTORE => pairs::put(out, values.value(row)),
            Values::Text(values) => out.extend_from_slice(values.value(row).as_bytes()),
            Values::Bytes(values) => out.extend_from_slice(values.value(row)),
            Values::Uuid(values) => {
                let digits = values.value(row).bytes().filter(|byte| *byte != b'-').collect::<Vec<u8>>();
                out.extend(digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | hex(*digit))));
            }
            Values::Date(values) => {
                out.extend_from_slice(
                    &since(values.value(row), i32::MAX, |days| days.saturating_sub(EPOCH_DAYS)).to_be_bytes(),
                );
            }
            Values::Timestamp(values) => {
                out.extend_from_slice(
                    &since(values.value(row), i64::MAX, |micros| micros.saturating_sub(EPOCH_MICROS)).to_be_bytes(),
                );
            }
            Values::Other => return self.put_other(out, row),
        }
        Ok(())
    }

    /// Arrays of types that tables do not have.
    fn put_other(&self, out: &mut Vec<u8>, row: usize) -> Result<(), SqlError> {
        match self.oid {
            oids::INT2 | oids::INT4 | oids::INT8 => {
                let text = text_value(self.array, row).unwrap_or_default();
                let value: i64 = text.parse().map_err(|_| SqlError::new("22003", "bigint out of range"))?;
                let width = match self.oid {
                    oids::INT2 => 2,
                    oids::INT4 => 4,
                    _ => 8,
                };
                out.extend_from_slice(&value.to_be_bytes()[8 - width..]);
                Ok(())
            }
            oids::JSONB => {
                // The number of the form.
                out.push(1);
                out.extend_from_slice(text_value(self.array, row).unwrap_or_default().as_bytes());
                Ok(())
            }
            oids::JSONPATH => {
                out.push(1);
                out.extend_from_slice(text_value(self.array, row).unwrap_or_default().as_bytes());
                Ok(())
            }
            oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::JSON | pg_types::CITEXT => {
                out.extend_from_slice(text_value(self.array, row).unwrap_or_default().as_bytes());
                Ok(())
            }
            oid if let Some(DataType::Enum(_)) = pg_types::made_type(oid) => {
                out.extend_from_slice(text_value(self.array, row).unwrap_or_default().as_bytes());
                Ok(())
            }
            oid => binary::put(out, self.array, row, oid, self.encoding),
        }
    }
}

/// The length of a value as it is told before it.
pub(super) fn length_of(bytes: usize) -> Result<i32, SqlError> {
    i32::try_from(bytes).map_err(|_| SqlError::new("54000", "a value is too long to be sent"))
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20).wrapping_sub(b'a').wrapping_add(10),
    }
}

/// A time since PostgreSQL's epoch; the last one is `infinity` there, too.
fn since<T: PartialEq>(value: T, infinity: T, moved: impl Fn(T) -> T) -> T {
    if value == infinity { value } else { moved(value) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Decimal128Array, Int64Array, ListArray, Time64MicrosecondArray, UInt64Array};

    use super::*;

    fn put(array: impl Array + 'static, oid: u32, format: i16) -> Vec<u8> {
        let array: ArrayRef = Arc::new(array);
        let mut out = Vec::new();
        Column::new(array.as_ref(), oid, format).put(&mut out, 0).unwrap();
        out
    }

    #[test]
    fn values_are_written_in_both_forms() {
        assert_eq!(put(Int32Array::from(vec![-7]), oids::INT4, 0), b"\0\0\0\x02-7");
        assert_eq!(put(Int32Array::from(vec![-7]), oids::INT4, 1), b"\0\0\0\x04\xff\xff\xff\xf9");
        assert_eq!(put(Int32Array::from(vec![None::<i32>]), oids::INT4, 1), b"\xff\xff\xff\xff");
        assert_eq!(put(Date32Array::from(vec![EPOCH_DAYS + 1]), oids::DATE, 1), b"\0\0\0\x04\0\0\0\x01");
        assert_eq!(put(Date32Array::from(vec![EPOCH_DAYS]), oids::DATE, 0), b"\0\0\0\x0a2000-01-01");
        let id = StringViewArray::from(vec!["550e8400-e29b-41d4-a716-446655440000"]);
        let bytes = b"\0\0\0\x10\x55\x0e\x84\0\xe2\x9b\x41\xd4\xa7\x16\x44\x66\x55\x44\0\0";
        assert_eq!(put(id, oids::UUID, 1), bytes);
        assert_eq!(put(UInt64Array::from(vec![3]), oids::INT8, 1), b"\0\0\0\x08\0\0\0\0\0\0\0\x03");
        let time = Time64MicrosecondArray::from(vec![3_600_000_001]);
        assert_eq!(put(time, oids::TIME, 1)[4..], 3_600_000_001_i64.to_be_bytes());
        let number = Decimal128Array::from(vec![15]).with_precision_and_scale(3, 1).unwrap();
        assert_eq!(put(number, oids::NUMERIC, 1)[4..], [0, 2, 0, 0, 0, 0, 0, 1, 0, 1, 0x13, 0x88]);
        let list = ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>([Some([Some(1), None])]);
        assert_eq!(put(list, 1016, 1).len(), 4 + 20 + 12 + 4);
        assert_eq!(put(Int64Array::from(vec![1]), oids::INT8, 0), b"\0\0\0\x011");
    }
}
