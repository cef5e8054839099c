//! The extents of values in the space of floats: what a search tree knows of ranges, shapes and anything else.
//!
//! ```text
//! part of a key        its extent                                  overlaps, as far as the tree knows
//! range, shape, inet   the least interval or box that holds it     where they may
//! number, date, time   from the float below to the one above       where they may be equal
//! text, bytes          numbers of its first bytes, in their order,
//!                      and one that is made of all of them         where they may be equal
//! ```
//!
//! The first text of a key has the dimensions that other parts leave, six bytes in each but the last. So texts that begin alike, or lie
//! between two others, are found by their first bytes, as far as these go.
//!
//! A tree of extents leads to all rows that may answer, and to some that do not: a reader asks the condition itself of each row, as
//! PostgreSQL does with indexes that lose something.
//!
//! A key is the extents of its parts, or where one of them has none what they are instead: NULL, or an empty range.
use std::ops::Bound;

use index::KeyBytes;
use lineage::{Cell, Storage, value_of_cell};
use smallvec::SmallVec;
use types::{DataType, EXTENT_DIMENSIONS_MAX, Extent, RangeKind, STABLE_SEED, Value, stable_hash};

/// The most dimensions of all parts together.
pub(crate) const DIMENSIONS_MAX: usize = EXTENT_DIMENSIONS_MAX;

/// In a key that has no extent: for a part that has one, for NULL, and for a value that lies nowhere, which is an empty range.
const VALUE: u8 = 1;
const NULL: u8 = 2;
const NOWHERE: u8 = 3;

/// PostgreSQL takes coordinates for equal that are so near.
const NEAR: f64 = 1e-6;

/// The ends of extents, dimension by dimension.
pub(crate) type Ends = SmallVec<[f64; DIMENSIONS_MAX]>;

/// The bytes of a text in one dimension.
const TEXT_BYTES: usize = 6;

/// Whether values are texts or bytes, as the tree sees them.
fn is_text(data_type: DataType) -> bool {
    matches!(Storage::of(data_type), Storage::Text | Storage::Bytes) && !is_spatial(data_type)
}

/// Whether values have extents of their own.
fn is_spatial(data_type: DataType) -> bool {
    matches!(data_type, DataType::Range(_) | DataType::Geometry(_) | DataType::Network(_))
}

/// How many dimensions the extent of each part of a key has.
pub(crate) fn dimensions(types: impl Iterator<Item = DataType> + Clone) -> SmallVec<[usize; DIMENSIONS_MAX]> {
    let least = |of: DataType| if matches!(of, DataType::Geometry(_) | DataType::Network(_)) { 2 } else { 1 };
    let mut each: SmallVec<[usize; DIMENSIONS_MAX]> = types.clone().map(least).collect();
    let left = DIMENSIONS_MAX.saturating_sub(each.iter().sum());
    if let Some(text) = types.clone().position(is_text) {
        each[text] += left;
    }
    each
}

fn line(low: f64, high: f64) -> Extent {
    Extent::line(low, high)
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

/// The first bytes, as many as go into each dimension, and in the last one a number made of all of them (FNV-1a), as many bits as a
/// float tells apart.
fn of_bytes(bytes: &[u8], dimensions: usize) -> Extent {
    let hash = stable_hash(STABLE_SEED, bytes) >> (u64::BITS - f64::MANTISSA_DIGITS);
    let word = |at: usize| {
        let mut word = [0; size_of::<u64>()];
        let first = bytes.iter().skip(at * TEXT_BYTES).take(TEXT_BYTES);
        word[2..].iter_mut().zip(first).for_each(|(place, byte)| *place = *byte);
        u64::from_be_bytes(word)
    };
    let mut ends = [0.0; EXTENT_DIMENSIONS_MAX];
    for (at, end) in ends.iter_mut().enumerate().take(dimensions) {
        #[expect(clippy::cast_precision_loss, reason = "a float has as many bits")]
        let exact = if at + 1 == dimensions { hash } else { word(at) } as f64;
        *end = exact;
    }
    Extent { dimensions, low: ends, high: ends }
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

/// The extent of a cell of a type, of a text in so many dimensions; `None` of an empty range.
fn of_cell(cell: Cell<'_>, data_type: DataType, dimensions: usize) -> Option<Extent> {
    if is_spatial(data_type) {
        return of_value(&value_of_cell(cell, data_type));
    }
    debug_assert_ne!(cell, Cell::Null, "NULL lies nowhere");
    Some(match (cell, Storage::of(data_type)) {
        (Cell::Word(word), Storage::F32) => at(f64::from(f32::from_bits(word as u32))),
        (Cell::Word(word), Storage::F64) => at(f64::from_bits(word)),
        (Cell::Word(word), _) => around(i128::from(word.cast_signed())),
        (Cell::Bytes(bytes), Storage::WideDecimal) => {
            bytes.try_into().map_or_else(|_| of_bytes(bytes, 1), |bytes| around(i128::from_le_bytes(bytes)))
        }
        (Cell::Bytes(bytes), _) => of_bytes(bytes, dimensions),
        (Cell::Null, _) => line(f64::NEG_INFINITY, f64::INFINITY),
    })
}

/// The key of a row with these parts.
pub(crate) fn key(cells: &[Cell<'_>], types: &[DataType]) -> KeyBytes {
    debug_assert_eq!(cells.len(), types.len(), "a type for each part of the key");
    let extent = |((cell, data_type), dimensions): ((&Cell<'_>, &DataType), usize)| match cell {
        Cell::Null => Err(NULL),
        cell => of_cell(*cell, *data_type, dimensions).ok_or(NOWHERE),
    };
    let each = dimensions(types.iter().copied());
    let parts: SmallVec<[Result<Extent, u8>; DIMENSIONS_MAX]> = cells.iter().zip(types).zip(each).map(extent).collect();
    if parts.iter().any(Result::is_err) {
        let marks: SmallVec<[u8; DIMENSIONS_MAX]> = parts.iter().map(|part| part.err().unwrap_or(VALUE)).collect();
        return KeyBytes::from(&marks[..]);
    }
    let (mut low, mut high) = (Ends::new(), Ends::new());
    for part in parts.iter().flatten() {
        low.extend_from_slice(&part.low[..part.dimensions]);
        high.extend_from_slice(&part.high[..part.dimensions]);
    }
    key_of_ends(&low, &high)
}

/// The key of extents: the bits of the low ends, then those of the high ends.
pub(crate) fn key_of_ends(low: &[f64], high: &[f64]) -> KeyBytes {
    debug_assert_eq!(low.len(), high.len(), "an extent has two ends in each dimension");
    let mut bytes = SmallVec::<[u8; 4 * size_of::<f64>()]>::new();
    low.iter().chain(high).for_each(|end| bytes.extend_from_slice(&(end + 0.0).to_bits().to_be_bytes()));
    KeyBytes::from(&bytes[..])
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

/// Where a value of the type of an index's part is to be looked for, of a text in so many dimensions; `None` if it lies nowhere. Of a
/// value that stands for another type, such as a point that a box is to contain, it is where that lies.
pub(crate) fn extent_of(value: &Value, data_type: DataType, dimensions: usize) -> Option<Extent> {
    let mut scratch = lineage::Scratch::default();
    let extent = match (value, data_type) {
        (Value::Null, _) => None,
        (Value::Range(_) | Value::Geometry(_) | Value::Network(_), _) => of_value(value),
        (bound, DataType::Range(kind)) => kind.number_of(bound).map(|number| kind.extent_of(number)),
        (value, data_type) => of_cell(lineage::cell_of_value(value, data_type, &mut scratch), data_type, dimensions),
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

/// Where values of a part's type are to be looked for that lie between two others; `None` if the tree knows nothing of their order.
///
/// Dimensions are compared one after the other: up to the first in which the bounds differ they are those of both, and what is behind
/// it may be anything. So is the last of a text, which has no order.
pub(crate) fn extent_between(
    (low, high): (Bound<&Value>, Bound<&Value>),
    data_type: DataType,
    dimensions: usize,
) -> Option<Extent> {
    if matches!(data_type, DataType::Range(_) | DataType::Geometry(_)) {
        return None;
    }
    let of_bound = |bound: Bound<&Value>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => extent_of(value, data_type, dimensions),
        Bound::Unbounded => Some(Extent::open(dimensions)),
    };
    let (first, last) = (of_bound(low)?, of_bound(high)?);
    let ordered = if is_text(data_type) { dimensions - 1 } else { dimensions };
    let mut extent = Extent::open(dimensions);
    for at in 0..ordered {
        (extent.low[at], extent.high[at]) = (first.low[at], last.high[at].max(first.low[at]));
        if extent.low[at] != extent.high[at] {
            break;
        }
    }
    let is_bounded = extent.low[0] > f64::NEG_INFINITY || extent.high[0] < f64::INFINITY;
    is_bounded.then_some(extent)
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
            extent_of(&Value::from(large), DataType::BigInt, 1),
            of_cell(Cell::Word(large.cast_unsigned()), DataType::BigInt, 1),
        ];
        assert_eq!(asked, kept);
        assert!(asked.is_some_and(|extent| extent.low[0] < extent.high[0]));
        let point = Value::Geometry(Geometry::parse(GeometryKind::Point, "(1,2)").unwrap());
        let extent = extent_of(&point, DataType::Geometry(GeometryKind::Box), 2).unwrap();
        assert!(extent.low[0] < 1.0 - NEAR && extent.high[1] > 2.0 + NEAR && extent.dimensions == 2);
        let kind = RangeKind::Int8;
        assert_eq!(extent_of(&Value::from(5i64), DataType::Range(kind), 1), Some(kind.extent_of(5)));
        assert_eq!(extent_of(&Value::Range(Box::new(RangeValue::empty(kind))), DataType::Range(kind), 1), None);
        let range = |lower, upper| {
            let range = RangeValue::new(RangeKind::Ts, Some(lower), Some(upper)).unwrap();
            of_value(&Value::Range(Box::new(range))).map(|extent| (extent.low[0], extent.high[0]))
        };
        assert_eq!(range((1, true), (5, false)), Some((1.0, 4.5)));
        assert_eq!(range((5, false), (6, false)), Some((5.5, 5.5)));
        assert_eq!(at(f64::NAN), at(f64::INFINITY));
        assert_eq!(key_of_ends(&[-0.0], &[0.0]), key_of_ends(&[0.0], &[0.0]));
    }

    #[test]
    fn the_first_text_of_a_key_has_the_dimensions_that_are_left() {
        let of = |types: &[DataType]| dimensions(types.iter().copied()).to_vec();
        let (area, address) = (DataType::Geometry(GeometryKind::Box), DataType::Network(types::NetworkKind::Inet));
        assert_eq!(of(&[DataType::TEXT]), [4]);
        assert_eq!(of(&[DataType::BigInt, DataType::TEXT, DataType::TEXT]), [1, 2, 1]);
        assert_eq!((of(&[DataType::TEXT, area]), of(&[address, area])), (vec![2, 2], vec![2, 2]));
        assert_eq!(of(&[DataType::TEXT, area, address]).iter().sum::<usize>(), 5, "too many are refused by their sum");
    }

    #[test]
    fn what_lies_between_two_values_overlaps_what_is_asked_for_them() {
        let texts =
            ["", "a", "abc", "abcdef", "abcdefa", "abcdefgh", "abcdefghijklmnop", "abd", "b", "\u{e4}\u{f6}\u{fc}"];
        let address = |text| Value::Network(types::Network::parse(types::NetworkKind::Inet, text).unwrap());
        let addresses = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.0.0.1",
            "10.0.1.0/24",
            "11.0.0.0/8",
            "::/0",
            "2001:db8::/64",
            "2001:db8::1",
        ];
        let meets = |one: &Extent, other: &Extent| {
            (0..one.dimensions).all(|at| one.low[at] <= other.high[at] && other.low[at] <= one.high[at])
        };
        let lists = [
            (DataType::TEXT, texts.map(Value::from).to_vec()),
            (DataType::Network(types::NetworkKind::Inet), addresses.map(address).to_vec()),
            (DataType::BigInt, [i64::MIN, -1, 0, 7, i64::MAX].map(Value::from).to_vec()),
        ];
        for (of, values) in lists {
            for dimensions in if of == DataType::TEXT { 1..=4 } else { dimensions([of].into_iter())[0]..=2 } {
                for (first, low) in values.iter().enumerate() {
                    for (last, high) in values.iter().enumerate() {
                        let ends = (Bound::Included(low), Bound::Excluded(high));
                        let Some(asked) = extent_between(ends, of, dimensions) else { continue };
                        for value in values.get(first..last).unwrap_or_default() {
                            let own = extent_of(value, of, dimensions).unwrap();
                            assert!(meets(&own, &asked), "{value} from {low} to {high} in {dimensions}");
                        }
                    }
                }
            }
        }
        let of_prefix = |low: &str, high: &str| {
            let (low, high) = (Value::from(low), Value::from(high));
            extent_between((Bound::Included(&low), Bound::Excluded(&high)), DataType::TEXT, 3).unwrap()
        };
        let asked = of_prefix("abcdefgh", "abcdefgi");
        let own = |text: &str| extent_of(&Value::from(text), DataType::TEXT, 3).unwrap();
        assert!(
            meets(&asked, &own("abcdefghij")) && !meets(&asked, &own("abcdefg")) && !meets(&asked, &own("abcdegh"))
        );
        let kind = RangeKind::Int4;
        let empty = Value::Range(Box::new(RangeValue::empty(kind)));
        assert_eq!(extent_between((Bound::Included(&empty), Bound::Unbounded), DataType::Range(kind), 1), None);
    }
}
