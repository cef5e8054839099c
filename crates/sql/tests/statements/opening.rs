//! A database with indexes of expressions is opened with what works them out, and says so where it is not.
use engine::{Database, OpenOptions};
use sql::{Outcome, Session, SessionOptions, text_value};

fn session(db: &Database) -> Session {
    Session::new(db, SessionOptions::default())
}

/// The first column of a query's rows.
fn ask(session: &mut Session, query: &str) -> Vec<String> {
    let Outcome::Rows(rows) = session.execute(query).unwrap() else { panic!("{query} gives no rows") };
    let mut lines = Vec::new();
    for batch in rows.map(Result::unwrap) {
        lines.extend((0..batch.num_rows()).map(|row| text_value(batch.column(0).as_ref(), row).unwrap_or_default()));
    }
    lines
}

#[test]
fn indexes_of_expressions_are_there_again_and_hold() {
    let directory = tempfile::tempdir().unwrap();
    // Even one that was opened without, as a session brings along what it needs.
    for has_checkpoint in [false, true] {
        let db = match has_checkpoint {
            false => Database::open(directory.path()).unwrap(),
            true => sql::open(directory.path(), OpenOptions::default()).unwrap(),
        };
        let mut session = session(&db);
        if !has_checkpoint {
            session.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT, city VARCHAR(9), n INT)").unwrap();
            session
                .execute("INSERT INTO t SELECT i, 'Name ' || i, 'x', i FROM generate_series(1, 500) AS s(i)")
                .unwrap();
            session.execute("CREATE UNIQUE INDEX present ON t (lower(name)) WHERE city = 'x' AND n > 0").unwrap();
            session.execute("CREATE INDEX ON t ((12 / n), (CASE WHEN n > 5 THEN NAME END))").unwrap();
        } else {
            db.checkpoint().unwrap();
        }
        session.execute("UPDATE t SET n = -n WHERE id = 7").unwrap();
        drop((session, db));
    }
    let refused = Database::open(directory.path()).map(drop).unwrap_err();
    assert_eq!(refused.sqlstate(), "55000");
    assert!(refused.to_string().contains("sql::open"), "{refused}");
    assert!(Database::verify(directory.path(), |_, _| ()).is_err());
    let options = sql::with_expressions(OpenOptions::default());
    assert_eq!(Database::verify_with(directory.path(), options).unwrap().faults, [""; 0]);
    let db = sql::open(directory.path(), OpenOptions::default()).unwrap();
    let mut session = session(&db);
    let query = "SELECT id FROM t WHERE lower(name) = 'name 9' AND city = 'x' AND n BETWEEN 1 AND 100";
    assert_eq!(ask(&mut session, query), ["9"]);
    assert!(ask(&mut session, &format!("EXPLAIN (OPERATORS) {query}")).len() == 2);
    for (statement, code) in [
        ("INSERT INTO t VALUES (1000, 'NAME 9', 'x', 1)", "23505"),
        ("UPDATE t SET n = 0 WHERE id = 8", "22012"),
        ("UPDATE t SET name = 'NAME 9' WHERE id = 7", "23505"),
    ] {
        assert_eq!(session.execute(statement).map(drop).unwrap_err().sqlstate, code, "{statement}");
    }
    session.execute("INSERT INTO t VALUES (1000, 'NAME 9', 'y', 1)").unwrap();
}
