//! The rows of `COPY ... FROM STDIN`, and where those of `COPY ... TO STDOUT` go.
//!
//! The rows stand behind the line of the statement, up to a line that is `\.` alone: in a script, on standard input, or at the prompt,
//! where the user types them. `\copy` has them come from a file or a program instead, up to its end. They are read as the statement
//! asks for them, so that no more than a line is held.
use std::io::{self, BufRead, Read, Write};

use sql::CopyInput;

use super::lines::LineSource;

/// What a user is told before the first row.
const NOTICE: &str = "Enter data to be copied followed by a newline.\n\
                      End with a backslash and a period on a line by itself, or an EOF signal.\n";

/// Where rows come from.
pub(crate) enum RowSource<'s> {
    /// The lines behind the statement.
    Lines(&'s mut dyn LineSource),
    /// All that there is to read.
    Bytes(Box<dyn BufRead + 's>),
}

/// What a statement of the shell reads rows from, and where it gives rows.
pub(crate) struct CopyRows<'s, 'o> {
    from: RowSource<'s>,
    to: &'o mut dyn Write,
    line: Vec<u8>,
    /// How much of the line was read.
    at: usize,
    /// Whether rows were asked for, and there may be more.
    is_reading: bool,
    /// Whether rows were given.
    pub(crate) has_given: bool,
    /// How many lines were rows, or their end.
    pub(crate) lines: usize,
}

impl<'s, 'o> CopyRows<'s, 'o> {
    pub(crate) fn new(from: RowSource<'s>, to: &'o mut dyn Write) -> CopyRows<'s, 'o> {
        CopyRows { from, to, line: Vec::new(), at: 0, is_reading: false, has_given: false, lines: 0 }
    }

    /// Reads the next line; nothing is left of it where the rows are over.
    fn next_line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.at = 0;
        let RowSource::Lines(source) = &mut self.from else { return Ok(()) };
        let read = source.read_row(&mut self.line);
        if read.as_ref().is_err_and(is_patience) {
            return read;
        }
        self.lines += usize::from(!self.line.is_empty());
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        if read.is_err() || self.line.is_empty() || text.strip_suffix(b"\r").unwrap_or(text) == b"\\." {
            self.line.clear();
            self.is_reading = false;
        }
        read
    }

    /// Rows follow a statement of a script even where it has failed before it asked for them; they are no statements.
    pub(crate) fn expect(&mut self) {
        if let RowSource::Lines(source) = &self.from
            && source.name().is_some()
            && self.lines == 0
        {
            self.is_reading = true;
        }
    }

    /// Passes over the rows that the statement has not read.
    pub(crate) fn pass_over(&mut self) -> io::Result<()> {
        while self.is_reading {
            match self.next_line() {
                Err(error) if is_patience(&error) => {}
                read => read?,
            }
        }
        Ok(())
    }

    /// No more rows are read: the user has stopped the statement.
    pub(crate) fn give_up(&mut self) {
        self.is_reading = false;
    }
}

/// Whether nothing has come for a while.
fn is_patience(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

impl Read for CopyRows<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let RowSource::Bytes(source) = &mut self.from {
            return source.read(bytes);
        }
        if self.at == self.line.len() && self.is_reading {
            self.next_line()?;
        }
        let count = bytes.len().min(self.line.len() - self.at);
        bytes[..count].copy_from_slice(&self.line[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl CopyInput for CopyRows<'_, '_> {
    fn begin(&mut self, _: usize, is_binary: bool) -> io::Result<()> {
        let RowSource::Lines(source) = &self.from else { return Ok(()) };
        if is_binary && !source.is_interactive() && source.name().is_none() {
            // A statement of the command line has standard input to itself.
            self.from = RowSource::Bytes(Box::new(io::stdin().lock()));
            return Ok(());
        }
        if is_binary {
            let message = "COPY FROM STDIN in binary is not supported among statements; \\copy reads a file";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        if source.is_interactive() {
            self.to.write_all(NOTICE.as_bytes())?;
            self.to.flush()?;
        }
        self.is_reading = true;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.pass_over()
    }

    fn begin_giving(&mut self, _: usize, _: bool) -> io::Result<()> {
        self.has_given = true;
        Ok(())
    }

    fn give(&mut self, line: &[u8]) -> io::Result<()> {
        self.to.write_all(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::lines::Script;

    #[test]
    fn rows_end_with_their_mark_and_the_script_goes_on_behind_it() {
        let (mut script, mut out) = (&b"1\ta\r\n2\t\\N\n\\.\nSELECT 1;\n"[..], Vec::new());
        let mut source = Script::new(&mut script, Some("a.sql"));
        let mut rows = CopyRows::new(RowSource::Lines(&mut source), &mut out);
        rows.begin(2, false).unwrap();
        let mut text = String::new();
        rows.read_to_string(&mut text).unwrap();
        rows.end().unwrap();
        assert_eq!((text.as_str(), rows.lines), ("1\ta\r\n2\t\\N\n", 3));
        drop(rows);
        assert_eq!(script, b"SELECT 1;\n");
    }

    #[test]
    fn what_was_not_read_is_passed_over() {
        let (mut script, mut out) = (&b"1\n2\n\\.\nSELECT 1;"[..], Vec::new());
        let mut source = Script::new(&mut script, Some("a.sql"));
        let mut rows = CopyRows::new(RowSource::Lines(&mut source), &mut out);
        rows.begin(1, false).unwrap();
        assert_eq!(rows.read(&mut [0; 1]).unwrap(), 1);
        rows.pass_over().unwrap();
        drop(rows);
        assert_eq!(script, b"SELECT 1;");
    }

    #[test]
    fn the_bytes_of_a_file_are_given_as_they_are() {
        let mut out = Vec::new();
        let mut rows = CopyRows::new(RowSource::Bytes(Box::new(&b"PGCOPY\n\xff"[..])), &mut out);
        rows.begin(1, true).unwrap();
        let mut bytes = Vec::new();
        rows.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"PGCOPY\n\xff");
    }
}
