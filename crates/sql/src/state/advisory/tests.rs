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

/// Waits until so many transactions of a database sleep for one another.
fn until_asleep(db: &Database, count: usize) {
    let started = Instant::now();
    while db.waits().len() < count {
        assert!(started.elapsed() < Duration::from_secs(60), "nobody waits");
        thread::yield_now();
    }
}

/// Sessions with rows of their own: `first` has row 1 and `second` row 2 in a block each.
fn with_rows(db: &Database) -> [Session; 2] {
    let [mut first, mut second] = [session(db), session(db)];
    ask(&mut first, "CREATE TABLE t (id int PRIMARY KEY, a int)");
    ask(&mut first, "INSERT INTO t VALUES (1, 0), (2, 0)");
    for (session, row) in [(&mut first, 1), (&mut second, 2)] {
        ask(session, "BEGIN");
        assert_eq!(ask(session, &format!("UPDATE t SET a = a + 1 WHERE id = {row}")), "UPDATE 1");
    }
    [first, second]
}

#[test]
fn a_circle_through_rows_ends_whichever_wait_closes_it() {
    for is_row_first in [true, false] {
        for lock in ["pg_advisory_lock", "pg_advisory_xact_lock", "pg_advisory_lock_shared"] {
            let db = Database::in_memory();
            let [mut first, mut second] = with_rows(&db);
            ask(&mut second, "SELECT pg_advisory_lock(1)");
            let row = || ask(&mut second, "UPDATE t SET a = 9 WHERE id = 1");
            let advisory = || ask(&mut first, &format!("SELECT {lock}(1)"));
            thread::scope(|scope| {
                let (row, advisory) = match is_row_first {
                    true => {
                        let row = scope.spawn(row);
                        until_asleep(&db, 1);
                        (row, scope.spawn(advisory))
                    }
                    false => {
                        let advisory = scope.spawn(advisory);
                        until_waiting(&db, 1);
                        (scope.spawn(row), advisory)
                    }
                };
                // Its block has failed, and lets the row go.
                assert_eq!(advisory.join().unwrap(), "40P01", "{lock}, {is_row_first}");
                assert_eq!(row.join().unwrap(), "UPDATE 1");
            });
        }
    }
}

#[test]
fn a_circle_of_three_goes_through_a_session_without_a_transaction() {
    let db = Database::in_memory();
    let [mut first, mut second] = with_rows(&db);
    let mut third = session(&db);
    ask(&mut third, "SELECT pg_advisory_lock(3)");
    ask(&mut second, "SELECT pg_advisory_lock(2)");
    thread::scope(|scope| {
        // third -> second -> first -> third
        let of_third = scope.spawn(|| ask(&mut third, "SELECT pg_advisory_lock(2)"));
        until_waiting(&db, 1);
        let of_second = scope.spawn(|| {
            let done = ask(&mut second, "UPDATE t SET a = 9 WHERE id = 1");
            ask(&mut second, "ROLLBACK");
            ask(&mut second, "SELECT pg_advisory_unlock_all()");
            done
        });
        until_asleep(&db, 1);
        let of_first = ask(&mut first, "SELECT pg_advisory_lock(3)");
        ask(&mut first, "ROLLBACK");
        let done = [of_first, of_second.join().unwrap()];
        let of_third = of_third.join().unwrap();
        let failed = [&done[0], &done[1], &of_third].into_iter().filter(|done| *done == "40P01").count();
        assert_eq!(failed, 1, "{done:?}, {of_third}");
    });
}

#[test]
fn who_waits_without_a_circle_is_left_alone() {
    let db = Database::in_memory();
    let [mut first, mut second] = with_rows(&db);
    let mut third = session(&db);
    ask(&mut first, "SELECT pg_advisory_lock(1)");
    thread::scope(|scope| {
        let row = scope.spawn(|| ask(&mut second, "UPDATE t SET a = 9 WHERE id = 1"));
        until_asleep(&db, 1);
        let lock = scope.spawn(|| ask(&mut third, "SELECT pg_advisory_lock(1)"));
        until_waiting(&db, 1);
        // Longer than until it looks for a second time.
        thread::sleep(super::UNTIL_SECOND_LOOK * 3);
        assert!(!row.is_finished() && !lock.is_finished());
        ask(&mut first, "SELECT pg_advisory_unlock(1)");
        assert_eq!(lock.join().unwrap(), "");
        ask(&mut first, "COMMIT");
        assert_eq!(row.join().unwrap(), "UPDATE 1");
    });
}

#[test]
fn numbers_that_are_waited_for_obey_limits_and_circles() {
    let db = Database::in_memory();
    let [mut first, mut second] = with_rows(&db);
    let mut third = session(&db);
    ask(&mut third, "CREATE SEQUENCE s");
    ask(&mut second, "ALTER SEQUENCE s INCREMENT 2");
    for (limit, state) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
        ask(&mut third, &format!("SET {limit} = '30ms'"));
        for call in ["SELECT nextval('s')", "SELECT setval('s', 7)"] {
            assert_eq!(ask(&mut third, call), state, "{call}");
        }
        ask(&mut third, &format!("SET {limit} = 0"));
    }
    let handle = third.cancel_handle();
    thread::scope(|scope| {
        let waits = scope.spawn(|| ask(&mut third, "SELECT nextval('s')"));
        // What is seen to wait may still be what the limit has ended.
        while !waits.is_finished() {
            handle.cancel();
            thread::yield_now();
        }
        assert_eq!(waits.join().unwrap(), "57014");
    });
    thread::scope(|scope| {
        let row = scope.spawn(|| ask(&mut second, "UPDATE t SET a = 9 WHERE id = 1"));
        until_asleep(&db, 1);
        assert_eq!(ask(&mut first, "SELECT nextval('s')"), "40P01");
        assert_eq!(row.join().unwrap(), "UPDATE 1");
    });
    // Through an advisory lock that outlives its transaction.
    ask(&mut first, "ROLLBACK");
    ask(&mut first, "SELECT pg_advisory_lock(1)");
    thread::scope(|scope| {
        let lock = scope.spawn(|| {
            let done = ask(&mut second, "SELECT pg_advisory_lock(1)");
            ask(&mut second, "COMMIT");
            done
        });
        until_waiting(&db, 1);
        let number = ask(&mut first, "SELECT nextval('s')");
        ask(&mut first, "SELECT pg_advisory_unlock_all()");
        // The one that was told has let go of what the other waited for.
        let done = [number, lock.join().unwrap()];
        assert_eq!(done.iter().filter(|done| *done == "40P01").count(), 1, "{done:?}");
    });
}
