//! Running statements and reading what they give as text.
use sql::{Outcome, Session, text_value};

/// The rows of a query as text.
pub(crate) fn ask(session: &mut Session, query: &str) -> Vec<String> {
    let Outcome::Rows(rows) = session.execute(query).unwrap() else { panic!("{query} gives no rows") };
    let mut lines = Vec::new();
    for batch in rows.map(Result::unwrap) {
        let cell = |row, column: &arrow_array::ArrayRef| text_value(column, row).unwrap_or_else(|| "NULL".to_owned());
        let line = |row| batch.columns().iter().map(|column| cell(row, column)).collect::<Vec<_>>().join(",");
        lines.extend((0..batch.num_rows()).map(line));
    }
    lines
}

/// Runs statements that succeed.
pub(crate) fn run(session: &mut Session, statements: &[&str]) {
    for statement in statements {
        session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}
