//! Reads CSV as PostgreSQL does: quotes may open anywhere in a field, may hold line ends, and tell an empty text
//! (quoted) from NULL (not quoted).
use std::io::{BufRead, Read};

const BUFFER_BYTES: usize = 1 << 18;
/// The longest record.
const RECORD_BYTES_MAX: usize = 1 << 28;

/// A line that ends the data, as in PostgreSQL's text format; as a value it is quoted.
pub(crate) const END_OF_DATA: &[u8] = b"\\.";

/// How the file is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: u8,
    pub(crate) escape: u8,
}

/// One record: its fields and where it starts.
#[derive(Debug, Default)]
pub(crate) struct Record {
    bytes: Vec<u8>,
    /// Where each field ends, and whether any of it was quoted.
    ends: Vec<(usize, bool)>,
    /// The line of its first byte, counted from 1.
    pub(crate) line: u64,
}

impl Record {
    /// How many fields there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field's bytes and whether it was quoted.
    pub(crate) fn field(&self, at: usize) -> (&[u8], bool) {
        let start = if at == 0 { 0 } else { self.ends[at - 1].0 };
        let (end, is_quoted) = self.ends[at];
        (&self.bytes[start..end], is_quoted)
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a field that `append` writes the bytes of.
    pub(crate) fn put(&mut self, append: impl FnOnce(&mut Vec<u8>), is_quoted: bool) {
        append(&mut self.bytes);
        self.ends.push((self.bytes.len(), is_quoted));
    }
}

/// Appends what comes up to the next line feed, with it; returns how many bytes that were.
pub(crate) fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<usize, ReadError> {
    let room = (RECORD_BYTES_MAX + 1).saturating_sub(line.len()) as u64;
    let read = input.take(room).read_until(b'\n', line).map_err(ReadError::Io)?;
    if line.len() > RECORD_BYTES_MAX { Err(ReadError::TooLong) } else { Ok(read) }
}

/// Why the next record can't be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    Io(std::io::Error),
    /// The file ends within quotes that were opened in this line.
    Unterminated {
        line: u64,
    },
    /// A record is longer than any may be.
    TooLong,
}

/// Reads records from a file.
pub(crate) struct CsvReader<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// Bytes of the buffers before this one.
    passed: u64,
    line: u64,
    dialect: Dialect,
    /// Whether the line that ends the data has been read.
    is_over: bool,
}

impl<R: Read> CsvReader<R> {
    pub(crate) fn new(input: R, dialect: Dialect) -> CsvReader<R> {
        CsvReader { input, buffer: vec![0; BUFFER_BYTES], at: 0, end: 0, passed: 0, line: 1, dialect, is_over: false }
    }

    /// Bytes consumed so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.passed + self.at as u64
    }

    /// Whether there is a byte at `self.at`; reads more if there is none.
    fn fill(&mut self) -> Result<bool, ReadError> {
        if self.at < self.end {
            return Ok(true);
        }
        let is_first = self.bytes() == 0;
        self.passed += self.end as u64;
        (self.at, self.end) = (0, 0);
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::Io(error)),
            }
            // The byte order mark must be seen as a whole.
            if !is_first || self.end >= 3 {
                break;
            }
        }
        if is_first && self.buffer[..self.end].starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
            return self.fill();
        }
        Ok(self.at < self.end)
    }

    /// Reads the next record; false at the end of the file, or of the data before it.
    pub(crate) fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        record.clear();
        record.line = self.line;
        let mut is_quoted = false;
        if self.is_over || !self.fill()? {
            return Ok(false);
        }
        let Dialect { delimiter, quote, .. } = self.dialect;
        while self.fill()? {
            let rest = &self.buffer[self.at..self.end];
            let is_special = |byte: &u8| *byte == delimiter || *byte == quote || *byte == b'\n' || *byte == b'\r';
            let plain = rest.iter().position(is_special).unwrap_or(rest.len());
            record.bytes.extend_from_slice(&rest[..plain]);
            self.at += plain;
            if record.bytes.len() > RECORD_BYTES_MAX {
                return Err(ReadError::TooLong);
            }
            let Some(special) = rest.get(plain).copied() else { continue };
            self.at += 1;
            if special == delimiter {
                record.ends.push((record.bytes.len(), is_quoted));
                is_quoted = false;
            } else if special == quote {
                is_quoted = true;
                self.read_quoted(record)?;
            } else {
                if special == b'\r' && self.fill()? && self.buffer[self.at] == b'\n' {
                    self.at += 1;
                }
                self.line += 1;
                break;
            }
        }
        record.ends.push((record.bytes.len(), is_quoted));
        // psql sends the line that ends the rows in a script, too.
        self.is_over = record.len() == 1 && record.field(0) == (END_OF_DATA, false);
        Ok(!self.is_over)
    }

    /// Reads up to the closing quote.
    fn read_quoted(&mut self, record: &mut Record) -> Result<(), ReadError> {
        let opened = self.line;
        let Dialect { quote, escape, .. } = self.dialect;
        while self.fill()? {
            let byte = self.buffer[self.at];
            self.at += 1;
            if byte == escape {
                let next = if self.fill()? { Some(self.buffer[self.at]) } else { None };
                if let Some(escaped) = next.filter(|next| *next == quote || *next == escape) {
                    self.at += 1;
                    record.bytes.push(escaped);
                    continue;
                }
            }
            if byte == quote {
                return Ok(());
            }
            if byte == b'\n' {
                self.line += 1;
            }
            if record.bytes.len() > RECORD_BYTES_MAX {
                return Err(ReadError::TooLong);
            }
            record.bytes.push(byte);
        }
        Err(ReadError::Unterminated { line: opened })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIALECT: Dialect = Dialect { delimiter: b',', quote: b'"', escape: b'"' };

    /// A reader that gives one byte at a time, so that everything happens at the edge of a buffer.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            out[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn records(text: &str, dialect: Dialect) -> Vec<(u64, Vec<String>)> {
        let mut reader = CsvReader::new(Drip(text.as_bytes()), dialect);
        let (mut record, mut records) = (Record::default(), Vec::new());
        while reader.read(&mut record).unwrap() {
            let show = |at| {
                let (bytes, is_quoted) = record.field(at);
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                if is_quoted { format!("<{text}>") } else { text }
            };
            records.push((record.line, (0..record.len()).map(show).collect()));
        }
        assert_eq!(reader.bytes(), text.len() as u64);
        records
    }

    fn fields(text: &str) -> Vec<Vec<String>> {
        records(text, DIALECT).into_iter().map(|(_, fields)| fields).collect()
    }

    #[test]
    fn a_lone_mark_ends_the_data() {
        let mut reader = CsvReader::new("1,x\n\"\\.\"\n\\.,\n\\.\n2,y\n".as_bytes(), DIALECT);
        let (mut record, mut widths) = (Record::default(), Vec::new());
        while reader.read(&mut record).unwrap() {
            widths.push(record.len());
        }
        assert!(!reader.read(&mut record).unwrap(), "nothing is read behind it");
        assert_eq!(widths, [2, 1, 2], "as a value it is quoted, or not alone");
    }

    #[test]
    fn an_empty_text_is_not_null() {
        assert_eq!(fields("a,,\"\"\n"), [["a", "", "<>"]]);
        assert_eq!(fields("\n"), [[""]]);
        assert_eq!(fields(","), [["", ""]]);
        assert!(fields("").is_empty());
    }

    #[test]
    fn quotes_may_stand_anywhere_and_hold_anything() {
        assert_eq!(fields("a\"b,c\"d,e"), [["<ab,cd>", "e"]]);
        assert_eq!(fields("\"say \"\"hi\"\"\",x"), [["<say \"hi\">", "x"]]);
        let lines = records("\"a\nb\",1\r\n2,3\r4", DIALECT);
        assert_eq!(
            lines.iter().map(|(line, fields)| (*line, fields.len())).collect::<Vec<_>>(),
            [(1, 2), (3, 2), (4, 1)]
        );
        assert_eq!(lines[0].1[0], "<a\nb>");
        let backslash = Dialect { escape: b'\\', ..DIALECT };
        assert_eq!(records(r#""a\"b\\c\d",x"#, backslash)[0].1, ["<a\"b\\c\\d>", "x"]);
    }

    #[test]
    fn an_open_quote_is_found_where_it_opened() {
        let mut reader = CsvReader::new(&b"a,b\nc,\"d\ne\n"[..], DIALECT);
        let mut record = Record::default();
        assert!(reader.read(&mut record).unwrap());
        assert!(matches!(reader.read(&mut record), Err(ReadError::Unterminated { line: 2 })));
    }

    #[test]
    fn a_byte_order_mark_is_no_data() {
        assert_eq!(fields("\u{feff}a,b\n"), [["a", "b"]]);
    }
}
