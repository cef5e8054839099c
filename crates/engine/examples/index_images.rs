//! What the first statements of an opened database pay for its indexes: a table of three bigint columns with a primary key and one
//! more index, whose values come in no order.
//!
//! ```text
//! cargo run --release -p lstore-engine --example index_images -- make DIRECTORY ROWS
//! cargo run --release -p lstore-engine --example index_images -- open DIRECTORY
//! valgrind --tool=callgrind --toggle-collect='index_images::first_by_key' .../index_images open DIRECTORY
//! ```
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use engine::{
    Column, DataType, Database, Direction, Durability, IndexDefinition, IndexRange, ScanOptions, Schema, Table,
    TransactionOptions, Value,
};

const BATCH_ROWS: usize = 65_536;

fn scrambled(row: usize) -> i64 {
    (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64 >> 24
}

fn batch(rows: std::ops::Range<usize>) -> RecordBatch {
    let fields = ["id", "n", "v"].map(|name| Field::new(name, ArrowType::Int64, false));
    let of = |value: fn(usize) -> i64| -> ArrayRef { Arc::new(rows.clone().map(value).collect::<Int64Array>()) };
    let columns = vec![of(|row| row as i64), of(scrambled), of(|row| row as i64 % 1000)];
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields.to_vec())), columns).unwrap()
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

fn make(directory: &Path, rows: usize) {
    let db = Database::open(directory).unwrap();
    let columns = ["id", "n", "v"].map(|name| Column::new(name, DataType::BigInt).not_null()).to_vec();
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let options = TransactionOptions { durability: Durability::Async, ..TransactionOptions::default() };
    for first in (0..rows).step_by(BATCH_ROWS) {
        let batch = batch(first..rows.min(first + BATCH_ROWS));
        db.run(options, |transaction| transaction.insert_batch(&table, &batch).map(drop)).unwrap();
    }
    db.run(options, |transaction| transaction.create_index("t", IndexDefinition::new("t_n", &[1])).map(drop)).unwrap();
    db.merge_now();
    for _ in 0..3 {
        let report = db.checkpoint().unwrap();
        println!("checkpoint: {} KB written, {:.1} ms", report.written_bytes >> 10, report.time.as_secs_f64() * 1000.0);
        let set = [(2, Value::from(report.number as i64))];
        db.run(options, |transaction| transaction.update_columns(&table, &[Value::from(5i64)], &set)).unwrap();
    }
}

#[inline(never)]
fn first_by_key(db: &Database, table: &Table) -> usize {
    let options = ScanOptions { columns: vec![2], ..ScanOptions::default() };
    table.lookup(db.snapshot(), &[Value::from(7i64)], &options).unwrap().num_rows()
}

#[inline(never)]
fn first_by_index(db: &Database, table: &Table) -> usize {
    let (view, index) = (db.read_view().unwrap(), table.indexes().into_iter().next().unwrap());
    let range = IndexRange::equal(vec![Value::from(scrambled(77))]);
    let options = ScanOptions { columns: vec![0], ..ScanOptions::default() };
    let batches = table.index_scan(&view, &index, &range, Direction::Upward, options).unwrap();
    batches.map(|batch| batch.unwrap().num_rows()).sum()
}

fn open(directory: &Path) {
    let start = Instant::now();
    let db = Database::open(directory).unwrap();
    let opening = ms(start);
    let table = db.table("t").unwrap();
    let start = Instant::now();
    assert_eq!(first_by_key(&db, &table), 1);
    let by_key = ms(start);
    let start = Instant::now();
    assert_eq!(first_by_key(&db, &table), 1);
    let again = ms(start);
    let start = Instant::now();
    assert_eq!(first_by_index(&db, &table), 1);
    let by_index = ms(start);
    println!(
        "opening {opening:.1} ms, first row by key {by_key:.2} ms, second {again:.3} ms, first row by the other index \
         {by_index:.2} ms"
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", directory, rows] => make(Path::new(directory), rows.parse().expect("a number")),
        ["open", directory] => open(Path::new(directory)),
        _ => println!("make DIRECTORY ROWS, or open DIRECTORY"),
    }
}
