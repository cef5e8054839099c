//! What statements give back of rows that others were changing: values as they are once the statement has changed them.
use std::thread;

use engine::Database;
use sql::{Outcome, Session, SqlError};

use crate::sessions::{read, session, until_waiting};

fn open() -> Database {
    let db = Database::in_memory();
    let mut session = session(&db);
    done(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, n BIGINT, state TEXT)");
    done(&mut session, "INSERT INTO t VALUES (1, 10, 'new'), (2, 20, 'new'), (3, 30, 'new')");
    db
}

/// The tag of a statement, and the rows that it gives back.
fn run(session: &mut Session, statement: &str) -> Result<String, SqlError> {
    let rows = match session.execute(statement)? {
        Outcome::Done(command) => return Ok(command.tag),
        Outcome::Rows(rows) => rows,
    };
    let tag = rows.tag().unwrap_or("SELECT").to_owned();
    let rows = read(rows)?;
    Ok(if rows.is_empty() { tag } else { format!("{tag},{rows}") })
}

fn done(session: &mut Session, statement: &str) -> String {
    run(session, statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"))
}

/// What a statement gives that waits for a transaction of these statements.
fn after_waiting(db: &Database, others: &[&str], statement: &str) -> Result<String, SqlError> {
    let mut other = session(db);
    done(&mut other, "BEGIN");
    others.iter().for_each(|statement| drop(done(&mut other, statement)));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&mut session(db), statement));
        until_waiting(db, 1);
        done(&mut other, "COMMIT");
        waiting.join().unwrap()
    })
}

#[test]
fn rows_that_others_have_changed_are_given_back_as_they_are_now() {
    let others = ["UPDATE t SET n = n + 100 WHERE id = 2"];
    let cases = [
        ("UPDATE t SET n = n + 1 RETURNING id, n", "UPDATE 3,1 11,3 31,2 121"),
        ("UPDATE t SET state = 'old' WHERE n < 100 RETURNING id, n", "UPDATE 2,1 10,3 30"),
        ("UPDATE t SET state = 'old' WHERE id = 2 AND n > 0 RETURNING n, state", "UPDATE 1,120 old"),
        ("UPDATE t SET n = n + 1 WHERE id = 2 RETURNING n, id", "UPDATE 1,121 2"),
        ("DELETE FROM t RETURNING id, n", "DELETE 3,1 10,3 30,2 120"),
        ("DELETE FROM t WHERE n = 20 RETURNING *", "DELETE 0"),
    ];
    for (statement, expected) in cases {
        assert_eq!(after_waiting(&open(), &others, statement).unwrap(), expected, "{statement}");
    }
}

#[test]
fn rows_that_others_have_deleted_are_not_given_back() {
    let others = ["DELETE FROM t WHERE id = 2"];
    for (statement, expected) in [
        ("UPDATE t SET n = n + 1 RETURNING id, n", "UPDATE 2,1 11,3 31"),
        ("UPDATE t SET n = n + 1 WHERE id = 2 RETURNING n", "UPDATE 0"),
        ("DELETE FROM t RETURNING id", "DELETE 2,1,3"),
    ] {
        assert_eq!(after_waiting(&open(), &others, statement).unwrap(), expected, "{statement}");
    }
}

#[test]
fn above_read_committed_such_rows_are_a_conflict() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let db = open();
        let (mut first, mut second) = (session(&db), session(&db));
        done(&mut second, &format!("BEGIN ISOLATION LEVEL {level}"));
        done(&mut second, "SELECT count(*) FROM t");
        done(&mut first, "UPDATE t SET n = 0 WHERE id = 2");
        let refused = run(&mut second, "UPDATE t SET n = n + 1 RETURNING n").unwrap_err();
        assert_eq!(refused.sqlstate, "40001", "{level}");
    }
}

#[test]
fn what_a_transaction_has_changed_itself_is_no_conflict() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let db = open();
        let (mut first, mut second) = (session(&db), session(&db));
        done(&mut first, &format!("BEGIN ISOLATION LEVEL {level}"));
        assert_eq!(done(&mut first, "UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n"), "UPDATE 1,11");
        assert_eq!(done(&mut first, "UPDATE t SET n = n + 1 WHERE id < 3 RETURNING n"), "UPDATE 2,12,21");
        assert_eq!(done(&mut first, "INSERT INTO t VALUES (4, 40) RETURNING id, state"), "INSERT 0 1,4 NULL");
        done(&mut second, "UPDATE t SET n = 0 WHERE id = 3");
        assert_eq!(done(&mut first, "COMMIT"), "COMMIT", "{level}");
    }
}
