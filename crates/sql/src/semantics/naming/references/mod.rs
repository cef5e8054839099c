//! Whose column a name is, as far as the planner would take another for it.
//!
//! - A name that two tables of a query have is ambiguous there, and never a column of a query around it; a table hides the
//!   one of a query around it that has its name, columns and all.
//! - A table that is called like some column gets a hidden name: where both are known, `b.s` would be a field of column `b`.
//! - An aggregate belongs to the nearest of the queries whose columns it is given ([`crate::semantics::outer_aggregates`]).
//! - A name that is no column's but a table's means its row ([`rows`]).
//! - Columns of a query within the statement that repeat a name get a hidden one, so that `*` of it has them all; and `*`
//!   beside other columns, or of tables that share names, is written out.
//!
//! Queries are gone through from the outside, with the tables of each on a stack. Where the columns of a table are not known
//! nothing is said of a name that may be one of them.
mod joins;
mod known;
mod rows;
mod selected;

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, LimitClause, ObjectName, ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};

use joins::{condition_of, is_lateral, named_join};
use selected::{clause_of_list, given, is_constant, is_same, name_columns, place_in_list};

use super::columns::{Output, Scope, label};
use super::{grouping, keys, numbered_sets};
use crate::error::{Result, SqlError, flow};
use crate::names::tables::Tables;
use crate::names::with_suggestion;
use crate::semantics::outer_aggregates::{Calls, Clause, OfQuery};
use crate::state::view::RowTarget;
use crate::syntax::identifiers::{fold, hidden, shown};
use crate::syntax::source::Source;
use crate::syntax::visit::{Found, limit_and_offset, own_after, own_around, own_parts};
use crate::syntax::walk::{WalkMut, walk_expressions};

/// See the module; whether there are whole rows. `targets` are the tables that have rows changed or given back.
pub(crate) fn resolve(
    statement: &mut Statement,
    (tables, targets): (&Tables, &[RowTarget]),
    source: &Source,
    is_aggregate: &dyn Fn(&str) -> bool,
) -> Result<bool> {
    let columns = known::columns(statement, tables);
    let (scope, calls) = (Scope::new(tables), Calls::new(is_aggregate));
    let resolver = Resolver { scope, targets, levels: Vec::new(), calls, columns, renamed: 0, rows: 0, source };
    let mut outermost = Outermost { resolver, depth: 0 };
    match statement.walk_mut(&mut outermost) {
        ControlFlow::Continue(()) => Ok(outermost.resolver.rows > 0),
        ControlFlow::Break(error) => Err(*error),
    }
}

type Flow = ControlFlow<Box<SqlError>>;

/// Begins with each query of a statement that is in no other.
struct Outermost<'a> {
    resolver: Resolver<'a>,
    depth: usize,
}

impl VisitorMut for Outermost<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        self.depth += 1;
        if self.depth == 1 { self.resolver.query(query, true) } else { ControlFlow::Continue(()) }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// The tables of one query.
#[derive(Default)]
struct Level {
    items: Vec<Item>,
    /// What `*` stands for, once all of FROM is known.
    outputs: Option<Vec<Output>>,
    /// The names of its own columns, where they come before those of tables.
    aliases: Vec<String>,
    aggregates: OfQuery,
}

/// A table of FROM.
struct Item {
    label: String,
    columns: Option<Vec<String>>,
    /// The columns of its row.
    row: Option<Vec<String>>,
    /// Whether an outer join may have no row of it.
    may_miss: bool,
    renamed: Option<Ident>,
}

impl Item {
    /// Whether it is written so by now.
    fn is_called(&self, name: &Ident) -> bool {
        match &self.renamed {
            Some(other) => fold(other) == fold(name),
            None => self.label == fold(name),
        }
    }
}

struct Resolver<'a> {
    scope: Scope<'a>,
    targets: &'a [RowTarget],
    /// The queries around a place, the innermost last.
    levels: Vec<Level>,
    /// The aggregates around it.
    calls: Calls<'a>,
    /// The names of columns that no table may have.
    columns: HashSet<String>,
    renamed: usize,
    /// How many whole rows there are.
    rows: usize,
    source: &'a Source<'a>,
}

impl Resolver<'_> {
    fn query(&mut self, query: &mut Query, is_outermost: bool) -> Flow {
        self.scope.begin();
        if let Some(with) = &mut query.with {
            let recursive = with.recursive;
            for cte in &mut with.cte_tables {
                if recursive {
                    self.scope.add(cte, false);
                }
                self.query(&mut cte.query, false)?;
                self.scope.add(cte, true);
            }
        }
        let order = query.order_by.as_mut();
        match query.body.as_mut() {
            SetExpr::Select(select) => self.select(select, order, is_outermost)?,
            body => {
                self.body(body, is_outermost)?;
                self.subqueries(&mut query.order_by)?;
            }
        }
        self.limits(query.limit_clause.as_mut())?;
        self.scope.leave();
        ControlFlow::Continue(())
    }

    /// How many rows there are to be, and to be left out.
    fn limits(&mut self, clause: Option<&mut LimitClause>) -> Flow {
        let [limit, offset] = limit_and_offset(clause);
        for (clause, count) in [(Clause::Limit, limit), (Clause::Offset, offset)] {
            let Some(count) = count else { continue };
            let aggregates = OfQuery::new(clause);
            self.levels.push(Level { outputs: Some(Vec::new()), aggregates, ..Level::default() });
            self.expressions(count)?;
            self.end()?;
        }
        ControlFlow::Continue(())
    }

    fn body(&mut self, body: &mut SetExpr, is_outermost: bool) -> Flow {
        match body {
            SetExpr::Select(select) => self.select(select, None, is_outermost),
            SetExpr::Query(query) => self.query(query, is_outermost),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, is_outermost)?;
                self.body(right, is_outermost)
            }
            SetExpr::Values(values) => {
                let aggregates = OfQuery::new(Clause::Values);
                self.levels.push(Level { outputs: Some(Vec::new()), aggregates, ..Level::default() });
                self.expressions(values)?;
                self.end().map_continue(|_| ())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn select(&mut self, select: &mut Select, order: Option<&mut OrderBy>, is_outermost: bool) -> Flow {
        self.levels.push(Level::default());
        let mut before = Some(Vec::new());
        for table in &mut select.from {
            self.joined(table, before.as_deref())?;
            let outputs = self.scope.joined(table);
            before = before.zip(outputs).map(|(mut before, outputs)| {
                before.extend(outputs);
                before
            });
        }
        self.show(before);
        self.enter(clause_of_list(select));
        let (names, rows) = (rows::names(select), self.rows);
        self.expressions(&mut select.projection)?;
        if self.rows > rows {
            rows::keep_names(select, names);
        }
        self.enter(Clause::OfGroups);
        self.write_out(select, is_outermost);
        self.own_names(rows::aliases(select));
        self.expressions(&mut select.distinct)?;
        self.own_names(Vec::new());
        self.enter(Clause::Where);
        self.expressions(&mut select.selection)?;
        self.enter(Clause::GroupBy);
        self.own_names(rows::aliases(select));
        self.expressions(&mut select.group_by)?;
        self.own_names(Vec::new());
        self.enter(Clause::OfGroups);
        if grouping::has_sets(&select.group_by) {
            flow(numbered_sets::write_out(select))?;
            self.qualify(&mut select.group_by);
            flow(grouping::write_out(&mut select.group_by))?;
        }
        self.expressions(&mut select.having)?;
        self.expressions(&mut select.named_window)?;
        let mut order = order;
        if let Some(order) = order.as_deref_mut() {
            self.order(select, order)?;
        }
        if keys::may_repeat(select) {
            self.qualify(&mut select.projection);
            self.qualify(&mut select.group_by);
            self.qualify(&mut select.having);
            rows::named_as_before(select, |select| keys::tell_apart(select, order));
        }
        let level = self.end()?;
        if select.having.is_some() && !level.aggregates.has_any {
            grouping::as_one_group(&mut select.group_by);
        }
        if !is_outermost {
            name_columns(select, &level);
        }
        ControlFlow::Continue(())
    }

    /// Goes on to a clause of a query.
    fn enter(&mut self, clause: Clause) {
        if let Some(level) = self.levels.last_mut() {
            level.aggregates.clause = clause;
        }
    }

    /// Lets names that stand alone be these columns rather than tables.
    fn own_names(&mut self, names: Vec<String>) {
        if let Some(level) = self.levels.last_mut() {
            level.aliases = names;
        }
    }

    /// Comes out of a query.
    fn end(&mut self) -> ControlFlow<Box<SqlError>, Level> {
        let level = self.levels.pop().unwrap_or_default();
        flow(level.aggregates.end().map(|()| level))
    }

    /// Says of columns whose they are, where that is known, all in one spelling.
    fn qualify(&self, part: &mut impl VisitMut) {
        let Some(outputs) = self.levels.last().and_then(|level| level.outputs.as_ref()) else { return };
        own_after(part, |expr| {
            if !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
                return;
            }
            let mut meant = outputs.iter().filter(|output| !output.is_merged && is_same(expr, &output.expr));
            if let (Some(output), None) = (meant.next(), meant.next()) {
                *expr = output.expr.clone();
            }
        });
    }

    fn order(&mut self, select: &Select, order: &mut OrderBy) -> Flow {
        let OrderByKind::Expressions(keys) = &mut order.kind else { return ControlFlow::Continue(()) };
        // A constant puts nothing in order.
        keys.retain(|key| !is_constant(&key.expr, select));
        let given: Vec<(String, &Expr)> = select.projection.iter().filter_map(given).collect();
        for key in keys {
            let Expr::Identifier(ident) = &key.expr else {
                match place_in_list(&key.expr, select) {
                    Some(place) => key.expr = place,
                    None => self.expressions(key)?,
                }
                continue;
            };
            let name = fold(ident);
            let mut meant = given.iter().filter(|(given, _)| *given == name).map(|(_, expr)| expr);
            match meant.next() {
                None => self.expressions(key)?,
                Some(first) if meant.any(|other| !is_same(first, other)) => {
                    let error = SqlError::new("42702", format!("ORDER BY \"{name}\" is ambiguous"));
                    return ControlFlow::Break(Box::new(error.at(self.source.start(ident.span))));
                }
                Some(_) => {}
            }
        }
        ControlFlow::Continue(())
    }

    // FROM.

    /// Goes through a table and what is joined to it; `before` are the columns of the tables before it.
    fn joined(&mut self, table: &mut TableWithJoins, before: Option<&[Output]>) -> Flow {
        if is_lateral(&table.relation) {
            self.show(before.map(<[Output]>::to_vec));
        }
        let first = self.count();
        self.factor(&mut table.relation, before)?;
        self.show(None);
        for at in 0..table.joins.len() {
            if is_lateral(&table.joins[at].relation) {
                let left = TableWithJoins { relation: table.relation.clone(), joins: table.joins[..at].to_vec() };
                let left = self.scope.joined(&left);
                self.show(before.zip(left).map(|(before, left)| [before, &left].concat()));
            }
            let (join, second) = (&mut table.joins[at], self.count());
            self.factor(&mut join.relation, None)?;
            self.miss((first, second), &join.join_operator);
            self.show(None);
            if let Some(condition) = condition_of(&mut join.join_operator) {
                self.enter(Clause::Join);
                self.expressions(condition)?;
                self.enter(Clause::From);
            }
        }
        ControlFlow::Continue(())
    }

    /// Lets expressions see these columns, or not know which there are.
    fn show(&mut self, outputs: Option<Vec<Output>>) {
        if let Some(level) = self.levels.last_mut() {
            level.outputs = outputs;
        }
    }

    fn factor(&mut self, factor: &mut TableFactor, before: Option<&[Output]>) -> Flow {
        if let Err(error) = named_join(factor) {
            return ControlFlow::Break(Box::new(error));
        }
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => return self.joined(table_with_joins, before),
            TableFactor::Derived { lateral: true, subquery, .. } => self.query(subquery, false)?,
            TableFactor::Derived { subquery, .. } => {
                // It sees nothing of the tables beside it.
                let beside = self.levels.pop();
                self.query(subquery, false)?;
                self.levels.extend(beside);
            }
            _ => {}
        }
        let renamed = self.rename(factor);
        let columns = self.scope.factor(factor);
        let columns = columns.map(|columns| columns.into_iter().map(|output| output.name).collect());
        let row = self.fields_of_factor(factor, columns.as_ref());
        let known = match &renamed {
            Some((own, _)) => Some(own.clone()),
            None => label(factor).map(|label| fold(&label)),
        };
        if let (Some(level), Some(label)) = (self.levels.last_mut(), known) {
            // Under its own name alone the planner would see it there twice.
            let is_bare = matches!(factor, TableFactor::Table { alias: None, .. });
            let is_there = |item: &Item| item.label == label && (item.renamed.is_some() || !is_bare);
            if level.items.iter().any(is_there) {
                let error = SqlError::new("42712", format!("table name \"{label}\" specified more than once"));
                return ControlFlow::Break(Box::new(error));
            }
            level.items.push(Item { label, columns, row, may_miss: false, renamed: renamed.map(|(_, other)| other) });
        }
        ControlFlow::Continue(())
    }

    /// Gives a table that is called like a column another name.
    fn rename(&mut self, factor: &mut TableFactor) -> Option<(String, Ident)> {
        let own = fold(&label(factor)?);
        if !self.columns.contains(&own) {
            return None;
        }
        let alias = match factor {
            TableFactor::Table { name, alias: alias @ None, args: None, .. } => {
                let [ObjectNamePart::Identifier(name)] = &name.0[..] else { return None };
                let (name, columns) = (name.clone(), Vec::new());
                alias.insert(TableAlias { explicit: true, name, columns, at: None })
            }
            TableFactor::Derived { alias: Some(alias), .. } => alias,
            TableFactor::Table { alias: Some(alias), args, .. } => {
                if args.is_some() && alias.columns.is_empty() {
                    return None;
                }
                alias
            }
            _ => return None,
        };
        self.renamed += 1;
        let other = hidden(format_args!("table {}", self.renamed), &own);
        alias.name = Ident { span: alias.name.span, ..other.clone() };
        Some((own, other))
    }

    // Expressions.

    fn expressions(&mut self, part: &mut impl VisitMut) -> Flow {
        own_around(part, |found| match found {
            Found::Query(query) => self.query(query, false),
            Found::Expr(expr @ Expr::Identifier(_)) => self.column(expr),
            Found::Expr(expr @ Expr::CompoundFieldAccess { .. }) => self.field(expr),
            Found::Expr(Expr::CompoundIdentifier(parts)) => match &mut parts[..] {
                [table, column] => self.column_of(table, column),
                _ => {
                    self.calls.see_unknown();
                    ControlFlow::Continue(())
                }
            },
            Found::Expr(expr) => {
                self.arguments(expr);
                self.calls.enter(expr, self.levels.len().checked_sub(1));
                if let Some(level) = self.levels.last_mut() {
                    level.aggregates.enter(expr);
                }
                ControlFlow::Continue(())
            }
            Found::Left(expr) => flow(self.left(expr)),
        })
    }

    /// Comes out of an expression: an aggregate is told to the query that it belongs to.
    fn left(&mut self, expr: &mut Expr) -> Result<()> {
        if let Some(aggregate) = self.calls.leave(expr, self.levels.len().checked_sub(1))?
            && let Some(level) = self.levels.get_mut(aggregate.level)
        {
            level.aggregates.add(aggregate)?;
        }
        if let Some(level) = self.levels.last_mut() {
            level.aggregates.leave(expr);
        }
        Ok(())
    }

    fn subqueries(&mut self, part: &mut impl VisitMut) -> Flow {
        own_parts(part, |found| match found {
            Found::Query(query) => self.query(query, false),
            Found::Expr(_) | Found::Left(_) => ControlFlow::Continue(()),
        })
    }

    fn column(&mut self, expr: &mut Expr) -> Flow {
        let Expr::Identifier(ident) = &*expr else { return ControlFlow::Continue(()) };
        let name = fold(ident);
        // A table of that name is meant where no query has such a column.
        let mut table_at = None;
        for (at, level) in self.levels.iter().enumerate().rev() {
            let is_here = level.names_table(&name);
            let Some(outputs) = &level.outputs else {
                table_at = table_at.or(is_here.then_some(at)).filter(|_| !level.has_column(&name));
                // A column of a query around it comes before a table here.
                if is_here { continue } else { break }
            };
            let mut meant = outputs.iter().filter(|output| shown(&output.name) == name);
            match (meant.next(), meant.next()) {
                (None, _) => table_at = table_at.or(is_here.then_some(at)),
                (Some(output), None) => {
                    self.calls.see(at);
                    // Of the queries around the planner does not tell apart which is nearer, and of merged columns it
                    // knows both.
                    let within = &self.levels[at + 1..];
                    if !within.is_empty() && !hides(within, &output.expr) {
                        *expr = output.expr.clone();
                    }
                    return ControlFlow::Continue(());
                }
                (Some(_), Some(_)) => return self.ambiguous(ident, &name),
            }
        }
        match table_at {
            Some(at) => {
                self.calls.see(at);
                if let Some(row) = self.row(at, &name) {
                    *expr = row;
                }
            }
            None => self.calls.see_unknown(),
        }
        ControlFlow::Continue(())
    }

    fn column_of(&mut self, table: &mut Ident, column: &Ident) -> Flow {
        let (own, name) = (fold(table), fold(column));
        for (at, level) in self.levels.iter().enumerate().rev() {
            let Some(item) = level.items.iter().find(|item| item.label == own) else { continue };
            // The planner says so itself where there is nothing else that it may take for it.
            let is_hiding = self.levels[..at].iter().any(|level| level.items.iter().any(|item| item.label == own));
            if let Some(columns) = &item.columns
                && !columns.iter().any(|column| shown(column) == name)
                && !columns.contains(&name)
                && (is_hiding || at + 1 < self.levels.len())
            {
                let error = SqlError::new("42703", format!("column {own}.{name} does not exist"));
                let error = with_suggestion(error, &name, columns);
                return ControlFlow::Break(Box::new(error.at(self.source.start(table.span))));
            }
            let named = item.columns.iter().flatten().filter(|column| shown(column) == name);
            if named.count() > 1 {
                return self.ambiguous(column, &name);
            }
            if let Some(other) = &item.renamed {
                *table = Ident { span: table.span, ..other.clone() };
            }
            self.calls.see(at);
            return ControlFlow::Continue(());
        }
        self.calls.see_unknown();
        ControlFlow::Continue(())
    }

    fn ambiguous(&self, ident: &Ident, name: &str) -> Flow {
        if name.starts_with('\0') {
            return ControlFlow::Continue(());
        }
        let error = SqlError::new("42702", format!("column reference \"{name}\" is ambiguous"));
        ControlFlow::Break(Box::new(error.at(self.source.start(ident.span))))
    }

    // The select list.

    /// Writes `*` out where the planner would see a name twice, and `t.*` always: the planner looks for a table of that name alone,
    /// which one of another schema or of a query around this one is not.
    fn write_out(&self, select: &mut Select, is_outermost: bool) {
        let Some(level) = self.levels.last() else { return };
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let [ObjectNamePart::Identifier(label)] = &name.0[..]
                && let Some(item) = level.items.iter().find(|item| item.label == fold(label))
                && let Some(other) = &item.renamed
            {
                *name = ObjectName::from(vec![other.clone()]);
            }
        }
        let is_wildcard = |item: &SelectItem| columns_of(item, &self.levels).is_some();
        let is_of_table = |item: &SelectItem| matches!(item, SelectItem::QualifiedWildcard(..)) && is_wildcard(item);
        let has_others = select.projection.len() > 1 && select.projection.iter().any(is_wildcard);
        let repeats = || {
            let mut seen = HashSet::new();
            level.outputs.iter().flatten().any(|output| !seen.insert(&output.name))
        };
        let has_others = has_others || select.projection.iter().any(is_of_table);
        if has_others || (!is_outermost && select.projection.iter().any(is_wildcard) && repeats()) {
            let items = std::mem::take(&mut select.projection);
            let written =
                items.into_iter().flat_map(|item| columns_of(&item, &self.levels).unwrap_or_else(|| vec![item]));
            select.projection = written.collect();
        }
    }
}

/// The columns that an item of the select list stands for, if it is a `*` of which they are known. `levels` are the query and those
/// around it, the innermost last.
fn columns_of<'a>(item: &SelectItem, levels: &'a [Level]) -> Option<Vec<SelectItem>> {
    match item {
        SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
            levels.last()?.outputs.as_ref().map(|outputs| outputs.iter().map(Output::item).collect())
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
            if *options == WildcardAdditionalOptions::default() =>
        {
            let [ObjectNamePart::Identifier(label)] = &name.0[..] else { return None };
            let called = |level: &'a Level| level.items.iter().find(|item| item.is_called(label));
            let item = levels.iter().rev().find_map(called)?;
            let column = |column: &String| {
                let parts = vec![label.clone(), Ident::with_quote('"', column)];
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
            };
            Some(item.columns.as_ref()?.iter().map(column).collect())
        }
        _ => None,
    }
}

/// Whether a table of these queries is called like one that the expression names.
fn hides(levels: &[Level], expr: &Expr) -> bool {
    let visited = walk_expressions(expr, |expr| match expr {
        Expr::CompoundIdentifier(parts)
            if parts.first().is_some_and(|table| {
                levels.iter().any(|level| level.items.iter().any(|item| item.is_called(table)))
            }) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    visited.is_break()
}
