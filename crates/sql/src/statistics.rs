//! What the optimizer is told of a scan: how many rows it gives.
use engine::{Comparison, Table, Test};

/// How many rows a scan of the table gives, about.
pub(crate) fn rows(table: &Table, tests: &[(usize, Test)]) -> usize {
    let records = usize::try_from(table.stats().records).unwrap_or(usize::MAX);
    tests.iter().fold(records, |rows, (_, test)| share(test, rows))
}

/// How many of some rows pass a test, where nothing is known of the column: the planner's guess for a filter, and less
/// for what names single values.
fn share(test: &Test, rows: usize) -> usize {
    match test {
        Test::Compare(Comparison::NotEq, _) | Test::IsNotNull => rows,
        _ => rows.div_ceil(5),
    }
}
