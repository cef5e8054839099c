//! Reads CSV as PostgreSQL does: quotes may open anywhere in a field, may hold line ends, and tell an empty text
//! (quoted) from NULL (not quoted).
use super::record::Record;

/// Within quotes that were opened in this line, the input ends.
#[derive(Debug)]
pub(crate) struct Unterminated {
    pub(crate) line: u64,
}

/// Reads the records of a chunk.
pub(crate) struct CsvReader<'c> {
    chunk: &'c [u8],
    at: usize,
    line: u64,
    quote: u8,
    escape: u8,
    /// what ends a run of plain bytes
    is_special: [bool; 256],
    /// Whether the line that ends the data has been read.
    is_over: bool,
}

impl<'c> CsvReader<'c> {
    /// Reads a chunk that begins in this line.
    pub(crate) fn new(chunk: &'c [u8], line: u64, (delimiter, quote, escape): (u8, u8, u8)) -> CsvReader<'c> {
        let mut is_special = [false; 256];
        for byte in [delimiter, quote, b'\n', b'\r'] {
            is_special[usize::from(byte)] = true;
        }
        CsvReader { chunk, at: 0, line, quote, escape, is_special, is_over: false }
    }

    /// Whether the line that ends the data has been read.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads the next record; false at the end of the chunk, or of the data before it.
    pub(crate) fn read(&mut self, record: &mut Record) -> Result<bool, Unterminated> {
        record.begin(self.line);
        if self.is_over || self.at == self.chunk.len() {
            return Ok(false);
        }
        loop {
            let start = self.at;
            let plain = self.plain();
            let is_quoted = self.chunk.get(start + plain) == Some(&self.quote);
            match is_quoted {
                true => self.read_quoted(record)?,
                false => {
                    record.put(start..start + plain, false);
                    self.at += plain;
                }
            }
            match self.chunk.get(self.at) {
                None => break,
                Some(b'\n' | b'\r') => {
                    let is_pair = self.chunk[self.at..].starts_with(b"\r\n");
                    self.at += 1 + usize::from(is_pair);
                    self.line += 1;
                    break;
                }
                Some(_) => self.at += 1,
            }
        }
        // psql sends the line that ends the rows in a script, too.
        self.is_over = record.is_end(self.chunk);
        Ok(!self.is_over)
    }

    /// How many plain bytes follow.
    #[inline]
    fn plain(&self) -> usize {
        let rest = &self.chunk[self.at..];
        rest.iter().position(|byte| self.is_special[usize::from(*byte)]).unwrap_or(rest.len())
    }

    /// Reads a field in which quotes open.
    fn read_quoted(&mut self, record: &mut Record) -> Result<(), Unterminated> {
        if let Some(end) = self.simply_quoted() {
            self.line += memchr::memchr_iter(b'\n', &self.chunk[self.at..end]).count() as u64;
            record.put(self.at + 1..end, true);
            self.at = end + 1;
            return Ok(());
        }
        record.put_own(
            |bytes| {
                loop {
                    let plain = self.plain();
                    bytes.extend_from_slice(&self.chunk[self.at..self.at + plain]);
                    self.at += plain;
                    if self.chunk.get(self.at) != Some(&self.quote) {
                        return Ok(());
                    }
                    self.at += 1;
                    self.read_to_quote(bytes)?;
                }
            },
            true,
        )
    }

    /// Where a field ends that begins with a quote, has no other before its end, and ends with one.
    fn simply_quoted(&self) -> Option<usize> {
        let rest = &self.chunk[self.at..];
        let end = memchr::memchr2(self.quote, self.escape, rest.get(1..)?)? + 1;
        let is_simple = rest[0] == self.quote
            && rest[end] == self.quote
            && rest.get(end + 1).is_none_or(|next| *next != self.quote && self.is_special[usize::from(*next)]);
        is_simple.then_some(self.at + end)
    }

    /// Reads up to the closing quote.
    fn read_to_quote(&mut self, bytes: &mut Vec<u8>) -> Result<(), Unterminated> {
        let opened = self.line;
        while let Some(byte) = self.chunk.get(self.at).copied() {
            self.at += 1;
            if byte == self.escape {
                let next = self.chunk.get(self.at).copied();
                if let Some(escaped) = next.filter(|next| *next == self.quote || *next == self.escape) {
                    self.at += 1;
                    bytes.push(escaped);
                    continue;
                }
            }
            if byte == self.quote {
                return Ok(());
            }
            self.line += u64::from(byte == b'\n');
            bytes.push(byte);
        }
        Err(Unterminated { line: opened })
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunks::{Chunks, Dialect};
    use super::*;

    type Lines = Vec<(u64, Vec<String>)>;

    const CSV: (u8, u8, u8) = (b',', b'"', b'"');

    /// The records of some bytes from this line on, a quoted field between `<` and `>`; whether they end the data.
    fn records_of(bytes: &[u8], line: u64, dialect: (u8, u8, u8)) -> Result<(Lines, bool), Unterminated> {
        let mut reader = CsvReader::new(bytes, line, dialect);
        let (mut record, mut records) = (Record::default(), Vec::new());
        while reader.read(&mut record)? {
            let show = |at| {
                let (field, is_quoted) = record.field(at, bytes);
                let text = String::from_utf8(field.to_vec()).unwrap();
                if is_quoted { format!("<{text}>") } else { text }
            };
            records.push((record.line, (0..record.len()).map(show).collect()));
        }
        Ok((records, reader.is_over()))
    }

    /// As the whole text says, and as its chunks do.
    fn records(text: &str, dialect: (u8, u8, u8)) -> Lines {
        let (delimiter, quote, escape) = dialect;
        let whole = records_of(text.strip_prefix('\u{feff}').unwrap_or(text).as_bytes(), 1, dialect).unwrap().0;
        let mut chunks = Chunks::new(text.as_bytes(), Dialect::Csv { delimiter, quote, escape });
        let mut cut = Vec::new();
        while let Some(chunk) = chunks.next() {
            let chunk = chunk.unwrap();
            let (records, is_over) = records_of(&chunk.bytes, chunk.line, dialect).unwrap();
            cut.extend(records);
            if is_over {
                break;
            }
        }
        assert_eq!(cut, whole, "{text:?} in chunks");
        whole
    }

    fn fields(text: &str) -> Vec<Vec<String>> {
        records(text, CSV).into_iter().map(|(_, fields)| fields).collect()
    }

    #[test]
    fn a_lone_mark_ends_the_data() {
        let records = fields("1,x\n\"\\.\"\n\\.,\n\\.\n2,y\n");
        assert_eq!(
            records.iter().map(Vec::len).collect::<Vec<_>>(),
            [2, 1, 2],
            "as a value it is quoted, or not alone"
        );
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
        assert_eq!(fields("\"a\"b,\"c\"\"\",\"\""), [["<ab>", "<c\">", "<>"]]);
        let lines = records("\"a\nb\",1\r\n2,3\r4", CSV);
        assert_eq!(
            lines.iter().map(|(line, fields)| (*line, fields.len())).collect::<Vec<_>>(),
            [(1, 2), (3, 2), (4, 1)]
        );
        assert_eq!(lines[0].1[0], "<a\nb>");
        assert_eq!(records(r#""a\"b\\c\d",x"#, (b',', b'"', b'\\'))[0].1, ["<a\"b\\c\\d>", "x"]);
    }

    #[test]
    fn an_open_quote_is_found_where_it_opened() {
        let outcome = records_of(b"a,b\nc,\"d\ne\n", 1, CSV);
        assert!(matches!(outcome, Err(Unterminated { line: 2 })));
    }

    #[test]
    fn a_byte_order_mark_is_no_data() {
        assert_eq!(fields("\u{feff}a,b\n"), [["a", "b"]]);
    }

    /// Random texts of what means something: cut at any place between records they say what they say as a whole.
    #[test]
    fn chunks_say_what_the_whole_says() {
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as usize % below
        };
        let (mut compared, parts) = (0, ["a", "bc", ",", "\"", "\n", "\r\n", "\r", "\\", "\"\"", "\\\"", "\"x,\ny\""]);
        for _ in 0..3_000 {
            let text: String = (0..random(40)).map(|_| parts[random(parts.len())]).collect();
            for dialect in [CSV, (b',', b'"', b'\\')] {
                if records_of(text.as_bytes(), 1, dialect).is_ok() {
                    records(&text, dialect);
                    compared += 1;
                }
            }
        }
        assert!(compared > 1_000, "{compared} texts have no open quote");
    }
}
