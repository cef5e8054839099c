//! The binary form of ranges and shapes.
//!
//! ```text
//! range    flags (1 byte)   for each bound that there is: its length (4 bytes), its binary form
//! shape    its numbers, 8 bytes each: x, y | x, y, x, y | x, y, radius
//! flags    1 empty, 2 holds its lower bound, 4 holds its upper bound, 8 has no lower bound, 16 has no upper bound
//! ```
use engine::{DataType, Geometry, GeometryKind, RangeKind, RangeValue, Value};

use super::numeric::{self, Wrong};
use super::{EPOCH_DAYS, EPOCH_MICROS, parameters};
use crate::error::SqlError;
use crate::values::read_value;

const EMPTY: u8 = 1;
const HOLDS_LOWER: u8 = 2;
const HOLDS_UPPER: u8 = 4;
const NO_LOWER: u8 = 8;
const NO_UPPER: u8 = 16;

/// Appends the value that is kept as these bytes; false, and nothing is appended, where the type is another one.
pub(crate) fn put(out: &mut Vec<u8>, bytes: &[u8], data_type: Option<DataType>) -> bool {
    match data_type {
        Some(DataType::Range(kind)) => put_range(out, &RangeValue::from_bytes(kind, bytes)),
        Some(DataType::Geometry(kind)) => {
            let numbers = Geometry::from_bytes(kind, bytes).numbers();
            numbers[..kind.numbers()].iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
        }
        _ => return false,
    }
    true
}

fn put_range(out: &mut Vec<u8>, range: &RangeValue) {
    if range.is_empty() {
        return out.push(EMPTY);
    }
    let (lower, upper) = (range.lower(), range.upper());
    let holds = |bound: Option<(i128, bool)>, flag: u8| if bound.is_some_and(|(_, holds)| holds) { flag } else { 0 };
    let lacks = |bound: Option<(i128, bool)>, flag: u8| if bound.is_none() { flag } else { 0 };
    let flags = [holds(lower, HOLDS_LOWER), holds(upper, HOLDS_UPPER), lacks(lower, NO_LOWER), lacks(upper, NO_UPPER)];
    out.push(flags.into_iter().fold(0, |all, flag| all | flag));
    for (number, _) in [lower, upper].into_iter().flatten() {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        put_bound(out, &range.kind().bound_of(number));
        let length = u32::try_from(out.len() - start - 4).unwrap_or(0);
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

fn put_bound(out: &mut Vec<u8>, bound: &Value) {
    let end_or = |micros: i64| match micros {
        i64::MIN | i64::MAX => micros,
        micros => micros.saturating_sub(EPOCH_MICROS),
    };
    match bound {
        Value::Integer(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::BigInt(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::Date(days @ (i32::MIN | i32::MAX)) => out.extend_from_slice(&days.to_be_bytes()),
        Value::Date(days) => out.extend_from_slice(&days.saturating_sub(EPOCH_DAYS).to_be_bytes()),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => out.extend_from_slice(&end_or(*micros).to_be_bytes()),
        other => numeric::put(out, &other.to_string()),
    }
}

/// Reads a range.
pub(crate) fn range(bytes: &[u8], kind: RangeKind) -> Result<Result<Value, SqlError>, Wrong> {
    let (flags, mut rest) = bytes.split_first().ok_or(Wrong::Form)?;
    let is_set = |flag: u8| flags & flag != 0;
    if is_set(EMPTY) {
        return if rest.is_empty() { Ok(Ok(RangeValue::empty(kind).into())) } else { Err(Wrong::Form) };
    }
    // As its text, which says what is wrong with the bounds.
    let mut text = if is_set(HOLDS_LOWER) { "[" } else { "(" }.to_owned();
    for (lacks, behind) in [(NO_LOWER, ","), (NO_UPPER, if is_set(HOLDS_UPPER) { "]" } else { ")" })] {
        if !is_set(lacks) {
            let (length, others) = rest.split_first_chunk::<4>().ok_or(Wrong::Form)?;
            let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| Wrong::Form)?;
            let (bound, others) = others.split_at_checked(length).ok_or(Wrong::Form)?;
            rest = others;
            match parameters::binary(bound, kind.bound_type(), 0)? {
                Ok(bound) => text.push_str(&format!("\"{bound}\"")),
                Err(error) => return Ok(Err(error)),
            }
        }
        text.push_str(behind);
    }
    if rest.is_empty() { Ok(read_value(&text, DataType::Range(kind))) } else { Err(Wrong::Form) }
}

/// Reads a shape.
pub(crate) fn geometry(bytes: &[u8], kind: GeometryKind) -> Result<Result<Value, SqlError>, Wrong> {
    let mut numbers = [0.0; 4];
    let (chunks, rest) = bytes.as_chunks::<8>();
    if chunks.len() != kind.numbers() || !rest.is_empty() {
        return Err(Wrong::Form);
    }
    for (number, bytes) in numbers.iter_mut().zip(chunks) {
        *number = f64::from_be_bytes(*bytes);
    }
    if kind == GeometryKind::Circle && numbers[2] < 0.0 {
        return Ok(Err(SqlError::new("22P03", "invalid radius in external \"circle\" value")));
    }
    Ok(Ok(Value::Geometry(Geometry::of_numbers(kind, numbers))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(value: &Value) -> Vec<u8> {
        match value {
            Value::Range(range) => range.to_bytes(),
            Value::Geometry(shape) => shape.to_bytes(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn ranges_and_shapes_come_back_from_their_binary_form() {
        let ranges = [
            (RangeKind::Int4, "[1,5)"),
            (RangeKind::Int8, "(,7)"),
            (RangeKind::Num, "[1.5,2.25]"),
            (RangeKind::Date, "[2020-01-31,infinity]"),
            (RangeKind::Ts, "(\"2020-01-31 10:00:00\",)"),
            (RangeKind::TsTz, "[-infinity,\"2020-01-31 10:00:00+00\"]"),
            (RangeKind::Int4, "empty"),
        ];
        for (kind, text) in ranges {
            let value = read_value(text, DataType::Range(kind)).unwrap();
            let mut out = Vec::new();
            assert!(put(&mut out, &bytes_of(&value), Some(DataType::Range(kind))), "{text}");
            assert_eq!(range(&out, kind), Ok(Ok(value)), "{text}");
            assert_eq!(range(&out[..out.len() - 1], kind), Err(Wrong::Form), "{text}");
        }
        for (kind, text) in
            [(GeometryKind::Point, "(1,2)"), (GeometryKind::Box, "(3,4),(1,2)"), (GeometryKind::Circle, "<(1,2),3>")]
        {
            let value = read_value(text, DataType::Geometry(kind)).unwrap();
            let mut out = Vec::new();
            assert!(put(&mut out, &bytes_of(&value), Some(DataType::Geometry(kind))), "{text}");
            assert_eq!(out.len(), kind.numbers() * 8);
            assert_eq!(geometry(&out, kind), Ok(Ok(value)), "{text}");
            assert_eq!(geometry(&out[1..], kind), Err(Wrong::Form), "{text}");
        }
        assert!(!put(&mut Vec::new(), b"", None));
    }

    #[test]
    fn the_form_is_that_of_postgresql() {
        let value = read_value("[1,5)", DataType::Range(RangeKind::Int4)).unwrap();
        let mut out = Vec::new();
        put(&mut out, &bytes_of(&value), Some(DataType::Range(RangeKind::Int4)));
        assert_eq!(out, [2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5]);
        let turned = [2, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 1];
        let code = |read: Result<Result<Value, SqlError>, Wrong>| read.unwrap().unwrap_err().sqlstate;
        assert_eq!(code(range(&turned, RangeKind::Int4)), "22000");
        let circle: Vec<u8> = [0.0_f64, 0.0, -1.0].iter().flat_map(|number| number.to_be_bytes()).collect();
        assert_eq!(code(geometry(&circle, GeometryKind::Circle)), "22P03");
    }
}
