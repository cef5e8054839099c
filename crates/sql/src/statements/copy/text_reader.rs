//! Reads PostgreSQL's text format of `COPY`: a row a line, fields between tabs, and backslashes before what would mean
//! something else.
//!
//! ```text
//! \N           NULL (or what the option says)      \b \f \n \r \t \v    the signs of C
//! \. alone     the end                             \101  \x41           a byte by its number
//! ```
use std::io::{BufReader, Read};

use super::csv_reader::{END_OF_DATA, ReadError, Record, read_line};

const BUFFER_BYTES: usize = 1 << 18;

/// Reads rows.
pub(crate) struct TextReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    delimiter: u8,
    null: Vec<u8>,
    lines: u64,
    bytes: u64,
    is_over: bool,
}

impl<R: Read> TextReader<R> {
    pub(crate) fn new(input: R, delimiter: u8, null: &str) -> TextReader<R> {
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        let null = null.as_bytes().to_vec();
        TextReader { input, line: Vec::new(), delimiter, null, lines: 0, bytes: 0, is_over: false }
    }

    /// Bytes consumed so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the next row; false at the end. Fields that are not NULL count as quoted.
    pub(crate) fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        record.clear();
        record.line = self.lines + 1;
        self.line.clear();
        loop {
            let read = if self.is_over { 0 } else { read_line(&mut self.input, &mut self.line)? };
            self.bytes += read as u64;
            self.lines += u64::from(read > 0);
            if read == 0 {
                self.is_over = true;
            }
            // A line end that a backslash stands before is a part of the value.
            if read == 0 || !self.goes_on() {
                break;
            }
        }
        if self.is_over && self.line.is_empty() {
            return Ok(false);
        }
        let line = match &self.line[..] {
            [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
            line => line,
        };
        if line == END_OF_DATA {
            self.is_over = true;
            return Ok(false);
        }
        fields(line, self.delimiter, &self.null, record);
        Ok(true)
    }

    fn goes_on(&self) -> bool {
        let Some(line) = self.line.strip_suffix(b"\n") else { return false };
        line.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
    }
}

/// Cuts a line at its delimiters, as far as no backslash stands before them.
fn fields(line: &[u8], delimiter: u8, null: &[u8], record: &mut Record) {
    let mut start = 0;
    let mut at = 0;
    loop {
        match line.get(at) {
            Some(b'\\') => at += 2,
            Some(byte) if *byte != delimiter => at += 1,
            other => {
                let is_last = other.is_none();
                let field = &line[start.min(line.len())..at.min(line.len())];
                let is_null = field == null;
                record.put(
                    |bytes| if is_null { bytes.extend_from_slice(field) } else { unescape(field, bytes) },
                    !is_null,
                );
                if is_last {
                    return;
                }
                at += 1;
                start = at;
            }
        }
    }
}

fn unescape(field: &[u8], out: &mut Vec<u8>) {
    let mut rest = field;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let (byte, length) = escaped(&rest[at + 1..]);
        out.push(byte);
        rest = &rest[(at + 1 + length).min(rest.len())..];
    }
    out.extend_from_slice(rest);
}

/// The byte that a backslash and these bytes stand for, and how many of them.
fn escaped(rest: &[u8]) -> (u8, usize) {
    let digits = |bytes: &[u8], radix: u32, most: usize| {
        let is_digit = |byte: &&u8| (**byte as char).is_digit(radix);
        let found: Vec<u32> =
            bytes.iter().take(most).take_while(is_digit).filter_map(|b| (*b as char).to_digit(radix)).collect();
        let value = found.iter().fold(0, |value, digit| value * radix + digit) & 0xff;
        (u8::try_from(value).unwrap_or(0), found.len())
    };
    match rest {
        [] => (b'\\', 0),
        [b'b', ..] => (8, 1),
        [b'f', ..] => (12, 1),
        [b'n', ..] => (b'\n', 1),
        [b'r', ..] => (b'\r', 1),
        [b't', ..] => (b'\t', 1),
        [b'v', ..] => (11, 1),
        [b'0'..=b'7', ..] => digits(rest, 8, 3),
        [b'x', more @ ..] => match digits(more, 16, 2) {
            (_, 0) => (b'x', 1),
            (byte, length) => (byte, length + 1),
        },
        [other, ..] => (*other, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<Option<String>>> {
        let mut reader = TextReader::new(text.as_bytes(), b'\t', "\\N");
        let (mut record, mut rows) = (Record::default(), Vec::new());
        while reader.read(&mut record).unwrap() {
            let field = |at| match record.field(at) {
                (_, false) => None,
                (bytes, true) => Some(String::from_utf8_lossy(bytes).into_owned()),
            };
            rows.push((0..record.len()).map(field).collect());
        }
        rows
    }

    #[test]
    fn backslashes_hide_what_means_something() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(rows("1\ta b\n2\t\\N\n"), [[some("1"), some("a b")], [some("2"), None]]);
        assert_eq!(rows("a\\tb\\\\\\n\\q\\x41\\101\\\tz\n"), [[some("a\tb\\\nqAA\tz")]]);
        assert_eq!(rows("a\\\nb\r\n\t\n\\."), [vec![some("a\nb")], vec![some(""), some("")]]);
        assert_eq!(rows("\\\\N\n\\.\nnot read\n"), [[some("\\N")]]);
        assert!(rows("").is_empty() && rows("x\\").len() == 1);
    }
}
