//! `CHECK` constraints on every way by which rows come and change, beside a model; and after restarts, backups and ALTER TABLE.
use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Database, OpenOptions, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{NoInput, Session, SessionOptions};

use crate::answers::{Lines, ask, run};

fn session(db: &Database) -> Session {
    Session::new(db, SessionOptions::default())
}

/// A row's columns `a` and `b`; `None` is NULL.
type Row = [Option<i64>; 2];

/// `CHECK (a < b OR b = 0)`, which is not false.
fn may_be([a, b]: Row) -> bool {
    let less = a.zip(b).map(|(a, b)| a < b);
    let zero = b.map(|b| b == 0);
    less == Some(true) || zero == Some(true) || less.is_none() || zero.is_none()
}

fn shown(value: Option<i64>) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

/// A statement as text, and what it makes of the rows if none of them breaks the constraint.
fn statement(random: &mut StdRng, rows: &BTreeMap<i64, Row>) -> (String, BTreeMap<i64, Row>) {
    let mut after = rows.clone();
    let value = |random: &mut StdRng| random.random_bool(0.85).then(|| random.random_range(-1..4_i64));
    let new: Row = [value(random), value(random)];
    let [a, b] = new.map(shown);
    let id = random.random_range(0..8_i64);
    let text = match random.random_range(0..8) {
        0 | 1 if !rows.contains_key(&id) => {
            after.insert(id, new);
            format!("INSERT INTO t VALUES ({id}, {a}, {b})")
        }
        2 if !rows.contains_key(&id) && !rows.contains_key(&(id + 8)) => {
            after.extend([(id, new), (id + 8, new)]);
            format!("INSERT INTO t SELECT id, {a}, {b} FROM (VALUES ({id}), ({id} + 8)) AS v (id)")
        }
        3 => {
            after.entry(id).and_modify(|row| row[0] = new[0]);
            format!("UPDATE t SET a = {a} WHERE id = {id}")
        }
        4 => {
            after.entry(id).and_modify(|row| row[1] = row[1].map(|b| b + 1));
            format!("UPDATE t SET b = b + 1 WHERE id = {id}")
        }
        5 => {
            after.values_mut().for_each(|row| row[0] = row[0].map(|a| a + 1));
            "UPDATE t SET a = a + 1 WHERE id >= 0".to_owned()
        }
        6 => {
            after.remove(&id);
            format!("DELETE FROM t WHERE id = {id}")
        }
        _ => {
            // The row that is put in must be right, whether or not it goes in.
            let is_right = may_be(new);
            after.entry(id).and_modify(|row| row[1] = new[0]).or_insert(new);
            if !is_right {
                after.insert(id, new);
            }
            format!("INSERT INTO t VALUES ({id}, {a}, {b}) ON CONFLICT (id) DO UPDATE SET b = excluded.a")
        }
    };
    (text, after)
}

#[test]
fn no_statement_leaves_a_row_that_breaks_a_constraint_and_none_is_refused_for_another_reason() {
    for seed in 0..6 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut session = session(&Database::in_memory());
        run(&mut session, &["CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, CHECK (a < b OR b = 0))"]);
        let mut rows = BTreeMap::new();
        for _ in 0..60 {
            let (text, after) = statement(&mut random, &rows);
            let done = session.execute(&text).map(drop);
            match after.values().all(|row| may_be(*row)) {
                true => {
                    assert_eq!(done.as_ref().err(), None, "seed {seed}: {text}, {rows:?}");
                    rows = after;
                }
                false => {
                    assert_eq!(done.map_err(|error| error.sqlstate), Err("23514"), "seed {seed}: {text}, {rows:?}")
                }
            }
        }
        let line = |(id, [a, b]): (&i64, &Row)| format!("{id},{},{}", shown(*a), shown(*b));
        let expected: Vec<String> = rows.iter().map(line).collect();
        assert_eq!(ask(&mut session, "SELECT * FROM t ORDER BY id"), expected, "seed {seed}");
    }
}

#[test]
fn rows_from_a_client_and_parameters_are_looked_at() {
    let mut session = session(&Database::in_memory());
    run(&mut session, &["CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a > 0))"]);
    let mut copy = |text: &str| {
        let copied = session.execute_with_input("COPY t FROM STDIN", &mut Lines::new(text));
        copied.map(drop).map_err(|error| (error.sqlstate, error.detail.unwrap()))
    };
    assert_eq!(copy("1\t5\n2\t\\N\n"), Ok(()));
    let (sqlstate, detail) = copy("3\t5\n4\t0\n5\t-1\n").unwrap_err();
    assert!(sqlstate == "23514" && detail.starts_with("Failing row contains (4, 0)."), "{detail}");
    assert_eq!(ask(&mut session, "SELECT id FROM t ORDER BY id"), ["1", "2"]);
    let update = Arc::new(session.prepare("UPDATE t SET a = a - $1 WHERE id = $2", &[]).unwrap());
    let mut change = |by| {
        let done = session.execute_prepared(&update, &[Value::Integer(by), Value::Integer(1)], &mut NoInput);
        done.map(drop).map_err(|error| error.sqlstate)
    };
    assert_eq!((change(4), change(1), change(-1)), (Ok(()), Err("23514"), Ok(())));
    // What was planned before goes by what holds when it runs.
    run(&mut session, &["ALTER TABLE t ADD CONSTRAINT one CHECK (a < 3)"]);
    let mut change = |by| {
        let done = session.execute_prepared(&update, &[Value::Integer(by), Value::Integer(1)], &mut NoInput);
        done.map(drop).map_err(|error| error.sqlstate)
    };
    assert_eq!((change(-1), change(1)), (Err("23514"), Ok(())));
}

#[test]
fn constraints_are_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let backup = tempfile::tempdir().unwrap();
    let open = || sql::open(directory.path(), OpenOptions::default()).unwrap();
    let refused = |session: &mut Session, a: i32, name: &str| {
        let error = session.execute(&format!("INSERT INTO t VALUES ({a})")).map(drop).unwrap_err();
        assert_eq!((error.sqlstate, error.about.unwrap().constraint.as_deref()), ("23514", Some(name)));
    };
    // Read from the log, from a checkpoint, and from both.
    for round in 0..4 {
        let db = open();
        let mut session = session(&db);
        if round == 0 {
            run(&mut session, &["CREATE TABLE t (a INT CHECK (a > 0))"]);
        }
        refused(&mut session, 0, "t_a_check");
        run(&mut session, &["INSERT INTO t VALUES (1)"]);
        match round {
            1 => drop(db.checkpoint().unwrap()),
            2 => run(&mut session, &["ALTER TABLE t ADD CONSTRAINT small CHECK (a < 10)"]),
            3 => drop(db.backup(backup.path().join("copy")).unwrap()),
            _ => {}
        }
    }
    for directory in [directory.path().to_owned(), backup.path().join("copy")] {
        let db = sql::open(&directory, OpenOptions::default()).unwrap();
        let mut session = session(&db);
        refused(&mut session, 0, "t_a_check");
        refused(&mut session, 10, "small");
        run(&mut session, &["ALTER TABLE t DROP CONSTRAINT t_a_check", "INSERT INTO t VALUES (0)"]);
    }
}
