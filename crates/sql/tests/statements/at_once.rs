//! Short statements that are answered without being run: rows by key, kept totals, changes that wait for nothing.
use std::sync::Arc;

use engine::{Database, Decimal, Value};
use sql::{NoInput, Outcome, PreparedStatement, Session, SessionOptions, SqlError, text_value};

fn session(db: &Database) -> Session {
    Session::new(db, SessionOptions::default())
}

fn run(session: &mut Session, text: &str) {
    session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn prepared(session: &mut Session, text: &str) -> Arc<PreparedStatement> {
    Arc::new(session.prepare(text, &[]).unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn numbers(values: &[i64]) -> Vec<Value> {
    values.iter().map(|value| Value::BigInt(*value)).collect()
}

/// The rows of a query as text.
fn rows(session: &mut Session, text: &str) -> Vec<String> {
    let Ok(Outcome::Rows(rows)) = session.execute(text) else { panic!("{text} gives no rows") };
    let shown = |batch: Result<arrow_array::RecordBatch, SqlError>| {
        let batch = batch.unwrap();
        let cell = |row: usize| {
            let cells = batch
                .columns()
                .iter()
                .map(|array| text_value(array, row).map_or("NULL".into(), |text| text.to_string()));
            cells.collect::<Vec<String>>().join(" ")
        };
        (0..batch.num_rows()).map(cell).collect::<Vec<_>>()
    };
    rows.flat_map(shown).collect()
}

fn accounts() -> (Database, Session) {
    let db = Database::in_memory();
    let mut session = session(&db);
    run(&mut session, "CREATE TABLE t (id bigint PRIMARY KEY, a bigint, n numeric(6, 2), s smallint)");
    run(&mut session, "INSERT INTO t VALUES (1, 10, 1.50, 3), (2, 20, NULL, -1), (3, NULL, 2.25, NULL)");
    (db, session)
}

#[test]
fn counts_and_sums_of_a_table_are_the_row_that_the_query_gives() {
    let (db, mut session) = accounts();
    run(&mut session, "CREATE TABLE none (a int)");
    let totals = prepared(&mut session, "SELECT count(*), count(a), sum(a), sum(n), sum(s) AS small FROM t");
    let decimal = |unscaled, scale| Value::Decimal(Decimal { unscaled, scale });
    let wanted = vec![Value::BigInt(3), Value::BigInt(2), decimal(30, 0), decimal(375, 2), Value::BigInt(2)];
    assert_eq!(session.row_by_key(&totals, &[]).unwrap(), Some(Some(wanted)));
    let names: Vec<&String> = totals.row_schema().unwrap().fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["count", "count", "sum", "sum", "small"]);
    assert_eq!(rows(&mut session, totals.text()), ["3 2 30 3.75 2"]);
    let mut other = self::session(&db);
    run(&mut other, "UPDATE t SET a = 5 WHERE id = 3");
    run(&mut other, "DELETE FROM t WHERE id = 1");
    let wanted = vec![Value::BigInt(2), Value::BigInt(2), decimal(25, 0), decimal(225, 2), Value::BigInt(-1)];
    assert_eq!(session.row_by_key(&totals, &[]).unwrap(), Some(Some(wanted)));
    let none = prepared(&mut session, "SELECT sum(a), count(*) FROM none");
    assert_eq!(session.row_by_key(&none, &[]).unwrap(), Some(Some(vec![Value::Null, Value::BigInt(0)])));
    assert_eq!(rows(&mut session, none.text()), ["NULL 0"]);
}

#[test]
fn a_sum_that_its_type_does_not_hold_is_the_planners_error() {
    let (_db, mut session) = accounts();
    run(&mut session, "CREATE TABLE wide (a numeric(38, 0))");
    let nines = "9".repeat(38);
    run(&mut session, &format!("INSERT INTO wide VALUES ({nines}), ({nines})"));
    let sum = prepared(&mut session, "SELECT sum(a) FROM wide");
    assert_eq!(session.row_by_key(&sum, &[]).unwrap_or(None), None);
    let failed = match session.execute(sum.text()) {
        Ok(Outcome::Rows(mut rows)) => rows.next().and_then(|batch| batch.err()),
        Ok(_) => None,
        Err(error) => Some(error),
    };
    assert_eq!(failed.map(|error| error.sqlstate), Some("22003"));
}

#[test]
fn totals_of_a_block_and_of_the_past_are_not_the_newest() {
    let (db, mut session) = accounts();
    let sum = prepared(&mut session, "SELECT sum(a) FROM t");
    let before = db.newest_commit().0;
    run(&mut session, "BEGIN");
    run(&mut session, "UPDATE t SET a = 100 WHERE id = 1");
    assert_eq!(session.row_by_key(&sum, &[]).unwrap(), None);
    assert_eq!(rows(&mut session, "SELECT sum(a) FROM t"), ["120"]);
    run(&mut session, "COMMIT");
    assert!(session.row_by_key(&sum, &[]).unwrap().is_some());
    run(&mut session, &format!("SET lstore.as_of = '{before}'"));
    assert_eq!((session.row_by_key(&sum, &[]).unwrap(), session.is_bare()), (None, false));
    assert_eq!(rows(&mut session, "SELECT sum(a) FROM t"), ["30"]);
}

#[test]
fn changes_at_once_do_what_the_statement_says() {
    let (_db, mut session) = accounts();
    let mut change = |text: &str, values: &[i64]| {
        let prepared = prepared(&mut session, text);
        session.change_at_once(&prepared, &numbers(values)).unwrap()
    };
    assert_eq!(change("UPDATE t SET a = a + $2 WHERE id = $1", &[1, 5]), Some(("UPDATE", 1)));
    assert_eq!(change("UPDATE t SET a = 0 WHERE id = $1", &[9]), Some(("UPDATE", 0)));
    assert_eq!(change("INSERT INTO t (id, a) VALUES ($1, $2), ($2, $1)", &[4, 5]), Some(("INSERT 0", 2)));
    assert_eq!(
        change("INSERT INTO t (id, a) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET a = EXCLUDED.a", &[4, 44]),
        Some(("INSERT 0", 1))
    );
    assert_eq!(change("DELETE FROM t WHERE id = $1", &[2]), Some(("DELETE", 1)));
    assert_eq!(change("INSERT INTO t (id, a) VALUES ($1, $2) RETURNING id", &[6, 6]), None);
    assert_eq!(change("UPDATE t SET a = 1 WHERE a > $1", &[0]), None);
    assert_eq!(rows(&mut session, "SELECT id, a FROM t ORDER BY id"), ["1 15", "3 NULL", "4 44", "5 4"]);
}

#[test]
fn a_change_that_fails_or_would_wait_has_done_nothing() {
    let (db, mut session) = accounts();
    run(&mut session, "ALTER TABLE t ADD CHECK (a < 1000)");
    run(&mut session, "CREATE TABLE child (id bigint PRIMARY KEY, t bigint REFERENCES t)");
    let update = prepared(&mut session, "UPDATE t SET a = $2 WHERE id = $1");
    let refused = [
        ("UPDATE t SET a = $2 WHERE id = $1", [1, 5000]),
        ("INSERT INTO t (id, a) VALUES ($1, $2)", [1, 1]),
        ("INSERT INTO child (id, t) VALUES ($1, $2)", [1, 77]),
    ];
    for (text, values) in refused {
        let prepared = prepared(&mut session, text);
        assert_eq!(session.change_at_once(&prepared, &numbers(&values)).unwrap(), None, "{text}");
        assert!(session.execute_prepared(&prepared, &numbers(&values), &mut NoInput).is_err(), "{text}");
    }
    // As long as this transaction is open, a wait for it has no end.
    let mut other = self::session(&db);
    run(&mut other, "BEGIN");
    run(&mut other, "UPDATE t SET a = 11 WHERE id = 1");
    assert_eq!(session.change_at_once(&update, &numbers(&[1, 12])).unwrap(), None);
    run(&mut other, "COMMIT");
    assert_eq!(session.change_at_once(&update, &numbers(&[1, 12])).unwrap(), Some(("UPDATE", 1)));
    for set in ["SET default_transaction_read_only = on", "SET search_path = other, public", "BEGIN"] {
        run(&mut session, set);
        assert_eq!(session.change_at_once(&update, &numbers(&[1, 13])).unwrap(), None, "{set}");
        run(&mut session, if set == "BEGIN" { "ROLLBACK" } else { "RESET ALL" });
    }
    assert_eq!(rows(&mut session, "SELECT a FROM t WHERE id = 1"), ["12"]);
}

#[test]
fn a_change_that_waits_for_the_disk_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let db = sql::open(directory.path(), engine::OpenOptions::default()).unwrap();
    let mut session = session(&db);
    run(&mut session, "CREATE TABLE t (id bigint PRIMARY KEY)");
    let insert = prepared(&mut session, "INSERT INTO t VALUES ($1)");
    assert_eq!(session.change_at_once(&insert, &numbers(&[1])).unwrap(), None);
    run(&mut session, "SET synchronous_commit = off");
    assert_eq!(session.change_at_once(&insert, &numbers(&[1])).unwrap(), Some(("INSERT 0", 1)));
}

#[test]
fn many_sets_of_values_are_one_statement() {
    let (_db, mut session) = accounts();
    let insert = prepared(&mut session, "INSERT INTO t (id, a) VALUES ($1, $2)");
    let sets: Vec<Vec<Value>> = (10..13).map(|id| numbers(&[id, id * 10])).collect();
    assert_eq!(session.change_many(&insert, &sets).unwrap(), Some(3));
    let again = [numbers(&[20, 1]), numbers(&[10, 1])];
    assert_eq!(session.change_many(&insert, &again).unwrap_err().sqlstate, "23505");
    // A value that goes the long way: the sets before it are taken back.
    let narrow = prepared(&mut session, "UPDATE t SET s = $2 WHERE id = $1");
    let sets = [vec![Value::BigInt(1), Value::SmallInt(7)], vec![Value::BigInt(2), Value::Text("8".into())]];
    assert_eq!(session.change_many(&narrow, &sets).unwrap(), None);
    let search = prepared(&mut session, "UPDATE t SET a = 1 WHERE a > $1");
    assert_eq!(session.change_many(&search, &[numbers(&[0])]).unwrap(), None);
    let wanted = ["1 10 3", "2 20 -1", "3 NULL NULL", "10 100 NULL", "11 110 NULL", "12 120 NULL"];
    assert_eq!(rows(&mut session, "SELECT id, a, s FROM t ORDER BY id"), wanted);
}

#[test]
fn statements_whose_parameters_are_a_key_and_new_values_are_read_and_written_as_words() {
    let (_db, mut session) = accounts();
    let mut access = |text: &str| {
        let prepared = prepared(&mut session, text);
        session.access_by_key(&prepared).map(|access| access.columns().to_vec())
    };
    assert_eq!(access("SELECT s, id FROM t WHERE id = $1"), Some(vec![3, 0]));
    assert_eq!(access("UPDATE t SET s = $2, a = $3 WHERE id = $1"), Some(vec![3, 1]));
    assert_eq!(access("UPDATE t SET s = $3, a = $2 WHERE id = $1"), None);
    assert_eq!(access("UPDATE t SET a = a + $2 WHERE id = $1"), None);
    assert_eq!(access("UPDATE t SET a = $2 WHERE id = $1 RETURNING a"), None);
    assert_eq!(access("SELECT a FROM t WHERE id = 1"), None);
    assert_eq!(access("DELETE FROM t WHERE id = $1"), None);
}

#[test]
fn changes_tell_their_rows_whichever_way_they_go() {
    let (_db, mut session) = accounts();
    let mut change = |text: &str, values: &[i64]| {
        let prepared = prepared(&mut session, text);
        session.change(&prepared, &numbers(values))
    };
    assert_eq!(change("UPDATE t SET a = a + $2 WHERE id = $1", &[1, 5]).unwrap(), 1);
    assert_eq!(change("UPDATE t SET a = a + $2 WHERE id = $1 RETURNING a", &[1, 5]).unwrap(), 1);
    assert_eq!(change("UPDATE t SET a = 7 WHERE a >= $1 OR id = 3", &[0]).unwrap(), 3);
    assert_eq!(change("INSERT INTO t (id, a) SELECT id + $1, a FROM t", &[10]).unwrap(), 3);
    assert_eq!(change("DELETE FROM t WHERE id = $1", &[99]).unwrap(), 0);
    assert_eq!(change("INSERT INTO t (id) VALUES ($1)", &[1]).unwrap_err().sqlstate, "23505");
}

#[test]
fn a_table_that_takes_the_name_of_another_is_the_one_that_is_read_and_changed() {
    let (db, mut session) = accounts();
    let update = prepared(&mut session, "UPDATE t SET a = $2 WHERE id = $1");
    let select = prepared(&mut session, "SELECT a FROM t WHERE id = $1");
    let number = |value: i64| Some(vec![Value::from(value)]);
    assert_eq!(session.change(&update, &numbers(&[1, 20])).unwrap(), 1);
    assert_eq!(session.query_row(&select, &numbers(&[1])).unwrap(), number(20));
    let mut other = self::session(&db);
    run(&mut other, "ALTER TABLE t RENAME TO old");
    assert_eq!(session.change(&update, &numbers(&[1, 21])).unwrap_err().sqlstate, "42P01");
    assert_eq!(session.query_row(&select, &numbers(&[1])).unwrap_err().sqlstate, "42P01");
    run(&mut other, "CREATE TABLE t (a bigint, id bigint PRIMARY KEY)");
    run(&mut other, "INSERT INTO t VALUES (1, 1)");
    for value in [30, 31] {
        assert_eq!(session.change(&update, &numbers(&[1, value])).unwrap(), 1);
        assert_eq!(session.query_row(&select, &numbers(&[1])).unwrap(), number(value));
    }
    assert_eq!(rows(&mut other, "SELECT a FROM old WHERE id = 1"), ["20"]);
}

#[test]
fn what_a_change_gives_back_is_a_row_of_values() {
    let (db, mut session) = accounts();
    let mut row = |text: &str, values: &[i64]| {
        let prepared = prepared(&mut session, text);
        session.query_row(&prepared, &numbers(values)).unwrap()
    };
    let some = |values: &[i64]| Some(numbers(values));
    assert_eq!(row("UPDATE t SET a = a + $2 WHERE id = $1 RETURNING a, id", &[1, 5]), some(&[15, 1]));
    assert_eq!(row("UPDATE t SET a = a + $2 WHERE id = $1 RETURNING a", &[77, 5]), None);
    assert_eq!(row("INSERT INTO t (id, a) VALUES ($1, $2), ($2, $1) RETURNING id", &[4, 5]), some(&[4]));
    let upsert =
        "INSERT INTO t (id, a) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET a = t.a + EXCLUDED.a RETURNING a";
    assert_eq!((row(upsert, &[8, 3]), row(upsert, &[8, 4])), (some(&[3]), some(&[7])));
    let nothing = "INSERT INTO t (id, a) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING a";
    assert_eq!((row(nothing, &[8, 3]), row(nothing, &[9, 3])), (None, some(&[3])));
    assert_eq!(row("DELETE FROM t WHERE id = $1 RETURNING a, id", &[9]), some(&[3, 9]));
    assert_eq!(rows(&mut session, "SELECT id, a FROM t ORDER BY id"), ["1 15", "2 20", "3 NULL", "4 5", "5 4", "8 7"]);
    // In a block it is a part of the block.
    run(&mut session, "BEGIN");
    let update = prepared(&mut session, "UPDATE t SET a = 0 WHERE id = $1 RETURNING a");
    assert_eq!(session.query_row(&update, &numbers(&[1])).unwrap(), some(&[0]));
    assert_eq!(rows(&mut self::session(&db), "SELECT a FROM t WHERE id = 1"), ["15"]);
    run(&mut session, "ROLLBACK");
    let refused = prepared(&mut session, "INSERT INTO t (id) VALUES ($1) RETURNING id");
    assert_eq!(session.query_row(&refused, &numbers(&[1])).unwrap_err().sqlstate, "23505");
}

/// The rows of a statement, passed one by one.
fn each(session: &mut Session, text: &str, values: &[i64]) -> Vec<String> {
    let (prepared, mut passed) = (prepared(session, text), Vec::new());
    let pass = |row: &[Value]| {
        let cell = |value: &Value| if value.is_null() { "NULL".to_owned() } else { value.to_string() };
        passed.push(row.iter().map(cell).collect::<Vec<_>>().join(" "));
        Ok::<(), SqlError>(())
    };
    let count = session.query_each(&prepared, &numbers(values), pass).unwrap();
    assert_eq!(passed.len() as u64, count, "{text}");
    passed
}

#[test]
fn rows_that_are_passed_one_by_one_are_those_of_the_statement() {
    let db = Database::in_memory();
    let mut session = self::session(&db);
    run(&mut session, "CREATE TYPE mood AS ENUM ('sad', 'glad')");
    run(
        &mut session,
        "CREATE TABLE w (id bigint PRIMARY KEY, owner int, s smallint, b boolean, r real, d double precision, day date, \
         at timestamp, zoned timestamptz, t time, n numeric(9, 2), m mood, word text)",
    );
    run(&mut session, "CREATE INDEX w_owner ON w (owner)");
    run(
        &mut session,
        "INSERT INTO w SELECT g, g / 7, g % 5, g % 3 = 0, g / 2.0, -g, date '2024-02-27' + g, \
         timestamp '2024-02-27 12:00' + g * interval '1 hour', timestamptz '2024-02-27 12:00+00' + g * interval '1 day', \
         time '10:00' + g * interval '1 minute', g * 1.25, CASE WHEN g % 2 = 0 THEN 'sad'::mood ELSE 'glad' END, 'row ' || g \
         FROM generate_series(1, 60) g",
    );
    run(&mut session, "UPDATE w SET s = NULL, at = NULL, m = NULL, n = NULL WHERE id % 9 = 4");
    let all = "id, owner, s, b, r, d, day, at, zoned, t, n, m";
    let texts = [
        format!("SELECT {all} FROM w WHERE id = $1"),
        format!("SELECT {all} FROM w WHERE id BETWEEN $1 AND $1 + 9 ORDER BY id"),
        format!("SELECT {all} FROM w WHERE owner = $1"),
        format!("SELECT {all} FROM w WHERE id >= $1 AND id < 30"),
        "SELECT id, word FROM w WHERE id = $1".to_owned(),
        "SELECT word, id, id FROM w WHERE id BETWEEN $1 AND 20 ORDER BY id".to_owned(),
        "SELECT s, s, id FROM w WHERE id BETWEEN $1 AND 20 ORDER BY id".to_owned(),
        "SELECT id FROM w WHERE id BETWEEN $1 AND 40 ORDER BY id DESC LIMIT 3".to_owned(),
        "SELECT DISTINCT s FROM w WHERE id > $1 ORDER BY s".to_owned(),
        "SELECT count(*), sum(id) FROM w WHERE id > $1".to_owned(),
        "SELECT a.word, b.id FROM w a JOIN w b ON b.id = a.owner WHERE a.id = $1".to_owned(),
    ];
    for merged in [false, true] {
        if merged {
            db.merge_now();
        }
        for (text, id) in texts.iter().flat_map(|text| [0, 1, 4, 13, 60, 61].map(|id| (text, id))) {
            let planned = format!("SELECT * FROM ({}) AS q", text.replace("$1", &id.to_string()));
            let (mut found, mut wanted) = (each(&mut session, text, &[id]), rows(&mut session, &planned));
            if !text.contains("ORDER BY") {
                found.sort();
                wanted.sort();
            }
            assert_eq!(found, wanted, "{text} of {id}");
        }
    }
    let (range, given) = (&texts[1], "INSERT INTO w (id, s) VALUES ($1, 1), ($1 + 1, 2) RETURNING id, s");
    assert_eq!(each(&mut session, given, &[70]), ["70 1", "71 2"], "each row that is given back");
    // In a block, and of the past, the rows are those of its moment.
    run(&mut session, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    let before = each(&mut session, range, &[5]);
    run(&mut self::session(&db), "UPDATE w SET s = 77 WHERE id IN (5, 6)");
    assert_eq!(each(&mut session, range, &[5]), before);
    run(&mut session, "COMMIT");
    assert!(each(&mut session, range, &[5]) != before && each(&mut session, &texts[0], &[6]) != before[1..2]);
}

#[test]
fn the_first_error_ends_the_rows_that_are_passed() {
    let (_db, mut session) = accounts();
    for text in ["SELECT id FROM t WHERE id BETWEEN $1 AND 9 ORDER BY id", "SELECT id FROM t WHERE a > $1 OR id = 3"] {
        let (prepared, mut passed) = (prepared(&mut session, text), 0);
        let stop = |_: &[Value]| {
            passed += 1;
            if passed == 2 { Err(SqlError::new("P0001", "enough")) } else { Ok(()) }
        };
        let error = session.query_each(&prepared, &numbers(&[1]), stop).unwrap_err();
        assert_eq!((error.sqlstate, passed), ("P0001", 2), "{text}");
    }
    let change = prepared(&mut session, "DELETE FROM t WHERE id = $1");
    let error = session.query_each(&change, &numbers(&[1]), |_| Ok::<(), SqlError>(())).unwrap_err();
    assert_eq!(error.sqlstate, "42601");
    assert_eq!(rows(&mut session, "SELECT count(*) FROM t"), ["3"], "nothing was done");
}

#[test]
fn the_row_of_a_join_by_keys_is_the_planners() {
    let db = Database::in_memory();
    let mut session = self::session(&db);
    run(&mut session, "CREATE TABLE c (id bigint PRIMARY KEY, name text)");
    run(&mut session, "CREATE TABLE b (id bigint, part int, c bigint, d int, PRIMARY KEY (id, part))");
    run(&mut session, "CREATE TABLE a (id bigint PRIMARY KEY, b bigint, part int, c bigint, d int)");
    run(&mut session, "INSERT INTO c VALUES (1, 'one'), (2, NULL), (3, 'three')");
    run(&mut session, "INSERT INTO b VALUES (1, 1, 1, 5), (1, 2, 2, NULL), (2, 1, NULL, 7), (2, 2, 9, 8)");
    run(
        &mut session,
        "INSERT INTO a VALUES (1, 1, 1, 1, 5), (2, 1, 2, 2, 6), (3, 2, 1, 3, 7), (4, NULL, 1, NULL, 8), (5, 2, 2, 9, 9), (6, 7, 7, 1, 1)",
    );
    let joins = [
        "SELECT a.id, c.name FROM a JOIN c ON c.id = a.c WHERE a.id = $1",
        "SELECT c.name, a.d FROM c, a WHERE a.id = $1 AND a.c = c.id",
        "SELECT c.name, a.d, a.id FROM a LEFT JOIN c ON c.id = a.c WHERE a.id = $1",
        "SELECT b.d, c.name FROM a JOIN b ON b.id = a.b AND b.part = a.part JOIN c ON c.id = b.c WHERE a.id = $1",
        "SELECT b.d, c.name FROM a JOIN b ON b.id = a.b AND b.part = a.part LEFT JOIN c ON c.id = b.c WHERE a.id = $1",
        "SELECT b.d, c.name FROM a LEFT JOIN b ON b.id = a.b AND b.part = a.part LEFT JOIN c ON c.id = b.c WHERE a.id = $1",
        "SELECT DISTINCT b.d FROM a JOIN b ON b.id = a.b AND b.part = 1 WHERE a.id = $1",
        // More than keys is asked for.
        "SELECT b.d FROM a JOIN b ON b.id = a.b AND b.part = a.part AND b.d = a.d WHERE a.id = $1",
        "SELECT b.d FROM a JOIN b ON b.id = a.b AND b.part = a.part WHERE a.id = $1 AND b.d > 5",
        "SELECT c.name FROM a LEFT JOIN c ON c.id = a.c WHERE a.id = $1 AND c.id IS NULL",
        "SELECT c.id FROM a LEFT JOIN c ON c.id = a.c AND c.name = 'one' WHERE a.id = $1",
        "SELECT count(*) FROM a JOIN c ON c.id = a.c WHERE a.id = $1",
        "SELECT c.name FROM a JOIN c ON c.id = a.c WHERE a.id = $1 LIMIT 0",
        "SELECT c.id FROM a JOIN c ON c.id = a.d WHERE a.id = $1",
    ];
    for text in joins {
        let join = prepared(&mut session, text);
        for id in 0..8 {
            let shown = |row: Vec<Value>| {
                let cell = |value: &Value| if value.is_null() { "NULL".to_owned() } else { value.to_string() };
                row.iter().map(cell).collect::<Vec<_>>().join(" ")
            };
            let row = session.query_row(&join, &numbers(&[id])).unwrap().map(shown);
            let planned = format!("SELECT * FROM ({}) AS q", text.replace("$1", &id.to_string()));
            assert_eq!(row.into_iter().collect::<Vec<_>>(), rows(&mut session, &planned), "{text} of {id}");
        }
    }
}
