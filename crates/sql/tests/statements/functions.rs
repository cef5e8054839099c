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
fn a_function_with_another_value_each_time_has_one_for_each_row() {
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
    for value in ["token()", "twice(random())", "twice(twice(random())) + 0", "number()"] {
        let queries = [
            format!("SELECT count(DISTINCT n) FROM (SELECT {value} AS n FROM t) q"),
            format!("SELECT count(DISTINCT n) FROM (SELECT {value} AS n FROM generate_series(1, 3)) q"),
            format!("SELECT count(DISTINCT n) FROM (SELECT {value} AS n FROM t WHERE {value} IS NOT NULL) q"),
        ];
        for query in queries {
            assert_eq!(ask(&mut session, &query), ["3"], "{query}");
        }
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

#[test]
fn queries_find_the_index_of_a_function_by_its_calls() {
    let db = Database::in_memory();
    let mut session = session(&db);
    for statement in [
        "CREATE FUNCTION twice(k int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT k * 2'",
        "CREATE FUNCTION strict(k int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT k * 3'",
        "CREATE FUNCTION norm(t text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower(trim(t))'",
        "CREATE FUNCTION is_some(k int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT k > 10 AND k < 100'",
        "CREATE TABLE t (a int, n text)",
        "INSERT INTO t SELECT i, 'A' || i FROM generate_series(1, 3000) AS i",
        "CREATE INDEX by_twice ON t (twice(a))",
        "CREATE INDEX by_strict ON t (strict(a))",
        "CREATE INDEX by_norm ON t (norm(n))",
        "CREATE INDEX of_some ON t (n) WHERE is_some(a)",
    ] {
        session.execute(statement).unwrap();
    }
    for (condition, index) in [
        ("twice(a) = 200", "by_twice"),
        ("strict(a) = 300", "by_strict"),
        ("norm(n) = 'a77'", "by_norm"),
        ("is_some(a) AND n = 'A50'", "of_some"),
    ] {
        let Outcome::Rows(rows) =
            session.execute(&format!("EXPLAIN (OPERATORS) SELECT * FROM t WHERE {condition}")).unwrap()
        else {
            panic!("EXPLAIN gives no rows")
        };
        let plan: String =
            rows.map(Result::unwrap).map(|batch| text_value(batch.column(1), batch.num_rows() - 1).unwrap()).collect();
        assert!(plan.contains(&format!("index={index}")), "{condition}: {plan}");
        assert_eq!(ask(&mut session, &format!("SELECT count(*) FROM t WHERE {condition}")), ["1"], "{condition}");
    }
}

#[test]
fn exists_and_aggregates_in_bodies_become_joins() {
    let db = Database::in_memory();
    let mut session = session(&db);
    for statement in [
        "CREATE TABLE t (a int)",
        "CREATE TABLE u (b int)",
        "CREATE FUNCTION has(k int) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT 1 FROM u WHERE b = k)'",
        "CREATE FUNCTION count_of(k int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM u WHERE b = k'",
    ] {
        session.execute(statement).unwrap();
    }
    for query in ["SELECT a FROM t WHERE has(a)", "SELECT a, count_of(t.a) FROM t"] {
        let Outcome::Rows(rows) = session.execute(&format!("EXPLAIN (OPERATORS) {query}")).unwrap() else {
            panic!("EXPLAIN gives no rows")
        };
        let plan: String =
            rows.map(Result::unwrap).map(|batch| text_value(batch.column(1), batch.num_rows() - 1).unwrap()).collect();
        assert!(plan.contains("HashJoinExec") && !plan.contains("subplan"), "{query}: {plan}");
    }
}
