//! The extents of values in the space of floats: what a search tree knows of ranges, shapes and anything else.
//!
//! ```text
//! part of a key        its extent                                  overlaps, as far as the tree knows
//! range, shape         the least interval or box that holds it     where they may
//! number, date, time   from the float below to the one above       where they may be equal
//! text, bytes          a number that is made of all its bytes      where they may be equal
//! ```
//!
//! A tree of extents leads to all rows that may answer, and to some that do not: a reader asks the condition itself of each row, as
//! PostgreSQL does with indexes that lose something.
//!
//! A key is the extents of its parts, or where one of them has none what they are instead: NULL, or an empty range.
use lineage::{Cell, Storage, value_of_cell};
use smallvec::SmallVec;
use types::{DataType, Extent, RangeKind, Value};

/// The most dimensions of all parts together.
pub(crate) const DIMENSIONS_MAX: usize = 4;

/// In a key that has no extent: for a part that has one, for NULL, and for a value that lies nowhere, which is an empty range.
const VALUE: u8 = 1;
const NULL: u8 = 2;
const NOWHERE: u8 = 3;

/// PostgreSQL takes coordinates for equal that are so near.
const NEAR: f64 = 1e-6;

/// The ends of extents, dimension by dimension.
pub(crate) type Ends = SmallVec<[f64; DIMENSIONS_MAX]>;

/// How many dimensions the extent of a type has.
pub(crate) fn dimensions(data_type: DataType) -> usize {
    if matches!(data_type, DataType::Geometry(_)) { 2 } else { 1 }
}

fn line(low: f64, high: f64) -> Extent {
    Extent { dimensions: 1, low: [low, 0.0], high: [high, 0.0] }
}

/// The float that is this whole number, or those around it.
fn around(number: i128) -> Extent {
    #[expect(clippy::cast_precision_loss, reason = "what is lost is made good")]
    let near = number as f64;
    match number.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS {
        true => line(near, near),
        false => line(near.next_down(), near.next_up()),
    }
}

/// A float, where NaN is the greatest.
fn at(number: f64) -> Extent {
    let number = if number.is_nan() { f64::INFINITY } else { number };
    line(number + 0.0, number + 0.0)
}

/// A number made of bytes (FNV-1a), as many bits as a float tells apart.
fn of_bytes(bytes: &[u8]) -> Extent {
    let mixed = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, mixed);
    around(i128::from(hash >> (u64::BITS - f64::MANTISSA_DIGITS)))
}

/// The extent of a range or a shape. A range of whole numbers ends half a number before a bound that it leaves out, so that ranges
/// that follow one another do not overlap.
fn of_value(value: &Value) -> Option<Extent> {
    let outward = value.extent()?;
    let Value::Range(range) = value else { return Some(outward) };
    let half = |bound: Option<(i128, bool)>, end: f64, half: f64| match bound {
        Some((number, false)) if range.kind() != RangeKind::Num && number.unsigned_abs() < HALVES_MAX => end + half,
        _ => end,
    };
    Some(line(half(range.lower(), outward.low[0], 0.5), half(range.upper(), outward.high[0], -0.5)))
}

/// Floats tell halves apart below.
const HALVES_MAX: u128 = 1 << (f64::MANTISSA_DIGITS - 1);

/// The extent of a cell of a type; `None` of an empty range.
fn of_cell(cell: Cell<'_>, data_type: DataType) -> Option<Extent> {
    if let DataType::Range(_) | DataType::Geometry(_) = data_type {
        return of_value(&value_of_cell(cell, data_type));
    }
    debug_assert_ne!(cell, Cell::Null, "NULL lies nowhere");
    Some(match (cell, Storage::of(data_type)) {
        (Cell::Word(word), Storage::F32) => at(f64::from(f32::from_bits(word as u32))),
        (Cell::Word(word), Storage::F64) => at(f64::from_bits(word)),
        (Cell::Word(word), _) => around(i128::from(word.cast_signed())),
        (Cell::Bytes(bytes), Storage::WideDecimal) => {
            bytes.try_into().map_or_else(|_| of_bytes(bytes), |bytes| around(i128::from_le_bytes(bytes)))
        }
        (Cell::Bytes(bytes), _) => of_bytes(bytes),
        (Cell::Null, _) => line(f64::NEG_INFINITY, f64::INFINITY),
    })
}

/// The key of a row with these parts.
pub(crate) fn key(cells: &[Cell<'_>], types: &[DataType]) -> Box<[u8]> {
    debug_assert_eq!(cells.len(), types.len(), "a type for each part of the key");
    let extent = |(cell, data_type): (&Cell<'_>, &DataType)| match cell {
        Cell::Null => Err(NULL),
        cell => of_cell(*cell, *data_type).ok_or(NOWHERE),
    };
    let parts: SmallVec<[Result<Extent, u8>; DIMENSIONS_MAX]> = cells.iter().zip(types).map(extent).collect();
    if parts.iter().any(Result::is_err) {
        return parts.iter().map(|part| part.err().unwrap_or(VALUE)).collect();
    }
    let (mut low, mut high) = (Ends::new(), Ends::new());
    for part in parts.iter().flatten() {
        low.extend_from_slice(&part.low[..part.dimensions]);
        high.extend_from_slice(&part.high[..part.dimensions]);
    }
    key_of_ends(&low, &high)
}

/// The key of extents: the bits of the low ends, then those of the high ends.
pub(crate) fn key_of_ends(low: &[f64], high: &[f64]) -> Box<[u8]> {
    debug_assert_eq!(low.len(), high.len(), "an extent has two ends in each dimension");
    low.iter().chain(high).flat_map(|end| (end + 0.0).to_bits().to_be_bytes()).collect()
}

/// The ends of a key of extents in so many dimensions; `None` if a part of it has none.
pub(crate) fn ends(key: &[u8], dimensions: usize) -> Option<(Ends, Ends)> {
    if key.len() != 2 * dimensions * size_of::<f64>() {
        return None;
    }
    let (ends, _) = key.as_chunks();
    let mut ends = ends.iter().map(|end| f64::from_bits(u64::from_be_bytes(*end)));
    Some((ends.by_ref().take(dimensions).collect(), ends.collect()))
}

/// Where a value of the type of an index's part is to be looked for; `None` if it lies nowhere. Of a value that stands for another
/// type, such as a point that a box is to contain, it is where that lies.
pub fn extent_of(value: &Value, data_type: DataType) -> Option<Extent> {
    let mut scratch = lineage::Scratch::default();
    let extent = match (value, data_type) {
        (Value::Null, _) => None,
        (Value::Range(_) | Value::Geometry(_), _) => of_value(value),
        (bound, DataType::Range(kind)) => kind.number_of(bound).map(|number| kind.extent_of(number)),
        (value, data_type) => of_cell(lineage::cell_of_value(value, data_type, &mut scratch), data_type),
    };
    let mut extent = extent?;
    if let DataType::Geometry(_) = data_type {
        for dimension in 0..extent.dimensions {
            extent.low[dimension] -= near(extent.low[dimension]);
            extent.high[dimension] += near(extent.high[dimension]);
        }
    }
    Some(extent)
}

/// How far beyond an end shapes are taken to reach. What is infinite is so exactly.
pub(crate) fn near(end: f64) -> f64 {
    if end.is_finite() { NEAR.max(end.abs() * f64::EPSILON) * 2.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use types::{Geometry, GeometryKind, RangeValue};

    use super::*;

    #[test]
    fn extents_of_keys_are_those_that_they_were_made_of() {
        let types = [DataType::BigInt, DataType::Range(RangeKind::Int4)];
        let range = |lower, upper| RangeValue::new(RangeKind::Int4, lower, upper).unwrap();
        let (some, empty) = (range(Some((1, true)), None).to_bytes(), RangeValue::empty(RangeKind::Int4).to_bytes());
        let room = Cell::Word(7);
        let placed = key(&[room, Cell::Bytes(&some)], &types);
        let expected = (Ends::from_slice(&[7.0, 1.0]), Ends::from_slice(&[7.0, f64::INFINITY]));
        assert_eq!(ends(&placed, 2), Some(expected));
        for (cells, tags) in [
            ([room, Cell::Bytes(&empty)], [VALUE, NOWHERE]),
            ([Cell::Null, Cell::Bytes(&some)], [NULL, VALUE]),
            ([Cell::Null, Cell::Null], [NULL, NULL]),
        ] {
            let other = key(&cells, &types);
            assert_eq!((ends(&other, 2), &*other), (None, &tags[..]));
        }
    }

    #[test]
    fn a_value_lies_where_its_key_does_and_shapes_a_little_around() {
        let large = i64::MAX - 1;
        let [asked, kept] = [
            extent_of(&Value::from(large), DataType::BigInt),
            of_cell(Cell::Word(large.cast_unsigned()), DataType::BigInt),
        ];
        assert_eq!(asked, kept);
        assert!(asked.is_some_and(|extent| extent.low[0] < extent.high[0]));
        let point = Value::Geometry(Geometry::parse(GeometryKind::Point, "(1,2)").unwrap());
        let extent = extent_of(&point, DataType::Geometry(GeometryKind::Box)).unwrap();
        assert!(extent.low[0] < 1.0 - NEAR && extent.high[1] > 2.0 + NEAR && extent.dimensions == 2);
        let kind = RangeKind::Int8;
        assert_eq!(extent_of(&Value::from(5i64), DataType::Range(kind)), Some(kind.extent_of(5)));
        assert_eq!(extent_of(&Value::Range(Box::new(RangeValue::empty(kind))), DataType::Range(kind)), None);
        let range = |lower, upper| {
            let range = RangeValue::new(RangeKind::Ts, Some(lower), Some(upper)).unwrap();
            of_value(&Value::Range(Box::new(range))).map(|extent| (extent.low[0], extent.high[0]))
        };
        assert_eq!(range((1, true), (5, false)), Some((1.0, 4.5)));
        assert_eq!(range((5, false), (6, false)), Some((5.5, 5.5)));
        assert_eq!(at(f64::NAN), at(f64::INFINITY));
        assert_eq!(key_of_ends(&[-0.0], &[0.0]), key_of_ends(&[0.0], &[0.0]));
    }
}
