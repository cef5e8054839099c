//! One value of a row, as the typed API takes and gives it.
use std::fmt;

use crate::calendar::{write_date, write_timestamp};
use crate::interval::write_clock;
use crate::json::Jsonb;
use crate::{ArrayValue, DataType, EnumValue, Geometry, Interval, Network, Numeric, RangeValue, TimeKind, ZonedTime};

/// An exact decimal number: `unscaled / 10^scale`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decimal {
    /// The digits as an integer.
    pub unscaled: i128,
    /// How many of them stand after the decimal point.
    pub scale: i8,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, digits) = (if self.unscaled < 0 { "-" } else { "" }, self.unscaled.unsigned_abs().to_string());
        let scale = usize::try_from(self.scale).unwrap_or(0);
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        write!(f, "{sign}{whole}.{fraction}")
    }
}

/// One value of a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// No value.
    Null,
    /// `boolean`
    Boolean(bool),
    /// `smallint`
    SmallInt(i16),
    /// `integer`
    Integer(i32),
    /// `bigint`
    BigInt(i64),
    /// `real`
    Real(f32),
    /// `double precision`
    Double(f64),
    /// `numeric(precision, scale)`
    Decimal(Decimal),
    /// `numeric` without limits
    Numeric(Numeric),
    /// `text` and `varchar`
    Text(String),
    /// `bytea`
    Bytea(Vec<u8>),
    /// `date`: days since 1970-01-01
    Date(i32),
    /// `timestamp`: microseconds since 1970-01-01 00:00
    Timestamp(i64),
    /// `timestamptz`: microseconds since 1970-01-01 00:00 UTC
    TimestampTz(i64),
    /// `uuid`
    Uuid([u8; 16]),
    /// `json`, the text as it was written
    Json(String),
    /// `jsonb`
    Jsonb(Jsonb),
    /// `time`: microseconds since midnight
    Time(i64),
    /// `timetz`
    TimeTz(ZonedTime),
    /// `interval`
    Interval(Interval),
    /// a value of an enum type
    Enum(EnumValue),
    /// a range
    Range(Box<RangeValue>),
    /// a point, a box or a circle
    Geometry(Geometry),
    /// an address or a network
    Network(Network),
    /// an array
    Array(ArrayValue),
}

impl Value {
    /// A decimal of `unscaled / 10^scale`.
    pub fn decimal(unscaled: i128, scale: i8) -> Value {
        Value::Decimal(Decimal { unscaled, scale })
    }

    /// A time, its seconds rounded to so many digits; any other value as it is.
    pub fn rounded(self, digits: u8) -> Value {
        match self {
            Value::Timestamp(micros) => Value::Timestamp(TimeKind::Timestamp.round(micros, digits)),
            Value::TimestampTz(micros) => Value::TimestampTz(TimeKind::TimestampTz.round(micros, digits)),
            Value::Time(micros) => Value::Time(TimeKind::Time.round(micros, digits)),
            Value::TimeTz(time) => {
                Value::TimeTz(ZonedTime { micros: TimeKind::TimeTz.round(time.micros, digits), ..time })
            }
            other => other,
        }
    }

    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether the value may stand in a column of this type as it is (NULL may; a decimal's scale must agree).
    pub fn fits(&self, data_type: DataType) -> bool {
        match (self, data_type.whole()) {
            (Value::Null, _)
            | (Value::Boolean(_), DataType::Boolean)
            | (Value::SmallInt(_), DataType::SmallInt)
            | (Value::Integer(_), DataType::Integer)
            | (Value::BigInt(_), DataType::BigInt)
            | (Value::Real(_), DataType::Real)
            | (Value::Double(_), DataType::Double)
            | (Value::Numeric(_), DataType::Numeric)
            | (Value::Bytea(_), DataType::Bytea)
            | (Value::Date(_), DataType::Date)
            | (Value::Timestamp(_), DataType::Timestamp)
            | (Value::TimestampTz(_), DataType::TimestampTz)
            | (Value::Uuid(_), DataType::Uuid)
            | (Value::Json(_), DataType::Json)
            | (Value::Jsonb(_), DataType::Jsonb)
            | (Value::Time(_), DataType::Time)
            | (Value::TimeTz(_), DataType::TimeTz)
            | (Value::Interval(_), DataType::Interval) => true,
            (Value::Enum(value), DataType::Enum(of)) => value.of == of,
            (Value::Range(range), DataType::Range(kind)) => range.kind() == kind,
            (Value::Geometry(shape), DataType::Geometry(kind)) => shape.kind() == kind,
            (Value::Network(address), DataType::Network(kind)) => address.kind() == kind,
            (Value::Array(array), DataType::Array(item)) => array.item() == item,
            (Value::Text(text), DataType::Text { max_chars }) => max_chars.is_none_or(|max| has_at_most(text, max)),
            (Value::Text(text), DataType::Char { chars }) => !text.ends_with(' ') && has_at_most(text, chars),
            (Value::Decimal(number), DataType::Decimal { precision, scale }) => {
                number.scale == scale && number.unscaled.unsigned_abs() < 10u128.pow(u32::from(precision))
            }
            _ => false,
        }
    }
}

/// Writes the value in PostgreSQL's text form, NULL as `NULL`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Boolean(value) => f.write_str(if *value { "t" } else { "f" }),
            Value::SmallInt(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::BigInt(value) => write!(f, "{value}"),
            Value::Date(days) => write_date(f, i64::from(*days)),
            Value::Timestamp(micros) => write_timestamp(f, *micros, ""),
            Value::TimestampTz(micros) => write_timestamp(f, *micros, "+00"),
            Value::Real(value) => write!(f, "{value}"),
            Value::Double(value) => write!(f, "{value}"),
            Value::Decimal(value) => write!(f, "{value}"),
            Value::Numeric(value) => write!(f, "{value}"),
            Value::Text(value) | Value::Json(value) => f.write_str(value),
            Value::Jsonb(value) => write!(f, "{value}"),
            Value::Time(micros) => write_clock(f, micros.unsigned_abs()),
            Value::TimeTz(time) => write!(f, "{time}"),
            Value::Interval(span) => write!(f, "{span}"),
            Value::Enum(value) => write!(f, "{value}"),
            Value::Range(range) => write!(f, "{range}"),
            Value::Geometry(shape) => write!(f, "{shape}"),
            Value::Network(address) => write!(f, "{address}"),
            Value::Array(array) => write!(f, "{array}"),
            Value::Bytea(bytes) => {
                f.write_str("\\x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::Uuid(bytes) => bytes.iter().enumerate().try_for_each(|(i, byte)| {
                let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
                write!(f, "{dash}{byte:02x}")
            }),
        }
    }
}

macro_rules! from {
    ($($native:ty => $variant:ident),*) => {
        $(impl From<$native> for Value {
            fn from(value: $native) -> Value {
                Value::$variant(value.into())
            }
        })*
    };
}
from!(bool => Boolean, i16 => SmallInt, i32 => Integer, i64 => BigInt, f32 => Real, f64 => Double,
      String => Text, &str => Text, Vec<u8> => Bytea, &[u8] => Bytea, Decimal => Decimal, Numeric => Numeric);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// Whether a text has at most so many characters. It has no more of them than bytes, so that they are seldom counted.
pub fn has_at_most(text: &str, chars: u32) -> bool {
    text.len() <= chars as usize || text.chars().nth(chars as usize).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_print_with_their_scale() {
        assert_eq!(Value::decimal(12_345, 2).to_string(), "123.45");
        assert_eq!(Value::decimal(-5, 2).to_string(), "-0.05");
        assert_eq!(Value::decimal(7, 0).to_string(), "7");
        assert_eq!(Value::decimal(i128::MIN + 1, 38).to_string().len(), 41);
    }

    #[test]
    fn times_are_rounded_and_keep_their_kind_and_zone() {
        let time = |micros| Value::TimeTz(ZonedTime { micros, east: 3600 });
        assert_eq!(time(1_600_000).rounded(0), time(2_000_000));
        assert_eq!(Value::Time(1_499).rounded(3), Value::Time(1_000));
        assert_eq!((Value::Null.rounded(0), Value::BigInt(7).rounded(0)), (Value::Null, Value::BigInt(7)));
        for kind in TimeKind::ALL {
            assert_eq!(TimeKind::of(kind.whole()), Some(kind));
        }
    }

    #[test]
    fn values_fit_their_own_type_only() {
        assert!(Value::from(1i64).fits(DataType::BigInt));
        assert!(!Value::from(1i64).fits(DataType::Integer));
        assert!(Value::Null.fits(DataType::Uuid));
        let money = DataType::Decimal { precision: 5, scale: 2 };
        assert!(Value::decimal(99_999, 2).fits(money));
        assert!(!Value::decimal(100_000, 2).fits(money));
        assert!(!Value::decimal(1, 0).fits(money));
        assert!(Value::from("äöü").fits(DataType::Text { max_chars: Some(3) }));
        assert!(!Value::from("äöüx").fits(DataType::Text { max_chars: Some(3) }));
        assert!(Value::from("äö").fits(DataType::Char { chars: 2 }));
        assert!(
            !Value::from("ä ").fits(DataType::Char { chars: 2 })
                && !Value::from("äöü").fits(DataType::Char { chars: 2 })
        );
    }

    #[test]
    fn uuid_prints_canonically() {
        let bytes = [0x55, 0x0e, 0x84, 0, 0xe2, 0x9b, 0x41, 0xd4, 0xa7, 0x16, 0x44, 0x66, 0x55, 0x44, 0, 0];
        assert_eq!(Value::Uuid(bytes).to_string(), "550e8400-e29b-41d4-a716-446655440000");
    }
}
