//! Plans that are kept: a query that comes again has the rows of the moment at which it comes, whatever has changed since its plan was
//! made, and a plan is made anew where something has changed that went into it.
//!
//! `LSTORE_KEPT_PLANS=10000` runs so many random queries.
use engine::Database;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use crate::join_order::{self, Generator};
use crate::pushdown::rows;

/// How many random queries a plain run of the tests makes.
const QUERIES: u64 = 24;

fn run(session: &mut Session, statement: &str) {
    session.execute(statement).map(drop).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

fn session() -> Session {
    Session::new(&Database::in_memory(), SessionOptions::default())
}

/// The one value that a query gives, as text.
fn value(session: &mut Session, query: &str) -> String {
    let rows = rows(session, query).unwrap_or_else(|error| panic!("{query}: {error}"));
    rows.into_iter().flatten().flatten().collect()
}

/// Whether a query was answered by a plan that had been kept, and its value.
fn again(session: &mut Session, query: &str) -> (bool, String) {
    let (_, before) = session.kept_plans();
    let value = value(session, query);
    let (_, after) = session.kept_plans();
    (after == before + 1, value)
}

#[test]
fn random_queries_see_what_has_changed_since_their_plans_were_made() {
    let count = std::env::var("LSTORE_KEPT_PLANS").ok().and_then(|count| count.parse().ok()).unwrap_or(QUERIES);
    let mut session = join_order::open();
    let mut other = Session::new(session.database(), SessionOptions::default());
    run(&mut other, "SET lstore.kept_plans = off");
    let (mut used, mut random) = (0, StdRng::seed_from_u64(5));
    for seed in 0..count {
        let query = Generator(StdRng::seed_from_u64(seed)).query();
        for _ in 0..3 {
            let (_, before) = session.kept_plans();
            let (found, expected) = (rows(&mut session, &query), rows(&mut other, &query));
            assert_eq!(found.map(sorted), expected.map(sorted), "{query}");
            used += session.kept_plans().1 - before;
            let (table, id) = (["a", "b", "c", "d"][random.random_range(0..4)], random.random_range(0..40));
            let change = match random.random_range(0..3) {
                0 => format!("UPDATE {table} SET x = x + 1, s = 'u' WHERE id = {id}"),
                1 => format!("DELETE FROM {table} WHERE id = {id}"),
                _ => format!("INSERT INTO {table} VALUES ({id}, 1, 2, 'v', 3.50) ON CONFLICT DO NOTHING"),
            };
            run(&mut other, &change);
        }
    }
    assert!(used > count, "{used} plans were kept or found for {count} queries that came three times");
    assert_eq!(other.kept_plans(), (0, 0));
}

fn sorted(mut rows: Vec<Vec<Option<String>>>) -> Vec<Vec<Option<String>>> {
    rows.sort_unstable();
    rows
}

#[test]
fn a_query_that_comes_again_is_not_planned_again() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int)");
    run(&mut session, "INSERT INTO t SELECT i, i % 7 FROM generate_series(1, 100) s (i)");
    let query = "SELECT sum(a.x * b.x) FROM t a JOIN t b ON a.x = b.id WHERE a.id > 3";
    let first = value(&mut session, query);
    assert_eq!(session.kept_plans().0, 1);
    assert_eq!(again(&mut session, query), (true, first));
    run(&mut session, "BEGIN");
    run(&mut session, "UPDATE t SET x = 1");
    assert_eq!(again(&mut session, query), (true, "97".to_owned()), "its own changes are seen");
    run(&mut session, "ROLLBACK");
    run(&mut session, "SET lstore.kept_plans = off");
    let (_, uses) = session.kept_plans();
    value(&mut session, query);
    assert_eq!(session.kept_plans().1, uses);
}

#[test]
fn the_values_of_subqueries_are_those_of_each_run() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int)");
    run(&mut session, "INSERT INTO t SELECT i, i % 7 FROM generate_series(1, 100) s (i)");
    let (mean, deep) = ("(SELECT avg(x) FROM t)", "(SELECT avg(x) FROM t WHERE id > (SELECT min(id) + 50 FROM t))");
    for query in [
        format!("SELECT count(*) FROM t WHERE x > {mean}"),
        format!("SELECT count(*) FROM (SELECT x FROM t GROUP BY x HAVING sum(id) > 10 * {mean}) g"),
        format!("SELECT count(*) FROM t WHERE x > {deep} OR x < {mean} - 2"),
    ] {
        run(&mut session, "UPDATE t SET x = id % 7");
        let fresh = |session: &mut Session| {
            run(session, "SET lstore.kept_plans = off");
            let fresh = value(session, &query);
            run(session, "SET lstore.kept_plans = on");
            fresh
        };
        value(&mut session, &query);
        for change in ["x = 100 WHERE id < 3", "x = 3 WHERE id % 2 = 0", "x = id"] {
            run(&mut session, &format!("UPDATE t SET {change}"));
            let found = again(&mut session, &query);
            assert_eq!(found, (true, fresh(&mut session)), "{query} after {change}");
        }
    }
    // Two runs of one plan that are under way at a time.
    let query = format!("SELECT id FROM t WHERE x > {mean} - 40 ORDER BY id");
    run(&mut session, "UPDATE t SET x = id");
    value(&mut session, &query);
    run(&mut session, "BEGIN");
    run(&mut session, &format!("DECLARE one CURSOR FOR {query}"));
    let first = value(&mut session, "FETCH 2 FROM one");
    run(&mut session, "UPDATE t SET x = x * 10 WHERE id > 50");
    run(&mut session, &format!("DECLARE other CURSOR FOR {query}"));
    assert_eq!(value(&mut session, "FETCH 2 FROM other"), "5152");
    assert_eq!((first.as_str(), value(&mut session, "FETCH 2 FROM one").as_str()), ("1112", "1314"));
    run(&mut session, "ROLLBACK");
}

#[test]
fn a_change_of_the_catalog_has_plans_made_anew() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int)");
    run(&mut session, "INSERT INTO t VALUES (1, 10), (2, 20)");
    run(&mut session, "CREATE VIEW v AS SELECT sum(x) AS s FROM t");
    let queries = ["SELECT s + 0 FROM v", "SELECT sum(x) + 0 FROM t", "SELECT max(x + 0) FROM t"];
    let ask = |session: &mut Session| queries.map(|query| value(session, query));
    assert_eq!(ask(&mut session), ["30", "30", "20"]);
    run(&mut session, "CREATE OR REPLACE VIEW v AS SELECT sum(x) * 2 AS s FROM t");
    assert_eq!(ask(&mut session), ["60", "30", "20"]);
    run(&mut session, "DROP VIEW v");
    run(&mut session, "ALTER TABLE t ALTER COLUMN x TYPE text USING 'v' || x");
    assert!(session.execute(queries[1]).is_err(), "there is no sum of texts");
    run(&mut session, "DROP TABLE t");
    assert!(session.execute(queries[2]).is_err());
    run(&mut session, "CREATE TABLE t (x bigint, id int)");
    run(&mut session, "INSERT INTO t VALUES (7, 1)");
    assert_eq!((value(&mut session, queries[1]), value(&mut session, queries[2])), ("7".into(), "7".into()));
}

#[test]
fn another_session_changes_the_catalog_too() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int)");
    run(&mut session, "INSERT INTO t VALUES (1, 10)");
    let query = "SELECT count(*) + sum(x) FROM t";
    assert_eq!(value(&mut session, query), "11");
    let mut other = Session::new(session.database(), SessionOptions::default());
    run(&mut session, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(value(&mut session, query), "11");
    run(&mut other, "ALTER TABLE t RENAME TO u");
    run(&mut other, "CREATE TABLE t (id int PRIMARY KEY, x int)");
    assert_eq!(value(&mut session, query), "11", "the snapshot has the old table");
    run(&mut session, "COMMIT");
    assert_eq!(value(&mut session, "SELECT count(*) + coalesce(sum(x), 0) FROM t"), "0");
}

#[test]
fn what_depends_on_session_or_time_is_not_kept() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int, at timestamptz)");
    run(&mut session, "INSERT INTO t VALUES (1, 10, now()), (2, 20, now())");
    run(&mut session, "CREATE SEQUENCE s");
    run(&mut session, "CREATE VIEW today AS SELECT * FROM t WHERE at < 'tomorrow'");
    for query in [
        "SELECT count(*) FROM t WHERE at <= now() AND x > 0 OR id + x = 1",
        "SELECT count(*) FROM t WHERE at < 'tomorrow' AND x + id > 0",
        "SELECT count(*) + 1 FROM today",
        "SELECT count(*) FROM t WHERE at > '10:00 Today' AND x + id > 0",
        "SELECT count(*) FROM t WHERE at > ('to' || 'day')::date AND x + id > 0",
        "SELECT x + 1, current_setting('application_name') FROM t",
        "SELECT x + 1 + nextval('s') FROM t",
        "SELECT x + random() FROM t",
        "SELECT x + 1, pg_backend_pid() FROM t",
        "SELECT relname FROM pg_class WHERE relname = 't'",
        "SELECT count(*) + 1 FROM information_schema.tables",
        "SELECT x + (SELECT 1) FROM t LIMIT (SELECT 1)",
        "SELECT sum(x) OVER (ORDER BY id) FROM t",
    ] {
        let (_, before) = session.kept_plans();
        for _ in 0..2 {
            rows(&mut session, query).unwrap_or_else(|error| panic!("{query}: {error}"));
        }
        let (kept, after) = session.kept_plans();
        assert!((kept, after) == (0, before), "{query}");
    }
}

#[test]
fn a_setting_and_a_path_have_plans_of_their_own() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int)");
    run(&mut session, "INSERT INTO t VALUES (1, 10)");
    let query = "SELECT sum(x + id) FROM t";
    assert_eq!(value(&mut session, query), "11");
    run(&mut session, "CREATE TEMP TABLE t (id int PRIMARY KEY, x int)");
    run(&mut session, "INSERT INTO t VALUES (1, 1)");
    assert_eq!(value(&mut session, query), "2", "a temporary table hides the other");
    run(&mut session, "DROP TABLE pg_temp.t");
    assert_eq!(value(&mut session, query), "11");
}

#[test]
fn a_table_that_grows_has_its_plans_made_anew() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int)");
    run(&mut session, "INSERT INTO t SELECT i, i FROM generate_series(1, 2000) s (i)");
    let query = "SELECT sum(x + id) FROM t";
    value(&mut session, query);
    let found = |session: &mut Session| {
        let kept = session.kept_plans();
        let text = value(session, query);
        (session.kept_plans().1 - kept.1, text)
    };
    assert_eq!(found(&mut session), (1, (2000_u64 * 2001).to_string()));
    run(&mut session, "INSERT INTO t SELECT i, i FROM generate_series(2001, 9000) s (i)");
    session.execute("SELECT 1 FROM t WHERE x + id < 0").map(drop).unwrap();
    let (_, before) = session.kept_plans();
    assert_eq!(value(&mut session, query), (9000_u64 * 9001).to_string());
    assert_eq!(session.kept_plans(), (2, before + 1), "it was made and kept once more");
}
