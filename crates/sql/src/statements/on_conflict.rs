//! `INSERT ... ON CONFLICT`: rows whose key is taken are left out, or change the row that has it.
//!
//! ```text
//! rows ──▶ found by their keys ──▶ DO UPDATE: a query over the rows that are there beside `excluded`, and a change like that of
//!   ▲          │ not found                    an UPDATE; rows that others have changed or deleted meanwhile begin again
//!   │          ▼
//!   └─── put in; refused as the key was taken meanwhile
//! ```
//!
//! Keys that a running transaction may give up or take are waited for by the engine, at READ COMMITTED; each round looks at a
//! newer moment. Above, a key of a row that the snapshot does not show is a conflict (40001), as in PostgreSQL.
//!
//! New values that are made of values alone need no query ([`upsert`](super::upsert)).
use std::collections::HashSet;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::take::take_record_batch;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, OnConflictAction, OnInsert, Query, SelectItem, SetExpr, Statement,
};
use engine::{Isolation, Table, Value};

use crate::access::table::rid_column;
use crate::error::{Result, SqlError};
use crate::point::bound::Bound;
use crate::point::conflict::Conflict;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::view::RowTarget;
use crate::statements::arbiters::{Arbiter, keys};
use crate::statements::change::{Set, read_assignments, rids, rows_of, update_rows};
use crate::statements::changed_rows::{NamedRows, as_read, columns_of, with_rids, with_xmax};
use crate::statements::target_factor::target_factor;
use crate::statements::upsert::Upsert;
use crate::statements::view_target::{OWN, Through, ViewTarget};
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::values::assign::{Texts, assign};
use crate::values::stored::rows_as_stored;
use crate::values::types::arrow_schema;

/// The name of the rows that were to be put in.
const EXCLUDED: &str = "excluded";

/// The clause of a statement, and what the statement has done so far.
pub(crate) struct OnConflict<'a> {
    /// The key that may be taken; any where none is named.
    arbiter: Option<Arbiter>,
    /// What a row is changed to that is there; nothing where rows are left out.
    update: Option<Update<'a>>,
    label: String,
    source: &'a Source<'a>,
    /// The keys of rows that the statement has put in.
    inserted: HashSet<String>,
    /// The rows that it has changed.
    changed: HashSet<u64>,
    /// Whether it met a value that only a query can tell what becomes of.
    needs_query: bool,
    /// What stands in the place of the table, if that is a view.
    view: Option<ViewTarget>,
    /// What rows that it has changed are marked with, if they are to be told from others.
    mark: Option<i64>,
}

/// `DO UPDATE`: the columns that are set, and how their new values are found.
struct Update<'a> {
    sets: Vec<(usize, Texts)>,
    by: By<'a>,
}

enum By<'a> {
    /// A query for these expressions, over rows of which the condition holds.
    Query { exprs: Vec<Expr>, selection: Option<&'a Expr> },
    /// From values alone.
    Values(Upsert<'a>),
}

/// What came of some rows.
#[derive(Default)]
pub(crate) struct Outcome {
    /// How many were put in or changed.
    pub(crate) count: u64,
    /// Those rows, if they are wanted.
    pub(crate) kept: Vec<Vec<RecordBatch>>,
}

/// Rows by whether their key is taken.
#[derive(Default)]
struct Found {
    /// With the rows that have their keys.
    taken: Vec<(usize, u64)>,
    missing: Vec<usize>,
}

impl<'a> OnConflict<'a> {
    /// The clause of an `INSERT` into a table that it calls `label`.
    ///
    /// # Errors
    /// PostgreSQL's, where it names no key.
    pub(crate) fn read(
        on: Option<&'a OnInsert>,
        label: &str,
        (write, table, view): (&Write<'_>, &Table, Option<&ViewTarget>),
        source: &'a Source<'a>,
    ) -> Result<Option<OnConflict<'a>>> {
        let clause = match on {
            None => return Ok(None),
            Some(OnInsert::OnConflict(clause)) => clause,
            Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY").at(source.find_word("duplicate"))),
        };
        let target = clause.conflict_target.clone();
        let target = target.map(|target| view.map_or(Ok(target.clone()), |view| view.conflict_target(&target)));
        let target = target.transpose().map_err(|error| error.at(source.find_word("conflict")))?;
        let changes = matches!(clause.action, OnConflictAction::DoUpdate(_));
        let arbiter = Arbiter::asked(target.as_ref(), (write, table), changes, source);
        let arbiter = arbiter.map_err(|error| error.at(source.find_word("conflict")))?;
        let update = match &clause.action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(_) if arbiter.is_none() => {
                let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                let error = SqlError::syntax(message).at(source.find_word("conflict"));
                return Err(error.hint("For example, ON CONFLICT (column_name)."));
            }
            OnConflictAction::DoUpdate(update) => {
                let defaults = write.transaction.settings(table).defaults;
                let sets = match view {
                    None => read_assignments((table, label), &defaults, &update.assignments, source)?,
                    Some(view) => {
                        let assignments = view.assignments(&update.assignments, source)?;
                        read_assignments((table, OWN), &defaults, &assignments, source)?
                    }
                };
                let set = sets.iter().map(Set::column).collect();
                let exprs = sets.into_iter().map(|set| set.expr).collect();
                Some(Update { sets: set, by: By::Query { exprs, selection: update.selection.as_ref() } })
            }
        };
        Ok(Some(OnConflict { view: view.cloned(), ..OnConflict::new(arbiter, update, label, source) }))
    }

    /// Plans what a conflict would ask for, so that what is wrong with it is an error whether or not there is one.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub(crate) fn check(&self, session: &Session, write: &mut Write<'_>, table: &Table) -> Result<()> {
        let Some(Update { sets, by: By::Query { exprs, selection } }) = &self.update else { return Ok(()) };
        let none = RecordBatch::new_empty(arrow_schema(table.schema()));
        let query = self.query(exprs.iter().cloned(), *selection)?;
        let qualified = self.run(session, write, query, (table, &none), &[])?;
        write.end_reading();
        let fields = qualified.schema();
        for ((at, texts), (field, array)) in sets.iter().zip(fields.fields().iter().zip(qualified.columns()).skip(1)) {
            let column = &table.schema().columns()[*at];
            assign(array, field, &column.name, column.data_type, *texts)?;
        }
        Ok(())
    }

    /// A clause that goes the short way.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn of_values(
        conflict: &'a Conflict,
        bound: &'a Bound<'a>,
        (write, table): (&Write<'_>, &Table),
        source: &'a Source<'a>,
    ) -> Result<OnConflict<'a>> {
        let changes = conflict.update.is_some();
        let target = conflict.target.as_ref();
        let arbiter = Arbiter::asked(target, (write, table), changes, source)?;
        let update = conflict.update.as_ref().map(|update| Update {
            sets: update.sets.iter().map(|(column, _)| (*column, Texts::Stay)).collect(),
            by: By::Values(Upsert { update, bound }),
        });
        Ok(OnConflict::new(arbiter, update, &conflict.label, source))
    }

    fn new(
        arbiter: Option<Arbiter>,
        update: Option<Update<'a>>,
        label: &str,
        source: &'a Source<'a>,
    ) -> OnConflict<'a> {
        let (inserted, changed) = (HashSet::new(), HashSet::new());
        let (label, view, mark) = (label.to_owned(), None, None);
        OnConflict { arbiter, update, label, source, inserted, changed, needs_query: false, view, mark }
    }

    /// Has rows that it changes be marked with the number of their transaction.
    pub(crate) fn marked_by(self, write: &Write<'_>) -> OnConflict<'a> {
        let number = i64::try_from(write.transaction.id().number()).unwrap_or(i64::MAX);
        OnConflict { mark: Some(number.max(1)), ..self }
    }

    /// Whether it met a value that only a query can tell what becomes of; what it has done so far is to be taken back then.
    pub(super) fn needs_query(&self) -> bool {
        self.needs_query
    }

    /// Puts rows in, or does with them what the clause says.
    pub(crate) fn put(
        &mut self,
        session: &Session,
        write: &mut Write<'_>,
        table: &Table,
        rows: &RecordBatch,
        keeps: bool,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        // A row that the table does not take is an error, whether or not its key is taken.
        write.transaction.check_batch(table, &rows_as_stored(rows))?;
        let mut open: Vec<usize> = (0..rows.num_rows()).collect();
        while !open.is_empty() {
            write.check()?;
            let Found { taken, missing } = self.find(write, table, rows, &open)?;
            open = match &self.update {
                None => Vec::new(),
                Some(_) => self.change(session, write, (table, rows), &taken, keeps, &mut outcome)?,
            };
            if self.needs_query {
                break;
            }
            write.end_reading();
            open.extend(self.insert(write, (table, rows), &missing, keeps, &mut outcome)?);
            if !open.is_empty() {
                write.next_moment()?;
            }
        }
        Ok(outcome)
    }

    /// Which of the rows have a key that is taken, with the rows that have it, and which have not.
    fn find(&self, write: &mut Write<'_>, table: &Table, rows: &RecordBatch, open: &[usize]) -> Result<Found> {
        let mut found = Found::default();
        let Some(arbiter) = &self.arbiter else { return Ok(Found { missing: open.to_vec(), ..found }) };
        for row in open {
            let key = arbiter.key(table, rows, *row)?;
            if let Some(key) = &key {
                self.check_once(|| self.inserted.contains(&text(key)))?;
            }
            match key.map_or(Ok(None), |key| arbiter.find(write, table, key))? {
                Some(rid) => {
                    self.check_once(|| self.changed.contains(&rid) || write.has_changed(table, rid))?;
                    found.taken.push((*row, rid));
                }
                None => found.missing.push(*row),
            }
        }
        Ok(found)
    }

    /// An error if a row would be changed that the statement has put in or changed before.
    fn check_once(&self, is_own: impl FnOnce() -> bool) -> Result<()> {
        if self.update.is_none() || !is_own() {
            return Ok(());
        }
        let error = SqlError::new("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time");
        let hint =
            "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
        Err(error.hint(hint))
    }

    /// Changes rows that are there; gives back the rows that have to be looked at again.
    fn change(
        &mut self,
        session: &Session,
        write: &mut Write<'_>,
        (table, rows): (&Table, &RecordBatch),
        found: &[(usize, u64)],
        keeps: bool,
        outcome: &mut Outcome,
    ) -> Result<Vec<usize>> {
        let Some(update) = self.update.as_ref().filter(|_| !found.is_empty()) else { return Ok(Vec::new()) };
        let mut seen = HashSet::new();
        // Of two for one row the second comes when the first is done.
        let (now, later): (Vec<_>, Vec<_>) = found.iter().partition(|(_, rid)| seen.insert(*rid));
        let label = self.view.as_ref().map_or_else(|| self.label.clone(), |_| OWN.to_owned());
        let tables = keeps.then(|| vec![NamedRows::of_table(label, table)]);
        let qualified = match &update.by {
            By::Query { exprs, selection } => {
                let columns = tables.as_deref().map(columns_of).unwrap_or_default();
                let query = self.query(exprs.iter().cloned().chain(columns), *selection)?;
                self.run(session, write, query, (table, rows), &now)?
            }
            By::Values(upsert) => match upsert.rows(table, &write.moment()?, rows, &now, keeps)? {
                Some(qualified) => qualified,
                None => {
                    self.needs_query = true;
                    return Ok(Vec::new());
                }
            },
        };
        let (changed, mut kept) = update_rows(write, table, &update.sets, &qualified, tables.as_deref())?;
        let again: HashSet<u64> = changed.stale.iter().chain(&changed.gone).copied().collect();
        self.changed.extend(rids(&qualified)?.values().iter().filter(|rid| !again.contains(rid)));
        outcome.count += changed.rows;
        if let (Some(mark), Some(own)) = (self.mark, kept.as_mut().and_then(|tables| tables.first_mut())) {
            *own = with_xmax(own, mark)?;
        }
        outcome.kept.extend(kept);
        let again = now.into_iter().filter(|(_, rid)| again.contains(rid));
        Ok(again.chain(later).map(|(row, _)| *row).collect())
    }

    /// The rows that are there beside those that were to be put in, as a query gives them.
    fn run(
        &self,
        session: &Session,
        write: &mut Write<'_>,
        mut query: Box<Query>,
        (table, rows): (&Table, &RecordBatch),
        now: &[&(usize, u64)],
    ) -> Result<RecordBatch> {
        write.with.surround(&mut query)?;
        let moment = write.moment()?;
        let of_rows: UInt64Array = now.iter().map(|(_, rid)| *rid).collect();
        let excluded = taken(rows, now.iter().map(|(row, _)| *row))?;
        let excluded = as_read(table, excluded.columns().to_vec(), excluded.num_rows())?;
        let excluded = vec![with_rids(&excluded, of_rows.clone(), 1)?];
        let targets = vec![
            RowTarget::new(table.clone(), moment.clone(), Some(of_rows.values().to_vec().into())),
            RowTarget::of_rows(table.clone(), moment.clone(), excluded),
        ];
        let view = write.view(session, moment, targets);
        let plan = session.planner.plan(Statement::Query(query), view, self.source)?;
        rows_of(plan)
    }

    /// `SELECT rid, sets..., columns... FROM target AS label, excluded WHERE they belong together AND selection`
    fn query(&self, exprs: impl Iterator<Item = Expr>, selection: Option<&Expr>) -> Result<Box<Query>> {
        let mut query = template("SELECT 1")?;
        let quoted = |name: &str| Ident::with_quote('"', name);
        let rid = |label: &str, at| Expr::CompoundIdentifier(vec![quoted(label), quoted(&rid_column(at))]);
        if let SetExpr::Select(select) = query.body.as_mut() {
            let exprs = std::iter::once(rid(&self.label, 0)).chain(exprs).enumerate();
            let item =
                |(at, expr): (usize, Expr)| SelectItem::ExprWithAlias { expr, alias: quoted(&format!("\0{at}")) };
            select.projection = exprs.map(item).collect();
            select.from = match &self.view {
                None => vec![target_factor(&self.label, 0)?, target_factor(EXCLUDED, 1)?],
                Some(view) => {
                    view.relabel(&mut select.projection, &self.label);
                    // A row that another one of the view keeps out is changed, whether or not the view shows it.
                    let excluded = view.factor(EXCLUDED, Through::to_give_back(1, true))?;
                    vec![view.factor(&self.label, Through::all(0))?, excluded]
                }
            };
            let and = |left, op, right| Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) };
            let together = and(rid(&self.label, 0), BinaryOperator::Eq, rid(EXCLUDED, 1));
            select.selection = Some(match selection {
                Some(selection) => {
                    let selection = Expr::Nested(Box::new(selection.clone()));
                    and(together, BinaryOperator::And, selection)
                }
                None => together,
            });
        }
        Ok(query)
    }

    /// Puts rows in; gives back those that have to be looked at again, as their key was taken meanwhile.
    fn insert(
        &mut self,
        write: &mut Write<'_>,
        (table, rows): (&Table, &RecordBatch),
        missing: &[usize],
        keeps: bool,
        outcome: &mut Outcome,
    ) -> Result<Vec<usize>> {
        if missing.len() > 1 {
            let all = taken(rows, missing.iter().copied())?;
            match write.transaction.insert_batch(table, &rows_as_stored(&all)) {
                Ok(_) => return self.note(table, &all, keeps, outcome).map(|()| Vec::new()),
                Err(error) if self.is_taken(&error) || matches!(error, engine::Error::DuplicateKey { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut again = Vec::new();
        for row in missing {
            let one = rows.slice(*row, 1);
            match write.transaction.insert_batch(table, &rows_as_stored(&one)) {
                Ok(_) => self.note(table, &one, keeps, outcome)?,
                Err(error) if self.is_taken(&error) || self.is_taken_besides(write, table, &one, &error)? => {
                    let key = self.arbiter.as_ref().map(|arbiter| arbiter.key(table, &one, 0)).transpose()?.flatten();
                    let is_own = key.is_some_and(|key| self.inserted.contains(&text(&key)));
                    self.check_once(|| is_own)?;
                    if !is_own {
                        self.check_visible(write, table, &one, &error)?;
                    }
                    again.extend(self.update.as_ref().map(|_| *row));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(again)
    }

    /// Whether an error is a conflict that the clause is about.
    fn is_taken(&self, error: &engine::Error) -> bool {
        match (error, &self.arbiter) {
            (engine::Error::DuplicateKey { .. } | engine::Error::ExclusionViolated { .. }, None) => true,
            (
                engine::Error::DuplicateKey { constraint, .. } | engine::Error::ExclusionViolated { constraint, .. },
                Some(arbiter),
            ) => *constraint == arbiter.constraint,
            _ => false,
        }
    }

    /// Whether the key that the clause is about is taken of a row that another key has kept out: the engine tells the first that it meets.
    fn is_taken_besides(
        &self,
        write: &mut Write<'_>,
        table: &Table,
        row: &RecordBatch,
        error: &engine::Error,
    ) -> Result<bool> {
        let (Some(arbiter), engine::Error::DuplicateKey { .. }) = (&self.arbiter, error) else { return Ok(false) };
        let Some(key) = arbiter.key(table, row, 0)? else { return Ok(false) };
        if self.inserted.contains(&text(&key)) {
            return Ok(true);
        }
        write.next_moment()?;
        let found = arbiter.find(write, table, key)?;
        write.end_reading();
        Ok(found.is_some())
    }

    /// Refuses, above READ COMMITTED, to go by a row that the snapshot does not show.
    fn check_visible(
        &self,
        write: &mut Write<'_>,
        table: &Table,
        row: &RecordBatch,
        error: &engine::Error,
    ) -> Result<()> {
        let engine::Error::DuplicateKey { constraint, .. } = error else { return Ok(()) };
        if write.transaction.isolation() == Isolation::ReadCommitted {
            return Ok(());
        }
        let keys = keys(write, table);
        let Some(arbiter) = keys.iter().find(|key| key.constraint == *constraint) else { return Ok(()) };
        let key = arbiter.key(table, row, 0)?;
        write.next_moment()?;
        let found = key.map_or(Ok(None), |key| arbiter.find(write, table, key))?;
        write.end_reading();
        match found {
            Some(_) => Ok(()),
            None => Err(engine::Error::Conflict.into()),
        }
    }

    /// Notes rows that were put in.
    fn note(&mut self, table: &Table, rows: &RecordBatch, keeps: bool, outcome: &mut Outcome) -> Result<()> {
        outcome.count += rows.num_rows() as u64;
        if keeps {
            outcome.kept.push(vec![as_read(table, rows.columns().to_vec(), rows.num_rows())?]);
        }
        if let Some(arbiter) = &self.arbiter {
            for row in 0..rows.num_rows() {
                let key = arbiter.key(table, rows, row)?;
                self.inserted.extend(key.map(|key| text(&key)));
            }
        }
        Ok(())
    }
}

/// A key as it is remembered.
fn text(key: &[Value]) -> String {
    format!("{key:?}")
}

/// Some of the rows of a batch.
fn taken(rows: &RecordBatch, which: impl Iterator<Item = usize>) -> Result<RecordBatch> {
    let which: UInt64Array = which.map(|row| row as u64).collect();
    take_record_batch(rows, &which).map_err(|error| SqlError::new("XX000", error.to_string()))
}
