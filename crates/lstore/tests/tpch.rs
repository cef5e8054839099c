//! TPC-H: the answers of the 22 queries, the loader, and the benchmark from end to end at a tiny scale.
#![cfg(feature = "program")]
mod common;

use std::path::Path;

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use common::{answer, lstore, sql};
use engine::Database;
use lab::Quiet;
use lab::tpch::{TABLES, create_tables, load};
use sql::{Outcome, Session, SessionOptions, SqlError};
use sqllogictest::{DBOutput, DefaultColumnType, Runner};

/// A connection as the scripts expect it: numbers with a fraction have exactly two digits.
struct Connection(Session);

impl sqllogictest::DB for Connection {
    type Error = SqlError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, SqlError> {
        match self.0.execute(sql)? {
            Outcome::Done(_) => Ok(DBOutput::StatementComplete(0)),
            Outcome::Rows(rows) => {
                let types = vec![DefaultColumnType::Any; rows.schema().fields().len()];
                let batches = rows.collect::<Result<Vec<_>, _>>()?;
                Ok(DBOutput::Rows { types, rows: batches.iter().flat_map(rows_of).collect() })
            }
        }
    }
}

fn rows_of(batch: &RecordBatch) -> Vec<Vec<String>> {
    let row = |row| batch.columns().iter().map(|array| rendered(array, row)).collect();
    (0..batch.num_rows()).map(row).collect()
}

/// A value as the scripts write it.
fn rendered(array: &dyn Array, row: usize) -> String {
    let Some(text) = sql::text_value(array, row) else { return "NULL".to_owned() };
    match array.data_type() {
        _ if text.is_empty() => "(empty)".to_owned(),
        data_type if data_type.is_floating() => format!("{:.2}", text.parse::<f64>().unwrap()),
        // A numeric without decimals is what EXTRACT gives.
        DataType::Decimal128(_, 1..) | DataType::Decimal256(_, 1..) => two_digits(&text),
        _ => text,
    }
}

/// A decimal with exactly two digits after the point, rounded half away from zero.
fn two_digits(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let padded = format!("{fraction:0<3}");
    let mut cents: i128 = format!("{whole}{}", &padded[..2]).parse().unwrap();
    cents += i128::from(padded.as_bytes()[2] >= b'5');
    let sign = if cents == 0 { "" } else { sign };
    format!("{sign}{}.{:02}", cents / 100, cents % 100)
}

/// Loads the scale factor into memory and runs the script of its answers.
fn check_answers(sf: f64, script: &str) {
    let db = Database::in_memory();
    load(&db, sf, &Quiet).unwrap();
    let connect = || async { Ok(Connection(Session::new(&db, SessionOptions::default()))) };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sql").join(script);
    if let Err(error) = Runner::new(connect).run_file(path) {
        panic!("{}", error.display(false));
    }
}

#[test]
fn decimals_are_rounded_half_away_from_zero() {
    let cases = [("1", "1.00"), ("-0.005", "-0.01"), ("0.0049", "0.00"), ("-0.001", "0.00"), ("12.345", "12.35")];
    for (text, expected) in cases {
        assert_eq!(two_digits(text), expected);
    }
}

#[test]
fn the_answers_at_scale_factor_one_hundredth() {
    check_answers(0.01, "tpch_sf001.slt");
}

#[test]
fn the_answers_at_scale_factor_one_tenth() {
    check_answers(0.1, "tpch_sf01.slt");
}

#[test]
fn every_table_has_the_rows_of_its_scale_factor() {
    let db = Database::in_memory();
    let loaded = load(&db, 0.01, &Quiet).unwrap();
    let mut session = Session::new(&db, SessionOptions::default());
    let mut count = |table: &str| {
        let Ok(Outcome::Rows(rows)) = session.execute(&format!("select count(*) from {table}")) else { panic!() };
        let batches: Vec<_> = rows.map(Result::unwrap).collect();
        sql::text_value(batches[0].column(0), 0).unwrap().parse::<u64>().unwrap()
    };
    let counts = TABLES.map(&mut count);
    assert_eq!(counts, [5, 25, 100, 1500, 2000, 8000, 15_000, 60_175]);
    assert_eq!(counts.iter().sum::<u64>(), loaded);
}

/// Runs the benchmark on a directory, small.
fn bench(dir: &Path, more: &[&str]) -> common::Ran {
    let dir = dir.to_str().unwrap();
    let args = ["bench", "tpch", "--sf", "0.0031", "--runs", "1", "--checks", "5", "--dir", dir];
    lstore(args.iter().chain(more))
}

#[test]
fn the_benchmark_loads_measures_and_finds_its_data_again() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    let first = bench(&dir, &[]).ok();
    assert!(first.err.contains("loaded 26,"), "{first:?}");
    assert!(first.out.contains(" q22   |") && first.out.contains("consistency held 5 of 5\n"), "{first:?}");
    assert!(first.out.ends_with(&format!("lstore {}\n", dir.display())), "{first:?}");
    let orders = answer(&dir, "select count(*) from orders");
    assert!(orders.trim().parse::<u64>().unwrap() >= 4650, "{orders}");

    let second = bench(&dir, &["--json"]).ok();
    assert!(second.err.contains("is loaded already"), "{second:?}");
    let lines: Vec<serde_json::Value> = second.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().filter(|line| line["baseline"] == "idle").count(), 22);
    let held = lines.iter().find(|line| line["case"] == "consistency" && line["metric"] == "held").unwrap();
    assert_eq!(held["value"], 5.0);
}

#[test]
fn a_load_that_was_cut_off_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    create_tables(&Database::open(&dir).unwrap()).unwrap();
    let again = bench(&dir, &[]).ok();
    assert!(again.err.contains("an earlier load was cut off"), "{again:?}");
}

#[test]
fn the_tables_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    sql(&dir, "create table orders (id bigint primary key); insert into orders values (1)").ok();
    let err = bench(&dir, &[]).failed(1);
    assert!(err.contains("table \"orders\" exists and is not that of TPC-H"), "{err}");
    assert_eq!(answer(&dir, "select id from orders"), "1\n");
}

#[test]
fn another_scale_factor_is_replaced_only_if_the_user_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    load(&Database::open(&dir).unwrap(), 0.0037, &Quiet).unwrap();
    assert!(bench(&dir, &[]).failed(1).contains("--reload"));
    bench(&dir, &["--reload"]).ok();
    assert_eq!(answer(&dir, "select count(*) from part"), "620\n");
}
