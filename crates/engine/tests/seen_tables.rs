//! Tables that a caller finds again are those that their names mean.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::{Column, DataType, Database, Isolation, Schema, SeenTables, TransactionOptions, Value};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn schema() -> Schema {
    Schema::new(vec![Column::new("id", DataType::BigInt)], &["id"]).unwrap()
}

/// Exchanges the meanings of two names, so that either means a table at any time.
fn exchange(db: &Database, of: [&str; 2], round: i64) {
    let mut transaction = db.begin().unwrap();
    let spare = format!("spare{round}");
    transaction.rename_table(of[0], &spare).unwrap();
    transaction.rename_table(of[1], of[0]).unwrap();
    transaction.rename_table(&spare, of[1]).unwrap();
    match round % 3 {
        0 => transaction.rollback(),
        _ => drop(transaction.commit().unwrap()),
    }
}

#[test]
fn names_mean_what_they_mean_in_the_readers_snapshot_while_they_are_changed() {
    let db = Database::in_memory();
    NAMES.iter().for_each(|name| drop(db.create_table(name, schema()).unwrap()));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (mut seen, mut ids) = (SeenTables::default(), std::collections::BTreeSet::new());
                while !done.load(Ordering::Acquire) {
                    for name in NAMES {
                        let view = db.read_view().unwrap();
                        let again = db.table_seen_again(&mut seen, &view, name).unwrap().id();
                        assert_eq!(again, db.table_seen(&view, name).unwrap().id(), "{name} at {:?}", view.snapshot());
                        ids.insert((name, again));
                    }
                }
                assert!(ids.len() > NAMES.len(), "meanings have changed: {ids:?}");
            });
        }
        for round in 0..600 {
            exchange(&db, [NAMES[round as usize % 3], NAMES[(round as usize + 1) % 3]], round);
            if round % 16 == 0 {
                thread::yield_now();
            }
        }
        done.store(true, Ordering::Release);
    });
}

#[test]
fn a_writer_goes_on_with_the_table_that_has_the_name_once_it_has_waited() {
    let db = Database::in_memory();
    let (first, mut seen) = (db.create_table("t", schema()).unwrap(), SeenTables::default());
    let options = TransactionOptions::at(Isolation::ReadCommitted);
    let mut before = db.begin_with(options).unwrap();
    assert_eq!(before.seen_to_write(&mut seen, "t").unwrap().id(), first.id());
    before.commit().unwrap();
    let mut changing = db.begin().unwrap();
    changing.drop_table("t").unwrap();
    let second = changing.create_table("t", schema()).unwrap().id();
    thread::scope(|scope| {
        let (db, seen) = (&db, &mut seen);
        let writer = scope.spawn(move || {
            let mut transaction = db.begin_with(options).unwrap();
            let table = transaction.seen_to_write(seen, "t").unwrap();
            transaction.insert(table, &[Value::from(1i64)]).unwrap();
            transaction.commit().unwrap();
            table.id()
        });
        thread::sleep(std::time::Duration::from_millis(50));
        changing.commit().unwrap();
        assert_eq!(writer.join().unwrap(), second);
    });
    // A transaction that has seen the name before sees it as it was then.
    let mut old = db.begin_with(TransactionOptions::at(Isolation::Snapshot)).unwrap();
    db.drop_table("t").unwrap();
    db.create_table("t", schema()).unwrap();
    assert_eq!(old.table("t").unwrap().id(), second);
    assert!(old.seen_to_write(&mut seen, "t").is_err(), "its table is gone");
    assert_ne!(db.table_seen_again(&mut seen, &db.read_view().unwrap(), "t").unwrap().id(), second);
}

#[test]
fn a_table_that_was_dropped_is_let_go_with_the_next_lookup() {
    let (db, mut seen) = (Database::in_memory(), SeenTables::default());
    let ids: Vec<u32> = (0..40).map(|number| db.create_table(&format!("t{number}"), schema()).unwrap().id()).collect();
    let view = || db.read_view().unwrap();
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(db.table_seen_again(&mut seen, &view(), &format!("t{number}")).unwrap().id(), *id);
    }
    db.drop_table("t39").unwrap();
    assert!(db.table_seen_again(&mut seen, &view(), "t39").is_err());
    assert_eq!(db.table_seen_again(&mut seen, &view(), "t3").unwrap().id(), ids[3]);
}

#[test]
fn a_view_from_before_a_change_sees_the_table_that_had_the_name() {
    let (db, mut seen) = (Database::in_memory(), SeenTables::default());
    let first = db.create_table("t", schema()).unwrap().id();
    let before = db.read_view().unwrap();
    db.drop_table("t").unwrap();
    let second = db.create_table("t", schema()).unwrap().id();
    for _ in 0..2 {
        assert_eq!(db.table_seen_again(&mut seen, &db.read_view().unwrap(), "t").unwrap().id(), second);
        assert_eq!(db.table_seen_again(&mut seen, &before, "t").unwrap().id(), first);
    }
}
