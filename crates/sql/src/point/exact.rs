//! Values as those of another type, where nothing changes but the width of an integer or the zeros at the end of a decimal.
use engine::{DataType, Decimal, Value};

use crate::values::{clock, numerics};

/// The value as one of a type, if it is one without any change but in width or scale.
pub(crate) fn exact(value: &Value, to: DataType) -> Option<Value> {
    match (value, to) {
        (Value::Null, _) => Some(Value::Null),
        (value, DataType::SmallInt) => i16::try_from(integer(value)?).ok().map(Value::SmallInt),
        (value, DataType::Integer) => i32::try_from(integer(value)?).ok().map(Value::Integer),
        (value, DataType::BigInt) => integer(value).map(Value::BigInt),
        (Value::Text(text), DataType::Text { max_chars }) => {
            let fits = max_chars.is_none_or(|max| text.len() <= max as usize || text.chars().count() <= max as usize);
            fits.then(|| value.clone())
        }
        (Value::Text(text), DataType::Char { chars }) => {
            let text = text.trim_end_matches(' ');
            (text.chars().count() <= chars as usize).then(|| Value::Text(text.to_owned()))
        }
        (Value::Decimal(number), DataType::Numeric) => Some(Value::Numeric(numerics::of_decimal(*number))),
        (Value::Numeric(number), DataType::Decimal { .. }) => exact(&Value::Decimal(numerics::narrow(number)?), to),
        (Value::Decimal(number), DataType::Decimal { scale, .. }) => {
            Some(Value::Decimal(at_scale(*number, scale)?)).filter(|value| value.fits(to))
        }
        (value, DataType::TimeDigits { of, digits }) => value.fits(to).then(|| clock::kept(value.clone(), of, digits)),
        _ => value.fits(to).then(|| value.clone()),
    }
}

/// A decimal with so many digits after its point, if that leaves none out.
pub(super) fn at_scale(number: Decimal, scale: i8) -> Option<Decimal> {
    let power = |digits: i8| 10i128.checked_pow(u32::try_from(digits).ok()?);
    let unscaled = match scale >= number.scale {
        true => number.unscaled.checked_mul(power(scale.checked_sub(number.scale)?)?)?,
        false => {
            let power = power(number.scale.checked_sub(scale)?)?;
            Some(number.unscaled / power).filter(|_| number.unscaled % power == 0)?
        }
    };
    Some(Decimal { unscaled, scale })
}

/// The decimal that a number without an exponent is written as.
pub(super) fn decimal(text: &str) -> Option<Decimal> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.trim_start_matches('-');
    if !digits.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let unscaled = format!("{whole}{fraction}").parse().ok()?;
    Some(Decimal { unscaled, scale: i8::try_from(fraction.len()).ok()? })
}

/// The decimal that a number is, whatever type it has.
pub(super) fn as_decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Decimal(number) => Some(*number),
        Value::Numeric(number) => numerics::narrow(number),
        other => Some(Decimal { unscaled: integer(other)?.into(), scale: 0 }),
    }
}

/// The number that an integer of any width is.
pub(crate) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::SmallInt(value) => Some((*value).into()),
        Value::Integer(value) => Some((*value).into()),
        Value::BigInt(value) => Some(*value),
        _ => None,
    }
}

/// Whether it is a type of integers.
pub(super) fn is_integer(data_type: DataType) -> bool {
    bits(data_type) > 0
}

/// The width of a type of integers, 0 of any other.
pub(super) fn bits(data_type: DataType) -> u32 {
    match data_type {
        DataType::SmallInt => 16,
        DataType::Integer => 32,
        DataType::BigInt => 64,
        _ => 0,
    }
}
