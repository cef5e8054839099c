//! Commits that are not waited for: they are told when they are on disk, and they come back in order or not at all.
use std::time::{Duration, Instant};

use engine::{
    Column, DataType, Database, Durability, Error, IndexDefinition, Isolation, Schema, Table, TransactionOptions, Value,
};

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

#[test]
fn a_key_that_one_commit_gave_up_and_took_again_belongs_to_its_last_holder_when_opened_again() {
    for has_checkpoint in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let db = Database::open(directory.path()).unwrap();
        let table = table(&db);
        db.create_index("t", IndexDefinition::new("t_n", &[1]).unique()).unwrap();
        let row = [Value::from(1i64), Value::from(10i64)];
        let mut transaction = db.begin().unwrap();
        for _ in 0..3 {
            transaction.insert(&table, &row).unwrap();
            assert!(transaction.delete(&table, &row[..1]).unwrap());
        }
        transaction.insert(&table, &row).unwrap();
        transaction.commit().unwrap();
        if has_checkpoint {
            db.checkpoint().unwrap();
        }
        drop((table, db));
        let db = Database::open(directory.path()).unwrap();
        let table = db.table("t").unwrap();
        let mut transaction = db.begin().unwrap();
        for (other, constraint) in [([1i64, 11], "t_pkey"), ([2, 10], "t_n")] {
            let refused = transaction.insert(&table, &other.map(Value::from)).unwrap_err();
            assert!(matches!(refused, Error::DuplicateKey { constraint: of, .. } if of == constraint));
        }
        assert!(transaction.update(&table, &row[..1], &[("n", Value::from(12i64))]).unwrap());
        transaction.commit().unwrap();
        assert_eq!(count(&db), 1);
    }
}
