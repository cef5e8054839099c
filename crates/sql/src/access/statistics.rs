//! Estimates for the optimizer of a scan: how many rows it gives, and of its columns the distinct values and the
//! NULLs. They come from what merges have seen, and are taken for no more.
//!
//! Tests are taken to be independent of one another, but those of one column are taken together: its range tests cut
//! out a part of the span between its extremes, over which values are taken to be spread evenly.
use std::collections::BTreeMap;

use arrow_schema::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use engine::{Comparison, Decimal, Table, TableStatistics, Test, Value};

/// The share of rows that is taken to pass where nothing is known: the planner's own guess for a filter.
const GUESS: f64 = 0.2;
/// The share of texts that is taken to begin in one way.
const GUESS_OF_PREFIX: f64 = 0.1;

/// Estimates of the rows that pass the tests; `columns` are the table's columns of the scan's output, `None` for
/// the row id.
pub(crate) fn of_scan(
    table: &Table,
    tests: &[(usize, Test)],
    columns: &[Option<usize>],
    schema: &SchemaRef,
) -> Statistics {
    let known = table.statistics();
    let rows = passing(&known, tests);
    let mut statistics = of_rows(rows, schema);
    for (column, told) in columns.iter().zip(&mut statistics.column_statistics) {
        if let Some(column) = *column
            && known.rows_merged > 0
        {
            *told = of_column(&known, column, rows);
        }
    }
    statistics
}

/// What the planner is told of a table before it chooses an order of joins.
pub(crate) struct TableEstimates {
    /// about how many rows pass the tests
    pub(crate) rows: f64,
    /// about how many there are
    pub(crate) whole: f64,
    /// of each column asked for: its distinct values in the table
    pub(crate) domains: Vec<f64>,
}

/// Estimates of a table's rows and of columns of it, `None` for the row id. `others` is the share of rows that pass what no test says.
pub(crate) fn of_table(
    table: &Table,
    tests: &[(usize, Test)],
    others: f64,
    columns: impl Iterator<Item = Option<usize>>,
) -> TableEstimates {
    let known = table.statistics();
    let whole = (known.rows as f64).max(1.0);
    let is_key = |column: usize| table.schema().primary_key() == [column];
    let domain = |column: Option<usize>| match column {
        Some(column) if known.rows_merged > 0 => (known.columns[column].distinct as f64).clamp(1.0, whole),
        // Of a reference to another table that one's key has the greater domain, which then counts.
        Some(column) if !is_key(column) => whole.sqrt(),
        _ => whole,
    };
    let rows = (passing(&known, tests) as f64 * others).max(1.0);
    TableEstimates { rows, whole: known.rows as f64, domains: columns.map(domain).collect() }
}

/// Estimates where only the number of rows is known.
pub(crate) fn of_rows(rows: usize, schema: &SchemaRef) -> Statistics {
    let mut statistics = Statistics::new_unknown(schema);
    let width = |field: &arrow_schema::FieldRef| field.data_type().primitive_width().unwrap_or(24);
    let width: usize = schema.fields().iter().map(width).sum();
    statistics.num_rows = Precision::Inexact(rows);
    statistics.total_byte_size = Precision::Inexact(rows.saturating_mul(width));
    statistics
}

/// The extremes are not told: the planner would work out conditions on them, and report what can't be cast there.
fn of_column(known: &TableStatistics, column: usize, rows: usize) -> ColumnStatistics {
    let column = &known.columns[column];
    let nulls = share_of(column.nulls, known.rows) * rows as f64;
    ColumnStatistics {
        null_count: Precision::Inexact(nulls as usize),
        distinct_count: Precision::Inexact(usize::try_from(column.distinct).unwrap_or(usize::MAX).min(rows)),
        ..ColumnStatistics::new_unknown()
    }
}

fn share_of(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) }
}

/// About how many rows pass all tests; one at least, as nothing is known for certain.
fn passing(known: &TableStatistics, tests: &[(usize, Test)]) -> usize {
    let mut by_column: BTreeMap<usize, Vec<&Test>> = BTreeMap::new();
    tests.iter().for_each(|(column, test)| by_column.entry(*column).or_default().push(test));
    let shares = by_column.iter().map(|(column, tests)| share(known, *column, tests));
    let rows = (known.rows as f64 * shares.product::<f64>()).ceil();
    if known.rows == 0 { 0 } else { (rows as usize).max(1) }
}

/// The share of rows that pass these tests in the column.
fn share(known: &TableStatistics, column: usize, tests: &[&Test]) -> f64 {
    let (rows, column) = (known.rows, &known.columns[column]);
    let values = 1.0 - share_of(column.nulls, rows);
    let is_known = known.rows_merged > 0 && column.distinct > 0;
    let single = if is_known { values / column.distinct as f64 } else { GUESS };
    let mut span = Span::new(column.min.as_ref(), column.max.as_ref());
    let mut share: f64 = 1.0;
    for test in tests {
        let passes = match test {
            Test::Compare(Comparison::Eq, _) => single,
            Test::Compare(Comparison::NotEq, _) => values - single,
            Test::In(list) => (single * list.len() as f64).min(values),
            Test::IsNull if known.rows_merged > 0 => 1.0 - values,
            Test::IsNull => GUESS,
            Test::IsNotNull => values,
            Test::Prefix(_) => GUESS_OF_PREFIX,
            Test::Among(_) => 1.0,
            Test::Compare(Comparison::Less | Comparison::LessOrEqual, high) => span.cut(None, Some(high)),
            Test::Compare(_, low) => span.cut(Some(low), None),
            Test::Between(low, high) => span.cut(Some(low), Some(high)),
        };
        share = share.min(passes);
    }
    share.min(span.share(single.min(GUESS)) * values).max(0.0)
}

/// The part of the span between a column's extremes that range tests leave.
struct Span {
    extremes: Option<(f64, f64)>,
    low: f64,
    high: f64,
    is_guess: bool,
}

impl Span {
    fn new(min: Option<&Value>, max: Option<&Value>) -> Span {
        let extremes = min.and_then(number).zip(max.and_then(number)).filter(|(min, max)| min < max);
        Span { extremes, low: 0.0, high: 1.0, is_guess: false }
    }

    /// Takes a range test in; it says nothing by itself, as the next one may be about the other side.
    fn cut(&mut self, low: Option<&Value>, high: Option<&Value>) -> f64 {
        match self.extremes {
            None => self.is_guess = true,
            Some((min, max)) => {
                let place = |value: Option<&Value>| Some(((number(value?)? - min) / (max - min)).clamp(0.0, 1.0));
                self.low = self.low.max(place(low).unwrap_or(0.0));
                self.high = self.high.min(place(high).unwrap_or(1.0));
            }
        }
        1.0
    }

    /// The share of values left: a single one's at least.
    fn share(&self, single: f64) -> f64 {
        match self.is_guess {
            true => GUESS,
            false => (self.high - self.low).max(single.min(1.0)),
        }
    }
}

/// Where a value stands among those of its type; `None` for types without distances.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::SmallInt(value) => f64::from(*value),
        Value::Integer(value) | Value::Date(value) => f64::from(*value),
        Value::BigInt(value) | Value::Timestamp(value) | Value::TimestampTz(value) => *value as f64,
        Value::Real(value) => f64::from(*value),
        Value::Double(value) => *value,
        Value::Decimal(Decimal { unscaled, scale }) => *unscaled as f64 / 10f64.powi(i32::from(*scale)),
        _ => return None,
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> TableStatistics {
        let column = |nulls, min: Value, max: Value, distinct| engine::ColumnStatistics {
            nulls,
            min: Some(min),
            max: Some(max),
            distinct,
        };
        let columns = vec![
            column(0, Value::Integer(0), Value::Integer(100), 100),
            column(500, Value::from("a"), Value::from("z"), 10),
        ];
        TableStatistics { rows: 1000, rows_merged: 1000, columns }
    }

    fn rows(tests: Vec<(usize, Test)>) -> usize {
        passing(&known(), &tests)
    }

    #[test]
    fn tests_pass_about_their_share_of_the_rows() {
        let compare = |comparison, value: i32| (0, Test::Compare(comparison, Value::Integer(value)));
        assert_eq!(rows(vec![]), 1000);
        assert_eq!(rows(vec![compare(Comparison::Eq, 7)]), 10);
        assert_eq!(rows(vec![compare(Comparison::Less, 25)]), 250);
        assert_eq!(rows(vec![compare(Comparison::GreaterOrEqual, 25), compare(Comparison::Less, 75)]), 500);
        assert_eq!(rows(vec![(0, Test::Between(Value::Integer(10), Value::Integer(20)))]), 100);
        assert_eq!(rows(vec![compare(Comparison::Greater, 200)]), 10, "something may have come since the merge");
        assert_eq!(rows(vec![(0, Test::In((0..5).map(Value::Integer).collect()))]), 50);
        assert_eq!(rows(vec![(1, Test::IsNull)]), 500);
        assert_eq!(rows(vec![(1, Test::Compare(Comparison::Eq, Value::from("c")))]), 50);
        assert_eq!(rows(vec![(1, Test::Compare(Comparison::Less, Value::from("c")))]), 100);
        assert_eq!(rows(vec![(1, Test::IsNotNull), compare(Comparison::Less, 10)]), 50);
    }

    #[test]
    fn without_a_merge_there_are_guesses() {
        let mut known = known();
        known.rows_merged = 0;
        for column in &mut known.columns {
            *column = engine::ColumnStatistics { nulls: 0, min: None, max: None, distinct: 0 };
        }
        let test = |test| passing(&known, &[(0, test)]);
        assert_eq!(test(Test::Compare(Comparison::Eq, Value::Integer(1))), 200);
        assert_eq!(test(Test::Between(Value::Integer(1), Value::Integer(2))), 200);
        assert_eq!(test(Test::IsNotNull), 1000);
        known.rows = 0;
        assert_eq!(passing(&known, &[]), 0);
    }
}
