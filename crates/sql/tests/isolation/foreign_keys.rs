//! Foreign keys beside others that put in, change and delete the rows at both ends: no row is left that refers to nothing, and
//! nothing is refused that is right.
use std::thread;

use engine::Database;

use crate::sessions::{done, run, session, until_waiting};

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

fn open() -> Database {
    let db = Database::in_memory();
    let mut session = session(&db);
    done(&mut session, "CREATE TABLE aside (a INT)");
    done(&mut session, "CREATE TABLE p (id INT PRIMARY KEY, n INT)");
    done(&mut session, "CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p)");
    db
}

/// How a statement ends that waits for a transaction of one statement, which ends in this way.
fn after_waiting(level: &str, other: &str, end: &str, statement: &str) -> (Option<&'static str>, String) {
    let db = open();
    let mut first = session(&db);
    done(&mut first, "INSERT INTO p VALUES (1, 0), (2, 0)");
    done(&mut first, "INSERT INTO c VALUES (20, 2)");
    done(&mut first, &format!("BEGIN ISOLATION LEVEL {level}"));
    done(&mut first, other);
    let error = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut second = session(&db);
            done(&mut second, &format!("BEGIN ISOLATION LEVEL {level}"));
            // Its snapshot is older than the end of the first.
            done(&mut second, "SELECT count(*) FROM aside");
            let ended = run(&mut second, statement).map_err(|error| error.sqlstate).err();
            done(&mut second, if ended.is_none() { "COMMIT" } else { "ROLLBACK" });
            ended
        });
        until_waiting(&db, 1);
        done(&mut first, end);
        waiting.join().unwrap()
    });
    let rows = "SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM c)";
    (error, done(&mut first, rows))
}

#[test]
fn a_row_and_the_one_that_it_refers_to_wait_for_each_other() {
    let insert = "INSERT INTO c VALUES (10, 1)";
    let point = "UPDATE c SET p = 1 WHERE id = 20";
    for level in LEVELS {
        for (other, end, statement, error, rows) in [
            ("DELETE FROM p WHERE id = 1", "ROLLBACK", insert, None, "2 2"),
            ("DELETE FROM p WHERE id = 1", "COMMIT", insert, Some("23503"), "1 1"),
            ("DELETE FROM p WHERE id = 1", "COMMIT", point, Some("23503"), "1 1"),
            ("UPDATE p SET id = 3 WHERE id = 1", "ROLLBACK", insert, None, "2 2"),
            ("UPDATE p SET id = 3 WHERE id = 1", "COMMIT", insert, Some("23503"), "2 1"),
            (insert, "ROLLBACK", "DELETE FROM p WHERE id = 1", None, "1 1"),
            (insert, "COMMIT", "DELETE FROM p WHERE id = 1", Some("23503"), "2 2"),
            (point, "COMMIT", "DELETE FROM p WHERE id < 2", Some("23503"), "2 1"),
            (insert, "COMMIT", "UPDATE p SET id = 3 WHERE id = 1", Some("23503"), "2 2"),
            ("DELETE FROM c WHERE id = 20", "COMMIT", "DELETE FROM p WHERE id = 2", None, "1 0"),
            ("DELETE FROM c WHERE id = 20", "ROLLBACK", "DELETE FROM p WHERE id = 2", Some("23503"), "2 1"),
        ] {
            let ended = after_waiting(level, other, end, statement);
            assert_eq!((ended.0, &*ended.1), (error, rows), "{level}: {statement} after {other}, {end}");
        }
    }
}

#[test]
fn columns_that_nothing_refers_to_are_changed_beside_rows_that_refer() {
    for level in LEVELS {
        let db = open();
        let (mut first, mut second) = (session(&db), session(&db));
        done(&mut first, "INSERT INTO p VALUES (1, 0)");
        done(&mut first, &format!("BEGIN ISOLATION LEVEL {level}"));
        done(&mut second, &format!("BEGIN ISOLATION LEVEL {level}"));
        done(&mut first, "INSERT INTO c VALUES (10, 1)");
        done(&mut second, "UPDATE p SET n = 1 WHERE id = 1");
        done(&mut second, "INSERT INTO c VALUES (11, 1)");
        done(&mut first, "INSERT INTO c VALUES (12, 1)");
        done(&mut first, "COMMIT");
        done(&mut second, "COMMIT");
        assert_eq!(done(&mut first, "SELECT count(*) FROM c"), "3", "{level}");
    }
}
