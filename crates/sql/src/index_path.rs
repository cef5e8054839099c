//! Which index leads to the rows that pass some conditions, if one is worth it.
//!
//! A scan reads encoded columns at many rows a nanosecond, and an index leads from row to row; so it is taken where few rows
//! are in its range, which is found out by counting its entries up to a limit.
use std::ops::Bound;

use engine::{Comparison, Index, IndexRange, Table, Test, Value};

use crate::conditions::equality;

/// An index, with the range of it in which all rows are that pass.
#[derive(Clone)]
pub(crate) struct IndexLookup {
    pub(crate) index: Index,
    pub(crate) range: IndexRange,
    /// about how many rows
    pub(crate) rows: usize,
}

/// An index is taken for one row of so many at most.
const SHARE: u64 = 16;
/// So few rows are read through an index in any case.
const ROWS_MIN: usize = 64;
/// More entries are not counted.
const ROWS_MAX: usize = 4096;

/// The best way to the rows of a table that pass, other than a scan.
pub(crate) fn best(table: &Table, tests: &[(usize, Test)]) -> Option<IndexLookup> {
    if tests.is_empty() {
        return None;
    }
    let limit = usize::try_from(table.stats().records / SHARE).unwrap_or(usize::MAX).clamp(ROWS_MIN, ROWS_MAX);
    let lookup = |index: Index| {
        let range = range_of(&index, tests)?;
        let rows = table.index_estimate(&index, &range, limit).ok().filter(|rows| *rows < limit)?;
        Some(IndexLookup { index, range, rows })
    };
    table.indexes().into_iter().filter_map(lookup).min_by_key(|lookup| lookup.rows)
}

/// The range of an index that the tests leave; `None` if that is all of it, or not to be had from it.
fn range_of(index: &Index, tests: &[(usize, Test)]) -> Option<IndexRange> {
    let columns = &index.definition().columns;
    let equal: Vec<Value> = columns.iter().map_while(|column| value_of(*column, tests)).collect();
    let next = columns.get(equal.len());
    if !index.is_ordered() {
        return next.is_none().then(|| IndexRange::equal(equal));
    }
    let mut range = IndexRange { equal, low: Bound::Unbounded, high: Bound::Unbounded };
    for (_, test) in tests.iter().filter(|(column, _)| Some(column) == next) {
        narrow(&mut range, test);
    }
    (range != IndexRange::all()).then_some(range)
}

/// The value that a column must have.
fn value_of(column: usize, tests: &[(usize, Test)]) -> Option<Value> {
    let value = |test: &(usize, Test)| match test {
        (at, Test::IsNull) if *at == column => Some(Value::Null),
        test => equality(test).filter(|(at, _)| *at == column).map(|(_, value)| value.clone()),
    };
    tests.iter().find_map(value)
}

/// Takes a test of the range's next column in. The first of several bounds on a side counts, as all tests are made of every
/// row that is read.
fn narrow(range: &mut IndexRange, test: &Test) {
    let (low, high) = match test {
        Test::Compare(Comparison::Greater, value) => (Bound::Excluded(value.clone()), Bound::Unbounded),
        Test::Compare(Comparison::GreaterOrEqual, value) => (Bound::Included(value.clone()), Bound::Unbounded),
        Test::Compare(Comparison::Less, value) => (Bound::Unbounded, Bound::Excluded(value.clone())),
        Test::Compare(Comparison::LessOrEqual, value) => (Bound::Unbounded, Bound::Included(value.clone())),
        Test::Between(low, high) => (Bound::Included(low.clone()), Bound::Included(high.clone())),
        Test::Prefix(prefix) => match beginning_with(prefix) {
            Some(bounds) => bounds,
            None => return,
        },
        _ => return,
    };
    if range.low == Bound::Unbounded {
        range.low = low;
    }
    if range.high == Bound::Unbounded {
        range.high = high;
    }
}

/// The bounds of texts that begin in some way, where its last character has a next one of its length.
fn beginning_with(prefix: &[u8]) -> Option<(Bound<Value>, Bound<Value>)> {
    let text = std::str::from_utf8(prefix).ok()?;
    let last = *prefix.last().filter(|last| **last < 0x7f)?;
    let end = format!("{}{}", &text[..text.len() - 1], char::from(last + 1));
    Some((Bound::Included(Value::from(text)), Bound::Excluded(Value::from(end.as_str()))))
}
