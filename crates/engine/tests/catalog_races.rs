//! Writers, readers and transactions that empty a table, all at once.
//!
//! Each writer inserts a row into `t` and one into `ledger`. Now and then `t` is emptied, in one of several ways,
//! and the number of rows in `ledger` is noted in `mark` by the same transaction. So in every snapshot, whenever it
//! was taken, `t` has as many rows as `ledger` has beyond the mark: unless a row or a change of the catalog became
//! visible before the other, a writer was missed by the transaction that emptied the table, or a row went to a
//! table that was gone.
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::{Column, DataType, Database, Error, Isolation, Schema, Sum, Transaction, TransactionOptions, Value};

fn schema() -> Schema {
    Schema::new(vec![Column::new("id", DataType::BigInt), Column::new("n", DataType::BigInt)], &["id"]).unwrap()
}

fn database(db: Database) -> Database {
    let mut transaction = db.begin().unwrap();
    for name in ["t", "ledger", "mark"] {
        transaction.create_table(name, schema()).unwrap();
    }
    let mark = transaction.table("mark").unwrap();
    transaction.insert(&mark, &[Value::from(0i64), Value::from(0i64)]).unwrap();
    transaction.commit().unwrap();
    db
}

fn rows(transaction: &Transaction, name: &str) -> Result<i64, Error> {
    Ok(transaction.table(name)?.aggregate(&transaction.view()?, &[], &[])?.rows as i64)
}

/// Fails the test unless the snapshot of a transaction is consistent.
fn check(db: &Database) {
    let transaction = db.begin().unwrap();
    let marked = transaction.table("mark").unwrap().aggregate(&transaction.view().unwrap(), &[], &[1]).unwrap();
    let Sum::Integer(marked) = marked.columns[0].sum else { panic!("bigints have integer sums") };
    let [t, ledger] = ["t", "ledger"].map(|name| rows(&transaction, name).unwrap());
    assert_eq!(t, ledger - marked as i64, "of {ledger} rows {marked} are marked");
}

fn write(transaction: &mut Transaction, id: i64) -> Result<(), Error> {
    for name in ["t", "ledger"] {
        let table = transaction.table_to_write(name)?;
        transaction.insert(&table, &[Value::from(id), Value::Null])?;
    }
    Ok(())
}

fn empty(transaction: &mut Transaction, way: i64) -> Result<(), Error> {
    match way % 3 {
        0 => transaction.truncate_table("t")?,
        1 => {
            transaction.drop_table("t")?;
            transaction.create_table("t", schema())?;
        }
        _ => {
            let savepoint = transaction.savepoint();
            transaction.truncate_table("t")?;
            transaction.rollback_to(savepoint)?;
            transaction.rename_table("t", "former")?;
            transaction.create_table("t", schema())?;
            transaction.drop_table("former")?;
        }
    }
    let n = rows(transaction, "ledger")?;
    let mark = transaction.table_to_write("mark")?;
    transaction.update(&mark, &[Value::from(0i64)], &[("n", Value::from(n))]).map(drop)
}

/// Does work again and again until the time is up.
fn repeat(is_over: &AtomicBool, mut work: impl FnMut()) {
    while !is_over.load(Ordering::Relaxed) {
        work();
    }
}

fn race(db: &Database, time: Duration) -> [i64; 2] {
    let (is_over, next, emptied) = (AtomicBool::new(false), AtomicI64::new(0), AtomicI64::new(0));
    let levels = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
    thread::scope(|scope| {
        for level in levels {
            let (is_over, next) = (&is_over, &next);
            scope.spawn(move || {
                repeat(is_over, || {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    db.run(TransactionOptions::at(level), |transaction| write(transaction, id)).unwrap();
                });
            });
        }
        scope.spawn(|| repeat(&is_over, || check(db)));
        scope.spawn(|| {
            repeat(&is_over, || {
                thread::sleep(Duration::from_millis(1));
                let way = emptied.fetch_add(1, Ordering::Relaxed);
                // Its count has to include whatever was committed while it waited.
                let options = TransactionOptions::at(Isolation::ReadCommitted);
                db.run(options, |transaction| empty(transaction, way)).unwrap();
            });
        });
        let started = Instant::now();
        let has_enough = || [&next, &emptied].iter().all(|count| count.load(Ordering::Relaxed) >= 20);
        // A thread that has failed does no more; its failure is told at the end.
        while started.elapsed() < time || !has_enough() && started.elapsed() < 20 * time {
            thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    check(db);
    [next, emptied].map(AtomicI64::into_inner)
}

#[test]
fn every_snapshot_has_the_rows_and_the_tables_of_the_same_commits() {
    let [written, emptied] = race(&database(Database::in_memory()), Duration::from_millis(1500));
    println!("{written} rows written, the table emptied {emptied} times");
}

#[test]
fn so_does_what_is_recovered() {
    let directory = tempfile::tempdir().unwrap();
    let db = database(Database::open(directory.path()).unwrap());
    race(&db, Duration::from_millis(500));
    drop(db);
    let db = Database::open(directory.path()).unwrap();
    check(&db);
    assert_eq!(db.table_names(), ["ledger", "mark", "t"]);
}
