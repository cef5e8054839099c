//! Queries with little memory give the rows that they give with plenty, by way of files that are gone afterwards.
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::{Database, OpenOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Outcome, Session, SessionOptions, SqlError};
use tempfile::TempDir;

/// So many random queries; `LSTORE_SPILLING` says how many instead.
const QUERIES: u64 = 16;

const LEFT_ROWS: u64 = 24_000;
const RIGHT_ROWS: u64 = 30_000;

fn rows(session: &mut Session, text: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
    let Outcome::Rows(batches) = session.execute(text)? else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    for batch in batches {
        let batch = batch?;
        let line = |at| batch.columns().iter().map(|column| sql::text_value(column, at)).collect();
        lines.extend((0..batch.num_rows()).map(line));
    }
    Ok(lines)
}

fn run(session: &mut Session, text: &str) {
    rows(session, text).map(drop).unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// A database in a directory with two tables that share keys; some keys are NULL, or of one table only.
fn open(partitions: usize) -> (TempDir, Session) {
    open_with(partitions, OpenOptions::default())
}

fn open_with(partitions: usize, ranges: OpenOptions) -> (TempDir, Session) {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open_with(directory.path(), ranges).unwrap();
    let options = SessionOptions { target_partitions: Some(partitions), ..SessionOptions::default() };
    let mut session = Session::new(&db, options);
    // Operators that wait for each other are an error, not a test without end.
    run(&mut session, "SET statement_timeout = '1min'");
    run(
        &mut session,
        "CREATE TABLE l (id bigint PRIMARY KEY, k bigint, small integer, price numeric(15,2), name text)",
    );
    run(&mut session, "CREATE TABLE r (id bigint PRIMARY KEY, k bigint, small integer, rate numeric(6,4), note text)");
    let (left, right) = (LEFT_ROWS, RIGHT_ROWS);
    run(
        &mut session,
        &format!(
            "INSERT INTO l SELECT i, nullif(i * 7919 % {left}, 3), i % 97, i * 1.25, 'a name that is long enough for a page ' || i % 5000 \
             FROM generate_series(1, {left}) s (i)"
        ),
    );
    run(
        &mut session,
        &format!(
            "INSERT INTO r SELECT i, nullif(i * 10007 % {right}, 5), nullif(i % 89, 1), (i % 100) * 0.0125, \
             'a note that takes some bytes of its own ' || i FROM generate_series(1, {right}) s (i)"
        ),
    );
    session.database().merge_now();
    (directory, session)
}

/// How many files queries have in a directory now.
fn files(directory: &Path) -> usize {
    let Ok(folders) = fs::read_dir(directory.join("temporary")) else { return 0 };
    folders.map(|folder| fs::read_dir(folder.unwrap().path()).map_or(1, |files| 1 + files.count())).sum()
}

/// Waits until no query has files: what a query that was stopped has goes when its tasks have ended.
fn no_files_are_left(directory: &Path) {
    let until = Instant::now() + Duration::from_secs(20);
    while files(directory) > 0 {
        assert!(Instant::now() < until, "{} files are left", files(directory));
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Generator(StdRng);

impl Generator {
    fn of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.0.random_range(0..from.len())]
    }

    fn query(&mut self) -> String {
        let on =
            self.of(&["l.k = r.k", "l.id = r.k", "l.k = r.k AND l.small < r.small", "l.id = r.id AND l.name < r.note"]);
        match self.of(&["join", "join", "semi", "groups", "sort", "distinct", "union"]) {
            "join" => {
                let kind = self.of(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
                let what =
                    self.of(&["l.name, r.note, l.price * r.rate", "count(*), sum(price), max(note)", "l.id, r.*"]);
                format!("SELECT {what} FROM l {kind} r ON {on}{}", self.condition())
            }
            "semi" => {
                let not = self.of(&["", "NOT "]);
                format!("SELECT id, name, price FROM l WHERE {not}EXISTS (SELECT FROM r WHERE {on})")
            }
            "groups" => {
                let key = self.of(&["l.name", "l.id, l.name", "r.note", "l.k % 1000, r.id"]);
                let what = self.of(&["count(*)", "sum(price)", "avg(price), min(note)", "count(DISTINCT r.small)"]);
                let mut text = format!("SELECT {key}, {what} FROM l JOIN r ON l.k = r.k GROUP BY {key}");
                if self.0.random_range(0..3) == 0 {
                    write!(text, " HAVING {}", self.of(&["count(*) > 1", "sum(price) > 1000"])).unwrap();
                }
                text
            }
            "sort" => {
                let order = self.of(&["note DESC, id", "rate, note", "small DESC NULLS LAST, note"]);
                format!("SELECT id, small, note FROM r{} ORDER BY {order}", self.of(&["", " WHERE id % 10 <> 3"]))
            }
            "distinct" => format!("SELECT DISTINCT note, {} FROM r", self.of(&["small", "rate", "id % 2"])),
            _ => "SELECT k, name FROM l UNION SELECT k, note FROM r".to_owned(),
        }
    }

    fn condition(&mut self) -> &'static str {
        self.of(&["", "", " WHERE l.small > 3 OR r.small IS NULL", " WHERE l.price > 500"])
    }
}

/// The rows that a query gives with so much memory; sorted where it leaves their order open.
fn answer(session: &mut Session, query: &str, memory: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
    run(session, &format!("SET lstore.query_memory = '{memory}'"));
    let mut found = rows(session, query)?;
    if !query.contains("ORDER BY") {
        found.sort_unstable();
    }
    Ok(found)
}

#[test]
fn random_queries_with_little_memory_give_the_rows_that_they_give_with_plenty() {
    let count = std::env::var("LSTORE_SPILLING").ok().and_then(|count| count.parse().ok()).unwrap_or(QUERIES);
    let mut databases = [open(1), open(2)];
    for seed in 0..count {
        let (directory, session) = &mut databases[usize::from(seed % 3 > 0)];
        let query = Generator(StdRng::seed_from_u64(seed)).query();
        let expected = answer(session, &query, "none").unwrap_or_else(|error| panic!("seed {seed}: {query}: {error}"));
        let found = answer(session, &query, "2MB").unwrap_or_else(|error| panic!("seed {seed}: {query}: {error}"));
        assert!(found == expected, "seed {seed}: {query}: {} and {} rows", found.len(), expected.len());
        no_files_are_left(directory.path());
    }
}

#[test]
fn inputs_that_are_dealt_out_to_files_side_by_side_do_not_wait_for_each_other() {
    let (_directory, mut session) = open(2);
    for query in [
        "SELECT name FROM l UNION SELECT note FROM r",
        "SELECT k, count(*), max(name) FROM (SELECT k, name FROM l UNION ALL SELECT k, note FROM r) s GROUP BY k",
    ] {
        let expected = answer(&mut session, query, "none").unwrap();
        // Which file is written while another one is read depends on the threads.
        for _ in 0..8 {
            assert!(answer(&mut session, query, "3MB").unwrap() == expected, "{query}");
        }
    }
}

#[test]
fn a_sort_by_keys_that_are_longer_than_its_rows_goes_to_files() {
    for partitions in [1, 2] {
        let (_directory, mut session) = open(partitions);
        for query in
            ["SELECT id, note FROM r ORDER BY note, id", "SELECT small, k, id FROM r ORDER BY small DESC, k, id"]
        {
            let expected = answer(&mut session, query, "none").unwrap();
            assert!(answer(&mut session, query, "1MB").unwrap() == expected, "{query}");
        }
    }
}

/// The line of a plan that has run that tells of an operator.
fn line_of(session: &mut Session, query: &str, operator: &str) -> String {
    let text: Vec<String> = rows(session, &format!("EXPLAIN (ANALYZE, OPERATORS) {query}"))
        .unwrap()
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    let text = text.join("\n");
    let found = text.lines().find(|line| line.contains(operator)).map(str::to_owned);
    found.unwrap_or_else(|| panic!("{operator} is not in {text}"))
}

#[test]
fn a_plan_shows_what_its_operators_have_spilled() {
    let (_directory, mut session) = open(2);
    for (memory, query, operator) in [
        ("1MB", "SELECT count(l.name || r.note) FROM l JOIN r ON l.k = r.k", "SpillingJoinExec: "),
        ("2MB", "SELECT id, note FROM r ORDER BY note", "SortExec: "),
    ] {
        run(&mut session, &format!("SET lstore.query_memory = '{memory}'"));
        let line = line_of(&mut session, query, operator);
        assert!(line.contains("spilled_bytes=") && !line.contains("spilled_bytes=0.0 B"), "{line}");
    }
}

#[test]
fn tables_that_several_threads_scan_are_joined_by_way_of_files_too() {
    let ranges = OpenOptions { range_records: Some(4_096), ..OpenOptions::default() };
    let (_directory, mut session) = open_with(2, ranges);
    let query = "SELECT count(l.name || r.note), sum(price) FROM l JOIN r ON l.k = r.k";
    let expected = answer(&mut session, query, "none").unwrap();
    assert!(answer(&mut session, query, "1MB").unwrap() == expected);
}

#[test]
fn a_join_of_tables_that_several_threads_scan_spills_from_the_start_too() {
    let ranges = OpenOptions { range_records: Some(4_096), ..OpenOptions::default() };
    let (_directory, mut session) = open_with(2, ranges);
    let query = "SELECT count(l.name || r.note), sum(price) FROM l JOIN r ON l.id = r.id";
    let expected = answer(&mut session, query, "none").unwrap();
    // A merge join would sort, which costs more than what it has to write in order.
    run(&mut session, "SET lstore.operator_memory = '128kB'");
    run(&mut session, "SET lstore.seq_write_cost = 1000");
    let line = line_of(&mut session, query, "SpillingJoinExec: ");
    assert!(!line.contains("spilled_bytes=0.0 B") && !line.contains("spill_count=0"), "{line}");
    assert!(answer(&mut session, query, "none").unwrap() == expected);
}

#[test]
fn groups_that_keep_their_rows_in_an_order_take_little_more_than_these() {
    for partitions in [1, 2] {
        let (directory, mut session) = open(partitions);
        for query in [
            "SELECT k, array_agg(name ORDER BY price DESC) FROM l GROUP BY k",
            "SELECT small, array_agg(id ORDER BY price) FROM l GROUP BY small",
            "SELECT name, string_agg(small::text, ',' ORDER BY price DESC) FROM l GROUP BY name",
            "SELECT note, array_agg(DISTINCT small ORDER BY small DESC) FROM r GROUP BY note",
        ] {
            let mut expected = answer(&mut session, query, "none").unwrap();
            let mut found = answer(&mut session, query, "1MB").unwrap_or_else(|error| panic!("{query}: {error:?}"));
            // What is ordered are the rows of a group.
            expected.sort_unstable();
            found.sort_unstable();
            assert!(found == expected, "{partitions}: {query}");
            no_files_are_left(directory.path());
        }
    }
}

#[test]
fn a_query_that_is_stopped_or_fails_leaves_no_files() {
    let (directory, mut session) = open(2);
    run(&mut session, "SET lstore.query_memory = '2MB'");
    let cancel = session.cancel_handle();
    for (memory, query) in [
        ("2MB", "SELECT * FROM r ORDER BY note"),
        ("1MB", "SELECT l.name, r.note FROM l JOIN r ON l.k = r.k"),
        ("1MB", "SELECT note, small, count(*) FROM r GROUP BY note, small"),
    ] {
        run(&mut session, &format!("SET lstore.query_memory = '{memory}'"));
        for is_canceled in [false, true] {
            let Outcome::Rows(mut batches) = session.execute(query).unwrap() else { unreachable!() };
            batches.next().unwrap().unwrap();
            assert!(files(directory.path()) > 1, "what is more than the memory goes to files: {query}");
            if is_canceled {
                cancel.cancel();
                let error = batches.find_map(Result::err).unwrap();
                assert_eq!(error.sqlstate, "57014", "{query}");
            }
            drop(batches);
            no_files_are_left(directory.path());
        }
    }
    let failing = "SELECT 1 / (id - 30000) FROM (SELECT id, note FROM r ORDER BY note OFFSET 0) s";
    assert_eq!(rows(&mut session, failing).unwrap_err().sqlstate, "22012");
    no_files_are_left(directory.path());
}

#[test]
fn a_key_with_more_rows_than_memory_is_an_error_that_says_what_to_do() {
    let (directory, mut session) = open(2);
    run(&mut session, "CREATE TABLE one AS SELECT 1::bigint AS k, note || id AS note FROM r");
    run(&mut session, "SET lstore.query_memory = '1MB'");
    let error = rows(&mut session, "SELECT count(a.note || b.note) FROM one a JOIN one b USING (k)").unwrap_err();
    assert!(error.sqlstate == "53200" && error.hint.unwrap().contains("SET lstore.query_memory"), "{}", error.message);
    no_files_are_left(directory.path());
    // A number of a sequence is taken once, or the statement fails.
    run(&mut session, "CREATE SEQUENCE numbers");
    let twice = "SELECT nextval('numbers'), l.name, r.note FROM l JOIN r ON l.k = r.k";
    assert_eq!(rows(&mut session, twice).unwrap_err().sqlstate, "53200");
}

#[test]
fn groups_of_which_the_memory_holds_a_part_are_found_by_way_of_files() {
    for partitions in [1, 2] {
        let (directory, mut session) = open(partitions);
        for query in [
            "SELECT l.name, r.note, count(*), sum(price) FROM l JOIN r ON l.k = r.k GROUP BY l.name, r.note",
            "SELECT r.note, count(DISTINCT small), min(note) FROM r GROUP BY r.note",
            "SELECT DISTINCT note, small FROM r",
        ] {
            let expected = answer(&mut session, query, "none").unwrap();
            let found = answer(&mut session, query, "1MB").unwrap_or_else(|error| panic!("{query}: {error:?}"));
            assert!(found == expected, "{partitions}: {query}");
            no_files_are_left(directory.path());
        }
    }
}

#[test]
fn groups_of_a_query_that_runs_once_go_to_files_too() {
    let (_directory, mut session) = open(1);
    run(&mut session, "CREATE SEQUENCE numbers");
    let query = "SELECT note, count(nextval('numbers')) FROM r GROUP BY note";
    let expected = answer(&mut session, query, "none").unwrap();
    assert!(answer(&mut session, query, "4MB").unwrap() == expected);
    let taken = rows(&mut session, "SELECT nextval('numbers')").unwrap()[0][0].clone().unwrap();
    assert_eq!(taken.parse::<u64>().unwrap(), 2 * RIGHT_ROWS + 1, "each of two runs took one number a row");
}

#[test]
fn a_join_that_is_expected_to_be_large_spills_from_the_start_and_costs_what_it_writes() {
    let (_directory, mut session) = open(2);
    run(&mut session, "SET lstore.query_memory = 'none'");
    let query = "SELECT l.id, r.note FROM l JOIN r ON l.id = r.id ORDER BY l.id, r.note LIMIT 2000";
    let expected = rows(&mut session, query).unwrap();
    let total = |line: &str| line.split("..").nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
    let costs = |session: &mut Session| {
        let told = rows(session, &format!("EXPLAIN (OPERATORS, COSTS) {query}")).unwrap();
        let told: Vec<String> = told.into_iter().flatten().flatten().collect();
        told.into_iter().find(|line| line.contains("JoinExec: ")).unwrap()
    };
    let in_memory = costs(&mut session);
    // A merge join would sort, which costs more than what it has to write in order.
    run(&mut session, "SET lstore.operator_memory = '128kB'");
    run(&mut session, "SET lstore.seq_write_cost = 1000");
    let spilling = costs(&mut session);
    assert!(spilling.contains("SpillingJoinExec: ") && !in_memory.contains("Spilling"), "{in_memory} {spilling}");
    assert!(total(&spilling) > total(&in_memory) + 100.0, "{in_memory} {spilling}");
    run(&mut session, "SET lstore.random_write_cost = 50");
    let dearer = costs(&mut session);
    assert!(dearer.contains("Spilling") && total(&dearer) > total(&spilling) + 100.0, "equation 36: {dearer}");
    run(&mut session, "SET lstore.random_write_cost = 1");
    assert!(rows(&mut session, query).unwrap() == expected);
    let line = line_of(&mut session, query, "SpillingJoinExec: ");
    assert!(!line.contains("spilled_bytes=0.0 B") && !line.contains("spill_count=0"), "{line}");
}
