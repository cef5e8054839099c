//! The promises of each isolation level, one situation after the other; which transaction waits for which, and what
//! savepoints take back.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use engine::{
    Column, DataType, Database, Error, IndexDefinition, Isolation, LockStrength, LockWait, RowLock, ScanOptions,
    Schema, Table, Timestamp, Transaction, TransactionOptions, Value,
};

const ALL: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];

fn table(db: &Database) -> Table {
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("n", DataType::BigInt)];
    db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap()
}

fn key(id: i64) -> [Value; 1] {
    [Value::from(id)]
}

/// A table with a row `(id, n)` for each pair.
fn filled(db: &Database, rows: &[(i64, i64)]) -> Table {
    let table = table(db);
    let mut transaction = db.begin().unwrap();
    for (id, n) in rows {
        insert(&mut transaction, &table, *id, *n).unwrap();
    }
    transaction.commit().unwrap();
    table
}

fn insert(transaction: &mut Transaction, table: &Table, id: i64, n: i64) -> Result<(), Error> {
    transaction.insert(table, &[Value::from(id), Value::from(n)]).map(drop)
}

fn set(transaction: &mut Transaction, table: &Table, id: i64, n: i64) -> Result<bool, Error> {
    transaction.update(table, &key(id), &[("n", Value::from(n))])
}

fn get(transaction: &Transaction, table: &Table, id: i64) -> Option<i64> {
    let row = transaction.get(table, &key(id)).unwrap()?;
    let Value::BigInt(n) = row[1] else { panic!("{row:?}") };
    Some(n)
}

fn sum(transaction: &Transaction, table: &Table) -> i64 {
    let batches = transaction.scan(table, &["n"]).unwrap().batches().map(Result::unwrap);
    batches.map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>()).sum()
}

fn begin(db: &Database, isolation: Isolation) -> Transaction {
    db.begin_with(TransactionOptions::at(isolation)).unwrap()
}

fn commit_one(db: &Database, table: &Table, id: i64, n: i64) -> Timestamp {
    let mut transaction = db.begin().unwrap();
    set(&mut transaction, table, id, n).unwrap();
    transaction.commit().unwrap()
}

#[test]
fn statements_of_read_committed_see_what_was_committed_before_them() {
    let db = Database::in_memory();
    let table = filled(&db, &[(1, 10)]);
    let transactions = ALL.map(|level| begin(&db, level));
    let seen = || transactions.each_ref().map(|transaction| (get(transaction, &table, 1), sum(transaction, &table)));
    assert_eq!(seen(), [(Some(10), 10); 3]);
    let mut writer = db.begin().unwrap();
    set(&mut writer, &table, 1, 20).unwrap();
    assert_eq!(seen(), [(Some(10), 10); 3], "nothing uncommitted is seen");
    writer.commit().unwrap();
    assert_eq!(seen(), [(Some(20), 20), (Some(10), 10), (Some(10), 10)]);
}

#[test]
fn a_view_does_not_show_what_its_transaction_writes_later() {
    for level in ALL {
        let db = Database::in_memory();
        let table = filled(&db, &[(1, 10), (2, 20)]);
        let mut transaction = begin(&db, level);
        set(&mut transaction, &table, 1, 11).unwrap();
        let (before, scan) = (transaction.view().unwrap(), transaction.scan(&table, &["n"]).unwrap());
        set(&mut transaction, &table, 1, 12).unwrap();
        insert(&mut transaction, &table, 3, 30).unwrap();
        transaction.delete(&table, &key(2)).unwrap();
        let total = |view| {
            let options = ScanOptions { columns: vec![1], ..ScanOptions::default() };
            let scanned: usize =
                table.scan(view, options).unwrap().batches().map(Result::unwrap).map(|batch| batch.num_rows()).sum();
            let totals = table.aggregate(view, &[], &[1]).unwrap();
            (scanned, totals.columns[0].sum)
        };
        let (later, seen) = (transaction.view().unwrap(), total(&before));
        assert_eq!(seen, total(&before));
        assert_eq!(seen.0, 2);
        assert_eq!(seen.1, total_of(31));
        assert_eq!(total(&later), (2, total_of(42)));
        let rows: i64 = scan
            .batches()
            .map(Result::unwrap)
            .map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>())
            .sum();
        assert_eq!(rows, 31, "a scan that is under way goes on as it began");
        let found =
            table.lookup(&before, &key(1), &ScanOptions { columns: vec![1], ..ScanOptions::default() }).unwrap();
        assert_eq!(found.column(0).as_primitive::<Int64Type>().value(0), 11);
        assert_eq!(get(&transaction, &table, 1), Some(12));
    }
}

fn total_of(sum: i64) -> engine::Sum {
    engine::Sum::Integer(i128::from(sum))
}

#[test]
fn above_read_committed_a_second_writer_fails_at_once() {
    for level in [Isolation::Snapshot, Isolation::Serializable] {
        let db = Database::in_memory();
        let table = filled(&db, &[(1, 10)]);
        let (mut first, mut second, mut third) = (begin(&db, level), begin(&db, level), begin(&db, level));
        set(&mut first, &table, 1, 11).unwrap();
        assert!(matches!(set(&mut second, &table, 1, 12), Err(Error::Conflict)), "the other is not done");
        first.commit().unwrap();
        assert!(matches!(set(&mut third, &table, 1, 13), Err(Error::Conflict)), "the other committed");
    }
}

#[test]
fn a_writer_of_read_committed_waits_and_goes_on_from_the_newest_version() {
    let db = Database::in_memory();
    let table = filled(&db, &[(1, 10)]);
    for commits in [true, false] {
        let mut first = begin(&db, Isolation::ReadCommitted);
        set(&mut first, &table, 1, 11).unwrap();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                let mut second = begin(&db, Isolation::ReadCommitted);
                let row = second.get_for_update(&table, &key(1)).unwrap().unwrap();
                assert!(is_done.load(Ordering::SeqCst), "it waited");
                let Value::BigInt(n) = row[1] else { panic!("{row:?}") };
                assert!(set(&mut second, &table, 1, n + 100).unwrap());
                second.commit().unwrap();
            });
            thread::sleep(Duration::from_millis(30));
            is_done.store(true, Ordering::SeqCst);
            if commits {
                first.commit().unwrap();
            } else {
                first.rollback();
            }
            second.join().unwrap();
        });
        assert_eq!(get(&db.begin().unwrap(), &table, 1), Some(if commits { 111 } else { 211 }));
    }
}

/// Counters that many threads raise: no raise is lost at any level, and READ COMMITTED never has to start again.
#[test]
fn what_is_computed_from_a_row_is_computed_from_its_newest_version() {
    for isolation in ALL {
        let db = Database::in_memory();
        let table = filled(&db, &[(1, 0), (2, 0)]);
        let raise = |transaction: &mut Transaction, id: i64| {
            let one_more = |read: &[Value]| match read {
                [Value::BigInt(n)] => Some(vec![(1, Value::from(n + 1))]),
                _ => None,
            };
            transaction.update_computed(&table, &key(id), &[1], one_more)
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..100 {
                        let options = TransactionOptions::at(isolation);
                        let work = |transaction: &mut Transaction| raise(transaction, 1 + round % 2);
                        let raised = match isolation {
                            Isolation::ReadCommitted => {
                                let mut transaction = db.begin_with(options).unwrap();
                                let raised = work(&mut transaction);
                                transaction.commit().unwrap();
                                raised
                            }
                            _ => db.run(options, work),
                        };
                        assert_eq!(raised.unwrap(), Some(true));
                    }
                });
            }
        });
        let mut transaction = db.begin().unwrap();
        assert_eq!((get(&transaction, &table, 1), get(&transaction, &table, 2)), (Some(200), Some(200)));
        assert_eq!(raise(&mut transaction, 3).unwrap(), Some(false));
        assert_eq!(transaction.update_computed(&table, &key(1), &[1], |_| None).unwrap(), None);
        assert_eq!(get(&transaction, &table, 1), Some(200));
    }
}

#[test]
fn a_batch_names_the_rows_that_have_become_stale() {
    let db = Database::in_memory();
    let table = filled(&db, &[(1, 10), (2, 20), (3, 30)]);
    let mut transaction = begin(&db, Isolation::ReadCommitted);
    let view = transaction.view().unwrap();
    let options = ScanOptions { columns: vec![], with_rid: true, ..ScanOptions::default() };
    let found = table.scan(&view, options).unwrap().next().unwrap().unwrap().remove(0);
    let rids = found.column(0).as_primitive().clone();
    commit_one(&db, &table, 2, 21);
    let mut other = db.begin().unwrap();
    other.delete(&table, &key(3)).unwrap();
    other.commit().unwrap();
    let changed = transaction.delete_batch(&table, &rids, &view).unwrap();
    assert_eq!((changed.rows, changed.stale), (1, vec![rids.value(1)]));
    let mut other = begin(&db, Isolation::Snapshot);
    assert!(matches!(set(&mut other, &table, 2, 22), Err(Error::Conflict)), "a stale row is locked");
    let rows = table.lookup_rids(
        &transaction.view().unwrap(),
        &[rids.value(1)],
        &ScanOptions { columns: vec![1], ..ScanOptions::default() },
    );
    assert_eq!(rows.unwrap().column(0).as_primitive::<Int64Type>().values(), &[21]);
    let view = transaction.view().unwrap();
    let stale = arrow_array::UInt64Array::from(vec![rids.value(1)]);
    assert_eq!(transaction.delete_batch(&table, &stale, &view).unwrap().rows, 1);
    transaction.commit().unwrap();
    assert_eq!(sum(&db.begin().unwrap(), &table), 0);
}

#[test]
fn serializable_has_no_write_skew() {
    for (level, commits) in [(Isolation::Snapshot, 2), (Isolation::Serializable, 1)] {
        let db = Database::in_memory();
        let table = filled(&db, &[(1, 1), (2, 1)]);
        let (mut first, mut second) = (begin(&db, level), begin(&db, level));
        assert_eq!((get(&first, &table, 1), get(&first, &table, 2)), (Some(1), Some(1)));
        assert_eq!((get(&second, &table, 1), get(&second, &table, 2)), (Some(1), Some(1)));
        set(&mut first, &table, 1, 0).unwrap();
        set(&mut second, &table, 2, 0).unwrap();
        let done = [first.commit(), second.commit()];
        assert_eq!(done.iter().filter(|done| done.is_ok()).count(), commits, "{level}");
        assert!(done[1].is_ok() || matches!(done[1], Err(Error::ReadChanged)));
    }
}

/// Each reads with a condition and then inserts what the other's condition asks for.
#[test]
fn serializable_has_no_phantoms() {
    for (level, commits) in [(Isolation::Snapshot, 2), (Isolation::Serializable, 1)] {
        for by_key in [false, true] {
            let db = Database::in_memory();
            let table = filled(&db, &[(1, 1)]);
            let (mut first, mut second) = (begin(&db, level), begin(&db, level));
            let look = |transaction: &Transaction, id| match by_key {
                true => get(transaction, &table, id).unwrap_or(0),
                false => {
                    let tests = [(0, engine::Test::Compare(engine::Comparison::Eq, Value::from(id)))];
                    let totals = table.aggregate(&transaction.view().unwrap(), &tests, &[1]).unwrap();
                    totals.rows as i64
                }
            };
            assert_eq!((look(&first, 8), look(&second, 9)), (0, 0));
            insert(&mut first, &table, 9, 1).unwrap();
            insert(&mut second, &table, 8, 1).unwrap();
            let done = [first.commit(), second.commit()];
            assert_eq!(done.iter().filter(|done| done.is_ok()).count(), commits, "{level}, by key: {by_key}");
        }
    }
}

#[test]
fn serializable_lets_through_what_did_not_meet() {
    let db = Database::in_memory();
    let table = filled(&db, &[(1, 1), (2, 2), (3, 3)]);
    let (mut first, mut second, reader) =
        (begin(&db, Isolation::Serializable), begin(&db, Isolation::Serializable), begin(&db, Isolation::Serializable));
    assert_eq!((get(&first, &table, 1), get(&second, &table, 2), sum(&reader, &table)), (Some(1), Some(2), 6));
    set(&mut first, &table, 1, 10).unwrap();
    set(&mut second, &table, 2, 20).unwrap();
    first.commit().unwrap();
    second.commit().unwrap();
    assert_eq!(sum(&reader, &table), 6);
    reader.commit().unwrap();
}

#[test]
fn a_read_only_transaction_refuses_to_write() {
    let db = Database::in_memory();
    let table = filled(&db, &[(1, 1)]);
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    let mut transaction = db.begin_with(options).unwrap();
    let errors = [
        insert(&mut transaction, &table, 2, 2).unwrap_err(),
        set(&mut transaction, &table, 1, 2).unwrap_err(),
        transaction.delete(&table, &key(1)).unwrap_err(),
        transaction.get_for_update(&table, &key(1)).unwrap_err(),
    ];
    assert!(errors.iter().all(|error| error.sqlstate() == "25006"), "{errors:?}");
    assert_eq!(get(&transaction, &table, 1), Some(1));
    transaction.commit().unwrap();
}

#[test]
fn savepoints_take_back_writes_keys_and_locks() {
    for level in ALL {
        let db = Database::in_memory();
        let table = filled(&db, &[(1, 1), (2, 2), (3, 3)]);
        let mut transaction = begin(&db, level);
        insert(&mut transaction, &table, 4, 4).unwrap();
        let outer = transaction.savepoint();
        set(&mut transaction, &table, 1, 10).unwrap();
        let inner = transaction.savepoint();
        insert(&mut transaction, &table, 5, 5).unwrap();
        insert(&mut transaction, &table, 6, 6).unwrap();
        transaction.delete(&table, &key(2)).unwrap();
        set(&mut transaction, &table, 1, 11).unwrap();
        assert!(transaction.get_for_update(&table, &key(3)).unwrap().is_some());
        assert_eq!(sum(&transaction, &table), 11 + 3 + 4 + 5 + 6);
        transaction.rollback_to(inner).unwrap();
        assert_eq!(sum(&transaction, &table), 10 + 2 + 3 + 4);
        let mut other = db.begin().unwrap();
        insert(&mut other, &table, 5, 50).unwrap();
        set(&mut other, &table, 3, 30).unwrap();
        other.rollback();
        insert(&mut transaction, &table, 5, 7).unwrap();
        transaction.rollback_to(inner).unwrap();
        transaction.release(inner).unwrap();
        assert!(matches!(transaction.rollback_to(inner), Err(Error::NoSuchSavepoint)));
        assert_eq!(get(&transaction, &table, 1), Some(10));
        transaction.rollback_to(outer).unwrap();
        assert_eq!(sum(&transaction, &table), 1 + 2 + 3 + 4);
        set(&mut transaction, &table, 2, 20).unwrap();
        transaction.commit().unwrap();
        assert_eq!(sum(&db.begin().unwrap(), &table), 1 + 20 + 3 + 4);
    }
}

/// Enough is written that the log has a part of it before it is taken back.
#[test]
fn what_a_savepoint_took_back_does_not_come_back_with_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open(directory.path()).unwrap();
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("text", DataType::TEXT)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let long = Value::from("x".repeat(100_000).as_str());
    let mut transaction = db.begin().unwrap();
    let put = |transaction: &mut Transaction, ids: std::ops::Range<i64>| {
        for id in ids {
            transaction.insert(&table, &[Value::from(id), long.clone()]).unwrap();
        }
    };
    put(&mut transaction, 0..3);
    let first = transaction.savepoint();
    put(&mut transaction, 10..30);
    let second = transaction.savepoint();
    put(&mut transaction, 30..50);
    transaction.rollback_to(second).unwrap();
    put(&mut transaction, 50..70);
    transaction.rollback_to(first).unwrap();
    put(&mut transaction, 70..90);
    transaction.rollback_to(first).unwrap();
    put(&mut transaction, 100..115);
    let third = transaction.savepoint();
    put(&mut transaction, 200..201);
    transaction.rollback_to(third).unwrap();
    transaction.commit().unwrap();
    let ids = |db: &Database| {
        let table = db.table("t").unwrap();
        let batches = db.begin().unwrap().scan(&table, &["id"]).unwrap().batches().map(Result::unwrap);
        let ids: Vec<Vec<i64>> =
            batches.map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        let mut ids = ids.concat();
        ids.sort_unstable();
        ids
    };
    let expected: Vec<i64> = (0..3).chain(100..115).collect();
    assert_eq!(ids(&db), expected);
    drop((table, db));
    assert_eq!(ids(&Database::open(directory.path()).unwrap()), expected);
}

#[test]
fn a_locked_row_is_not_to_be_had() {
    for strength in [LockStrength::Update, LockStrength::Share] {
        let db = Database::in_memory();
        let table = filled(&db, &[(1, 1)]);
        let rid = rid_of(&db, &table, 1);
        let mut holder = begin(&db, Isolation::ReadCommitted);
        let view = holder.view().unwrap();
        assert_eq!(holder.lock_row(&table, rid, strength, LockWait::Block, &view).unwrap(), RowLock::Locked);
        let mut other = begin(&db, Isolation::ReadCommitted);
        other.set_lock_timeout(Some(Duration::from_millis(5)));
        assert!(matches!(set(&mut other, &table, 1, 2), Err(Error::LockTimeout)));
        let mut lock = |strength, wait| other.lock_row(&table, rid, strength, wait, &view);
        assert!(matches!(lock(LockStrength::Update, LockWait::NoWait), Err(Error::LockNotAvailable { .. })));
        assert_eq!(lock(LockStrength::Update, LockWait::SkipLocked).unwrap(), RowLock::Skipped);
        let shared = lock(LockStrength::Share, LockWait::SkipLocked).unwrap();
        assert_eq!(shared == RowLock::Locked, strength == LockStrength::Share);
        other.rollback();
        assert!(set(&mut holder, &table, 1, 3).unwrap(), "the holder itself may write");
        holder.commit().unwrap();
        let mut later = begin(&db, Isolation::Snapshot);
        assert!(set(&mut later, &table, 1, 4).unwrap());
        later.commit().unwrap();
    }
}

/// A lock that was held and given up is no change: no later transaction fails because of it.
#[test]
fn a_lock_leaves_nothing_behind() {
    let db = Database::in_memory();
    let table = filled(&db, &[(1, 1)]);
    let mut early = begin(&db, Isolation::Serializable);
    assert_eq!(get(&early, &table, 1), Some(1));
    let mut locker = begin(&db, Isolation::Snapshot);
    locker.get_for_update(&table, &key(1)).unwrap().unwrap();
    locker.commit().unwrap();
    assert!(set(&mut early, &table, 1, 2).unwrap());
    early.commit().unwrap();
    assert_eq!(get(&db.begin().unwrap(), &table, 1), Some(2));
}

fn rid_of(db: &Database, table: &Table, id: i64) -> u64 {
    let options = ScanOptions { columns: vec![], with_rid: true, ..ScanOptions::default() };
    let found = table.lookup(db.snapshot(), &key(id), &options).unwrap();
    found.column(0).as_primitive::<arrow_array::types::UInt64Type>().value(0)
}

#[test]
fn one_of_those_who_wait_in_a_circle_is_told() {
    for parties in [2, 5] {
        let db = Database::in_memory();
        let rows: Vec<(i64, i64)> = (0..parties).map(|id| (id, 0)).collect();
        let table = filled(&db, &rows);
        let ready = std::sync::Barrier::new(parties as usize);
        let outcomes: Vec<Result<(), Error>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..parties)
                .map(|id| {
                    let (db, table, ready) = (&db, &table, &ready);
                    scope.spawn(move || {
                        let mut transaction = begin(db, Isolation::ReadCommitted);
                        set(&mut transaction, table, id, 1)?;
                        ready.wait();
                        set(&mut transaction, table, (id + 1) % parties, 2)?;
                        transaction.commit().map(drop)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let failed: Vec<&Error> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
        assert!(matches!(failed[..], [Error::Deadlock]), "{failed:?}");
    }
}

#[test]
fn a_wait_can_be_interrupted() {
    let db = Database::in_memory();
    let table = filled(&db, &[(1, 1)]);
    let mut holder = begin(&db, Isolation::ReadCommitted);
    set(&mut holder, &table, 1, 2).unwrap();
    let mut other = begin(&db, Isolation::ReadCommitted);
    let interrupter = other.interrupter();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| set(&mut other, &table, 1, 3));
        thread::sleep(Duration::from_millis(20));
        interrupter.interrupt();
        assert!(matches!(waiting.join().unwrap(), Err(Error::Interrupted)));
    });
}

/// What takes long looks at an interrupt between its steps, and nothing of it stays.
#[test]
fn a_batch_and_the_making_of_an_index_can_be_interrupted() {
    let db = Database::in_memory();
    let table = filled(&db, &[(1, 1), (2, 2)]);
    let column = |number: i64| Arc::new(Int64Array::from(vec![number])) as ArrayRef;
    let rows = RecordBatch::try_from_iter([("id", column(3)), ("n", column(3))]).unwrap();
    let values = RecordBatch::try_from_iter([("n", column(7))]).unwrap();
    let mut transaction = begin(&db, Isolation::ReadCommitted);
    let view = transaction.view().unwrap();
    let options = ScanOptions { with_rid: true, ..ScanOptions::default() };
    let found = table.lookup(&view, &key(1), &options).unwrap();
    let rids = found.column(found.num_columns() - 1).as_primitive::<UInt64Type>().clone();
    let is_interrupted = |done: Result<(), Error>| matches!(done, Err(Error::Interrupted));

    transaction.interrupter().interrupt();
    assert!(is_interrupted(transaction.insert_batch(&table, &rows).map(drop)));
    assert!(is_interrupted(transaction.update_batch(&table, &rids, &[1], &values, &view).map(drop)));
    assert!(is_interrupted(transaction.delete_batch(&table, &rids, &view).map(drop)));
    assert!(is_interrupted(transaction.create_index("t", IndexDefinition::new("t_n", &[1])).map(drop)));
    transaction.clear_interrupt();
    assert_eq!((get(&transaction, &table, 1), get(&transaction, &table, 3)), (Some(1), None));
    assert_eq!(transaction.insert_batch(&table, &rows).unwrap(), 1);
    transaction.create_index("t", IndexDefinition::new("t_n", &[1])).unwrap();
    transaction.commit().unwrap();
    assert_eq!(sum(&db.begin().unwrap(), &table), 6);
}

/// Many threads count in one row, at every level: nothing is lost, and every thread gets through.
#[test]
fn a_row_that_everybody_wants_is_passed_on() {
    for level in ALL {
        let db = Database::in_memory();
        let table = filled(&db, &[(1, 0)]);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        db.run(TransactionOptions::at(level), |transaction| {
                            let row = transaction.get_for_update(&table, &key(1))?.expect("the row is there");
                            let Value::BigInt(n) = row[1] else { panic!("{row:?}") };
                            set(transaction, &table, 1, n + 1).map(drop)
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(get(&db.begin().unwrap(), &table, 1), Some(200), "{level}");
    }
}

#[test]
fn a_key_that_a_serializable_transaction_has_deleted_itself_is_no_change_of_others() {
    let db = Database::in_memory();
    let (table, columns) = (filled(&db, &[(1, 10), (2, 20)]), vec![Column::new("a", DataType::BigInt)]);
    let other = db.create_table("other", Schema::new(columns, &[]).unwrap()).unwrap();
    let somebody_commits = |keys: &[i64]| {
        let mut transaction = db.begin().unwrap();
        transaction.insert(&other, &[Value::from(1)]).unwrap();
        keys.iter().for_each(|id| insert(&mut transaction, &table, *id, 1).unwrap());
        transaction.commit().unwrap();
    };
    for moves in [false, true] {
        let mut transaction = begin(&db, Isolation::Serializable);
        let id = if moves { 2 } else { 1 };
        match moves {
            true => drop(transaction.update(&table, &key(2), &[("id", Value::from(7))]).unwrap()),
            false => drop(transaction.delete(&table, &key(1)).unwrap()),
        }
        assert_eq!(get(&transaction, &table, id), None);
        somebody_commits(&[]);
        transaction.commit().unwrap();
    }
    // A key that was not there, and that somebody else enters, is one.
    let mut transaction = begin(&db, Isolation::Serializable);
    assert_eq!((get(&transaction, &table, 1), get(&transaction, &table, 5)), (None, None));
    set(&mut transaction, &table, 7, 1).unwrap();
    somebody_commits(&[5]);
    assert!(matches!(transaction.commit(), Err(Error::ReadChanged)));
}
