//! Memory: accounted by table and kind, given back by merges, retention and drops, and never more than the limit for
//! long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::{
    Column, DataType, Database, Error, OpenOptions, Retention, ScanOptions, Schema, Table, TableMemory, TableSettings,
    Value,
};

fn table_named(db: &Database, name: &str, retention: Retention) -> Table {
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("x", DataType::BigInt)];
    let settings = TableSettings { retention, ..TableSettings::default() };
    db.create_table_with(name, Schema::new(columns, &["id"]).unwrap(), settings).unwrap()
}

fn options(range_records: usize, merge_tail_records: u64) -> OpenOptions {
    let (range_records, merge_tail_records) = (Some(range_records), Some(merge_tail_records));
    OpenOptions { range_records, merge_tail_records, ..OpenOptions::default() }
}

fn insert(db: &Database, table: &Table, ids: std::ops::Range<i64>) -> Result<(), Error> {
    let mut transaction = db.begin()?;
    for id in ids {
        transaction.insert(table, &[Value::from(id), Value::from(id)])?;
    }
    transaction.commit()?;
    Ok(())
}

fn update(db: &Database, table: &Table, id: i64, x: i64) -> Result<(), Error> {
    let mut transaction = db.begin()?;
    assert!(transaction.update(table, &[Value::from(id)], &[("x", Value::from(x))])?);
    transaction.commit()?;
    Ok(())
}

fn count(db: &Database, table: &Table) -> u64 {
    table.aggregate(&db.read_view().unwrap(), &[], &[0]).unwrap().rows
}

/// Waits until this holds: what is replaced is freed once the readers of other tests are gone too.
fn wait_until(holds: impl Fn() -> bool, db: &Database) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never came to hold: {:?}", db.memory());
        db.reclaim_now();
    }
}

fn total(memory: &TableMemory) -> u64 {
    memory.insert_bytes + memory.base_bytes + memory.tail_bytes + memory.history_bytes
}

#[test]
fn memory_is_accounted_by_kind_and_given_back() {
    let db = Database::in_memory_with(&options(4_096, 1 << 30));
    let table = table_named(&db, "t", Retention::Forever);
    assert_eq!(total(&table.memory()), 0, "an empty table takes nothing");
    insert(&db, &table, 0..4_000).unwrap();
    let inserted = table.memory();
    assert!(inserted.insert_bytes > 4_000 * 16 && inserted.index_bytes > 4_000 * 8, "{inserted:?}");
    assert_eq!((inserted.tail_bytes, inserted.history_bytes), (0, 0));
    db.merge_now();
    wait_until(|| table.memory().insert_bytes == 0, &db);
    let merged = table.memory();
    assert!(merged.base_bytes > inserted.base_bytes, "base pages took their place");
    (0..20_000).for_each(|i| update(&db, &table, i % 1_000, i).unwrap());
    let updated = table.memory();
    assert!(updated.tail_bytes > 20_000 * 64 && updated.history_bytes == 0, "{updated:?}");
    wait_until(|| table.memory().tail_bytes < updated.tail_bytes / 10, &db);
    let kept = table.memory();
    assert!(kept.history_bytes > 0 && kept.history_bytes * 4 < updated.tail_bytes, "{kept:?}");
    db.set_retention("t", Retention::None).unwrap();
    wait_until(|| table.memory().history_bytes < kept.history_bytes / 10, &db);
    assert_eq!(count(&db, &table), 4_000);
}

#[test]
fn a_dropped_table_gives_all_its_memory_back() {
    // Without merge threads only this thread decides what goes when.
    let db = Database::in_memory_with(&OpenOptions { merge_threads: Some(0), ..options(1_024, 256) });
    let other = table_named(&db, "other", Retention::Forever);
    let table = table_named(&db, "t", Retention::Forever);
    insert(&db, &table, 0..5_000).unwrap();
    (0..5_000).for_each(|i| update(&db, &table, i % 100, i).unwrap());
    let limit = total(&table.memory()) / 2;
    db.set_memory_limit_bytes(Some(limit));
    db.drop_table("t").unwrap();
    drop(table);
    let begun = Instant::now();
    while let Err(error) = insert(&db, &other, 0..10) {
        assert!(matches!(error, Error::OutOfMemory { .. }) && begun.elapsed() < Duration::from_secs(20), "{error}");
    }
    assert_eq!(count(&db, &other), 10);
}

#[test]
fn without_retention_memory_stays_flat_under_updates() {
    let db = Database::in_memory_with(&options(4_096, 2_048));
    let table = table_named(&db, "t", Retention::None);
    insert(&db, &table, 0..1_000).unwrap();
    let mut most = 0;
    for i in 0..200_000i64 {
        update(&db, &table, i * 7 % 1_000, i).unwrap();
        if i % 100 == 0 {
            most = most.max(total(&table.memory()));
        }
    }
    // 200,000 versions in tail pages would be 14 MB and more.
    assert!(most < 6 << 20, "{most} bytes at most");
    wait_until(|| total(&table.memory()) < 200_000, &db);
    assert_eq!(count(&db, &table), 1_000);
}

#[test]
fn a_long_reader_keeps_what_it_sees_and_no_more() {
    let db = Database::in_memory_with(&options(4_096, 2_048));
    let table = table_named(&db, "t", Retention::None);
    insert(&db, &table, 0..1_000).unwrap();
    let sum_at = |view: &engine::ReadView| {
        let totals = table.aggregate(view.snapshot(), &[], &[1]).unwrap();
        (totals.rows, totals.columns[0].sum)
    };
    let update_many = |first: i64| {
        let mut history_bytes_max = 0;
        for i in first..first + 100_000 {
            update(&db, &table, i * 7 % 1_000, i).unwrap();
            if i % 100 == 0 {
                history_bytes_max = history_bytes_max.max(table.memory().history_bytes);
            }
        }
        history_bytes_max
    };
    let (oldest, seen_by_oldest) = (db.read_view().unwrap(), (1_000, engine::Sum::Integer(499_500)));
    let most = update_many(0);
    let transaction = db.begin().unwrap();
    let row_before = transaction.get(&table, &[Value::from(7i64)]).unwrap();
    let view = db.read_view().unwrap();
    let seen_by_view = sum_at(&view);
    let most = most.max(update_many(100_000));
    println!("{most} bytes of history at most beside readers; then {:?}", table.memory());
    // All versions would be 3 MB.
    assert!(most < 1 << 20, "{most} bytes of history at most");
    wait_until(|| total(&table.memory()) < 200_000, &db);
    assert_eq!((sum_at(&oldest), sum_at(&view)), (seen_by_oldest, seen_by_view));
    assert_eq!(transaction.get(&table, &[Value::from(7i64)]).unwrap(), row_before);
    let between = engine::Timestamp(oldest.at().0.midpoint(view.at().0));
    let refused = table.aggregate(engine::Snapshot::at(between), &[], &[1]);
    assert!(matches!(refused, Err(Error::SnapshotTooOld { .. })), "newer than what is held, and not held: {refused:?}");
    assert!(matches!(table.changes(oldest.at(), view.at()), Err(Error::SnapshotTooOld { .. })), "there are gaps");
}

#[test]
fn memory_comes_back_while_others_read_and_write() {
    let db = Database::in_memory_with(&options(1_024, 512));
    let table = table_named(&db, "t", Retention::None);
    insert(&db, &table, 0..1_000).unwrap();
    let done = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, table, done) = (&db, &table, &done);
            scope.spawn(move || {
                for i in 0..60_000 {
                    // The threads keep to rows of their own.
                    update(db, table, i * 2 % 1_000 + thread, i).unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
        }
        let mut most = 0;
        while !done.load(Ordering::Relaxed) {
            assert_eq!(count(&db, &table), 1_000);
            most = most.max(total(&table.memory()));
        }
        most
    });
    assert!(most < 6 << 20, "{most} bytes at most for 8.7 MB of versions and the pages");
    wait_until(|| total(&table.memory()) < 200_000, &db);
}

#[test]
fn at_the_limit_statements_fail_cleanly_and_nothing_is_lost() {
    let db = Database::in_memory_with(&options(1_024, 256));
    let table = table_named(&db, "t", Retention::Forever);
    insert(&db, &table, 0..3_000).unwrap();
    db.reclaim_now();
    db.set_memory_limit_bytes(Some(1_000));
    assert_eq!(db.memory_limit_bytes(), Some(1_000));
    let mut transaction = db.begin().unwrap();
    let refused = transaction.insert(&table, &[Value::from(9_999i64), Value::Null]).unwrap_err();
    assert_eq!(refused.sqlstate(), "53200");
    assert!(matches!(refused, Error::OutOfMemory { limit: 1_000, used } if used > 1_000), "{refused}");
    let refused = transaction.update(&table, &[Value::from(1i64)], &[("x", Value::Null)]).unwrap_err();
    assert_eq!(refused.sqlstate(), "53200");
    assert_eq!(transaction.get(&table, &[Value::from(9_999i64)]).unwrap(), None, "nothing of it stays behind");
    assert!(transaction.delete(&table, &[Value::from(2i64)]).unwrap(), "a delete always works");
    transaction.rollback();
    assert_eq!(count(&db, &table), 3_000, "a failed transaction can roll back");
    let mut transaction = db.begin().unwrap();
    assert!(transaction.insert(&table, &[Value::from(9_999i64), Value::Null]).is_err());
    assert!(transaction.delete(&table, &[Value::from(2i64)]).unwrap());
    transaction.commit().unwrap();
    assert_eq!(count(&db, &table), 2_999, "a failed transaction can commit the rest");
    let scanned: usize = table
        .scan(&db.read_view().unwrap(), ScanOptions { columns: vec![0], ..ScanOptions::default() })
        .unwrap()
        .batches()
        .map(|batch| batch.unwrap().num_rows())
        .sum();
    assert_eq!(scanned, 2_999);
    db.set_memory_limit_bytes(None);
    insert(&db, &table, 3_000..3_001).unwrap();
    update(&db, &table, 1, 7).unwrap();
}

#[test]
fn at_the_limit_history_that_nobody_keeps_makes_room() {
    let db = Database::in_memory_with(&OpenOptions { merge_threads: Some(0), ..options(1_024, 1 << 30) });
    let table = table_named(&db, "t", Retention::Forever);
    insert(&db, &table, 0..1_000).unwrap();
    (0..20_000).for_each(|i| update(&db, &table, i % 1_000, i * i % 1_000_003).unwrap());
    db.reclaim_now();
    let history = table.memory().history_bytes;
    assert!(history > 40_000, "{history}");
    wait_until(|| table.memory().tail_bytes < 100_000, &db);
    db.set_memory_limit_bytes(Some(total(&table.memory()) - history / 2));
    assert!(matches!(update(&db, &table, 1, 1), Err(Error::OutOfMemory { .. })), "all of it is kept for ever");
    db.set_retention("t", Retention::None).unwrap();
    let begun = Instant::now();
    while let Err(error) = update(&db, &table, 1, 1) {
        assert!(matches!(error, Error::OutOfMemory { .. }) && begun.elapsed() < Duration::from_secs(20), "{error}");
    }
    assert!(table.memory().history_bytes < history / 10, "{:?}", table.memory());
    assert_eq!(count(&db, &table), 1_000);
}

#[test]
fn rolled_back_transactions_leave_no_memory_behind_under_the_limit() {
    let db = Database::in_memory_with(&options(1_024, 256));
    let table = table_named(&db, "t", Retention::None);
    insert(&db, &table, 0..1_000).unwrap();
    db.set_memory_limit_bytes(Some(4 << 20));
    let begun = Instant::now();
    let mut refused = 0;
    // Several times what the limit allows.
    for i in 0..60_000i64 {
        let mut transaction = db.begin().unwrap();
        match transaction.update(&table, &[Value::from(i % 1_000)], &[("x", Value::from(i))]) {
            Ok(found) => assert!(found),
            Err(Error::OutOfMemory { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        transaction.rollback();
        assert!(begun.elapsed() < Duration::from_secs(60), "refused {refused} times");
    }
    assert!(refused < 60_000 / 10, "refused {refused} times");
    let totals = table.aggregate(&db.read_view().unwrap(), &[], &[1]).unwrap();
    assert_eq!((totals.rows, &totals.columns[0].sum), (1_000, &engine::Sum::Integer(499_500)));
}
