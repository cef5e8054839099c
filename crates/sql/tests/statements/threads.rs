//! A session has its queries use fewer threads, and plans that are kept serve the number that they were made for.
use engine::{Database, OpenOptions};
use sql::{Session, SessionOptions};

use crate::pushdown::rows;

const QUERY: &str = "SELECT k, sum(x) FROM t GROUP BY k ORDER BY k LIMIT 3";

/// A session of four threads, with a table of many ranges.
fn open() -> Session {
    let db = Database::in_memory_with(&OpenOptions { range_records: Some(4096), ..OpenOptions::default() });
    let options = SessionOptions { target_partitions: Some(4), ..SessionOptions::default() };
    let mut session = Session::new(&db, options);
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, k int, x int)");
    run(&mut session, "INSERT INTO t SELECT i, i / 2, i % 7 FROM generate_series(1, 100000) s (i)");
    db.merge_now();
    session
}

fn run(session: &mut Session, statement: &str) {
    session.execute(statement).map(drop).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

/// In how many parts the table is read, and the groups are put together.
fn parts(session: &mut Session) -> (usize, usize) {
    let lines = rows(session, &format!("EXPLAIN (OPERATORS) {QUERY}")).unwrap();
    let plan: String = lines.into_iter().flatten().flatten().collect();
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_else(|_| panic!("{plan}"))
    };
    let scanned = plan.split("columns=[k, x], partitions=").nth(1).map(number);
    let dealt = plan.split("partitioning=Hash([k@0], ").nth(1).map_or(1, number);
    (scanned.unwrap_or_else(|| panic!("{plan}")), dealt)
}

#[test]
fn a_query_uses_as_many_threads_as_its_session_says() {
    let mut session = open();
    assert_eq!(parts(&mut session), (4, 4));
    let expected = rows(&mut session, QUERY).unwrap();
    for (setting, threads) in [
        ("max_parallel_workers_per_gather = 0", 1),
        ("max_parallel_workers_per_gather = 2", 3),
        ("max_parallel_workers_per_gather = 1024", 4),
        ("lstore.threads = 2", 2),
    ] {
        run(&mut session, &format!("SET {setting}"));
        assert_eq!(parts(&mut session), (threads, threads), "{setting}");
        // The plan is kept, and found.
        for _ in 0..2 {
            assert_eq!(rows(&mut session, QUERY).unwrap(), expected, "{setting}");
        }
        assert_eq!(session.kept_plans().0, 1, "a plan serves for one number of threads");
        run(&mut session, &format!("RESET {}", setting.split(' ').next().unwrap()));
        assert_eq!(parts(&mut session), (4, 4), "after {setting}");
    }
}

#[test]
fn a_database_remembers_the_threads_of_its_sessions() {
    let mut session = open();
    run(&mut session, "ALTER DATABASE lstore SET max_parallel_workers_per_gather = 0");
    assert_eq!(parts(&mut session), (4, 4), "sessions to come begin with it");
    let options = SessionOptions { target_partitions: Some(4), ..SessionOptions::default() };
    let mut other = Session::new(session.database(), options);
    assert_eq!(parts(&mut other), (1, 1));
    run(&mut other, "SET lstore.threads = 2");
    assert_eq!(parts(&mut other), (2, 2));
    run(&mut other, "RESET ALL");
    assert_eq!(parts(&mut other), (1, 1));
}
