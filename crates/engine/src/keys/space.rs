//! Indexes that are asked for a part of space: the coordinates of their keys, and windows.
//!
//! ```text
//! a row (7, 9) ── key: 1 | 7 | 1 | 9 ── coordinates [7, 9] ── in the window [5, 10] x [9, 9]
//! a row (7, NULL) ── key: 1 | 7 | 2     ── in windows that are open in the second column, and found by its whole key
//! ```
//!
//! Keys are those that an index in order would have ([`super::order`]), so that all that is true of keys of indexes is true of these.
use std::iter;
use std::ops::{Bound, RangeBounds};

use lineage::{Cell, Storage};
use smallvec::SmallVec;
use types::{Column, DataType, Extent, Rid, Value};

use super::extents::{Ends, ends, near};
use super::inverted::TermGroup;
use super::order::{Bounds, Direction, IndexKey, Keyed, NULL, VALUE, ordered_integer};
use crate::error::Result;
use crate::terms::row::FittedRow;
use crate::terms::table_name::TableName;

/// The most columns that are distributed.
pub(crate) const COLUMNS_MAX: usize = 2;

/// Coordinates of a key of whole numbers.
pub(crate) type Coordinates = SmallVec<[i64; COLUMNS_MAX]>;

/// Whether values are whole numbers in their order.
pub(crate) fn is_whole(data_type: DataType) -> bool {
    let has_words = matches!(Storage::of(data_type), Storage::I16 | Storage::I32 | Storage::I64 | Storage::Decimal);
    has_words && !matches!(data_type, DataType::Enum(_))
}

/// The part of space that an index without order is asked for.
#[derive(Clone, PartialEq, Debug)]
pub enum IndexWindow {
    /// Rows whose value in each column of the index lies between two bounds. A bound leaves out NULL; a column that has none on either
    /// side may be NULL.
    Between(Vec<(Bound<Value>, Bound<Value>)>),
    /// Rows of which each part of the key has an extent that overlaps the one given for it
    /// ([`Index::extent_of`](crate::Index::extent_of)), if one is given; and those that have none in some part, if they are asked for.
    /// There may be others among them: ask each row.
    Overlapping {
        /// An extent for each part of the key, or `None` for any.
        extents: Vec<Option<Extent>>,
        /// Whether rows are asked for that have NULL or an empty range in a part.
        takes_others: bool,
    },
    /// Rows that have or had a term of each of these groups ([`IndexWindow::having`]), of an inverted index. There may be others among
    /// them: ask each row.
    Having(Vec<TermGroup>),
}

/// A window as an index looks for it; its edges belong to it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Window {
    /// The lowest and the highest coordinate in each column, and whether it may be NULL instead.
    Points { low: Coordinates, high: Coordinates, may_be_null: SmallVec<[bool; COLUMNS_MAX]> },
    /// The lower and the upper ends in each dimension, and whether keys without extents are in it.
    Extents { low: Ends, high: Ends, takes_others: bool },
}

/// Which entries an index is asked for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Asked {
    /// Those between two bounds.
    Keys(Bounds),
    /// Those in a part of space.
    Space(Window),
    /// Those of records with a key of each of these groups.
    Terms(Vec<Vec<IndexKey>>),
}

impl Asked {
    /// Those of them that a walk in this direction meets up to an end. Entries in a part of space are met in no order.
    pub(crate) fn up_to(self, end: (IndexKey, Rid), direction: Direction) -> Asked {
        match (self, direction) {
            (Asked::Keys((low, _)), Direction::Upward) => Asked::Keys((low, Bound::Included(end))),
            (Asked::Keys((_, high)), Direction::Downward) => Asked::Keys((Bound::Included(end), high)),
            (all @ (Asked::Space(_) | Asked::Terms(_)), _) => all,
        }
    }

    /// Whether a version of a record is asked for that has these keys.
    pub(crate) fn holds(&self, keys: &[Keyed], rid: Rid) -> bool {
        match self {
            Asked::Keys(bounds) => keys.iter().any(|keyed| bounds.contains(&(keyed.key.clone(), rid))),
            Asked::Space(window) => keys.iter().any(|keyed| window.contains(&keyed.key)),
            Asked::Terms(groups) => groups.iter().all(|group| keys.iter().any(|keyed| group.contains(&keyed.key))),
        }
    }
}

impl IndexWindow {
    /// Whether no row can be in it.
    pub(crate) fn is_empty(&self) -> bool {
        let is_null =
            |bound: &Bound<Value>| matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null));
        match self {
            IndexWindow::Between(bounds) => bounds.iter().any(|(low, high)| is_null(low) || is_null(high)),
            IndexWindow::Having(groups) => groups.iter().any(Vec::is_empty),
            IndexWindow::Overlapping { .. } => false,
        }
    }
}

impl Window {
    /// The window of bounds of columns of whole numbers; `None` if no row can be in it.
    pub(crate) fn between(
        table: &TableName,
        columns: &[Column],
        bounds: &[(Bound<Value>, Bound<Value>)],
    ) -> Result<Option<Window>> {
        debug_assert_eq!(columns.len(), bounds.len(), "two bounds for each column of the index");
        let is_open =
            |(low, high): &(Bound<Value>, Bound<Value>)| matches!((low, high), (Bound::Unbounded, Bound::Unbounded));
        let may_be_null = bounds.iter().map(is_open).collect();
        let (mut lows, mut highs) = (Coordinates::new(), Coordinates::new());
        for (at, (low, high)) in bounds.iter().enumerate() {
            let low = match low {
                Bound::Unbounded => Some(i64::MIN),
                Bound::Included(value) => Some(whole(table, columns, at, value)?),
                Bound::Excluded(value) => whole(table, columns, at, value)?.checked_add(1),
            };
            let high = match high {
                Bound::Unbounded => Some(i64::MAX),
                Bound::Included(value) => Some(whole(table, columns, at, value)?),
                Bound::Excluded(value) => whole(table, columns, at, value)?.checked_sub(1),
            };
            let (Some(low), Some(high)) = (low, high) else { return Ok(None) };
            if low > high {
                return Ok(None);
            }
            lows.push(low);
            highs.push(high);
        }
        Ok(Some(Window::Points { low: lows, high: highs, may_be_null }))
    }

    /// The window of extents, for parts of so many dimensions each.
    pub(crate) fn overlapping(
        extents: &[Option<Extent>],
        dimensions: impl Iterator<Item = usize>,
        takes_others: bool,
    ) -> Window {
        let (mut low, mut high) = (Ends::new(), Ends::new());
        for (extent, dimensions) in extents.iter().zip(dimensions) {
            let extent = extent.unwrap_or(Extent::open(dimensions));
            debug_assert_eq!(extent.dimensions, dimensions, "{extent:?} is of another type");
            low.extend_from_slice(&extent.low[..dimensions]);
            high.extend_from_slice(&extent.high[..dimensions]);
        }
        Window::Extents { low, high, takes_others }
    }

    /// What overlaps the extents of a key, or is so near that shapes take it to, if the key has any.
    pub(crate) fn around(key: &IndexKey, dimensions: usize) -> Option<Window> {
        let (mut low, mut high) = ends_of(key, dimensions)?;
        low.iter_mut().for_each(|end| *end -= near(*end));
        high.iter_mut().for_each(|end| *end += near(*end));
        Some(Window::Extents { low, high, takes_others: false })
    }

    /// Every key, those without extents among them.
    pub(crate) fn all(dimensions: usize) -> Window {
        let (low, high) = (iter::repeat_n(f64::NEG_INFINITY, dimensions), iter::repeat_n(f64::INFINITY, dimensions));
        Window::Extents { low: low.collect(), high: high.collect(), takes_others: true }
    }

    /// Whether a key lies within it.
    pub(crate) fn contains(&self, key: &IndexKey) -> bool {
        match self {
            Window::Points { low, high, may_be_null } => {
                let parts = parts_of(key);
                debug_assert_eq!(
                    parts.len(),
                    low.len(),
                    "invariant 7: a key has a coordinate for each column, or NULL"
                );
                parts.iter().enumerate().all(|(column, part)| match part {
                    Some(at) => low[column] <= *at && *at <= high[column],
                    None => may_be_null[column],
                })
            }
            Window::Extents { low, high, takes_others } => match ends_of(key, low.len()) {
                None => *takes_others,
                Some((of_low, of_high)) => {
                    let is_below = |(one, other): (&f64, &f64)| one <= other;
                    of_low.iter().zip(high).all(is_below) && low.iter().zip(&of_high).all(is_below)
                }
            },
        }
    }
}

/// The word of a value, which is no NULL, in its column.
fn whole(table: &TableName, columns: &[Column], at: usize, value: &Value) -> Result<i64> {
    debug_assert!(!value.is_null(), "a bound that is NULL leaves nothing");
    let mut fitted = FittedRow::new(table, columns, std::iter::once((at, value)))?;
    match fitted.cells().next() {
        Some((_, Cell::Word(word))) => Ok(word.cast_signed()),
        other => unreachable!("{other:?} is no whole number"),
    }
}

/// The whole numbers in a key, `None` for NULL.
fn parts_of(key: &IndexKey) -> SmallVec<[Option<i64>; COLUMNS_MAX]> {
    match key {
        IndexKey::Word(word) => SmallVec::from_slice(&[Some(whole_of(*word))]),
        IndexKey::Null => SmallVec::from_slice(&[None]),
        IndexKey::Bytes(bytes) => {
            let (mut parts, mut left) = (SmallVec::new(), &bytes[..]);
            while let [_, behind @ ..] = left {
                // The byte in front of a number is that of a value, which is followed by eight; NULL is a byte alone.
                let number = if left[0] == VALUE { behind.first_chunk::<8>() } else { None };
                parts.push(number.map(|number| whole_of(u64::from_be_bytes(*number))));
                left = &behind[number.map_or(0, |number| number.len())..];
            }
            parts
        }
    }
}

/// The coordinates of a key of one or two whole numbers; `None` if one of them is NULL.
pub(crate) fn coordinates(key: &IndexKey) -> Option<Coordinates> {
    parts_of(key).into_iter().collect()
}

/// The ends of the extents of a key in so many dimensions; `None` if a part of it has none.
pub(crate) fn ends_of(key: &IndexKey, dimensions: usize) -> Option<(Ends, Ends)> {
    match key {
        IndexKey::Bytes(bytes) => ends(bytes, dimensions),
        IndexKey::Word(_) | IndexKey::Null => None,
    }
}

/// The whole number that has this word in the order of keys.
fn whole_of(word: u64) -> i64 {
    ordered_integer(word.cast_signed()).cast_signed()
}

/// The key of coordinates; see [`coordinates`].
pub(crate) fn key_of(at: &[i64]) -> IndexKey {
    debug_assert!((1..=COLUMNS_MAX).contains(&at.len()), "{at:?} are no coordinates of an index");
    match *at {
        [at] => IndexKey::Word(ordered_integer(at)),
        _ => {
            let mut bytes = Vec::with_capacity(at.len() * (1 + size_of::<u64>()));
            for at in at {
                bytes.push(VALUE);
                bytes.extend(ordered_integer(*at).to_be_bytes());
            }
            IndexKey::Bytes(bytes.into())
        }
    }
}

/// Where keys with a NULL stand that may be in a window: the bounds of their bytes. Of one column it is one place.
pub(crate) fn beside_space(window: &Window) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Window::Points { low, high, may_be_null } = window else {
        let has_all = matches!(window, Window::Extents { takes_others: true, .. });
        return has_all.then(|| (Vec::new(), vec![u8::MAX])).into_iter().collect();
    };
    let part = |at: i64| {
        let mut bytes = vec![VALUE];
        bytes.extend(ordered_integer(at).to_be_bytes());
        bytes
    };
    let null = || vec![NULL];
    match **may_be_null {
        [true] => vec![(Vec::new(), Vec::new())],
        [first, second] => {
            let of_second = second.then(|| ([part(low[0]), null()].concat(), [part(high[0]), null()].concat()));
            let of_first = first.then(|| ([null(), part(low[1])].concat(), [null(), part(high[1])].concat()));
            let of_both = (first && second).then(|| ([null(), null()].concat(), [null(), null()].concat()));
            of_second.into_iter().chain(of_first).chain(of_both).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::KeyShape;
    use super::*;

    #[test]
    fn coordinates_of_keys_are_the_numbers_that_they_were_made_of() {
        let numbers = [i64::MIN, -1, 0, 1, 1 << 40, i64::MAX];
        let one = KeyShape::new([DataType::BigInt].into());
        let two = KeyShape::new([DataType::BigInt, DataType::Timestamp].into());
        let cell = |number: i64| Cell::Word(number.cast_unsigned());
        for x in numbers {
            let key = one.key(&[cell(x)]);
            assert_eq!((coordinates(&key).as_deref(), key_of(&[x])), (Some(&[x][..]), key));
            for y in numbers {
                let key = two.key(&[cell(x), cell(y)]);
                assert_eq!((coordinates(&key).as_deref(), key_of(&[x, y])), (Some(&[x, y][..]), key));
            }
            for cells in [[cell(x), Cell::Null], [Cell::Null, cell(x)]] {
                assert_eq!(coordinates(&two.key(&cells)), None);
            }
        }
        assert_eq!(coordinates(&one.key(&[Cell::Null])), None);
    }

    #[test]
    fn windows_have_the_edges_that_their_bounds_say() {
        let columns = [Column::new("x", DataType::SmallInt), Column::new("y", DataType::BigInt)];
        let of = |x: (Bound<i64>, Bound<i64>), y: (Bound<i64>, Bound<i64>)| {
            let bounds = [x, y].map(|(low, high)| (low.map(Value::from), high.map(Value::from)));
            Window::between(&TableName::new("t"), &columns, &bounds).unwrap()
        };
        use Bound::{Excluded, Included, Unbounded};
        let window = of((Included(3), Excluded(9)), (Excluded(0), Unbounded)).unwrap();
        for (at, is_in) in [([3, 1], true), ([8, i64::MAX], true), ([9, 5], false), ([5, 0], false), ([2, 4], false)] {
            assert_eq!(window.contains(&key_of(&at)), is_in, "{at:?}");
        }
        let null_in_second =
            IndexKey::Bytes([&[VALUE][..], &ordered_integer(5).to_be_bytes(), &[NULL]].concat().into());
        assert!(!window.contains(&null_in_second));
        assert!(of((Included(3), Excluded(9)), (Unbounded, Unbounded)).unwrap().contains(&null_in_second));
        assert!(!of((Included(6), Excluded(9)), (Unbounded, Unbounded)).unwrap().contains(&null_in_second));
        assert!(of((Included(3), Excluded(3)), (Unbounded, Unbounded)).is_none());
        assert!(of((Unbounded, Unbounded), (Excluded(i64::MAX), Unbounded)).is_none());
        let null = || Bound::Included(Value::Null);
        assert!(IndexWindow::Between(vec![(Unbounded, Unbounded), (null(), Unbounded)]).is_empty());
    }
}
