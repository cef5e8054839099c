//! Which index leads to the rows that pass some conditions, if one is worth it.
//!
//! A scan reads encoded columns at many rows a nanosecond, and an index leads from row to row; so it is taken where few rows
//! are in its range, which is found out by counting its entries up to a limit.
use std::ops::Bound;

use engine::{Comparison, Index, IndexRange, Table, Test, Value};

use crate::conditions::equality;

/// An index, with the ranges of it in which all rows are that pass; no two have a row in common.
#[derive(Clone)]
pub(crate) struct IndexLookup {
    pub(crate) index: Index,
    pub(crate) ranges: Vec<IndexRange>,
    /// about how many rows
    pub(crate) rows: usize,
}

/// An index is taken for one row of so many at most.
const SHARE: u64 = 16;
/// So few rows are read through an index in any case.
const ROWS_MIN: usize = 64;
/// More entries are not counted.
const ROWS_MAX: usize = 4096;
/// Lists of values are looked up one by one up to so many.
const RANGES_MAX: usize = 1024;

/// The best way to the rows of a table that pass, other than a scan.
pub(crate) fn best(table: &Table, tests: &[(usize, Test)]) -> Option<IndexLookup> {
    if tests.is_empty() {
        return None;
    }
    let limit = usize::try_from(table.stats().records / SHARE).unwrap_or(usize::MAX).clamp(ROWS_MIN, ROWS_MAX);
    let lookup = |index: Index| {
        let ranges = ranges_of(&index, tests)?;
        let mut rows = 0;
        for range in &ranges {
            rows += table.index_estimate(&index, range, limit - rows).ok()?;
            if rows >= limit {
                return None;
            }
        }
        Some(IndexLookup { index, ranges, rows })
    };
    let indexes = table.primary_index().into_iter().chain(table.indexes());
    indexes.filter_map(lookup).min_by_key(|lookup| lookup.rows)
}

/// The ranges of an index that the tests leave; `None` if that is all of it, or not to be had from it.
fn ranges_of(index: &Index, tests: &[(usize, Test)]) -> Option<Vec<IndexRange>> {
    let columns = &index.definition().columns;
    let mut beginnings: Vec<Vec<Value>> = vec![Vec::new()];
    let mut known = 0;
    while let Some(values) = columns.get(known).and_then(|column| values_of(*column, tests)) {
        if beginnings.len() * values.len() > RANGES_MAX {
            break;
        }
        let longer = |beginning: Vec<Value>| {
            values.iter().map(move |value| beginning.iter().chain([value]).cloned().collect::<Vec<Value>>())
        };
        beginnings = beginnings.into_iter().flat_map(longer).collect();
        known += 1;
    }
    let next = columns.get(known);
    if !index.is_ordered() && next.is_some() {
        return None;
    }
    let range = |equal| {
        let mut range = IndexRange { equal, low: Bound::Unbounded, high: Bound::Unbounded };
        for (_, test) in tests.iter().filter(|(column, _)| Some(column) == next) {
            narrow(&mut range, test);
        }
        range
    };
    let ranges: Vec<IndexRange> = beginnings.into_iter().map(range).collect();
    (ranges != [IndexRange::all()]).then_some(ranges)
}

/// The values of which a column must have one, each once.
fn values_of(column: usize, tests: &[(usize, Test)]) -> Option<Vec<Value>> {
    let pinned = |test: &(usize, Test)| match test {
        (at, Test::IsNull) if *at == column => Some(vec![Value::Null]),
        test => equality(test).filter(|(at, _)| *at == column).map(|(_, value)| vec![value.clone()]),
    };
    let listed = |test: &(usize, Test)| match test {
        (at, Test::In(values)) if *at == column && values.len() <= RANGES_MAX => {
            let mut once: Vec<Value> = Vec::with_capacity(values.len());
            for value in values {
                if !once.contains(value) {
                    once.push(value.clone());
                }
            }
            Some(once)
        }
        _ => None,
    };
    tests.iter().find_map(pinned).or_else(|| tests.iter().find_map(listed))
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
