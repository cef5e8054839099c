//! `COPY ... FROM` a Parquet file: columns matched by name, one batch at a time. Another thread reads the file, some batches ahead.
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_empty_array};
use arrow_schema::{Field, SchemaRef};
use engine::{Column, DataType};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::meter::{Meter, open};
use super::pipeline;
use crate::Progress;
use crate::error::{Result, SqlError};
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::statements::filling::Filling;
use crate::values::assign::{Texts, assign, is_assignable};
use crate::values::long_name;
use crate::values::stored::{of_file, rows_as_stored};
use crate::values::types::type_name;

const ROWS_AT_ONCE: usize = 8_192;

/// Loads a file; returns how many rows came in.
pub(crate) fn run(
    write: &mut Write<'_>,
    (target, filling): (&Target, &Filling<'_>),
    path: &str,
    progress: Option<Arc<dyn Progress>>,
) -> Result<(u64, Vec<String>)> {
    let (file, size) = open(path)?;
    let unreadable = |error: &dyn std::fmt::Display| {
        SqlError::new("22P04", format!("could not read file \"{path}\" as Parquet: {error}"))
    };
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| unreadable(&error))?;
    let total = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0).max(1);
    let order = match_columns(builder.schema(), target, &format!("file \"{path}\""))?;
    let mut reader = builder.with_batch_size(ROWS_AT_ONCE).build().map_err(|error| unreadable(&error))?;
    let mut meter =
        Meter::start(progress, &format!("COPY {} from {path}", engine::shown_name(target.table.name())), Some(size));
    let mut read = 0;
    let make = || {
        let rows = reader.next()?.map_err(|error| unreadable(&error)).and_then(|batch| {
            let place = Place { path, rows: read..read + batch.num_rows() as u64 };
            read = place.rows.end;
            let columns = assign_columns(&batch, &order, target).map_err(|error| place.of(error))?;
            Ok((columns, batch.num_rows(), place))
        });
        Some(rows)
    };
    let mut loaded = 0;
    pipeline::ahead(make, |(columns, count, place)| {
        write.check()?;
        let rows = filling.rows(write, target, columns, count)?;
        let inserted = write.transaction.insert_batch(&target.table, &rows_as_stored(&rows));
        loaded += inserted.map_err(|error| place.of(error.into()))?;
        meter.reach(u64::try_from(u128::from(size) * u128::from(loaded) / u128::from(total)).unwrap_or(size));
        Ok(true)
    })?;
    Ok((loaded, Vec::new()))
}

/// Rows of a file.
struct Place<'a> {
    path: &'a str,
    rows: Range<u64>,
}

impl Place<'_> {
    /// An error of one of the rows.
    fn of(&self, error: SqlError) -> SqlError {
        let place = format!("File \"{}\", rows {} to {}.", self.path, self.rows.start + 1, self.rows.end);
        let detail = error.detail.clone().map_or(place.clone(), |detail| format!("{detail} {place}"));
        error.detail(detail)
    }
}

/// Texts become what files have as text; all else needs the right type in the file.
pub(super) fn texts(column: &Column) -> Texts {
    match column.data_type {
        DataType::Uuid
        | DataType::Numeric
        | DataType::Json
        | DataType::Jsonb
        | DataType::TimeTz
        | DataType::Interval
        | DataType::Range(_)
        | DataType::Geometry(_)
        | DataType::Network(_)
        | DataType::Array(_) => Texts::AreRead,
        _ => Texts::Stay,
    }
}

fn assign_columns(batch: &RecordBatch, order: &[usize], target: &Target) -> Result<Vec<ArrayRef>> {
    let schema = batch.schema();
    let assign = |(at, column): (&usize, &Column)| {
        let (array, field) = of_file(batch.column(*at), schema.field(*at));
        assign(&array, &field, &column.name, column.data_type, texts(column))
    };
    order.iter().zip(target.columns()).map(assign).collect()
}

/// For each column to fill, its position in the file, or what else `named` says; one error tells everything that differs.
pub(super) fn match_columns(file: &SchemaRef, target: &Target, named: &str) -> Result<Vec<usize>> {
    let kind = named.split(' ').next().unwrap_or(named);
    let mut order = Vec::new();
    let (mut shape, mut kinds) = (Vec::new(), Vec::new());
    for column in target.columns() {
        match find(file, &column.name) {
            None => shape.push(format!("column \"{}\" is not in the {kind}", column.name)),
            Some(at) => {
                let field = file.field(at);
                let (_, plain) = of_file(&new_empty_array(field.data_type()), field);
                if !is_assignable(&plain, column.data_type, texts(column)) {
                    let (has, needs) = (type_name(plain.data_type()), long_name(column.data_type));
                    kinds.push(format!("column \"{}\" is {has} in the {kind} and {needs} in the table", column.name));
                }
                order.push(at);
            }
        }
    }
    let extra = |(at, field): (usize, &Arc<Field>)| {
        (!order.contains(&at)).then(|| format!("column \"{}\" of the {kind} is not in the table", field.name()))
    };
    shape.extend(file.fields().iter().enumerate().filter_map(extra));
    let sqlstate = match (shape.is_empty(), kinds.is_empty()) {
        (true, true) => return Ok(order),
        (false, _) => "42P16",
        (true, false) => "42804",
    };
    shape.append(&mut kinds);
    let message = format!("{named} does not fit table \"{}\"", target.table.name());
    Err(SqlError::new(sqlstate, message).detail(format!("{}.", shape.join("; "))))
}

/// The position of a column by its exact name, or else by the only one that differs in case.
fn find(file: &SchemaRef, name: &str) -> Option<usize> {
    let fields = file.fields();
    fields.iter().position(|field| field.name() == name).or_else(|| {
        let mut near = fields.iter().enumerate().filter(|(_, field)| field.name().eq_ignore_ascii_case(name));
        match (near.next(), near.next()) {
            (Some((at, _)), None) => Some(at),
            _ => None,
        }
    })
}
