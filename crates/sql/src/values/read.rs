//! Single values from their text.
use engine::{DataType, Decimal, Value};

use super::{Misfit, datetime, input};
use crate::error::Result;

/// The value that a text stands for in the input syntax of a type. A `numeric` keeps the digits that it is written with.
///
/// # Errors
/// As PostgreSQL's input functions: 22P02, 22003, 22008, ...
pub fn read_value(text: &str, data_type: DataType) -> Result<Value> {
    read(text, data_type).map_err(|misfit| {
        let error = misfit.error("", data_type, text, "text");
        crate::SqlError { detail: None, ..error }
    })
}

fn read(text: &str, data_type: DataType) -> Result<Value, Misfit> {
    Ok(match data_type {
        DataType::Boolean => Value::Boolean(input::boolean(text)?),
        DataType::SmallInt => Value::SmallInt(input::integer(text)?),
        DataType::Integer => Value::Integer(input::integer(text)?),
        DataType::BigInt => Value::BigInt(input::integer(text)?),
        DataType::Real => Value::Real(input::real(text)?),
        DataType::Double => Value::Double(input::double(text)?),
        DataType::Decimal { .. } => Value::Decimal(number(text)?),
        DataType::Text { max_chars } => Value::Text(input::text(text, max_chars)?.to_owned()),
        DataType::Char { chars } => Value::Text(input::blank_padded(text, chars)?.to_owned()),
        DataType::Bytea => Value::Bytea(input::bytea(text)?),
        DataType::Date => Value::Date(datetime::parse_date(text)?),
        DataType::Timestamp => Value::Timestamp(datetime::parse_timestamp(text, false)?),
        DataType::TimestampTz => Value::TimestampTz(datetime::parse_timestamp(text, true)?),
        DataType::Uuid => {
            let canonical = input::uuid(text)?;
            Value::Uuid(uuid::Uuid::try_parse(&canonical).map_err(|_| Misfit::Syntax)?.into_bytes())
        }
    })
}

/// A number with as many decimals as are written, or as there may be.
fn number(text: &str) -> Result<Decimal, Misfit> {
    let text = text.trim();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let written = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let written = i64::try_from(written).map_err(|_| Misfit::Range)?;
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let scale = i8::try_from(written.saturating_sub(exponent).clamp(0, 38)).unwrap_or(38);
    Ok(Decimal { unscaled: input::decimal(text, 38, scale)?, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_decimals() {
        let money = DataType::Decimal { precision: 5, scale: 1 };
        let of = |text: &str| read(text, money);
        assert_eq!(of("1.50"), Ok(Value::decimal(150, 2)));
        assert_eq!((of("-12e3"), of("12.5e-2")), (Ok(Value::decimal(-12_000, 0)), Ok(Value::decimal(125, 3))));
        assert_eq!((of("NaN"), of("1,5")), (Err(Misfit::NotFinite), Err(Misfit::Syntax)));
    }

    #[test]
    fn texts_become_values_of_their_type_or_errors() {
        assert_eq!(read_value("7", DataType::SmallInt), Ok(Value::SmallInt(7)));
        assert_eq!(read_value("t", DataType::Boolean), Ok(Value::Boolean(true)));
        let id = read_value("550e8400-e29b-41d4-a716-446655440000", DataType::Uuid).unwrap();
        assert_eq!(id.to_string(), "550e8400-e29b-41d4-a716-446655440000");
        assert_eq!(read_value("x", DataType::Integer).unwrap_err().sqlstate, "22P02");
        assert_eq!(read_value("99999999999", DataType::Integer).unwrap_err().sqlstate, "22003");
        assert_eq!(read_value("2020-13-01", DataType::Date).unwrap_err().sqlstate, "22008");
    }
}
