//! The cost model in plans: joins by merging give the rows that joins by hashing give, evicted tables are read through an index only
//! where that costs less, and what was set is shown, remembered, and told by `EXPLAIN (OPERATORS, COSTS)`.
use engine::{Database, OpenOptions};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sql::{Session, SessionOptions};

use crate::join_order::{Generator, open};
use crate::pushdown::rows;

fn run(session: &mut Session, statement: &str) {
    session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

fn plan(session: &mut Session, explain: &str, query: &str) -> String {
    let lines = rows(session, &format!("{explain} {query}")).unwrap();
    lines.into_iter().flatten().flatten().collect::<Vec<String>>().join("\n")
}

/// Has all joins by equal keys that can be done by merging done so.
fn prefer_merging(session: &mut Session) {
    run(session, "SET lstore.operator_memory = '1B'");
    run(session, "SET lstore.random_write_cost = 1000000");
}

#[test]
fn joins_by_merging_give_the_rows_of_joins_by_hashing() {
    let mut session = open();
    let mut merged = 0;
    for seed in 0..40 {
        let query = format!("SELECT * FROM ({}) q LIMIT 200000", Generator(StdRng::seed_from_u64(seed)).query());
        let mut hashed = rows(&mut session, &query);
        prefer_merging(&mut session);
        merged += usize::from(plan(&mut session, "EXPLAIN (OPERATORS)", &query).contains("SortMergeJoin"));
        let mut answer = rows(&mut session, &query);
        run(&mut session, "RESET lstore.operator_memory");
        run(&mut session, "RESET lstore.random_write_cost");
        [&mut hashed, &mut answer].into_iter().flatten().for_each(|lines| lines.sort_unstable());
        assert_eq!(hashed, answer, "seed {seed}: {query}");
    }
    assert!(merged > 10, "{merged} plans of 40 merge");
}

#[test]
fn a_join_is_merged_where_random_writes_are_dear_and_the_original_model_does_not_see_that() {
    let mut session = open();
    let query = "SELECT count(*) FROM a JOIN d ON a.id = d.id";
    assert!(
        !plan(&mut session, "EXPLAIN (OPERATORS)", query).contains("SortMergeJoin"),
        "memory has no limit by default"
    );
    prefer_merging(&mut session);
    assert!(plan(&mut session, "EXPLAIN (OPERATORS)", query).contains("SortMergeJoin"));
    run(&mut session, "SET lstore.cost_model = original");
    assert!(!plan(&mut session, "EXPLAIN (OPERATORS)", query).contains("SortMergeJoin"));
}

#[test]
fn an_evicted_table_is_read_through_an_index_where_that_costs_less() {
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions { range_records: Some(4096), ..OpenOptions::default() };
    let db = Database::open_with(folder.path(), sql::with_expressions(options)).unwrap();
    let mut session = Session::new(&db, SessionOptions::default());
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int, s text)");
    run(&mut session, "INSERT INTO t SELECT g, g % 1000, 'text ' || g FROM generate_series(1, 20000) g");
    run(&mut session, "CREATE INDEX t_x ON t (x)");
    db.merge_now();
    let query = "SELECT count(s) FROM t WHERE x BETWEEN 10 AND 19";
    run(&mut session, "SET random_page_cost = 1000000000");
    assert!(plan(&mut session, "EXPLAIN (OPERATORS)", query).contains("IndexScanExec"), "memory is read as before");
    run(&mut session, "CHECKPOINT");
    assert!(db.evict_now(u64::MAX) > 0);
    assert!(
        !plan(&mut session, "EXPLAIN (OPERATORS)", query).contains("IndexScanExec"),
        "each row is a page from anywhere"
    );
    run(&mut session, "SET random_page_cost = 1");
    assert!(plan(&mut session, "EXPLAIN (OPERATORS)", query).contains("IndexScanExec"));
    let costs = |session: &mut Session| plan(session, "EXPLAIN (OPERATORS, COSTS)", "SELECT s FROM t");
    let away = costs(&mut session);
    rows(&mut session, "SELECT sum(x), max(s), sum(id) FROM t").unwrap();
    assert_ne!(away, costs(&mut session), "what is in memory costs less");
}

#[test]
fn costs_are_explained_in_the_form_of_postgresql_where_they_are_asked_for() {
    let mut session = open();
    let query = "SELECT a.id FROM a JOIN d ON a.id = d.id ORDER BY a.n";
    let told = plan(&mut session, "EXPLAIN (OPERATORS, COSTS)", query);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines.len() > 3, "{told}");
    let total = |line: &str| -> f64 {
        let (_, costs) = line.split_once("  (cost=").unwrap_or_else(|| panic!("{line}"));
        let (range, rest) = costs.split_once(" rows=").unwrap();
        assert!(rest.contains(" width=") && rest.ends_with(')'), "{line}");
        let (startup, total) = range.split_once("..").unwrap();
        let (startup, total): (f64, f64) = (startup.parse().unwrap(), total.parse().unwrap());
        assert!(startup <= total, "{line}");
        total
    };
    assert!(lines[1..].iter().all(|line| line.starts_with("  ") && total(line) <= total(lines[0])), "{told}");
    assert!(!plan(&mut session, "EXPLAIN (OPERATORS)", query).contains("(cost="));
    assert!(!plan(&mut session, "EXPLAIN (OPERATORS, COSTS OFF)", query).contains("(cost="));
    assert!(session.execute("EXPLAIN (COSTS, WRONG) SELECT 1").is_err());
}

#[test]
fn sessions_begin_with_the_coefficients_that_the_database_remembers() {
    let db = Database::in_memory();
    let mut session = Session::new(&db, SessionOptions::default());
    run(&mut session, "ALTER DATABASE lstore SET random_page_cost = 1.25");
    run(&mut session, "ALTER DATABASE lstore SET lstore.cost_model = 'original'");
    let mut next = Session::new(&db, SessionOptions::default());
    let shown = |session: &mut Session, name: &str| plan(session, "SHOW", name);
    assert_eq!(shown(&mut next, "random_page_cost"), "1.25");
    assert_eq!(shown(&mut next, "lstore.cost_model"), "original");
    assert_eq!(shown(&mut session, "random_page_cost"), "4");
}
