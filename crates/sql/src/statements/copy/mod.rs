//! `COPY` between a table or query and a file, or from what a client sends.
mod binary;
mod chunks;
mod csv_reader;
mod csv_writer;
mod from_batches;
mod from_binary;
mod from_csv;
mod from_parquet;
pub(crate) mod input;
mod meter;
mod parse;
mod pipeline;
mod record;
mod text_reader;
mod text_writer;
mod to_client;
mod to_file;

use std::cell::RefCell;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::session::transactions::Write;
use crate::session::{FileAccess, Session};
use crate::state::outcome::{Command, Notice, Outcome};
use crate::state::target::Target;
use crate::statements::filling::Filling;
use crate::statements::generated;
use crate::syntax::source::Source;

use crate::parsing::copy_options::{CopyStatement, Format, Subject};
use input::CopyInput;

/// Runs a `COPY`.
pub(crate) fn run(
    session: &mut Session,
    copy: CopyStatement,
    source: &Source,
    input: &mut dyn CopyInput,
) -> Result<Outcome> {
    let Some(path) = &copy.path else {
        return match copy.is_from {
            true => from_input(session, &copy, source, input),
            false => Ok(to_client::run(session, &copy, source, input)?.into()),
        };
    };
    if session.files == FileAccess::Denied {
        let message = "permission denied to COPY to or from a file";
        return Err(SqlError::new("42501", message).at(copy.path_position));
    }
    let format = copy.format()?;
    let progress = session.progress.clone();
    let command = match copy.is_from {
        false => to_file::run(session, &copy, path, format, source)?,
        true => {
            let (rows, notices) = session.write("COPY FROM", |session, write| {
                let target = target(write, &copy, source)?;
                let filling = Filling::of(session, write, &target)?;
                let into = (&target, &filling);
                match format {
                    Format::Csv | Format::Text => {
                        from_csv::run(write, into, path, format, &copy.options, progress.clone())
                    }
                    Format::Binary => from_binary::run(write, into, path, progress.clone()),
                    Format::Parquet => from_parquet::run(write, into, path, progress.clone()),
                }
            })?;
            copied(rows, notices)
        }
    };
    Ok(command.into())
}

fn copied(rows: u64, notices: Vec<String>) -> Command {
    Command { tag: format!("COPY {rows}"), notices: notices.into_iter().map(Notice::from).collect() }
}

/// `COPY ... FROM STDIN`. The rows come once: where others got in the way, it is not tried again.
fn from_input(
    session: &mut Session,
    copy: &CopyStatement,
    source: &Source,
    input: &mut dyn CopyInput,
) -> Result<Outcome> {
    let format = copy.format()?;
    if format == Format::Parquet {
        return Err(SqlError::unsupported("COPY FROM STDIN in Parquet").at(copy.path_position));
    }
    let input = RefCell::new(Some(input));
    let (rows, notices) = session.write("COPY FROM", |session, write| {
        let target = target(write, copy, source)?;
        let Some(input) = input.take() else {
            let message = "could not serialize access due to concurrent update";
            return Err(SqlError::new("40001", message).hint("Send the rows again."));
        };
        let filling = Filling::of(session, write, &target)?;
        if let Some(batches) = input.batches() {
            return from_batches::run(write, (&target, &filling), batches);
        }
        if format == Format::Binary {
            return from_binary::run_input(write, (&target, &filling), input);
        }
        from_csv::run_input(write, (&target, &filling), input, format, &copy.options)
    })?;
    Ok(copied(rows, notices).into())
}

fn target(write: &mut Write<'_>, copy: &CopyStatement, source: &Source) -> Result<Target> {
    let Subject::Table { name, columns } = &copy.subject else {
        return Err(SqlError::syntax("COPY FROM needs a table"));
    };
    let table = write.table(name, source)?;
    let columns: Vec<_> = columns.iter().map(|column| (fold(column), source.start(column.span))).collect();
    let defaults = write.transaction.settings(&table).defaults;
    let is_named = !columns.is_empty();
    let mut target = Target::new(table.clone(), &columns)?;
    if generated::are_among(&defaults) {
        let places = target.positions().to_vec();
        if let Some(column) = places.iter().find(|column| is_named && generated::is_generated(&defaults, **column)) {
            return Err(generated::not_copied(&table.schema().columns()[*column].name));
        }
        target.retain(|at| !generated::is_generated(&defaults, places[at]));
    }
    Ok(target)
}
