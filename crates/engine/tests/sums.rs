//! A sum taken while others write at full speed is the sum of one snapshot, never a mixture.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::{Column, DataType, Database, Error, OpenOptions, Schema, Table, Timestamp, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const ROWS: i64 = 3_000;
const SCANS: usize = 1_000;

fn make_table(db: &Database) -> Table {
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("x", DataType::BigInt)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let mut transaction = db.begin().unwrap();
    for id in 0..ROWS {
        transaction.insert(&table, &[Value::from(id), Value::from(0i64)]).unwrap();
    }
    transaction.commit().unwrap();
    table
}

/// Adds random amounts to random rows, several in one transaction; returns how much each commit added.
fn update_until(db: &Database, table: &Table, seed: u64, done: &AtomicBool) -> Vec<(Timestamp, i64)> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut added = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let mut transaction = db.begin().unwrap();
        let mut sum = 0;
        let outcome = (0..rng.random_range(1..4)).try_for_each(|_| {
            let key = [Value::from(rng.random_range(0..ROWS))];
            let Some(row) = transaction.get(table, &key)? else { panic!("no row was deleted") };
            let Value::BigInt(x) = row[1] else { panic!("x was set") };
            let amount = rng.random_range(1..1_000_000);
            transaction.update(table, &key, &[("x", Value::from(x + amount))])?;
            sum += amount;
            Ok(())
        });
        match outcome {
            Ok(()) => added.push((transaction.commit().unwrap(), sum)),
            Err(Error::Conflict) => transaction.rollback(),
            Err(error) => panic!("{error}"),
        }
    }
    added
}

fn sum(db: &Database, table: &Table) -> (Timestamp, i64) {
    let transaction = db.begin().unwrap();
    let mut sum = 0;
    for batch in transaction.scan(table, &["x"]).unwrap().batches().map(Result::unwrap) {
        sum += batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>();
    }
    (transaction.view().unwrap().at(), sum)
}

#[test]
fn a_thousand_sums_under_full_speed_updates_are_sums_of_snapshots() {
    let options =
        OpenOptions { range_records: Some(1 << 10), merge_tail_records: Some(1 << 8), ..OpenOptions::default() };
    let db = Database::in_memory_with(&options);
    let table = make_table(&db);
    let start = db.snapshot().at;
    let done = AtomicBool::new(false);
    let added = Mutex::new(Vec::new());
    let sums: Vec<(Timestamp, i64)> = std::thread::scope(|scope| {
        for seed in 0..2 {
            let (db, table, done, added) = (&db, &table, &done, &added);
            scope.spawn(move || added.lock().unwrap().extend(update_until(db, table, seed, done)));
        }
        let sums = (0..SCANS).map(|_| sum(&db, &table)).collect();
        done.store(true, Ordering::Relaxed);
        sums
    });
    let mut totals = BTreeMap::from([(start, 0)]);
    let mut commits = added.into_inner().unwrap();
    commits.sort();
    let mut total = 0;
    for (at, amount) in commits {
        total += amount;
        totals.insert(at, total);
    }
    for (at, sum) in sums {
        assert_eq!(totals.get(&at), Some(&sum), "sum at {at:?}");
    }
    let stats = table.stats();
    println!("{SCANS} sums, {} commits, {} merges", totals.len() - 1, stats.merges);
    assert!(stats.merges > 0, "merges ran meanwhile");
}
