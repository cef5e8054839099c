//! Tables of the layout `array`: against a model, among threads, and what they refuse.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{
    Check, Column, DataType, Database, Error, Isolation, LayoutSetting, LockStrength, LockWait, OpenOptions, RowLock,
    ScanOptions, Schema, Table, TableSettings, Transaction, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn settings() -> TableSettings {
    TableSettings { layout: LayoutSetting::Array, ..TableSettings::default() }
}

fn column(name: &str, data_type: DataType) -> Column {
    Column { nullable: false, ..Column::new(name, data_type) }
}

/// The key stands in the middle.
fn schema() -> Schema {
    let columns = vec![column("a", DataType::BigInt), column("id", DataType::Integer), column("b", DataType::Double)];
    Schema::new(columns, &["id"]).unwrap()
}

fn create(db: &Database) -> Table {
    db.create_table_with("t", schema(), settings()).unwrap()
}

fn row(key: i32, a: i64) -> [Value; 3] {
    [Value::BigInt(a), Value::Integer(key), Value::Double(a as f64 / 2.0)]
}

fn put(transaction: &mut Transaction, table: &Table, key: i32, a: i64) -> Result<(), Error> {
    let changes = [(0, Value::BigInt(a)), (2, Value::Double(a as f64 / 2.0))];
    match transaction.update_columns(table, &[Value::Integer(key)], &changes)? {
        true => Ok(()),
        false => transaction.insert(table, &row(key, a)).map(drop),
    }
}

type Model = BTreeMap<i32, i64>;

/// What a scan of the transaction gives, which is what lookups give.
fn contents(transaction: &Transaction, table: &Table) -> Model {
    let mut found = Model::new();
    for batch in transaction.scan(table, &["id", "a", "b"]).unwrap().batches() {
        let batch = batch.unwrap();
        use arrow_array::cast::AsArray;
        let ids = batch.column(0).as_primitive::<arrow_array::types::Int32Type>();
        let values = batch.column(1).as_primitive::<arrow_array::types::Int64Type>();
        let halves = batch.column(2).as_primitive::<arrow_array::types::Float64Type>();
        for at in 0..batch.num_rows() {
            assert_eq!(halves.value(at), values.value(at) as f64 / 2.0, "a row is torn");
            assert!(found.insert(ids.value(at), values.value(at)).is_none(), "a row comes twice");
        }
    }
    for (key, a) in found.iter().step_by(7) {
        assert_eq!(transaction.get(table, &[Value::Integer(*key)]).unwrap().unwrap(), row(*key, *a));
    }
    found
}

fn committed(db: &Database, table: &Table) -> Model {
    contents(&db.begin().unwrap(), table)
}

/// One step of a random transaction, on the model as well.
fn step(random: &mut StdRng, transaction: &mut Transaction, table: &Table, model: &mut Model) {
    let (key, a) = (random.random_range(0..300) * random.random_range(1..400), random.random_range(-99..99));
    match random.random_range(0..10) {
        0..6 => {
            put(transaction, table, key, a).unwrap();
            model.insert(key, a);
        }
        6 => assert_eq!(transaction.delete(table, &[Value::Integer(key)]).unwrap(), model.remove(&key).is_some()),
        7 => {
            let inserted = transaction.insert(table, &row(key, a));
            match model.contains_key(&key) {
                true => assert!(matches!(inserted, Err(Error::DuplicateKey { .. })), "{inserted:?}"),
                false => drop(inserted.unwrap()),
            }
            model.entry(key).or_insert(a);
        }
        8 => {
            let (savepoint, before) = (transaction.savepoint(), model.clone());
            for _ in 0..3 {
                put(transaction, table, key + 1, a).unwrap();
                model.insert(key + 1, a);
            }
            if random.random() {
                transaction.rollback_to(savepoint).unwrap();
                *model = before;
            }
            transaction.release(savepoint).unwrap();
        }
        _ => assert_eq!(contents(transaction, table), *model),
    }
}

#[test]
fn random_transactions_leave_what_a_model_has_also_after_restarts_and_checkpoints() {
    for seed in 0..3 {
        let (random, directory) = (&mut StdRng::seed_from_u64(seed), tempfile::tempdir().unwrap());
        let mut db = Database::open(directory.path()).unwrap();
        let (mut table, mut model) = (create(&db), Model::new());
        for _ in 0..30 {
            let (mut transaction, mut now) = (db.begin().unwrap(), model.clone());
            for _ in 0..random.random_range(1..30) {
                step(random, &mut transaction, &table, &mut now);
            }
            match random.random_range(0..4) {
                0 => transaction.rollback(),
                _ => {
                    transaction.commit().unwrap();
                    model = now;
                }
            }
            match random.random_range(0..8) {
                0 => drop(db.checkpoint().unwrap()),
                1 => {
                    drop((table, db));
                    assert_eq!(Database::verify(directory.path(), |_, _| ()).unwrap().faults, Vec::<String>::new());
                    db = Database::open(directory.path()).unwrap();
                    table = db.table("t").unwrap();
                }
                2 if random.random_range(0..4) == 0 => {
                    db.truncate_table("t").unwrap();
                    (table, model) = (db.table("t").unwrap(), Model::new());
                }
                _ => {}
            }
            assert_eq!(committed(&db, &table), model, "seed {seed}");
            assert_eq!(table.aggregate(&db.read_view().unwrap(), &[], &[]).unwrap().rows, model.len() as u64);
            assert_eq!(table.statistics().rows, model.len() as u64);
        }
    }
}

#[test]
fn a_statement_sees_all_of_a_commit_or_nothing_while_writers_follow_one_another() {
    const KEYS: i32 = 2_000;
    let db = Database::in_memory();
    let table = create(&db);
    db.run(TransactionOptions::default(), |transaction| {
        (0..KEYS).try_for_each(|key| transaction.insert(&table, &row(key, 10)).map(drop))
    })
    .unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|seed| {
                let (db, table) = (&db, &table);
                scope.spawn(move || {
                    let random = &mut StdRng::seed_from_u64(seed);
                    for _ in 0..60 {
                        let [from, to] = [0, 1].map(|_| random.random_range(0..KEYS));
                        let options = TransactionOptions::at(Isolation::ReadCommitted);
                        db.run(options, |transaction| {
                            for (key, change) in [(from, -1), (to, 1)] {
                                let add = |read: &[Value]| match read {
                                    [Value::BigInt(a)] => {
                                        let a = a + change;
                                        Some(vec![(0, Value::BigInt(a)), (2, Value::Double(a as f64 / 2.0))])
                                    }
                                    _ => None,
                                };
                                transaction.update_computed(table, &[Value::Integer(key)], &[0], add)?.unwrap();
                            }
                            Ok::<(), Error>(())
                        })
                        .unwrap();
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !is_over.load(Ordering::Relaxed) || reads == 0 {
                let view = db.read_view().unwrap();
                let sum = || table.aggregate(&view, &[], &[0]).unwrap().columns[0].sum;
                assert_eq!((sum(), sum()), (engine::Sum::Integer(10 * i128::from(KEYS)), sum()));
                reads += 1;
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(committed(&db, &table).values().sum::<i64>(), 10 * i64::from(KEYS));
}

/// Each transaction writes one number to an array and to an ordinary table.
#[test]
fn a_snapshot_sees_the_same_commits_in_arrays_and_in_ordinary_tables() {
    let db = Database::in_memory();
    let (array, plain) = (create(&db), db.create_table("plain", schema()).unwrap());
    let write = |n: i64| {
        db.run(TransactionOptions::default(), |transaction| {
            put(transaction, &plain, 1, n)?;
            put(transaction, &array, 1, n)
        })
        .unwrap();
    };
    write(0);
    let is_over = AtomicBool::new(false);
    let number = |transaction: &Transaction, table: &Table| {
        let row = transaction.get(table, &[Value::Integer(1)])?;
        Ok::<i64, Error>(row.and_then(|row| if let Value::BigInt(n) = row[0] { Some(n) } else { None }).unwrap())
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..400).for_each(write);
            is_over.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let strict = db.begin_with(TransactionOptions::at(Isolation::Snapshot)).unwrap();
                let plain_first = number(&strict, &plain).unwrap();
                match number(&strict, &array) {
                    Ok(n) => assert_eq!(n, plain_first, "the snapshot has a commit in one table alone"),
                    Err(error) => assert!(matches!(error, Error::ArrayChanged(_)), "{error}"),
                }
                let view = db.read_view().unwrap();
                let sum = |table: &Table| table.aggregate(&view, &[], &[0]).unwrap().columns[0].sum;
                let (engine::Sum::Integer(before), engine::Sum::Integer(after)) = (sum(&plain), sum(&array)) else {
                    panic!("numbers add up to a number")
                };
                assert!(before <= after, "an array is read as of the view or later: {before}, then {after}");
            }
        });
    });
}

#[test]
fn a_snapshot_from_before_a_change_is_refused_and_may_be_tried_again() {
    let db = Database::in_memory();
    let table = create(&db);
    let early = db.begin_with(TransactionOptions::at(Isolation::Snapshot)).unwrap();
    let latest = db.begin_with(TransactionOptions::at(Isolation::ReadCommitted)).unwrap();
    let view = latest.view().unwrap();
    assert_eq!(table.aggregate(&view, &[], &[]).unwrap().rows, 0);
    db.run(TransactionOptions::default(), |transaction| transaction.insert(&table, &row(1, 1)).map(drop)).unwrap();
    let key = [Value::Integer(1)];
    let refused = early.get(&table, &key);
    assert!(matches!(&refused, Err(error @ Error::ArrayChanged(_)) if error.is_retryable()), "{refused:?}");
    assert!(early.scan(&table, &["a"]).is_err());
    assert_eq!(latest.get(&table, &key).unwrap().unwrap(), row(1, 1));
    assert_eq!(table.aggregate(&view, &[], &[]).unwrap().rows, 0, "a statement reads one instant");
    assert_eq!(table.aggregate(&latest.view().unwrap(), &[], &[]).unwrap().rows, 1);
    let mut early = early;
    assert!(matches!(put(&mut early, &table, 2, 2), Err(Error::ArrayChanged(_))));
    early.rollback();
    // The lock that it got in vain is gone.
    db.run(TransactionOptions::default(), |transaction| put(transaction, &table, 2, 2)).unwrap();
    let past = db.read_view_at(view.at()).unwrap();
    assert!(matches!(table.lookup(&past, &key, &ScanOptions::default()), Err(Error::ArrayChanged(_))));
}

#[test]
fn serializable_transactions_that_read_what_the_other_writes_do_not_both_commit() {
    let db = Database::in_memory();
    let tables = ["x", "y"].map(|name| db.create_table_with(name, schema(), settings()).unwrap());
    db.run(TransactionOptions::default(), |transaction| {
        tables.iter().try_for_each(|table| put(transaction, table, 0, 0))
    })
    .unwrap();
    let options = TransactionOptions::at(Isolation::Serializable);
    let mut both = [(0, 1), (1, 0)].map(|(read, written)| {
        let mut transaction = db.begin_with(options).unwrap();
        assert_eq!(contents(&transaction, &tables[read]), Model::from([(0, 0)]));
        put(&mut transaction, &tables[written], 0, 1).unwrap();
        Some(transaction)
    });
    let done = [0, 1].map(|at| both[at].take().unwrap().commit());
    assert!(done[0].is_ok() && matches!(done[1], Err(Error::ReadChanged)), "{done:?}");
}

#[test]
fn a_writer_waits_for_another_one_and_a_deadlock_is_found() {
    let db = Database::in_memory();
    let tables = ["x", "y"].map(|name| db.create_table_with(name, schema(), settings()).unwrap());
    let options = TransactionOptions::at(Isolation::ReadCommitted);
    let mut first = db.begin_with(options).unwrap();
    put(&mut first, &tables[0], 1, 1).unwrap();
    let short = TransactionOptions { lock_timeout: Some(Duration::from_millis(1)), ..options };
    let mut impatient = db.begin_with(short).unwrap();
    assert!(matches!(put(&mut impatient, &tables[0], 2, 2), Err(Error::LockTimeout)));
    let mut second = db.begin_with(options).unwrap();
    put(&mut second, &tables[1], 1, 1).unwrap();
    std::thread::scope(|scope| {
        let table = &tables[1];
        let crossing = scope.spawn(move || put(&mut first, table, 2, 2).and_then(|()| first.commit()).is_ok());
        let other = put(&mut second, &tables[0], 2, 2).and_then(|()| second.commit()).is_ok();
        assert!(crossing.join().unwrap() != other, "one of the two breaks the circle");
    });
    let savepoint_frees = |db: &Database| {
        let mut transaction = db.begin_with(options).unwrap();
        let savepoint = transaction.savepoint();
        put(&mut transaction, &tables[0], 3, 3).unwrap();
        transaction.rollback_to(savepoint).unwrap();
        db.run(short, |other| put(other, &tables[0], 3, 4)).unwrap();
        put(&mut transaction, &tables[0], 3, 5).unwrap();
        transaction.commit().unwrap();
    };
    savepoint_frees(&db);
    assert_eq!(committed(&db, &tables[0])[&3], 5);
}

#[test]
fn rows_are_locked_with_their_table_and_found_again_where_they_changed() {
    let db = Database::in_memory();
    let table = create(&db);
    db.run(TransactionOptions::default(), |transaction| put(transaction, &table, 1, 1)).unwrap();
    let mut transaction = db.begin_with(TransactionOptions::at(Isolation::ReadCommitted)).unwrap();
    let view = transaction.view().unwrap();
    assert_eq!(table.aggregate(&view, &[], &[]).unwrap().rows, 1);
    db.run(TransactionOptions::default(), |other| put(other, &table, 1, 2)).unwrap();
    let strength = LockStrength::Update;
    let locked = |transaction: &mut Transaction, rid| {
        transaction.lock_row(&table, rid, strength, LockWait::Block, &view).unwrap()
    };
    assert_eq!((locked(&mut transaction, 1), locked(&mut transaction, 9)), (RowLock::Stale, RowLock::Gone));
    let rids = arrow_array::UInt64Array::from(vec![1]);
    let stale = transaction.delete_batch(&table, &rids, &view);
    assert!(matches!(stale, Err(Error::ArrayChanged(_))), "rows were found before the table was locked: {stale:?}");
    let view = transaction.view().unwrap();
    let now = transaction.lock_row(&table, 1, strength, LockWait::Block, &view).unwrap();
    assert_eq!(now, RowLock::Locked);
    assert_eq!(transaction.delete_batch(&table, &rids, &view).unwrap().rows, 1);
}

#[test]
fn columns_keys_and_constraints_that_make_no_array_are_refused_with_a_remedy() {
    let db = Database::in_memory();
    let (text, null) = (column("s", DataType::TEXT), Column::new("n", DataType::BigInt));
    let id = || column("id", DataType::BigInt);
    let refused = |columns: Vec<Column>, key: &[&str]| {
        let made = db.create_table_with("r", Schema::new(columns, key).unwrap(), settings());
        match made {
            Err(error @ Error::ArrayTable { .. }) => error.to_string(),
            other => panic!("{:?}", other.map(|table| table.name().to_owned())),
        }
    };
    assert!(refused(vec![id()], &[]).contains("PRIMARY KEY"));
    assert!(refused(vec![id(), column("b", DataType::BigInt)], &["id", "b"]).contains("one integer column"));
    assert!(refused(vec![id(), text], &["id"]).contains("column \"s\""));
    assert!(refused(vec![id(), null], &["id"]).contains("NOT NULL"));
    assert!(refused(vec![column("id", DataType::Date)], &["id"]).contains("smallint, integer or bigint"));

    let table = create(&db);
    db.run(TransactionOptions::default(), |transaction| {
        for key in [-1, 1 << 20] {
            let far = transaction.insert(&table, &row(key, 0));
            assert!(matches!(far, Err(Error::ArrayKey { .. })), "{key}: {far:?}");
        }
        transaction.insert(&table, &row((1 << 20) - 1, 0))?;
        let key = [Value::Integer((1 << 20) - 1)];
        assert!(matches!(transaction.update(&table, &key, &[("id", 5i32.into())]), Err(Error::ArrayTable { .. })));
        Ok::<(), Error>(())
    })
    .unwrap();
    let index = db.create_index("t", engine::IndexDefinition::new("i", &[0]));
    assert!(matches!(index, Err(Error::ArrayTable { .. })));
    assert!(matches!(table.record_history(&[Value::Integer(1)]), Err(Error::ArrayTable { .. })));
    assert!(matches!(table.changes(engine::Timestamp(0), engine::Timestamp(9)), Err(Error::ArrayTable { .. })));
}

#[test]
fn memory_that_is_not_there_fails_a_statement_and_loses_nothing() {
    let options = OpenOptions { memory_limit_bytes: Some(8 << 20), ..OpenOptions::default() };
    let db = Database::in_memory_with(&options);
    let table = create(&db);
    let mut transaction = db.begin().unwrap();
    put(&mut transaction, &table, 1, 1).unwrap();
    let refused = put(&mut transaction, &table, 900_000, 1);
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    put(&mut transaction, &table, 2, 2).unwrap();
    transaction.commit().unwrap();
    assert_eq!(committed(&db, &table), Model::from([(1, 1), (2, 2)]));
    let used = db.memory_used_bytes();
    assert!(table.memory().base_bytes > 1 << 20);
    db.drop_table("t").unwrap();
    drop(table);
    db.reclaim_now();
    assert!(db.memory_used_bytes() + (1 << 20) < used, "{used} before, {} now", db.memory_used_bytes());
}

#[test]
fn what_is_not_committed_counts_and_at_the_limit_a_statement_fails_and_loses_nothing() {
    let db = Database::in_memory();
    let (table, mut written) = (create(&db), Model::from([(1, 1)]));
    let mut transaction = db.begin().unwrap();
    put(&mut transaction, &table, 1, 1).unwrap();
    transaction.commit().unwrap();
    let before = db.memory_used_bytes();
    db.set_memory_limit_bytes(Some(before + (256 << 10)));
    let mut transaction = db.begin().unwrap();
    let savepoint = transaction.savepoint();
    // Each in another leaf, which has 64 words for each of two columns.
    let refused = (1..1_000).find_map(|leaf| match put(&mut transaction, &table, leaf * 64, 7) {
        Ok(()) => written.insert(leaf * 64, 7).and(None),
        Err(error) => Some(error),
    });
    assert!(matches!(refused, Some(Error::OutOfMemory { .. })), "{refused:?}");
    assert!((200..260).contains(&written.len()), "{} leaves of 1 KiB in 256 KiB", written.len());
    let deleted = transaction.delete(&table, &[Value::Integer(1)]);
    assert!(matches!(deleted, Err(Error::OutOfMemory { .. })), "{deleted:?}");
    assert_eq!(contents(&transaction, &table), written);
    transaction.rollback_to(savepoint).unwrap();
    assert!(db.memory_used_bytes() < before + (8 << 10), "{before} before, {} now", db.memory_used_bytes());
    written.retain(|key, _| *key < 100 * 64);
    written.keys().for_each(|key| put(&mut transaction, &table, *key, written[key]).unwrap());
    transaction.commit().unwrap();
    assert_eq!(committed(&db, &table), written);
    assert!(db.memory_used_bytes() < before + (8 << 10), "{before} before, {} now", db.memory_used_bytes());
}

#[test]
fn checks_hold_for_rows_of_arrays() {
    let check = Check { name: "c".into(), condition: "a > 0".into(), columns: vec![0], validated: true };
    let db = Database::in_memory();
    let made = db.create_table_with("t", schema(), TableSettings { checks: vec![check], ..settings() }).unwrap();
    let mut transaction = db.begin().unwrap();
    let written = put(&mut transaction, &made, 1, 1);
    let refused = matches!(&written, Err(Error::Expression(error)) if error.message.contains("CHECK"));
    assert!(refused, "the engine alone knows no SQL: {written:?}");
}
