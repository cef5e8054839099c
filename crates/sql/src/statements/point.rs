//! Running a statement that touches a row by its key.
use arrow_array::ArrayRef;
use engine::{ScanOptions, Table, Value};

use crate::error::Result;
use crate::point::bound::Bound;
use crate::point::columns::Columns;
use crate::point::exact::exact;
use crate::point::term::Origin;
use crate::point::{Action, NewRows, Point};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Outcome, Rows};
use crate::state::past::wall_time;
use crate::state::target::batch;
use crate::statements::change::outcome;
use crate::statements::insert_few;
use crate::values::Misfit;
use crate::values::builder::ColumnBuilder;
use crate::values::stored::rows_as_queried;

/// Whether the columns of a table are filled with what they were when a statement was planned.
pub(super) fn is_filled_alike(write: &Write<'_>, table: &Table, settings_changes: u64) -> bool {
    let has_own = || {
        let transaction = &write.transaction;
        transaction.has_changed_catalog() && transaction.settings(table).defaults != table.settings().defaults
    };
    table.settings_changes() == settings_changes && !has_own()
}

/// Puts the next numbers of sequences into rows, in the order of the rows.
fn number(session: &Session, table: &Table, rows: &[Vec<Origin>], values: &mut [Vec<Value>]) -> Result<()> {
    for (row, values) in rows.iter().zip(values) {
        for (at, (origin, value)) in row.iter().zip(values).enumerate() {
            let Origin::Next(sequence, data_type) = origin else { continue };
            let number = session.next_number(sequence)?;
            let fitting = exact(&Value::BigInt(number), *data_type);
            let column = &table.schema().columns()[at].name;
            *value = fitting.ok_or_else(|| Misfit::Range.error(column, *data_type, &number.to_string(), "bigint"))?;
        }
    }
    Ok(())
}

impl Columns {
    /// These columns of rows that were put in or changed.
    pub(super) fn rows(&self, table: &Table, rows: &[Vec<Value>]) -> Result<Rows> {
        let columns = table.schema().columns();
        let column = |at: &usize| -> Result<ArrayRef> {
            let mut builder = ColumnBuilder::new(columns[*at].data_type);
            for row in rows {
                let appended = builder.append_value(&row[*at]);
                appended.map_err(|misfit| misfit.error(&columns[*at].name, columns[*at].data_type, "", ""))?;
            }
            Ok(builder.finish())
        };
        let arrays = self.positions.iter().map(column).collect::<Result<Vec<_>>>()?;
        Ok(Rows::ready(batch(self.schema.clone(), arrays, rows.len())?))
    }
}

impl Point {
    /// Runs it with values for its parameters; `None` if it has to go the long way, and nothing was done.
    pub(crate) fn run(&self, session: &mut Session, values: &[Value]) -> Result<Option<Outcome>> {
        let bound = Bound { values, now: session.now };
        let done = match &self.action {
            Action::Select { key, columns } => return self.select(session, &bound, key, columns),
            Action::Search(search) => return self.search(session, &bound, search),
            Action::Join(join) => return self.join(session, &bound, join),
            Action::Change(changes) => return self.change(session, &bound, changes),
            Action::Update { key, sets, reads, settings_changes, returning } => session.write("UPDATE", |_, write| {
                let (Some(table), Some(key)) = (self.find(write)?, bound.key(key)) else { return Ok(None) };
                if !is_filled_alike(write, &table, *settings_changes) {
                    return Ok(None);
                }
                let updated = if reads.is_empty() {
                    let Some(changes) = bound.changes(sets, &[]) else { return Ok(None) };
                    write.transaction.update_columns(&table, &key, &changes)?
                } else {
                    let compute = |read: &[Value]| bound.changes(sets, read);
                    let Some(updated) = write.transaction.update_computed(&table, &key, reads, compute)? else {
                        return Ok(None);
                    };
                    updated
                };
                // The row is this transaction's, and has its key still.
                let row = if updated && returning.is_some() { write.transaction.get(&table, &key)? } else { None };
                let given = returning.as_ref().map(|columns| columns.rows(&table, row.as_slice())).transpose()?;
                Ok(Some((format!("UPDATE {}", u64::from(updated)), given)))
            }),
            Action::Delete { key } => session.write("DELETE", |_, write| {
                let (Some(table), Some(key)) = (self.find(write)?, bound.key(key)) else { return Ok(None) };
                Ok(Some((format!("DELETE {}", u64::from(write.transaction.delete(&table, &key)?)), None)))
            }),
            Action::Insert(new) => return self.insert(session, &bound, new),
        };
        Ok(done?.map(|(tag, given)| outcome(tag, given)))
    }

    fn insert(&self, session: &mut Session, bound: &Bound<'_>, new: &NewRows) -> Result<Option<Outcome>> {
        let inserted = session.write("INSERT", |session, write| {
            let found = self.find(write)?;
            let Some(table) = found.filter(|table| is_filled_alike(write, table, new.settings_changes)) else {
                return Ok(None);
            };
            let Some(mut values) = new.rows.iter().map(|row| bound.row(row)).collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            number(session, &table, &new.rows, &mut values)?;
            if let Some(conflict) = &new.conflict {
                return insert_few::put(session, write, &table, (&values, conflict), bound, new.returning.as_ref());
            }
            for row in &values {
                write.transaction.insert(&table, row)?;
            }
            let given = new.returning.as_ref().map(|columns| columns.rows(&table, &values)).transpose()?;
            Ok(Some((format!("INSERT 0 {}", values.len()), given)))
        })?;
        Ok(inserted.map(|(tag, given)| outcome(tag, given)))
    }

    fn select(
        &self,
        session: &mut Session,
        bound: &Bound<'_>,
        key: &[Origin],
        columns: &Columns,
    ) -> Result<Option<Outcome>> {
        let Some(key) = bound.key(key) else { return Ok(None) };
        // The moment first: the table is to be the one that its rows belong to.
        let moment = session.moment()?;
        let table = session.db.table_seen(moment.view(), &self.table).ok().filter(|table| table.id() == self.id);
        let Some(table) = table else { return Ok(None) };
        let options = ScanOptions { columns: columns.positions.clone(), ..ScanOptions::default() };
        let found = match columns.are_stored {
            true => table.lookup_as(moment.view(), &key, &options, &columns.schema)?,
            false => rows_as_queried(&table.lookup(moment.view(), &key, &options)?, &columns.schema),
        };
        let rows = Rows::ready(found).renamed(columns.schema.clone());
        Ok(Some(Outcome::Rows(rows)))
    }

    /// The row that a `SELECT` by a key finds, as values; `None` where it has to be run.
    pub(crate) fn row(&self, session: &Session, values: &[Value]) -> Result<Option<Option<Vec<Value>>>> {
        let Action::Select { key, columns } = &self.action else { return Ok(None) };
        let Some(key) = (Bound { values, now: wall_time() }).key(key) else { return Ok(None) };
        let view = session.db.read_view()?;
        let table = session.db.table_seen(&view, &self.table).ok().filter(|table| table.id() == self.id);
        let Some(table) = table else { return Ok(None) };
        Ok(Some(table.lookup_values(&view, &key, &columns.positions)?))
    }

    /// The table that it is about, if that still has its name.
    pub(super) fn find(&self, write: &mut Write<'_>) -> Result<Option<Table>> {
        match write.transaction.table_to_write(&self.table) {
            Ok(table) => Ok(Some(table).filter(|table| table.id() == self.id)),
            Err(engine::Error::NoSuchTable(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
