//! Running statements and reading what they give as text.
use std::io::{self, Cursor, Read};

use sql::{CopyInput, Outcome, Session, text_value};

/// What a client sends for `COPY FROM STDIN`.
pub(crate) struct Lines(Cursor<String>);

impl Lines {
    pub(crate) fn new(text: &str) -> Lines {
        Lines(Cursor::new(text.to_owned()))
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl CopyInput for Lines {
    fn begin(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

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
