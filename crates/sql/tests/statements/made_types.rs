//! Types that users make, domains and generated columns after restarts, and by rows that come by `COPY`.
use engine::{Database, OpenOptions};
use sql::{Session, SessionOptions};

use crate::answers::{Lines, ask, run};

fn session(db: &Database) -> Session {
    Session::new(db, SessionOptions::default())
}

fn copy(session: &mut Session, statement: &str, lines: &str) -> Result<(), &'static str> {
    let mut input = Lines::new(lines);
    session.execute_with_input(statement, &mut input).map(drop).map_err(|error| error.sqlstate)
}

const TABLE: &str =
    "CREATE TABLE t (id int PRIMARY KEY, m mood, n small, twice int GENERATED ALWAYS AS (n * 2) STORED)";

#[test]
fn types_and_their_columns_are_there_again_after_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let open = || sql::open(folder.path(), OpenOptions::default()).unwrap();
    {
        let mut own = session(&open());
        run(&mut own, &["CREATE TYPE mood AS ENUM ('sad', 'happy')"]);
        run(&mut own, &["CREATE DOMAIN small AS int DEFAULT 1 CHECK (VALUE < 10)"]);
        run(&mut own, &[TABLE]);
        run(&mut own, &["INSERT INTO t VALUES (1, 'happy', 5), (2, 'sad', DEFAULT)"]);
        run(&mut own, &["ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy'"]);
        run(&mut own, &["ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'"]);
        run(&mut own, &["CREATE INDEX t_m ON t (m) WHERE m > 'blue'"]);
    }
    for takes_checkpoint in [false, true] {
        let db = open();
        let mut own = session(&db);
        assert_eq!(ask(&mut own, "SELECT m, n, twice FROM t WHERE id < 3 ORDER BY m DESC"), ["happy,5,10", "blue,1,2"]);
        let id = if takes_checkpoint { 4 } else { 3 };
        run(&mut own, &[&format!("INSERT INTO t VALUES ({id}, 'ok', 9)")]);
        assert_eq!(ask(&mut own, &format!("SELECT twice FROM t WHERE m = 'ok' AND id = {id}")), ["18"]);
        let refused =
            |own: &mut Session, statement: &str| own.execute(statement).map(drop).map_err(|error| error.sqlstate);
        assert_eq!(refused(&mut own, "UPDATE t SET n = 10"), Err("23514"));
        assert_eq!(refused(&mut own, "INSERT INTO t VALUES (9, 'sad')"), Err("22P02"));
        assert_eq!(refused(&mut own, "DROP TYPE mood"), Err("2BP01"));
        if takes_checkpoint {
            run(&mut own, &["CHECKPOINT"]);
        }
    }
    let mut own = session(&open());
    assert_eq!(ask(&mut own, "SELECT id, m FROM t ORDER BY m, id"), ["2,blue", "3,ok", "4,ok", "1,happy"]);
}

#[test]
fn rows_that_are_copied_get_labels_rules_and_generated_values() {
    let db = Database::in_memory();
    let mut own = session(&db);
    run(&mut own, &["CREATE TYPE mood AS ENUM ('sad', 'happy')"]);
    run(&mut own, &["CREATE DOMAIN small AS int CHECK (VALUE < 10)"]);
    run(&mut own, &[TABLE]);
    assert_eq!(copy(&mut own, "COPY t FROM STDIN", "1\thappy\t4\n2\t\\N\t\\N\n"), Ok(()));
    assert_eq!(copy(&mut own, "COPY t FROM STDIN (FORMAT csv)", "3,sad,9\n"), Ok(()));
    assert_eq!(copy(&mut own, "COPY t FROM STDIN", "4\thappy\t10\n"), Err("23514"));
    assert_eq!(copy(&mut own, "COPY t FROM STDIN", "4\tglad\t1\n"), Err("22P02"));
    assert_eq!(copy(&mut own, "COPY t (id, twice) FROM STDIN", "4\t1\n"), Err("42P10"));
    let rows = ask(&mut own, "SELECT id, m, n, twice FROM t ORDER BY id");
    assert_eq!(rows, ["1,happy,4,8", "2,NULL,NULL,NULL", "3,sad,9,18"]);
}

#[test]
fn a_label_of_a_transaction_that_is_rolled_back_is_no_value() {
    let db = Database::in_memory();
    let (mut own, mut other) = (session(&db), session(&db));
    run(&mut own, &["CREATE TYPE mood AS ENUM ('sad', 'happy')"]);
    run(&mut own, &["BEGIN"]);
    run(&mut own, &["ALTER TYPE mood ADD VALUE 'ok'"]);
    let refused = other.execute("SELECT 'ok'::mood").map(drop).map_err(|error| error.sqlstate);
    assert_eq!(refused, Err("22P02"));
    run(&mut own, &["ROLLBACK"]);
    assert_eq!(ask(&mut own, "SELECT enum_range(NULL::mood)"), ["{sad,happy}"]);
    run(&mut own, &["ALTER TYPE mood ADD VALUE 'ok' AFTER 'sad'"]);
    assert_eq!(ask(&mut other, "SELECT enum_range(NULL::mood)"), ["{sad,ok,happy}"]);
}

#[test]
fn what_a_text_of_the_catalog_names_is_not_renamed_or_dropped() {
    let db = Database::in_memory();
    let mut own = session(&db);
    run(&mut own, &["CREATE TYPE mood AS ENUM ('sad', 'happy', 'sadder')", "CREATE TYPE other AS ENUM ('x')"]);
    run(&mut own, &["CREATE TABLE t (id int PRIMARY KEY, ms mood[], a text)", "CREATE DOMAIN d AS other"]);
    run(&mut own, &["CREATE INDEX t_ms ON t (id) WHERE ms = '{sad}'"]);
    let refused = |own: &mut Session, statement: &str| own.execute(statement).map(drop).map_err(|error| error.sqlstate);
    assert_eq!(refused(&mut own, "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'"), Err("0A000"));
    run(&mut own, &["ALTER TYPE mood RENAME VALUE 'sadder' TO 'saddest'"]);
    assert_eq!(refused(&mut own, "ALTER TYPE mood RENAME TO feeling"), Err("0A000"));
    assert_eq!(refused(&mut own, "DROP TYPE other"), Err("2BP01"), "a domain is over it");
    run(&mut own, &["DROP DOMAIN d", "DROP TYPE other", "DROP INDEX t_ms", "ALTER TYPE mood RENAME TO feeling"]);
    assert_eq!(ask(&mut own, "SELECT 'saddest'::feeling"), ["saddest"]);
}

#[test]
fn labels_of_two_types_are_no_match() {
    let db = Database::in_memory();
    let mut own = session(&db);
    run(&mut own, &["CREATE TYPE a AS ENUM ('x', 'y')", "CREATE TYPE b AS ENUM ('p', 'q')"]);
    run(&mut own, &["CREATE TABLE t1 (m a)", "CREATE TABLE t2 (m b)", "CREATE TABLE t3 (m a)"]);
    run(&mut own, &["INSERT INTO t1 VALUES ('x')", "INSERT INTO t2 VALUES ('p')", "INSERT INTO t3 VALUES ('x')"]);
    assert_eq!(ask(&mut own, "SELECT count(*) FROM t1 JOIN t3 USING (m)"), ["1"]);
    assert!(own.execute("SELECT count(*) FROM t1 JOIN t2 USING (m)").is_err());
}
