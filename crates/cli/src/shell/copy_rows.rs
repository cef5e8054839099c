//! The rows of `COPY ... FROM STDIN` in a script: they stand behind the line of the statement, up to a line that is `\.` alone.
use std::io::{self, BufRead, Read, Write};

use sql::{CopyInput, NoInput};

/// What a statement of the shell reads rows from, and where it gives those of `COPY ... TO STDOUT`.
pub(crate) struct ScriptRows<'s, 'o> {
    /// The rest of the script; none where rows would have to come from where statements are typed.
    script: Option<&'s mut dyn BufRead>,
    out: &'o mut dyn Write,
    line: Vec<u8>,
    /// How much of the line was read.
    at: usize,
    /// Whether rows were asked for, and there may be more.
    is_reading: bool,
    /// Whether rows were given.
    pub(crate) has_given: bool,
    /// How many lines of the script were rows, or their end.
    pub(crate) lines: usize,
}

impl<'s, 'o> ScriptRows<'s, 'o> {
    /// The rows that follow in a script.
    pub(crate) fn new(script: Option<&'s mut dyn BufRead>, out: &'o mut dyn Write) -> ScriptRows<'s, 'o> {
        ScriptRows { script, out, line: Vec::new(), at: 0, is_reading: false, has_given: false, lines: 0 }
    }

    /// Reads the next line; nothing is left of it where the rows are over.
    fn next_line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.at = 0;
        let Some(script) = &mut self.script else { return Ok(()) };
        let count = script.read_until(b'\n', &mut self.line)?;
        self.lines += usize::from(count > 0);
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        if count == 0 || text.strip_suffix(b"\r").unwrap_or(text) == b"\\." {
            self.line.clear();
            self.is_reading = false;
        }
        Ok(())
    }

    /// Passes over the rows that the statement has not read.
    pub(crate) fn pass_over(&mut self) -> io::Result<()> {
        while self.is_reading {
            self.next_line()?;
        }
        Ok(())
    }
}

impl Read for ScriptRows<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() && self.is_reading {
            self.next_line()?;
        }
        let count = bytes.len().min(self.line.len() - self.at);
        bytes[..count].copy_from_slice(&self.line[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl CopyInput for ScriptRows<'_, '_> {
    fn begin(&mut self, columns: usize, is_binary: bool) -> io::Result<()> {
        if self.script.is_none() {
            return NoInput.begin(columns, is_binary);
        }
        if is_binary {
            let message = "COPY FROM STDIN in binary is not supported in a script";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
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
        self.out.write_all(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_with_their_mark_and_the_script_goes_on_behind_it() {
        let (mut script, mut out) = (&b"1\ta\r\n2\t\\N\n\\.\nSELECT 1;\n"[..], Vec::new());
        let mut rows = ScriptRows::new(Some(&mut script), &mut out);
        rows.begin(2, false).unwrap();
        let mut text = String::new();
        rows.read_to_string(&mut text).unwrap();
        rows.end().unwrap();
        assert_eq!((text.as_str(), rows.lines), ("1\ta\r\n2\t\\N\n", 3));
        assert_eq!(script, b"SELECT 1;\n");
    }

    #[test]
    fn what_was_not_read_is_passed_over() {
        let (mut script, mut out) = (&b"1\n2\n\\.\nSELECT 1;"[..], Vec::new());
        let mut rows = ScriptRows::new(Some(&mut script), &mut out);
        rows.begin(1, false).unwrap();
        assert_eq!(rows.read(&mut [0; 1]).unwrap(), 1);
        rows.pass_over().unwrap();
        assert_eq!(script, b"SELECT 1;");
    }
}
