//! Commits that are not waited for: they are told when they are on disk, and they come back in order or not at all.
use std::time::{Duration, Instant};

use engine::{Column, DataType, Database, Durability, Isolation, Schema, Table, TransactionOptions, Value};

fn table(db: &Database) -> Table {
    let columns = ["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
    db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap()
}

fn count(db: &Database) -> u64 {
    let table = db.table("t").unwrap();
    table.aggregate(&db.read_view().unwrap(), &[], &[]).unwrap().rows
}

#[test]
fn a_commit_that_is_not_waited_for_is_on_disk_soon() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open(directory.path()).unwrap();
    let table = table(&db);
    let options = TransactionOptions { durability: Durability::Async, ..TransactionOptions::default() };
    let mut last = None;
    for id in 0..100i64 {
        let mut transaction = db.begin_with(options).unwrap();
        transaction.insert(&table, &[Value::from(id), Value::from(id)]).unwrap();
        last = Some(transaction.commit().unwrap());
    }
    let (last, started) = (last.unwrap(), Instant::now());
    while !db.is_durable(last) {
        assert!(started.elapsed() < Duration::from_secs(20), "nobody flushes");
        std::thread::sleep(Duration::from_millis(1));
    }
    db.wait_durable(last).unwrap();
    drop((table, db));
    assert_eq!(count(&Database::open(directory.path()).unwrap()), 100);
}

/// Many threads, some of which wait and some do not, at all levels; those that fail validation leave a number without rows.
#[test]
fn commits_of_all_kinds_come_back_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open(directory.path()).unwrap();
    let table = table(&db);
    let levels = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                for i in 0..60i64 {
                    let durability = if i % 3 == 0 { Durability::Sync } else { Durability::Async };
                    let isolation = levels[(i + thread) as usize % 3];
                    let options = TransactionOptions { isolation, durability, ..TransactionOptions::default() };
                    db.run(options, |transaction| {
                        let rows = table.aggregate(&transaction.view()?, &[], &[])?.rows;
                        transaction.insert(table, &[Value::from(thread * 1000 + i), Value::from(rows as i64)]).map(drop)
                    })
                    .unwrap();
                }
            });
        }
    });
    drop((table, db));
    for _ in 0..2 {
        assert_eq!(count(&Database::open(directory.path()).unwrap()), 240);
    }
}
