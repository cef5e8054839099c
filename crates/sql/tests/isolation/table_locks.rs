//! `LOCK TABLE` beside other sessions: which statements wait, when they go on, and circles.
use std::thread;

use engine::Database;
use sql::Session;

use crate::sessions::{done, run, session, until_waiting};

fn open() -> Database {
    let db = Database::in_memory();
    let mut session = session(&db);
    done(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    done(&mut session, "INSERT INTO t VALUES (1, 1)");
    db
}

fn sqlstate(session: &mut Session, statement: &str) -> &'static str {
    run(session, statement).err().map_or("", |error| error.sqlstate)
}

/// A session in a block in which it has done this.
fn after(db: &Database, statements: &[&str]) -> Session {
    let mut session = session(db);
    done(&mut session, "BEGIN");
    statements.iter().for_each(|statement| drop(done(&mut session, statement)));
    session
}

/// Every statement that writes waits for a lock that keeps it off, and goes on when the lock is given free.
#[test]
fn writers_wait_for_a_lock_and_go_on_after_it() {
    for mode in ["SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"] {
        for (statement, expected) in [
            ("INSERT INTO t VALUES (2, 2)", "INSERT 0 1"),
            ("UPDATE t SET n = n + 1", "UPDATE 1"),
            ("UPDATE t SET n = 5 WHERE id = 1", "UPDATE 1"),
            ("DELETE FROM t", "DELETE 1"),
            ("TRUNCATE t", "TRUNCATE TABLE"),
            ("ALTER TABLE t ADD COLUMN m INT", "ALTER TABLE"),
            ("DROP TABLE t", "DROP TABLE"),
        ] {
            let db = open();
            let mut first = after(&db, &[&format!("LOCK TABLE t IN {mode} MODE")]);
            let answer = thread::scope(|scope| {
                let waiting = scope.spawn(|| run(&mut session(&db), statement));
                until_waiting(&db, 1);
                assert_eq!(done(&mut session(&db), "SELECT n FROM t"), "1", "readers take no part");
                done(&mut first, "COMMIT");
                waiting.join().unwrap()
            });
            assert_eq!(answer.unwrap(), expected, "{statement} after {mode}");
        }
    }
}

/// A lock waits for those that write, for whatever reason they have ended, and keeps off new ones meanwhile.
#[test]
fn a_lock_waits_for_writers_and_keeps_new_ones_off() {
    for end in ["COMMIT", "ROLLBACK"] {
        let db = open();
        let mut writer = after(&db, &["UPDATE t SET n = n + 1"]);
        thread::scope(|scope| {
            let locking = scope.spawn(|| {
                let mut locker = after(&db, &["LOCK TABLE t IN SHARE MODE"]);
                let seen = done(&mut locker, "SELECT n FROM t");
                done(&mut locker, "COMMIT");
                seen
            });
            until_waiting(&db, 1);
            let late = scope.spawn(|| done(&mut session(&db), "INSERT INTO t VALUES (2, 2)"));
            until_waiting(&db, 2);
            // It is inside, so that it does not wait for one that waits for it.
            done(&mut writer, "INSERT INTO t VALUES (3, 3)");
            done(&mut writer, "LOCK TABLE t IN ROW EXCLUSIVE MODE");
            done(&mut writer, "LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE");
            done(&mut writer, end);
            let expected = if end == "COMMIT" { "2,3" } else { "1" };
            assert_eq!((locking.join().unwrap().as_str(), late.join().unwrap().as_str()), (expected, "INSERT 0 1"));
        });
    }
}

/// Two that hold a lock beside each other and want to write wait in a circle, of which one fails.
#[test]
fn circles_of_locks_and_writers_are_found() {
    let (share, insert) = ("LOCK TABLE t IN SHARE MODE", "INSERT INTO t VALUES (2, 2)");
    let (access, lock) = ("LOCK TABLE t IN ACCESS SHARE MODE", "LOCK TABLE t");
    let cases = [
        ([share, share], "UPDATE t SET n = n + 1"),
        ([share, share], "LOCK TABLE t IN ROW EXCLUSIVE MODE"),
        ([share, share], "DROP TABLE t"),
        ([access, access], lock),
        ([insert, "INSERT INTO t VALUES (3, 3)"], share),
        ([insert, access], lock),
    ];
    for (held, wanted) in cases {
        let db = open();
        let (mut first, mut second) = (after(&db, &held[..1]), after(&db, &held[1..]));
        let states = thread::scope(|scope| {
            let other = scope.spawn(|| {
                let state = sqlstate(&mut first, wanted);
                done(&mut first, "ROLLBACK");
                state
            });
            until_waiting(&db, 1);
            let state = sqlstate(&mut second, wanted);
            done(&mut second, "ROLLBACK");
            [other.join().unwrap(), state]
        });
        let failed = states.iter().filter(|state| **state == "40P01").count();
        assert_eq!((failed, states.contains(&"")), (1, true), "{held:?}, then {wanted}: {states:?}");
        assert_eq!(sqlstate(&mut session(&db), "UPDATE t SET n = 0"), "", "all of it is free again");
    }
}

/// What has the table for itself is waited for, and the table that stands in its place then is the one that is locked.
#[test]
fn a_lock_is_of_the_table_that_there_is_then() {
    let db = open();
    let mut first = after(&db, &["TRUNCATE t", "INSERT INTO t VALUES (9, 9)"]);
    thread::scope(|scope| {
        let locking = scope.spawn(|| after(&db, &["LOCK TABLE t IN SHARE MODE"]));
        until_waiting(&db, 1);
        done(&mut first, "COMMIT");
        let mut locker = locking.join().unwrap();
        assert_eq!(done(&mut locker, "SELECT id FROM t"), "9");
        let mut late = session(&db);
        done(&mut late, "SET lock_timeout = 30");
        assert_eq!(sqlstate(&mut late, "INSERT INTO t VALUES (10, 10)"), "55P03");
        done(&mut locker, "COMMIT");
        assert_eq!(sqlstate(&mut late, "INSERT INTO t VALUES (10, 10)"), "");
    });
    let mut first = after(&db, &["DROP TABLE t"]);
    thread::scope(|scope| {
        let locking = scope.spawn(|| sqlstate(&mut after(&db, &[]), "LOCK TABLE t IN SHARE MODE"));
        until_waiting(&db, 1);
        done(&mut first, "COMMIT");
        assert_eq!(locking.join().unwrap(), "42P01");
    });
}

/// Many that count and then write, each with the table locked against the others: no count is missed.
#[test]
fn what_is_read_under_a_lock_stays_until_its_end() {
    let db = open();
    thread::scope(|scope| {
        for client in 0..4 {
            let db = &db;
            scope.spawn(move || {
                let mut session = session(db);
                for round in 0..25 {
                    let mode = ["SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"][(client + round) % 3];
                    done(&mut session, "BEGIN");
                    done(&mut session, &format!("LOCK TABLE t IN {mode} MODE"));
                    let next: i64 = done(&mut session, "SELECT max(id) + 1 FROM t").parse().unwrap();
                    done(&mut session, &format!("INSERT INTO t VALUES ({next}, {client})"));
                    done(&mut session, "COMMIT");
                }
            });
        }
    });
    assert_eq!(done(&mut session(&db), "SELECT count(*), max(id) FROM t"), "101 101");
}
