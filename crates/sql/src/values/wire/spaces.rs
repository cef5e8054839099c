//! The binary form of ranges, shapes, addresses and times with their zone.
//!
//! ```text
//! range    flags (1 byte)   for each bound that there is: its length (4 bytes), its binary form
//! shape    its numbers, 8 bytes each: x, y | x, y, x, y | x, y, radius
//! address  family (2 or 3), bits of the network, 1 of a cidr, how many bytes follow (1 byte each), the bytes of the address
//! time     microseconds since midnight (8 bytes), seconds to the west of Greenwich (4 bytes)
//! flags    1 empty, 2 holds its lower bound, 4 holds its upper bound, 8 has no lower bound, 16 has no upper bound
//! ```
use engine::{DataType, Geometry, GeometryKind, Network, NetworkKind, RangeKind, RangeValue, Value, ZonedTime};
use types::network::Family;

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
        Some(DataType::Network(kind)) => put_network(out, &Network::from_bytes(kind, bytes)),
        Some(DataType::TimeTz) => {
            let time = ZonedTime::from_bytes(bytes);
            out.extend_from_slice(&time.micros.to_be_bytes());
            out.extend_from_slice(&time.east.wrapping_neg().to_be_bytes());
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

/// Reads a time with its zone.
pub(crate) fn zoned_time(bytes: &[u8]) -> Result<Value, Wrong> {
    let (micros, west) = bytes.split_first_chunk::<8>().ok_or(Wrong::Form)?;
    let west: [u8; 4] = west.try_into().map_err(|_| Wrong::Form)?;
    let (micros, west) = (i64::from_be_bytes(*micros), i32::from_be_bytes(west));
    let is_zone = west > -ZonedTime::EAST_MAX && west < ZonedTime::EAST_MAX;
    match micros {
        0..=86_400_000_000 if is_zone => Ok(Value::TimeTz(ZonedTime { micros, east: -west })),
        _ => Err(Wrong::Range),
    }
}

/// PostgreSQL's numbers of the families.
const V4: u8 = 2;
const V6: u8 = 3;

fn put_network(out: &mut Vec<u8>, of: &Network) {
    let family = if of.family() == Family::V4 { V4 } else { V6 };
    let (is_cidr, address) = (of.kind() == NetworkKind::Cidr, of.address());
    out.extend_from_slice(&[family, of.length(), is_cidr.into(), if family == V4 { 4 } else { 16 }]);
    out.extend_from_slice(&address);
}

/// Reads an address. Whether it calls itself a `cidr` means nothing: the type is known.
pub(crate) fn network(bytes: &[u8], kind: NetworkKind) -> Result<Result<Value, SqlError>, Wrong> {
    let ([family, length, _, count], address) = bytes.split_first_chunk::<4>().ok_or(Wrong::Form)?;
    let name = kind.name();
    let refused = |what: String| Ok(Err(SqlError::new("22P03", what)));
    let family = match *family {
        V4 => Family::V4,
        V6 => Family::V6,
        _ => return refused(format!("invalid address family in external \"{name}\" value")),
    };
    if *length > family.bits() {
        return refused(format!("invalid bits in external \"{name}\" value"));
    }
    if usize::from(*count) != family.bytes() {
        return refused(format!("invalid length in external \"{name}\" value"));
    }
    if address.len() != family.bytes() {
        return Err(Wrong::Form);
    }
    match Network::new(kind, family, address, *length) {
        Some(network) => Ok(Ok(Value::Network(network))),
        None => {
            let error = SqlError::new("22P03", "invalid external \"cidr\" value");
            Ok(Err(SqlError { detail: Some("Value has bits set to right of mask.".to_owned()), ..error }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(value: &Value) -> Vec<u8> {
        match value {
            Value::Range(range) => range.to_bytes(),
            Value::Geometry(shape) => shape.to_bytes(),
            Value::Network(address) => address.to_bytes(),
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
    fn times_with_a_zone_come_back_from_their_binary_form() {
        let value = read_value("04:05:06.5-08:30", DataType::TimeTz).unwrap();
        let Value::TimeTz(time) = value else { panic!("{value} is no time") };
        let mut out = Vec::new();
        assert!(put(&mut out, &time.to_bytes(), Some(DataType::TimeTz)));
        assert_eq!(out, [0, 0, 0, 3, 108, 147, 97, 160, 0, 0, 119, 136]);
        assert_eq!(zoned_time(&out), Ok(Value::TimeTz(time)));
        assert_eq!((zoned_time(&out[1..]), zoned_time(&[255; 12])), (Err(Wrong::Form), Err(Wrong::Range)));
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

    #[test]
    fn addresses_come_back_from_their_binary_form() {
        let (inet, cidr) = (NetworkKind::Inet, NetworkKind::Cidr);
        let forms: [(NetworkKind, &str, &[u8]); 4] = [
            (inet, "10.0.0.1/8", &[2, 8, 0, 4, 10, 0, 0, 1]),
            (cidr, "10.0.0.0/8", &[2, 8, 1, 4, 10, 0, 0, 0]),
            (inet, "::1", &[3, 128, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            (cidr, "::/0", &[3, 0, 1, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (kind, text, form) in forms {
            let value = crate::read_value(text, DataType::Network(kind)).unwrap();
            let mut out = Vec::new();
            assert!(put(&mut out, &bytes_of(&value), Some(DataType::Network(kind))), "{text}");
            assert_eq!(out, form, "{text}");
            assert_eq!(network(&out, kind), Ok(Ok(value)), "{text}");
            assert_eq!(network(&out[..out.len() - 1], kind), Err(Wrong::Form), "{text}");
            assert_eq!(network(&out[..3], kind), Err(Wrong::Form), "{text}");
        }
        let message = |bytes: &[u8], kind| network(bytes, kind).unwrap().unwrap_err().message;
        assert_eq!(message(&[1, 8, 0, 4, 10, 0, 0, 1], inet), "invalid address family in external \"inet\" value");
        assert_eq!(message(&[2, 33, 0, 4, 10, 0, 0, 1], inet), "invalid bits in external \"inet\" value");
        assert_eq!(message(&[2, 8, 0, 16, 10, 0, 0, 1], cidr), "invalid length in external \"cidr\" value");
        assert_eq!(message(&[2, 8, 1, 4, 10, 0, 0, 1], cidr), "invalid external \"cidr\" value");
    }
}
