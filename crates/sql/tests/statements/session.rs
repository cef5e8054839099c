//! Sessions where scripts do not suffice: threads, deep statements, rows that are not read to their end, access to
//! files.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use engine::Database;
use sql::{FileAccess, Outcome, Progress, Session, SessionOptions, SqlError, text_value};

/// A server moves sessions and their rows between threads.
const fn moves_between_threads<T: Send>() {}
const _: () = moves_between_threads::<Session>();
const _: () = moves_between_threads::<sql::Rows>();

fn open() -> (Database, Session) {
    let db = Database::in_memory();
    let session = Session::new(&db, SessionOptions::default());
    (db, session)
}

fn values(session: &mut Session, statement: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
    let Outcome::Rows(rows) = session.execute(statement)? else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    for batch in rows {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            lines.push(batch.columns().iter().map(|array| text_value(array.as_ref(), row)).collect());
        }
    }
    Ok(lines)
}

fn value(session: &mut Session, statement: &str) -> String {
    let rows = values(session, statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    rows[0][0].clone().unwrap_or("NULL".to_owned())
}

fn tag(session: &mut Session, statement: &str) -> String {
    match session.execute(statement) {
        Ok(Outcome::Done(command)) => command.tag,
        other => panic!("{statement}: {other:?}"),
    }
}

#[test]
fn notices_of_what_is_there_tell_their_codes() {
    let (_, mut session) = open();
    for (make, again, code) in [
        ("CREATE TABLE t (a INT)", "CREATE TABLE IF NOT EXISTS t (b INT)", "42P07"),
        ("CREATE INDEX i ON t (a)", "CREATE INDEX IF NOT EXISTS i ON t (a)", "42P07"),
        ("CREATE SEQUENCE s", "CREATE SEQUENCE IF NOT EXISTS s", "42P07"),
        ("CREATE MATERIALIZED VIEW m AS SELECT 1", "CREATE MATERIALIZED VIEW IF NOT EXISTS m AS SELECT 2", "42P07"),
        ("CREATE SCHEMA own", "CREATE SCHEMA IF NOT EXISTS own", "42P06"),
        ("ALTER TABLE t ADD COLUMN b INT", "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT", "42701"),
        ("CREATE TYPE e AS ENUM ('x')", "ALTER TYPE e ADD VALUE IF NOT EXISTS 'x'", "42710"),
        ("DROP VIEW IF EXISTS none", "DROP TABLE IF EXISTS none", "00000"),
    ] {
        session.execute(make).unwrap();
        let Ok(Outcome::Done(command)) = session.execute(again) else { panic!("{again} gives rows or an error") };
        let codes: Vec<&str> = command.notices.iter().map(|notice| notice.sqlstate).collect();
        assert_eq!(codes, [code], "{again}");
    }
}

#[test]
fn tags_are_those_of_postgresql() {
    let (_, mut session) = open();
    assert_eq!(tag(&mut session, "CREATE TABLE t (a INT PRIMARY KEY, b INT);"), "CREATE TABLE");
    assert_eq!(tag(&mut session, "INSERT INTO t VALUES (1, 2), (2, 3)"), "INSERT 0 2");
    assert_eq!(tag(&mut session, "UPDATE t SET b = 0"), "UPDATE 2");
    assert_eq!(tag(&mut session, "DELETE FROM t WHERE a = 1"), "DELETE 1");
    assert_eq!(tag(&mut session, "BEGIN"), "BEGIN");
    assert_eq!(tag(&mut session, "COMMIT"), "COMMIT");
    assert_eq!(tag(&mut session, "TRUNCATE t"), "TRUNCATE TABLE");
    assert_eq!(tag(&mut session, "DROP TABLE t"), "DROP TABLE");
    assert_eq!(tag(&mut session, "SET application_name TO 'x'"), "SET");
    assert_eq!(tag(&mut session, " -- nothing\n ; "), "");
}

#[test]
fn columns_are_named_as_postgresql_does() {
    let (_, mut session) = open();
    session.execute("CREATE TABLE t (a INT, b INT)").unwrap();
    let query =
        "SELECT count(*), sum(a) AS total, a + 1, max(B), 'x'::text, CASE WHEN true THEN 1 END, a FROM t GROUP BY a";
    let Outcome::Rows(rows) = session.execute(query).unwrap() else { panic!("no rows") };
    let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["count", "total", "?column?", "max", "text", "case", "a"]);
    let Outcome::Rows(rows) = session.execute("SELECT *, a, 1, 1 FROM t").unwrap() else { panic!("no rows") };
    let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["a", "b", "a", "?column?", "?column?"]);
}

#[test]
fn a_long_chain_of_operators_is_computed_or_refused_but_aborts_nothing() {
    let (_, mut session) = open();
    assert_eq!(value(&mut session, &format!("SELECT 1{}", "+1".repeat(400))), "401");
    session.execute("CREATE TABLE t (a INT)").unwrap();
    session.execute("INSERT INTO t VALUES (1), (77)").unwrap();
    let any: Vec<String> = (0..500).map(|n| format!("a = {n}")).collect();
    assert_eq!(value(&mut session, &format!("SELECT count(*) FROM t WHERE {}", any.join(" OR "))), "2");
    let list: Vec<String> = (0..5_000).map(|n| n.to_string()).collect();
    assert_eq!(value(&mut session, &format!("SELECT count(*) FROM t WHERE a IN ({})", list.join(","))), "2");
    let all = "SELECT 1 UNION ALL ".repeat(200);
    assert_eq!(value(&mut session, &format!("SELECT count(*) FROM ({all} SELECT 1) AS x")), "201");
    for (chain, times, sqlstate) in [("+1", 1_000_000, "54001"), (" UNION ALL SELECT 1", 20_000, "54000")] {
        let error = session.execute(&format!("SELECT 1{}", chain.repeat(times))).unwrap_err();
        assert_eq!(error.sqlstate, sqlstate, "{chain}");
    }
    assert_eq!(session.execute(&format!("SELECT {}", "(".repeat(100_000))).unwrap_err().sqlstate, "54001");
    assert_eq!(session.execute(&format!("SELECT {}1", "NOT ".repeat(100_000))).unwrap_err().sqlstate, "54001");
    assert_eq!(value(&mut session, "SELECT 1"), "1");
}

#[test]
fn single_statements_that_meet_each_other_all_get_through() {
    let (db, mut session) = open();
    session.execute("CREATE TABLE counter (id INT PRIMARY KEY, n BIGINT)").unwrap();
    session.execute("INSERT INTO counter VALUES (1, 0), (2, 0)").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = Session::new(&db, SessionOptions::default());
                for _ in 0..25 {
                    assert_eq!(tag(&mut session, "UPDATE counter SET n = n + 1"), "UPDATE 2");
                }
            });
        }
    });
    assert_eq!(value(&mut session, "SELECT sum(n) FROM counter"), "200");
}

#[test]
fn rows_that_are_not_read_hold_nothing_up() {
    let (_, mut session) = open();
    session.execute("CREATE TABLE t (a INT)").unwrap();
    session.execute("INSERT INTO t SELECT generate_series FROM generate_series(1, 100000)").unwrap();
    for _ in 0..20 {
        let Outcome::Rows(mut rows) = session.execute("SELECT x.a FROM t AS x, t AS y").unwrap() else { panic!() };
        assert!(rows.next().unwrap().unwrap().num_rows() > 0);
    }
    assert_eq!(value(&mut session, "SELECT count(*) FROM t"), "100000");
}

#[test]
fn an_error_while_rows_are_read_aborts_the_block() {
    let (_, mut session) = open();
    session.execute("CREATE TABLE t (a INT)").unwrap();
    session.execute("INSERT INTO t VALUES (0)").unwrap();
    session.execute("BEGIN").unwrap();
    assert_eq!(values(&mut session, "SELECT 1 / a FROM t").unwrap_err().sqlstate, "22012");
    assert_eq!(session.execute("SELECT 1").unwrap_err().sqlstate, "25P02");
    session.execute("ROLLBACK").unwrap();
    session.execute("BEGIN").unwrap();
    let Outcome::Rows(mut rows) = session.execute("SELECT a FROM t").unwrap() else { panic!() };
    session.execute("COMMIT").unwrap();
    assert_eq!(rows.next().unwrap().unwrap_err().sqlstate, "24000");
}

#[test]
fn files_are_out_of_reach_unless_allowed() {
    let (_, mut session) = open();
    session.execute("CREATE TABLE t (a INT)").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.csv");
    for statement in ["COPY t TO", "COPY t FROM"] {
        let error = session.execute(&format!("{statement} '{}'", path.display())).unwrap_err();
        assert_eq!((error.sqlstate, error.position), ("42501", Some(statement.len() + 1)));
    }
    assert!(!path.exists());
}

#[derive(Default)]
struct Told {
    words: Mutex<Vec<String>>,
    bytes: AtomicU64,
}

impl Progress for Told {
    fn start(&self, label: &str, total_bytes: Option<u64>) {
        self.words.lock().unwrap().push(format!("{} {total_bytes:?}", label.split(' ').next().unwrap()));
    }

    fn advance(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn finish(&self) {
        self.words.lock().unwrap().push("finish".to_owned());
    }
}

#[test]
fn copy_tells_of_every_byte_and_leaves_no_temporary_file() {
    let db = Database::in_memory();
    let mut session = Session::new(
        &db,
        SessionOptions { files: FileAccess::Allowed, target_partitions: Some(1), ..SessionOptions::default() },
    );
    let (told, directory) = (Arc::new(Told::default()), tempfile::tempdir().unwrap());
    session.set_progress(told.clone());
    let path = directory.path().join("t.csv");
    let copy = format!("COPY (SELECT generate_series AS a FROM generate_series(1, 20000)) TO '{}'", path.display());
    assert_eq!(tag(&mut session, &copy), "COPY 20000");
    session.execute("CREATE TABLE t (a INT)").unwrap();
    let before = told.bytes.load(Ordering::Relaxed);
    assert_eq!(tag(&mut session, &format!("COPY t FROM '{}'", path.display())), "COPY 20000");
    let size = std::fs::metadata(&path).unwrap().len();
    assert_eq!(told.bytes.load(Ordering::Relaxed) - before, size);
    assert_eq!(*told.words.lock().unwrap(), ["COPY None", "finish", &format!("COPY Some({size})"), "finish"]);
    let failing = format!("COPY (SELECT 1 / (a - 20000) FROM t) TO '{}'", directory.path().join("no.csv").display());
    assert_eq!(session.execute(&failing).unwrap_err().sqlstate, "22012");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn errors_are_words_and_not_dumps() {
    let (_, mut session) = open();
    session.execute("CREATE TABLE t (a INT, s TEXT, d DATE, i NUMERIC(5, 2))").unwrap();
    session.execute("INSERT INTO t VALUES (1, 'x', '2020-01-01', 1)").unwrap();
    let statements = [
        "SELECT a + s FROM t",
        "SELECT sum(s) FROM t",
        "SELECT a FROM t WHERE s",
        "SELECT upper(a, s) FROM t",
        "SELECT a FROM t GROUP BY d",
        "SELECT * FROM t JOIN t AS u USING (nope)",
        "SELECT a FROM t ORDER BY nope",
        "SELECT a FROM t LIMIT -1",
        "SELECT (SELECT a, s FROM t)",
        "SELECT a IN (SELECT a, s FROM t) FROM t",
        "SELECT a FROM t UNION SELECT a, s FROM t",
        "SELECT d + 1.5 FROM t",
        "SELECT date_trunc('nonsense', d) FROM t",
        "SELECT regexp_replace(s, '(', '') FROM t",
        "SELECT i * 1e30 * 1e30 FROM t",
        "SELECT $1",
        "SELECT a FROM t WHERE row(a) = 5",
        "SELECT CAST(s AS nonsense) FROM t",
        "SELECT repeat(s, 1000000000) FROM t",
        "SELECT ARRAY[1, 'x', true] || d FROM t",
        "SELECT chr(-1)",
        "SELECT count(*) OVER (ORDER BY nope) FROM t",
        "VALUES (1, 2), (3)",
        "SELECT max(a) FROM t HAVING nope > 1",
        "WITH x AS (SELECT 1) SELECT * FROM y",
    ];
    let dumps = ["Error", "error:", "DataFusion", "Arrow", "Some(", "{ ", "panicked", "backtrace", "Internal", "\n\n"];
    let mut bad = Vec::new();
    for statement in statements {
        let Err(error) = values(&mut session, statement) else { continue };
        let text = format!("{error} {}", error.detail.as_deref().unwrap_or_default());
        if error.sqlstate == "XX000" || dumps.iter().any(|dump| text.contains(dump)) {
            bad.push(format!("{statement}: {error:?}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Waits until the database knows when its newest commit was.
fn time_of_newest_commit(db: &Database) -> String {
    let at = db.snapshot().at;
    let micros = loop {
        match db.time_of_commit(at) {
            Some(micros) => break micros,
            None => std::thread::yield_now(),
        }
    };
    let mut session = Session::new(db, SessionOptions::default());
    value(&mut session, &format!("SELECT to_timestamp_micros({micros})::text"))
}

#[test]
fn a_table_is_read_as_of_the_time_of_any_commit() {
    let (db, mut session) = open();
    session.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT)").unwrap();
    session.execute("INSERT INTO t VALUES (1, 0)").unwrap();
    let times: Vec<String> = (1..4)
        .map(|b| {
            session.execute(&format!("UPDATE t SET b = {b}")).unwrap();
            time_of_newest_commit(&db)
        })
        .collect();
    for (time, b) in times.iter().zip(1..) {
        let as_of = |written: &str| format!("SELECT b FROM t FOR SYSTEM_TIME AS OF {written} WHERE a = 1");
        assert_eq!(value(&mut session, &as_of(&format!("TIMESTAMP '{time}'"))), b.to_string());
        assert_eq!(value(&mut session, &as_of(&format!("'{time}'"))), b.to_string());
        let versions =
            format!("SELECT count(*) FROM lstore_history('t', 1) WHERE valid_from_time <= TIMESTAMP '{time}'");
        assert_eq!(value(&mut session, &versions), (b + 1).to_string());
        let changes = format!("SELECT count(*) FROM lstore_changes('t', TIMESTAMP '{time}')");
        assert_eq!(value(&mut session, &changes), (3 - b).to_string());
    }
}

#[test]
fn a_statement_that_has_begun_is_answered_however_little_history_is_kept() {
    let (db, mut session) = open();
    session.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT) WITH (retention = none)").unwrap();
    session.execute("INSERT INTO t SELECT generate_series, 0 FROM generate_series(1, 30000)").unwrap();
    let Outcome::Rows(rows) = session.execute("SELECT a, b FROM t").unwrap() else { panic!("no rows") };
    let mut other = Session::new(&db, SessionOptions::default());
    for _ in 0..3 {
        other.execute("UPDATE t SET b = b + 1").unwrap();
        db.merge_now();
    }
    let seen = rows.map(|batch| batch.unwrap().column(1).as_primitive::<Int32Type>().values().to_vec());
    let seen: Vec<i32> = seen.flatten().collect();
    assert_eq!((seen.len(), seen.iter().max()), (30_000, Some(&0)), "the rows are those of the moment it began");
    // Once no query reads the past any more, it goes with the next merges.
    let gone = loop {
        other.execute("UPDATE t SET b = b + 1").unwrap();
        db.merge_now();
        if let Err(error) = values(&mut other, "SELECT count(b) FROM t FOR SYSTEM_TIME AS OF 2") {
            break error;
        }
    };
    assert_eq!(gone.sqlstate, "72000");
    assert!(gone.message.starts_with("snapshot too old: table \"t\""), "{}", gone.message);
    assert_eq!(values(&mut other, "SELECT * FROM lstore_changes('t', 2)").unwrap_err().sqlstate, "72000");
}

#[test]
fn a_column_has_its_type_where_one_side_of_a_join_is_empty() {
    let (_, mut session) = open();
    tag(&mut session, "CREATE TABLE t (v varchar(5), c char(3))");
    let statement = "SELECT a.v, a.c FROM (SELECT * FROM t WHERE false) a RIGHT JOIN t ON a.c = t.c";
    let Outcome::Rows(rows) = session.execute(statement).unwrap() else { panic!("no rows") };
    let types: Vec<_> = rows.schema().fields().iter().map(|field| sql::type_of_field(field)).collect();
    let expected = [engine::DataType::Text { max_chars: Some(5) }, engine::DataType::Char { chars: 3 }];
    assert_eq!(types, expected.map(Some));
}

#[test]
fn sessions_see_what_others_of_their_database_do_and_cancel_it() {
    let (db, other) = (Database::in_memory(), Database::in_memory());
    let numbered = |db: &Database, process: u32| {
        let mut session = Session::new(db, SessionOptions::default());
        session.set_process(process);
        session
    };
    let (mut watching, mut watched, _elsewhere) = (numbered(&db, 1), numbered(&db, 2), numbered(&other, 3));
    let seen = |session: &mut Session| {
        let query = "SELECT pid, state, query FROM pg_stat_activity WHERE pid <> pg_backend_pid() ORDER BY pid";
        values(session, query)
            .unwrap()
            .into_iter()
            .map(|row| row.into_iter().flatten().collect::<Vec<_>>().join("|"))
            .collect::<Vec<_>>()
    };
    assert_eq!(seen(&mut watching), ["2|idle|"]);
    watched.execute("BEGIN").unwrap();
    assert_eq!(seen(&mut watching), ["2|idle in transaction|BEGIN"]);
    watched.execute("COMMIT").unwrap();
    assert_eq!(seen(&mut watching), ["2|idle|COMMIT"]);
    let long = format!("SELECT '{}'", "ü".repeat(2_000));
    let Outcome::Rows(given) = watched.execute(&long).unwrap() else { panic!("a query gives rows") };
    drop(given);
    let shown = seen(&mut watching).remove(0);
    assert!(shown.len() <= "2|idle|".len() + 1024 && shown.ends_with('ü'), "{shown}");
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| values(&mut watched, "SELECT pg_sleep(30)").unwrap_err());
        while seen(&mut watching) != ["2|active|SELECT pg_sleep(30)"] {
            std::thread::yield_now();
        }
        for (process, is_there) in [(3, "f"), (2, "t")] {
            let cancelled = values(&mut watching, &format!("SELECT pg_cancel_backend({process})")).unwrap();
            assert_eq!(cancelled, [[Some(is_there.to_owned())]]);
        }
        assert_eq!(sleeping.join().unwrap().sqlstate, "57014");
    });
    drop(watched);
    assert!(seen(&mut watching).is_empty());
}
