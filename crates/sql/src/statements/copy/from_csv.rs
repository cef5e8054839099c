//! `COPY ... FROM` CSV or PostgreSQL's text format, a file or what a client sends, in chunks that do not grow with it.
//!
//! The caller cuts the input into chunks of whole records and inserts their rows, in order; other threads make columns of the
//! chunks in between.
//!
//! ```text
//! input ──> chunks (caller) ──> columns (several threads) ──> defaults, constraints, insertion (caller)
//! ```
use std::io::Read;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;

use super::chunks::{Chunks, Dialect, ReadError};
use super::input::{CopyInput, Patient};
use super::meter::{Meter, open};
use super::parse::{ParsedRows, Parser, RejectedRow};
use super::pipeline;
use crate::Progress;
use crate::error::{Result, SqlError};
use crate::parsing::copy_options::{CopyOptions, Format};
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::statements::filling::Filling;
use crate::values::stored::rows_as_stored;

/// How many rejected lines are told one by one.
const REJECTS_TOLD: usize = 20;

/// Threads that read chunks at most; more than that wait for the insertion.
pub(super) const THREADS_MAX: usize = 8;

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
pub(super) fn input_failed(error: &std::io::Error) -> SqlError {
    match error.kind() {
        _ if let Some(own) = SqlError::within(error) => own,
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
    let dialect = match format {
        Format::Text => Dialect::Text { delimiter: options.delimiter.unwrap_or(b'\t') },
        _ => Dialect::Csv {
            delimiter: options.delimiter.unwrap_or(b','),
            quote,
            escape: options.escape.unwrap_or(quote),
        },
    };
    let Origin { path, place, mut meter } = origin;
    let columns: Vec<&engine::Column> = target.columns().collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let parser = Parser {
        never_null: options.forced.not_null.among("FORCE_NOT_NULL", &names)?,
        null_in_quotes: options.forced.null.among("FORCE_NULL", &names)?,
        columns,
        dialect,
        null: options.null(format),
        header: options.header,
        ignores_errors: options.ignores_errors,
        place,
    };
    let mut chunks = Chunks::new(input, dialect);
    let cut = || Some(chunks.next()?.map_err(|error| unreadable(error, path, &parser.place)));
    let (mut loaded, mut bytes, mut rejects) = (0, 0, Rejects::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    pipeline::in_order(
        threads,
        cut,
        |chunk| parser.parse(&chunk),
        |parsed: ParsedRows| {
            write.check()?;
            parsed.rejected.iter().try_for_each(|rejected| rejects.add(rejected, options))?;
            if parsed.rows > 0 {
                let batch = filling.rows(write, target, parsed.columns, parsed.rows)?;
                let batch = without(&batch, &parsed.rejected)?;
                let inserted = write.transaction.insert_batch(&target.table, &rows_as_stored(&batch));
                loaded += inserted.map_err(|error| within_lines(error.into(), &parser.place, parsed.lines))?;
            }
            bytes += parsed.bytes as u64;
            meter.reach(bytes);
            Ok(!parsed.is_end)
        },
    )?;
    Ok((loaded, rejects.notices()))
}

/// The error for an input of which no more can be read.
fn unreadable(error: ReadError, path: Option<&str>, place: &str) -> SqlError {
    match (error, path) {
        (ReadError::Io(error), Some(path)) => SqlError::io("read", path, &error),
        (ReadError::Io(error), None) => input_failed(&error),
        (ReadError::TooLong { line }, _) => {
            SqlError::new("54000", "a row is too long").detail(format!("{place}, line {line}."))
        }
    }
}

/// A batch without the rows that were rejected.
fn without(batch: &RecordBatch, rejected: &[RejectedRow]) -> Result<RecordBatch> {
    if rejected.is_empty() {
        return Ok(batch.clone());
    }
    let mut keeps = vec![true; batch.num_rows()];
    rejected.iter().for_each(|rejected| keeps[rejected.row] = false);
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
    /// Counts a row that is left out, and fails where there are too many.
    fn add(&mut self, rejected: &RejectedRow, options: &CopyOptions) -> Result<()> {
        self.count += 1;
        if let Some(limit) = options.reject_limit
            && self.count > limit
        {
            let message = format!("skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility");
            let SqlError { detail, message: why, .. } = rejected.error.clone();
            return Err(SqlError::new("22P02", message).detail(detail.unwrap_or(why)));
        }
        if self.told.len() < REJECTS_TOLD {
            self.told.push(format!("skipping row at line {}: {}", rejected.line, rejected.error.message));
        }
        Ok(())
    }

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
