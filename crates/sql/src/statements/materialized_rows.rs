//! The rows of a materialized view, and those that its query gives now: what differs is changed.
//!
//! ```text
//! rows that are there  ─┐                 there alone   ─▶ deleted
//!                       ├─▶ as bytes ─▶   in both       ─▶ stay
//! rows of the query    ─┘                 given alone   ─▶ put in
//! ```
//!
//! A row that is there three times and given once is deleted twice.
use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_select::take::take_record_batch;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use engine::{ScanOptions, Table};

use crate::error::{Result, SqlError};
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::values::assign::Texts;
use crate::values::stored::rows_as_stored;
use crate::values::text::text_value;

/// How often each row is there that no given row has met yet, with the numbers of the records.
type Left = HashMap<Box<[u8]>, Vec<u64>>;

/// Makes the rows of a table those that are given. No other transaction changes them meanwhile.
pub(crate) fn exchange(write: &mut Write<'_>, table: &Table, given: crate::Rows) -> Result<()> {
    let target = Target::new(table.clone(), &[])?;
    let texts = vec![Texts::Stay; target.columns().len()];
    let mut batches = Vec::new();
    for batch in given {
        let batch = batch?;
        batches.push(target.rows(target.assign(&batch, &texts)?, batch.num_rows())?);
        write.check()?;
    }
    let fields = table.schema().columns().iter().map(|column| column.data_type.to_stored_arrow());
    let converter = RowConverter::new(fields.map(SortField::new).collect()).map_err(internal)?;
    let mut left = rows_there(write, table, &converter)?;
    let mut seen: HashMap<Box<[u8]>, ()> = HashMap::new();
    let mut new = Vec::new();
    for batch in batches {
        let stored = rows_as_stored(&batch);
        let bytes = as_bytes(&converter, stored.columns())?;
        let mut added = Vec::new();
        for (at, row) in bytes.iter().enumerate() {
            write.check()?;
            let has_null = || stored.columns().iter().any(|column| column.is_null(at));
            if seen.insert(row.as_ref().into(), ()).is_some() && !has_null() {
                return Err(twice(table, &batch, at));
            }
            match left.get_mut(row.as_ref()).and_then(Vec::pop) {
                Some(_) => {}
                None => added.push(u32::try_from(at).map_err(|_| internal("a batch of too many rows"))?),
            }
        }
        if !added.is_empty() {
            new.push(take_record_batch(&stored, &UInt32Array::from(added)).map_err(internal)?);
        }
    }
    let gone: UInt64Array = left.into_values().flatten().collect::<Vec<u64>>().into();
    let view = write.moment_read()?;
    write.transaction.delete_batch(table, &gone, &view)?;
    for batch in &new {
        write.transaction.insert_batch(table, batch)?;
    }
    Ok(())
}

/// The rows that are there.
fn rows_there(write: &mut Write<'_>, table: &Table, converter: &RowConverter) -> Result<Left> {
    let columns: Vec<usize> = (0..table.schema().columns().len()).collect();
    let width = columns.len();
    let moment = write.moment()?;
    let scan = table.scan(moment.view(), ScanOptions { columns, with_rid: true, ..ScanOptions::default() })?;
    let mut left = Left::new();
    for batch in scan.batches() {
        let batch = batch?;
        let rids = batch.column(width).as_primitive::<UInt64Type>();
        for (row, rid) in as_bytes(converter, &batch.columns()[..width])?.iter().zip(rids.values()) {
            left.entry(row.as_ref().into()).or_default().push(*rid);
        }
        write.check()?;
    }
    Ok(left)
}

fn as_bytes(converter: &RowConverter, columns: &[ArrayRef]) -> Result<Rows> {
    converter.convert_columns(columns).map_err(internal)
}

fn internal(error: impl ToString) -> SqlError {
    SqlError::new("XX000", error.to_string())
}

/// The error of a row that is given twice, which no unique index would take.
fn twice(table: &Table, batch: &RecordBatch, row: usize) -> SqlError {
    let name = table.name();
    let message = format!("new data for materialized view \"{name}\" contains duplicate rows without any null columns");
    let values: Vec<String> =
        batch.columns().iter().map(|column| text_value(column.as_ref(), row).unwrap_or_default()).collect();
    SqlError::new("21000", message).detail(format!("Row: ({})", values.join(",")))
}

/// The error of rows that are put into a table whose indexes PostgreSQL makes afterwards.
pub(crate) fn could_not_create(error: SqlError) -> SqlError {
    let Some(index) =
        error.about.as_ref().filter(|_| error.sqlstate == "23505").and_then(|about| about.constraint.clone())
    else {
        return error;
    };
    let detail = error.detail.clone().unwrap_or_default().replace(" already exists.", " is duplicated.");
    SqlError { message: format!("could not create unique index \"{index}\""), detail: Some(detail), ..error }
}
