//! Loading rows of 10 bigint columns by Arrow batches, in memory and with a log, beside a hash map of rows.
//!
//! ```text
//! cargo run --release -p lstore-engine --example load -- [ROWS] [ROUNDS] [ROWS A BATCH]
//! ```
//!
//! The contestants take turns. A rate is million rows per second of the loading thread's time; what the background does with full
//! ranges meanwhile is not waited for.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use engine::{Column, DataType, Database, Durability, Schema, TransactionOptions};
use foldhash::fast::FixedState;

const COLUMNS: usize = 10;

fn batches(rows: usize, batch_rows: usize) -> Vec<RecordBatch> {
    let fields = (0..COLUMNS).map(|column| Field::new(format!("c{column}"), ArrowType::Int64, false));
    let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
    let value = |row: usize, column: usize| match column {
        0 => row as i64,
        _ => ((row * COLUMNS + column) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64 >> 32,
    };
    let array = |first: usize, column: usize| -> ArrayRef {
        Arc::new((first..rows.min(first + batch_rows)).map(|row| Some(value(row, column))).collect::<Int64Array>())
    };
    let batch = |first| RecordBatch::try_new(schema.clone(), (0..COLUMNS).map(|column| array(first, column)).collect());
    (0..rows).step_by(batch_rows).map(|first| batch(first).unwrap()).collect()
}

/// Seconds to load the batches, a transaction each.
fn load(db: &Database, batches: &[RecordBatch]) -> f64 {
    let names = (0..COLUMNS).map(|column| format!("c{column}"));
    let columns = names.map(|name| Column::new(&name, DataType::BigInt).not_null()).collect();
    let table = db.create_table("loaded", Schema::new(columns, &["c0"]).unwrap()).unwrap();
    let options = TransactionOptions { durability: Durability::Async, ..TransactionOptions::default() };
    let start = Instant::now();
    for batch in batches {
        db.run(options, |transaction| transaction.insert_batch(&table, batch)).unwrap();
    }
    start.elapsed().as_secs_f64()
}

/// Seconds to load them into a map.
fn load_map(batches: &[RecordBatch]) -> f64 {
    let start = Instant::now();
    let mut map: HashMap<i64, [i64; COLUMNS], FixedState> = HashMap::with_hasher(FixedState::with_seed(1));
    for batch in batches {
        let column = |at: usize| batch.column(at).as_any().downcast_ref::<Int64Array>().unwrap().values();
        let columns: [_; COLUMNS] = std::array::from_fn(column);
        for row in 0..batch.num_rows() {
            map.insert(columns[0][row], columns.map(|column| column[row]));
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(map.len(), batches.iter().map(RecordBatch::num_rows).sum::<usize>());
    seconds
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let number = |at: usize, other: usize| std::env::args().nth(at).map_or(other, |text| text.parse().unwrap());
    let (rows, rounds, batch_rows) = (number(1, 1_000_000), number(2, 5), number(3, 8192));
    let batches = batches(rows, batch_rows);
    let mut seconds = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        seconds[0].push(load_map(&batches));
        seconds[1].push(load(&Database::in_memory(), &batches));
        let directory = tempfile::tempdir().unwrap();
        seconds[2].push(load(&Database::open(directory.path()).unwrap(), &batches));
    }
    for (name, seconds) in ["hash map", "in memory", "with a log"].into_iter().zip(seconds) {
        println!("{name:10} {:7.2} M rows/s", rows as f64 / median(seconds) / 1e6);
    }
}
