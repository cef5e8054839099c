//! The cost of a log that no transaction waits for: short transactions on a database in a directory beside the same
//! in memory.
//!
//! ```text
//! cargo run --release -p lstore-engine --example redo_cost -- DIRECTORY [TRANSACTIONS] [ROUNDS]
//! valgrind --tool=callgrind .../redo_cost DIRECTORY 20000 0 log | memory      counts instructions of one of the two
//! ```
//!
//! A transaction reads eight rows and updates four columns of two, as in `lstore bench micro` under high contention.
use std::time::Instant;

use engine::{Column, DataType, Database, Durability, Isolation, Schema, Table, TransactionOptions, Value};

const ROWS: i64 = 1000;
const COLUMNS: usize = 10;

fn load(db: &Database) -> Table {
    let columns = (0..COLUMNS).map(|at| Column::new(format!("c{at}"), DataType::BigInt).not_null()).collect();
    let table = db.create_table("t", Schema::new(columns, &["c0"]).unwrap()).unwrap();
    let insert = |transaction: &mut engine::Transaction| {
        (0..ROWS).try_for_each(|key| {
            transaction.insert(&table, &(0..COLUMNS as i64).map(|n| Value::from(key + n)).collect::<Vec<_>>()).map(drop)
        })
    };
    db.run(TransactionOptions::default(), insert).unwrap();
    table
}

/// Transactions a second.
fn rate(db: &Database, table: &Table, transactions: u64) -> f64 {
    let options = TransactionOptions { durability: Durability::Async, ..TransactionOptions::at(Isolation::Snapshot) };
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut key = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        [Value::from((random % ROWS as u64) as i64)]
    };
    let (start, mut sum) = (Instant::now(), 0);
    for n in 0..transactions as i64 {
        let mut transaction = db.begin_with(options).unwrap();
        for _ in 0..8 {
            let row = transaction.read(table, &key(), &[1, 2, 3, 4], |cells| cells.len()).unwrap();
            sum += row.unwrap_or(0);
        }
        for _ in 0..2 {
            let changes = [1, 3, 5, 7].map(|column| (column, Value::from(n * column as i64)));
            transaction.update_columns(table, &key(), &changes).unwrap();
        }
        transaction.commit().unwrap();
    }
    assert!(sum > 0);
    transactions as f64 / start.elapsed().as_secs_f64()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, other: u64| arguments.get(at).map_or(other, |number| number.parse().unwrap());
    let (transactions, rounds) = (number(1, 200_000), number(2, 7));
    let path = std::path::Path::new(&arguments[0]).join("redo-cost");
    let only = arguments.get(3).map(String::as_str);
    let databases = [
        (only != Some("memory")).then(|| Database::open(&path).unwrap()),
        (only != Some("log")).then(Database::in_memory),
    ];
    let databases: Vec<_> = databases.into_iter().flatten().map(|db| (load(&db), db)).collect();
    let mut ratios = Vec::new();
    for _ in 0..rounds.max(1) {
        let rates: Vec<f64> = databases.iter().map(|(table, db)| rate(db, table, transactions)).collect();
        if let [log, memory] = rates[..] {
            println!("with a log {log:8.0}/s, without {memory:8.0}/s, {:.3}", log / memory);
            ratios.push(log / memory);
        }
    }
    ratios.sort_by(f64::total_cmp);
    if let Some(median) = ratios.get(ratios.len() / 2) {
        println!("median of the ratios: {median:.3}");
    }
    drop(databases);
    let _ = std::fs::remove_dir_all(path);
}
