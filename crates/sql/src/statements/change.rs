//! `UPDATE` and `DELETE`: a query finds the rows' ids and new values, the engine's transaction changes them.
//!
//! Under READ COMMITTED a row may have been changed by others between the two. It is locked then, and the same query is run
//! again as of now, over nothing but such rows: those that still qualify are changed, to values worked out anew, and the
//! others are left alone, as by PostgreSQL's EvalPlanQual. Rows that were not found at first never join in.
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, Spanned, Statement, TableAlias, TableFactor,
    TableWithJoins, Update, UpdateTableFromKind,
};
use engine::{Changed, ColumnDefault, Table};

use crate::access::default_expressions::expression_of;
use crate::access::table::rid_column;
use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::names::schemas::local;
use crate::names::{column_name, find_column, fold, position, table_name};
use crate::planning::planner::Plan;
use crate::semantics::naming::using;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Command, Outcome, Rows};
use crate::state::target::{batch, nullable};
use crate::state::view::RowTarget;
use crate::state::with_rows::WithRows;
use crate::statements::changed_rows::{NamedRows, columns_of, joined, rows_changed};
use crate::statements::returning::Returning;
use crate::statements::target_factor::target_factor;
use crate::statements::view_target::{self, Through, ViewTarget};
use crate::statements::{constants, generated, identity, set_row};
use crate::syntax::cursor_tokens;
use crate::syntax::source::Source;
use crate::syntax::subscript_tokens::PART;
use crate::syntax::template::template;
use crate::values::assign::{Texts, assign};
use crate::values::literals::{is_default, is_untyped};
use crate::values::stored::rows_as_stored;

/// Runs an `UPDATE`.
pub(crate) fn update(session: &mut Session, update: &Update, source: &Source) -> Result<Outcome> {
    session.write("UPDATE", |session, write| write_update(session, write, update, source))
}

/// Changes the rows of an `UPDATE`.
pub(crate) fn write_update(
    session: &Session,
    write: &mut Write<'_>,
    update: &Update,
    source: &Source,
) -> Result<Outcome> {
    let found = Found::of_update(update, source)?;
    let returning = found.returning(update.returning.as_ref(), session, &write.with, source)?;
    let (table, view) = view_target::find(write, found.name, source)?;
    let current = found.current(session, &table, view.is_some())?;
    let found = Found { view: view.as_ref(), selection: found.selection.filter(|_| current.is_none()), ..found };
    let returning = returning.map(|returning| returning.through(view.clone()));
    let defaults = write.transaction.settings(&table).defaults;
    let sets = found.sets(&table, &defaults, &update.assignments, source)?;
    let set: Vec<(usize, Texts)> = sets.iter().map(Set::column).collect();
    let moment = returning.as_ref().map_or(Ok(None), |returning| returning.moment(write))?;
    let (updated, kept) = change(write, |write, rids| {
        let target = RowTarget::new(table.clone(), write.moment()?, rids.or_else(|| current.clone()));
        let tables = found.tables_kept(returning.as_ref(), &table);
        let columns = tables.as_deref().map(columns_of).unwrap_or_default();
        let exprs: Vec<&Expr> = sets.iter().map(|set| &set.expr).chain(&columns).collect();
        let rows = found.rows(session, write, target, &exprs, source)?;
        update_rows(write, &table, &set, &rows, tables.as_deref())
    })?;
    view.as_ref().map_or(Ok(()), |view| view.check(session, write, &kept, source))?;
    if updated == 0 {
        let columns = table.schema().columns();
        let assigned = sets.iter().map(|set| (&set.expr, &columns[set.column], set.texts));
        constants::check(session, write, assigned, source)?;
    }
    let rows = given_back(session, write, returning.as_ref(), (&table, kept, moment), source)?;
    Ok(outcome(format!("UPDATE {updated}"), rows))
}

/// Runs a `DELETE`.
pub(crate) fn delete(session: &mut Session, delete: &Delete, source: &Source) -> Result<Outcome> {
    session.write("DELETE", |session, write| write_delete(session, write, delete, source))
}

/// Deletes the rows of a `DELETE`.
pub(crate) fn write_delete(
    session: &Session,
    write: &mut Write<'_>,
    delete: &Delete,
    source: &Source,
) -> Result<Outcome> {
    let found = Found::of_delete(delete, source)?;
    let returning = found.returning(delete.returning.as_ref(), session, &write.with, source)?;
    let (table, view) = view_target::find(write, found.name, source)?;
    let current = found.current(session, &table, view.is_some())?;
    let found = Found { view: view.as_ref(), selection: found.selection.filter(|_| current.is_none()), ..found };
    let returning = returning.map(|returning| returning.through(view.clone()));
    let moment = returning.as_ref().map_or(Ok(None), |returning| returning.moment(write))?;
    let (deleted, kept) = change(write, |write, rids| {
        let target = RowTarget::new(table.clone(), write.moment()?, rids.or_else(|| current.clone()));
        let tables = returning.as_ref().map(|returning| returning.tables(&table));
        let columns = tables.as_deref().map(columns_of).unwrap_or_default();
        let rows = found.rows(session, write, target, &columns.iter().collect::<Vec<_>>(), source)?;
        let (view, rids) = (write.moment_read()?, self::rids(&rows)?);
        let changed = write.transaction.delete_batch(&table, &rids, &view)?;
        write.note_changed(&table, &rids_changed(&rids, &changed));
        let kept = tables.map(|tables| rows_changed(&tables, &rows, &[], (&rids, &changed), 1)).transpose()?;
        Ok((changed, kept))
    })?;
    let rows = given_back(session, write, returning.as_ref(), (&table, kept, moment), source)?;
    Ok(outcome(format!("DELETE {deleted}"), rows))
}

/// The table of an `UPDATE`, and what is given back of its rows.
pub(crate) fn returning_of_update<'a>(
    update: &'a Update,
    session: &Session,
    with: &WithRows,
    source: &Source,
) -> Result<(&'a ObjectName, Option<Returning<'a>>)> {
    let found = Found::of_update(update, source)?;
    Ok((found.name, found.returning(update.returning.as_ref(), session, with, source)?))
}

/// The table of a `DELETE`, and what is given back of its rows.
pub(crate) fn returning_of_delete<'a>(
    delete: &'a Delete,
    session: &Session,
    with: &WithRows,
    source: &Source,
) -> Result<(&'a ObjectName, Option<Returning<'a>>)> {
    let found = Found::of_delete(delete, source)?;
    Ok((found.name, found.returning(delete.returning.as_ref(), session, with, source)?))
}

/// The outcome of a statement that has changed rows, and gives some back where it was asked to.
pub(crate) fn outcome(tag: String, rows: Option<Rows>) -> Outcome {
    match rows {
        Some(rows) => Outcome::Rows(rows.with_tag(tag)),
        None => Command::new(tag).into(),
    }
}

/// What a statement gives back of the rows that it has changed.
pub(crate) fn given_back(
    session: &Session,
    write: &mut Write<'_>,
    returning: Option<&Returning<'_>>,
    (table, changed, moment): (&Table, Vec<Vec<RecordBatch>>, Option<Moment>),
    source: &Source,
) -> Result<Option<Rows>> {
    let Some(returning) = returning else { return Ok(None) };
    let moment = match moment {
        Some(moment) => moment,
        None if returning.reads_after() => write.next_moment()?,
        None => write.moment()?,
    };
    returning.rows(session, table, (changed, &write.with), moment, source).map(Some)
}

/// What a pass has changed, and the rows of all tables that it has, if they are wanted.
pub(crate) type Pass = (Changed, Option<Vec<RecordBatch>>);

/// Finds rows and changes them, then those again that others have changed meanwhile, until there are none.
fn change(
    write: &mut Write<'_>,
    pass: impl Fn(&mut Write<'_>, Option<Arc<[u64]>>) -> Result<Pass>,
) -> Result<(u64, Vec<Vec<RecordBatch>>)> {
    let (mut changed, kept) = pass(write, None)?;
    let (mut rows, mut kept) = (changed.rows, Vec::from_iter(kept));
    while !changed.stale.is_empty() {
        write.later_moment()?;
        let (newly, more) = pass(write, Some(changed.stale.into()))?;
        rows += newly.rows;
        kept.extend(more);
        changed = newly;
    }
    Ok((rows, kept))
}

/// One column to set.
pub(crate) struct Set {
    column: usize,
    pub(crate) expr: Expr,
    texts: Texts,
    /// Whether only a part of an array is set.
    is_part: bool,
}

/// The call that gives an array with another part, of this array.
fn with_part(array: Expr, call: &Expr) -> Result<Expr> {
    let mut call = call.clone();
    match &mut call {
        Expr::Function(Function { args: FunctionArguments::List(list), .. }) => {
            list.args.insert(0, FunctionArg::Unnamed(FunctionArgExpr::Expr(array)));
            Ok(call)
        }
        _ => Err(SqlError::new("XX000", "a part of an array is set by no call")),
    }
}

/// The columns of `SET` of a table, which expressions call by the name beside it, with their expressions.
pub(crate) fn read_assignments(
    (table, label): (&Table, &str),
    defaults: &[ColumnDefault],
    assignments: &[Assignment],
    source: &Source,
) -> Result<Vec<Set>> {
    let mut sets: Vec<Set> = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        for (name, expr) in pairs(assignment)? {
            let expr = expr.as_ref();
            let at = position(name, source);
            let name = column_name(name, source)?;
            let (name, is_part) = name.strip_suffix(PART).map_or((&*name, false), |name| (name, true));
            let column = find_column(table, name, at)?;
            let before = sets.iter().position(|set| set.column == column);
            if is_part && before.is_none_or(|before| sets[before].is_part) {
                identity::check_set(defaults, table, column).map_err(|error| error.at(at))?;
                let whole = match before.map(|before| sets.swap_remove(before).expr) {
                    Some(expr) => expr,
                    None => Expr::CompoundIdentifier([label, name].map(|part| Ident::with_quote('"', part)).to_vec()),
                };
                sets.push(Set { column, expr: with_part(whole, expr)?, texts: Texts::Stay, is_part });
                continue;
            }
            if before.is_some() {
                let name = &table.schema().columns()[column].name;
                let message = format!("multiple assignments to same column \"{name}\"");
                return Err(SqlError::syntax(message).at(at));
            }
            if is_default(expr) && generated::is_generated(defaults, column) {
                continue;
            }
            let expr = if is_default(expr) {
                expression_of(defaults, column)?.unwrap_or_else(|| Expr::Value(null()))
            } else {
                identity::check_set(defaults, table, column).map_err(|error| error.at(at))?;
                expr.clone()
            };
            let texts = if is_untyped(&expr) { Texts::AreRead } else { Texts::Stay };
            sets.push(Set { column, expr, texts, is_part });
        }
    }
    if generated::are_among(defaults) {
        let pairs: Vec<(usize, Expr)> = sets.iter().map(|set| (set.column, set.expr.clone())).collect();
        let besides = generated::set_besides((table, label), defaults, &pairs)?.into_iter();
        sets.extend(besides.map(|(column, expr, texts)| Set { column, expr, texts, is_part: false }));
    }
    Ok(sets)
}

fn null() -> datafusion::sql::sqlparser::ast::ValueWithSpan {
    datafusion::sql::sqlparser::ast::Value::Null.with_empty_span()
}

fn pairs(assignment: &Assignment) -> Result<Vec<(&ObjectName, Cow<'_, Expr>)>> {
    match &assignment.target {
        AssignmentTarget::ColumnName(name) => Ok(vec![(name, Cow::Borrowed(&assignment.value))]),
        AssignmentTarget::Tuple(names) => {
            Ok(names.iter().zip(set_row::values(names.len(), &assignment.value)?).collect())
        }
    }
}

/// The rows that an `UPDATE` or `DELETE` is about.
struct Found<'a> {
    name: &'a ObjectName,
    alias: Option<&'a TableAlias>,
    others: &'a [TableWithJoins],
    selection: Option<&'a Expr>,
    /// What stands in the place of the table, if that is a view.
    view: Option<&'a ViewTarget>,
}

impl<'a> Found<'a> {
    fn of_update(update: &'a Update, source: &Source) -> Result<Found<'a>> {
        let refuse = |what: &str, word: &str| Err(SqlError::unsupported(what).at(source.find_word(word)));
        if update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some() || update.output.is_some() {
            return refuse("ORDER BY or LIMIT of UPDATE", "update");
        }
        let others = match &update.from {
            None => &[][..],
            Some(UpdateTableFromKind::AfterSet(tables)) => tables,
            Some(UpdateTableFromKind::BeforeSet(_)) => return refuse("FROM before SET", "from"),
        };
        Found::new(&update.table, others, update.selection.as_ref(), source)
    }

    fn of_delete(delete: &'a Delete, source: &Source) -> Result<Found<'a>> {
        let refuse = |what: &str, word: &str| Err(SqlError::unsupported(what).at(source.find_word(word)));
        if !delete.tables.is_empty() || !delete.order_by.is_empty() || delete.limit.is_some() || delete.output.is_some()
        {
            return refuse("this form of DELETE", "delete");
        }
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [from] = &from[..] else { return refuse("DELETE from several tables", "from") };
        Found::new(from, delete.using.as_deref().unwrap_or_default(), delete.selection.as_ref(), source)
    }

    fn new(
        table: &'a TableWithJoins,
        others: &'a [TableWithJoins],
        selection: Option<&'a Expr>,
        source: &Source,
    ) -> Result<Found<'a>> {
        match &table.relation {
            TableFactor::Table { name, alias, args: None, version: None, .. }
                if table.joins.is_empty() && alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) =>
            {
                Ok(Found { name, alias: alias.as_ref(), others, selection, view: None })
            }
            other => Err(SqlError::unsupported("changing anything but one table").at(source.start(other.span()))),
        }
    }

    /// The row on which a cursor stands, if the statement is about that.
    fn current(&self, session: &Session, table: &Table, is_view: bool) -> Result<Option<Arc<[u64]>>> {
        let Some(cursor) = self.selection.and_then(cursor_tokens::cursor_of) else { return Ok(None) };
        if is_view {
            return Err(SqlError::new("0A000", "WHERE CURRENT OF on a view is not implemented"));
        }
        let current = session.cursors.current(cursor, (table.id(), local(table.name())))?;
        Ok(Some(current.into_iter().collect()))
    }

    /// What the statement calls the table.
    fn label(&self) -> String {
        let name = || self.name.0.last().and_then(ObjectNamePart::as_ident).map(fold).unwrap_or_default();
        self.alias.map_or_else(name, |alias| fold(&alias.name))
    }

    /// The columns that are set, with their new values.
    fn sets(
        &self,
        table: &Table,
        defaults: &[ColumnDefault],
        assignments: &[Assignment],
        source: &Source,
    ) -> Result<Vec<Set>> {
        match self.view {
            None => read_assignments((table, &self.label()), defaults, assignments, source),
            Some(view) => {
                let assignments = view.assignments(assignments, source)?;
                read_assignments((table, view_target::OWN), defaults, &assignments, source)
            }
        }
    }

    /// The tables whose rows are kept as they have been changed: for what is given back, and for what a view checks.
    fn tables_kept(&self, returning: Option<&Returning<'_>>, table: &Table) -> Option<Vec<NamedRows>> {
        let checked = || {
            let own = || NamedRows::of_table(view_target::OWN, table);
            self.view.is_some_and(ViewTarget::has_checks).then(|| vec![own()])
        };
        returning.map(|returning| returning.tables(table)).or_else(checked)
    }

    /// What is given back of the rows.
    fn returning<'r>(
        &self,
        items: Option<&'r Vec<SelectItem>>,
        session: &Session,
        with: &WithRows,
        source: &Source,
    ) -> Result<Option<Returning<'r>>> {
        table_name(self.name, source)?;
        let returning = Returning::read(items, self.label(), &session.planner, source)?;
        let others = || joined(self.others, items.map_or(&[], Vec::as_slice), session, with, source);
        let merging = || using::outputs_of_merging(self.others, &session.tables);
        returning.map(|returning| returning.beside(others(), merging())).transpose()
    }

    /// Finds the rows: one batch of their ids and the values of `exprs`.
    fn rows(
        &self,
        session: &Session,
        write: &Write<'_>,
        target: RowTarget,
        exprs: &[&Expr],
        source: &Source,
    ) -> Result<RecordBatch> {
        let table = target.table.clone();
        let mut query = self.select(exprs)?;
        write.with.surround(&mut query)?;
        let view = write.view(session, target.moment.clone(), vec![target]);
        let plan = session.planner.plan(Statement::Query(query), view, source)?;
        let rows = rows_of(plan)?;
        match self.others.is_empty() && !write.has_changed_rows() {
            true => Ok(rows),
            false => each_once(&rows, |rid| write.has_changed(&table, rid)),
        }
    }

    /// `SELECT rid, exprs... FROM target AS alias, others... WHERE selection`.
    fn select(&self, exprs: &[&Expr]) -> Result<Box<Query>> {
        let mut query = template("SELECT 1")?;
        let SetExpr::Select(select) = query.body.as_mut() else {
            return Err(SqlError::new("XX000", "the template is no SELECT"));
        };
        let alias = self.label();
        let quoted = |name: &str| Ident::with_quote('"', name);
        let rid = Expr::CompoundIdentifier(vec![quoted(&alias), quoted(&rid_column(0))]);
        let items = std::iter::once(&rid).chain(exprs.iter().copied()).enumerate();
        let item = |(at, expr): (usize, &Expr)| SelectItem::ExprWithAlias {
            expr: expr.clone(),
            alias: quoted(&format!("\0{at}")),
        };
        let Select { projection, from, selection, .. } = select.as_mut();
        *projection = items.map(item).collect();
        let own = match self.view {
            None => target_factor(&alias, 0)?,
            Some(view) => {
                view.relabel(projection, &alias);
                view.factor(&alias, Through::to_change(0))?
            }
        };
        *from = std::iter::once(own).chain(self.others.iter().cloned()).collect();
        *selection = self.selection.cloned();
        Ok(query)
    }
}

/// All rows of a query as one batch.
pub(crate) fn rows_of(plan: Plan) -> Result<RecordBatch> {
    let schema = plan.schema();
    let rows = concat_batches(&schema, &plan.collect()?);
    rows.map_err(|error| SqlError::new("XX000", error.to_string()))
}

/// The first of the rows that a join gave for each id; which one is first is not defined, as in PostgreSQL. Those with ids that are
/// left out are not among them.
fn each_once(rows: &RecordBatch, is_left_out: impl Fn(u64) -> bool) -> Result<RecordBatch> {
    let mut seen = HashSet::new();
    let mut is_wanted = |rid: u64| seen.insert(rid) && !is_left_out(rid);
    let is_first: BooleanArray = rids(rows)?.values().iter().map(|rid| Some(is_wanted(*rid))).collect();
    filter_record_batch(rows, &is_first).map_err(|error| SqlError::new("XX000", error.to_string()))
}

/// The ids of rows, which are their first column.
pub(crate) fn rids(rows: &RecordBatch) -> Result<UInt64Array> {
    rids_of(rows.column(0))
}

/// A column of ids of rows.
pub(crate) fn rids_of(column: &ArrayRef) -> Result<UInt64Array> {
    column
        .as_primitive_opt::<UInt64Type>()
        .filter(|rids| rids.null_count() == 0)
        .cloned()
        .ok_or_else(|| SqlError::new("XX000", "a query for rows gave no row ids"))
}

/// The rows that were changed among those that were to be.
fn rids_changed(rids: &UInt64Array, changed: &Changed) -> Vec<u64> {
    let left_out: HashSet<u64> = changed.stale.iter().chain(&changed.gone).copied().collect();
    rids.values().iter().copied().filter(|rid| !left_out.contains(rid)).collect()
}

impl Set {
    /// The column, and whether a text that goes to it is read as a literal.
    pub(crate) fn column(&self) -> (usize, Texts) {
        (self.column, self.texts)
    }
}

/// Sets columns of the rows that a query has found, with their ids and the new values.
pub(crate) fn update_rows(
    write: &mut Write<'_>,
    table: &Table,
    sets: &[(usize, Texts)],
    rows: &RecordBatch,
    tables: Option<&[NamedRows]>,
) -> Result<Pass> {
    let schema = rows.schema();
    let columns = table.schema().columns();
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(sets.len());
    for (at, (column, texts)) in sets.iter().enumerate() {
        let column = &columns[*column];
        arrays.push(assign(rows.column(at + 1), schema.field(at + 1), &column.name, column.data_type, *texts)?);
    }
    let positions: Vec<usize> = sets.iter().map(|(column, _)| *column).collect();
    let values = batch(nullable(positions.iter().map(|at| &columns[*at])), arrays, rows.num_rows())?;
    let (view, rids) = (write.moment_read()?, rids(rows)?);
    let changed = write.transaction.update_batch(table, &rids, &positions, &rows_as_stored(&values), &view)?;
    write.note_changed(table, &rids_changed(&rids, &changed));
    let Some(tables) = tables else { return Ok((changed, None)) };
    let new: Vec<(usize, ArrayRef)> = positions.into_iter().zip(values.columns().iter().cloned()).collect();
    let kept = rows_changed(tables, rows, &new, (&rids, &changed), sets.len() + 1)?;
    Ok((changed, Some(kept)))
}
