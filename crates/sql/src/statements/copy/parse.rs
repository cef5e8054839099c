//! Reads the records of a chunk into columns. Any thread may: what is wrong is told by the chunk's own lines.
use arrow_array::ArrayRef;
use engine::Column;

use super::chunks::{Chunk, Dialect};
use super::csv_reader::{CsvReader, Unterminated};
use super::record::Record;
use super::text_reader::TextReader;
use crate::error::{Result, SqlError};
use crate::parsing::copy_options::Header;
use crate::values::builder::ColumnBuilder;

/// How chunks are read.
pub(super) struct Parser<'a> {
    pub(super) columns: Vec<&'a Column>,
    /// by column: whether what stands for NULL is a text in it
    pub(super) never_null: Vec<bool>,
    /// by column: whether what stands for NULL does so in quotes, too
    pub(super) null_in_quotes: Vec<bool>,
    pub(super) dialect: Dialect,
    /// what stands for NULL
    pub(super) null: &'a str,
    pub(super) header: Header,
    /// whether rows with a value that is none of its column are left out
    pub(super) ignores_errors: bool,
    /// the file or the client, as errors name it
    pub(super) place: String,
}

/// The rows of a chunk.
pub(super) struct ParsedRows {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) rows: usize,
    /// those that are to be left out
    pub(super) rejected: Vec<RejectedRow>,
    /// the first and the last line
    pub(super) lines: (u64, u64),
    /// how many bytes they took
    pub(super) bytes: usize,
    /// whether what follows is no data
    pub(super) is_end: bool,
}

/// A row that is left out.
pub(super) struct RejectedRow {
    pub(super) row: usize,
    pub(super) line: u64,
    pub(super) error: SqlError,
}

/// Reads either format.
enum Reader<'c> {
    Csv(Box<CsvReader<'c>>),
    Text(TextReader<'c>),
}

impl Reader<'_> {
    fn read(&mut self, record: &mut Record) -> Result<bool, Unterminated> {
        match self {
            Reader::Csv(reader) => reader.read(record),
            Reader::Text(reader) => Ok(reader.read(record)),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Reader::Csv(reader) => reader.is_over(),
            Reader::Text(reader) => reader.is_over(),
        }
    }
}

/// A chunk, and its text if all of it is text.
struct Source<'c> {
    bytes: &'c [u8],
    text: Option<&'c str>,
}

impl Parser<'_> {
    /// Reads a chunk.
    pub(super) fn parse(&self, chunk: &Chunk) -> Result<ParsedRows> {
        let source = Source { bytes: &chunk.bytes, text: std::str::from_utf8(&chunk.bytes).ok() };
        let mut reader = match self.dialect {
            Dialect::Csv { delimiter, quote, escape } => {
                Reader::Csv(Box::new(CsvReader::new(&chunk.bytes, chunk.line, (delimiter, quote, escape))))
            }
            Dialect::Text { delimiter } => {
                Reader::Text(TextReader::new(&chunk.bytes, chunk.line, delimiter, self.null))
            }
        };
        let mut record = Record::default();
        if chunk.is_first && self.header != Header::None && self.read(&mut reader, &mut record)? {
            self.check_header(&source, &record)?;
        }
        let mut builders: Vec<_> = self.columns.iter().map(|column| ColumnBuilder::new(column.data_type)).collect();
        let (mut rows, mut rejected, mut lines) = (0, Vec::new(), (chunk.line, chunk.line));
        while self.read(&mut reader, &mut record)? {
            if let Err((at, error)) = self.append(&source, &record, &mut builders) {
                if !self.ignores_errors {
                    return Err(error);
                }
                // The row is completed, and left out once the columns are.
                builders[at..].iter_mut().for_each(ColumnBuilder::append_null);
                rejected.push(RejectedRow { row: rows, line: record.line, error });
            }
            lines = (if rows == 0 { record.line } else { lines.0 }, record.line);
            rows += 1;
        }
        let columns = builders.iter_mut().map(ColumnBuilder::finish).collect();
        Ok(ParsedRows { columns, rows, rejected, lines, bytes: chunk.bytes.len(), is_end: reader.is_over() })
    }

    fn read(&self, reader: &mut Reader<'_>, record: &mut Record) -> Result<bool> {
        reader.read(record).map_err(|Unterminated { line }| {
            let detail = format!("{}, line {line}: the quote that opens there is never closed.", self.place);
            SqlError::new("22P04", "unterminated CSV quoted field").detail(detail)
        })
    }

    fn check_header(&self, source: &Source<'_>, record: &Record) -> Result<()> {
        if self.header != Header::Match {
            return Ok(());
        }
        let name = |at| String::from_utf8_lossy(record.field(at, source.bytes).0).into_owned();
        let names: Vec<String> = (0..record.len()).map(name).collect();
        let wanted: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        if names == wanted {
            return Ok(());
        }
        let message = "the header of the file does not match the columns";
        let detail = format!("{} has {}; expected {}.", self.place, names.join(", "), wanted.join(", "));
        Err(SqlError::new("22P04", message).detail(detail))
    }

    /// Appends a record to the builders; on an error tells how many of them took a value.
    fn append(
        &self,
        source: &Source<'_>,
        record: &Record,
        builders: &mut [ColumnBuilder],
    ) -> Result<(), (usize, SqlError)> {
        let width = self.columns.len();
        if record.len() > width {
            return Err((0, self.wrong("extra data after last expected column", record)));
        }
        if record.len() < width {
            let missing = format!("missing data for column \"{}\"", self.columns[record.len()].name);
            return Err((0, self.wrong(&missing, record)));
        }
        let null = self.null.as_bytes();
        for (at, builder) in builders.iter_mut().enumerate() {
            let (bytes, is_quoted) = record.field(at, source.bytes);
            if !is_quoted && bytes == null && !self.never_null[at] {
                builder.append_null();
                continue;
            }
            let text = record.text(at, source.bytes, source.text);
            if self.null_in_quotes[at] && text.as_ref().is_ok_and(|text| text.as_bytes() == null) {
                builder.append_null();
                continue;
            }
            let appended = match text {
                Ok(text) => builder.append_text(text),
                Err(_) => Err(crate::values::Misfit::Encoding),
            };
            if let Err(misfit) = appended {
                let (column, shown) = (self.columns[at], String::from_utf8_lossy(bytes));
                let error = misfit.error(&column.name, column.data_type, &shown, "text");
                return Err((at, self.placed(error, record, Some((&column.name, &shown)))));
            }
        }
        Ok(())
    }

    fn wrong(&self, message: &str, record: &Record) -> SqlError {
        self.placed(SqlError::new("22P04", message), record, None)
    }

    /// An error with the file, line, column and value where it is.
    fn placed(&self, error: SqlError, record: &Record, value: Option<(&str, &str)>) -> SqlError {
        let mut place = format!("{}, line {}", self.place, record.line);
        if let Some((column, value)) = value {
            let shown: String = value.chars().take(100).collect();
            place.push_str(&format!(", column \"{column}\", value \"{shown}\""));
        }
        error.detail(format!("{place}."))
    }
}
