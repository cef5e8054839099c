//! The source of the rows of `COPY FROM STDIN`, and where those of `COPY TO STDOUT` go: the caller of the session supplies it with
//! the statement.
use std::io::{self, Read};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::SqlError;
use crate::interrupt::cancel::Token;

/// The standard input of a session. Reading blocks until there is more, and ends where the rows do.
///
/// An error of the kind `WouldBlock` or `TimedOut` says that nothing has come for a while: it is asked again unless
/// the statement is to stop. `ConnectionAborted` says that the sender of the rows has given up.
pub trait CopyInput: Read {
    /// Rows are wanted from here on, with so many columns.
    ///
    /// # Errors
    /// If there is no client to ask. The text of the error is told to the user.
    fn begin(&mut self, columns: usize, is_binary: bool) -> io::Result<()>;

    /// All rows were read; what may follow them is passed over.
    ///
    /// # Errors
    /// As reading.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Rows of so many columns are given from here on, as lines of text or in PostgreSQL's binary form.
    ///
    /// # Errors
    /// If there is no client that takes them. The text of the error is told to the user.
    fn begin_giving(&mut self, columns: usize, is_binary: bool) -> io::Result<()> {
        let _ = (columns, is_binary);
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "COPY TO STDOUT is not supported without a client that takes rows",
        ))
    }

    /// Gives a row: a line with its end, or its bytes.
    ///
    /// # Errors
    /// If the client can't be reached.
    fn give(&mut self, line: &[u8]) -> io::Result<()> {
        let _ = line;
        Ok(())
    }

    /// All rows were given.
    fn end_giving(&mut self) {}

    /// The rows as Arrow batches, of an input that has no bytes: it is not asked to begin or to end.
    fn batches(&mut self) -> Option<&mut dyn BatchInput> {
        None
    }
}

/// Rows that come as Arrow batches; their columns are matched by name.
pub trait BatchInput {
    /// The columns of all batches.
    fn schema(&self) -> SchemaRef;

    /// The next batch. An error ends the statement.
    fn next_batch(&mut self) -> Option<Result<RecordBatch, SqlError>>;
}

/// Why rows come or go no further.
pub(crate) enum Broken {
    Io(io::Error),
    /// the rows are none, or have a value that can't be sent
    Rows(SqlError),
}

/// An input that waits no longer than the statement runs.
pub(crate) struct Patient<'a> {
    pub(crate) input: &'a mut dyn CopyInput,
    pub(crate) token: &'a Token,
}

impl Patient<'_> {
    fn ask<T>(&mut self, mut ask: impl FnMut(&mut dyn CopyInput) -> io::Result<T>) -> io::Result<T> {
        loop {
            match ask(self.input) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    self.check()?;
                }
                done => return done,
            }
        }
    }

    /// An error if the statement is to stop.
    fn check(&self) -> io::Result<()> {
        self.token.check().map_err(|stopped| io::Error::new(io::ErrorKind::ConnectionAborted, stopped.message))
    }

    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.ask(|input| input.end())
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.ask(|input| input.read(out))
    }
}

/// The input of sessions that have none.
#[derive(Debug)]
pub struct NoInput;

impl Read for NoInput {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl CopyInput for NoInput {
    fn begin(&mut self, _: usize, _: bool) -> io::Result<()> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "COPY FROM STDIN is not supported without a client that sends rows",
        ))
    }
}
