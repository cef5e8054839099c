//! `ON CONFLICT` beside others that put in, change and delete rows of the same keys: nothing is lost, and nothing comes twice.
use std::thread;

use engine::Database;
use sql::Session;

use crate::sessions::{done, run, session, until_waiting};

fn open() -> Database {
    let db = Database::in_memory();
    let mut session = session(&db);
    done(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, n INT, name TEXT UNIQUE)");
    done(&mut session, "INSERT INTO t VALUES (1, 10, 'one')");
    db
}

/// What a statement gives that waits for a transaction of one statement, which ends in this way.
fn after_waiting(other: &str, end: &str, statement: &str) -> (Result<String, &'static str>, String) {
    let db = open();
    let mut first = session(&db);
    done(&mut first, "BEGIN");
    done(&mut first, other);
    let answer = thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&mut session(&db), statement).map_err(|error| error.sqlstate));
        until_waiting(&db, 1);
        done(&mut first, end);
        waiting.join().unwrap()
    });
    (answer, done(&mut first, "SELECT id, n FROM t ORDER BY id"))
}

#[test]
fn a_key_that_others_take_or_give_up_is_waited_for() {
    let upsert = "INSERT INTO t VALUES (2, 5) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n RETURNING n";
    let nothing = "INSERT INTO t VALUES (2, 5) ON CONFLICT DO NOTHING";
    let first = "INSERT INTO t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n RETURNING n";
    let qualified = "INSERT INTO t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET n = 0 WHERE t.n < 50";
    for (other, end, statement, answer, rows) in [
        ("INSERT INTO t VALUES (2, 20)", "COMMIT", upsert, "25", "1 10,2 25"),
        ("INSERT INTO t VALUES (2, 20)", "ROLLBACK", upsert, "5", "1 10,2 5"),
        ("INSERT INTO t VALUES (2, 20)", "COMMIT", nothing, "INSERT 0 0", "1 10,2 20"),
        ("INSERT INTO t VALUES (2, 20)", "ROLLBACK", nothing, "INSERT 0 1", "1 10,2 5"),
        ("UPDATE t SET n = 100", "COMMIT", first, "105", "1 105"),
        ("UPDATE t SET n = 100", "ROLLBACK", first, "15", "1 15"),
        ("UPDATE t SET n = 100", "COMMIT", qualified, "INSERT 0 0", "1 100"),
        ("DELETE FROM t", "COMMIT", first, "5", "1 5"),
        ("DELETE FROM t", "ROLLBACK", first, "15", "1 15"),
        ("UPDATE t SET id = 3", "COMMIT", first, "5", "1 5,3 10"),
    ] {
        let (given, left) = after_waiting(other, end, statement);
        assert_eq!((given.as_deref(), left.as_str()), (Ok(answer), rows), "{statement} after {other}, {end}");
    }
}

#[test]
fn a_conflict_over_another_key_is_an_error() {
    let upsert = "INSERT INTO t VALUES (2, 5, 'two') ON CONFLICT (id) DO UPDATE SET n = 0";
    let (given, left) = after_waiting("INSERT INTO t VALUES (3, 30, 'two')", "COMMIT", upsert);
    assert_eq!((given, left.as_str()), (Err("23505"), "1 10,3 30"));
}

#[test]
fn a_row_that_two_keys_keep_out_goes_by_the_key_of_its_clause() {
    let upsert = "INSERT INTO t VALUES (2, 5, 'two') ON CONFLICT (name) DO UPDATE SET n = t.n + excluded.n RETURNING n";
    let nothing = "INSERT INTO t VALUES (2, 5, 'two') ON CONFLICT (name) DO NOTHING";
    for (statement, answer, rows) in [(upsert, "25", "1 10,2 25"), (nothing, "INSERT 0 0", "1 10,2 20")] {
        let (given, left) = after_waiting("INSERT INTO t VALUES (2, 20, 'two')", "COMMIT", statement);
        assert_eq!((given.as_deref(), left.as_str()), (Ok(answer), rows), "{statement}");
    }
    let (given, left) = after_waiting("INSERT INTO t VALUES (2, 20, 'other')", "COMMIT", upsert);
    assert_eq!((given, left.as_str()), (Err("23505"), "1 10,2 20"));
}

/// Four clients count up the same few keys, which others delete meanwhile, at each level.
#[test]
fn every_change_counts_once() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let db = open();
        done(&mut session(&db), "CREATE TABLE gone (n INT)");
        done(&mut session(&db), "DELETE FROM t");
        let db = &db;
        let count = |client: usize| {
            let mut session = session(db);
            done(&mut session, &format!("SET default_transaction_isolation = '{level}'"));
            let mut counted = 0;
            for round in 0..60 {
                let key = (client + round) % 3;
                let up = format!(
                    "INSERT INTO t VALUES ({key}, 1), ({}, 1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
                    key + 10
                );
                match run(&mut session, &up) {
                    Ok(tag) => {
                        assert_eq!(tag, "INSERT 0 2");
                        counted += 2;
                    }
                    Err(error) => assert!(["40001", "40P01"].contains(&error.sqlstate), "{error:?}"),
                }
                if round % 10 == client {
                    move_away(&mut session, key);
                }
            }
            counted
        };
        let counted: i64 = thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|client| {
                    let count = &count;
                    scope.spawn(move || count(client))
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        let mut session = session(db);
        let total = "SELECT (SELECT coalesce(sum(n), 0) FROM t) + (SELECT coalesce(sum(n), 0) FROM gone)";
        assert_eq!(done(&mut session, total), counted.to_string(), "{level}");
        assert!(counted > 100, "{level}: {counted} of 480 were counted");
    }
}

/// Deletes the row of a key, and keeps its count elsewhere.
fn move_away(session: &mut Session, key: usize) {
    done(session, "BEGIN ISOLATION LEVEL READ COMMITTED");
    let moved = run(session, &format!("DELETE FROM t WHERE id = {key} RETURNING n"));
    let kept = match moved.as_deref() {
        Ok("") => Ok(String::new()),
        Ok(n) => run(session, &format!("INSERT INTO gone VALUES ({n})")),
        Err(_) => moved,
    };
    done(session, if kept.is_ok() { "COMMIT" } else { "ROLLBACK" });
}
