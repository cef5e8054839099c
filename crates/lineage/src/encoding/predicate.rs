//! Predicates on one column, as scans push them down, and their translation into intervals.
//!
//! [`Test::passes`] is the rule: what a test says of one value. It orders values as Arrow's comparison kernels do: text
//! and bytea by bytes, floats by IEEE 754's total order, decimals by their digits, numerics by their numbers, whatever
//! decimals they show; NULL passes nothing but IS NULL.
//!
//! Encoded columns do not ask it row by row. Every type has an order, and a test is a union of intervals of that
//! order; [`Test::ranges`] says which, for any ordered set of positions: the integers themselves, or the entries of a
//! sorted dictionary.
use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use types::{DataType, Value, numeric};

use super::key_filter::KeyFilter;
use super::keys::{is_float, key_of_word, ordered_double, ordered_real, wide_decimal};
use crate::value::cell::{Cell, Scratch, Storage, bytes_of, cell_of_value, is_wide, word_of};

/// How a value is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Eq,
    NotEq,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A predicate on one column. Its values have the column's type and scale.
#[derive(Clone, PartialEq, Debug)]
pub enum Test {
    /// The comparison with the value holds.
    Compare(Comparison, Value),
    /// Between the two, both included.
    Between(Value, Value),
    /// Equal to one of them.
    In(Vec<Value>),
    /// Is NULL.
    IsNull,
    /// Is not NULL.
    IsNotNull,
    /// Text, bytea or a uuid's text that begins with these bytes. Nothing else does.
    Prefix(Vec<u8>),
    /// An integer or a date among keys that become known while the query runs. More may pass, and all do before that.
    Among(Arc<KeyFilter>),
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Eq => ordering.is_eq(),
            Comparison::NotEq => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

impl Test {
    /// Whether all values between two that pass do, too.
    pub fn is_of_a_range(&self) -> bool {
        match self {
            Test::Compare(comparison, _) => *comparison != Comparison::NotEq,
            Test::Between(..) | Test::IsNotNull => true,
            Test::In(_) | Test::IsNull | Test::Prefix(_) | Test::Among(_) => false,
        }
    }

    /// Whether one value of the type passes: the rule that everything else is held to.
    pub fn passes(&self, cell: Cell<'_>, data_type: DataType) -> bool {
        let against = |value: &Value| compare(cell, value, data_type);
        match self {
            Test::Compare(comparison, value) => against(value).is_some_and(|ordering| comparison.holds(ordering)),
            Test::Between(low, high) => {
                against(low).is_some_and(Ordering::is_ge) && against(high).is_some_and(Ordering::is_le)
            }
            Test::In(values) => values.iter().any(|value| against(value).is_some_and(Ordering::is_eq)),
            Test::IsNull => cell == Cell::Null,
            Test::IsNotNull => cell != Cell::Null,
            Test::Prefix(_) if Storage::of(data_type) == Storage::WideDecimal => false,
            Test::Prefix(prefix) => matches!(cell, Cell::Bytes(bytes) if bytes.starts_with(prefix)),
            Test::Among(filter) => filter.passes(cell),
        }
    }

    /// Whether a value passes that is exactly of the type.
    pub fn holds_for(&self, value: &Value, data_type: DataType) -> bool {
        value.fits(data_type) && self.passes(cell_of_value(value, data_type, &mut Scratch::default()), data_type)
    }

    /// The positions of `order` with values that pass, as half-open ranges, some perhaps empty, in no particular
    /// order. Not for IS NULL and IS NOT NULL, which no position can tell, nor for sets of keys, which have no ranges.
    pub(super) fn ranges<O: Order>(&self, order: &O) -> Ranges {
        let (first, end) = order.positions();
        let equal = |value: &Value| (order.below(value), order.up_to(value));
        match self {
            Test::Compare(_, Value::Null) | Test::IsNull | Test::IsNotNull => smallvec![],
            Test::Compare(comparison, value) => {
                let (below, up_to) = equal(value);
                match comparison {
                    Comparison::Eq => smallvec![(below, up_to)],
                    Comparison::NotEq => smallvec![(first, below), (up_to, end)],
                    Comparison::Less => smallvec![(first, below)],
                    Comparison::LessOrEqual => smallvec![(first, up_to)],
                    Comparison::Greater => smallvec![(up_to, end)],
                    Comparison::GreaterOrEqual => smallvec![(below, end)],
                }
            }
            Test::Between(Value::Null, _) | Test::Between(_, Value::Null) => smallvec![],
            Test::Between(low, high) => smallvec![(order.below(low), order.up_to(high))],
            Test::In(values) => values.iter().filter(|value| !value.is_null()).map(equal).collect(),
            Test::Prefix(prefix) => smallvec![order.beginning_with(prefix)],
            Test::Among(_) => smallvec![(first, end)],
        }
    }
}

/// A test on single cells of a type, with the keys that pass it where the type has keys.
pub(crate) struct CellTest<'t> {
    test: &'t Test,
    data_type: DataType,
    keys: Option<Intervals>,
}

impl<'t> CellTest<'t> {
    /// The test on a column of this type.
    pub fn new(test: &'t Test, data_type: DataType) -> CellTest<'t> {
        let has_keys = !is_wide(data_type) && !matches!(test, Test::IsNull | Test::IsNotNull | Test::Among(_));
        let keys = has_keys.then(|| Intervals::of_ranges(&test.ranges(&KeyOrder)));
        CellTest { test, data_type, keys }
    }

    /// Whether the cell passes: what [`Test::passes`] says.
    #[inline]
    pub fn passes(&self, cell: Cell<'_>) -> bool {
        match (&self.keys, cell) {
            (Some(keys), Cell::Word(word)) => keys.contains(key_of_word(word, self.data_type)),
            (Some(_), _) => false,
            (None, _) => self.test.passes(cell, self.data_type),
        }
    }

    /// Which of at most 64 cells pass, a bit each: those of these words, but NULL where `nulls` has its bit.
    pub fn passing(&self, words: &[u64], nulls: u64) -> u64 {
        debug_assert!(words.len() <= 64);
        let bits =
            |passes: &dyn Fn(usize) -> bool| (0..words.len()).fold(0, |bits, at| bits | u64::from(passes(at)) << at);
        let Some(keys) = &self.keys else {
            let cell = |at: usize| if nulls >> at & 1 != 0 { Cell::Null } else { Cell::Word(words[at]) };
            return bits(&|at| self.passes(cell(at)));
        };
        let passing = match keys.0[..] {
            [(low, high)] if !is_float(self.data_type) => {
                // One comparison without a branch: what lies below is far above, once it has wrapped around.
                let (low, width) = (low as u64, high.wrapping_sub(low) as u64);
                words.iter().rev().fold(0, |bits, word| bits << 1 | u64::from(word.wrapping_sub(low) <= width))
            }
            _ => bits(&|at| keys.contains(key_of_word(words[at], self.data_type))),
        };
        passing & !nulls
    }
}

/// Half-open ranges of positions.
pub(super) type Ranges = SmallVec<[(i128, i128); 2]>;

/// Values in ascending order at positions.
pub(super) trait Order {
    /// The first position and the one after the last.
    fn positions(&self) -> (i128, i128);
    /// The position before which all lie below `value`.
    fn below(&self, value: &Value) -> i128;
    /// The position before which all lie below `value` or equal it.
    fn up_to(&self, value: &Value) -> i128;
    /// The positions of values that begin with these bytes.
    fn beginning_with(&self, prefix: &[u8]) -> (i128, i128);
}

/// The order of all numbers that a key can be: the position of a key is the key itself.
pub(super) struct KeyOrder;

impl Order for KeyOrder {
    fn positions(&self) -> (i128, i128) {
        (i128::from(i64::MIN), i128::from(i64::MAX) + 1)
    }

    fn below(&self, value: &Value) -> i128 {
        let (first, end) = self.positions();
        number_of(value).clamp(first, end)
    }

    fn up_to(&self, value: &Value) -> i128 {
        let (first, end) = self.positions();
        number_of(value).saturating_add(1).clamp(first, end)
    }

    fn beginning_with(&self, _: &[u8]) -> (i128, i128) {
        (0, 0)
    }
}

/// A sorted list of cells (the entries of a dictionary, or the least and greatest value of a zone) of a type that is
/// not a number of 64 bits.
pub(crate) struct CellOrder<C> {
    pub data_type: DataType,
    pub len: usize,
    /// the cell at a position
    pub cell: C,
}

impl<'a, C: Fn(usize) -> Cell<'a>> CellOrder<C> {
    /// How many cells satisfy `is_before`; those that do come first.
    fn count(&self, is_before: impl Fn(Cell<'a>) -> bool) -> i128 {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = (low + high) / 2;
            if is_before((self.cell)(middle)) { low = middle + 1 } else { high = middle }
        }
        low as i128
    }
}

impl<'a, C: Fn(usize) -> Cell<'a>> Order for CellOrder<C> {
    fn positions(&self) -> (i128, i128) {
        (0, self.len as i128)
    }

    fn below(&self, value: &Value) -> i128 {
        self.count(|cell| compare(cell, value, self.data_type).is_some_and(Ordering::is_lt))
    }

    fn up_to(&self, value: &Value) -> i128 {
        self.count(|cell| compare(cell, value, self.data_type).is_some_and(Ordering::is_le))
    }

    fn beginning_with(&self, prefix: &[u8]) -> (i128, i128) {
        if Storage::of(self.data_type) == Storage::WideDecimal {
            return (0, 0);
        }
        let is_below = |cell: Cell<'_>| matches!(cell, Cell::Bytes(bytes) if bytes < prefix);
        let begins = |cell: Cell<'_>| matches!(cell, Cell::Bytes(bytes) if bytes.starts_with(prefix));
        (self.count(is_below), self.count(|cell| is_below(cell) || begins(cell)))
    }
}

/// The order of a cell and a value of the same type; `None` if one of them is NULL.
pub(super) fn compare(cell: Cell<'_>, value: &Value, data_type: DataType) -> Option<Ordering> {
    match (cell, value) {
        (Cell::Null, _) | (_, Value::Null) => None,
        (Cell::Word(word), Value::Real(value)) => Some(f32::from_bits(word as u32).total_cmp(value)),
        (Cell::Word(word), Value::Double(value)) => Some(f64::from_bits(word).total_cmp(value)),
        (Cell::Word(word), value) => Some(i128::from(word as i64).cmp(&number_of(value))),
        (Cell::Bytes(bytes), Value::Numeric(value)) => {
            Some(numeric::key_of(bytes).cmp(numeric::key_of(value.as_bytes())))
        }
        (Cell::Bytes(bytes), Value::Decimal(value)) => Some(wide_decimal(bytes).cmp(&value.unscaled)),
        (Cell::Bytes(bytes), value) => {
            debug_assert!(is_wide(data_type), "{value} is compared with a column of {data_type}");
            Some(bytes.cmp(bytes_of(value, &mut Scratch::default())))
        }
    }
}

/// The number that a value of at most 64 bits is in its type's order; a decimal may have more digits than a column.
pub(super) fn number_of(value: &Value) -> i128 {
    match value {
        Value::Real(value) => i128::from(ordered_real(value.to_bits())),
        Value::Double(value) => i128::from(ordered_double(value.to_bits())),
        Value::Decimal(value) => value.unscaled,
        value => match word_of(value) {
            Some(word) => i128::from(word as i64),
            None => unreachable!("{value} is not a number"),
        },
    }
}

/// Sorted, disjoint, non-empty intervals of keys, both ends included.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Intervals(SmallVec<[(i64, i64); 2]>);

/// The verdict of a block's extremes on a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// No value passes.
    None,
    /// Every value that is not NULL passes.
    All,
    /// The rows must be looked at.
    Some,
}

impl Intervals {
    /// The intervals of these half-open ranges.
    pub fn of_ranges(ranges: &[(i128, i128)]) -> Intervals {
        let filled = ranges.iter().filter(|(from, to)| from < to);
        Intervals::of(filled.map(|(from, to)| (*from as i64, (to - 1) as i64)).collect())
    }

    /// The union of these intervals.
    pub fn of(mut intervals: SmallVec<[(i64, i64); 2]>) -> Intervals {
        intervals.sort_unstable();
        let mut merged: SmallVec<[(i64, i64); 2]> = SmallVec::new();
        for (low, high) in intervals {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Intervals(merged)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (i64, i64)> + '_ {
        self.0.iter().copied()
    }

    /// Whether a search for each key is quicker than a pass over the keys for each interval.
    pub fn are_many(&self) -> bool {
        const MANY: usize = 64;
        self.0.len() > MANY
    }

    #[inline]
    pub fn contains(&self, key: i64) -> bool {
        if let [(low, high)] = self.0[..] {
            return low <= key && key <= high;
        }
        let after = self.0.partition_point(|(low, _)| *low <= key);
        after > 0 && key <= self.0[after - 1].1
    }

    /// The intervals that meet `low..=high`, cut to it.
    pub fn clipped(&self, low: i64, high: i64) -> impl Iterator<Item = (i64, i64)> + Clone + '_ {
        let from = self.0.partition_point(|interval| interval.1 < low);
        self.0[from..]
            .iter()
            .take_while(move |interval| interval.0 <= high)
            .map(move |(l, h)| (low.max(*l), high.min(*h)))
    }

    /// The verdict on a block with keys in `low..=high`.
    pub fn verdict(&self, low: i64, high: i64) -> Verdict {
        match self.clipped(low, high).next() {
            None => Verdict::None,
            Some(first) if first == (low, high) => Verdict::All,
            Some(_) => Verdict::Some,
        }
    }
}
