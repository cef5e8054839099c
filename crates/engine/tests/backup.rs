//! Backups: a copy that is the database as of one commit, taken while others write.
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{
    Column, DataType, Database, Error, OpenOptions, Schema, Snapshot, Sum, Table, Timestamp, TransactionOptions, Value,
};

fn open(directory: &Path) -> Database {
    Database::open_with(directory, OpenOptions { range_records: Some(64), ..OpenOptions::default() }).unwrap()
}

fn fill(db: &Database, name: &str, rows: i64) -> Table {
    let columns = ["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
    let table = db.create_table(name, Schema::new(columns, &["id"]).unwrap()).unwrap();
    db.run(TransactionOptions::default(), |transaction| {
        (0..rows).try_for_each(|id| transaction.insert(&table, &[Value::from(id), Value::from(100i64)]).map(drop))
    })
    .unwrap();
    table
}

/// Rows, their sum, and the newest versions of all as one number, at a commit.
fn look(table: &Table, at: Timestamp) -> (u64, i128) {
    let totals = table.aggregate(Snapshot::at(at), &[], &[1]).unwrap();
    let Sum::Integer(sum) = totals.columns[0].sum else { return (totals.rows, 0) };
    (totals.rows, sum)
}

fn rows(table: &Table, at: Timestamp) -> Vec<Option<Vec<Value>>> {
    let row = |id: i64| {
        let versions = table.record_history(&[Value::from(id)]).unwrap();
        let seen = versions.into_iter().filter(|version| version.from <= at);
        seen.max_by_key(|version| version.from).and_then(|version| version.row)
    };
    (0..200).map(row).collect()
}

fn keep_moving(db: &Database, tables: &[Table; 2], mut random: u64, stop: &AtomicBool) {
    let mut pick = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    while !stop.load(Ordering::Acquire) {
        let moves = [(pick(2), pick(200), -1), (pick(2), pick(200), 1)];
        let moved: Result<(), Error> = db.run(TransactionOptions::default(), |transaction| {
            for (table, id, by) in moves {
                let (table, key) = (&tables[table as usize], [Value::from(id as i64)]);
                let Some(row) = transaction.get(table, &key)? else { continue };
                let Value::BigInt(n) = row[1] else { continue };
                transaction.update_columns(table, &key, &[(1, Value::from(n + by))])?;
            }
            Ok(())
        });
        moved.unwrap();
    }
}

#[test]
fn a_backup_under_load_is_the_database_as_of_one_commit() {
    let (source, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = open(source.path());
    let tables = ["a", "b"].map(|name| fill(&db, name, 200));
    let stop = AtomicBool::new(false);
    let reports: Vec<_> = std::thread::scope(|scope| {
        for seed in 1..3 {
            let (db, tables, stop) = (&db, &tables, &stop);
            scope.spawn(move || keep_moving(db, tables, seed, stop));
        }
        let back_up = |number: u32| db.backup(place.path().join(number.to_string())).unwrap();
        let reports = (0..3).map(back_up).collect();
        stop.store(true, Ordering::Release);
        reports
    });
    for (number, report) in reports.iter().enumerate() {
        let copy = place.path().join(number.to_string());
        let found = Database::verify(&copy, |_, _| ()).unwrap();
        assert_eq!((found.tables, found.rows, found.faults), (2, 400, vec![]));
        for _ in 0..2 {
            let backup = open(&copy);
            assert!(backup.snapshot().at >= report.until);
            for table in &tables {
                let copied = backup.table(table.name()).unwrap();
                assert_eq!(look(&copied, report.until), look(table, report.until));
                assert_eq!(rows(&copied, report.until), rows(table, report.until), "every row is that of this commit");
            }
            let sum: i128 = ["a", "b"].map(|name| look(&backup.table(name).unwrap(), report.until).1).iter().sum();
            assert_eq!(sum, 40_000);
            // It is a database of its own.
            let a = backup.table("a").unwrap();
            let key = [Value::from(1i64)];
            let n = backup.begin().unwrap().get(&a, &key).unwrap().unwrap().remove(1);
            backup.run(TransactionOptions::default(), |t| t.update_columns(&a, &key, &[(1, n.clone())])).unwrap();
            backup.checkpoint().unwrap();
        }
    }
    assert!(reports.iter().map(|report| report.commits).sum::<u64>() > 0, "some commits came from the log");
}

#[test]
fn a_backup_goes_to_an_empty_directory_only() {
    let (source, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = open(source.path());
    fill(&db, "t", 3);
    let into = db.backup(source.path());
    assert!(matches!(into, Err(Error::Directory { .. })), "{into:?}");
    std::fs::write(place.path().join("mine"), "precious").unwrap();
    assert!(db.backup(place.path()).is_err());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    assert!(matches!(Database::in_memory().backup(place.path().join("x")), Err(Error::NotOnDisk)));
    // An empty database has a backup as well.
    let empty = tempfile::tempdir().unwrap();
    let target = place.path().join("empty");
    open(empty.path()).backup(&target).unwrap();
    assert!(open(&target).table_names().is_empty());
}

#[test]
fn a_restored_backup_is_the_backup() {
    let (source, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = open(source.path());
    let table = fill(&db, "t", 30);
    let (backup, target) = (place.path().join("backup"), place.path().join("restored"));
    let until = db.backup(&backup).unwrap().until;
    assert!(Database::restore(source.path(), &target).is_err(), "it is open");
    Database::restore(&backup, &target).unwrap();
    assert!(Database::restore(&backup, &target).is_err(), "it is not empty");
    let restored = open(&target);
    assert_eq!(look(&restored.table("t").unwrap(), until), look(&table, until));
    assert!(Database::restore(place.path().join("nowhere"), place.path().join("x")).is_err());
}
