//! The items of arrays, and the form in which they are kept.
//!
//! ```text
//! NULL       2
//! value      1 | its bytes, each 0 as 0 255 | 0 0
//! ```
//!
//! Bytes of a word are eight, the most significant first, in the order of the values; of a decimal sixteen. So arrays compare by their
//! bytes as PostgreSQL compares them: item by item, NULL last, and where one begins another one the shorter first.
use std::fmt::{self, Write};

use crate::json::Jsonb;
use crate::numeric;
use crate::{
    ArrayItem, ArrayValue, Decimal, EnumValue, Geometry, Interval, Network, Numeric, RangeValue, Value, ZonedTime,
};

const VALUE: u8 = 1;
const NULL: u8 = 2;
const SIGN: u64 = 1 << 63;

impl ArrayValue {
    /// The array of these values, which are of the type of the items.
    pub fn of(item: ArrayItem, values: &[Value]) -> ArrayValue {
        let mut bytes = Vec::new();
        for value in values {
            match value {
                Value::Null => bytes.push(NULL),
                value => {
                    bytes.push(VALUE);
                    put(&mut bytes, value);
                    bytes.extend([0, 0]);
                }
            }
        }
        ArrayValue::from_bytes(item, &bytes)
    }

    /// Its items. What is kept as bytes that no array has ends it.
    pub fn values(&self) -> Vec<Value> {
        let mut values = Vec::new();
        ArrayValue::for_each_item(self.as_bytes(), &mut |own| {
            values.push(own.map_or(Value::Null, |own| value_of(self.item(), own)));
        });
        values
    }

    /// Passes on the bytes of each item of an array that is kept as these bytes, `None` for NULL.
    pub fn for_each_item(bytes: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) {
        let (mut own, mut rest) = (Vec::new(), bytes);
        while let Some((first, mut after)) = rest.split_first() {
            if *first == NULL {
                take(None);
                rest = after;
                continue;
            }
            own.clear();
            // Where a zero is among its bytes they are put together, and lie there otherwise.
            loop {
                let Some(zero) = after.iter().position(|byte| *byte == 0) else { return };
                let (before, behind) = (&after[..zero], &after[zero + 1..]);
                after = behind.get(1..).unwrap_or_default();
                match behind.first() {
                    Some(0) if own.is_empty() => take(Some(before)),
                    Some(0) => {
                        own.extend(before);
                        take(Some(&own));
                    }
                    Some(_) => {
                        own.extend(before);
                        own.push(0);
                        continue;
                    }
                    None => return,
                }
                break;
            }
            rest = after;
        }
    }

    /// The item of these bytes.
    pub fn item_value(item: ArrayItem, own: &[u8]) -> Value {
        value_of(item, own)
    }

    /// The part of an item's bytes that equal items have in common. Of items whose equality is not that of their bytes there is none.
    pub fn item_key(item: ArrayItem, own: &[u8]) -> Option<&[u8]> {
        const MINUS_ZERO: [u8; 8] = (SIGN - 1).to_be_bytes();
        const ZERO: [u8; 8] = SIGN.to_be_bytes();
        Some(match item {
            ArrayItem::Numeric => numeric::key_of(own),
            ArrayItem::Jsonb => Jsonb::key_of(own),
            ArrayItem::Real | ArrayItem::Double if *own == MINUS_ZERO => &ZERO,
            ArrayItem::Char { .. } => without_blanks(own),
            ArrayItem::Json | ArrayItem::Interval | ArrayItem::Geometry(_) => return None,
            _ => own,
        })
    }
}

/// Texts of `char(n)` are equal whatever blanks stand at their ends.
fn without_blanks(text: &[u8]) -> &[u8] {
    let length = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..length]
}

fn put(out: &mut Vec<u8>, value: &Value) {
    let mut escaped = |bytes: &[u8]| {
        for byte in bytes {
            out.push(*byte);
            if *byte == 0 {
                out.push(u8::MAX);
            }
        }
    };
    let word = |number: i64| (number.cast_unsigned() ^ SIGN).to_be_bytes();
    match value {
        Value::Null => {}
        Value::Boolean(value) => escaped(&word(i64::from(*value))),
        Value::SmallInt(value) => escaped(&word(i64::from(*value))),
        Value::Integer(value) | Value::Date(value) => escaped(&word(i64::from(*value))),
        Value::BigInt(value) | Value::Timestamp(value) | Value::TimestampTz(value) | Value::Time(value) => {
            escaped(&word(*value));
        }
        Value::Enum(value) => escaped(&word(value.position)),
        Value::Real(value) => escaped(&float(f64::from(*value))),
        Value::Double(value) => escaped(&float(*value)),
        Value::Decimal(number) => escaped(&(number.unscaled.cast_unsigned() ^ 1 << 127).to_be_bytes()),
        Value::Numeric(number) => escaped(number.as_bytes()),
        Value::Text(text) | Value::Json(text) => escaped(text.as_bytes()),
        Value::Bytea(bytes) => escaped(bytes),
        // As its text, which queries have of it.
        value @ Value::Uuid(_) => escaped(value.to_string().as_bytes()),
        Value::Jsonb(value) => escaped(value.as_bytes()),
        Value::TimeTz(time) => escaped(&time.to_bytes()),
        Value::Interval(span) => escaped(&span.to_bytes()),
        Value::Range(range) => escaped(&range.to_bytes()),
        Value::Geometry(shape) => escaped(&shape.to_bytes()),
        Value::Network(address) => escaped(&address.to_bytes()),
        Value::Array(inner) => escaped(inner.as_bytes()),
    }
}

/// The bits of a float in the order of floats.
fn float(value: f64) -> [u8; 8] {
    let bits = value.to_bits();
    (if bits & SIGN == 0 { bits | SIGN } else { !bits }).to_be_bytes()
}

fn float_of(bits: u64) -> f64 {
    f64::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN })
}

/// The first bytes of some, with zeros behind what is too short.
fn exactly<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut whole = [0; N];
    let length = bytes.len().min(N);
    whole[..length].copy_from_slice(&bytes[..length]);
    whole
}

fn value_of(item: ArrayItem, bytes: &[u8]) -> Value {
    let bits = u64::from_be_bytes(exactly(bytes));
    let word = (bits ^ SIGN).cast_signed();
    let text = || String::from_utf8_lossy(bytes).into_owned();
    match item {
        ArrayItem::Boolean => Value::Boolean(word != 0),
        ArrayItem::SmallInt => Value::SmallInt(i16::try_from(word).unwrap_or(0)),
        ArrayItem::Integer => Value::Integer(i32::try_from(word).unwrap_or(0)),
        ArrayItem::Date => Value::Date(i32::try_from(word).unwrap_or(0)),
        ArrayItem::BigInt => Value::BigInt(word),
        ArrayItem::Timestamp => Value::Timestamp(word),
        ArrayItem::TimestampTz => Value::TimestampTz(word),
        ArrayItem::Time => Value::Time(word),
        ArrayItem::Enum(of) => Value::Enum(EnumValue { of, position: word }),
        #[expect(clippy::cast_possible_truncation, reason = "it was one of 32 bits")]
        ArrayItem::Real => Value::Real(float_of(bits) as f32),
        ArrayItem::Double => Value::Double(float_of(bits)),
        ArrayItem::Decimal { scale, .. } => {
            let unscaled = (u128::from_be_bytes(exactly(bytes)) ^ 1 << 127).cast_signed();
            Value::Decimal(Decimal { unscaled, scale })
        }
        ArrayItem::Numeric => Value::Numeric(Numeric::from_bytes(bytes)),
        ArrayItem::Text { .. } | ArrayItem::Char { .. } => Value::Text(text()),
        ArrayItem::Json => Value::Json(text()),
        ArrayItem::Bytea => Value::Bytea(bytes.to_vec()),
        ArrayItem::Uuid => Value::Uuid(uuid_of(bytes)),
        ArrayItem::Jsonb => Value::Jsonb(Jsonb::from_bytes(bytes)),
        ArrayItem::TimeTz => Value::TimeTz(ZonedTime::from_bytes(bytes)),
        ArrayItem::Interval => Value::Interval(Interval::from_bytes(bytes)),
        ArrayItem::Range(kind) => Value::from(RangeValue::from_bytes(kind, bytes)),
        ArrayItem::Geometry(kind) => Value::Geometry(Geometry::from_bytes(kind, bytes)),
        ArrayItem::Network(kind) => Value::Network(Network::from_bytes(kind, bytes)),
    }
}

/// The bytes of a uuid that is written out.
fn uuid_of(text: &[u8]) -> [u8; 16] {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0);
    let mut digits = text.iter().filter(|byte| **byte != b'-').map(|byte| digit(*byte));
    std::array::from_fn(|_| digits.next().unwrap_or(0) << 4 | digits.next().unwrap_or(0))
}

/// As PostgreSQL writes arrays: `{1,NULL,"a b"}`.
impl fmt::Display for ArrayValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (at, value) in self.values().iter().enumerate() {
            f.write_str(if at > 0 { "," } else { "" })?;
            match value {
                Value::Null => f.write_str("NULL")?,
                value => write_item(f, &value.to_string())?,
            }
        }
        f.write_char('}')
    }
}

/// Items that hold what means something in an array are quoted.
fn write_item(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let means_something = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_ascii_whitespace();
    if !text.is_empty() && !text.contains(means_something) && !text.eq_ignore_ascii_case("null") {
        return f.write_str(text);
    }
    write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{DataType, GeometryKind, NetworkKind, RangeKind};

    fn texts() -> impl Strategy<Value = Vec<Value>> {
        let text = prop_oneof![Just(Value::Null), "[\\x00-\\x02a]{0,3}".prop_map(Value::from)];
        prop::collection::vec(text, 0..4)
    }

    fn numbers() -> impl Strategy<Value = Vec<Value>> {
        let number =
            prop_oneof![Just(Value::Null), (-2i64..2).prop_map(Value::BigInt), any::<i64>().prop_map(Value::BigInt)];
        prop::collection::vec(number, 0..4)
    }

    /// Item by item, NULL last, the shorter first.
    fn order(left: &[Value], right: &[Value]) -> std::cmp::Ordering {
        let key = |value: &Value| match value {
            Value::Text(text) => (false, text.clone().into_bytes(), 0),
            Value::BigInt(number) => (false, Vec::new(), *number),
            _ => (true, Vec::new(), 0),
        };
        left.iter().map(key).cmp(right.iter().map(key))
    }

    proptest! {
        #[test]
        fn arrays_come_back_and_their_bytes_are_in_their_order(
            texts in (texts(), texts()),
            numbers in (numbers(), numbers()),
        ) {
            for (item, left, right) in [
                (ArrayItem::Text { max_chars: None }, texts.0, texts.1),
                (ArrayItem::BigInt, numbers.0, numbers.1),
            ] {
                let (first, second) = (ArrayValue::of(item, &left), ArrayValue::of(item, &right));
                prop_assert_eq!(first.values(), left.clone());
                prop_assert_eq!(first.as_bytes().cmp(second.as_bytes()), order(&left, &right));
            }
        }

        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>) {
            for item in [ArrayItem::Integer, ArrayItem::Uuid, ArrayItem::Jsonb, ArrayItem::Text { max_chars: None }] {
                let _ = ArrayValue::from_bytes(item, &bytes).to_string();
            }
        }
    }

    #[test]
    fn values_of_every_type_come_back() {
        let values = [
            Value::Boolean(true),
            Value::SmallInt(i16::MIN),
            Value::Integer(-5),
            Value::Date(i32::MAX),
            Value::Timestamp(i64::MIN),
            Value::TimestampTz(7),
            Value::Time(0),
            Value::Real(-0.5),
            Value::Double(f64::NEG_INFINITY),
            Value::Bytea(vec![0, 255, 0]),
            Value::Uuid([0; 16]),
            Value::Json("[ 1 ]".to_owned()),
            Value::Jsonb(Jsonb::parse("[1.50]").unwrap()),
            Value::TimeTz(ZonedTime { micros: 5, east: -3600 }),
            Value::Interval(Interval { months: 1, days: -2, micros: 3 }),
            Value::from(RangeValue::new(RangeKind::Int4, Some((1, true)), Some((5, false))).unwrap()),
            Value::Geometry(Geometry::parse(GeometryKind::Box, "(3,4),(1,2)").unwrap()),
            Value::Network(Network::parse(NetworkKind::Inet, "10.0.0.1/8").unwrap()),
        ];
        let types = [
            DataType::Boolean,
            DataType::SmallInt,
            DataType::Integer,
            DataType::Date,
            DataType::Timestamp,
            DataType::TimestampTz,
            DataType::Time,
            DataType::Real,
            DataType::Double,
            DataType::Bytea,
            DataType::Uuid,
            DataType::Json,
            DataType::Jsonb,
            DataType::TimeTz,
            DataType::Interval,
            DataType::Range(RangeKind::Int4),
            DataType::Geometry(GeometryKind::Box),
            DataType::Network(NetworkKind::Inet),
        ];
        for (value, data_type) in values.into_iter().zip(types) {
            let item = ArrayItem::of(data_type).unwrap();
            assert_eq!(ArrayValue::of(item, &[value.clone(), Value::Null]).values(), [value, Value::Null]);
            assert_eq!(item.data_type(), data_type);
        }
        let money = ArrayItem::of(DataType::Decimal { precision: 9, scale: 2 }).unwrap();
        assert_eq!(ArrayValue::of(money, &[Value::decimal(-150, 2)]).to_string(), "{-1.50}");
        let texts = [Value::from("a"), Value::from(""), Value::from("null"), Value::from("a \"b\\"), Value::Null];
        let shown = ArrayValue::of(ArrayItem::Text { max_chars: None }, &texts).to_string();
        assert_eq!(shown, r#"{a,"","null","a \"b\\",NULL}"#);
    }
}
