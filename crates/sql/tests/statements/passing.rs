//! Rows that a query of few passes on as cells, against the same rows as arrays: the messages that are made of them are equal.
use std::sync::Arc;

use engine::{Database, OpenOptions, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::wire::cells::{Cell, CellForm};
use sql::wire::rows::{Column, blanks_to};
use sql::wire::{oids, rows};
use sql::{NoInput, Outcome, PreparedStatement, RowSink, Session, SessionOptions, SqlError};

/// Rows of a table of small ranges, of which some are merged; keys lie side by side but where rows were put in again.
const KEYS: i64 = 150;

/// What is read: by key, between two keys, in orders of one column (of which equal numbers come in any order), each value once.
const QUERIES: [&str; 16] = [
    "SELECT * FROM t WHERE id = $1",
    "SELECT v, id FROM t WHERE id = $1",
    "SELECT * FROM t WHERE id BETWEEN $1 AND $2",
    "SELECT c, v AS other, id FROM t WHERE id >= $1 AND id <= $2 ORDER BY id",
    "SELECT id, v FROM t WHERE id BETWEEN $1 AND $2 ORDER BY v",
    "SELECT id, v FROM t WHERE id BETWEEN $1 AND $2 ORDER BY v DESC",
    "SELECT id, v FROM t WHERE id BETWEEN $1 AND $2 ORDER BY v NULLS FIRST",
    "SELECT k FROM t WHERE id BETWEEN $1 AND $2 ORDER BY k DESC NULLS LAST",
    "SELECT s FROM t WHERE id BETWEEN $1 AND $2 ORDER BY s",
    "SELECT c FROM t WHERE id BETWEEN $1 AND $2 ORDER BY c",
    "SELECT DISTINCT v FROM t WHERE id BETWEEN $1 AND $2 ORDER BY v",
    "SELECT DISTINCT c FROM t WHERE id BETWEEN $1 AND $2 ORDER BY c DESC",
    "SELECT DISTINCT k FROM t WHERE id BETWEEN $1 AND $2 ORDER BY k",
    "SELECT sum(s), count(*), count(b) FROM t WHERE id BETWEEN $1 AND $2",
    "SELECT sum(id) AS s FROM t WHERE id >= $1 AND id <= $2",
    "SELECT id, b, v FROM t WHERE g = $1 ORDER BY g",
];

/// Puts rows into messages.
struct Messages {
    forms: Vec<CellForm>,
    bytes: Vec<u8>,
    rows: u64,
}

impl RowSink for Messages {
    fn take(&mut self, row: &[Cell<'_>]) -> Result<(), SqlError> {
        self.rows += 1;
        self.forms.iter().zip(row).try_for_each(|(form, cell)| form.put(&mut self.bytes, *cell))
    }
}

fn run(session: &mut Session, text: &str) {
    session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn open() -> (Database, Session) {
    let options = OpenOptions { range_records: Some(64), ..OpenOptions::default() };
    let db = Database::in_memory_with(&options);
    let mut session = Session::new(&db, SessionOptions::default());
    run(
        &mut session,
        "CREATE TABLE t (id int PRIMARY KEY, v text, c char(6), k bigint, s smallint, b boolean, g bigint)",
    );
    run(&mut session, "CREATE INDEX t_g ON t (g)");
    (db, session)
}

/// Some text of few letters, of which many begin alike, or NULL.
fn text(random: &mut StdRng) -> String {
    let (start, end) = (["", "abcdefg", "ä", "zz"], ["", "h", "ha", "'' "]);
    match random.random_bool(0.1) {
        true => "NULL".into(),
        false => format!("'{}{}'", start[random.random_range(0..4)], end[random.random_range(0..4)]),
    }
}

/// All keys, in their order.
fn fill(session: &mut Session, random: &mut StdRng) {
    for id in 0..KEYS {
        let (v, k) = (text(random), id / 8);
        run(session, &format!("INSERT INTO t VALUES ({id}, {v}, 'c', {k}, {id}, true, {k})"));
    }
}

fn change(session: &mut Session, random: &mut StdRng) {
    let id = random.random_range(0..KEYS);
    let (v, k) = (text(random), random.random_range(-3..9));
    let short: String = text(random).replace("abcdefg", "abc");
    let statement = match random.random_range(0..4) {
        0 => format!("DELETE FROM t WHERE id = {id}"),
        1 => format!("UPDATE t SET v = {v}, c = {short} WHERE id = {id}"),
        2 => format!("UPDATE t SET k = NULLIF({k}, 0), s = -s, b = NOT b WHERE id = {id}"),
        _ => format!(
            "INSERT INTO t VALUES ({id}, {v}, {short}, {k}, {}, NULLIF({k} > 2, {}), {id} / 8) ON CONFLICT DO NOTHING",
            k * 3000,
            random.random_bool(0.5)
        ),
    };
    run(session, &statement);
}

/// The messages of the rows as arrays, and how many rows there are.
fn by_arrays(session: &mut Session, query: &Arc<PreparedStatement>, values: &[Value], format: i16) -> (Vec<u8>, u64) {
    let Ok(Outcome::Rows(mut rows)) = session.execute_prepared(query, values, &mut NoInput) else {
        panic!("{} gives no rows", query.text())
    };
    let (schema, mut bytes, mut count) = (rows.schema(), Vec::new(), 0);
    while let Some(batch) = rows.next_unfilled() {
        let batch = batch.unwrap();
        let columns: Vec<Column<'_>> = batch
            .columns()
            .iter()
            .zip(schema.fields())
            .map(|(array, field)| {
                let chars = blanks_to(field).unwrap_or_default();
                rows::Column::new(array.as_ref(), oids::of_field(field), format).filled_to(chars)
            })
            .collect();
        for row in 0..batch.num_rows() {
            columns.iter().for_each(|column| column.put(&mut bytes, row).unwrap());
        }
        count += batch.num_rows() as u64;
    }
    (bytes, count)
}

/// The messages of the rows as they are passed on, how many there are, and whether they were.
fn by_cells(
    session: &mut Session,
    query: &Arc<PreparedStatement>,
    values: &[Value],
    format: i16,
) -> Option<(Vec<u8>, u64)> {
    let form = |field: &arrow_schema::FieldRef| {
        CellForm::of(oids::of_field(field), format, blanks_to(field).unwrap_or_default()).unwrap()
    };
    let forms = query.passed_schema()?.fields().iter().map(form).collect();
    let mut sink = Messages { forms, bytes: Vec::new(), rows: 0 };
    match session.execute_passing(query, values, &mut sink).unwrap() {
        Outcome::Rows(_) => {
            assert_eq!(sink.rows, 0, "rows are passed on or given, not both: {}", query.text());
            None
        }
        Outcome::Done(command) => {
            assert_eq!(command.tag, format!("SELECT {}", sink.rows));
            Some((sink.bytes, sink.rows))
        }
    }
}

fn compare(session: &mut Session, random: &mut StdRng, queries: &[Arc<PreparedStatement>], passed: &mut [u64]) {
    for (query, passed) in queries.iter().zip(passed) {
        let low = random.random_range(-5..KEYS + 5);
        let bounds = [low, low + random.random_range(0..100)];
        let bounds = if query.text().contains("g = $1") { [low / 8, 0] } else { bounds };
        let values: Vec<Value> = query
            .parameters()
            .iter()
            .zip(bounds)
            .map(|(data_type, bound)| match data_type {
                engine::DataType::Integer => Value::Integer(bound as i32),
                _ => Value::BigInt(bound),
            })
            .collect();
        for format in [0, 1] {
            let expected = by_arrays(session, query, &values, format);
            if let Some(found) = by_cells(session, query, &values, format) {
                assert!(found == expected, "{} with {values:?}", query.text());
                *passed += 1;
            }
        }
    }
}

#[test]
fn rows_that_are_passed_on_are_those_that_are_given_as_arrays() {
    let random = &mut StdRng::seed_from_u64(21);
    let mut passed = [0; QUERIES.len()];
    for _ in 0..3 {
        let (db, mut session) = open();
        fill(&mut session, random);
        for round in 0..12 {
            (0..60).for_each(|_| change(&mut session, random));
            // Anew, as a query whose rows were not passed on some times is asked less often.
            let prepare = |text: &&str| Arc::new(session.prepare(text, &[]).unwrap());
            let queries: Vec<_> = QUERIES.iter().map(prepare).collect();
            if round % 4 == 1 {
                db.merge_now();
            }
            compare(&mut session, random, &queries, &mut passed);
            // A transaction sees its own changes, another isolation what was there when it began.
            let level = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"][round % 3];
            run(&mut session, &format!("BEGIN ISOLATION LEVEL {level}"));
            compare(&mut session, random, &queries, &mut passed);
            (0..10).for_each(|_| change(&mut session, random));
            compare(&mut session, random, &queries, &mut passed);
            run(&mut session, if random.random_bool(0.5) { "COMMIT" } else { "ROLLBACK" });
        }
    }
    let (by_entries, others) = passed.split_last().unwrap();
    assert!(*by_entries > 0 && others.iter().all(|passed| *passed > 100), "rows are passed on mostly: {passed:?}");
}

#[test]
fn a_sink_that_fails_ends_the_query_and_fails_the_block() {
    struct Failing(u64);
    impl RowSink for Failing {
        fn take(&mut self, _: &[Cell<'_>]) -> Result<(), SqlError> {
            self.0 += 1;
            if self.0 == 3 { Err(SqlError::new("54000", "a value is too long to be sent")) } else { Ok(()) }
        }
    }
    let (_db, mut session) = open();
    run(&mut session, "INSERT INTO t (id, v) SELECT g, 'x' FROM generate_series(1, 9) g");
    let query = Arc::new(session.prepare("SELECT v FROM t WHERE id BETWEEN $1 AND $2", &[]).unwrap());
    let values = [Value::Integer(1), Value::Integer(9)];
    let mut sink = Failing(0);
    assert_eq!(session.execute_passing(&query, &values, &mut sink).err().map(|error| error.sqlstate), Some("54000"));
    assert_eq!(sink.0, 3, "no row behind the one that was refused");
    run(&mut session, "BEGIN");
    assert!(session.execute_passing(&query, &values, &mut Failing(0)).is_err());
    let after = session.execute_passing(&query, &values, &mut Failing(9));
    assert_eq!(after.err().map(|error| error.sqlstate), Some("25P02"), "the block has failed");
}

#[test]
fn a_query_of_a_table_that_is_another_now_is_run_the_long_way() {
    let (_db, mut session) = open();
    run(&mut session, "INSERT INTO t (id, v) VALUES (1, 'x')");
    let query = Arc::new(session.prepare("SELECT v FROM t WHERE id = $1", &[]).unwrap());
    let values = [Value::Integer(1)];
    assert_eq!(by_cells(&mut session, &query, &values, 0), Some((b"\0\0\0\x01x".to_vec(), 1)));
    run(&mut session, "DROP TABLE t");
    assert!(
        session
            .execute_passing(&query, &values, &mut Messages { forms: Vec::new(), bytes: Vec::new(), rows: 0 })
            .is_err()
    );
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    run(&mut session, "INSERT INTO t VALUES (1, 'y')");
    assert_eq!(by_cells(&mut session, &query, &values, 0), None, "it is planned anew");
}
