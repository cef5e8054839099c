//! Values as those of another type, where nothing changes but the width of an integer.
use engine::{DataType, Value};

/// The value as one of a type, if it is one without any change but in width.
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
        _ => value.fits(to).then(|| value.clone()),
    }
}

/// The number that an integer of any width is.
pub(super) fn integer(value: &Value) -> Option<i64> {
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
