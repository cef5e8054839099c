//! Batches go in column by column where they can, and do what rows one by one do: the same rows, the same errors, nothing of a batch
//! that fails.
use std::sync::Arc;

use arrow_array::{ArrayRef, Int16Array, Int64Array, RecordBatch, StringArray};
use engine::{Column, DataType, Database, Error, Isolation, OpenOptions, Schema, Table, TransactionOptions, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn schema() -> Schema {
    let columns = vec![
        Column::new("a", DataType::SmallInt),
        Column::new("id", DataType::BigInt),
        Column::new("t", DataType::TEXT),
        Column::new("n", DataType::BigInt).not_null(),
    ];
    Schema::new(columns, &["id"]).unwrap()
}

type Row = (Option<i16>, i64, Option<String>, Option<i64>);

fn batch(rows: &[Row]) -> RecordBatch {
    let arrays: [(&str, ArrayRef); 4] = [
        ("a", Arc::new(rows.iter().map(|row| row.0).collect::<Int16Array>())),
        ("id", Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>())),
        ("t", Arc::new(rows.iter().map(|row| row.2.clone()).collect::<StringArray>())),
        ("n", Arc::new(rows.iter().map(|row| row.3).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter_with_nullable(arrays.map(|(name, array)| (name, array, true))).unwrap()
}

fn values(row: &Row) -> Vec<Value> {
    vec![
        row.0.map_or(Value::Null, Value::SmallInt),
        Value::BigInt(row.1),
        row.2.as_ref().map_or(Value::Null, |text| Value::Text(text.clone())),
        row.3.map_or(Value::Null, Value::BigInt),
    ]
}

/// Small ranges, so that batches fill several.
fn open(directory: Option<&std::path::Path>) -> (Database, Table) {
    let options = OpenOptions { range_records: Some(64), ..OpenOptions::default() };
    let db = match directory {
        Some(directory) => Database::open_with(directory, options).unwrap(),
        None => Database::in_memory_with(&options),
    };
    let table = match db.table("t") {
        Ok(table) => table,
        Err(_) => db.create_table("t", schema()).unwrap(),
    };
    (db, table)
}

fn contents(db: &Database, table: &Table, keys: i64) -> Vec<Option<Vec<Value>>> {
    let transaction = db.begin().unwrap();
    (0..keys).map(|key| transaction.get(table, &[Value::BigInt(key)]).unwrap()).collect()
}

const KEYS: i64 = 2_000;

/// Mostly new keys in order, some at random, now and then a NULL where none may be.
fn random_rows(random: &mut StdRng, next: &mut i64) -> Vec<Row> {
    let count = random.random_range(1..300);
    let is_wild = random.random_range(0..4) == 0;
    (0..count)
        .map(|_| {
            let id =
                if is_wild && random.random_range(0..50) == 0 { random.random_range(0..KEYS) } else { *next % KEYS };
            *next += if random.random_range(0..20) == 0 { random.random_range(1..70) } else { 1 };
            let text = (random.random_range(0..3) > 0).then(|| "text ".repeat(random.random_range(0..5)));
            let n = (random.random_range(0..3_000) > 0).then(|| random.random_range(-9..9));
            ((random.random_range(0..4) > 0).then(|| random.random_range(-5..5)), id, text, n)
        })
        .collect()
}

fn run_both(directory: Option<&std::path::Path>, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let ((whole, whole_table), (single, single_table)) = (open(directory), open(None));
    let mut next = 0;
    for _ in 0..30 {
        let rows = random_rows(&mut random, &mut next);
        let (mut by_batch, mut by_row) = (whole.begin().unwrap(), single.begin().unwrap());
        let first = by_batch.insert_batch(&whole_table, &batch(&rows));
        let savepoint = by_row.savepoint();
        let second = rows.iter().try_for_each(|row| by_row.insert(&single_table, &values(row)).map(drop));
        if second.is_err() {
            by_row.rollback_to(savepoint).unwrap();
        }
        let message = |error: &Error| error.to_string();
        assert_eq!(first.as_ref().err().map(message), second.as_ref().err().map(message), "seed {seed}");
        assert!(first.is_err() || first.unwrap() == rows.len() as u64);
        if random.random_range(0..4) == 0 {
            by_batch.rollback();
            by_row.rollback();
        } else {
            by_batch.commit().unwrap();
            by_row.commit().unwrap();
        }
        if random.random_range(0..5) == 0 {
            let key = [Value::BigInt(random.random_range(0..KEYS))];
            for (db, table) in [(&whole, &whole_table), (&single, &single_table)] {
                db.run(TransactionOptions::default(), |transaction| transaction.delete(table, &key)).unwrap();
            }
        }
    }
    let expected = contents(&single, &single_table, KEYS);
    assert_eq!(contents(&whole, &whole_table, KEYS), expected, "seed {seed}");
    if let Some(directory) = directory {
        drop((whole, whole_table));
        let (again, table) = open(Some(directory));
        assert_eq!(contents(&again, &table, KEYS), expected, "seed {seed}, opened again");
    }
}

#[test]
fn batches_do_what_rows_do() {
    (0..8).for_each(|seed| run_both(None, seed));
}

#[test]
fn batches_come_back_from_the_log() {
    for seed in 100..104 {
        run_both(Some(tempfile::tempdir().unwrap().path()), seed);
    }
}

/// Batches of the same keys in the same moment: each key is one batch's, and no batch is there in part.
#[test]
fn one_of_many_batches_wins_its_keys() {
    let (db, table) = open(None);
    let options = TransactionOptions::at(Isolation::ReadCommitted);
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                for part in 0..10 {
                    let rows: Vec<Row> = (0..100).map(|at| (None, part * 100 + at, None, Some(thread))).collect();
                    let loaded = db.run(options, |transaction| transaction.insert_batch(table, &batch(&rows)));
                    assert!(loaded.is_ok() || matches!(loaded, Err(Error::DuplicateKey { .. })), "{loaded:?}");
                }
            });
        }
    });
    let rows = contents(&db, &table, 1_000);
    for part in rows.chunks(100) {
        let winner = part[0].as_ref().expect("one of the batches was loaded")[3].clone();
        assert!(part.iter().all(|row| row.as_ref().is_some_and(|row| row[3] == winner)), "a batch is there in part");
    }
}
