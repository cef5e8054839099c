//! Where lines come from: a terminal, a script, a test.
use std::io::{self, BufRead};

/// What a user is asked for a row with.
pub(crate) const ROW_PROMPT: &str = ">> ";

/// The result of reading a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// Ctrl-C: the user wants to start the statement over.
    Interrupted,
    /// Ctrl-D, or the end of the script.
    End,
}

/// Where lines come from.
pub trait LineSource {
    /// Waits for a line.
    ///
    /// # Errors
    /// If there is nothing to read from any more; of the kind `InvalidData` if the line is no UTF-8.
    fn read_line(&mut self, prompt: &str) -> io::Result<Line>;

    /// Reads a line of rows with its end into `line`, as the bytes that it has; nothing at the end.
    ///
    /// # Errors
    /// As [`read_line`](Self::read_line); of the kind `WouldBlock` if nothing has come for a while.
    fn read_row(&mut self, line: &mut Vec<u8>) -> io::Result<()> {
        match self.read_line(ROW_PROMPT)? {
            Line::Text(text) => {
                line.extend_from_slice(text.as_bytes());
                line.push(b'\n');
                Ok(())
            }
            Line::Interrupted => {
                Err(io::Error::new(io::ErrorKind::ConnectionAborted, "COPY from stdin failed: canceled by user"))
            }
            Line::End => Ok(()),
        }
    }

    /// Puts an entry into the history.
    fn remember(&mut self, _entry: &str) {}

    /// The entries of the history, each a text with its end.
    fn history(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the script is called; none of what a user types.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Whether a user types the lines.
    fn is_interactive(&self) -> bool {
        true
    }
}

/// The lines of a script.
pub(crate) struct Script<'a> {
    /// Those of standard input where it is not given, which is locked for no longer than a line takes: `\copy` may read there, too.
    lines: Option<&'a mut dyn BufRead>,
    name: Option<&'a str>,
    is_first: bool,
}

impl<'a> Script<'a> {
    /// A script; without a name it is a text of the command line.
    pub(crate) fn new(lines: &'a mut dyn BufRead, name: Option<&'a str>) -> Script<'a> {
        Script { lines: Some(lines), name, is_first: true }
    }

    /// The script on standard input; without a name what is there is rows and no script.
    pub(crate) fn stdin(name: Option<&str>) -> Script<'_> {
        Script { lines: None, name, is_first: true }
    }

    fn read(&mut self, line: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.lines {
            Some(lines) => lines.read_until(b'\n', line),
            None => io::stdin().lock().read_until(b'\n', line),
        }
    }
}

impl LineSource for Script<'_> {
    fn read_line(&mut self, _: &str) -> io::Result<Line> {
        let mut line = Vec::new();
        if self.read(&mut line)? == 0 {
            return Ok(Line::End);
        }
        let is_first = std::mem::take(&mut self.is_first);
        let text = String::from_utf8(line)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "invalid byte sequence for encoding \"UTF8\""))?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let text = if is_first { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        Ok(Line::Text(text.to_owned()))
    }

    fn read_row(&mut self, line: &mut Vec<u8>) -> io::Result<()> {
        // The rows of a statement of the command line are those of standard input.
        match self.name {
            Some(_) => self.read(line).map(drop),
            None => io::stdin().lock().read_until(b'\n', line).map(drop),
        }
    }

    fn name(&self) -> Option<&str> {
        self.name
    }

    fn is_interactive(&self) -> bool {
        false
    }
}
