//! Keys of indexes: how the cells of a row become one, so that keys compare as the rows do.
//!
//! A key of one column of words is a word; any other is a byte string, column after column:
//!
//! ```text
//! value of a word       1 | 8 bytes, the most significant first
//! long decimal          1 | 16 bytes, the most significant first
//! text, bytea, uuid     1 | bytes, each 0 as 0 255 | 0 0        of the last column: 1 | bytes
//! numeric               likewise, without the bytes that tell how many decimals it shows
//! NULL                  2                                       so NULL comes last
//! ```
//!
//! Words are put in order first: integers by turning the sign bit over, floats by their total order, which is also that
//! of scans, but that both zeros are one key, and all NaN another. No key of the first form is the beginning of another one, so the
//! beginning of a key is a range.
use std::ops::Bound;

use index::KeyBytes;
use lineage::{Cell, Storage};
use smallvec::SmallVec;
use types::{DataType, Rid, numeric};

use super::extents;

const SIGN: u64 = 1 << 63;
/// Before a value in a key of bytes.
pub(super) const VALUE: u8 = 1;
/// In place of one.
pub(super) const NULL: u8 = 2;

/// What a word takes in a key of bytes.
const WORD_BYTES: usize = 1 + size_of::<u64>();

/// Where a range is read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// From the least key on.
    #[default]
    Upward,
    /// From the greatest key on.
    Downward,
}

/// Room for the bytes of a key that is being made, without the allocator for most.
type KeyBuffer = SmallVec<[u8; 64]>;

/// A key of an index, in its order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum IndexKey {
    Word(u64),
    Bytes(KeyBytes),
    /// NULL in the one column of an index that has words as keys.
    Null,
}

/// A key of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Keyed {
    pub(crate) key: IndexKey,
    /// Whether no other record may have it.
    pub(crate) is_compared: bool,
}

/// The keys of a row in an index: one in most, none where the row is not in the index, and as many as it has terms in an inverted one.
pub(crate) type RowKeys = SmallVec<[Keyed; 1]>;

/// The entries of an index between two bounds.
pub(crate) type Bounds = (Bound<(IndexKey, Rid)>, Bound<(IndexKey, Rid)>);

/// Below and above all records of a key.
const FIRST: u64 = 0;
const LAST: u64 = u64::MAX;

/// How keys are made of cells.
#[derive(Debug)]
pub(crate) struct KeyShape {
    types: Box<[DataType]>,
    /// Whether they are of the extents of their parts, and in no order.
    has_extents: bool,
}

/// The word of a whole number, put in order.
#[inline]
pub(crate) fn ordered_integer(number: i64) -> u64 {
    number as u64 ^ SIGN
}

/// The number of such a word.
#[inline]
pub(crate) fn integer_in_order(word: u64) -> i64 {
    (word ^ SIGN) as i64
}

/// The word of a cell, put in order. Both zeros of a float have one, and so have all NaN, which come last.
#[inline]
fn ordered(word: u64, data_type: DataType) -> u64 {
    match Storage::of(data_type) {
        Storage::F32 => {
            let value = f32::from_bits(word as u32);
            let bits = if value.is_nan() { f32::NAN } else { value + POSITIVE }.to_bits();
            u64::from(if bits >> 31 == 0 { bits | 1 << 31 } else { !bits })
        }
        Storage::F64 => {
            let value = f64::from_bits(word);
            let bits = if value.is_nan() { f64::NAN } else { value + f64::from(POSITIVE) }.to_bits();
            if bits & SIGN == 0 { bits | SIGN } else { !bits }
        }
        _ => ordered_integer(word as i64),
    }
}

/// Added to a float it makes the negative zero positive, and leaves every other one as it is.
const POSITIVE: f32 = 0.0;

/// The place before or behind all records of a key.
pub(crate) fn beside_all(key: &IndexKey, is_behind: bool) -> (IndexKey, Rid) {
    (key.clone(), Rid::from_word(if is_behind { LAST } else { FIRST }))
}

impl KeyShape {
    pub(crate) fn new(types: Box<[DataType]>) -> KeyShape {
        KeyShape { types, has_extents: false }
    }

    /// How keys are made that are asked for what they overlap.
    pub(crate) fn of_extents(types: Box<[DataType]>) -> KeyShape {
        KeyShape { types, has_extents: true }
    }

    /// How many dimensions the extents of keys have.
    pub(crate) fn dimensions(&self) -> usize {
        extents::dimensions(self.types.iter().copied()).into_iter().sum()
    }

    /// Whether keys are words.
    pub(crate) fn is_word(&self) -> bool {
        !self.has_extents && matches!(*self.types, [data_type] if !lineage::is_wide(data_type))
    }

    /// The key made of these cells, which come in key order.
    #[inline]
    pub(crate) fn key(&self, cells: &[Cell<'_>]) -> IndexKey {
        debug_assert_eq!(cells.len(), self.types.len());
        match *cells {
            [Cell::Word(word)] if !self.has_extents => IndexKey::Word(ordered(word, self.types[0])),
            _ => self.key_of_others(cells),
        }
    }

    #[inline(never)]
    fn key_of_others(&self, cells: &[Cell<'_>]) -> IndexKey {
        match *cells {
            _ if self.has_extents => IndexKey::Bytes(extents::key(cells, &self.types)),
            [Cell::Word(first), Cell::Word(second)] => {
                let mut bytes = [VALUE; 2 * WORD_BYTES];
                bytes[1..WORD_BYTES].copy_from_slice(&ordered(first, self.types[0]).to_be_bytes());
                bytes[WORD_BYTES + 1..].copy_from_slice(&ordered(second, self.types[1]).to_be_bytes());
                debug_assert_eq!(bytes[..], self.bytes(cells)[..], "a key of two words has one form");
                IndexKey::Bytes(bytes.into())
            }
            [Cell::Null] if self.is_word() => IndexKey::Null,
            _ => {
                debug_assert!(!self.is_word(), "{cells:?} is no word");
                IndexKey::Bytes(KeyBytes::from(&self.bytes(cells)[..]))
            }
        }
    }

    /// A key for people: integers as they are, others as their words or bytes.
    pub(crate) fn show(&self, key: &IndexKey) -> String {
        match (key, &*self.types) {
            (IndexKey::Word(word), [data_type]) if data_type.is_integer() => (word ^ SIGN).cast_signed().to_string(),
            _ => format!("{key:?}"),
        }
    }

    /// The bytes of a key, or of its beginning.
    fn bytes(&self, cells: &[Cell<'_>]) -> KeyBuffer {
        let mut bytes = KeyBuffer::new();
        for (at, cell) in cells.iter().enumerate() {
            let is_last = at + 1 == self.types.len();
            match *cell {
                Cell::Null => bytes.push(NULL),
                Cell::Word(word) => {
                    bytes.push(VALUE);
                    bytes.extend_from_slice(&ordered(word, self.types[at]).to_be_bytes());
                }
                Cell::Bytes(value) if Storage::of(self.types[at]) == Storage::WideDecimal => {
                    bytes.push(VALUE);
                    bytes.extend(
                        value.iter().rev().enumerate().map(|(i, byte)| if i == 0 { byte ^ 0x80 } else { *byte }),
                    );
                }
                Cell::Bytes(value) => {
                    let is_numeric = self.types[at] == DataType::Numeric;
                    let value = if is_numeric { numeric::key_of(value) } else { value };
                    bytes.push(VALUE);
                    if is_last {
                        bytes.extend_from_slice(value);
                        continue;
                    }
                    for byte in value {
                        bytes.push(*byte);
                        if *byte == 0 {
                            bytes.push(u8::MAX);
                        }
                    }
                    bytes.extend_from_slice(&[0, 0]);
                }
            }
        }
        debug_assert!(bytes.first().is_none_or(|first| *first <= NULL), "a key begins with {bytes:?}");
        bytes
    }

    /// The entries of rows that have these values in the first columns and lie between the bounds in the next
    /// column, if there is one. A bound leaves out NULL.
    pub(crate) fn bounds(&self, equal: &[Cell<'_>], low: Bound<Cell<'_>>, high: Bound<Cell<'_>>) -> Bounds {
        debug_assert!(equal.len() <= self.types.len(), "{} values of {} columns", equal.len(), self.types.len());
        if self.is_word() {
            return self.word_bounds(equal, low, high);
        }
        if equal.len() == self.types.len() {
            return of_key(self.key(equal));
        }
        let is_open = matches!((low, high), (Bound::Unbounded, Bound::Unbounded));
        let is_last = equal.len() + 1 == self.types.len();
        let beginning = self.bytes(equal);
        let with = |cell: Cell<'_>| {
            let mut cells = equal.to_vec();
            cells.push(cell);
            self.bytes(&cells)
        };
        let at = |bytes: KeyBuffer, rid: u64| (IndexKey::Bytes(KeyBytes::from(&bytes[..])), Rid::from_word(rid));
        let low = match low {
            Bound::Unbounded => Bound::Included(at(beginning.clone(), FIRST)),
            Bound::Included(cell) => Bound::Included(at(with(cell), FIRST)),
            Bound::Excluded(cell) if is_last => Bound::Excluded(at(with(cell), LAST)),
            Bound::Excluded(cell) => Bound::Included(at(behind(with(cell)), FIRST)),
        };
        let high = match high {
            Bound::Unbounded if is_open && beginning.is_empty() => Bound::Unbounded,
            Bound::Unbounded if is_open => Bound::Excluded(at(behind(beginning), FIRST)),
            Bound::Unbounded => Bound::Excluded(at(with(Cell::Null), FIRST)),
            Bound::Included(cell) if is_last => Bound::Included(at(with(cell), LAST)),
            Bound::Included(cell) => Bound::Excluded(at(behind(with(cell)), FIRST)),
            Bound::Excluded(cell) => Bound::Excluded(at(with(cell), FIRST)),
        };
        (low, high)
    }

    fn word_bounds(&self, equal: &[Cell<'_>], low: Bound<Cell<'_>>, high: Bound<Cell<'_>>) -> Bounds {
        if let [_] = equal {
            return of_key(self.key(equal));
        }
        let is_open = matches!((low, high), (Bound::Unbounded, Bound::Unbounded));
        let at = |cell: Cell<'_>, rid: u64| (self.key(&[cell]), Rid::from_word(rid));
        let low = match low {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(cell) => Bound::Included(at(cell, FIRST)),
            Bound::Excluded(cell) => Bound::Excluded(at(cell, LAST)),
        };
        let high = match high {
            Bound::Unbounded if is_open => Bound::Unbounded,
            Bound::Unbounded => Bound::Excluded(at(Cell::Null, FIRST)),
            Bound::Included(cell) => Bound::Included(at(cell, LAST)),
            Bound::Excluded(cell) => Bound::Excluded(at(cell, FIRST)),
        };
        (low, high)
    }
}

/// The entries of one key.
fn of_key(key: IndexKey) -> Bounds {
    let (first, last) = ((key.clone(), Rid::from_word(FIRST)), (key, Rid::from_word(LAST)));
    (Bound::Included(first), Bound::Included(last))
}

/// The one key of which all entries between these bounds are.
pub(crate) fn only_key(bounds: &Bounds) -> Option<&IndexKey> {
    match bounds {
        (Bound::Included((low, _)), Bound::Included((high, _))) if low == high => Some(low),
        _ => None,
    }
}

/// The first byte string behind all that begin with these bytes; there is one, as no key begins with 255.
fn behind(mut bytes: KeyBuffer) -> KeyBuffer {
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            break;
        }
    }
    debug_assert!(!bytes.is_empty(), "invariant 7: nothing is behind all keys");
    bytes
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::ops::RangeBounds;

    use lineage::{Comparison, Scratch, Test, cell_of_value};
    use proptest::prelude::*;
    use types::{Numeric, Value};

    use super::*;

    const TYPES: [DataType; 8] = [
        DataType::Integer,
        DataType::Numeric,
        DataType::TEXT,
        DataType::Double,
        DataType::Decimal { precision: 38, scale: 2 },
        DataType::Real,
        DataType::Bytea,
        DataType::Decimal { precision: 9, scale: 2 },
    ];

    fn value(data_type: DataType) -> BoxedStrategy<Value> {
        let value = match data_type {
            DataType::Integer => prop_oneof![-3..3i32, any::<i32>()].prop_map(Value::Integer).boxed(),
            DataType::TEXT => "[\\x00\\x01ab]{0,3}".prop_map(Value::from).boxed(),
            DataType::Double => prop_oneof![Just(-0.0), Just(0.0), Just(-f64::NAN), Just(f64::NAN), any::<f64>()]
                .prop_map(Value::Double)
                .boxed(),
            DataType::Numeric => {
                (-2..2i128, 0..3u32).prop_map(|(units, decimals)| Value::from(numeric_of(units, decimals))).boxed()
            }
            DataType::Real => prop_oneof![Just(f32::NAN), any::<f32>()].prop_map(Value::Real).boxed(),
            DataType::Bytea => {
                prop::collection::vec(prop_oneof![Just(0u8), Just(255)], 0..3).prop_map(Value::from).boxed()
            }
            DataType::Decimal { precision: 9, scale } => {
                (-2..2i128).prop_map(move |unscaled| Value::decimal(unscaled, scale)).boxed()
            }
            DataType::Decimal { scale, .. } => prop_oneof![-2..2i128, Just(-(1 << 100)), Just(1 << 70)]
                .prop_map(move |unscaled| Value::decimal(unscaled, scale))
                .boxed(),
            other => unreachable!("{other}"),
        };
        prop_oneof![1 => Just(Value::Null), 4 => value].boxed()
    }

    /// Whole numbers, and numbers that are equal to others and show more decimals.
    fn numeric_of(units: i128, decimals: u32) -> Numeric {
        Numeric::new(units * 10_i128.pow(decimals / 2), decimals)
    }

    /// The order of scans, NULL last; of numerics their order, where the decimals that they show mean nothing, and of floats one where
    /// both zeros are equal.
    fn compare(left: &Value, right: &Value, data_type: DataType) -> Ordering {
        match (left, right) {
            (Value::Double(left), Value::Double(right)) if left == right => return Ordering::Equal,
            (Value::Double(left), Value::Double(right)) if left.is_nan() && right.is_nan() => return Ordering::Equal,
            (Value::Double(left), _) if left.is_nan() && !right.is_null() => return Ordering::Greater,
            (_, Value::Double(right)) if right.is_nan() && !left.is_null() => return Ordering::Less,
            (Value::Real(left), Value::Real(right)) if left == right => return Ordering::Equal,
            _ => {}
        }
        if let (Value::Numeric(left), Value::Numeric(right)) = (left, right) {
            return left.cmp(right);
        }
        let passes = |comparison| {
            let mut scratch = Scratch::default();
            Test::Compare(comparison, right.clone()).passes(cell_of_value(left, data_type, &mut scratch), data_type)
        };
        match (left.is_null(), right.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ if passes(Comparison::Less) => Ordering::Less,
            _ if passes(Comparison::Eq) => Ordering::Equal,
            _ => Ordering::Greater,
        }
    }

    fn cells<'a>(row: &'a [Value], types: &[DataType], scratch: &'a mut [Scratch]) -> Vec<Cell<'a>> {
        let parts = row.iter().zip(types).zip(scratch);
        parts.map(|((value, data_type), scratch)| cell_of_value(value, *data_type, scratch)).collect()
    }

    fn key(shape: &KeyShape, row: &[Value]) -> IndexKey {
        let mut scratch: [Scratch; 3] = Default::default();
        shape.key(&cells(row, &shape.types, &mut scratch))
    }

    type Sample = (Vec<DataType>, Vec<Vec<Value>>, usize, (u8, u8));

    fn sample() -> impl Strategy<Value = Sample> {
        prop::collection::vec(prop::sample::select(&TYPES[..]), 1..4).prop_flat_map(|types| {
            let row: Vec<_> = types.iter().map(|data_type| value(*data_type)).collect();
            (Just(types), prop::collection::vec(row, 2..6), 0..4usize, (0..3u8, 0..3u8))
        })
    }

    fn bound(kind: u8, value: &Value) -> Bound<&Value> {
        match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(value),
            _ => Bound::Excluded(value),
        }
    }

    /// Whether a row is in a range, by the definition.
    fn is_in(row: &[Value], types: &[DataType], equal: &[Value], low: Bound<&Value>, high: Bound<&Value>) -> bool {
        let order = |at: usize, value: &Value| compare(&row[at], value, types[at]);
        let next = equal.len();
        if (0..next).any(|at| order(at, &equal[at]).is_ne()) {
            return false;
        }
        let is_above = match low {
            Bound::Unbounded => true,
            Bound::Included(low) => order(next, low).is_ge(),
            Bound::Excluded(low) => order(next, low).is_gt(),
        };
        let is_below = match high {
            Bound::Unbounded => matches!(low, Bound::Unbounded) || !row[next].is_null(),
            Bound::Included(high) => order(next, high).is_le(),
            Bound::Excluded(high) => order(next, high).is_lt(),
        };
        is_above && is_below
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn keys_are_in_the_order_of_their_rows((types, rows, ..) in sample()) {
            let shape = KeyShape::new(types.clone().into());
            for pair in rows.windows(2) {
                let parts = pair[0].iter().zip(&pair[1]).zip(&types);
                let expected = parts.map(|((left, right), data_type)| compare(left, right, *data_type));
                let expected = expected.fold(Ordering::Equal, Ordering::then);
                prop_assert_eq!(key(&shape, &pair[0]).cmp(&key(&shape, &pair[1])), expected, "{:?}", pair);
            }
        }

        #[test]
        fn bounds_have_the_keys_of_the_rows_in_the_range((types, rows, equal, kinds) in sample()) {
            let shape = KeyShape::new(types.clone().into());
            let equal = &rows[0][..equal.min(types.len())];
            let mut first: [Scratch; 3] = Default::default();
            let (mut of_low, mut of_high) = (Scratch::default(), Scratch::default());
            let has_next = equal.len() < types.len();
            let pick = |row: usize| if has_next { rows[row][equal.len()].clone() } else { Value::Null };
            let (low_value, high_value) = (pick(0), pick(1));
            let kind = |kind: u8, value: &Value| if value.is_null() { 0 } else { kind };
            let low = bound(kind(kinds.0, &low_value), &low_value);
            let high = bound(kind(kinds.1, &high_value), &high_value);
            let next = equal.len().min(types.len() - 1);
            let bounds = shape.bounds(
                &cells(equal, &types, &mut first),
                low.map(|value| cell_of_value(value, types[next], &mut of_low)),
                high.map(|value| cell_of_value(value, types[next], &mut of_high)),
            );
            for row in &rows {
                let entry = (key(&shape, row), Rid::base(7, 8));
                let expected = is_in(row, &types, equal, low, high);
                prop_assert_eq!(bounds.contains(&entry), expected, "{:?} in {:?}", row, bounds);
            }
        }
    }
}
