//! `INSERT ... ON CONFLICT` by the short way: the rows are values that are known, and so is what a row that is there changes to.
//!
//! Keys, waits and rounds are those of any other ([`on_conflict`](super::on_conflict)); only the query is left out.
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use engine::{CellRows, Table, Value};

use crate::error::{Result, SqlError};
use crate::point::bound::Bound;
use crate::point::columns::Columns;
use crate::point::conflict::{Conflict, Update};
use crate::point::operands::{OfBoth, OfRow};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Rows;
use crate::state::target::{batch, nullable};
use crate::statements::on_conflict::{OnConflict, Outcome};
use crate::statements::point::{Changed, Given, picked};
use crate::syntax::source::Source;
use crate::values::builder::ColumnBuilder;

/// Puts rows in, or does with them what `conflict` says; gives their number, and what is given back of them. `None` if that has
/// to go the long way, and nothing was done.
pub(super) fn put(
    session: &Session,
    write: &mut Write<'_>,
    (rows, conflict): (&CellRows<'_, '_>, &Conflict),
    bound: &Bound<'_>,
    returning: Option<&Columns>,
) -> Result<Option<Changed>> {
    let table = rows.table();
    if let (1, Some(update), true) = (rows.len(), &conflict.update, conflict.is_by_key)
        && goes_by_key(write, rows)
    {
        let done = match change_by_key(write, rows, update, bound)? {
            // The row that has the key of this one.
            Some(true) => {
                let row = |columns: &[usize]| write.transaction.get_columns(table, &key_of(rows), columns);
                Some(Given::of(returning, |columns| Ok(row(columns)?.into_iter().collect()))?)
            }
            Some(false) if is_put_in(write, rows)? => Some(Given::of(returning, |columns| Ok(picked(rows, columns)))?),
            Some(false) | None => None,
        };
        if let Some(given) = done {
            return Ok(Some((1, given)));
        }
    }
    let source = Source::new("");
    let clause = OnConflict::of_values(conflict, bound, (write, table), &source);
    // What is wrong with it is told with its place in the text.
    let Ok(mut clause) = clause else { return Ok(None) };
    let values: Vec<Vec<Value>> = (0..rows.len()).map(|row| rows.values(row)).collect();
    let rows = batch_of(table, &values)?;
    let before = write.transaction.savepoint();
    let done = clause.put(session, write, table, &rows, returning.is_some())?;
    if clause.needs_query() {
        write.transaction.rollback_to(before)?;
    }
    write.transaction.release(before)?;
    if clause.needs_query() {
        return Ok(None);
    }
    let given = returning.map_or(Ok(Given::Nothing), |columns| given(columns, &done).map(Given::Rows))?;
    Ok(Some((done.count, given)))
}

/// Whether a new row may change the row that has its key, or be put in, without a look at the rest of the clause: it would be taken,
/// and there are no conditions to be met.
fn goes_by_key(write: &Write<'_>, new: &CellRows<'_, '_>) -> bool {
    !new.misses_value(0) && !new.table().has_rules() && !write.transaction.has_changed_catalog()
}

/// Changes the row that has the key of a new one, if it is there; `None` if what it changes to is not plainly a value.
fn change_by_key(
    write: &mut Write<'_>,
    new: &CellRows<'_, '_>,
    update: &Update,
    bound: &Bound<'_>,
) -> Result<Option<bool>> {
    let table = new.table();
    if let (Some(words), [key]) = (&update.words, table.schema().primary_key())
        && let Some(key) = new.integer(0, *key)
        && write.transaction.update_at_once(table, words, key, |there, set| {
            let read = OfBoth { there: OfRow::new(words, there), new, reads: &update.reads };
            bound.put_words(&update.sets, words, read, set)
        })?
    {
        return Ok(Some(true));
    }
    let width = table.schema().columns().len();
    let own: Vec<usize> = update.reads.iter().copied().filter(|column| *column < width).collect();
    let compute = |there: &[Value]| {
        let mut there = there.iter().cloned();
        // Of the columns that are read those of the row that is there come from `there`, in their order.
        let read = update.reads.iter().map(|column| match column.checked_sub(width) {
            None => there.next(),
            Some(column) => Some(new.value(0, column)),
        });
        bound.changes(&update.sets, &read.collect::<Option<Vec<Value>>>()?)
    };
    Ok(write.transaction.update_computed(table, &key_of(new), &own, compute)?)
}

/// Puts a row in, unless its key or another has been taken: which that is, and what comes of it, is for the long way to find out.
fn is_put_in(write: &mut Write<'_>, row: &CellRows<'_, '_>) -> Result<bool> {
    let before = write.transaction.savepoint();
    let is_in = match write.transaction.insert_rows(row) {
        Ok(()) => true,
        Err(engine::Error::DuplicateKey { .. }) => {
            write.transaction.rollback_to(before)?;
            false
        }
        Err(error) => return Err(error.into()),
    };
    write.transaction.release(before)?;
    Ok(is_in)
}

/// The key of the first row.
fn key_of(rows: &CellRows<'_, '_>) -> Vec<Value> {
    rows.table().schema().primary_key().iter().map(|column| rows.value(0, *column)).collect()
}

/// Rows of values as a batch.
fn batch_of(table: &Table, values: &[Vec<Value>]) -> Result<RecordBatch> {
    let columns = table.schema().columns();
    let mut builders: Vec<ColumnBuilder> = columns.iter().map(|column| ColumnBuilder::new(column.data_type)).collect();
    for row in values {
        for ((builder, column), value) in builders.iter_mut().zip(columns).zip(row) {
            let appended = builder.append_value(value);
            appended.map_err(|misfit| misfit.error(&column.name, column.data_type, "", ""))?;
        }
    }
    let arrays = builders.into_iter().map(|mut builder| builder.finish()).collect();
    batch(nullable(columns.iter()), arrays, values.len())
}

/// What is given back of the rows that were put in or changed.
fn given(columns: &Columns, done: &Outcome) -> Result<Rows> {
    let failed = |error: arrow_schema::ArrowError| SqlError::new("XX000", error.to_string());
    let mut all = Vec::with_capacity(done.kept.len());
    for rows in done.kept.iter().filter_map(|tables| tables.first()) {
        let picked = rows.project(&columns.positions).map_err(failed)?;
        all.push(batch(columns.schema.clone(), picked.columns().to_vec(), rows.num_rows())?);
    }
    Ok(Rows::ready(concat_batches(&columns.schema, &all).map_err(failed)?))
}
