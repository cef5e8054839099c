//! The bounds of ranges as values of their types, and ranges as text.
use std::fmt;

use crate::{DataType, Decimal, RangeKind, RangeValue, Value};

/// Digits behind the point of the bounds of a `numrange`.
pub(crate) const NUMBER_SCALE: i8 = 10;
const NUMBER_PRECISION: u8 = 38;

impl RangeKind {
    /// The type of its bounds.
    pub fn bound_type(self) -> DataType {
        match self {
            RangeKind::Int4 => DataType::Integer,
            RangeKind::Int8 => DataType::BigInt,
            RangeKind::Num => DataType::Decimal { precision: NUMBER_PRECISION, scale: NUMBER_SCALE },
            RangeKind::Date => DataType::Date,
            RangeKind::Ts => DataType::Timestamp,
            RangeKind::TsTz => DataType::TimestampTz,
        }
    }

    /// A bound as the number that stands for it: its digits with ten behind the point of a `numeric`, days, microseconds. `None` if
    /// it is NULL, of another type, or a `numeric` that is too large.
    pub fn number_of(self, bound: &Value) -> Option<i128> {
        match (self, bound) {
            (RangeKind::Int4, Value::Integer(number)) | (RangeKind::Date, Value::Date(number)) => {
                Some((*number).into())
            }
            (RangeKind::Int8, Value::BigInt(number))
            | (RangeKind::Ts, Value::Timestamp(number))
            | (RangeKind::TsTz, Value::TimestampTz(number)) => Some((*number).into()),
            (RangeKind::Num, Value::Decimal(number)) => number_of_decimal(*number),
            _ => None,
        }
    }

    /// The bound that a number stands for. A `numeric` has no zeros at its end.
    pub fn bound_of(self, number: i128) -> Value {
        let word = || i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX });
        let half = || i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX });
        match self {
            RangeKind::Int4 => Value::Integer(half()),
            RangeKind::Date => Value::Date(half()),
            RangeKind::Int8 => Value::BigInt(word()),
            RangeKind::Ts => Value::Timestamp(word()),
            RangeKind::TsTz => Value::TimestampTz(word()),
            RangeKind::Num => {
                let (mut unscaled, mut scale) = (number, NUMBER_SCALE);
                while scale > 0 && unscaled % 10 == 0 {
                    (unscaled, scale) = (unscaled / 10, scale - 1);
                }
                Value::decimal(unscaled, scale)
            }
        }
    }
}

/// The digits of a number with [`NUMBER_SCALE`] behind the point, rounded half away from zero.
fn number_of_decimal(number: Decimal) -> Option<i128> {
    let more = i32::from(NUMBER_SCALE) - i32::from(number.scale);
    let power = 10i128.checked_pow(more.unsigned_abs())?;
    let scaled = if more >= 0 {
        number.unscaled.checked_mul(power)?
    } else {
        let (whole, rest) = (number.unscaled / power, number.unscaled % power);
        whole + if rest.abs() >= power - rest.abs() { rest.signum() } else { 0 }
    };
    (scaled.unsigned_abs() < 10u128.pow(NUMBER_PRECISION.into())).then_some(scaled)
}

impl RangeValue {
    /// The range as PostgreSQL writes it, with the texts that its bounds are given.
    pub fn text_with(&self, text_of: impl Fn(&Value) -> String) -> String {
        if self.is_empty() {
            return "empty".to_owned();
        }
        let bound = |bound: Option<(i128, bool)>| {
            let text = bound.map(|(number, _)| text_of(&self.kind().bound_of(number))).unwrap_or_default();
            if text.contains(' ') { format!("\"{text}\"") } else { text }
        };
        let holds = |bound: Option<(i128, bool)>| bound.is_some_and(|(_, holds)| holds);
        let begins = if holds(self.lower()) { "[" } else { "(" };
        let ends = if holds(self.upper()) { "]" } else { ")" };
        format!("{begins}{},{}{ends}", bound(self.lower()), bound(self.upper()))
    }
}

/// As PostgreSQL writes ranges: `[1,5)`, `(,"2020-01-01 00:00:00"]`, `empty`. Moments are those of UTC.
impl fmt::Display for RangeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_with(Value::to_string))
    }
}

impl From<RangeValue> for Value {
    fn from(range: RangeValue) -> Value {
        Value::Range(Box::new(range))
    }
}
