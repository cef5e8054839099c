//! Running a statement that touches a row by its key.
use arrow_array::ArrayRef;
use engine::{CellRows, PointAccess, ReadView, ScanOptions, SeenTables, Table, TransactionOptions, Value, WordsUpdate};

use crate::error::Result;
use crate::point::bound::{Bound, Now};
use crate::point::columns::Columns;
use crate::point::exact::exact;
use crate::point::operands::OfRow;
use crate::point::search::Search;
use crate::point::term::{Origin, Term};
use crate::point::{Action, NewRows, Point};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Outcome, Rows};
use crate::state::target::batch;
use crate::statements::change::outcome;
use crate::statements::{insert_few, join_row};
use crate::values::Misfit;
use crate::values::builder::ColumnBuilder;
use crate::values::stored::rows_as_queried;

/// The sums of fewer ranges are added up by the thread that asks.
const RANGES_AT_ONCE: usize = 32;

/// Whether the columns of a table are filled with what they were when a statement was planned.
pub(super) fn is_filled_alike(write: &Write<'_>, table: &Table, settings_changes: u64) -> bool {
    let has_own = || {
        let transaction = &write.transaction;
        transaction.has_changed_catalog() && transaction.settings(table).defaults != table.settings().defaults
    };
    table.settings_changes() == settings_changes && !has_own()
}

/// Puts the next numbers of sequences into rows, in the order of the rows.
fn number(session: &Session, rows: &mut CellRows<'_, '_>, origins: &[Vec<Origin>]) -> Result<()> {
    for (row, origins) in origins.iter().enumerate() {
        for (at, origin) in origins.iter().enumerate() {
            let Origin::Next(sequence, data_type) = origin else { continue };
            let number = session.next_number(sequence)?;
            if !rows.replace_integer(row, at, number) {
                let column = &rows.table().schema().columns()[at].name;
                return Err(Misfit::Range.error(column, *data_type, &number.to_string(), "bigint"));
            }
        }
    }
    Ok(())
}

/// Puts rows in, as [`Point::change_rows`] does.
fn insert(
    table: &Table,
    session: &Session,
    write: &mut Write<'_>,
    bound: &Bound<'_>,
    new: &NewRows,
) -> Result<Option<Changed>> {
    let mut rows = CellRows::new(table);
    if !is_filled_alike(write, table, new.settings_changes)
        || !new.rows.iter().all(|row| bound.push_row(row, &mut rows))
    {
        return Ok(None);
    }
    if new.takes_numbers {
        number(session, &mut rows, &new.rows)?;
    }
    if let Some(conflict) = &new.conflict {
        return insert_few::put(session, write, (&rows, conflict), bound, new.returning.as_ref());
    }
    write.transaction.insert_rows(&rows)?;
    Ok(Some((rows.len() as u64, Given::of(new.returning.as_ref(), |columns| Ok(picked(&rows, columns)))?)))
}

/// The values of some columns, row by row.
pub(super) fn picked(rows: &CellRows<'_, '_>, columns: &[usize]) -> Vec<Vec<Value>> {
    (0..rows.len()).map(|row| columns.iter().map(|column| rows.value(row, *column)).collect()).collect()
}

/// What a change gives back of the rows that it has put in or changed.
pub(super) enum Given {
    Nothing,
    /// the columns that are asked for
    Picked(Vec<Vec<Value>>),
    Rows(Rows),
}

impl Given {
    /// The columns at these positions of rows, where something is to be given back.
    pub(super) fn of(
        returning: Option<&Columns>,
        rows: impl FnOnce(&[usize]) -> Result<Vec<Vec<Value>>>,
    ) -> Result<Given> {
        returning.map_or(Ok(Given::Nothing), |columns| rows(&columns.positions).map(Given::Picked))
    }

    fn into_rows(self, returning: Option<&Columns>, table: &Table) -> Result<Option<Rows>> {
        match (self, returning) {
            (Given::Picked(rows), Some(columns)) => columns.rows(table, &rows).map(Some),
            (Given::Rows(rows), _) => Ok(Some(rows)),
            (Given::Nothing | Given::Picked(_), _) => Ok(None),
        }
    }
}

/// How many rows were changed, and what is given back of them.
pub(super) type Changed = (u64, Given);

impl Columns {
    /// The values of these columns in the row of a key that is set to words; `None` if there are others among them than the key and
    /// those that are set.
    fn of_words(
        &self,
        (table, key): (&Table, i64),
        sets: &[(usize, Term)],
        (update, new): (&WordsUpdate, &[u64]),
    ) -> Option<Vec<Value>> {
        let value = |column: &usize| {
            if table.schema().primary_key() == [*column] {
                return exact(&Value::BigInt(key), table.schema().columns()[*column].data_type);
            }
            let at = sets.iter().position(|(set, _)| set == column)?;
            Some(update.new_value(at, new[at]))
        };
        self.positions.iter().map(value).collect()
    }

    /// A batch of these columns of rows that were put in or changed.
    pub(super) fn rows(&self, table: &Table, rows: &[Vec<Value>]) -> Result<Rows> {
        let columns = table.schema().columns();
        let column = |(place, at): (usize, &usize)| -> Result<ArrayRef> {
            let mut builder = ColumnBuilder::new(columns[*at].data_type);
            for row in rows {
                let appended = builder.append_value(&row[place]);
                appended.map_err(|misfit| misfit.error(&columns[*at].name, columns[*at].data_type, "", ""))?;
            }
            Ok(builder.finish())
        };
        let arrays = self.positions.iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        Ok(Rows::ready(batch(self.schema.clone(), arrays, rows.len())?))
    }
}

impl Point {
    /// Runs it with values for its parameters; `None` if it has to go the long way, and nothing was done.
    pub(crate) fn run(&self, session: &mut Session, values: &[Value]) -> Result<Option<Outcome>> {
        let bound = Bound { values, now: Now::at(session.now) };
        match &self.action {
            Action::Select { key, columns, .. } => self.select(session, &bound, key, columns),
            Action::Search(search) => self.search(session, &bound, search),
            Action::Join(join) => self.join(session, &bound, join),
            Action::Change(changes) => self.change(session, &bound, changes),
            Action::Update { .. } | Action::Delete { .. } | Action::Insert(_) => {
                let done = session.write(self.command(), |session, write| self.change_rows(session, write, &bound))?;
                Ok(done.map(|(rows, given)| outcome(format!("{} {rows}", self.tag()), given)))
            }
        }
    }

    /// What it is called where it fails.
    fn command(&self) -> &'static str {
        match &self.action {
            Action::Insert(_) => "INSERT",
            Action::Delete { .. } => "DELETE",
            _ => "UPDATE",
        }
    }

    /// The words of its tag, which stand before the number of rows.
    pub(crate) fn tag(&self) -> &'static str {
        match &self.action {
            Action::Insert(_) => "INSERT 0",
            _ => self.command(),
        }
    }

    /// Makes the change in a transaction of its own that begins with these options, by which it waits for nothing: the number of rows,
    /// and what is given back of each. `None` where it has to be run, and nothing was done: an error comes again there.
    pub(crate) fn change_at_once(
        &self,
        session: &Session,
        values: &[Value],
        options: TransactionOptions,
    ) -> Result<Option<(u64, Vec<Vec<Value>>)>> {
        if !self.is_of_known_keys() || self.returning().is_some_and(Columns::have_blanks) {
            return Ok(None);
        }
        let done = session.db.run_once(options, |transaction| {
            let bound = Bound { values, now: Now::default() };
            let mut write = Write::new(transaction, self.command(), &session.token);
            let changed = session.with_seen(|seen| match self.find(&mut write, seen)? {
                Some(table) => self.change_rows_of(table, session, &mut write, &bound),
                None => Ok(None),
            });
            let (rows, given) = match changed {
                Ok(Some((rows, Given::Nothing))) => (rows, Vec::new()),
                Ok(Some((rows, Given::Picked(given)))) => (rows, given),
                _ => return None,
            };
            transaction.end_statement().ok()?;
            Some((rows, given))
        });
        match done {
            Ok(done) => Ok(done),
            // The commit may be on disk.
            Err(error @ engine::Error::Log(_)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// Makes the change for each set of values; how many rows were changed, or `None` where nothing was done.
    pub(crate) fn change_many(&self, session: &mut Session, sets: &[Vec<Value>]) -> Result<Option<u64>> {
        let now = session.now;
        session.write(self.command(), |session, write| {
            let (before, mut changed) = (write.transaction.savepoint(), 0);
            for values in sets {
                write.check()?;
                let Some((rows, _)) = self.change_rows(session, write, &Bound { values, now: Now::at(now) })? else {
                    write.transaction.rollback_to(before)?;
                    write.transaction.release(before)?;
                    return Ok(None);
                };
                write.transaction.end_statement()?;
                changed += rows;
            }
            write.transaction.release(before)?;
            Ok(Some(changed))
        })
    }

    /// Makes the change within a transaction: the number of rows, and what is given back of them. `None` if it has to go the long way,
    /// and nothing was done.
    fn change_rows(
        &self,
        session: &Session,
        write: &mut Write<'_>,
        bound: &Bound<'_>,
    ) -> Result<Option<(u64, Option<Rows>)>> {
        session.with_seen(|seen| {
            let Some(table) = self.find(write, seen)? else { return Ok(None) };
            let Some((rows, given)) = self.change_rows_of(table, session, write, bound)? else { return Ok(None) };
            Ok(Some((rows, given.into_rows(self.returning(), table)?)))
        })
    }

    fn change_rows_of(
        &self,
        table: &Table,
        session: &Session,
        write: &mut Write<'_>,
        bound: &Bound<'_>,
    ) -> Result<Option<Changed>> {
        match &self.action {
            Action::Update { key, sets, reads, settings_changes, returning, words } => {
                if !is_filled_alike(write, table, *settings_changes) {
                    return Ok(None);
                }
                let mut known = None;
                let is_done = match (words, &key[..]) {
                    (Some(update), [origin]) if let Some(key) = bound.integer(origin) => {
                        write.transaction.update_at_once(table, update, key, |read, new| {
                            bound.put_words(sets, update, OfRow::new(update, read), new)?;
                            known = match returning {
                                Some(columns) => columns.of_words((table, key), sets, (update, new)),
                                None => None,
                            };
                            Some(())
                        })?
                    }
                    _ => false,
                };
                if is_done {
                    let given = match (returning, known) {
                        (None, _) => Some(Given::Nothing),
                        (Some(_), known) => known.map(|row| Given::Picked(vec![row])),
                    };
                    if let Some(given) = given {
                        return Ok(Some((1, given)));
                    }
                }
                let Some(key) = bound.key(key) else { return Ok(None) };
                let updated = if is_done {
                    true
                } else if reads.is_empty() {
                    let Some(changes) = bound.changes(sets, &[]) else { return Ok(None) };
                    write.transaction.update_columns(table, &key, &changes)?
                } else {
                    let compute = |read: &[Value]| bound.changes(sets, read);
                    let Some(updated) = write.transaction.update_computed(table, &key, reads, compute)? else {
                        return Ok(None);
                    };
                    updated
                };
                let given = Given::of(returning.as_ref(), |columns| match updated {
                    false => Ok(Vec::new()),
                    // The row is this transaction's, and has its key still.
                    true => Ok(write.transaction.get_columns(table, &key, columns)?.into_iter().collect()),
                })?;
                Ok(Some((u64::from(updated), given)))
            }
            Action::Delete { key } => {
                let Some(key) = bound.key(key) else { return Ok(None) };
                Ok(Some((u64::from(write.transaction.delete(table, &key)?), Given::Nothing)))
            }
            Action::Insert(new) => insert(table, session, write, bound, new),
            Action::Select { .. } | Action::Search(_) | Action::Join(_) | Action::Change(_) => Ok(None),
        }
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
        let options = ScanOptions { columns: columns.positions.clone(), ..ScanOptions::default() };
        let look = |table: &Table| -> Result<_> {
            Ok(match columns.are_stored {
                true => table.lookup_as(moment.view(), &key, &options, &columns.schema)?,
                false => rows_as_queried(&table.lookup(moment.view(), &key, &options)?, &columns.schema),
            })
        };
        let Some(found) = self.seen(session, moment.view(), look).transpose()? else { return Ok(None) };
        let rows = Rows::ready(found).renamed(columns.schema.clone());
        Ok(Some(Outcome::Rows(rows)))
    }

    /// Does something with the table that it is about, if its name means that in a view still.
    pub(super) fn seen<T>(&self, session: &Session, view: &ReadView, work: impl FnOnce(&Table) -> T) -> Option<T> {
        session.with_seen(|seen| {
            let table = session.db.table_seen_again(seen, view, &self.table).ok();
            table.filter(|table| table.id() == self.id).map(work)
        })
    }

    /// The row that a `SELECT` by a key finds, as values; `None` where it has to be run.
    pub(crate) fn row(&self, session: &Session, values: &[Value]) -> Result<Option<Option<Vec<Value>>>> {
        let bound = Bound { values, now: Now::default() };
        let mut row = Vec::new();
        if let Some(is_there) = self.newest(session, &bound, &mut row)? {
            return Ok(Some(is_there.then_some(row)));
        }
        self.row_otherwise(session, &bound)
    }

    /// As [`row`](Self::row), where the [newest](Self::newest) row is not told at once.
    pub(crate) fn row_otherwise(&self, session: &Session, bound: &Bound<'_>) -> Result<Option<Option<Vec<Value>>>> {
        let (key, columns) = match &self.action {
            // The blanks of `char(n)` are put there where rows are read.
            Action::Select { key, columns, .. } if !columns.have_blanks() => (key, columns),
            Action::Search(search) => return self.total(session, search),
            Action::Join(join) => return join_row::row(session, bound, join),
            _ => return Ok(None),
        };
        let Some(key) = bound.key(key) else { return Ok(None) };
        let view = session.db.read_view()?;
        let look = |table: &Table| table.lookup_values(&view, &key, &columns.positions);
        Ok(self.seen(session, &view, look).transpose()?)
    }

    /// The counts and sums of a table without conditions as a row, where they take no thread more.
    fn total(&self, session: &Session, search: &Search) -> Result<Option<Option<Vec<Value>>>> {
        if !search.is_of_whole_table() {
            return Ok(None);
        }
        let view = session.db.read_view()?;
        let sum = |table: &Table| {
            let is_small = !table.is_array() && table.range_count() < RANGES_AT_ONCE;
            is_small.then(|| table.sums(&view, &search.reads)).transpose()
        };
        let sums = self.seen(session, &view, sum).transpose()?.flatten();
        Ok(sums.and_then(|sums| search.answer.of_sums(&sums)).map(Some))
    }

    /// How its rows are read and changed by [`PointAccess`], with the values that it has for `key` and columns as parameters.
    pub(crate) fn access(&self, session: &Session) -> Option<PointAccess> {
        let is_parameter =
            |(at, origin): (usize, &Origin)| matches!(origin, Origin::Parameter(number, _) if *number == at);
        let (key, columns): (_, Vec<usize>) = match &self.action {
            Action::Select { key, columns, .. } => (key, columns.positions.clone()),
            Action::Update { key, sets, reads, returning: None, .. } if reads.is_empty() => {
                let is_set = |(at, (_, term)): (usize, &(usize, Term))| match term {
                    Term::Value(origin) => is_parameter((at + 1, origin)),
                    _ => false,
                };
                let columns = sets.iter().map(|(column, _)| *column).collect();
                (key, Some(columns).filter(|_| sets.iter().enumerate().all(is_set))?)
            }
            _ => return None,
        };
        let table = session.db.table(&self.table).ok().filter(|table| table.id() == self.id)?;
        let is_filled_alike = match &self.action {
            Action::Update { settings_changes, .. } => table.settings_changes() == *settings_changes,
            _ => true,
        };
        let is_known = is_filled_alike && key.len() == 1 && key.iter().enumerate().all(is_parameter);
        if is_known { table.point_access(&columns).ok()? } else { None }
    }

    /// The table that it is about, if that still has its name.
    pub(super) fn find<'s>(&self, write: &mut Write<'_>, seen: &'s mut SeenTables) -> Result<Option<&'s Table>> {
        match write.transaction.seen_to_write(seen, &self.table) {
            Ok(table) => Ok(Some(table).filter(|table| table.id() == self.id)),
            Err(engine::Error::NoSuchTable(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
