//! PostgreSQL's binary form of rows, in files and between client and server.
//!
//! ```text
//! header   "PGCOPY\n\xff\r\n\0"   flags (4 bytes)   length of what more there is (4)   what more there is
//! row      count of values (2)   for each value: its length (4), -1 for NULL, and its bytes
//! end      -1 (2)
//! ```
use std::io::{self, BufReader, Read, Write};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::input::Broken;
use crate::error::{Result, SqlError};
use crate::values::wire::encodings::Encoding;
use crate::values::wire::oids;
use crate::values::wire::rows::Column;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// The flag of rows with numbers that PostgreSQL gave them once.
const HAS_OIDS: u32 = 1 << 16;

/// A piece of rows has at least so many bytes, but for the last.
const PIECE_BYTES: usize = if cfg!(test) { 16 } else { 1 << 19 };

/// Bytes that are read at once.
const BYTES_AT_ONCE: usize = 1 << 16;

/// Writes rows.
pub(super) struct BinaryWriter<W> {
    out: W,
    /// The number of the type of each column.
    types: Vec<u32>,
    /// Into which texts are brought.
    encoding: Option<&'static Encoding>,
    /// What is not written yet: the header goes along with the first row.
    bytes: Vec<u8>,
}

impl<W: Write> BinaryWriter<W> {
    pub(super) fn new(out: W, schema: &SchemaRef) -> BinaryWriter<W> {
        let bytes = [&SIGNATURE[..], &[0; 8]].concat();
        let types = schema.fields().iter().map(|field| oids::of_field(field)).collect();
        BinaryWriter { out, types, encoding: None, bytes }
    }

    /// From here on texts are written in this encoding.
    pub(super) fn in_encoding(self, encoding: Option<&'static Encoding>) -> BinaryWriter<W> {
        BinaryWriter { encoding, ..self }
    }

    /// Writes the rows of a batch, one at a time.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), Broken> {
        let described = batch.columns().iter().zip(&self.types);
        let columns: Vec<Column<'_>> = described
            .map(|(array, number)| Column::new(array.as_ref(), *number, 1).in_encoding(self.encoding))
            .collect();
        let width = i16::try_from(columns.len()).unwrap_or(i16::MAX);
        for row in 0..batch.num_rows() {
            self.bytes.extend_from_slice(&width.to_be_bytes());
            columns.iter().try_for_each(|column| column.put(&mut self.bytes, row)).map_err(Broken::Rows)?;
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the end.
    pub(super) fn finish(&mut self) -> Result<(), Broken> {
        self.bytes.extend_from_slice(&(-1_i16).to_be_bytes());
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Broken> {
        self.out.write_all(&self.bytes).map_err(Broken::Io)?;
        self.bytes.clear();
        Ok(())
    }
}

/// Some whole rows.
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// How many rows lie before them.
    pub(super) before: u64,
    pub(super) rows: usize,
}

/// Cuts what is read into pieces of whole rows.
pub(super) struct Pieces<R> {
    input: BufReader<R>,
    columns: usize,
    rows: u64,
    has_begun: bool,
    is_over: bool,
}

fn wrong(message: impl Into<String>) -> Broken {
    Broken::Rows(SqlError::new("22P04", message))
}

impl<R: Read> Pieces<R> {
    pub(super) fn new(input: R, columns: usize) -> Pieces<R> {
        let input = BufReader::with_capacity(BYTES_AT_ONCE, input);
        Pieces { input, columns, rows: 0, has_begun: false, is_over: false }
    }

    /// The next piece; `None` at the end. An error comes with the number of the row that it is in.
    pub(super) fn next(&mut self) -> Option<Result<Piece, (u64, Broken)>> {
        let mut piece = Piece { bytes: Vec::new(), before: self.rows, rows: 0 };
        if !std::mem::replace(&mut self.has_begun, true)
            && let Err(broken) = self.header()
        {
            self.is_over = true;
            return Some(Err((0, broken)));
        }
        while !self.is_over && piece.bytes.len() < PIECE_BYTES {
            match self.row(&mut piece.bytes) {
                Ok(true) => {
                    piece.rows += 1;
                    self.rows += 1;
                }
                Ok(false) => self.is_over = true,
                Err(broken) => {
                    self.is_over = true;
                    return Some(Err((self.rows + 1, broken)));
                }
            }
        }
        (piece.rows > 0).then_some(Ok(piece))
    }

    /// Reads so many bytes; whether there were as many. No room is taken for what has not come.
    fn read(&mut self, count: usize, bytes: &mut Vec<u8>) -> Result<bool, Broken> {
        let wanted = u64::try_from(count).unwrap_or(u64::MAX);
        let read = self.input.by_ref().take(wanted).read_to_end(bytes).map_err(Broken::Io)?;
        Ok(read == count)
    }

    fn number<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Broken> {
        let mut bytes = [0; N];
        let mut filled = 0;
        while filled < N {
            match self.input.read(&mut bytes[filled..]) {
                Ok(0) => return Ok(None),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Broken::Io(error)),
            }
        }
        Ok(Some(bytes))
    }

    fn header(&mut self) -> Result<(), Broken> {
        if self.number::<11>()?.as_ref() != Some(SIGNATURE) {
            return Err(wrong("COPY file signature not recognized"));
        }
        match self.number()?.map(u32::from_be_bytes) {
            None => return Err(wrong("invalid COPY file header (missing flags)")),
            Some(flags) if flags & HAS_OIDS != 0 => return Err(wrong("invalid COPY file header (WITH OIDS)")),
            Some(flags) if flags >> 16 != 0 => return Err(wrong("unrecognized critical flags in COPY file header")),
            Some(_) => {}
        }
        let length = self.number()?.map(i32::from_be_bytes).and_then(|length| u64::try_from(length).ok());
        let length = length.ok_or_else(|| wrong("invalid COPY file header (missing length)"))?;
        let passed = io::copy(&mut self.input.by_ref().take(length), &mut io::sink()).map_err(Broken::Io)?;
        if passed == length { Ok(()) } else { Err(wrong("invalid COPY file header (wrong length)")) }
    }

    /// Reads the values of a row with their lengths; false at the end.
    fn row(&mut self, bytes: &mut Vec<u8>) -> Result<bool, Broken> {
        match self.number()?.map(i16::from_be_bytes) {
            None => return Ok(false),
            Some(-1) => {
                return match self.number::<1>()? {
                    Some(_) => Err(wrong("received copy data after EOF marker")),
                    None => Ok(false),
                };
            }
            Some(count) if usize::try_from(count) != Ok(self.columns) => {
                return Err(wrong(format!("row field count is {count}, expected {}", self.columns)));
            }
            Some(_) => {}
        }
        let ended = || wrong("unexpected EOF in COPY data");
        for _ in 0..self.columns {
            let length = self.number()?.map(i32::from_be_bytes).ok_or_else(ended)?;
            bytes.extend_from_slice(&length.to_be_bytes());
            match usize::try_from(length) {
                Ok(length) if !self.read(length, bytes)? => return Err(ended()),
                Err(_) if length != -1 => return Err(wrong("invalid field size")),
                _ => {}
            }
        }
        Ok(true)
    }
}

impl Piece {
    /// The values of its rows, one behind the other.
    pub(super) fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (length, others) = rest.split_first_chunk::<4>()?;
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                rest = others;
                return Some(None);
            };
            let (value, others) = others.split_at_checked(length)?;
            rest = others;
            Some(Some(value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], columns: usize) -> Result<Vec<Option<Vec<u8>>>, String> {
        let mut pieces = Pieces::new(bytes, columns);
        let mut values = Vec::new();
        while let Some(piece) = pieces.next() {
            let piece = piece.map_err(|(row, broken)| match broken {
                Broken::Rows(error) => format!("{row}: {}", error.message),
                Broken::Io(error) => error.to_string(),
            })?;
            assert_eq!(piece.values().count(), piece.rows * columns);
            values.extend(piece.values().map(|value| value.map(<[u8]>::to_vec)));
        }
        Ok(values)
    }

    fn file(rows: &[u8]) -> Vec<u8> {
        [&SIGNATURE[..], &[0, 0, 0, 1, 0, 0, 0, 2, 9, 9], rows].concat()
    }

    #[test]
    fn rows_are_cut_whole() {
        let row = |text: &[u8]| [&[0, 2, 255, 255, 255, 255, 0, 0, 0, 9][..], text].concat();
        let rows = [row(b"123456789"), row(b"abcdefghi"), row(b"ABCDEFGHI"), vec![255, 255]].concat();
        let value = |text: &[u8]| [None, Some(text.to_vec())];
        let wanted = [value(b"123456789"), value(b"abcdefghi"), value(b"ABCDEFGHI")].concat();
        assert_eq!(read(&file(&rows), 2), Ok(wanted.clone()));
        assert_eq!(read(&file(&rows[..rows.len() - 2]), 2), Ok(wanted));
        for end in 0..file(&rows).len() {
            // Nothing that ends too early is a panic.
            let _ = read(&file(&rows)[..end], 2);
        }
        let told = |bytes: &[u8]| read(bytes, 2).unwrap_err();
        assert_eq!(told(b"PGCOPY\n"), "0: COPY file signature not recognized");
        assert_eq!(told(&file(&rows[..9])), "1: unexpected EOF in COPY data");
        assert_eq!(told(&file(&[0, 3])), "1: row field count is 3, expected 2");
        assert_eq!(told(&file(&[0, 2, 255, 255, 255, 254])), "1: invalid field size");
        assert_eq!(told(&file(&[255, 255, 0])), "1: received copy data after EOF marker");
        assert_eq!(told(&[&SIGNATURE[..], &[0, 1, 0, 0]].concat()), "0: invalid COPY file header (WITH OIDS)");
        // A length alone takes no memory.
        assert_eq!(told(&file(&[0, 2, 127, 255, 255, 255, 1])), "1: unexpected EOF in COPY data");
    }
}
