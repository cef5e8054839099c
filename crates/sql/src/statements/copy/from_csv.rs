//! `COPY ... FROM` CSV or PostgreSQL's text format, a file or what a client sends, in batches that do not grow with it.
use std::io::Read;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use engine::Column;

use super::csv_reader::{CsvReader, Dialect, ReadError, Record};
use super::input::{CopyInput, Patient};
use super::meter::{Meter, open};
use super::text_reader::TextReader;
use crate::Progress;
use crate::error::{Result, SqlError};
use crate::parsing::copy_options::{CopyOptions, Format, Header};
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::statements::filling::Filling;
use crate::values::builder::ColumnBuilder;
use crate::values::stored::rows_as_stored;

/// Rows that are inserted together.
const ROWS_AT_ONCE: usize = 8_192;
/// How many rejected lines are told one by one.
const REJECTS_TOLD: usize = 20;

/// Loads a file; returns how many rows came in, and what there is to tell.
pub(crate) fn run(
    write: &mut Write<'_>,
    into: (&Target, &Filling<'_>),
    path: &str,
    format: Format,
    options: &CopyOptions,
    progress: Option<Arc<dyn Progress>>,
) -> Result<(u64, Vec<String>)> {
    let (file, size) = open(path)?;
    let meter =
        Meter::start(progress, &format!("COPY {} from {path}", engine::shown_name(into.0.table.name())), Some(size));
    load(write, into, file, format, options, Origin { path: Some(path), place: format!("File \"{path}\""), meter })
}

/// Loads what a client sends.
pub(crate) fn run_input(
    write: &mut Write<'_>,
    (target, filling): (&Target, &Filling<'_>),
    input: &mut dyn CopyInput,
    format: Format,
    options: &CopyOptions,
) -> Result<(u64, Vec<String>)> {
    input.begin(target.columns().len(), false).map_err(|error| input_failed(&error))?;
    let place = format!("COPY {}", target.table.name());
    let meter = Meter::start(None, "", None);
    let mut input = Patient { input, token: write.token() };
    let loaded = load(write, (target, filling), &mut input, format, options, Origin { path: None, place, meter })?;
    input.end().map_err(|error| input_failed(&error))?;
    Ok(loaded)
}

/// The error for a client that has given up, or can't be asked.
fn input_failed(error: &std::io::Error) -> SqlError {
    match error.kind() {
        std::io::ErrorKind::Unsupported => SqlError::new("0A000", error.to_string()),
        std::io::ErrorKind::ConnectionAborted => SqlError::new("57014", error.to_string()),
        _ => SqlError::new("08006", format!("could not read from the client: {error}")),
    }
}

/// Where rows come from.
struct Origin<'a> {
    /// The file, if it is one.
    path: Option<&'a str>,
    /// The file or the client, as errors name it.
    place: String,
    meter: Meter,
}

fn load(
    write: &mut Write<'_>,
    (target, filling): (&Target, &Filling<'_>),
    input: impl Read,
    format: Format,
    options: &CopyOptions,
    origin: Origin<'_>,
) -> Result<(u64, Vec<String>)> {
    let quote = options.quote.unwrap_or(b'"');
    let escape = options.escape.unwrap_or(quote);
    let null = options.null(format);
    let reader = match format {
        Format::Text => Reader::Text(TextReader::new(input, options.delimiter.unwrap_or(b'\t'), null)),
        _ => {
            Reader::Csv(CsvReader::new(input, Dialect { delimiter: options.delimiter.unwrap_or(b','), quote, escape }))
        }
    };
    let columns: Vec<&Column> = target.columns().collect();
    let builders = columns.iter().map(|column| ColumnBuilder::new(column.data_type)).collect();
    let mut load = Load { columns, origin, options, null, reader, builders, rejects: Rejects::default() };
    load.skip_header()?;
    let mut loaded = 0;
    loop {
        write.check()?;
        let FilledColumns { rows, rejected, lines, is_end } = load.fill()?;
        if rows > 0 {
            let arrays = load.builders.iter_mut().map(ColumnBuilder::finish).collect();
            let batch = without(&filling.rows(write, target, arrays, rows)?, &rejected)?;
            let inserted = write.transaction.insert_batch(&target.table, &rows_as_stored(&batch));
            loaded += inserted.map_err(|error| within_lines(error.into(), &load.origin.place, lines))?;
        }
        load.origin.meter.reach(load.reader.bytes());
        if is_end {
            return Ok((loaded, load.rejects.notices()));
        }
    }
}

/// Reads either format.
enum Reader<R> {
    Csv(CsvReader<R>),
    Text(TextReader<R>),
}

impl<R: Read> Reader<R> {
    fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        match self {
            Reader::Csv(reader) => reader.read(record),
            Reader::Text(reader) => reader.read(record),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Reader::Csv(reader) => reader.bytes(),
            Reader::Text(reader) => reader.bytes(),
        }
    }
}

/// A batch without the rows at these positions.
fn without(batch: &RecordBatch, rejected: &[usize]) -> Result<RecordBatch> {
    if rejected.is_empty() {
        return Ok(batch.clone());
    }
    let mut keeps = vec![true; batch.num_rows()];
    rejected.iter().for_each(|row| keeps[*row] = false);
    filter_record_batch(batch, &BooleanArray::from(keeps)).map_err(|error| SqlError::new("XX000", error.to_string()))
}

/// An error of a batch tells which lines were in it.
fn within_lines(error: SqlError, place: &str, (first, last): (u64, u64)) -> SqlError {
    let place = format!("{place}, lines {first} to {last}.");
    let detail = match &error.detail {
        Some(detail) => format!("{detail} {place}"),
        None => place,
    };
    error.detail(detail)
}

/// Lines that were left out.
#[derive(Default)]
struct Rejects {
    count: u64,
    told: Vec<String>,
}

impl Rejects {
    fn notices(self) -> Vec<String> {
        if self.count == 0 {
            return Vec::new();
        }
        let rows = if self.count == 1 { "row was" } else { "rows were" };
        let mut notices = self.told;
        notices.push(format!("{} {rows} skipped due to data type incompatibility", self.count));
        notices
    }
}

/// The values that the builders hold.
#[derive(Default)]
struct FilledColumns {
    rows: usize,
    /// Rows that are to be left out.
    rejected: Vec<usize>,
    /// The first and the last line.
    lines: (u64, u64),
    is_end: bool,
}

/// A load under way.
struct Load<'a, R> {
    columns: Vec<&'a Column>,
    origin: Origin<'a>,
    options: &'a CopyOptions,
    null: &'a str,
    reader: Reader<R>,
    builders: Vec<ColumnBuilder>,
    rejects: Rejects,
}

impl<R: Read> Load<'_, R> {
    fn read(&mut self, record: &mut Record) -> Result<bool> {
        self.reader.read(record).map_err(|error| match error {
            ReadError::Io(error) => match self.origin.path {
                Some(path) => SqlError::io("read", path, &error),
                None => input_failed(&error),
            },
            ReadError::TooLong => SqlError::new("54000", "a row is too long")
                .detail(format!("{}, line {}.", self.origin.place, record.line)),
            ReadError::Unterminated { line } => {
                let detail = format!("{}, line {line}: the quote that opens there is never closed.", self.origin.place);
                SqlError::new("22P04", "unterminated CSV quoted field").detail(detail)
            }
        })
    }

    fn skip_header(&mut self) -> Result<()> {
        let mut record = Record::default();
        if self.options.header == Header::None || !self.read(&mut record)? || self.options.header != Header::Match {
            return Ok(());
        }
        let names: Vec<String> =
            (0..record.len()).map(|at| String::from_utf8_lossy(record.field(at).0).into()).collect();
        let wanted: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        if names == wanted {
            return Ok(());
        }
        let message = "the header of the file does not match the columns";
        let detail = format!("{} has {}; expected {}.", self.origin.place, names.join(", "), wanted.join(", "));
        Err(SqlError::new("22P04", message).detail(detail))
    }

    /// Reads rows into the builders.
    fn fill(&mut self) -> Result<FilledColumns> {
        let mut record = Record::default();
        let mut filled = FilledColumns::default();
        while filled.rows < ROWS_AT_ONCE {
            if !self.read(&mut record)? {
                filled.is_end = true;
                break;
            }
            if let Err((at, error)) = self.append(&record) {
                self.reject(&record, error)?;
                // The row is completed, and left out once the columns are.
                self.builders[at..].iter_mut().for_each(ColumnBuilder::append_null);
                filled.rejected.push(filled.rows);
            }
            filled.lines = (if filled.rows == 0 { record.line } else { filled.lines.0 }, record.line);
            filled.rows += 1;
        }
        Ok(filled)
    }

    /// Appends a record to the builders; on an error tells how many of them took a value.
    fn append(&mut self, record: &Record) -> Result<(), (usize, SqlError)> {
        let width = self.columns.len();
        if record.len() > width {
            return Err((0, self.wrong("extra data after last expected column", record, None)));
        }
        if record.len() < width {
            let missing = format!("missing data for column \"{}\"", self.columns[record.len()].name);
            return Err((0, self.wrong(&missing, record, None)));
        }
        let null = self.null.as_bytes();
        for at in 0..width {
            let (bytes, is_quoted) = record.field(at);
            let (column, builder) = (self.columns[at], &mut self.builders[at]);
            if !is_quoted && bytes == null {
                builder.append_null();
                continue;
            }
            let appended = match std::str::from_utf8(bytes) {
                Ok(text) => builder.append_text(text),
                Err(_) => Err(crate::values::Misfit::Encoding),
            };
            if let Err(misfit) = appended {
                let shown = String::from_utf8_lossy(bytes);
                let error = misfit.error(&column.name, column.data_type, &shown, "text");
                return Err((at, self.placed(error, record, Some((&column.name, &shown)))));
            }
        }
        Ok(())
    }

    fn wrong(&self, message: &str, record: &Record, value: Option<(&str, &str)>) -> SqlError {
        self.placed(SqlError::new("22P04", message), record, value)
    }

    /// An error with the file, line, column and value where it is.
    fn placed(&self, error: SqlError, record: &Record, value: Option<(&str, &str)>) -> SqlError {
        let mut place = format!("{}, line {}", self.origin.place, record.line);
        if let Some((column, value)) = value {
            let shown: String = value.chars().take(100).collect();
            place.push_str(&format!(", column \"{column}\", value \"{shown}\""));
        }
        error.detail(format!("{place}."))
    }

    /// Counts a row that is left out, or fails where none may be.
    fn reject(&mut self, record: &Record, error: SqlError) -> Result<()> {
        if !self.options.ignores_errors {
            return Err(error);
        }
        self.rejects.count += 1;
        if let Some(limit) = self.options.reject_limit
            && self.rejects.count > limit
        {
            let message = format!("skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility");
            return Err(SqlError::new("22P02", message).detail(error.detail.unwrap_or(error.message)));
        }
        if self.rejects.told.len() < REJECTS_TOLD {
            self.rejects.told.push(format!("skipping row at line {}: {}", record.line, error.message));
        }
        Ok(())
    }
}
