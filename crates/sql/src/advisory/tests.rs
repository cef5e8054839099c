//! Which session gets a lock, which waits, and what gives the lock free.
use std::thread;
use std::time::{Duration, Instant};

use engine::Database;

use super::TABLE;
use crate::{Outcome, Session, SessionOptions};

fn session(db: &Database) -> Session {
    Session::new(db, SessionOptions::default())
}

/// The first value of a query's answer, or the code of its error.
fn ask(session: &mut Session, query: &str) -> String {
    let first = |outcome: Outcome| match outcome {
        Outcome::Rows(mut rows) => {
            let batch = rows.next().transpose()?;
            let shown = batch.filter(|batch| batch.num_rows() > 0).map(|batch| {
                let options = arrow_cast::display::FormatOptions::default();
                let formatter = arrow_cast::display::ArrayFormatter::try_new(batch.column(0), &options);
                formatter.map_or_else(|error| error.to_string(), |formatter| formatter.value(0).to_string())
            });
            Ok(shown.unwrap_or_default())
        }
        Outcome::Done(command) => Ok(command.tag),
    };
    session.execute(query).and_then(first).unwrap_or_else(|error: crate::SqlError| error.sqlstate.to_owned())
}

/// Waits until so many wait for locks of a database.
fn until_waiting(db: &Database, count: usize) {
    let started = Instant::now();
    loop {
        let table = TABLE.lock();
        let locks = table.locks.iter().filter(|(key, _)| key.0 == db.address());
        if locks.map(|(_, lock)| lock.queue.len()).sum::<usize>() >= count {
            return;
        }
        drop(table);
        assert!(started.elapsed() < Duration::from_secs(60), "nobody waits");
        thread::yield_now();
    }
}

fn is_free(db: &Database) -> bool {
    !TABLE.lock().locks.keys().any(|key| key.0 == db.address())
}

#[test]
fn a_lock_of_a_session_is_given_free_as_often_as_it_was_taken() {
    let db = Database::in_memory();
    let (mut first, mut second) = (session(&db), session(&db));
    assert_eq!(ask(&mut first, "SELECT pg_advisory_lock(7)"), "");
    assert_eq!(ask(&mut first, "SELECT pg_advisory_lock(7)"), "");
    assert_eq!(ask(&mut second, "SELECT pg_try_advisory_lock(7)"), "false");
    assert_eq!(ask(&mut second, "SELECT pg_try_advisory_lock(0, 7)"), "true");
    assert_eq!(ask(&mut first, "SELECT pg_advisory_unlock(7)"), "true");
    assert_eq!(ask(&mut second, "SELECT pg_try_advisory_lock_shared(7)"), "false");
    assert_eq!(ask(&mut first, "SELECT pg_advisory_unlock(7)"), "true");
    assert_eq!(ask(&mut first, "SELECT pg_advisory_unlock(7)"), "false");
    assert_eq!(ask(&mut second, "SELECT pg_try_advisory_lock_shared(7)"), "true");
    assert_eq!(ask(&mut first, "SELECT pg_try_advisory_lock_shared(7)"), "true");
    assert_eq!(ask(&mut first, "SELECT pg_try_advisory_lock(7)"), "false");
    assert_eq!(ask(&mut second, "SELECT pg_advisory_unlock_all()"), "");
    assert_eq!(ask(&mut first, "SELECT pg_try_advisory_lock(7)"), "true");
    drop(first);
    assert!(is_free(&db));
}

#[test]
fn a_lock_of_a_transaction_goes_with_it_or_with_its_part() {
    let db = Database::in_memory();
    let (mut first, mut second) = (session(&db), session(&db));
    // Outside of a block the statement is the transaction.
    assert_eq!(ask(&mut first, "SELECT pg_advisory_xact_lock(1)"), "");
    assert_eq!(ask(&mut second, "SELECT pg_try_advisory_lock(1)"), "true");
    for end in ["COMMIT", "ROLLBACK"] {
        for statement in ["BEGIN", "SELECT pg_advisory_xact_lock(2)", "SAVEPOINT s", "SELECT pg_advisory_xact_lock(3)"]
        {
            ask(&mut first, statement);
        }
        assert_eq!(ask(&mut second, "SELECT pg_try_advisory_xact_lock(3)"), "false");
        ask(&mut first, "ROLLBACK TO s");
        assert_eq!(ask(&mut second, "SELECT pg_try_advisory_xact_lock(3)"), "true");
        assert_eq!(ask(&mut second, "SELECT pg_try_advisory_xact_lock(2)"), "false");
        ask(&mut first, end);
        assert_eq!(ask(&mut second, "SELECT pg_try_advisory_xact_lock(2)"), "true");
    }
    ask(&mut first, "BEGIN");
    ask(&mut first, "SELECT pg_advisory_xact_lock(4)");
    ask(&mut first, "SELECT pg_advisory_lock(5)");
    assert_eq!(ask(&mut first, "SELECT nothing"), "42703");
    assert_eq!(ask(&mut second, "SELECT pg_try_advisory_lock(4)"), "true");
    assert_eq!(ask(&mut second, "SELECT pg_try_advisory_lock(5)"), "false");
    drop((first, second));
    assert!(is_free(&db));
}

#[test]
fn who_waits_gets_the_lock_or_is_told_that_its_time_is_over() {
    let db = Database::in_memory();
    let (mut first, mut second) = (session(&db), session(&db));
    ask(&mut first, "SELECT pg_advisory_lock(1)");
    ask(&mut second, "SET lock_timeout = '20ms'");
    assert_eq!(ask(&mut second, "SELECT pg_advisory_lock(1)"), "55P03");
    ask(&mut second, "SET lock_timeout = 0");
    let handle = second.cancel_handle();
    thread::scope(|scope| {
        let waits = scope.spawn(|| ask(&mut second, "SELECT pg_advisory_lock(1)"));
        until_waiting(&db, 1);
        handle.cancel();
        assert_eq!(waits.join().unwrap(), "57014");
    });
    thread::scope(|scope| {
        let waits = scope.spawn(|| ask(&mut second, "SELECT pg_advisory_lock(1)"));
        until_waiting(&db, 1);
        ask(&mut first, "SELECT pg_advisory_unlock(1)");
        assert_eq!(waits.join().unwrap(), "");
    });
    assert_eq!(ask(&mut first, "SELECT pg_try_advisory_lock(1)"), "false");
}

#[test]
fn the_wait_that_closes_a_circle_fails() {
    let db = Database::in_memory();
    let (mut first, mut second) = (session(&db), session(&db));
    ask(&mut first, "SELECT pg_advisory_lock(1)");
    ask(&mut second, "SELECT pg_advisory_lock(2)");
    thread::scope(|scope| {
        let waits = scope.spawn(|| ask(&mut first, "SELECT pg_advisory_lock(2)"));
        until_waiting(&db, 1);
        assert_eq!(ask(&mut second, "SELECT pg_advisory_lock(1)"), "40P01");
        ask(&mut second, "SELECT pg_advisory_unlock_all()");
        assert_eq!(waits.join().unwrap(), "");
    });
}

#[test]
fn a_newcomer_waits_behind_those_that_it_conflicts_with() {
    let db = Database::in_memory();
    let [mut holder, mut writer, mut reader] = [session(&db), session(&db), session(&db)];
    ask(&mut holder, "SELECT pg_advisory_lock_shared(1)");
    thread::scope(|scope| {
        let waits = scope.spawn(|| ask(&mut writer, "SELECT pg_advisory_lock(1)"));
        until_waiting(&db, 1);
        assert_eq!(ask(&mut reader, "SELECT pg_try_advisory_lock_shared(1)"), "false");
        assert_eq!(ask(&mut holder, "SELECT pg_try_advisory_lock_shared(1)"), "true");
        ask(&mut holder, "SELECT pg_advisory_unlock_all()");
        assert_eq!(waits.join().unwrap(), "");
    });
}
