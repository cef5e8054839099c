//! `COPY ... TO` a file, which appears under its name when it is whole.
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, new_empty_array};
use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{Query, Statement};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::binary::BinaryWriter;
use super::csv_writer::CsvWriter;
use super::input::Broken;
use super::meter::Meter;
use super::text_writer::TextWriter;
use crate::Rows;
use crate::error::{Result, SqlError};
use crate::names::headings;
use crate::names::schemas::with_schema;
use crate::names::tables::Tables;
use crate::names::{find_column, find_table, fold, table_name};
use crate::parsing::copy_options::{CopyStatement, Format, Subject};
use crate::session::Session;
use crate::state::outcome::Command;
use crate::statements::generated;
use crate::statements::wrong_kind;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::values::stored::for_file;

/// Threads that format rows at most; more than that wait for the file.
const THREADS_MAX: usize = 16;
/// Batches that a thread formats before they are written.
const BATCHES: usize = 2;

/// Runs a `COPY ... TO`.
pub(crate) fn run(
    session: &mut Session,
    copy: &CopyStatement,
    path: &str,
    format: Format,
    source: &Source,
) -> Result<Command> {
    let rows = rows_of(session, copy, source)?;
    let mut file = NewFile::create(path)?;
    let meter = Meter::start(session.progress.clone(), &format!("COPY to {path}"), None);
    let count = match format {
        Format::Csv => write_csv(rows, &mut file, copy, meter)?,
        Format::Parquet => write_parquet(rows, &mut file, meter)?,
        Format::Text => write_text(rows, &mut file, copy, meter)?,
        Format::Binary => write_binary(rows, &mut file, meter)?,
    };
    file.keep()?;
    Ok(Command::new(format!("COPY {count}")))
}

/// Starts the query whose rows are written.
pub(super) fn rows_of(session: &mut Session, copy: &CopyStatement, source: &Source) -> Result<Rows> {
    let moment = session.moment()?;
    let query = query_of(&session.tables.at(&moment), &copy.subject, source)?;
    let names = headings::of(&query);
    let view = session.view(moment, Vec::new());
    let plan = session.planner.plan(Statement::Query(query), view, source)?;
    let schema = headings::apply(&plan.schema(), &names);
    Ok(plan.start()?.renamed(schema))
}

/// The query for the rows that are written; of a table all its rows.
fn query_of(tables: &Tables, subject: &Subject, source: &Source) -> Result<Box<Query>> {
    let (name, columns) = match subject {
        Subject::Query(query) => return Ok(query.clone()),
        Subject::Table { name, columns } => (name, columns),
    };
    let table = find_table(tables, name, source)?;
    if table.view().is_some() || table.is_materialized() {
        let error =
            SqlError::new("42809", format!("cannot copy from {} \"{}\"", wrong_kind::kind(&table), table.name()));
        return Err(error.hint("Try the COPY (SELECT ...) TO variant."));
    }
    let defaults = tables.settings_of(&table).defaults;
    for column in columns {
        let at = find_column(&table, &fold(column), source.start(column.span))?;
        if generated::is_generated(&defaults, at) {
            return Err(generated::not_copied(&fold(column)));
        }
    }
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<String> = match columns.is_empty() {
        true => {
            let all = table.schema().columns().iter().enumerate();
            let given = all.filter(|(at, _)| !generated::is_generated(&defaults, *at));
            given.map(|(_, column)| quoted(&column.name)).collect()
        }
        false => columns.iter().map(|column| quoted(&fold(column))).collect(),
    };
    template(&format!("SELECT {} FROM {}", columns.join(", "), with_schema(&table_name(name, source)?)))
}

fn write_csv(rows: Rows, file: &mut NewFile, copy: &CopyStatement, mut meter: Meter) -> Result<u64> {
    let schema = rows.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let path = file.path.clone();
    let failed = |error: std::io::Error| SqlError::io("write", &path, &error);
    let out = Counter { out: BufWriter::with_capacity(1 << 18, file.file()?), bytes: 0 };
    let forced = copy.options.forced.quoted.among("FORCE_QUOTE", &names)?;
    let mut writer = CsvWriter::new(out, &copy.options, (&names, forced)).map_err(failed)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let mut count = 0;
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let batches = rows.by_ref().take(threads * BATCHES).collect::<Result<Vec<_>>>()?;
        writer.write(&batches, threads).map_err(failed)?;
        count += batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        meter.reach(writer.bytes());
    }
    writer.finish().map_err(failed)?;
    Ok(count)
}

fn write_text(rows: Rows, file: &mut NewFile, copy: &CopyStatement, mut meter: Meter) -> Result<u64> {
    let schema = rows.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let path = file.path.clone();
    let failed = |error: std::io::Error| SqlError::io("write", &path, &error);
    let mut out = Counter { out: BufWriter::with_capacity(1 << 18, file.file()?), bytes: 0 };
    let mut writer = TextWriter::new(&mut out, &copy.options, &names).map_err(failed)?;
    let mut count = 0;
    for batch in rows {
        let batch = batch?;
        writer.write(&batch).map_err(failed)?;
        count += u64::try_from(batch.num_rows()).unwrap_or(0);
    }
    out.flush().map_err(failed)?;
    meter.reach(out.bytes);
    Ok(count)
}

fn write_binary(rows: Rows, file: &mut NewFile, mut meter: Meter) -> Result<u64> {
    let path = file.path.clone();
    let failed = |broken: Broken| match broken {
        Broken::Io(error) => SqlError::io("write", &path, &error),
        Broken::Rows(error) => error,
    };
    let mut out = Counter { out: BufWriter::with_capacity(1 << 18, file.file()?), bytes: 0 };
    let mut writer = BinaryWriter::new(&mut out, &rows.schema());
    let mut count = 0;
    for batch in rows {
        let batch = batch?;
        writer.write(&batch).map_err(failed)?;
        count += u64::try_from(batch.num_rows()).unwrap_or(0);
    }
    writer.finish().map_err(failed)?;
    out.flush().map_err(|error| failed(Broken::Io(error)))?;
    meter.reach(out.bytes);
    Ok(count)
}

impl<W: Write> CsvWriter<Counter<W>> {
    fn bytes(&self) -> u64 {
        self.out().bytes
    }
}

fn write_parquet(rows: Rows, file: &mut NewFile, mut meter: Meter) -> Result<u64> {
    let path = file.path.clone();
    let failed = |error: parquet::errors::ParquetError| {
        SqlError::new("58030", format!("could not write file \"{path}\": {error}"))
    };
    let level = ZstdLevel::try_new(3).map_err(failed)?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    let schema = plain(&rows.schema());
    let mut writer = ArrowWriter::try_new(file.file()?, schema.clone(), Some(properties)).map_err(failed)?;
    let mut count = 0;
    for batch in rows {
        let batch = batch?;
        let plain = RecordBatch::try_new(schema.clone(), batch.columns().iter().map(for_file).collect());
        let plain = plain.map_err(|error| SqlError::new("XX000", error.to_string()))?;
        writer.write(&plain).map_err(failed)?;
        count += u64::try_from(batch.num_rows()).unwrap_or(0);
        meter.reach(u64::try_from(writer.bytes_written()).unwrap_or(0));
    }
    writer.close().map_err(failed)?;
    Ok(count)
}

/// The schema without metadata of our own.
fn plain(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &Arc<Field>| {
        Field::new(field.name(), for_file(&new_empty_array(field.data_type())).data_type().clone(), true)
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// Counts what goes through.
pub(crate) struct Counter<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// A file under a temporary name beside its own; dropped before it is kept it disappears.
struct NewFile {
    file: Option<File>,
    path: String,
    temporary: PathBuf,
}

impl NewFile {
    fn create(path: &str) -> Result<NewFile> {
        let target = Path::new(path);
        let failed = |error: std::io::Error| SqlError::io("create", path, &error);
        if target.is_dir() {
            return Err(failed(std::io::Error::new(std::io::ErrorKind::IsADirectory, "it is a directory")));
        }
        let name = target.file_name().and_then(|name| name.to_str()).unwrap_or("copy");
        for attempt in 0..100 {
            let temporary = target.with_file_name(format!(".{name}.{}.{attempt}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => return Ok(NewFile { file: Some(file), path: path.to_owned(), temporary }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(std::io::Error::new(std::io::ErrorKind::AlreadyExists, "temporary files are in the way")))
    }

    fn file(&self) -> Result<File> {
        let file = self.file.as_ref().ok_or_else(|| SqlError::new("XX000", "the file is closed"))?;
        file.try_clone().map_err(|error| SqlError::io("write", &self.path, &error))
    }

    /// Gives the file its name.
    fn keep(mut self) -> Result<()> {
        if let Some(file) = self.file.take() {
            let kept = file.sync_all().and_then(|()| std::fs::rename(&self.temporary, &self.path));
            if let Err(error) = kept {
                // What stays behind is only a temporary file; the first error is the one to tell.
                let _ = std::fs::remove_file(&self.temporary);
                return Err(SqlError::io("write", &self.path, &error));
            }
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
