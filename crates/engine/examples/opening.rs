//! Opening a database of rows of 10 bigint columns that was closed in order: how long it takes, what is resident then, and
//! what the first look at a row and the first scan cost, beside reading the files.
//!
//! ```text
//! cargo run --release -p lstore-engine --example opening -- [ROWS] [ROUNDS]
//! cargo run --release -p lstore-engine --example opening -- make DIRECTORY ROWS
//! cargo run --release -p lstore-engine --example opening -- open DIRECTORY MEMORY_LIMIT_MB (0 = NONE)
//! ```
//!
//! Each round is a process of its own, so that what is resident is the opened database's. The files are in the page cache.
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use engine::{Column, DataType, Database, Durability, OpenOptions, ScanOptions, Schema, TransactionOptions, Value};

const COLUMNS: usize = 10;
const BATCH_ROWS: usize = 65_536;

fn value(row: usize, column: usize) -> i64 {
    match column {
        0 => row as i64,
        _ => ((row * COLUMNS + column) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64 >> 32,
    }
}

fn batch(rows: std::ops::Range<usize>) -> RecordBatch {
    let fields = (0..COLUMNS).map(|column| Field::new(format!("c{column}"), ArrowType::Int64, false));
    let array =
        |column| -> ArrayRef { Arc::new(rows.clone().map(|row| Some(value(row, column))).collect::<Int64Array>()) };
    let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, (0..COLUMNS).map(array).collect()).unwrap()
}

/// A database of so many rows, a twentieth of them updated, all of it in a checkpoint.
fn make(directory: &Path, rows: usize) {
    let db = Database::open(directory).unwrap();
    let names = (0..COLUMNS).map(|column| format!("c{column}"));
    let columns = names.map(|name| Column::new(&name, DataType::BigInt).not_null()).collect();
    let table = db.create_table("t", Schema::new(columns, &["c0"]).unwrap()).unwrap();
    let options = TransactionOptions { durability: Durability::Async, ..TransactionOptions::default() };
    for first in (0..rows).step_by(BATCH_ROWS) {
        let batch = batch(first..rows.min(first + BATCH_ROWS));
        db.run(options, |transaction| transaction.insert_batch(&table, &batch).map(drop)).unwrap();
    }
    for ids in (0..rows as i64).step_by(20).collect::<Vec<_>>().chunks(1000) {
        let change = |id: &i64| (Value::from(*id), [(1, Value::from(-*id))]);
        db.run(options, |transaction| {
            ids.iter().map(change).try_for_each(|(key, set)| transaction.update_columns(&table, &[key], &set).map(drop))
        })
        .unwrap();
    }
    db.merge_now();
    db.checkpoint().unwrap();
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

fn read_files(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap().len() as u64).sum()
}

fn round(directory: &Path, limit_mb: u64) {
    let start = Instant::now();
    let bytes = read_files(directory);
    let reading = ms(start);
    let options =
        OpenOptions { memory_limit_bytes: (limit_mb > 0).then_some(limit_mb << 20), ..OpenOptions::default() };
    let start = Instant::now();
    let db = Database::open_with(directory, options).unwrap();
    let (opening, resident) = (ms(start), resident_mb());
    let table = db.table("t").unwrap();
    let point = || {
        let start = Instant::now();
        let key = [Value::from(7i64)];
        let options = ScanOptions { columns: vec![9], ..ScanOptions::default() };
        let found = table.lookup(db.snapshot(), &key, &options).unwrap();
        assert_eq!(found.num_rows(), 1);
        ms(start)
    };
    let (first, second) = (point(), point());
    let start = Instant::now();
    table.aggregate(db.snapshot(), &[], &[0, 1]).unwrap();
    println!(
        "{:7.1} ms for reading {} MB, {opening:8.1} ms for opening, {resident:5} MB resident; first row by key {first:.2} ms, \
         second {second:.3} ms; totals of two columns {:.1} ms; {} MB resident at the end",
        reading,
        bytes >> 20,
        ms(start),
        resident_mb()
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, directory, number] = &arguments[..] {
        match (word.as_str(), number.parse().expect("a number")) {
            ("make", rows) => return make(Path::new(directory), rows),
            (_, limit_mb) => return round(Path::new(directory), limit_mb as u64),
        }
    }
    let number = |at: usize, default: usize| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let (rows, rounds) = (number(0, 1_000_000), number(1, 5));
    let directory = tempfile::tempdir().unwrap();
    make(directory.path(), rows);
    let start = Instant::now();
    drop(Database::open(directory.path()).unwrap());
    println!("{rows} rows; the first opening {:.1} ms", ms(start));
    for _ in 0..rounds {
        let program = std::env::current_exe().unwrap();
        let status = Command::new(program).arg("open").arg(directory.path()).arg("0").status().unwrap();
        assert!(status.success());
    }
}
