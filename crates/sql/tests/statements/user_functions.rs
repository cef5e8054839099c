//! Functions that a program computes: which calls they take, what they give, and where they are no part of what others read.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array};
use engine::{DataType, Database};
use sql::{Session, SessionOptions, SqlError, StopCheck, UserFunction};

use crate::answers::{ask, run};

/// Twice a number; fails at 13, gives too little at 14, and counts the rows that it is asked for.
struct Twice {
    is_pure: bool,
    asked: AtomicUsize,
}

impl UserFunction for Twice {
    fn parameters(&self) -> &[DataType] {
        &[DataType::BigInt]
    }

    fn returns(&self) -> DataType {
        DataType::BigInt
    }

    fn is_pure(&self) -> bool {
        self.is_pure
    }

    fn compute(&self, arguments: &[ArrayRef], rows: usize, stop: &StopCheck) -> Result<ArrayRef, SqlError> {
        stop.check()?;
        self.asked.fetch_add(rows, Ordering::Relaxed);
        let numbers = arguments[0].as_primitive::<Int64Type>();
        assert_eq!(numbers.len(), rows);
        if numbers.iter().flatten().any(|number| number == 13) {
            return Err(SqlError::new("38000", "13 is unlucky"));
        }
        if numbers.iter().flatten().any(|number| number == 14) {
            return Ok(Arc::new(Int64Array::from(vec![0; rows + 1])));
        }
        Ok(Arc::new(numbers.iter().map(|number| number.map(|number| number * 2)).collect::<Int64Array>()))
    }
}

fn twice(is_pure: bool) -> Arc<Twice> {
    Arc::new(Twice { is_pure, asked: AtomicUsize::new(0) })
}

fn session() -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    session.register_function("twice", twice(true)).unwrap();
    run(
        &mut session,
        &["CREATE TABLE t (a int PRIMARY KEY, b bigint)", "INSERT INTO t VALUES (1, 10), (2, NULL), (3, 30)"],
    );
    session
}

#[test]
fn a_function_of_the_program_is_called_wherever_an_expression_stands() {
    let mut session = session();
    assert_eq!(ask(&mut session, "SELECT twice(b) FROM t ORDER BY a"), ["20", "NULL", "60"]);
    assert_eq!(ask(&mut session, "SELECT a FROM t WHERE twice(a) > 3 ORDER BY twice(a) DESC"), ["3", "2"]);
    assert_eq!(ask(&mut session, "SELECT sum(twice(a)), pg_typeof(twice(1)) FROM t"), ["12,bigint"]);
    run(&mut session, &["UPDATE t SET b = twice(a) WHERE a = 2", "INSERT INTO t VALUES (4, twice(7))"]);
    assert_eq!(ask(&mut session, "SELECT b FROM t ORDER BY a"), ["10", "4", "30", "14"]);
    run(&mut session, &["CREATE VIEW doubled AS SELECT twice(a) AS c FROM t"]);
    assert_eq!(ask(&mut session, "SELECT sum(c) FROM doubled"), ["20"]);
    assert!(session.unregister_function("twice") && !session.unregister_function("twice"));
    assert_eq!(session.execute("SELECT twice(1)").unwrap_err().sqlstate, "42883");
}

#[test]
fn arguments_become_the_types_of_the_parameters_as_implicit_casts_do() {
    let mut session = session();
    assert_eq!(ask(&mut session, "SELECT twice(2::smallint), twice('7'), twice(NULL)"), ["4,14,NULL"]);
    for call in ["twice(1.5)", "twice('1'::text)", "twice()", "twice(1, 2)", "twice(true)"] {
        let error = session.execute(&format!("SELECT {call}")).map(drop).unwrap_err();
        assert_eq!(error.sqlstate, "42883", "{call}: {error}");
    }
}

#[test]
fn errors_end_the_statement_and_wrong_results_are_errors() {
    let mut session = session();
    let mut failing = |number: i32| {
        let rows = session.execute(&format!("SELECT twice({number} + a * 0) FROM t"));
        let error = rows.and_then(|rows| match rows {
            sql::Outcome::Rows(mut rows) => rows.find_map(Result::err).map_or(Ok(()), Err),
            sql::Outcome::Done(_) => Ok(()),
        });
        error.unwrap_err()
    };
    assert_eq!((failing(13).sqlstate, failing(13).message), ("38000", "13 is unlucky".to_owned()));
    assert_eq!(failing(14).sqlstate, "39000");
}

#[test]
fn a_function_that_is_not_pure_is_called_for_each_row() {
    let mut session = session();
    let counted = twice(false);
    session.register_function("counted", counted.clone()).unwrap();
    assert_eq!(ask(&mut session, "SELECT counted(1) FROM t"), ["2", "2", "2"]);
    assert_eq!(counted.asked.load(Ordering::Relaxed), 3);
}

#[test]
fn names_of_sql_and_definitions_that_others_read_are_refused() {
    let mut session = session();
    for name in ["upper", "sum", "row_number"] {
        assert_eq!(session.register_function(name, twice(true)).unwrap_err().sqlstate, "42723");
    }
    for statement in [
        "CREATE TABLE u (a bigint DEFAULT twice(1))",
        "CREATE TABLE u (a bigint CHECK (twice(a) > 0))",
        "CREATE INDEX ON t (twice(a))",
    ] {
        assert_eq!(session.execute(statement).map(drop).unwrap_err().sqlstate, "42883", "{statement}");
    }
}
