//! `COPY ... FROM` a file in PostgreSQL's binary form, or what a client sends in it. As with texts, the caller cuts the input and inserts
//! the rows, and other threads make columns of the pieces in between.
use std::io::Read;
use std::sync::Arc;

use arrow_array::ArrayRef;
use engine::{Column, DataType};

use super::binary::{Piece, Pieces};
use super::from_csv::{THREADS_MAX, input_failed};
use super::input::{Broken, CopyInput, Patient};
use super::meter::{Meter, open};
use super::pipeline;
use crate::Progress;
use crate::error::{Result, SqlError};
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::statements::filling::Filling;
use crate::values::builder::ColumnBuilder;
use crate::values::stored::rows_as_stored;
use crate::values::wire::{Wrong, parameters};

/// Loads a file; returns how many rows came in.
pub(super) fn run(
    write: &mut Write<'_>,
    into: (&Target, &Filling<'_>),
    path: &str,
    progress: Option<Arc<dyn Progress>>,
) -> Result<(u64, Vec<String>)> {
    let (file, size) = open(path)?;
    let label = format!("COPY {} from {path}", engine::shown_name(into.0.table.name()));
    load(write, into, file, Meter::start(progress, &label, Some(size)), Some(path))
}

/// Loads what a client sends.
pub(super) fn run_input(
    write: &mut Write<'_>,
    into: (&Target, &Filling<'_>),
    input: &mut dyn CopyInput,
) -> Result<(u64, Vec<String>)> {
    input.begin(into.0.columns().len(), true).map_err(|error| input_failed(&error))?;
    let mut input = Patient { input, token: write.token() };
    let loaded = load(write, into, &mut input, Meter::start(None, "", None), None)?;
    input.end().map_err(|error| input_failed(&error))?;
    Ok(loaded)
}

fn load(
    write: &mut Write<'_>,
    (target, filling): (&Target, &Filling<'_>),
    input: impl Read,
    mut meter: Meter,
    path: Option<&str>,
) -> Result<(u64, Vec<String>)> {
    let columns: Vec<&Column> = target.columns().collect();
    let mut pieces = Pieces::new(input, columns.len());
    let place = |row: u64| format!("COPY {}, line {row}.", target.table.name());
    let cut = || {
        Some(pieces.next()?.map_err(|(row, broken)| match (broken, path) {
            (Broken::Rows(error), _) if row == 0 => error,
            (Broken::Rows(error), _) => error.detail(place(row)),
            (Broken::Io(error), Some(path)) => SqlError::io("read", path, &error),
            (Broken::Io(error), None) => input_failed(&error),
        }))
    };
    let read = |piece: Piece| -> Result<(Piece, Vec<ArrayRef>)> {
        let arrays = arrays_of(&piece, &columns, target.table.name())?;
        Ok((piece, arrays))
    };
    let (mut loaded, mut bytes) = (0, 0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    pipeline::in_order(threads, cut, read, |(piece, arrays)| {
        write.check()?;
        let batch = filling.rows(write, target, arrays, piece.rows)?;
        let inserted = write.transaction.insert_batch(&target.table, &rows_as_stored(&batch));
        loaded += inserted.map_err(|error| {
            let last = piece.before + u64::try_from(piece.rows).unwrap_or(0);
            let place = format!("COPY {}, lines {} to {last}.", target.table.name(), piece.before + 1);
            let error = SqlError::from(error);
            let detail = error.detail.as_ref().map_or_else(|| place.clone(), |detail| format!("{detail} {place}"));
            error.detail(detail)
        })?;
        bytes += u64::try_from(piece.bytes.len()).unwrap_or(0);
        meter.reach(bytes);
        Ok(true)
    })?;
    Ok((loaded, Vec::new()))
}

/// The columns of a piece.
fn arrays_of(piece: &Piece, columns: &[&Column], table: &str) -> Result<Vec<ArrayRef>> {
    let mut builders: Vec<_> = columns.iter().map(|column| ColumnBuilder::new(column.data_type)).collect();
    let mut values = piece.values();
    for row in 0..piece.rows {
        for (builder, column) in builders.iter_mut().zip(columns) {
            let Some(Some(value)) = values.next() else {
                builder.append_null();
                continue;
            };
            append(builder, column, value).map_err(|error| {
                let line = piece.before + 1 + u64::try_from(row).unwrap_or(0);
                error.detail(format!("COPY {table}, line {line}, column \"{}\".", column.name))
            })?;
        }
    }
    Ok(builders.iter_mut().map(ColumnBuilder::finish).collect())
}

fn append(builder: &mut ColumnBuilder, column: &Column, bytes: &[u8]) -> Result<()> {
    let data_type = column.data_type;
    let value =
        parameters::binary(bytes, data_type, 0).map_err(|wrong| malformed(&wrong, data_type, bytes.len()))??;
    let appended = match data_type {
        // The value may have more digits or characters than the column.
        DataType::Text { .. } | DataType::Char { .. } | DataType::Decimal { .. } | DataType::Numeric => {
            builder.append_text(&value.to_string())
        }
        _ => builder.append_value(&value),
    };
    appended.map_err(|misfit| misfit.error(&column.name, data_type, &value.to_string(), "text"))
}

/// The error for bytes that are no value.
fn malformed(wrong: &Wrong, data_type: DataType, length: usize) -> SqlError {
    let data_type = data_type.whole();
    let width = match data_type {
        DataType::Boolean => 1,
        DataType::SmallInt => 2,
        DataType::Integer | DataType::Real | DataType::Date => 4,
        DataType::BigInt | DataType::Double | DataType::Timestamp | DataType::TimestampTz | DataType::Time => 8,
        DataType::TimeTz => 12,
        DataType::Uuid | DataType::Interval => 16,
        _ => 0,
    };
    match (wrong, data_type) {
        (Wrong::Form, _) if length < width => SqlError::new("08P01", "insufficient data left in message"),
        (Wrong::Form, _) => SqlError::new("22P03", "incorrect binary data format"),
        (Wrong::Range, DataType::Date) => SqlError::new("22008", "date out of range"),
        (Wrong::Range, DataType::Time | DataType::TimeTz) => SqlError::new("22008", "time out of range"),
        (Wrong::Range, DataType::Timestamp | DataType::TimestampTz) => SqlError::new("22008", "timestamp out of range"),
        (Wrong::Range, _) => SqlError::new("22003", "value out of range"),
    }
}
