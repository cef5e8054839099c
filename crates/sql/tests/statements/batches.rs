//! Rows that a program in the same process has as Arrow batches: loaded into tables, and read as tables.
use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use engine::Database;
use sql::{BatchInput, CopyInput, Session, SessionOptions, SqlError};

use crate::answers::{ask, run};

/// Batches of one program.
struct Batches(SchemaRef, std::vec::IntoIter<RecordBatch>);

impl Read for Batches {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl CopyInput for Batches {
    fn begin(&mut self, _: usize, _: bool) -> io::Result<()> {
        Err(io::Error::other("an input of batches has no bytes"))
    }

    fn batches(&mut self) -> Option<&mut dyn BatchInput> {
        Some(self)
    }
}

impl BatchInput for Batches {
    fn schema(&self) -> SchemaRef {
        self.0.clone()
    }

    fn next_batch(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        self.1.next().map(Ok)
    }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn numbers(values: Vec<Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

fn texts(values: Vec<Option<&str>>) -> ArrayRef {
    Arc::new(StringArray::from(values))
}

fn session() -> Session {
    Session::new(&Database::in_memory(), SessionOptions::default())
}

fn copy(session: &mut Session, statement: &str, batches: Vec<RecordBatch>) -> Result<(), SqlError> {
    let mut input = Batches(batches[0].schema(), batches.into_iter());
    session.execute_with_input(statement, &mut input).map(drop)
}

#[test]
fn batches_go_into_the_columns_of_their_names_and_defaults_fill_the_rest() {
    let mut session = session();
    run(&mut session, &["CREATE TABLE t (a int PRIMARY KEY, b text, c int DEFAULT 7)"]);
    let first = batch(vec![("b", texts(vec![Some("x"), None])), ("a", numbers(vec![Some(1), Some(2)]))]);
    let second = batch(vec![("b", texts(vec![Some("y")])), ("a", numbers(vec![Some(3)]))]);
    copy(&mut session, "COPY t (b, a) FROM STDIN", vec![first, second]).unwrap();
    assert_eq!(ask(&mut session, "SELECT * FROM t ORDER BY a"), ["1,x,7", "2,NULL,7", "3,y,7"]);
}

#[test]
fn an_error_names_row_and_column_and_nothing_stays() {
    let mut session = session();
    run(&mut session, &["CREATE TABLE t (a smallint)"]);
    let first = batch(vec![("a", numbers(vec![Some(1), Some(2)]))]);
    let second = batch(vec![("a", numbers(vec![None, Some(70_000)]))]);
    let error = copy(&mut session, "COPY t (a) FROM STDIN", vec![first, second]).unwrap_err();
    assert_eq!((error.sqlstate, error.detail.as_deref()), ("22003", Some("Row 3, column \"a\", value \"70000\".")));
    let other = batch(vec![("a", texts(vec![Some("1")]))]);
    let error = copy(&mut session, "COPY t (a) FROM STDIN", vec![other]).unwrap_err();
    assert_eq!(error.detail.as_deref(), Some("column \"a\" is text in the data and smallint in the table."));
    assert_eq!(ask(&mut session, "SELECT count(*) FROM t"), ["0"]);
}

#[test]
fn registered_batches_are_read_as_a_table_until_a_table_has_their_name() {
    let mut session = session();
    let rows = batch(vec![
        ("a", Arc::new(Int8Array::from(vec![1, 2, 3])) as ArrayRef),
        ("b", texts(vec![Some("x"), None, Some("z")])),
    ]);
    session.register("given", &rows.schema(), &[rows.clone(), rows.slice(0, 1)]).unwrap();
    assert_eq!(ask(&mut session, "SELECT a + 1, upper(b) FROM given ORDER BY a, b"), ["2,X", "2,X", "3,NULL", "4,Z"]);
    assert_eq!(ask(&mut session, "SELECT count(*) FROM given g JOIN given h USING (a)"), ["6"]);
    run(&mut session, &["CREATE TABLE kept AS SELECT * FROM given"]);
    assert_eq!(ask(&mut session, "SELECT pg_typeof(a), pg_typeof(b) FROM kept LIMIT 1"), ["smallint,text"]);
    run(&mut session, &["CREATE TABLE given (a int)"]);
    assert_eq!(ask(&mut session, "SELECT count(*) FROM given"), ["0"]);
    run(&mut session, &["DROP TABLE given"]);
    assert_eq!(ask(&mut session, "SELECT count(*) FROM given"), ["4"]);
    assert!(session.unregister("given") && !session.unregister("given"));
    assert_eq!(session.execute("SELECT * FROM given").unwrap_err().sqlstate, "42P01");
}
