//! Queries with little memory go to files, which are gone afterwards, or fail with an error that says what to do.
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::{Database, OpenOptions};
use sql::{Outcome, Session, SessionOptions, SqlError};
use tempfile::TempDir;

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
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open_with(directory.path(), OpenOptions::default()).unwrap();
    let options = SessionOptions { target_partitions: Some(partitions), ..SessionOptions::default() };
    let mut session = Session::new(&db, options);
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

/// The line of a plan that has run that tells of an operator.
fn line_of(session: &mut Session, query: &str, operator: &str) -> String {
    let text: Vec<String> =
        rows(session, &format!("EXPLAIN ANALYZE {query}")).unwrap().into_iter().flatten().flatten().collect();
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
fn a_query_that_is_stopped_or_fails_leaves_no_files() {
    let (directory, mut session) = open(2);
    run(&mut session, "SET lstore.query_memory = '2MB'");
    let Outcome::Rows(mut batches) = session.execute("SELECT * FROM r ORDER BY note").unwrap() else { unreachable!() };
    batches.next().unwrap().unwrap();
    assert!(files(directory.path()) > 1, "a sort of more than the memory goes to files");
    drop(batches);
    no_files_are_left(directory.path());
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
