//! Views beside sessions that change what they read.
use std::thread;

use engine::Database;

use crate::sessions::{done, run, session, until_waiting};

fn open() -> Database {
    let db = Database::in_memory();
    let mut session = session(&db);
    done(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    done(&mut session, "INSERT INTO t VALUES (1, 10), (2, 20)");
    db
}

/// What a statement of another session comes to that waits until the first one has committed.
fn while_waiting(db: &Database, first: &[&str], waiting: &str) -> Result<String, &'static str> {
    let mut own = session(db);
    done(&mut own, "BEGIN");
    first.iter().for_each(|statement| drop(done(&mut own, statement)));
    thread::scope(|scope| {
        let other = scope.spawn(|| run(&mut session(db), waiting).map_err(|error| error.sqlstate));
        until_waiting(db, 1);
        done(&mut own, "COMMIT");
        other.join().unwrap()
    })
}

#[test]
fn a_view_that_is_made_meanwhile_keeps_its_table() {
    let made: &[&str] = &["CREATE VIEW v AS SELECT a FROM t"];
    for (statement, expected) in [
        ("DROP TABLE t", Err("2BP01")),
        ("DROP TABLE t CASCADE", Ok("DROP TABLE".to_owned())),
        ("ALTER TABLE t DROP COLUMN a", Err("2BP01")),
        ("ALTER TABLE t RENAME TO u", Ok("ALTER TABLE".to_owned())),
    ] {
        let db = open();
        assert_eq!(while_waiting(&db, made, statement), expected, "{statement}");
        let rows = run(&mut session(&db), "SELECT * FROM v").map_err(|error| error.sqlstate);
        assert_eq!(rows, if statement.ends_with("CASCADE") { Err("42P01") } else { Ok("10,20".to_owned()) });
    }
}

#[test]
fn a_row_that_is_changed_through_a_view_is_looked_at_again_once_others_have_changed_it() {
    let change = "UPDATE v SET a = a + 1 WHERE id = 1 RETURNING a";
    for (first, expected) in [
        ("UPDATE t SET a = 30 WHERE id = 1", Ok("31".to_owned())),
        ("UPDATE t SET a = 60 WHERE id = 1", Ok(String::new())),
        ("UPDATE t SET a = 49 WHERE id = 1", Err("44000")),
        ("DELETE FROM t WHERE id = 1", Ok(String::new())),
    ] {
        let db = open();
        done(&mut session(&db), "CREATE VIEW v AS SELECT id, a FROM t WHERE a < 50 WITH CHECK OPTION");
        assert_eq!(while_waiting(&db, &[first], change), expected, "{first}");
    }
}

#[test]
fn a_view_is_made_of_what_a_table_is_once_others_have_changed_it() {
    for (first, expected) in [
        ("DROP TABLE t", Err("42P01")),
        ("ALTER TABLE t DROP COLUMN a", Err("42703")),
        ("ALTER TABLE t ALTER COLUMN a TYPE TEXT", Ok("CREATE VIEW".to_owned())),
    ] {
        let db = open();
        assert_eq!(while_waiting(&db, &[first], "CREATE VIEW v AS SELECT a FROM t"), expected, "{first}");
        if expected.is_ok() {
            assert_eq!(done(&mut session(&db), "SELECT pg_typeof(a) FROM v LIMIT 1"), "text");
        }
    }
}

#[test]
fn a_snapshot_reads_the_view_of_its_time() {
    let db = open();
    let (mut reader, mut other) = (session(&db), session(&db));
    done(&mut other, "CREATE VIEW v AS SELECT a FROM t");
    done(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(done(&mut reader, "SELECT * FROM v"), "10,20");
    done(&mut other, "CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t");
    done(&mut other, "ALTER TABLE t RENAME TO u");
    assert_eq!(done(&mut reader, "SELECT * FROM v"), "10,20");
    assert_eq!(done(&mut other, "SELECT * FROM v"), "11,21");
    done(&mut other, "DROP VIEW v");
    assert_eq!(done(&mut reader, "SELECT * FROM v"), "10,20");
    done(&mut reader, "COMMIT");
    assert_eq!(run(&mut reader, "SELECT * FROM v").map_err(|error| error.sqlstate), Err("42P01"));
}

#[test]
fn a_table_is_not_dropped_under_a_view_that_is_newer_than_the_snapshot() {
    for (statement, expected) in [("DROP TABLE t", "2BP01"), ("DROP TABLE t CASCADE", "40001")] {
        let db = open();
        let (mut old, mut other) = (session(&db), session(&db));
        done(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        done(&mut old, "SELECT * FROM t");
        done(&mut other, "CREATE VIEW v AS SELECT a FROM t");
        assert_eq!(run(&mut old, statement).map_err(|error| error.sqlstate), Err(expected), "{statement}");
        done(&mut old, "ROLLBACK");
        assert_eq!(done(&mut other, "SELECT * FROM v"), "10,20");
    }
}
