//! Output columns may have the same name, as in `SELECT 1, 1` or `SELECT id, +id`; the planner wants each once.
//!
//! It names an expression by what is left of it without casts, signs that change nothing and the like. Columns that would
//! repeat a name so made get a hidden one, which is never shown. Where two functions are one to the planner and two to
//! PostgreSQL, as `ceil` and `ceiling`, only the planner can tell: it refuses, and all columns get hidden names
//! ([`rename_all`]).
use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectNamePart, Query, Select, SelectItem, SetExpr, Statement, TableAliasColumnDef, TableFactor,
    VisitorMut,
};

use super::cast_names::without_casts;
use crate::error::{Result, SqlError};
use crate::functions::has_columns;
use crate::names::headings::heading;
use crate::syntax::identifiers::{fold, hidden, shown};
use crate::syntax::template::template;
use crate::syntax::walk::{WalkMut, walk_expressions};

/// Gives expressions names where the columns of their query are another's: in FROM, in WITH, and in set operations, in which
/// the first part says what they are called.
pub(crate) fn name_columns(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Inner);
}

struct Inner;

impl VisitorMut for Inner {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived { subquery, .. } = table {
            name_columns_of(&mut subquery.body);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        query
            .with
            .iter_mut()
            .flat_map(|with| &mut with.cte_tables)
            .for_each(|cte| name_columns_of(&mut cte.query.body));
        if matches!(query.body.as_ref(), SetExpr::SetOperation { .. }) {
            name_columns_of(&mut query.body);
            hide_others(&mut query.body);
        }
        ControlFlow::Continue(())
    }
}

/// Hides what the columns of the later parts of a set operation are called.
fn hide_others(mut body: &mut SetExpr) {
    while let SetExpr::SetOperation { left, right, .. } = body {
        hide(right);
        body = left;
    }
}

fn hide(body: &mut SetExpr) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            hide(left);
            hide(right);
        }
        SetExpr::Query(query) if query.order_by.is_none() => hide(&mut query.body),
        SetExpr::Select(select) if !select.projection.iter().any(is_wildcard) => {
            for (at, item) in select.projection.iter_mut().enumerate() {
                if let SelectItem::UnnamedExpr(expr) = &*item {
                    let name = heading(expr).unwrap_or_else(|| "?column?".to_owned());
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: hidden(at, &name) };
                }
            }
        }
        _ => {}
    }
}

/// Gives hidden names to output columns that repeat another, in every part of a statement.
pub(crate) fn rename(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Rename { is_for_all: false });
}

/// Gives hidden names to all output columns that are neither named nor columns of a table, and to all columns of the parts of
/// set operations that have an order of their own.
pub(crate) fn rename_all(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Rename { is_for_all: true });
    let _ = statement.walk_mut(&mut OrderedParts);
}

/// Whether the planner refused a statement for names that [`rename_all`] may take away: columns of one name, or an ORDER BY by
/// an expression of the select list over groups, which it does not find again by its name.
pub(crate) fn are_refused(message: &str) -> bool {
    ["require unique expression names", "must appear in the GROUP BY clause", "which would be ambiguous"]
        .iter()
        .any(|refusal| message.contains(refusal))
}

/// Puts the parts of set operations that have an order into a FROM, with names for their columns.
struct OrderedParts;

impl VisitorMut for OrderedParts {
    type Break = SqlError;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        match wrap_parts(&mut query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn wrap_parts(body: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { left, right, .. } = body else { return Ok(()) };
    for part in [left, right] {
        match part.as_mut() {
            SetExpr::Query(query) if query.order_by.is_some() => {
                if let Some(names) = hidden_names(&query.body) {
                    **part = SetExpr::Query(with_names(std::mem::replace(query, template("SELECT 1")?), names)?);
                }
            }
            inner => wrap_parts(inner)?,
        }
    }
    Ok(())
}

/// A hidden name for each column that is shown, unless it is not known how many there are.
fn hidden_names(body: &SetExpr) -> Option<Vec<Ident>> {
    match body {
        SetExpr::SetOperation { left, .. } => hidden_names(left),
        SetExpr::Query(inner) => hidden_names(&inner.body),
        SetExpr::Select(select) if !select.projection.iter().any(is_wildcard) => {
            let name = |(at, item): (usize, &SelectItem)| {
                let shown = match item {
                    SelectItem::UnnamedExpr(expr) => heading(expr),
                    SelectItem::ExprWithAlias { alias, .. } => Some(shown(&fold(alias)).to_owned()),
                    _ => None,
                };
                hidden(at, &shown.unwrap_or_else(|| "?column?".to_owned()))
            };
            Some(select.projection.iter().enumerate().map(name).collect())
        }
        _ => None,
    }
}

fn with_names(query: Box<Query>, names: Vec<Ident>) -> Result<Box<Query>> {
    let mut outer = template("SELECT * FROM (SELECT 1) AS \"\0part\"")?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, alias: Some(alias), .. }) =
            select.from.first_mut().map(|table| &mut table.relation)
    {
        *subquery = query;
        alias.columns = names.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    }
    Ok(outer)
}

struct Rename {
    is_for_all: bool,
}

impl VisitorMut for Rename {
    type Break = ();

    /// The alias of a function in FROM names its column too, as in `generate_series(1, 3) AS i`.
    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias: Some(alias), args: Some(_), .. } = table
            && alias.columns.is_empty()
            && !name.0.last().and_then(ObjectNamePart::as_ident).is_some_and(|name| has_columns(&fold(name)))
        {
            let name = alias.name.clone();
            alias.columns.push(TableAliasColumnDef { name, data_type: None });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // What a wildcard stands for in the catalog is not known here, and then names that another query goes by have to stay.
        let has_wildcard = select.projection.iter().any(is_wildcard) && !reads_catalog_alone(select);
        let mut seen: HashSet<String> = HashSet::new();
        for (at, item) in select.projection.iter_mut().enumerate() {
            let is_first = seen.is_empty();
            let (shown, names, expr, is_named) = match item {
                SelectItem::UnnamedExpr(expr) => {
                    let heading = heading(expr);
                    let planned = without_casts(expr).unwrap_or_default().to_lowercase();
                    // A column behind a sign or a cast that changes nothing is the column to the planner.
                    let is_name = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '.' | '"');
                    let column = planned.rsplit('.').next().filter(|_| planned.chars().all(is_name));
                    let names = [heading.clone().unwrap_or_default(), column.unwrap_or_default().to_owned(), planned];
                    (heading.unwrap_or_else(|| "?column?".to_owned()), names, expr, false)
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    (fold(alias), [fold(alias), String::new(), String::new()], expr, true)
                }
                _ => continue,
            };
            let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
            let names: HashSet<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
            let repeats = (matches!(expr, Expr::Subquery(_)) && !is_first && !is_named)
                || names.iter().any(|name| seen.contains(name));
            seen.extend(names);
            if repeats || (has_wildcard && is_column) || (self.is_for_all && !is_column && !is_named) {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: hidden(at, &shown) };
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether all that a query reads are tables of the catalog, and functions.
fn reads_catalog_alone(select: &Select) -> bool {
    let mut tables = select
        .from
        .iter()
        .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
    let is_of_catalog = |table: &TableFactor| match table {
        TableFactor::Table { name, args: None, .. } => {
            let schema = name.0.first().and_then(ObjectNamePart::as_ident).map(fold).unwrap_or_default();
            schema.starts_with("pg_") || schema == "information_schema"
        }
        TableFactor::Derived { subquery, .. } => {
            matches!(subquery.body.as_ref(), SetExpr::Select(select) if reads_catalog_alone(select))
        }
        TableFactor::Table { .. } | TableFactor::Function { .. } | TableFactor::UNNEST { .. } => true,
        _ => false,
    };
    tables.all(is_of_catalog)
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// Gives the expressions that a query selects the names by which the query around it may call them. A name that is another
/// column's, too, of its list or of what it reads, is only shown.
fn name_columns_of(mut body: &mut SetExpr) {
    loop {
        body = match body {
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(inner) => &mut inner.body,
            _ => break,
        }
    }
    let SetExpr::Select(select) = body else { return };
    if select.projection.iter().any(is_wildcard) {
        return;
    }
    let name_of = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => Some(heading(expr).unwrap_or_else(|| "?column?".to_owned())),
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    };
    let names: Vec<Option<String>> = select.projection.iter().map(name_of).collect();
    let mut once = HashSet::new();
    let repeated: HashSet<&String> = names.iter().flatten().filter(|name| !once.insert(*name)).collect();
    for (at, (item, name)) in select.projection.iter_mut().zip(&names).enumerate() {
        if let (SelectItem::UnnamedExpr(expr), Some(name)) = (&*item, name)
            && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        {
            let alias = match repeated.contains(name) || names_column(expr, name) {
                true => hidden(at, name),
                false => Ident::with_quote('"', name),
            };
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// Whether an expression is about a column of this name, which other clauses may mean by it.
fn names_column(expr: &Expr, name: &str) -> bool {
    let visited = walk_expressions(expr, |inner| {
        let column = match inner {
            Expr::Identifier(column) => Some(column),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        match column.is_some_and(|column| fold(column) == name) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    visited.is_break()
}
