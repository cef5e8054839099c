//! The benchmark's tables that a database already holds, so that a second run need not load again and other tables
//! are not touched.
use engine::{Database, Snapshot};
use tpchgen::generators::OrderGenerator;

use super::load::rows_expected;
use super::tables::{TABLES, scaled, schema};
use crate::LabError;

/// The tables that are there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExistingTables {
    /// None of the tables.
    Nothing,
    /// The tables, of a load that did not come to its end.
    CutOff,
    /// The complete data of the scale factor asked for.
    Complete,
    /// The complete data of another scale factor, or data that was changed by other hands: what differs.
    Other(String),
}

/// Looks for tables of the benchmark. Tables with these names but other columns are an error: they have another
/// use.
pub(super) fn look(db: &Database, sf: f64) -> Result<ExistingTables, LabError> {
    let names = db.table_names();
    let found: Vec<&str> = TABLES.into_iter().filter(|table| names.iter().any(|name| name == table)).collect();
    for table in &found {
        if **db.table(table)?.schema() != schema(table) {
            let why = format!("table \"{table}\" exists and is not that of TPC-H; choose another directory");
            return Err(LabError::Failed(why));
        }
    }
    if found.is_empty() {
        return Ok(ExistingTables::Nothing);
    }
    // The load commits `region` last.
    if found.len() < TABLES.len() || count(db, "region", None)? == 0 {
        return Ok(ExistingTables::CutOff);
    }
    let last_order = last_order_key(sf);
    for table in TABLES {
        // Orders above the last key of the scale factor were added by earlier runs.
        let (limit, expected) = match table {
            "orders" => (Some(last_order), rows_expected(table, sf)),
            "lineitem" => (Some(last_order), line_count(sf)),
            _ => (None, rows_expected(table, sf)),
        };
        let there = count(db, table, limit)?;
        if there != expected {
            return Ok(ExistingTables::Other(format!(
                "table \"{table}\" has {there} rows where {expected} are expected"
            )));
        }
    }
    Ok(ExistingTables::Complete)
}

/// Drops the tables of the benchmark.
pub(super) fn drop_tables(db: &Database) -> Result<(), LabError> {
    let names = db.table_names();
    for table in TABLES.iter().filter(|table| names.iter().any(|name| name == *table)) {
        db.drop_table(table)?;
    }
    Ok(())
}

/// The largest order key that the generator gives at a scale factor.
pub(super) fn last_order_key(sf: f64) -> i64 {
    let last = i64::try_from(scaled(1_500_000, sf)).expect("a scale factor has an upper bound");
    // Of the last eight orders, one has the largest key, as the low bits of the number are kept.
    (last.saturating_sub(8).max(1)..=last).map(OrderGenerator::make_order_key).max().unwrap_or(0)
}

/// How many lines the generator gives all orders of a scale factor together.
fn line_count(sf: f64) -> u64 {
    let mut lines = OrderGenerator::create_line_count_random();
    let mut next = || {
        let count = lines.next_value();
        lines.row_finished();
        u64::try_from(count).unwrap_or(0)
    };
    (0..scaled(1_500_000, sf)).map(|_| next()).sum()
}

/// Counts the visible rows of a table, or of those with a first column of at most `limit`.
pub(super) fn count(db: &Database, table: &str, limit: Option<i64>) -> Result<u64, LabError> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    let snapshot: Snapshot = db.snapshot();
    let options = engine::ScanOptions { columns: vec![0], ..engine::ScanOptions::default() };
    let scan = db.table(table)?.scan(snapshot, options)?;
    let mut count = 0;
    while let Some(batches) = scan.next_range() {
        for batch in batches? {
            count += match limit {
                None => batch.num_rows() as u64,
                Some(limit) => {
                    let keys = batch.column(0).as_primitive::<Int64Type>();
                    keys.values().iter().filter(|key| **key <= limit).count() as u64
                }
            };
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpch::rows;

    #[test]
    fn keys_and_lines_are_those_of_the_generator() {
        use arrow_array::cast::AsArray;
        use arrow_array::types::Int64Type;

        for sf in [0.001, 0.01] {
            let batches: Vec<_> = rows::Rows::new(sf).batches("lineitem", 1, 1).collect();
            let keys = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
            assert_eq!(keys.max(), Some(last_order_key(sf)));
            assert_eq!(batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), line_count(sf));
        }
        assert_eq!(line_count(0.1), 600_572);
    }
}
