//! The values that a client binds to parameters.
use engine::{DataType, Interval, Value};

use super::numeric::{self, Wrong};
use super::pairs;
use super::{EPOCH_DAYS, EPOCH_MICROS, oids, spaces};
use crate::error::SqlError;
use crate::values::pg_types;
use crate::values::{clock, read_value};

/// Reads the value of parameter number `at` (from 0) in the form in which it came. `oid` is the type that the client has
/// said, or 0.
///
/// # Errors
/// Where it is no value of the type.
pub fn read(bytes: &[u8], format: i16, data_type: DataType, oid: u32, at: usize) -> Result<Value, SqlError> {
    if format == 0 {
        let text = text_of(bytes)?;
        return read_value(text, data_type);
    }
    binary(bytes, data_type, oid).map_err(|wrong| match wrong {
        Wrong::Form => SqlError::new("22P03", format!("incorrect binary data format in bind parameter {}", at + 1)),
        Wrong::Range => SqlError::new("22003", format!("value out of range in bind parameter {}", at + 1)),
    })?
}

fn text_of(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let bad = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        SqlError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": 0x{bad:02x}"))
    })
}

/// Reads a value in its binary form; inside, what is wrong with a value of the right form.
pub(crate) fn binary(bytes: &[u8], data_type: DataType, oid: u32) -> Result<Result<Value, SqlError>, Wrong> {
    Ok(Ok(match data_type {
        DataType::Boolean => match bytes {
            [value] => Value::Boolean(*value != 0),
            _ => return Err(Wrong::Form),
        },
        DataType::SmallInt => Value::SmallInt(i16::from_be_bytes(exactly(bytes)?)),
        DataType::Integer => Value::Integer(i32::from_be_bytes(exactly(bytes)?)),
        DataType::BigInt if oid == oids::OID => Value::BigInt(u32::from_be_bytes(exactly(bytes)?).into()),
        DataType::BigInt => Value::BigInt(i64::from_be_bytes(exactly(bytes)?)),
        DataType::Real => Value::Real(f32::from_be_bytes(exactly(bytes)?)),
        DataType::Double => Value::Double(f64::from_be_bytes(exactly(bytes)?)),
        DataType::Decimal { .. } | DataType::Numeric => numeric::read(bytes)?,
        DataType::Bytea => Value::Bytea(bytes.to_vec()),
        DataType::Date => {
            let days = i32::from_be_bytes(exactly(bytes)?);
            match days {
                // The ends of time.
                i32::MIN | i32::MAX => Value::Date(days),
                _ => Value::Date(days.checked_add(EPOCH_DAYS).ok_or(Wrong::Range)?),
            }
        }
        DataType::Timestamp => Value::Timestamp(micros(bytes)?),
        DataType::TimestampTz => Value::TimestampTz(micros(bytes)?),
        DataType::Uuid => Value::Uuid(exactly(bytes)?),
        DataType::Array(item) => {
            let number = oids::of_type(item.data_type());
            return Ok(match array_text(bytes, number)? {
                Ok(text) => read_value(&text.to_string(), data_type),
                Err(error) => Err(error),
            });
        }
        DataType::Range(kind) => return spaces::range(bytes, kind),
        DataType::Geometry(kind) => return spaces::geometry(bytes, kind),
        DataType::Network(kind) => return spaces::network(bytes, kind),
        DataType::TimeTz => spaces::zoned_time(bytes)?,
        DataType::TimeDigits { of, digits } => {
            return Ok(binary(bytes, of.whole(), oid)?.map(|value| clock::kept(value, of, digits)));
        }
        DataType::Json | DataType::Enum(_) => {
            return Ok(text_of(bytes).and_then(|text| read_value(text, data_type)));
        }
        DataType::Jsonb => match bytes {
            // The number of the form.
            [1, text @ ..] => return Ok(text_of(text).and_then(|text| read_value(text, data_type))),
            _ => return Err(Wrong::Form),
        },
        DataType::Time => match i64::from_be_bytes(exactly(bytes)?) {
            micros @ 0..=86_400_000_000 => Value::Time(micros),
            _ => return Err(Wrong::Range),
        },
        DataType::Interval => {
            let (micros, rest) = bytes.split_at_checked(8).ok_or(Wrong::Form)?;
            let (days, months) = rest.split_at_checked(4).ok_or(Wrong::Form)?;
            let days = i32::from_be_bytes(exactly(days)?);
            let months = i32::from_be_bytes(exactly(months)?);
            Value::Interval(Interval { months, days, micros: i64::from_be_bytes(exactly(micros)?) })
        }
        DataType::HSTORE if matches!(oid, 0 | pg_types::HSTORE) => Value::Text(pairs::read(bytes).ok_or(Wrong::Form)?),
        DataType::Text { .. } | DataType::Char { .. } => return text(bytes, data_type, oid),
    }))
}

/// The dimensions that an array may have.
pub(super) const DIMENSIONS_MAX: usize = 6;

/// The error of an array of more dimensions than there may be.
pub(super) fn too_many_dimensions(dimensions: usize) -> SqlError {
    let message = format!("number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS_MAX})");
    SqlError::new("54000", message)
}

/// Reads a text, or what is given as one.
fn text(bytes: &[u8], data_type: DataType, oid: u32) -> Result<Result<Value, SqlError>, Wrong> {
    // The length of a text is looked at where it is put into a column.
    let of = if data_type == DataType::HSTORE { data_type } else { DataType::TEXT };
    match oid {
        0 | oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::NAME | oids::UNKNOWN | pg_types::CITEXT => {
            Ok(text_of(bytes).and_then(|text| read_value(text, of)))
        }
        array if let Some(item) = oids::item_of(array) => array_text(bytes, item),
        other => {
            let message = format!("binary input of parameters of type {other} is not supported");
            Ok(Err(SqlError::new("0A000", message)))
        }
    }
}

/// The text of an array: `{"1","2",NULL}`, `{{"1"},{"2"}}`.
fn array_text(bytes: &[u8], item: u32) -> Result<Result<Value, SqlError>, Wrong> {
    let mut rest = bytes;
    let mut number = || -> Result<u32, Wrong> {
        let (number, others) = rest.split_at_checked(4).ok_or(Wrong::Form)?;
        rest = others;
        Ok(u32::from_be_bytes(exactly(number)?))
    };
    let (dimensions, _has_null, sent_item) = (number()?, number()?, number()?);
    let dimensions = usize::try_from(dimensions).map_err(|_| Wrong::Form)?;
    if dimensions > DIMENSIONS_MAX {
        return Ok(Err(too_many_dimensions(dimensions)));
    }
    let lengths = (0..dimensions).map(|_| Ok((number()?, number()?).0)).collect::<Result<Vec<u32>, Wrong>>()?;
    // So many items are within one array of each dimension.
    let mut counts: Vec<u32> = Vec::new();
    for length in lengths.iter().rev() {
        counts.push(counts.last().copied().unwrap_or(1).checked_mul(*length).ok_or(Wrong::Form)?);
    }
    let count = counts.pop().unwrap_or(0);
    let data_type = oids::parameter_type(item).unwrap_or(DataType::TEXT);
    // Drivers send a list of texts as one of any of their types.
    let is_text = |number: u32| {
        matches!(number, oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::NAME | oids::UNKNOWN | pg_types::CITEXT)
    };
    if sent_item != item && !(is_text(sent_item) && is_text(item)) {
        return Err(Wrong::Form);
    }
    let mut text = String::from("{");
    for at in 0..count {
        let (length, others) = rest.split_at_checked(4).ok_or(Wrong::Form)?;
        rest = others;
        text.push_str(if at > 0 { "," } else { "" });
        counts.iter().filter(|within| at % **within == 0).for_each(|_| text.push('{'));
        let length = u32::from_be_bytes(exactly(length)?);
        if length == u32::MAX {
            text.push_str("NULL");
        } else {
            let length = usize::try_from(length).map_err(|_| Wrong::Form)?;
            let (value, others) = rest.split_at_checked(length).ok_or(Wrong::Form)?;
            rest = others;
            match binary(value, data_type, item)? {
                Ok(value) => {
                    let shown = value.to_string().replace('\\', "\\\\").replace('"', "\\\"");
                    text.extend(["\"", &shown, "\""]);
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        counts.iter().filter(|within| (at + 1) % **within == 0).for_each(|_| text.push('}'));
    }
    text.push('}');
    if rest.is_empty() { Ok(Ok(Value::Text(text))) } else { Err(Wrong::Form) }
}

fn micros(bytes: &[u8]) -> Result<i64, Wrong> {
    match i64::from_be_bytes(exactly(bytes)?) {
        // The ends of time.
        infinite @ (i64::MIN | i64::MAX) => Ok(infinite),
        micros => micros.checked_add(EPOCH_MICROS).ok_or(Wrong::Range),
    }
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Wrong> {
    bytes.try_into().map_err(|_| Wrong::Form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(bytes: &[u8], data_type: DataType) -> Result<Value, &'static str> {
        read(bytes, 1, data_type, 0, 0).map_err(|error| error.sqlstate)
    }

    #[test]
    fn values_are_read_in_both_forms() {
        assert_eq!(binary(&[0, 0, 1, 0], DataType::Integer), Ok(Value::Integer(256)));
        assert_eq!(binary(&[0, 0, 1], DataType::Integer), Err("22P03"));
        assert_eq!(binary(&0_i32.to_be_bytes(), DataType::Date), Ok(Value::Date(EPOCH_DAYS)));
        assert_eq!(binary(&i64::MAX.to_be_bytes(), DataType::Timestamp), Ok(Value::Timestamp(i64::MAX)));
        assert_eq!(binary(&(i64::MAX - 1).to_be_bytes(), DataType::Timestamp), Err("22003"));
        assert_eq!(binary(&[0xff], DataType::TEXT), Err("22021"));
        assert_eq!(read(b"12", 0, DataType::SmallInt, 0, 0), Ok(Value::SmallInt(12)));
        assert_eq!(read(b"x", 0, DataType::SmallInt, 0, 0).unwrap_err().sqlstate, "22P02");
        assert_eq!(read(b"\0\0\0\x07", 1, DataType::BigInt, oids::OID, 0), Ok(Value::BigInt(7)));
        let array = b"\0\0\0\x01\0\0\0\x01\0\0\0\x19\0\0\0\x02\0\0\0\x01\0\0\0\x03a\"\\\xff\xff\xff\xff";
        assert_eq!(read(array, 1, DataType::TEXT, 1009, 0), Ok(Value::Text(r#"{"a\"\\",NULL}"#.to_owned())));
        let as_varchars = b"\0\0\0\x01\0\0\0\0\0\0\x04\x13\0\0\0\x01\0\0\0\x01\0\0\0\x01b";
        assert_eq!(read(as_varchars, 1, DataType::TEXT, 1009, 0), Ok(Value::Text(r#"{"b"}"#.to_owned())));
        assert_eq!(read(&array[..30], 1, DataType::TEXT, 1009, 0).unwrap_err().sqlstate, "22P03");
        assert_eq!(read(&[0; 12], 1, DataType::TEXT, 1009, 0).unwrap_err().sqlstate, "22P03");
        assert_eq!(read(b"{}", 1, DataType::TEXT, 600, 0).unwrap_err().sqlstate, "0A000");
        assert_eq!(read(b"\x01[1 ]", 1, DataType::Jsonb, 0, 0).map(|value| value.to_string()), Ok("[1]".to_owned()));
        assert_eq!(
            (binary(b"\x02[]", DataType::Jsonb), binary(b"\x01[", DataType::Jsonb)),
            (Err("22P03"), Err("22P02"))
        );
        assert_eq!(binary(b"[ 1 ]", DataType::Json), Ok(Value::Json("[ 1 ]".to_owned())));
        let span = b"\0\0\0\0\0\0\0\x07\xff\xff\xff\xff\0\0\0\x01";
        assert_eq!(binary(span, DataType::Interval), Ok(Value::Interval(Interval { months: 1, days: -1, micros: 7 })));
        assert_eq!(
            (binary(&span[1..], DataType::Interval), binary(&span[..9], DataType::Interval)),
            (Err("22P03"), Err("22P03"))
        );
        assert_eq!(binary(&7_i64.to_be_bytes(), DataType::Time), Ok(Value::Time(7)));
    }
}
