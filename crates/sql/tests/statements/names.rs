//! Names beside each other: sessions that empty, drop, make or rename a table, and sessions that read it meanwhile.
//! A reader sees what some commit left, whichever way it goes: by scan, key, index or prepared statement, with or
//! without a transaction.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::{Database, Value};
use sql::{FileAccess, NoInput, Outcome, PreparedStatement, Session, SessionOptions, SqlError, text_value};

fn session(db: &Database) -> Session {
    Session::new(
        db,
        SessionOptions { files: FileAccess::Denied, target_partitions: Some(1), ..SessionOptions::default() },
    )
}

/// Rows as text, with blanks between columns and commas between rows.
fn read(outcome: Outcome) -> Result<String, SqlError> {
    let rows = match outcome {
        Outcome::Done(command) => return Ok(command.tag),
        Outcome::Rows(rows) => rows,
    };
    let mut lines = Vec::new();
    for batch in rows {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let cell = |array: &arrow_array::ArrayRef| text_value(array.as_ref(), row).unwrap_or("NULL".to_owned());
            lines.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" "));
        }
    }
    Ok(lines.join(","))
}

fn run(session: &mut Session, statement: &str) -> Result<String, SqlError> {
    session.execute(statement).and_then(read)
}

fn done(session: &mut Session, statement: &str) -> String {
    run(session, statement).unwrap_or_else(|error| panic!("{statement}: {} {error}", error.sqlstate))
}

fn code(session: &mut Session, statement: &str) -> &'static str {
    run(session, statement).expect_err(statement).sqlstate
}

const FILL: &str = "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)";
const MAKE: [&str; 2] = ["CREATE TABLE t (id INT PRIMARY KEY, x INT)", "CREATE INDEX t_x ON t (x)"];

fn open() -> Database {
    let db = Database::in_memory();
    let mut first = session(&db);
    MAKE.iter().chain([&FILL]).for_each(|statement| drop(done(&mut first, statement)));
    db
}

/// Puts other rows in the place of those that are there, in several ways.
fn replace(session: &mut Session, way: u64) {
    done(session, "BEGIN");
    match way % 3 {
        0 => drop(done(session, "TRUNCATE t")),
        1 => {
            done(session, "DROP TABLE t PURGE");
            MAKE.iter().for_each(|statement| drop(done(session, statement)));
        }
        _ => {
            done(session, "ALTER TABLE t RENAME TO former");
            done(session, MAKE[0]);
            done(session, "DROP TABLE former");
            done(session, MAKE[1]);
        }
    }
    done(session, FILL);
    done(session, "COMMIT");
}

/// The questions, each with the only answer there ever was.
const QUESTIONS: [(&str, &str); 6] = [
    ("SELECT count(*) FROM t", "3"),
    ("SELECT sum(x) FROM t WHERE x + 0 > 0", "6"),
    ("SELECT x FROM t WHERE id = 2", "2"),
    ("SELECT id FROM t WHERE x = 3", "3"),
    ("SELECT count(*) FROM t AS a JOIN t AS b ON a.id = b.x", "3"),
    ("SELECT count(*) FROM pg_class WHERE relname = 't'", "1"),
];

/// Each question again and again, as a statement and prepared, until the time is up; returns how many were answered.
fn ask(db: &Database, begin: Option<&str>, is_over: &AtomicBool) -> u64 {
    let mut session = session(db);
    let prepared: Vec<Arc<PreparedStatement>> =
        QUESTIONS.iter().map(|(question, _)| Arc::new(session.prepare(question, &[]).unwrap())).collect();
    let by_key = Arc::new(session.prepare("SELECT x FROM t WHERE id = $1", &[]).unwrap());
    let mut answered = 0;
    while !is_over.load(Ordering::Relaxed) {
        begin.into_iter().for_each(|begin| drop(done(&mut session, begin)));
        for ((question, answer), prepared) in QUESTIONS.iter().zip(&prepared) {
            assert_eq!(done(&mut session, question), *answer, "{question}");
            let outcome = session.execute_prepared(prepared, &[], &mut NoInput).and_then(read);
            assert_eq!(outcome.as_deref().ok(), Some(*answer), "{question}, prepared: {outcome:?}");
        }
        let outcome = session.execute_prepared(&by_key, &[Value::Integer(3)], &mut NoInput).and_then(read);
        assert_eq!(outcome.as_deref().ok(), Some("3"), "{outcome:?}");
        begin.into_iter().for_each(|_| drop(done(&mut session, "COMMIT")));
        answered += 1;
    }
    answered
}

#[test]
fn nobody_ever_sees_a_table_without_the_rows_that_it_always_had() {
    let db = open();
    let (is_over, replaced) = (AtomicBool::new(false), AtomicU64::new(0));
    let begins = [
        None,
        None,
        Some("BEGIN"),
        Some("BEGIN ISOLATION LEVEL REPEATABLE READ"),
        Some("BEGIN ISOLATION LEVEL SERIALIZABLE"),
    ];
    let answered: Vec<u64> = thread::scope(|scope| {
        let (db, is_over, replaced) = (&db, &is_over, &replaced);
        let asking: Vec<_> = begins.into_iter().map(|begin| scope.spawn(move || ask(db, begin, is_over))).collect();
        scope.spawn(move || {
            let mut session = session(db);
            while !is_over.load(Ordering::Relaxed) {
                replace(&mut session, replaced.fetch_add(1, Ordering::Relaxed));
            }
        });
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(3)
            || replaced.load(Ordering::Relaxed) < 10 && started.elapsed() < Duration::from_secs(60)
        {
            thread::sleep(Duration::from_millis(10));
            if asking.iter().any(|asking| asking.is_finished()) {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    assert!(answered.iter().all(|answered| *answered > 0) && replaced.into_inner() >= 10, "{answered:?}");
}

#[test]
fn a_snapshot_keeps_its_names_and_its_rows() {
    for level in ["REPEATABLE READ", "SERIALIZABLE", "REPEATABLE READ READ ONLY"] {
        for change in [
            &["TRUNCATE t"][..],
            &["DROP TABLE t"],
            &["DROP TABLE t PURGE", MAKE[0]],
            &["ALTER TABLE t RENAME TO u"],
            &["ALTER TABLE t RENAME TO u", MAKE[0], "INSERT INTO t VALUES (7, 7)"],
            &["DROP INDEX t_x", "CREATE TABLE other (a INT)"],
        ] {
            let db = open();
            let [mut reader, mut changer] = [0; 2].map(|_| session(&db));
            let scan = Arc::new(reader.prepare("SELECT id, x FROM t ORDER BY id", &[]).unwrap());
            let key = Arc::new(reader.prepare("SELECT x FROM t WHERE id = $1", &[]).unwrap());
            done(&mut reader, &format!("BEGIN ISOLATION LEVEL {level}"));
            done(&mut reader, "SELECT 1");
            assert_eq!(done(&mut reader, "SELECT count(*) FROM t"), "3");
            change.iter().for_each(|statement| drop(done(&mut changer, statement)));
            for (question, answer) in QUESTIONS {
                assert_eq!(done(&mut reader, question), answer, "{level}, after {change:?}: {question}");
            }
            let names = "SELECT relname FROM pg_class WHERE relname IN ('t', 'u', 'other') ORDER BY 1";
            assert_eq!(done(&mut reader, names), "t", "{level}, after {change:?}");
            assert_eq!(done(&mut reader, "SELECT table_name FROM lstore_tables"), "t");
            let rows = reader.execute_prepared(&scan, &[], &mut NoInput).and_then(read);
            assert_eq!(rows.unwrap(), "1 1,2 2,3 3", "{level}, after {change:?}");
            let row = reader.execute_prepared(&key, &[Value::Integer(2)], &mut NoInput).and_then(read);
            assert_eq!(row.unwrap(), "2", "{level}, after {change:?}");
            assert!(reader.describe(&scan).unwrap().is_some());
            done(&mut reader, "COMMIT");
        }
    }
}

#[test]
fn to_write_to_what_is_gone_since_the_snapshot_is_a_conflict() {
    let renamed = "ALTER TABLE t RENAME TO u; CREATE TABLE t (id INT)";
    let rows = [
        "INSERT INTO t VALUES (9, 9)",
        "UPDATE t SET x = 0 WHERE id = 1",
        "DELETE FROM t WHERE x > 1",
        "SELECT * FROM t FOR UPDATE",
    ];
    for change in ["TRUNCATE t", "DROP TABLE t", renamed] {
        // The rows of a table that was renamed are still there to be written to.
        let rows = rows.into_iter().filter(|_| change != renamed);
        for write in rows.chain(["TRUNCATE t", "DROP TABLE t", "ALTER TABLE t RENAME TO v"]) {
            let db = open();
            let [mut writer, mut changer] = [0; 2].map(|_| session(&db));
            done(&mut writer, "BEGIN ISOLATION LEVEL REPEATABLE READ");
            assert_eq!(done(&mut writer, "SELECT count(*) FROM t"), "3");
            change.split(';').for_each(|statement| drop(done(&mut changer, statement)));
            let error = run(&mut writer, write).expect_err(write);
            assert_eq!(error.sqlstate, "40001", "{write} after {change}: {error}");
            assert_eq!(code(&mut writer, "SELECT 1"), "25P02");
            done(&mut writer, "ROLLBACK");
        }
    }
}

/// Random transactions of several connections, each on ranges of its own; what they did is done again from the list of
/// changes, on a table that knows rows by their keys alone.
#[test]
fn changes_done_one_by_one_give_the_rows_after_each_commit() {
    let db = open();
    let keys = 12;
    thread::scope(|scope| {
        for number in 0..4_u64 {
            let db = &db;
            scope.spawn(move || {
                let (mut session, mut seed) = (session(db), number + 1);
                let mut draw = |below: u64| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (seed >> 33) % below
                };
                for _ in 0..120 {
                    let level = ["READ COMMITTED", "REPEATABLE READ"][draw(2) as usize];
                    done(&mut session, &format!("BEGIN ISOLATION LEVEL {level}"));
                    let is_emptied = draw(15) == 0;
                    let fails = (0..1 + draw(5)).any(|at| {
                        let (key, other) = (draw(keys), draw(keys));
                        let statement = match draw(4) {
                            _ if is_emptied && at == 0 => "TRUNCATE t".to_owned(),
                            0 => format!("INSERT INTO t VALUES ({key}, {})", draw(1_000)),
                            1 => format!("DELETE FROM t WHERE id = {key}"),
                            2 => format!("UPDATE t SET x = {} WHERE id = {key}", draw(1_000)),
                            _ => format!("UPDATE t SET id = {other} WHERE id = {key}"),
                        };
                        run(&mut session, &statement).is_err()
                    });
                    done(&mut session, if fails { "ROLLBACK" } else { "COMMIT" });
                }
            });
        }
    });
    let mut reader = session(&db);
    let changes = done(&mut reader, "SELECT commit, kind, old_id, old_x, new_id, new_x FROM lstore_changes('t', 0)");
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    let lines: Vec<Vec<&str>> = changes.split(',').map(|line| line.split(' ').collect()).collect();
    for (at, line) in lines.iter().enumerate() {
        let [commit, kind, old_id, old_x, new_id, new_x] = line[..] else { panic!("{line:?}") };
        if old_id != "NULL" {
            assert_eq!(rows.remove(old_id).as_deref(), Some(old_x), "{line:?}");
        }
        if new_id != "NULL" {
            assert_eq!(
                rows.insert(new_id.to_owned(), new_x.to_owned()),
                None,
                "{kind} of a key that is taken: {line:?}"
            );
        }
        if lines.get(at + 1).is_none_or(|next| next[0] != commit) {
            let then = done(&mut reader, &format!("SELECT id, x FROM t FOR SYSTEM_TIME AS OF {commit}"));
            let then = then.split(',').filter_map(|row| row.split_once(' '));
            let then: BTreeMap<String, String> = then.map(|(id, x)| (id.to_owned(), x.to_owned())).collect();
            assert_eq!(rows, then, "as of {commit}");
        }
    }
    assert!(lines.len() > 100, "{} changes", lines.len());
}
