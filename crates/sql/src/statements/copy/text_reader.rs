//! Reads PostgreSQL's text format of `COPY`: a row a line, fields between tabs, and backslashes before what would mean
//! something else.
//!
//! ```text
//! \N           NULL (or what the option says)      \b \f \n \r \t \v    the signs of C
//! \. alone     the end                             \101  \x41           a byte by its number
//! ```
use std::ops::Range;

use super::record::{END_OF_DATA, Record};

/// Reads the rows of a chunk.
pub(crate) struct TextReader<'c> {
    chunk: &'c [u8],
    at: usize,
    line: u64,
    delimiter: u8,
    null: &'c [u8],
    is_over: bool,
}

impl<'c> TextReader<'c> {
    /// Reads a chunk that begins in this line.
    pub(crate) fn new(chunk: &'c [u8], line: u64, delimiter: u8, null: &'c str) -> TextReader<'c> {
        TextReader { chunk, at: 0, line, delimiter, null: null.as_bytes(), is_over: false }
    }

    /// Whether the line that ends the data has been read.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads the next row; false at the end. Fields that are not NULL count as quoted.
    pub(crate) fn read(&mut self, record: &mut Record) -> bool {
        record.begin(self.line);
        if self.is_over || self.at == self.chunk.len() {
            return false;
        }
        let start = self.at;
        let has_escapes = self.pass_line();
        let end = match &self.chunk[start..self.at] {
            // What a backslash stands before is a part of the value.
            [line @ .., b'\r', b'\n'] if !ends_with_escape(line) => start + line.len(),
            [line @ .., b'\n'] | line => start + line.len(),
        };
        if self.chunk[start..end] == *END_OF_DATA {
            self.is_over = true;
            return false;
        }
        match has_escapes {
            true => self.cut_escaped(start..end, record),
            false => self.cut(start..end, record),
        }
        true
    }

    /// Goes to the end of a row, and tells whether there is a backslash in it.
    fn pass_line(&mut self) -> bool {
        let mut has_escapes = false;
        loop {
            let rest = &self.chunk[self.at..];
            let Some(special) = memchr::memchr2(b'\\', b'\n', rest) else {
                self.at = self.chunk.len();
                return has_escapes;
            };
            if rest[special] == b'\n' {
                self.at += special + 1;
                self.line += 1;
                return has_escapes;
            }
            // A line end that a backslash stands before is a part of the value.
            has_escapes = true;
            self.line += u64::from(rest.get(special + 1) == Some(&b'\n'));
            self.at = self.chunk.len().min(self.at + special + 2);
        }
    }

    /// Cuts a line without backslashes at its delimiters.
    fn cut(&self, line: Range<usize>, record: &mut Record) {
        let mut start = line.start;
        for at in memchr::memchr_iter(self.delimiter, &self.chunk[line.clone()]) {
            let end = line.start + at;
            record.put(start..end, self.chunk[start..end] != *self.null);
            start = end + 1;
        }
        record.put(start..line.end, self.chunk[start..line.end] != *self.null);
    }

    /// Cuts a line at its delimiters, as far as no backslash stands before them.
    fn cut_escaped(&self, line: Range<usize>, record: &mut Record) {
        let line = &self.chunk[line];
        let (mut start, mut at) = (0, 0);
        loop {
            match line.get(at) {
                Some(b'\\') => at += 2,
                Some(byte) if *byte != self.delimiter => at += 1,
                other => {
                    let is_last = other.is_none();
                    let field = &line[start.min(line.len())..at.min(line.len())];
                    let is_null = field == self.null;
                    record.put_own(
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
}

/// Whether the last byte is a backslash that means what is next to it.
fn ends_with_escape(line: &[u8]) -> bool {
    line.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
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
    use super::super::chunks::{Chunks, Dialect};
    use super::*;

    type Rows = Vec<(u64, Vec<Option<String>>)>;

    fn rows_of(bytes: &[u8], line: u64) -> (Rows, bool) {
        let mut reader = TextReader::new(bytes, line, b'\t', "\\N");
        let (mut record, mut rows) = (Record::default(), Vec::new());
        while reader.read(&mut record) {
            let field = |at| match record.field(at, bytes) {
                (_, false) => None,
                (bytes, true) => Some(String::from_utf8_lossy(bytes).into_owned()),
            };
            rows.push((record.line, (0..record.len()).map(field).collect()));
        }
        (rows, reader.is_over())
    }

    /// As the whole text says, and as its chunks do.
    fn rows(text: &str) -> Vec<Vec<Option<String>>> {
        let (whole, mut cut) = (rows_of(text.as_bytes(), 1).0, Vec::new());
        let mut chunks = Chunks::new(text.as_bytes(), Dialect::Text { delimiter: b'\t' });
        while let Some(chunk) = chunks.next() {
            let chunk = chunk.unwrap();
            let (rows, is_over) = rows_of(&chunk.bytes, chunk.line);
            cut.extend(rows);
            if is_over {
                break;
            }
        }
        assert_eq!(cut, whole, "{text:?} in chunks");
        whole.into_iter().map(|(_, fields)| fields).collect()
    }

    #[test]
    fn chunks_say_what_the_whole_says() {
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as usize % below
        };
        let parts = ["a", "bc", "\t", "\\", "\n", "\r\n", "\\N", "\\\n", "\\.", "xyz xyz xyz"];
        for _ in 0..2_000 {
            let text: String = (0..random(40)).map(|_| parts[random(parts.len())]).collect();
            rows(&text);
        }
    }

    #[test]
    fn backslashes_hide_what_means_something() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(rows("1\ta b\n2\t\\N\n"), [[some("1"), some("a b")], [some("2"), None]]);
        assert_eq!(rows("a\\tb\\\\\\n\\q\\x41\\101\\\tz\n"), [[some("a\tb\\\nqAA\tz")]]);
        assert_eq!(rows("a\\\nb\r\n\t\n\\."), [vec![some("a\nb")], vec![some(""), some("")]]);
        assert_eq!(rows("\\\\N\n\\.\nnot read\n"), [[some("\\N")]]);
        assert_eq!(rows("a\\\r\nb\\\\\r\n"), [[some("a\r")], [some("b\\")]]);
        assert!(rows("").is_empty() && rows("x\\").len() == 1);
    }
}
