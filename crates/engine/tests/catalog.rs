//! Changing the catalog within transactions: what each transaction sees and when, which waits for which, and what
//! is taken back.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::{
    Column, DataType, Database, Error, Isolation, Retention, Schema, Table, Transaction, TransactionOptions, Value,
};

const ALL: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];

fn schema() -> Schema {
    Schema::new(vec![Column::new("id", DataType::BigInt), Column::new("n", DataType::BigInt)], &["id"]).unwrap()
}

fn begin(db: &Database, isolation: Isolation) -> Transaction {
    db.begin_with(TransactionOptions::at(isolation)).unwrap()
}

fn insert(transaction: &mut Transaction, table: &Table, id: i64) -> Result<(), Error> {
    transaction.insert(table, &[Value::from(id), Value::from(0i64)]).map(drop)
}

fn count(transaction: &Transaction, table: &Table) -> u64 {
    table.aggregate(&transaction.view().unwrap(), &[], &[]).unwrap().rows
}

fn has(transaction: &Transaction, table: &Table, id: i64) -> bool {
    transaction.get(table, &[Value::from(id)]).unwrap().is_some()
}

/// A database with a table `t` that has the row 1.
fn filled() -> (Database, Table) {
    let db = Database::in_memory();
    let table = db.create_table("t", schema()).unwrap();
    let mut transaction = db.begin().unwrap();
    insert(&mut transaction, &table, 1).unwrap();
    transaction.commit().unwrap();
    (db, table)
}

fn commit(transaction: Transaction) {
    transaction.commit().unwrap();
}

fn is_no_table<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::NoSuchTable(_)))
}

/// Runs `other` while this thread does `meanwhile`, and makes sure that `other` was not done before.
fn waits<T: Send>(other: impl FnOnce() -> T + Send, meanwhile: impl FnOnce()) -> T {
    let is_released = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let done = other();
            assert!(is_released.load(Ordering::SeqCst), "it waits");
            done
        });
        thread::sleep(Duration::from_millis(30));
        is_released.store(true, Ordering::SeqCst);
        meanwhile();
        waiting.join().unwrap()
    })
}

#[test]
fn a_change_of_the_catalog_is_seen_by_its_transaction_at_once_and_by_others_at_its_commit() {
    for level in ALL {
        for commits in [true, false] {
            let (db, _) = filled();
            db.create_table("old", schema()).unwrap();
            let mut transaction = begin(&db, level);
            let made = transaction.create_table("made", schema()).unwrap();
            insert(&mut transaction, &made, 7).unwrap();
            transaction.truncate_table("t").unwrap();
            transaction.drop_table("old").unwrap();
            transaction.set_retention("t", Retention::None).unwrap();
            assert_eq!(transaction.table_names(), ["made", "t"]);
            let emptied = transaction.table("t").unwrap();
            assert_eq!((count(&transaction, &made), count(&transaction, &emptied)), (1, 0));
            assert_eq!(transaction.settings(&emptied).retention, Retention::None);
            assert!(is_no_table(transaction.table("old")) && is_no_table(transaction.drop_table("old")));
            let other = begin(&db, level);
            assert_eq!((db.table_names(), other.table_names()), (vec!["old".into(), "t".into()], db.table_names()));
            assert!(is_no_table(db.table("made")) && has(&other, &db.table("t").unwrap(), 1));
            assert_eq!(db.table("t").unwrap().settings().retention, Retention::Forever);
            let (names, rows) = match commits {
                true => {
                    transaction.commit().unwrap();
                    (vec!["made", "t"], 0)
                }
                false => {
                    transaction.rollback();
                    (vec!["old", "t"], 1)
                }
            };
            let after = begin(&db, level);
            assert_eq!(
                (db.table_names(), after.table_names()),
                (names.iter().map(|n| n.to_string()).collect(), db.table_names())
            );
            let t = after.table("t").unwrap();
            assert_eq!(count(&after, &t), rows);
            assert_eq!(t.settings().retention == Retention::None, commits);
            assert_eq!(is_no_table(begin(&db, level).insert(&made, &[Value::from(8i64), Value::Null])), !commits);
        }
    }
}

#[test]
fn a_savepoint_takes_changes_of_the_catalog_back() {
    for level in ALL {
        let (db, table) = filled();
        let mut transaction = begin(&db, level);
        let first = transaction.create_table("first", schema()).unwrap();
        insert(&mut transaction, &first, 1).unwrap();
        let savepoint = transaction.savepoint();
        for _ in 0..2 {
            transaction.drop_table("first").unwrap();
            transaction.truncate_table("t").unwrap();
            transaction.rename_table("t", "u").unwrap();
            let again = transaction.create_table("t", schema()).unwrap();
            insert(&mut transaction, &again, 9).unwrap();
            transaction.set_retention("u", Retention::None).unwrap();
            assert_eq!(transaction.table_names(), ["t", "u"]);
            transaction.rollback_to(savepoint).unwrap();
            assert_eq!(transaction.table_names(), ["first", "t"]);
            let t = transaction.table("t").unwrap();
            assert!(has(&transaction, &t, 1) && has(&transaction, &first, 1));
            assert_eq!(transaction.settings(&t).retention, Retention::Forever);
            assert!(is_no_table(insert(&mut transaction, &again, 10)), "what was taken back takes no rows");
        }
        let made = transaction.create_table("made", schema()).unwrap();
        insert(&mut transaction, &made, 1).unwrap();
        transaction.rollback_to(savepoint).unwrap();
        assert!(is_no_table(insert(&mut transaction, &made, 2)), "also where it was written to last");
        // No writer is kept out any more.
        let mut other = begin(&db, Isolation::ReadCommitted);
        other.set_lock_timeout(Some(Duration::ZERO));
        insert(&mut other, &table, 2).unwrap();
        other.create_table("u", schema()).unwrap();
        assert!(matches!(other.create_table("first", schema()), Err(Error::LockTimeout)));
        other.commit().unwrap();
        insert(&mut transaction, &table, 3).unwrap();
        transaction.commit().unwrap();
        assert_eq!(db.table_names(), ["first", "t", "u"]);
        assert_eq!(count(&db.begin().unwrap(), &table), 3);
    }
}

#[test]
fn of_two_who_make_a_table_of_one_name_the_second_waits_and_then_fails_or_goes_on() {
    for level in ALL {
        for commits in [true, false] {
            let db = Database::in_memory();
            let (mut first, mut second) = (begin(&db, level), begin(&db, level));
            first.create_table("t", schema()).unwrap();
            let made = waits(
                || {
                    let made = second.create_table("t", schema()).map(drop);
                    assert!(second.table_names() == ["t"] || commits);
                    second.create_table("mine", schema()).unwrap();
                    second.commit().unwrap();
                    made
                },
                || if commits { commit(first) } else { first.rollback() },
            );
            assert_eq!(matches!(made, Err(Error::TableExists(_))), commits, "{made:?}");
            assert_eq!(made.is_ok(), !commits);
            assert_eq!(db.table_names(), ["mine", "t"]);
        }
    }
}

#[test]
fn who_drops_a_table_waits_for_those_who_write_to_it_and_not_for_those_who_read_it() {
    for level in ALL {
        let (db, table) = filled();
        let reader = begin(&db, level);
        assert!(has(&reader, &table, 1));
        let scan = reader.scan(&table, &["id"]).unwrap();
        let mut writer = begin(&db, level);
        insert(&mut writer, &table, 2).unwrap();
        let mut dropper = begin(&db, level);
        waits(|| dropper.drop_table("t").unwrap(), || commit(writer));
        dropper.commit().unwrap();
        assert_eq!(scan.batches().map(Result::unwrap).map(|batch| batch.num_rows()).sum::<usize>(), 1);
        assert!(has(&reader, &table, 1), "a reader that sees it goes on reading it");
        assert_eq!(reader.table("t").is_ok(), level != Isolation::ReadCommitted);
        assert!(db.table_names().is_empty());
    }
}

#[test]
fn locks_of_rows_keep_a_table_there_as_writes_do() {
    let (db, table) = filled();
    let mut locker = begin(&db, Isolation::ReadCommitted);
    locker.get_for_update(&table, &[Value::from(1i64)]).unwrap();
    let mut dropper = begin(&db, Isolation::ReadCommitted);
    dropper.set_lock_timeout(Some(Duration::from_millis(5)));
    assert!(matches!(dropper.truncate_table("t"), Err(Error::LockTimeout)));
    // The failed statement leaves no lock behind.
    let mut writer = begin(&db, Isolation::ReadCommitted);
    writer.set_lock_timeout(Some(Duration::ZERO));
    insert(&mut writer, &table, 2).unwrap();
    writer.rollback();
    locker.rollback();
    dropper.truncate_table("t").unwrap();
}

#[test]
fn who_writes_waits_for_who_has_the_table_for_itself() {
    for level in ALL {
        for commits in [true, false] {
            let (db, table) = filled();
            let (mut dropper, mut writer) = (begin(&db, Isolation::ReadCommitted), begin(&db, level));
            dropper.drop_table("t").unwrap();
            let written = waits(
                || insert(&mut writer, &table, 2).and_then(|()| writer.commit()),
                || if commits { commit(dropper) } else { dropper.rollback() },
            );
            match (commits, level) {
                (false, _) => assert!(written.is_ok()),
                (true, Isolation::ReadCommitted) => assert!(is_no_table(written)),
                (true, _) => assert!(matches!(written, Err(Error::TableChanged(_))), "its snapshot has the table"),
            }
        }
    }
}

#[test]
fn a_writer_by_name_goes_on_in_the_table_that_replaced_the_one_it_waited_for() {
    let (db, _) = filled();
    let (mut emptier, mut writer) = (begin(&db, Isolation::ReadCommitted), begin(&db, Isolation::ReadCommitted));
    emptier.truncate_table("t").unwrap();
    let mut snapshot = begin(&db, Isolation::Snapshot);
    waits(
        || {
            let table = writer.table_to_write("t").unwrap();
            insert(&mut writer, &table, 5).unwrap();
            writer.commit().unwrap();
        },
        || commit(emptier),
    );
    let reader = db.begin().unwrap();
    let table = db.table("t").unwrap();
    assert_eq!((count(&reader, &table), has(&reader, &table, 5)), (1, true));
    assert!(matches!(snapshot.table_to_write("t"), Err(Error::TableChanged(_))));
    assert!(has(&snapshot, &snapshot.table("t").unwrap(), 1), "it reads on what it sees");
    assert!(is_no_table(snapshot.table_to_write("none")));
}

#[test]
fn a_writer_by_name_follows_the_name_and_not_the_table() {
    let (db, table) = filled();
    let (mut renamer, mut writer) = (begin(&db, Isolation::ReadCommitted), begin(&db, Isolation::ReadCommitted));
    renamer.rename_table("t", "former").unwrap();
    renamer.create_table("t", schema()).unwrap();
    let name = waits(|| writer.table_to_write("t").unwrap().name().to_owned(), || commit(renamer));
    assert_eq!((name.as_str(), table.name()), ("t", "former"));
}

/// The transaction that wants the table waits for the first writer, and the second writer for that transaction: in
/// no circle.
#[test]
fn who_comes_while_a_table_is_waited_for_is_not_waited_for() {
    for level in ALL {
        let (db, table) = filled();
        let [mut first, mut second] = [0; 2].map(|_| begin(&db, level));
        let mut dropper = begin(&db, Isolation::ReadCommitted);
        insert(&mut first, &table, 2).unwrap();
        thread::scope(|scope| {
            let dropping = scope.spawn(|| dropper.drop_table("t").and_then(|()| dropper.commit()));
            thread::sleep(Duration::from_millis(20));
            let writing = scope.spawn(|| insert(&mut second, &table, 3));
            thread::sleep(Duration::from_millis(20));
            commit(first);
            assert!(dropping.join().unwrap().is_ok());
            assert!(matches!(writing.join().unwrap(), Err(Error::NoSuchTable(_) | Error::TableChanged(_))));
        });
        assert!(db.table_names().is_empty());
    }
}

#[test]
fn a_snapshot_sees_the_tables_of_its_time() {
    for level in [Isolation::Snapshot, Isolation::Serializable] {
        let (db, old) = filled();
        db.create_table("other", schema()).unwrap();
        let mut transaction = begin(&db, level);
        db.truncate_table("t").unwrap();
        let late = db.create_table("late", schema()).unwrap();
        db.rename_table("other", "another").unwrap();
        assert_eq!(transaction.table_names(), ["other", "t"]);
        assert!(is_no_table(transaction.table("late")) && is_no_table(transaction.table("another")));
        assert!(has(&transaction, &transaction.table("t").unwrap(), 1), "it is not empty for this snapshot");
        assert_eq!(transaction.table("other").unwrap().name(), "another");
        assert_eq!(count(&transaction, &late), 0, "by its handle, it is empty");
        // A table that others have changed since the snapshot is not changed on top of that.
        assert!(matches!(transaction.drop_table("t"), Err(Error::TableChanged(_))));
        assert!(matches!(transaction.create_table("late", schema()), Err(Error::TableExists(_))));
        assert!(matches!(transaction.create_table("other", schema()), Err(Error::TableChanged(_))));
        assert!(is_no_table(transaction.drop_table("late")));
        assert!(matches!(insert(&mut transaction, &old, 2), Err(Error::TableChanged(_))));
        assert!(is_no_table(insert(&mut db.begin().unwrap(), &old, 2)), "for later ones it is just gone");
        assert_eq!(begin(&db, Isolation::ReadCommitted).table_names(), ["another", "late", "t"]);
    }
}

#[test]
fn waits_for_tables_end_by_deadlocks_timeouts_and_interrupts() {
    let (db, table) = filled();
    db.create_table("u", schema()).unwrap();
    // Each writes to what the other wants for itself.
    let [mut first, mut second] = [0; 2].map(|_| begin(&db, Isolation::ReadCommitted));
    insert(&mut first, &table, 10).unwrap();
    insert(&mut second, &db.table("u").unwrap(), 10).unwrap();
    let ended = thread::scope(|scope| {
        let other = scope.spawn(move || {
            let dropped = second.drop_table("t");
            if dropped.is_ok() {
                commit(second)
            } else {
                second.rollback()
            }
            dropped
        });
        let dropped = first.drop_table("u");
        if dropped.is_ok() {
            commit(first)
        } else {
            first.rollback()
        }
        [dropped, other.join().unwrap()]
    });
    assert_eq!(ended.iter().filter(|ended| matches!(ended, Err(Error::Deadlock))).count(), 1, "{ended:?}");
    assert_eq!((ended.iter().filter(|ended| ended.is_ok()).count(), db.table_names().len()), (1, 1));

    let (db, table) = filled();
    let mut writer = begin(&db, Isolation::Snapshot);
    insert(&mut writer, &table, 2).unwrap();
    let mut waiter = begin(&db, Isolation::ReadCommitted);
    waiter.set_lock_timeout(Some(Duration::from_millis(5)));
    assert!(matches!(waiter.drop_table("t"), Err(Error::LockTimeout)));
    waiter.set_lock_timeout(None);
    let interrupter = waiter.interrupter();
    let interrupted = waits(|| waiter.rename_table("t", "v").unwrap_err(), || interrupter.interrupt());
    assert!(matches!(interrupted, Error::Interrupted));
    writer.commit().unwrap();
    assert_eq!(count(&db.begin().unwrap(), &table), 2);
}

#[test]
fn a_wait_for_a_table_or_a_name_is_shown() {
    let (db, table) = filled();
    let mut writer = begin(&db, Isolation::ReadCommitted);
    insert(&mut writer, &table, 2).unwrap();
    writer.create_table("new", schema()).unwrap();
    for name in ["t", "new"] {
        let mut other = begin(&db, Isolation::ReadCommitted);
        let (id, interrupter) = (other.id(), other.interrupter());
        waits(
            || assert!(other.drop_table(name).is_err()),
            || {
                let its_wait = || db.running_transactions().into_iter().find(|running| running.id == id)?.waits;
                let wait = (0..2000).find_map(|_| {
                    thread::sleep(Duration::from_millis(5));
                    its_wait()
                });
                interrupter.interrupt();
                let wait = wait.unwrap();
                assert_eq!((wait.owner, wait.table.as_deref(), wait.is_table), (writer.id(), Some(name), true));
            },
        );
    }
}

#[test]
fn a_renamed_table_keeps_its_rows_and_its_old_name_is_free() {
    for directory in [None, Some(tempfile::tempdir().unwrap())] {
        let open = || directory.as_ref().map_or_else(Database::in_memory, |at| Database::open(at.path()).unwrap());
        let db = open();
        let table = db.create_table("a", schema()).unwrap();
        let mut transaction = begin(&db, Isolation::Snapshot);
        insert(&mut transaction, &table, 1).unwrap();
        // Two names changed over in one transaction.
        transaction.create_table("b", schema()).unwrap();
        transaction.rename_table("a", "c").unwrap();
        transaction.rename_table("b", "a").unwrap();
        transaction.rename_table("c", "b").unwrap();
        assert!(matches!(transaction.rename_table("a", "b"), Err(Error::TableExists(_))));
        assert!(matches!(transaction.rename_table("a", "a"), Err(Error::TableExists(_))));
        assert!(is_no_table(transaction.rename_table("c", "d")));
        insert(&mut transaction, &table, 2).unwrap();
        transaction.commit().unwrap();
        assert_eq!((table.name(), db.table_names()), ("b", vec!["a".into(), "b".into()]));
        let db = if directory.is_some() {
            drop((table, db));
            open()
        } else {
            db
        };
        let reader = db.begin().unwrap();
        let counts = ["a", "b"].map(|name| count(&reader, &reader.table(name).unwrap()));
        assert_eq!((counts, db.table_names().len()), ([0, 2], 2));
    }
}

#[test]
fn a_serializable_transaction_does_not_commit_after_what_it_read_was_taken_away() {
    type Change = fn(&Database) -> Result<(), Error>;
    let changes: [(Change, bool); 5] = [
        (|db| db.truncate_table("t"), false),
        (|db| db.drop_table("t"), false),
        (|db| db.rename_table("t", "u"), false),
        (|db| db.create_table("none", schema()).map(drop), false),
        (|db| db.set_retention("t", Retention::None), true),
    ];
    for (change, is_harmless) in changes {
        let (db, _) = filled();
        let other = db.create_table("other", schema()).unwrap();
        let mut transaction = begin(&db, Isolation::Serializable);
        let table = transaction.table("t").unwrap();
        assert!(has(&transaction, &table, 1) && transaction.table("none").is_err());
        insert(&mut transaction, &other, 1).unwrap();
        change(&db).unwrap();
        let committed = transaction.commit();
        assert_eq!(committed.is_ok(), is_harmless);
        assert!(is_harmless || matches!(committed, Err(Error::ReadChanged)));
    }
    // By a handle, without the name.
    let (db, table) = filled();
    let mut transaction = begin(&db, Isolation::Serializable);
    assert!(has(&transaction, &table, 1));
    transaction.create_table("other", schema()).unwrap();
    db.truncate_table("t").unwrap();
    assert!(matches!(transaction.commit(), Err(Error::ReadChanged)));
    assert_eq!(db.table_names(), ["t"]);
}

#[test]
fn a_transaction_may_change_a_table_again_and_again() {
    let (db, table) = filled();
    let mut transaction = begin(&db, Isolation::Snapshot);
    insert(&mut transaction, &table, 2).unwrap();
    transaction.set_retention("t", Retention::None).unwrap();
    for id in 10..14 {
        transaction.truncate_table("t").unwrap();
        assert_eq!(transaction.settings(&transaction.table("t").unwrap()).retention, Retention::None);
        assert!(is_no_table(insert(&mut transaction, &table, id)), "the handle is of the table before");
        let emptied = transaction.table_to_write("t").unwrap();
        insert(&mut transaction, &emptied, id).unwrap();
        assert_eq!(count(&transaction, &emptied), 1);
    }
    transaction.drop_table("t").unwrap();
    let made = transaction.create_table("t", schema()).unwrap();
    insert(&mut transaction, &made, 20).unwrap();
    transaction.lock_table("t").unwrap();
    transaction.commit().unwrap();
    let reader = db.begin().unwrap();
    assert_eq!((count(&reader, &db.table("t").unwrap()), has(&reader, &made, 20)), (1, true));
}

#[test]
fn a_locked_table_takes_no_writes_of_others_until_the_end() {
    for level in ALL {
        let (db, table) = filled();
        let (mut owner, mut writer) = (begin(&db, level), begin(&db, level));
        owner.lock_table("t").unwrap();
        insert(&mut owner, &table, 2).unwrap();
        waits(|| insert(&mut writer, &table, 3).unwrap(), || commit(owner));
        writer.commit().unwrap();
        assert_eq!(count(&db.begin().unwrap(), &table), 3);
    }
}

#[test]
fn what_only_reads_changes_no_catalog() {
    let (db, _) = filled();
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    let mut transaction = db.begin_with(options).unwrap();
    let refused = [
        transaction.create_table("u", schema()).map(drop),
        transaction.drop_table("t"),
        transaction.truncate_table("t"),
        transaction.rename_table("t", "u"),
        transaction.set_retention("t", Retention::None),
        transaction.lock_table("t"),
        transaction.table_to_write("t").map(drop),
    ];
    assert!(refused.iter().all(|refused| matches!(refused, Err(Error::ReadOnlyTransaction))));
    assert!(transaction.table("t").is_ok());
}

#[test]
fn a_transaction_outlives_the_handles_of_its_database() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open(directory.path()).unwrap();
    let mut transaction = db.begin().unwrap();
    drop(db);
    let made = transaction.create_table("t", schema()).unwrap();
    insert(&mut transaction, &made, 1).unwrap();
    assert!(!transaction.is_of(&Database::in_memory()) && has(&transaction, &made, 1));
    transaction.commit().unwrap();
    drop(made);
    assert_eq!(Database::open(directory.path()).unwrap().table_names(), ["t"]);
}
