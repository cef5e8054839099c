//! The past as users ask for it: held snapshots, AS OF on every path, the versions of a row, the changes between commits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::{
    Column, DataType, Database, Error, OpenOptions, Retention, ScanOptions, Schema, Snapshot, Sum, Table,
    TableSettings, Timestamp, Value,
};

fn small_ranges() -> OpenOptions {
    OpenOptions { range_records: Some(64), merge_tail_records: Some(20), ..OpenOptions::default() }
}

/// A table of keys and numbers that has its past kept for this long.
fn table(db: &Database, retention: Retention) -> Table {
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("x", DataType::BigInt)];
    let settings = TableSettings { retention, ..TableSettings::default() };
    db.create_table_with("t", Schema::new(columns, &["id"]).unwrap(), settings).unwrap()
}

/// Sets the number of a row, which is inserted if it is missing.
fn put(db: &Database, table: &Table, id: i64, x: i64) -> Timestamp {
    let mut transaction = db.begin().unwrap();
    if !transaction.update(table, &[Value::from(id)], &[("x", Value::from(x))]).unwrap() {
        transaction.insert(table, &[Value::from(id), Value::from(x)]).unwrap();
    }
    transaction.commit().unwrap()
}

fn rows(batches: impl Iterator<Item = RecordBatch>) -> BTreeMap<i64, i64> {
    let pairs = batches.flat_map(|batch| {
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().values().to_vec();
        column(0).into_iter().zip(column(1)).collect::<Vec<_>>()
    });
    pairs.collect()
}

fn both() -> ScanOptions {
    ScanOptions { columns: vec![0, 1], ..ScanOptions::default() }
}

/// The table as of a snapshot, by scan, by key and by aggregate, which have to agree.
fn read_at(table: &Table, at: Snapshot) -> Result<BTreeMap<i64, i64>, Error> {
    let scanned = rows(table.scan(at, both())?.batches().map(Result::unwrap));
    for (id, x) in &scanned {
        let found = table.lookup(at, &[Value::from(*id)], &both())?;
        assert_eq!(rows(std::iter::once(found)), BTreeMap::from([(*id, *x)]));
    }
    let totals = table.aggregate(at, &[], &[1])?;
    let sum: i64 = scanned.values().sum();
    assert_eq!((totals.rows, &totals.columns[0].sum), (scanned.len() as u64, &Sum::Integer(sum.into())));
    Ok(scanned)
}

fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

/// Waits until the database's clock knows of a commit.
fn wait_for_tick(db: &Database, commit: Timestamp) {
    while db.newest_commit_at(now_micros()) < Some(commit) {
        std::thread::yield_now();
    }
}

#[test]
fn a_held_snapshot_stays_readable_whatever_is_given_up() {
    for retention in [Retention::None, Retention::For(Duration::ZERO)] {
        let db = Database::in_memory_with(&small_ranges());
        let table = table(&db, retention);
        (0..50).for_each(|id| {
            put(&db, &table, id, id);
        });
        let view = db.read_view().unwrap();
        let transaction = db.begin().unwrap();
        let expected: BTreeMap<i64, i64> = (0..50).map(|id| (id, id)).collect();
        for round in 1..10 {
            let last = (0..50).map(|id| put(&db, &table, id, id + 1_000 * round)).max();
            wait_for_tick(&db, last.unwrap());
            db.reclaim_now();
            assert_eq!(read_at(&table, view.snapshot()).unwrap(), expected, "{retention:?} round {round}");
            assert_eq!(rows(transaction.scan(&table, &["id", "x"]).unwrap().batches().map(Result::unwrap)), expected);
            let row = transaction.get(&table, &[Value::from(7i64)]).unwrap();
            assert_eq!(row, Some(vec![Value::from(7i64), Value::from(7i64)]));
        }
        let held = view.at();
        drop((view, transaction));
        db.reclaim_now();
        let again = read_at(&table, Snapshot::at(held));
        assert!(matches!(again, Err(Error::SnapshotTooOld { .. })), "nobody holds it any more: {again:?}");
        assert!(matches!(table.changes(held, db.snapshot().at), Err(Error::SnapshotTooOld { .. })));
        let now = read_at(&table, db.snapshot()).unwrap();
        assert_eq!(now, (0..50).map(|id| (id, id + 9_000)).collect());
    }
}

#[test]
fn what_a_longer_retention_promises_holds_for_snapshots_held_before() {
    let db = Database::in_memory_with(&small_ranges());
    let table = table(&db, Retention::For(Duration::ZERO));
    put(&db, &table, 1, 1);
    let view = db.read_view().unwrap();
    let mut last = put(&db, &table, 1, 2);
    for id in 2..40 {
        last = put(&db, &table, id, id);
    }
    wait_for_tick(&db, last);
    db.reclaim_now();
    db.set_retention("t", Retention::Forever).unwrap();
    put(&db, &table, 1, 3);
    db.reclaim_now();
    assert_eq!(read_at(&table, view.snapshot()).unwrap(), BTreeMap::from([(1, 1)]));
}

#[test]
fn a_longer_retention_does_not_bring_back_what_was_given_up() {
    for longer in [Retention::For(Duration::from_secs(3_600)), Retention::Forever] {
        let db = Database::in_memory_with(&small_ranges());
        let table = table(&db, Retention::None);
        let first = put(&db, &table, 1, 1);
        put(&db, &table, 1, 2);
        db.reclaim_now();
        db.set_retention("t", longer).unwrap();
        let kept = put(&db, &table, 1, 3);
        put(&db, &table, 1, 4);
        db.reclaim_now();
        let refused = read_at(&table, Snapshot::at(first));
        assert!(matches!(refused, Err(Error::SnapshotTooOld { .. })), "{longer:?}: {refused:?}");
        assert_eq!(read_at(&table, Snapshot::at(kept)).unwrap(), BTreeMap::from([(1, 3)]));
    }
}

/// Either all changes since a commit are told, or it is refused. Each commit sets the number to its distance from `first`.
fn check_changes_of_one_writer(db: &Database, table: &Table, first: Timestamp) {
    let from = db.snapshot().at;
    std::thread::yield_now();
    match table.changes(from, Timestamp::MAX) {
        Ok(changes) => {
            let row = |at: Timestamp| Some(vec![Value::from(1i64), Value::from((at.0 - first.0) as i64)]);
            for (change, at) in changes.into_iter().zip(from.0 + 1..) {
                let at = Timestamp(at);
                assert_eq!((change.at, change.old, change.new), (at, row(Timestamp(at.0 - 1)), row(at)));
            }
        }
        Err(error) => assert!(matches!(error, Error::SnapshotTooOld { .. }), "{error}"),
    }
}

#[test]
fn the_versions_of_a_row_are_right_while_others_are_given_up() {
    let db = Database::in_memory_with(&small_ranges());
    let table = table(&db, Retention::None);
    let first = put(&db, &table, 1, 0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for x in 1..4_000 {
                assert_eq!(put(&db, &table, 1, x).0, first.0 + x as u64, "one writer, one commit for each number");
            }
            done.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                db.reclaim_now();
            }
        });
        while !done.load(Ordering::Relaxed) {
            let versions = table.record_history(&[Value::from(1i64)]).unwrap();
            assert!(!versions.is_empty());
            for version in &versions {
                let x = (version.from.0 - first.0) as i64;
                assert_eq!(version.row, Some(vec![Value::from(1i64), Value::from(x)]), "at {:?}", version.from);
            }
            let next: Vec<_> = versions.iter().skip(1).map(|version| Some(version.from)).collect();
            let ends: Vec<_> = versions.iter().map(|version| version.to).collect();
            assert_eq!((&ends[..ends.len() - 1], ends.last()), (&next[..], Some(&None)));
            check_changes_of_one_writer(&db, &table, first);
        }
    });
}
