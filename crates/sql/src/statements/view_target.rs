//! Views through which rows are changed: the table below, and what stands in FROM in the view's place.
//!
//! A statement that changes rows finds them by a query over its table, which has their ids in a hidden column. In place of a view it
//! reads the view's query over that table, so that all names mean what they do in the view, and the ids come through:
//!
//! ```text
//! UPDATE v SET name = upper(name) WHERE id < 5        v: SELECT id, a AS name FROM t WHERE n > 0
//!
//! SELECT v.rid, upper(name) FROM (SELECT id AS id, a AS name, t.rid, t.a AS "\0own 1", ... FROM target AS t WHERE n > 0) AS v
//! WHERE id < 5
//! ```
//!
//! What is set is the column of the table. The table's own columns come through by hidden names, for RETURNING and for what the table
//! computes of them. `WITH CHECK OPTION` looks at the rows afterwards.
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SetExpr, Statement, TableFactor, TableWithJoins, VisitMut,
};
use engine::{CheckOption, Table};

use crate::access::table::rid_column;
use crate::error::{Result, SqlError};
use crate::names::{fold, position, table_name};
use crate::parsing::updatable::{self, NO_COLUMNS, OTHERS, Simple};
use crate::session::Session;
use crate::session::transactions::{Write, not_updatable};
use crate::state::view::{RowTarget, View};
use crate::statements::target_factor::target_factor;
use crate::syntax::conflict_tokens::{CONDITION, EXPRESSION};
use crate::syntax::source::Source;
use crate::syntax::subscript_tokens::PART;
use crate::syntax::template::template;
use crate::syntax::visit::own;
use crate::values::text::text_value;

/// What the columns of the table below a view are called by before they get their hidden names.
pub(crate) const OWN: &str = "\0own";

/// How many views may be read by one another.
const DEPTH_MAX: usize = 100;

/// A view through which rows are changed.
#[derive(Clone)]
pub(crate) struct ViewTarget {
    /// The views, the one that the statement names first, each reading the next; the last reads the table.
    levels: Vec<Level>,
    table: Table,
}

#[derive(Clone)]
struct Level {
    /// Its name without a schema.
    name: String,
    check: Option<CheckOption>,
    select: Box<Select>,
    /// What it calls that which it reads, and the first of its columns.
    label: String,
    renamed: Vec<String>,
    /// Its columns by their names, with the column of the table that each is.
    columns: Vec<(String, Option<usize>)>,
}

/// What comes through beside the columns of a view.
#[derive(Clone, Copy)]
pub(crate) struct Through {
    /// The table's number among the targets.
    pub(crate) target: usize,
    pub(crate) rids: bool,
    /// The columns of the table by their hidden names.
    pub(crate) own: bool,
    /// Whether rows are left out that do not meet the conditions of the views.
    filters: bool,
}

impl Through {
    /// What finds rows to change.
    pub(crate) fn to_change(target: usize) -> Through {
        Through { target, rids: true, own: true, filters: true }
    }

    /// What finds rows to lock.
    pub(crate) fn to_lock(target: usize) -> Through {
        Through { own: false, ..Through::to_change(target) }
    }

    /// What finds rows, whether or not the view shows them.
    pub(crate) fn all(target: usize) -> Through {
        Through { filters: false, ..Through::to_change(target) }
    }

    /// What gives rows back that were changed, whether or not the view shows them.
    pub(crate) fn to_give_back(target: usize, rids: bool) -> Through {
        Through { target, rids, own: false, filters: false }
    }
}

/// The table that a statement changes: the one that it names, or that below the view.
///
/// # Errors
/// PostgreSQL's, where it names no such thing.
pub(crate) fn find(write: &mut Write<'_>, name: &ObjectName, source: &Source) -> Result<(Table, Option<ViewTarget>)> {
    let known = table_name(name, source)?;
    let is_view = |table: &Table| table.view().is_some_and(|view| view.of_type.is_none());
    match write.transaction.table(&known) {
        Ok(view) if is_view(&view) => {
            let transaction = &*write.transaction;
            let found = below(&view, &|name| transaction.table(name).ok());
            let (levels, table) = found.map_err(|why| not_updatable(write.command(), &known, why))?;
            let below = ObjectName(spelled_out(&table));
            let table = write.table(&below, source).map_err(|error| error.at(position(name, source)))?;
            let target = ViewTarget { levels, table: table.clone() };
            if write.command() != "DELETE" && target.levels[0].columns.iter().all(|(_, column)| column.is_none()) {
                return Err(not_updatable(write.command(), &known, NO_COLUMNS));
            }
            Ok((table, Some(target)))
        }
        _ => write.table(name, source).map(|table| (table, None)),
    }
}

/// The view of a name and the table below it, whose rows are about to be locked; none where each row of the view is not one of a table.
///
/// # Errors
/// Where there is no such view, and those of a wait for the table.
pub(crate) fn find_to_lock(
    write: &mut Write<'_>,
    name: &ObjectName,
    source: &Source,
) -> Result<Option<(Table, ViewTarget)>> {
    let view = write.transaction.table(&table_name(name, source)?).map_err(SqlError::from)?;
    let found = below(&view, &|name| write.transaction.table(name).ok());
    let Ok((levels, table)) = found else { return Ok(None) };
    let table =
        write.table(&ObjectName(spelled_out(&table)), source).map_err(|error| error.at(position(name, source)))?;
    Ok(Some((table.clone(), ViewTarget { levels, table })))
}

/// What a statement would change, by the tables that it sees; nothing is held.
pub(crate) fn look(session: &Session, table: &Table) -> (Table, Option<ViewTarget>) {
    let found = below(table, &|name| session.tables.find(name).ok());
    match found {
        Ok((levels, below)) if !levels.is_empty() => (below.clone(), Some(ViewTarget { levels, table: below })),
        _ => (table.clone(), None),
    }
}

/// The name of a table as statements write it, in quotes.
fn spelled_out(table: &Table) -> Vec<ObjectNamePart> {
    let (schema, name) = engine::schema_and_name(table.name());
    [schema, name].map(|part| ObjectNamePart::Identifier(Ident::with_quote('"', part))).into()
}

/// The views from one down to the table, and that table.
fn below(
    view: &Table,
    table: &dyn Fn(&str) -> Option<Table>,
) -> std::result::Result<(Vec<Level>, Table), &'static str> {
    let (mut levels, mut at) = (Vec::new(), view.clone());
    while let Some(definition) = at.view() {
        if levels.len() > DEPTH_MAX {
            return Err(OTHERS);
        }
        let Simple { select, reads, label, renamed, columns } = updatable::simple(&definition.query)?;
        let names = at.schema().columns().iter().map(|column| column.name.clone());
        let level = Level {
            name: engine::schema_and_name(at.name()).1.to_owned(),
            check: definition.check,
            select,
            label,
            renamed,
            columns: names.map(|name| (name, None)).collect(),
        };
        levels.push((level, columns));
        at = table(&reads).ok_or(OTHERS)?;
    }
    if at.is_materialized() || at.sequence().is_some() {
        return Err(OTHERS);
    }
    let plain = at.schema().columns().iter().enumerate().map(|(place, column)| (column.name.clone(), Some(place)));
    let mut known: Vec<(String, Option<usize>)> = plain.collect();
    for (level, columns) in levels.iter_mut().rev() {
        if columns.len() != level.columns.len() {
            return Err(OTHERS);
        }
        known.iter_mut().zip(&level.renamed).for_each(|((name, _), renamed)| name.clone_from(renamed));
        for ((_, place), name) in level.columns.iter_mut().zip(columns) {
            *place = name.as_ref().and_then(|name| known.iter().find(|(known, _)| known == name)?.1);
        }
        known.clone_from(&level.columns);
    }
    Ok((levels.into_iter().map(|(level, _)| level).collect(), at))
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn compound(label: &str, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![quoted(label), quoted(name)])
}

/// The hidden name of a column of the table.
fn hidden(column: usize) -> String {
    format!("{OWN} {column}")
}

impl ViewTarget {
    /// The names of its columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.levels[0].columns.iter().map(|(name, _)| name.as_str())
    }

    /// What stands in FROM in its place, under an alias.
    pub(crate) fn factor(&self, alias: &str, through: Through) -> Result<TableWithJoins> {
        self.read_by(0, alias, through)
    }

    /// What the views down to one read, that one left out, under an alias; all views are left out where it is that behind the last.
    fn read_by(&self, first: usize, alias: &str, through: Through) -> Result<TableWithJoins> {
        let Some(level) = self.levels.get(first) else { return self.table_as(alias, through) };
        let mut below = self.read_by(first + 1, &level.label, through)?;
        if !level.renamed.is_empty() {
            below = self.with_names(below, first, through)?;
        }
        let mut items: Vec<SelectItem> = Vec::with_capacity(level.columns.len() + 1);
        for (item, (name, _)) in level.select.projection.iter().zip(&level.columns) {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
                return Err(SqlError::new("XX000", "a view gives what is no expression"));
            };
            items.push(SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted(name) });
        }
        items.extend(self.hidden_items(&level.label, through));
        let selection = level.select.selection.clone().filter(|_| through.filters);
        derived(items, below, selection, alias)
    }

    /// The hidden columns of what a view reads, which come through it.
    fn hidden_items(&self, label: &str, through: Through) -> Vec<SelectItem> {
        let count = if through.own { self.table.schema().columns().len() } else { 0 };
        let rid = through.rids.then(|| rid_column(through.target));
        let names = rid.into_iter().chain((0..count).map(hidden));
        names.map(|name| SelectItem::ExprWithAlias { expr: compound(label, &name), alias: quoted(&name) }).collect()
    }

    /// The table, with its columns once more by their hidden names.
    fn table_as(&self, alias: &str, through: Through) -> Result<TableWithJoins> {
        let factor = target_factor(alias, through.target)?;
        if !through.own {
            return Ok(factor);
        }
        let columns = self.table.schema().columns().iter();
        let plain = columns.clone().map(|column| (column.name.clone(), column.name.clone()));
        let rid = through.rids.then(|| (rid_column(through.target), rid_column(through.target)));
        let own = columns.enumerate().map(|(at, column)| (column.name.clone(), hidden(at)));
        let item = |(name, shown): (String, String)| SelectItem::ExprWithAlias {
            expr: compound(alias, &name),
            alias: quoted(&shown),
        };
        let items = plain.chain(rid).chain(own).map(item).collect();
        derived(items, factor, None, alias)
    }

    /// What a view reads, by the names that the view's query gives to its columns.
    fn with_names(&self, below: TableWithJoins, level: usize, through: Through) -> Result<TableWithJoins> {
        let Level { label, renamed, .. } = &self.levels[level];
        let names: Vec<String> = match self.levels.get(level + 1) {
            Some(view) => view.columns.iter().map(|(name, _)| name.clone()).collect(),
            None => self.table.schema().columns().iter().map(|column| column.name.clone()).collect(),
        };
        let item = |(at, name): (usize, &String)| SelectItem::ExprWithAlias {
            expr: compound(label, name),
            alias: quoted(renamed.get(at).unwrap_or(name)),
        };
        let mut items: Vec<SelectItem> = names.iter().enumerate().map(item).collect();
        items.extend(self.hidden_items(label, through));
        derived(items, below, None, label)
    }

    /// The table's column that a column of the view is, by its name.
    ///
    /// # Errors
    /// PostgreSQL's, where there is no such column, and where it is computed; `verb` is `update` or `insert into`.
    pub(crate) fn column(&self, name: &str, verb: &str, at: Option<usize>) -> Result<String> {
        let Level { name: view, columns, .. } = &self.levels[0];
        match columns.iter().find(|(known, _)| known == name) {
            None => {
                let message = format!("column \"{name}\" of relation \"{view}\" does not exist");
                Err(SqlError::new("42703", message).at(at))
            }
            Some((_, None)) => Err(self.computed(name, verb)),
            Some((_, Some(column))) => Ok(self.table.schema().columns()[*column].name.clone()),
        }
    }

    /// The error of a value for a column that is computed.
    pub(crate) fn computed(&self, column: &str, verb: &str) -> SqlError {
        let message = format!("cannot {verb} column \"{column}\" of view \"{}\"", self.levels[0].name);
        let error = SqlError::new("0A000", message);
        error.detail("View columns that are not columns of their base relation are not updatable.")
    }

    /// The columns that an `INSERT` fills that names none: those up to the first that is computed, and that one.
    pub(crate) fn leading(&self) -> (Vec<String>, Option<&str>) {
        let columns = self.table.schema().columns();
        let places = self.levels[0].columns.iter().map_while(|(_, place)| *place);
        let leading: Vec<String> = places.map(|place| columns[place].name.clone()).collect();
        let next = self.levels[0].columns.get(leading.len()).map(|(name, _)| name.as_str());
        (leading, next)
    }

    /// The `SET` of a statement with the columns of the table.
    pub(crate) fn assignments(&self, assignments: &[Assignment], source: &Source) -> Result<Vec<Assignment>> {
        let mut assignments = assignments.to_vec();
        for assignment in &mut assignments {
            let names = match &mut assignment.target {
                AssignmentTarget::ColumnName(name) => std::slice::from_mut(name),
                AssignmentTarget::Tuple(names) => &mut names[..],
            };
            for name in names {
                self.set_column(name, source)?;
            }
        }
        Ok(assignments)
    }

    /// What a clause says of the key that may be taken, with the columns of the table.
    pub(crate) fn conflict_target(&self, target: &ConflictTarget) -> Result<ConflictTarget> {
        let ConflictTarget::Columns(names) = target else { return Ok(target.clone()) };
        let column = |ident: &Ident| {
            if ident.value.starts_with(CONDITION) || ident.value.starts_with(EXPRESSION) {
                return Err(SqlError::unsupported("an expression in ON CONFLICT of a view"));
            }
            let missing = |error: SqlError| match error.sqlstate {
                "42703" => SqlError { message: format!("column \"{}\" does not exist", fold(ident)), ..error },
                _ => error,
            };
            Ok(quoted(&self.column(&fold(ident), "update", None).map_err(missing)?))
        };
        names.iter().map(column).collect::<Result<_>>().map(ConflictTarget::Columns)
    }

    fn set_column(&self, name: &mut ObjectName, source: &Source) -> Result<()> {
        let at = position(name, source);
        let [ObjectNamePart::Identifier(ident)] = &mut name.0[..] else { return Ok(()) };
        let folded = fold(ident);
        let plain = folded.strip_suffix(PART);
        let column = self.column(plain.unwrap_or(&folded), "update", at)?;
        let part = plain.map_or(String::new(), |_| PART.to_string());
        *ident = Ident { value: format!("{column}{part}"), quote_style: Some('"'), span: ident.span };
        Ok(())
    }

    /// Has expressions that are about columns of the table call them by what they come through the view as.
    pub(crate) fn relabel(&self, expr: &mut impl VisitMut, alias: &str) {
        let columns = self.table.schema();
        let _ = own(expr, |expr| {
            if let Expr::CompoundIdentifier(parts) = expr
                && let [label, name] = &parts[..]
                && label.value == OWN
                && let Some(place) = columns.position(&name.value)
            {
                *expr = compound(alias, &hidden(place));
            }
            ControlFlow::<()>::Continue(())
        });
    }

    /// Whether rows are looked at after they were changed.
    pub(crate) fn has_checks(&self) -> bool {
        self.levels.iter().any(|level| level.check.is_some())
    }

    /// Refuses rows of the table that the views' check options do not let through.
    pub(crate) fn check(
        &self,
        session: &Session,
        write: &mut Write<'_>,
        rows: &[Vec<RecordBatch>],
        source: &Source,
    ) -> Result<()> {
        let own: Vec<RecordBatch> = rows.iter().filter_map(|tables| tables.first().cloned()).collect();
        if !self.has_checks() || own.is_empty() {
            return Ok(());
        }
        // A cascaded option is that of all views below; they come first.
        let mut is_cascaded = false;
        let mut checked = Vec::new();
        for (at, level) in self.levels.iter().enumerate() {
            is_cascaded |= level.check == Some(CheckOption::Cascaded);
            checked.extend(Some(at).filter(|_| is_cascaded || level.check.is_some()));
        }
        let moment = write.moment()?;
        for at in checked.into_iter().rev() {
            let Some(condition) = self.levels[at].select.selection.clone() else { continue };
            let target = RowTarget::of_rows(self.table.clone(), moment.clone(), own.clone());
            let query = self.failing(at, condition)?;
            let view = View { given: write.with.given(), ..session.view(moment.clone(), vec![target]) };
            let plan = session.planner.plan(Statement::Query(query), view, source)?;
            if let Some(row) = plan.collect()?.iter().find(|batch| batch.num_rows() > 0) {
                return Err(self.violated(at, row));
            }
        }
        Ok(())
    }

    /// `SELECT own columns FROM what the view reads WHERE (condition) IS NOT TRUE`.
    fn failing(&self, at: usize, condition: Expr) -> Result<Box<Query>> {
        let label = &self.levels[at].label;
        let through = Through { target: 0, rids: false, own: true, filters: false };
        let mut below = self.read_by(at + 1, label, through)?;
        if !self.levels[at].renamed.is_empty() {
            below = self.with_names(below, at, through)?;
        }
        let items = self.hidden_items(label, through);
        let condition = Expr::IsNotTrue(Box::new(Expr::Nested(Box::new(condition))));
        query(items, below, Some(condition))
    }

    /// The error of a row that breaks a view's check option.
    fn violated(&self, at: usize, row: &RecordBatch) -> SqlError {
        let message = format!("new row violates check option for view \"{}\"", self.levels[at].name);
        let cell = |array| text_value(array, 0).unwrap_or_else(|| "null".to_owned());
        let cells: Vec<String> = row.columns().iter().map(|array| cell(array.as_ref())).collect();
        SqlError::new("44000", message).detail(format!("Failing row contains ({}).", cells.join(", ")))
    }
}

/// `SELECT items FROM table WHERE selection`.
fn query(items: Vec<SelectItem>, from: TableWithJoins, selection: Option<Expr>) -> Result<Box<Query>> {
    let mut query = template("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        (select.projection, select.from, select.selection) = (items, vec![from], selection);
    }
    Ok(query)
}

/// Such a query in FROM.
fn derived(
    items: Vec<SelectItem>,
    from: TableWithJoins,
    selection: Option<Expr>,
    alias: &str,
) -> Result<TableWithJoins> {
    let mut factor = target_factor(alias, 0)?;
    if let TableFactor::Table { alias, .. } = &mut factor.relation {
        let subquery = query(items, from, selection)?;
        factor.relation = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
    }
    Ok(factor)
}
