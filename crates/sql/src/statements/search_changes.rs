//! Running a change of few rows that an index leads to.
//!
//! The rows are found as those of a query are, and changed as any other `UPDATE` or `DELETE` changes them ([`change`](super::change)):
//! under READ COMMITTED those that others have changed meanwhile are looked at again.
use std::borrow::Cow;
use std::collections::HashSet;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::FieldRef;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use engine::{ScanOptions, Table, Value};

use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::point::Point;
use crate::point::bound::{Bound, Now};
use crate::point::search::one_value::OneValue;
use crate::point::search::path::{Asked, Counting, Path};
use crate::point::search::{Changes, Given, Returned};
use crate::point::term::Term;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Outcome, Rows};
use crate::state::target::{batch, nullable};
use crate::statements::change::{outcome, rids_of};
use crate::statements::point::is_filled_alike;
use crate::statements::search::there;
use crate::values::builder::ColumnBuilder;
use crate::values::single::value_at;
use crate::values::stored::{as_queried, rows_as_stored};

impl Point {
    /// Runs it; `None` if it has to go the long way, and nothing was done.
    pub(super) fn change(
        &self,
        session: &mut Session,
        bound: &Bound<'_>,
        changes: &Changes,
    ) -> Result<Option<Outcome>> {
        let has_value = |(_, term): &(usize, Term)| match term {
            Term::Value(origin) => bound.value(origin).is_some(),
            Term::Sum { by, .. } => bound.value(by).is_some(),
            Term::Column { .. } | Term::Columns { .. } => true,
            Term::Assigned(assigned) => assigned.is_right(bound.values),
        };
        // A value that does not fit is an error even where no row is found, which the long way tells.
        if !changes.sets.iter().all(has_value) {
            return Ok(None);
        }
        let command = if changes.sets.is_empty() { "DELETE" } else { "UPDATE" };
        let changed = session.write(command, |session, write| {
            session.with_seen(|seen| match self.find(write, seen)? {
                Some(table) if is_filled_alike(write, table, changes.settings_changes) => {
                    changes.run_whole(table, session, write, bound)
                }
                _ => Ok(None),
            })
        })?;
        let Some((count, given)) = changed else { return Ok(None) };
        let given = changes.returning.as_ref().map(|returned| returned.rows(&given)).transpose()?;
        Ok(Some(outcome(format!("{command} {count}"), given)))
    }
}

/// The rows that an index leads to, or those again that others have changed; `None` if the planner has to find them.
fn found(
    table: &Table,
    write: &mut Write<'_>,
    again: Option<Vec<u64>>,
    options: &ScanOptions,
) -> Result<Option<RecordBatch>> {
    let moment = write.moment()?;
    if let Some(rids) = again {
        return Ok(Some(table.lookup_rids(moment.view(), &rids, options)?));
    }
    let Some(path) = Path::find(table, Asked::of(&options.tests), (&[], &[]), usize::MAX, Counting::Always) else {
        return Ok(None);
    };
    let way = (&path.index, &path.ranges[..]);
    Ok(there(table.index_rows(moment.view(), way, path.direction(), options, path.few(usize::MAX)))?.flatten())
}

impl OneValue {
    /// Its value at a moment; `None` where there is none, or the planner has to find it.
    fn value(&self, session: &Session, moment: &Moment, bound: &Bound<'_>) -> Result<Option<Value>> {
        let search = &self.search;
        let table = session.db.table_seen(moment.view(), &self.table).ok().filter(|table| table.id() == self.id);
        let (Some(table), Some(tests)) = (table, bound.tests(&search.conditions)) else { return Ok(None) };
        let Some(cut) = search.limits.cut(bound) else { return Ok(None) };
        let options = ScanOptions { columns: search.reads.clone(), tests, ..ScanOptions::default() };
        let Some(answer) = search.rows(&table, moment, &options, (cut, bound))? else { return Ok(None) };
        debug_assert_eq!(answer.num_rows(), 1, "a total is one row");
        Ok(value_at(answer.column(0), 0, self.data_type).filter(|value| !value.is_null()))
    }
}

impl Changes {
    /// The values of the parameters, and those of the queries behind them.
    fn known<'v>(
        &self,
        session: &Session,
        write: &mut Write<'_>,
        bound: &Bound<'v>,
    ) -> Result<Option<Cow<'v, [Value]>>> {
        if self.queries.is_empty() {
            return Ok(Some(bound.values.into()));
        }
        let (mut values, moment) = (bound.values.to_vec(), write.moment()?);
        if values.len() != self.parameters {
            return Ok(None);
        }
        for query in &self.queries {
            let Some(value) = query.value(session, &moment, bound)? else { return Ok(None) };
            values.push(value);
        }
        Ok(Some(values.into()))
    }

    /// Changes the rows, or nothing where they have to be changed the long way.
    fn run_whole(
        &self,
        table: &Table,
        session: &Session,
        write: &mut Write<'_>,
        bound: &Bound<'_>,
    ) -> Result<Option<(u64, Vec<RecordBatch>)>> {
        let Some(values) = self.known(session, write, bound)? else { return Ok(None) };
        let bound = &Bound { values: &values, now: Now::at(bound.now.micros()) };
        let Some(tests) = bound.tests(&self.conditions) else { return Ok(None) };
        let options = ScanOptions { columns: self.reads.clone(), tests, with_rid: true };
        let before = write.transaction.savepoint();
        let changed = self.run(table, write, bound, &options)?;
        if changed.is_none() {
            write.transaction.rollback_to(before)?;
        }
        write.transaction.release(before)?;
        Ok(changed)
    }

    /// Finds rows and changes them, then those again that others have changed meanwhile, until there are none; gives their
    /// number, and what is given back of them. `None` if they have to be changed the long way, and some may have been.
    fn run(
        &self,
        table: &Table,
        write: &mut Write<'_>,
        bound: &Bound<'_>,
        options: &ScanOptions,
    ) -> Result<Option<(u64, Vec<RecordBatch>)>> {
        let (mut count, mut again, mut given) = (0, None, Vec::new());
        loop {
            let Some(rows) = found(table, write, again, options)? else { return Ok(None) };
            let Some(values) = self.values(table, bound, &rows)? else { return Ok(None) };
            let (view, rids) = (write.moment_read()?, rids_of(rows.column(rows.num_columns() - 1))?);
            let positions: Vec<usize> = self.sets.iter().map(|(column, _)| *column).collect();
            let changed = match positions.is_empty() {
                true => write.transaction.delete_batch(table, &rids, &view)?,
                false => write.transaction.update_batch(table, &rids, &positions, &rows_as_stored(&values), &view)?,
            };
            count += changed.rows;
            if let Some(returned) = &self.returning {
                let left_out: HashSet<u64> = changed.stale.iter().chain(&changed.gone).copied().collect();
                let is_changed = rids.values().iter().map(|rid| Some(!left_out.contains(rid))).collect();
                given.push(returned.of_rows(&rows, &values, &is_changed)?);
            }
            if changed.stale.is_empty() {
                return Ok(Some((count, given)));
            }
            again = Some(changed.stale);
            write.next_moment()?;
        }
    }

    /// The new values of the columns that are set, row by row.
    fn values(&self, table: &Table, bound: &Bound<'_>, rows: &RecordBatch) -> Result<Option<RecordBatch>> {
        let columns = table.schema().columns();
        let made_of = self.sets.iter().map(|(_, term)| term.reads().len()).sum();
        let set: Vec<_> = self.sets.iter().map(|(column, _)| &columns[*column]).collect();
        let mut builders: Vec<ColumnBuilder> = set.iter().map(|column| ColumnBuilder::new(column.data_type)).collect();
        for row in 0..rows.num_rows() {
            let read = |(at, column): (usize, &usize)| -> Result<Value> {
                let value = value_at(rows.column(at), row, columns[*column].data_type);
                value.ok_or_else(|| SqlError::new("XX000", "a column has a value that is none of its type"))
            };
            let read = self.reads.iter().take(made_of).enumerate().map(read).collect::<Result<Vec<_>>>()?;
            let Some(changes) = bound.changes(&self.sets, &read) else { return Ok(None) };
            for ((builder, column), (_, value)) in builders.iter_mut().zip(&set).zip(&changes) {
                let appended = builder.append_value(value);
                appended.map_err(|misfit| misfit.error(&column.name, column.data_type, "", ""))?;
            }
        }
        let arrays = builders.into_iter().map(|mut builder| builder.finish()).collect();
        batch(nullable(set.into_iter()), arrays, rows.num_rows()).map(Some)
    }
}

impl Returned {
    /// What is given back of the rows that were changed, with their new values.
    fn of_rows(&self, rows: &RecordBatch, values: &RecordBatch, is_changed: &BooleanArray) -> Result<RecordBatch> {
        let array = |(given, field): (&Given, &FieldRef)| -> ArrayRef {
            match given {
                Given::Set(at) => values.column(*at).clone(),
                Given::Read(at) => as_queried(rows.column(*at), field.data_type()),
            }
        };
        let schema = &self.columns.schema;
        let arrays = self.from.iter().zip(schema.fields()).map(array).collect();
        let all = batch(schema.clone(), arrays, rows.num_rows())?;
        filter_record_batch(&all, is_changed).map_err(|error| SqlError::new("XX000", error.to_string()))
    }

    /// All that is given back.
    fn rows(&self, given: &[RecordBatch]) -> Result<Rows> {
        let all = concat_batches(&self.columns.schema, given);
        Ok(Rows::ready(all.map_err(|error| SqlError::new("XX000", error.to_string()))?))
    }
}
