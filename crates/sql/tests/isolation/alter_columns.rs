//! Tables that get other columns beside sessions that read and write them.
use std::thread;

use engine::Database;

use crate::sessions::{done, run, session, until_waiting};

fn open() -> Database {
    let db = Database::in_memory();
    let mut session = session(&db);
    done(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT)");
    done(&mut session, "CREATE INDEX ON t (a)");
    done(&mut session, "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y')");
    db
}

const NEW_COLUMNS: &str = "ALTER TABLE t DROP COLUMN b, ADD COLUMN c INT DEFAULT 7, ALTER COLUMN a TYPE BIGINT";

#[test]
fn a_snapshot_reads_the_columns_of_its_time() {
    let db = open();
    let (mut reader, mut other) = (session(&db), session(&db));
    done(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(done(&mut reader, "SELECT * FROM t"), "1 10 x,2 20 y");
    done(&mut other, NEW_COLUMNS);
    assert_eq!(done(&mut reader, "SELECT * FROM t"), "1 10 x,2 20 y");
    assert_eq!(run(&mut reader, "UPDATE t SET a = 0").map_err(|error| error.sqlstate), Err("40001"));
    done(&mut reader, "ROLLBACK");
    assert_eq!(done(&mut reader, "SELECT * FROM t ORDER BY id"), "1 10 7,2 20 7");
    assert_eq!(done(&mut reader, "SELECT id FROM t WHERE a = 20"), "2");
    let before = done(&mut reader, "SELECT * FROM t FOR SYSTEM_TIME AS OF 3 ORDER BY id");
    assert_eq!(before, "1 10 x,2 20 y");
}

#[test]
fn a_writer_that_has_waited_goes_on_with_the_new_columns() {
    for (statement, expected, rows) in [
        ("INSERT INTO t VALUES (3, 30, 8)", Ok("INSERT 0 1".to_owned()), "1 10 7,2 20 7,3 30 8"),
        ("UPDATE t SET c = a WHERE id = 1", Ok("UPDATE 1".to_owned()), "1 10 10,2 20 7"),
        ("UPDATE t SET b = 'z' WHERE id = 1", Err("42703"), "1 10 7,2 20 7"),
    ] {
        let db = open();
        let mut first = session(&db);
        done(&mut first, "BEGIN");
        done(&mut first, NEW_COLUMNS);
        let waited = thread::scope(|scope| {
            let other = scope.spawn(|| run(&mut session(&db), statement).map_err(|error| error.sqlstate));
            until_waiting(&db, 1);
            done(&mut first, "COMMIT");
            other.join().unwrap()
        });
        assert_eq!(waited, expected, "{statement}");
        assert_eq!(done(&mut first, "SELECT id, a, c FROM t ORDER BY id"), rows, "{statement}");
    }
}

/// The rows of all commits move, not those of the snapshot alone.
#[test]
fn no_row_is_lost_that_is_newer_than_the_snapshot_of_the_change() {
    for change in [NEW_COLUMNS, "ALTER TABLE t ADD COLUMN c INT DEFAULT 7", "ALTER TABLE t RENAME COLUMN b TO c"] {
        let db = open();
        let (mut old, mut other) = (session(&db), session(&db));
        done(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        done(&mut old, "SELECT 1 FROM t");
        done(&mut other, "INSERT INTO t VALUES (3, 30, 'z')");
        done(&mut old, change);
        done(&mut old, "COMMIT");
        assert_eq!(done(&mut other, "SELECT id, a FROM t ORDER BY id"), "1 10,2 20,3 30", "{change}");
    }
}

#[test]
fn no_row_is_lost_that_is_newer_than_the_snapshot_of_a_new_key() {
    let db = open();
    let (mut old, mut other) = (session(&db), session(&db));
    done(&mut other, "CREATE TABLE plain (id INT, a INT)");
    done(&mut other, "CREATE INDEX by_a ON plain (a)");
    done(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    done(&mut old, "SELECT 1 FROM plain");
    done(&mut other, "INSERT INTO plain VALUES (1, 10)");
    done(&mut old, "ALTER TABLE plain ADD PRIMARY KEY (id)");
    done(&mut old, "COMMIT");
    assert_eq!(done(&mut other, "SELECT id, a FROM plain"), "1 10");
    let indexes = done(&mut other, "SELECT indexname FROM pg_indexes WHERE tablename = 'plain' ORDER BY 1");
    assert_eq!(indexes, "by_a,plain_pkey");
}

/// What it found of the table before it waited is another table's by then.
#[test]
fn a_change_of_a_table_that_has_waited_goes_on_with_the_new_columns() {
    for (statement, insert, expected, rows) in [
        ("ALTER TABLE t ADD CHECK (a < 100)", "INSERT INTO t VALUES (3, 500, 8)", Err("23514"), "1 10 7,2 20 7"),
        (
            "ALTER TABLE t ADD COLUMN d INT",
            "INSERT INTO t VALUES (3, 30, 8, 9)",
            Ok("INSERT 0 1".to_owned()),
            "1 10 7,2 20 7,3 30 8",
        ),
        ("ALTER TABLE k ADD PRIMARY KEY (a)", "INSERT INTO k VALUES (2, 8)", Err("23505"), "1 10 7,2 20 7"),
    ] {
        let db = open();
        let mut first = session(&db);
        done(&mut first, "CREATE TABLE k (a INT, b TEXT)");
        done(&mut first, "INSERT INTO k VALUES (1, 'x'), (2, 'y')");
        done(&mut first, "BEGIN");
        done(&mut first, NEW_COLUMNS);
        done(&mut first, "ALTER TABLE k DROP COLUMN b, ADD COLUMN c INT DEFAULT 7");
        thread::scope(|scope| {
            let other = scope.spawn(|| done(&mut session(&db), statement));
            until_waiting(&db, 1);
            done(&mut first, "COMMIT");
            assert_eq!(other.join().unwrap(), "ALTER TABLE");
        });
        let inserted = run(&mut first, insert).map_err(|error| error.sqlstate);
        assert_eq!(inserted, expected, "{statement}");
        assert_eq!(done(&mut first, "SELECT id, a, c FROM t ORDER BY id"), rows, "{statement}");
        assert_eq!(done(&mut first, "SELECT a, c FROM k ORDER BY a"), "1 7,2 7", "{statement}");
    }
}
