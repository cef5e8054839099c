//! The values that a client binds to parameters.
use sql::SqlError;
use types::{DataType, Value};

use super::numeric::{self, Wrong};
use super::{EPOCH_DAYS, EPOCH_MICROS, oids};

/// Reads the value of parameter number `at` (from 0) in the form in which it came. `oid` is the type that the client has
/// said, or 0.
pub(crate) fn read(bytes: &[u8], format: i16, data_type: DataType, oid: u32, at: usize) -> Result<Value, SqlError> {
    if format == 0 {
        let text = text_of(bytes)?;
        return sql::read_value(text, data_type);
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

fn binary(bytes: &[u8], data_type: DataType, oid: u32) -> Result<Result<Value, SqlError>, Wrong> {
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
        DataType::Decimal { .. } => Value::Decimal(numeric::read(bytes)?),
        DataType::Bytea => Value::Bytea(bytes.to_vec()),
        DataType::Date => {
            let days = i32::from_be_bytes(exactly(bytes)?);
            Value::Date(days.checked_add(EPOCH_DAYS).ok_or(Wrong::Range)?)
        }
        DataType::Timestamp => Value::Timestamp(micros(bytes)?),
        DataType::TimestampTz => Value::TimestampTz(micros(bytes)?),
        DataType::Uuid => Value::Uuid(exactly(bytes)?),
        DataType::Text { .. } => match oid {
            0 | oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::NAME | oids::UNKNOWN => {
                return Ok(text_of(bytes).and_then(|text| sql::read_value(text, DataType::TEXT)));
            }
            other => {
                let message = format!("binary input of parameters of type {other} is not supported");
                return Ok(Err(SqlError::new("0A000", message)));
            }
        },
    }))
}

fn micros(bytes: &[u8]) -> Result<i64, Wrong> {
    i64::from_be_bytes(exactly(bytes)?).checked_add(EPOCH_MICROS).ok_or(Wrong::Range)
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
        assert_eq!(binary(&i64::MAX.to_be_bytes(), DataType::Timestamp), Err("22003"));
        assert_eq!(binary(&[0xff], DataType::TEXT), Err("22021"));
        assert_eq!(read(b"12", 0, DataType::SmallInt, 0, 0), Ok(Value::SmallInt(12)));
        assert_eq!(read(b"x", 0, DataType::SmallInt, 0, 0).unwrap_err().sqlstate, "22P02");
        assert_eq!(read(b"\0\0\0\x07", 1, DataType::BigInt, oids::OID, 0), Ok(Value::BigInt(7)));
        assert_eq!(read(b"{}", 1, DataType::TEXT, 114, 0).unwrap_err().sqlstate, "0A000");
    }
}
