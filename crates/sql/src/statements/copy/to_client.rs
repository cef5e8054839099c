//! `COPY ... TO STDOUT`: rows for the client, each as a line or in binary.
use std::io::{self, Write};

use super::binary::BinaryWriter;
use super::csv_writer::CsvWriter;
use super::input::{Broken, CopyInput};
use super::text_writer::TextWriter;
use super::to_file::rows_of;
use crate::error::{Result, SqlError};
use crate::parsing::copy_options::{CopyStatement, Format};
use crate::session::Session;
use crate::state::outcome::Command;
use crate::syntax::source::Source;

/// Runs it.
pub(crate) fn run(
    session: &mut Session,
    copy: &CopyStatement,
    source: &Source,
    client: &mut dyn CopyInput,
) -> Result<Command> {
    let format = copy.format()?;
    if format == Format::Parquet {
        return Err(SqlError::unsupported("COPY TO STDOUT in Parquet").at(copy.path_position));
    }
    let rows = rows_of(session, copy, source)?;
    let schema = rows.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let forced = copy.options.forced.quoted.among("FORCE_QUOTE", &names)?;
    client.begin_giving(names.len(), format == Format::Binary).map_err(unreachable)?;
    let (mut lines, mut count) = (Lines { client }, 0);
    match format {
        Format::Csv => {
            let mut writer = CsvWriter::new(&mut lines, &copy.options, (&names, forced)).map_err(unreachable)?;
            for batch in rows {
                let batch = batch?;
                writer.write_by_line(&batch).map_err(unreachable)?;
                count += batch.num_rows();
            }
        }
        Format::Binary => {
            let mut writer = BinaryWriter::new(&mut lines, &schema).in_encoding(session.client_encoding());
            for batch in rows {
                let batch = batch?;
                writer.write(&batch).map_err(broken)?;
                count += batch.num_rows();
            }
            writer.finish().map_err(broken)?;
        }
        Format::Text | Format::Parquet => {
            let mut writer = TextWriter::new(&mut lines, &copy.options, &names).map_err(unreachable)?;
            for batch in rows {
                let batch = batch?;
                writer.write(&batch).map_err(unreachable)?;
                count += batch.num_rows();
            }
        }
    }
    lines.client.end_giving();
    Ok(Command::new(format!("COPY {count}")))
}

fn broken(broken: Broken) -> SqlError {
    match broken {
        Broken::Io(error) => unreachable(error),
        Broken::Rows(error) => error,
    }
}

fn unreachable(error: io::Error) -> SqlError {
    match error.kind() {
        _ if let Some(own) = SqlError::within(&error) => own,
        io::ErrorKind::Unsupported => SqlError::new("0A000", error.to_string()),
        _ => SqlError::new("08006", format!("could not send rows to the client: {error}")),
    }
}

/// A client as what is written to, line by line.
struct Lines<'a> {
    client: &'a mut dyn CopyInput,
}

impl Write for Lines<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.client.give(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
