//! Functions in SQL: kept through checkpoints, logs and rollbacks; what others see of them, and what refuses to lose them.
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

fn code_of(session: &mut Session, statement: &str) -> &'static str {
    session.execute(statement).map(drop).unwrap_err().sqlstate
}

#[test]
fn functions_are_there_again_after_a_log_and_after_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    for has_checkpoint in [false, true] {
        let db = sql::open(directory.path(), OpenOptions::default()).unwrap();
        let mut session = session(&db);
        if has_checkpoint {
            assert_eq!(ask(&mut session, "SELECT add(1)"), ["11"]);
            session
                .execute("CREATE OR REPLACE FUNCTION add(a int, b int DEFAULT 20) RETURNS int RETURN a + b")
                .unwrap();
            session.execute("DROP FUNCTION gone()").unwrap();
            db.checkpoint().unwrap();
        } else {
            session.execute("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
            session.execute("INSERT INTO t VALUES (1), (2)").unwrap();
            let made = "CREATE FUNCTION add(a int, b int DEFAULT 10) RETURNS int LANGUAGE sql AS 'SELECT a + b'";
            session.execute(made).unwrap();
            session.execute("CREATE FUNCTION gone() RETURNS int LANGUAGE sql AS 'SELECT 1'").unwrap();
            session.execute("CREATE FUNCTION all_t() RETURNS SETOF t LANGUAGE sql AS 'SELECT * FROM t'").unwrap();
            session.execute("CREATE VIEW v AS SELECT add(a) AS a FROM all_t()").unwrap();
        }
    }
    let db = sql::open(directory.path(), OpenOptions::default()).unwrap();
    let mut session = session(&db);
    assert_eq!(ask(&mut session, "SELECT a FROM v ORDER BY 1"), ["21", "22"]);
    assert_eq!(code_of(&mut session, "SELECT gone()"), "42883");
    assert_eq!(code_of(&mut session, "DROP FUNCTION add(int, int)"), "2BP01");
}

#[test]
fn a_plan_that_is_kept_does_not_outlive_the_function_that_it_calls() {
    let db = Database::in_memory();
    let (mut one, mut other) = (session(&db), session(&db));
    one.execute("CREATE TABLE t (a int)").unwrap();
    one.execute("INSERT INTO t VALUES (1), (2)").unwrap();
    one.execute("CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT a * 2'").unwrap();
    let query = "SELECT sum(f(a)) FROM t";
    for _ in 0..3 {
        assert_eq!(ask(&mut one, query), ["6"]);
    }
    other.execute("CREATE OR REPLACE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT a * 3'").unwrap();
    assert_eq!(ask(&mut one, query), ["9"]);
    other.execute("DROP FUNCTION f").unwrap();
    assert_eq!(code_of(&mut one, query), "42883");
}

#[test]
fn a_function_that_is_not_committed_is_known_to_its_transaction_alone() {
    let db = Database::in_memory();
    let (mut one, mut other) = (session(&db), session(&db));
    one.execute("BEGIN").unwrap();
    one.execute("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'").unwrap();
    assert_eq!(ask(&mut one, "SELECT f()"), ["1"]);
    assert_eq!(code_of(&mut other, "SELECT f()"), "42883");
    one.execute("COMMIT").unwrap();
    assert_eq!(ask(&mut other, "SELECT f()"), ["1"]);
}

#[test]
fn a_function_that_calls_itself_is_refused_where_it_is_called() {
    let db = Database::in_memory();
    let mut session = session(&db);
    session.execute("SET check_function_bodies = off").unwrap();
    session.execute("CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT f(a - 1)'").unwrap();
    session.execute("CREATE FUNCTION g(a int) RETURNS int LANGUAGE sql AS 'SELECT h(a)'").unwrap();
    session.execute("CREATE FUNCTION h(a int) RETURNS int LANGUAGE sql AS 'SELECT g(a)'").unwrap();
    for query in ["SELECT f(1)", "SELECT g(1)"] {
        assert_eq!(code_of(&mut session, query), "0A000", "{query}");
    }
    let long: Vec<String> = (0..600).map(|_| "k(1)".to_owned()).collect();
    session.execute("CREATE FUNCTION k(a int) RETURNS int LANGUAGE sql AS 'SELECT a'").unwrap();
    assert_eq!(code_of(&mut session, &format!("SELECT {}", long.join(" + "))), "54001");
}

#[test]
fn parameters_of_statements_have_the_types_of_the_arguments_that_they_go_to() {
    let db = Database::in_memory();
    let mut session = session(&db);
    session.execute("CREATE FUNCTION f(a bigint, b date) RETURNS text LANGUAGE sql AS 'SELECT a || b::text'").unwrap();
    let prepared = session.prepare("SELECT f($1, $2)", &[]).unwrap();
    assert_eq!(prepared.parameters(), [engine::DataType::BigInt, engine::DataType::Date]);
}

#[test]
fn a_function_with_another_value_each_time_is_refused_where_it_would_have_one_for_all_rows() {
    let db = Database::in_memory();
    let mut session = session(&db);
    for statement in [
        "CREATE SEQUENCE numbers",
        "CREATE TABLE t AS SELECT i FROM generate_series(1, 3) s (i)",
        "CREATE FUNCTION token() RETURNS text LANGUAGE sql AS 'SELECT string_agg(random()::text, '''') FROM t'",
        "CREATE FUNCTION number() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('numbers') $$",
        "CREATE FUNCTION twice(x double precision) RETURNS double precision LANGUAGE sql AS 'SELECT x + x'",
    ] {
        session.execute(statement).unwrap();
    }
    for query in ["SELECT token() FROM t", "SELECT twice(random()) FROM t"] {
        assert_eq!(code_of(&mut session, query), "0A000", "{query}");
    }
    assert_eq!(ask(&mut session, "SELECT count(*) FROM token()"), ["1"]);
    assert_eq!(ask(&mut session, "SELECT count(DISTINCT n) FROM (SELECT number() AS n FROM t) q"), ["3"]);
}

#[test]
fn calls_within_calls_do_not_double_the_statement_at_each_step() {
    let db = Database::in_memory();
    let mut session = session(&db);
    session.execute("CREATE FUNCTION twice(x int) RETURNS int LANGUAGE sql AS 'SELECT x + x'").unwrap();
    let query = format!("SELECT {}1{}", "twice(".repeat(14), ")".repeat(14));
    assert_eq!(ask(&mut session, &query), ["16384"]);
}
