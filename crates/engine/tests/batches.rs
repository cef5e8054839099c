//! Batches go in column by column where they can, and do what rows one by one do: the same rows, the same errors, nothing of a batch
//! that fails.
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use engine::{
    Column, DataType, Database, Error, IndexDefinition, Isolation, OpenOptions, Schema, Table, TransactionOptions,
    Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Which keys the table has.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Keys {
    /// a primary key of one whole number
    Number,
    /// one of a number and a text
    Two,
    /// as the first, and an index of texts, which may repeat, and one of numbers, which may not
    Indexes,
}

fn schema(keys: Keys) -> Schema {
    let columns = vec![
        Column::new("a", DataType::SmallInt),
        Column::new("id", DataType::BigInt),
        Column::new("t", DataType::TEXT),
        Column::new("n", DataType::BigInt).not_null(),
        Column::new("half", DataType::TEXT).not_null(),
    ];
    let key: &[&str] = if keys == Keys::Two { &["id", "half"] } else { &["id"] };
    Schema::new(columns, key).unwrap()
}

type Row = (Option<i16>, i64, Option<String>, Option<i64>);

fn batch(rows: &[Row]) -> RecordBatch {
    let arrays: [(&str, ArrayRef); 5] = [
        ("a", Arc::new(rows.iter().map(|row| row.0).collect::<Int16Array>())),
        ("id", Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>())),
        ("t", Arc::new(rows.iter().map(|row| row.2.clone()).collect::<StringArray>())),
        ("n", Arc::new(rows.iter().map(|row| row.3).collect::<Int64Array>())),
        ("half", Arc::new(rows.iter().map(|row| Some(half(row.1))).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(arrays.map(|(name, array)| (name, array, true))).unwrap()
}

fn half(id: i64) -> String {
    format!("half {}", id / 2)
}

fn values(row: &Row) -> Vec<Value> {
    vec![
        row.0.map_or(Value::Null, Value::SmallInt),
        Value::BigInt(row.1),
        row.2.as_ref().map_or(Value::Null, |text| Value::Text(text.clone())),
        row.3.map_or(Value::Null, Value::BigInt),
        Value::Text(half(row.1)),
    ]
}

/// Small ranges, so that batches fill several.
fn open(directory: Option<&Path>, keys: Keys) -> (Database, Table) {
    let options = OpenOptions { range_records: Some(64), ..OpenOptions::default() };
    let db = match directory {
        Some(directory) => Database::open_with(directory, options).unwrap(),
        None => Database::in_memory_with(&options),
    };
    let table = match db.table("t") {
        Ok(table) => table,
        Err(_) => db.create_table("t", schema(keys)).unwrap(),
    };
    if keys == Keys::Indexes && table.indexes().is_empty() {
        db.create_index("t", IndexDefinition::new("texts", &[2])).unwrap();
        db.create_index("t", IndexDefinition::new("numbers", &[1, 3]).unique()).unwrap();
    }
    (db, table)
}

fn key_of(table: &Table, key: i64) -> Vec<Value> {
    let parts = [Value::BigInt(key), Value::Text(half(key))];
    parts[..table.schema().primary_key().len()].to_vec()
}

fn contents(db: &Database, table: &Table, keys: i64) -> Vec<Option<Vec<Value>>> {
    let transaction = db.begin().unwrap();
    (0..keys).map(|key| transaction.get(table, &key_of(table, key)).unwrap()).collect()
}

/// The directory as a crash at this moment would leave it.
fn crashed(directory: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                std::fs::create_dir(&to).unwrap();
                copy(&entry.path(), &to);
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    let left = tempfile::tempdir().unwrap();
    copy(directory, left.path());
    left
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

fn run_both(directory: Option<&Path>, keys: Keys, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let ((whole, whole_table), (single, single_table)) = (open(directory, keys), open(None, keys));
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
            let key = key_of(&whole_table, random.random_range(0..KEYS));
            for (db, table) in [(&whole, &whole_table), (&single, &single_table)] {
                db.run(TransactionOptions::default(), |transaction| transaction.delete(table, &key)).unwrap();
            }
        }
    }
    let expected = contents(&single, &single_table, KEYS);
    assert_eq!(contents(&whole, &whole_table, KEYS), expected, "seed {seed}");
    if let Some(directory) = directory {
        let left = crashed(directory);
        let found = Database::verify(left.path(), |_, _| ()).unwrap();
        assert!(found.faults.is_empty(), "seed {seed}: {:?}", found.faults);
        let (again, table) = open(Some(left.path()), keys);
        assert_eq!(contents(&again, &table, KEYS), expected, "seed {seed}, from the log");
        drop((whole, whole_table));
        let (again, table) = open(Some(directory), keys);
        assert_eq!(contents(&again, &table, KEYS), expected, "seed {seed}, opened again");
    }
}

const ALL_KEYS: [Keys; 3] = [Keys::Number, Keys::Two, Keys::Indexes];

#[test]
fn batches_do_what_rows_do() {
    ALL_KEYS.iter().for_each(|keys| (0..6).for_each(|seed| run_both(None, *keys, seed)));
}

#[test]
fn batches_come_back_from_the_log() {
    for (seed, keys) in (100..).zip([ALL_KEYS, ALL_KEYS].concat()) {
        run_both(Some(tempfile::tempdir().unwrap().path()), keys, seed);
    }
}

/// A batch of which the log takes some rows at a time.
#[test]
fn long_values_of_a_batch_come_back_from_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let (db, table) = open(Some(directory.path()), Keys::Number);
    let long = |id: i64| "x".repeat(if id % 3 == 0 { 700_000 } else { 9 });
    let rows: Vec<Row> = (0..12).map(|id| (None, id, Some(long(id)), Some(id))).collect();
    db.run(TransactionOptions::default(), |transaction| transaction.insert_batch(&table, &batch(&rows))).unwrap();
    let left = crashed(directory.path());
    let (again, table) = open(Some(left.path()), Keys::Number);
    assert_eq!(contents(&again, &table, 12), rows.iter().map(|row| Some(values(row))).collect::<Vec<_>>());
}

/// Columns of each kind of storage, whose texts are short, long, and too long for a dictionary, most of them repeated.
fn batch_of_kinds(ids: std::ops::Range<i64>, has_nulls: bool) -> RecordBatch {
    let valid = move |id: &i64| !has_nulls || id % 7 != 3;
    let numbers: Vec<Option<i64>> = ids.clone().map(|id| Some(id * 37 % 11 - 5).filter(|_| valid(&id))).collect();
    let text = |id: i64| match id % 5 {
        0 => String::new(),
        1 => "short".to_owned(),
        2 => "longer than what a view has".to_owned(),
        3 => "x".repeat(200),
        _ => format!("{id}"),
    };
    let texts: Vec<Option<String>> = ids.clone().map(|id| Some(text(id)).filter(|_| valid(&id))).collect();
    let each = || numbers.iter().copied();
    let decimals =
        each().map(|n| n.map(i128::from)).collect::<Decimal128Array>().with_precision_and_scale(9, 2).unwrap();
    let arrays: [ArrayRef; 12] = [
        Arc::new(ids.collect::<Int64Array>()),
        Arc::new(each().map(|n| n.map(|n| n > 0)).collect::<BooleanArray>()),
        Arc::new(each().map(|n| n.map(|n| n as i16)).collect::<Int16Array>()),
        Arc::new(each().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
        Arc::new(each().collect::<Int64Array>()),
        Arc::new(each().map(|n| n.map(|n| n as f32 / 2.0)).collect::<Float32Array>()),
        Arc::new(each().map(|n| n.map(|n| n as f64 / 4.0)).collect::<Float64Array>()),
        Arc::new(each().map(|n| n.map(|n| n as i32)).collect::<Date32Array>()),
        Arc::new(each().collect::<TimestampMicrosecondArray>()),
        Arc::new(decimals),
        Arc::new(texts.iter().cloned().collect::<StringArray>()),
        Arc::new(texts.iter().map(|text| text.as_ref().map(String::as_bytes)).collect::<BinaryArray>()),
    ];
    let names = ["id", "b", "i2", "i4", "i8", "f4", "f8", "d", "t", "n", "c", "x"];
    RecordBatch::try_from_iter_with_nullable(names.into_iter().zip(arrays).map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// What the first merge makes of the rows of batches is what was inserted, where records were taken back as well.
#[test]
fn merges_keep_the_values_of_batches() {
    use DataType::{BigInt, Boolean, Bytea, Date, Double, Integer, Real, SmallInt, Timestamp};

    let decimal = DataType::Decimal { precision: 9, scale: 2 };
    let types =
        [BigInt, Boolean, SmallInt, Integer, BigInt, Real, Double, Date, Timestamp, decimal, DataType::TEXT, Bytea];
    for (has_nulls, takes_back) in [(false, false), (false, true), (true, false), (true, true)] {
        let db = Database::in_memory_with(&OpenOptions {
            range_records: Some(256),
            merge_threads: Some(0),
            ..OpenOptions::default()
        });
        let names = batch_of_kinds(0..1, false).schema();
        let columns = types.iter().zip(names.fields()).map(|(of, field)| Column::new(field.name(), *of)).collect();
        let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
        if takes_back {
            let mut transaction = db.begin().unwrap();
            transaction.insert_batch(&table, &batch_of_kinds(2_000..2_100, has_nulls)).unwrap();
            transaction.rollback();
        }
        for ids in [0..500, 500..1_000] {
            let batch = batch_of_kinds(ids, has_nulls);
            db.run(TransactionOptions::default(), |transaction| transaction.insert_batch(&table, &batch)).unwrap();
        }
        let rows = || {
            let transaction = db.begin().unwrap();
            (0..1_000).map(|id| transaction.get(&table, &[Value::BigInt(id)]).unwrap().unwrap()).collect::<Vec<_>>()
        };
        let before = rows();
        let expected = |id: i64| (id % 5 == 2 && !(has_nulls && id % 7 == 3)).then_some("longer than what a view has");
        let text = |row: &Vec<Value>| if let Value::Text(text) = &row[10] { text.clone() } else { String::new() };
        for (id, row) in (0..).zip(&before) {
            assert_eq!(text(row) == "longer than what a view has", expected(id).is_some(), "{id}");
        }
        assert!(db.merge_now() > 2 && table.stats().tail_records_unmerged == 0);
        assert_eq!(rows(), before, "NULLs: {has_nulls}, some taken back: {takes_back}");
    }
}

/// Batches of the same keys in the same moment: each key is one batch's, and no batch is there in part.
#[test]
fn one_of_many_batches_wins_its_keys() {
    let (db, table) = open(None, Keys::Number);
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
