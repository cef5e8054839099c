//! Defaults and identity columns after a restart, in prepared statements and in rows from a client.
use std::sync::Arc;

use engine::{Database, OpenOptions, Value};
use sql::{NoInput, Session, SessionOptions};

use crate::answers::{Lines, ask, run};

fn session(db: &Database) -> Session {
    Session::new(db, SessionOptions::default())
}

#[test]
fn defaults_and_identity_are_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let open = || sql::open(directory.path(), OpenOptions::default()).unwrap();
    // Read from the log, from a checkpoint, and from both.
    for round in 0..4 {
        let db = open();
        let mut session = session(&db);
        if round == 0 {
            let table = "CREATE TABLE t (id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n SERIAL, a TEXT DEFAULT 'one', \
                         b INT DEFAULT 1 + 1, x INT)";
            run(&mut session, &[table, "CREATE TABLE plain (a INT)"]);
        }
        run(&mut session, &["INSERT INTO t (x) VALUES (1)", "INSERT INTO t (x) SELECT 2"]);
        if round == 1 {
            run(&mut session, &["ALTER TABLE t ALTER COLUMN a SET DEFAULT 'two', ALTER COLUMN b DROP DEFAULT"]);
        }
        if round > 0 {
            db.checkpoint().unwrap();
        }
        if round == 2 {
            run(
                &mut session,
                &["ALTER TABLE t ALTER COLUMN b SET DEFAULT 3", "ALTER SEQUENCE t_n_seq RENAME TO numbers"],
            );
        }
        let refused = session.execute("INSERT INTO t (id) VALUES (1)").map(drop).unwrap_err();
        assert_eq!(refused.sqlstate, "428C9");
    }
    let db = open();
    let mut session = session(&db);
    let rows = ask(
        &mut session,
        "SELECT a, b, count(*), count(DISTINCT id), count(DISTINCT n) FROM t GROUP BY a, b ORDER BY a, b",
    );
    assert_eq!(rows, ["one,2,4,4,4", "two,3,2,2,2", "two,NULL,2,2,2"]);
    let refused = session.execute("DROP SEQUENCE numbers").map(drop).unwrap_err();
    assert_eq!(refused.sqlstate, "2BP01");
    run(&mut session, &["DROP TABLE t"]);
    assert_eq!(session.execute("SELECT * FROM numbers").map(drop).unwrap_err().sqlstate, "42P01");
}

#[test]
fn a_prepared_insert_takes_what_fills_its_columns_by_now() {
    let mut session = session(&Database::in_memory());
    run(&mut session, &["CREATE TABLE t (id SERIAL PRIMARY KEY, a INT, b TEXT DEFAULT 'one')"]);
    let insert = Arc::new(session.prepare("INSERT INTO t (a) VALUES ($1), (DEFAULT)", &[]).unwrap());
    let put = |session: &mut Session, value| {
        session.execute_prepared(&insert, &[Value::Integer(value)], &mut NoInput).map(drop).unwrap();
    };
    put(&mut session, 1);
    run(&mut session, &["ALTER TABLE t ALTER COLUMN b SET DEFAULT 'two'", "ALTER SEQUENCE t_id_seq RENAME TO s"]);
    put(&mut session, 2);
    run(&mut session, &["BEGIN", "ALTER TABLE t ALTER COLUMN b DROP DEFAULT"]);
    put(&mut session, 3);
    run(&mut session, &["ROLLBACK"]);
    put(&mut session, 4);
    let rows = ask(&mut session, "SELECT a, b FROM t ORDER BY id");
    assert_eq!(rows, ["1,one", "NULL,one", "2,two", "NULL,two", "4,two", "NULL,two"]);
    assert_eq!(ask(&mut session, "SELECT count(DISTINCT id), lastval() = max(id) FROM t"), ["6,t"]);
}

#[test]
fn copy_fills_the_columns_that_it_leaves_out() {
    let mut session = session(&Database::in_memory());
    let table =
        "CREATE TABLE t (id INT GENERATED ALWAYS AS IDENTITY, a INT, b TEXT DEFAULT 'one', c INT DEFAULT 2 * 3)";
    run(&mut session, &[table]);
    let copy = |session: &mut Session, statement: &str, text| {
        session.execute_with_input(statement, &mut Lines::new(text)).map(drop).unwrap();
    };
    copy(&mut session, "COPY t (a) FROM STDIN", "5\n6\n");
    copy(&mut session, "COPY t (id, b) FROM STDIN (FORMAT csv)", "70,x\n");
    let rows = ask(&mut session, "SELECT * FROM t ORDER BY id");
    assert_eq!(rows, ["1,5,one,6", "2,6,one,6", "70,NULL,x,6"]);
}
