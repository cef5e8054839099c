//! Running a change of few rows that an index leads to.
//!
//! The rows are found as those of a query are, and changed as any other `UPDATE` or `DELETE` changes them ([`change`](super::change)):
//! under READ COMMITTED those that others have changed meanwhile are looked at again.
use arrow_array::{Array, RecordBatch};
use datafusion::common::ScalarValue;
use engine::{ScanOptions, Table, Value};

use crate::error::{Result, SqlError};
use crate::point::Point;
use crate::point::bound::Bound;
use crate::point::search::Changes;
use crate::point::search::path::Path;
use crate::point::term::Term;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Command, Outcome};
use crate::state::target::{batch, nullable};
use crate::statements::change::rids_of;
use crate::statements::point::is_filled_alike;
use crate::statements::search::there;
use crate::values::builder::ColumnBuilder;
use crate::values::single::value_of_scalar;
use crate::values::stored::rows_as_stored;

impl Point {
    /// Runs it; `None` if it has to go the long way, and nothing was done.
    pub(super) fn change(
        &self,
        session: &mut Session,
        bound: &Bound<'_>,
        changes: &Changes,
    ) -> Result<Option<Outcome>> {
        let Some(tests) = bound.tests(&changes.conditions) else { return Ok(None) };
        let has_value = |(_, term): &(usize, Term)| match term {
            Term::Value(origin) => bound.value(origin).is_some(),
            Term::Sum { by, .. } => bound.value(by).is_some(),
        };
        // A value that does not fit is an error even where no row is found, which the long way tells.
        if !changes.sets.iter().all(has_value) {
            return Ok(None);
        }
        let options = ScanOptions { columns: changes.reads.clone(), tests, with_rid: true };
        let command = if changes.sets.is_empty() { "DELETE" } else { "UPDATE" };
        let changed = session.write(command, |_, write| {
            let found = self.find(write)?;
            let Some(table) = found.filter(|table| is_filled_alike(write, table, changes.settings_changes)) else {
                return Ok(None);
            };
            let before = write.transaction.savepoint();
            let changed = changes.run(&table, write, bound, &options)?;
            match changed {
                Some(_) => write.transaction.release(before)?,
                None => {
                    write.transaction.rollback_to(before)?;
                    write.transaction.release(before)?;
                }
            }
            Ok(changed)
        })?;
        Ok(changed.map(|changed| Command::new(format!("{command} {changed}")).into()))
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
    let Some(path) = Path::find(table, &options.tests, (&[], &[]), usize::MAX) else { return Ok(None) };
    let way = (&path.index, &path.ranges[..]);
    Ok(there(table.index_rows(moment.view(), way, path.direction(), options, path.few(usize::MAX)))?.flatten())
}

impl Changes {
    /// Finds rows and changes them, then those again that others have changed meanwhile, until there are none; gives their
    /// number. `None` if they have to be changed the long way, and some may have been.
    fn run(
        &self,
        table: &Table,
        write: &mut Write<'_>,
        bound: &Bound<'_>,
        options: &ScanOptions,
    ) -> Result<Option<u64>> {
        let (mut count, mut again) = (0, None);
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
            if changed.stale.is_empty() {
                return Ok(Some(count));
            }
            again = Some(changed.stale);
            write.next_moment()?;
        }
    }

    /// The new values of the columns that are set, row by row.
    fn values(&self, table: &Table, bound: &Bound<'_>, rows: &RecordBatch) -> Result<Option<RecordBatch>> {
        let columns = table.schema().columns();
        let set: Vec<_> = self.sets.iter().map(|(column, _)| &columns[*column]).collect();
        let mut builders: Vec<ColumnBuilder> = set.iter().map(|column| ColumnBuilder::new(column.data_type)).collect();
        for row in 0..rows.num_rows() {
            let read = |(at, column): (usize, &usize)| -> Result<Value> {
                if rows.column(at).is_null(row) {
                    return Ok(Value::Null);
                }
                let scalar = ScalarValue::try_from_array(rows.column(at), row).ok();
                let value = scalar.and_then(|scalar| value_of_scalar(&scalar, columns[*column].data_type));
                value.ok_or_else(|| SqlError::new("XX000", "a column has a value that is none of its type"))
            };
            let read = self.reads.iter().enumerate().map(read).collect::<Result<Vec<_>>>()?;
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
