//! Reads of a whole table while tail records are pending: what each of them costs a scan.
//!
//! ```text
//! cargo run --release -p lstore-engine --example pending -- [ROWS] [UPDATES] [ACTIVE ROWS] [ROUNDS] [only=READ]
//! ```
//!
//! Rows of 10 bigint columns, of which each update sets 4. No merge runs between the updates and the reads, which are measured
//! before and after them, one after the other. Medians, in processor time of the reading thread.
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use engine::{
    Column, DataType, Database, OpenOptions, PointAccess, PointAction, PointStatement, ScanOptions, Schema, Sum, Table,
    Test, TransactionOptions, Value,
};

const COLUMNS: usize = 10;
/// Values are below this.
const VALUES: i64 = 1 << 31;

/// Numbers by chance (splitmix).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(bound)) >> 64) as u64
    }
}

fn load(db: &Database, rows: u64) -> Table {
    let columns = (0..COLUMNS).map(|column| Column::new(format!("c{column}"), DataType::BigInt).not_null()).collect();
    let table = db.create_table("t", Schema::new(columns, &["c0"]).unwrap()).unwrap();
    let mut random = Random(1);
    for first in (0..rows).step_by(8192) {
        let keys = first..rows.min(first + 8192);
        let arrays = (0..COLUMNS).map(|column| -> (String, ArrayRef) {
            let mut value = |key| if column == 0 { key as i64 } else { random.below(VALUES as u64) as i64 };
            (format!("c{column}"), Arc::new(keys.clone().map(|key| Some(value(key))).collect::<Int64Array>()))
        });
        let batch = RecordBatch::try_from_iter(arrays).unwrap();
        db.run(TransactionOptions::default(), |transaction| transaction.insert_batch(&table, &batch)).unwrap();
    }
    while db.merge_now() > 0 {}
    table
}

fn update(db: &Database, table: &Table, updates: u64, active: u64) {
    let sets: Vec<PointAccess> =
        (0..COLUMNS - 4).map(|set| table.point_access(&[1, 2, 3, 4].map(|at| set + at)).unwrap().unwrap()).collect();
    let mut random = Random(2);
    for _ in 0..updates / 8 {
        let values: [[u64; 4]; 8] = std::array::from_fn(|_| std::array::from_fn(|_| random.below(VALUES as u64)));
        let mut group: [_; 8] = std::array::from_fn(|at| {
            let access = &sets[random.below(sets.len() as u64) as usize];
            PointStatement::new(access, random.below(active) as i64, PointAction::Update(&values[at]))
        });
        db.run(TransactionOptions::default(), |transaction| transaction.run_points(&mut group)).unwrap();
    }
}

fn sum_of(db: &Database, table: &Table, tests: &[(usize, Test)]) -> i64 {
    match table.aggregate(&db.read_view().unwrap(), tests, &[1]).unwrap().columns[0].sum {
        Sum::Integer(sum) => sum as i64,
        _ => unreachable!("a column of whole numbers"),
    }
}

fn read(db: &Database, table: &Table, name: &str) -> i64 {
    match name {
        "sum" => sum_of(db, table, &[]),
        "filtered" => {
            let (low, high) = (Value::BigInt(VALUES / 5 * 2), Value::BigInt(VALUES / 5 * 3));
            sum_of(db, table, &[(2, Test::Between(low, high))])
        }
        _ => {
            let options = ScanOptions { columns: vec![1, 2], ..ScanOptions::default() };
            let scan = table.scan(&db.read_view().unwrap(), options).unwrap();
            let batches = scan.batches().map(Result::unwrap);
            batches.map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>()).sum()
        }
    }
}

fn median_ms(rounds: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[rounds / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, other: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(other);
    let (rows, updates) = (number(0, 1_000_000), number(1, 65_536));
    let (active, rounds) = (number(2, rows), number(3, 51) as usize);
    let only = arguments.iter().find_map(|argument| argument.strip_prefix("only="));
    let options = OpenOptions { merge_threads: Some(0), merge_tail_records: Some(1 << 40), ..OpenOptions::default() };
    let db = Database::in_memory_with(&options);
    let table = load(&db, rows);
    let reads = ["sum", "filtered", "batches"].into_iter().filter(|name| only.is_none_or(|only| only == *name));
    let reads: Vec<&str> = reads.collect();
    let measure = |name: &&str| {
        median_ms(rounds, || {
            black_box(read(&db, &table, name));
        })
    };
    let idle: Vec<f64> = reads.iter().map(measure).collect();
    update(&db, &table, updates, active);
    let pending = table.stats().tail_records_unmerged;
    for (name, idle) in reads.iter().zip(idle) {
        let ms = measure(name);
        let ns = (ms - idle) * 1e6 / pending as f64;
        println!(
            "{name:9} {idle:7.3} ms at rest, {ms:7.3} with {pending} pending: {:5.2}x, {ns:5.1} ns each",
            ms / idle
        );
    }
}
