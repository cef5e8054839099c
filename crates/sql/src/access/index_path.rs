//! Which index leads to the rows that pass some conditions, if one is worth it.
//!
//! A scan reads encoded columns at many rows a nanosecond, and an index leads from row to row; so it is taken where few rows
//! are in its range, which is found out by counting its entries up to a limit. Of a table that is not all in memory
//! the cost model says how many rows may be read through an index before the whole table costs less ([`ScanCosts`]).
//!
//! An index of an expression leads to the rows for which a condition says something of the very same expression: both have
//! gone through the planner, and are compared as it left them. One of a part of the table is taken only where the conditions
//! say that all rows are in it ([`implied`]).
use std::borrow::Cow;
use std::ops::Bound;

use costs::CostModel;
use datafusion::logical_expr::Expr;
use engine::{
    Comparison, DataType, Index, IndexMethod, IndexPart, IndexRange, IndexWindow, Schema, Table, TermClass, Test, Value,
};

use crate::access::bounds::narrow;
use crate::access::conditions::test_of;
use crate::access::implied;
use crate::access::index_expressions::compiled::{CompiledExpression, comparable};
use crate::access::overlaps::{self, ColumnOverlap, Overlap};
use crate::access::scan_costs::ScanCosts;
use crate::access::terms;

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
/// An inverted one for one of so many: to ask a document or an array for its parts costs as much as to find its row.
const SHARE_OF_TERMS: u64 = 4;
/// So few rows are read through an index in any case.
const ROWS_MIN: usize = 64;
/// More entries are not counted.
const ROWS_MAX: usize = 4096;
/// Lists of values are looked up one by one up to so many.
const RANGES_MAX: usize = 1024;

/// A test of a part of an index's keys, by its number.
type PartTest<'t> = (usize, Cow<'t, Test>);

/// The best way to the rows of a table that pass, other than a scan. `conditions` are all that is known to hold of them, `tests`
/// what of it is about columns.
pub(crate) fn best(
    table: &Table,
    tests: &[(usize, Test)],
    conditions: &[Expr],
    model: &CostModel,
) -> Option<IndexLookup> {
    if conditions.is_empty() || table.is_array() {
        return None;
    }
    let indexes: Vec<Index> = table.primary_index().into_iter().chain(table.indexes()).collect();
    let conditions: Vec<Expr> = match indexes.iter().any(goes_by_conditions) {
        true => conditions.iter().cloned().map(comparable).collect(),
        false => Vec::new(),
    };
    let (limit, limit_of_terms) = rows_limits(table, model);
    let lookup = |index: Index| {
        let of_parts = index.definition().classes.iter().any(|class| *class != TermClass::Trigrams);
        let limit = if of_parts { limit_of_terms } else { limit };
        let tests = part_tests(&index, table.schema(), tests, &conditions)?;
        let ranges = match index.definition().method {
            IndexMethod::Gist => {
                let find = |expr: &Expr| find(&index, table.schema(), expr);
                let overlaps: Vec<_> = conditions.iter().filter_map(|of| overlaps::overlap_of(of, &find)).collect();
                vec![IndexRange::within(overlaps::window(&index, &tests, &overlaps)?)]
            }
            IndexMethod::Gin => {
                let find = |expr: &Expr| find(&index, table.schema(), expr);
                let said = conditions.iter().filter_map(|of| terms::said(&index, of, &find));
                vec![IndexRange::within(terms::window(&index, &tests, said)?)]
            }
            _ => ranges_of(&index, &tests)?,
        };
        let mut rows = 0;
        for range in &ranges {
            rows += table.index_estimate(&index, range, limit - rows).ok()?;
            if rows >= limit {
                return None;
            }
        }
        Some(IndexLookup { index, ranges, rows })
    };
    indexes.into_iter().filter_map(lookup).min_by_key(|lookup| lookup.rows)
}

/// Where an index has so many rows or more, it is not taken; an inverted one.
fn rows_limits(table: &Table, model: &CostModel) -> (usize, usize) {
    let costs = ScanCosts::of(table, 1.0, model);
    let share = |share: u64| usize::try_from(table.stats().records / share).unwrap_or(usize::MAX).max(ROWS_MIN);
    match costs.is_away {
        true => {
            let limit = costs.rows_by_index(ROWS_MAX).max(1) + 1;
            (limit, limit)
        }
        false => (share(SHARE).min(ROWS_MAX), share(SHARE_OF_TERMS)),
    }
}

/// Whether an index may be of use for conditions that are no tests of columns.
fn goes_by_conditions(index: &Index) -> bool {
    index.definition().is_computed() || !index.definition().method.finds_keys()
}

/// The ranges that tests and conditions of space leave of an index of columns, if they leave less than all of it.
pub(crate) fn plain_ranges(
    index: &Index,
    tests: &[(usize, Test)],
    overlaps: &[ColumnOverlap<'_>],
) -> Option<Vec<IndexRange>> {
    let tests = column_tests(index, tests);
    if index.definition().method == IndexMethod::Gist {
        let overlaps: Vec<Overlap> = overlaps.iter().filter_map(|overlap| overlap.of_index(index)).collect();
        return Some(vec![IndexRange::within(overlaps::window(index, &tests, &overlaps)?)]);
    }
    if index.definition().method == IndexMethod::Gin {
        let said = overlaps.iter().filter_map(|overlap| terms::said_of_column(index, overlap));
        return Some(vec![IndexRange::within(terms::window(index, &tests, said)?)]);
    }
    if tests.is_empty() { None } else { ranges_of(index, &tests) }
}

/// The tests of columns that are parts of an index.
fn column_tests<'t>(index: &Index, tests: &'t [(usize, Test)]) -> Vec<PartTest<'t>> {
    let parts = &index.definition().parts;
    let place = |column| parts.iter().position(|part| *part == IndexPart::Column(column));
    tests.iter().filter_map(|(column, test)| Some((place(*column)?, Cow::Borrowed(test)))).collect()
}

/// Whether an index of expressions, or of a part of the table, may be of use because a condition holds.
pub(crate) fn is_of_use(table: &Table, condition: &Expr) -> bool {
    let indexes: Vec<Index> = table.indexes().into_iter().filter(goes_by_conditions).collect();
    if indexes.is_empty() {
        return false;
    }
    let (schema, condition) = (table.schema(), &comparable(condition.clone()));
    let says_of = |predicate: &CompiledExpression| implied::says_of(predicate.logical(), condition, schema);
    let is_of_use = |index: &Index| {
        test_of(condition, &|expr| find(index, schema, expr)).is_some()
            || overlaps::overlap_of(condition, &|expr| find(index, schema, expr)).is_some()
            || terms::said(index, condition, &|expr| find(index, schema, expr)).is_some()
            || index.predicate().as_deref().and_then(CompiledExpression::of).is_some_and(says_of)
    };
    indexes.iter().any(is_of_use)
}

/// The part of an index's keys that an expression is, with its type.
fn find(index: &Index, schema: &Schema, expr: &Expr) -> Option<(usize, DataType)> {
    let is_part = |(at, part): (usize, &IndexPart)| match part {
        IndexPart::Column(column) => {
            matches!(expr, Expr::Column(named) if schema.position(&named.name) == Some(*column))
        }
        IndexPart::Expression(_) => {
            let known = index.expression(at);
            known.as_deref().and_then(CompiledExpression::of).is_some_and(|known| known.logical() == expr)
        }
    };
    let at = index.definition().parts.iter().enumerate().position(is_part)?;
    Some((at, index.key_columns()[at].data_type))
}

/// The tests that can be made of an index's keys; `None` if rows that pass may be missing in the index.
fn part_tests<'t>(
    index: &Index,
    schema: &Schema,
    tests: &'t [(usize, Test)],
    conditions: &[Expr],
) -> Option<Vec<PartTest<'t>>> {
    if !index.definition().is_computed() {
        return Some(column_tests(index, tests));
    }
    if let Some(predicate) = index.predicate()
        && !implied::is_implied(CompiledExpression::of(&*predicate)?.logical(), conditions, schema)
    {
        return None;
    }
    let test = |condition| test_of(condition, &|expr| find(index, schema, expr));
    Some(conditions.iter().filter_map(test).map(|(at, test)| (at, Cow::Owned(test))).collect())
}

/// The ranges of an index, other than one of what overlaps, that the tests leave; `None` if that is all of an index of all rows, or not
/// to be had from it.
fn ranges_of(index: &Index, tests: &[PartTest<'_>]) -> Option<Vec<IndexRange>> {
    let width = index.definition().parts.len();
    if index.definition().predicate.is_none() && !tests.iter().any(|(part, _)| *part == 0) {
        return None;
    }
    let mut beginnings: Vec<Vec<Value>> = vec![Vec::new()];
    let mut known = 0;
    while let Some(values) = (known < width).then(|| values_of(known, tests)).flatten() {
        if beginnings.len() * values.len() > RANGES_MAX {
            break;
        }
        let longer = |beginning: Vec<Value>| {
            values.iter().map(move |value| beginning.iter().chain([value]).cloned().collect::<Vec<Value>>())
        };
        beginnings = beginnings.into_iter().flat_map(longer).collect();
        known += 1;
    }
    if !index.is_ordered() && known < width {
        let window = index.definition().method.is_spatial().then(|| window_of(width, tests))??;
        return Some(vec![IndexRange::within(window)]);
    }
    let range = |equal| {
        let mut range = IndexRange::equal(equal);
        for (_, test) in tests.iter().filter(|(part, _)| *part == known) {
            narrow(&mut range, test);
        }
        range
    };
    let ranges: Vec<IndexRange> = beginnings.into_iter().map(range).collect();
    (ranges != [IndexRange::all()] || index.definition().predicate.is_some()).then_some(ranges)
}

/// The window that tests leave of an index of so many columns, if they bound any of them.
fn window_of(width: usize, tests: &[PartTest<'_>]) -> Option<IndexWindow> {
    let bounds = |part: usize| {
        let mut range = IndexRange::all();
        for (_, test) in tests.iter().filter(|(at, _)| *at == part) {
            match test.as_ref() {
                Test::Compare(Comparison::Eq, value) => {
                    (range.low, range.high) = (Bound::Included(value.clone()), Bound::Included(value.clone()));
                }
                test => narrow(&mut range, test),
            }
        }
        (range.low, range.high)
    };
    let bounds: Vec<_> = (0..width).map(bounds).collect();
    let is_bounded = |bounds: &(Bound<Value>, Bound<Value>)| *bounds != (Bound::Unbounded, Bound::Unbounded);
    bounds.iter().any(is_bounded).then_some(IndexWindow::Between(bounds))
}

/// The values of which a part of the keys must have one, each once.
fn values_of(part: usize, tests: &[PartTest<'_>]) -> Option<Vec<Value>> {
    let of_part = || tests.iter().filter(|(at, _)| *at == part).map(|(_, test)| test.as_ref());
    let pinned = |test: &Test| match test {
        Test::IsNull => Some(vec![Value::Null]),
        Test::Compare(Comparison::Eq, value) => Some(vec![value.clone()]),
        _ => None,
    };
    let listed = |test: &Test| match test {
        Test::In(values) if values.len() <= RANGES_MAX => {
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
    of_part().find_map(pinned).or_else(|| of_part().find_map(listed))
}
