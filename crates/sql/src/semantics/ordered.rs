//! `array_agg(x) FROM (SELECT ... ORDER BY y)`: the order of a subquery in FROM is the order in which aggregates see its
//! rows, while the planner takes rows of a subquery for a set. So the subquery numbers its rows in its order, in a hidden
//! column, and the aggregates that tell orders apart are ordered by it.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, DuplicateTreatment, Expr, FunctionArgumentClause, FunctionArguments, Ident, OrderByExpr, OrderByKind,
    OrderByOptions, Query, Select, SelectItem, SetExpr, Statement, TableAliasColumnDef, TableFactor, Value, VisitMut,
    VisitorMut, WindowType,
};

use crate::error::{Result, SqlError};
use crate::headings;
use crate::names::fold;
use crate::template::template;

/// The name of the hidden column; no statement can spell it.
const NUMBER: &str = "\0number";

/// Rewrites every such query of a statement.
pub(crate) fn number_rows(statement: &mut Statement) -> Result<()> {
    match statement.visit(&mut Selects) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Selects;

impl VisitorMut for Selects {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        match rewrite(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn rewrite(select: &mut Select) -> Result<()> {
    let is_wildcard = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let [table] = &mut select.from[..] else { return Ok(()) };
    let TableFactor::Derived { lateral: false, subquery, alias, .. } = &mut table.relation else { return Ok(()) };
    if !table.joins.is_empty() || subquery.order_by.is_none() || select.projection.iter().any(is_wildcard) {
        return Ok(());
    }
    let mut aggregates = Aggregates { depth: 0, count: 0, order: false };
    let _ = select.projection.visit(&mut aggregates);
    let _ = select.having.visit(&mut aggregates);
    if aggregates.count == 0 || !number(subquery)? {
        return Ok(());
    }
    if let Some(alias) = alias.as_mut().filter(|alias| !alias.columns.is_empty()) {
        alias.columns.push(TableAliasColumnDef { name: hidden(), data_type: None });
    }
    aggregates.order = true;
    let _ = select.projection.visit(&mut aggregates);
    let _ = select.having.visit(&mut aggregates);
    Ok(())
}

fn hidden() -> Ident {
    Ident::with_quote('"', NUMBER)
}

/// Finds the aggregates of one query that tell orders apart and have none of their own, and orders them.
struct Aggregates {
    depth: usize,
    count: usize,
    order: bool,
}

impl VisitorMut for Aggregates {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let name = call.name.0.last().and_then(|part| part.as_ident()).map(fold);
        let FunctionArguments::List(list) = &mut call.args else { return ControlFlow::Continue(()) };
        let is_ordered = list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
        let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        if self.depth == 0
            && matches!(name.as_deref(), Some("array_agg" | "string_agg"))
            && !is_ordered
            && !is_distinct
            && call.over.is_none()
        {
            self.count += 1;
            if self.order {
                list.clauses.push(FunctionArgumentClause::OrderBy(vec![key(Expr::Identifier(hidden()))]));
            }
        }
        ControlFlow::Continue(())
    }
}

fn key(expr: Expr) -> OrderByExpr {
    OrderByExpr { expr, options: OrderByOptions { asc: None, nulls_first: None }, with_fill: None }
}

/// Adds the hidden column to an ordered query, if it can be done.
fn number(query: &mut Query) -> Result<bool> {
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order| &order.kind) else {
        return Ok(false);
    };
    let keys = keys.clone();
    match query.body.as_mut() {
        SetExpr::Select(select) if select.distinct.is_none() || matches!(select.distinct, Some(Distinct::All)) => {
            let Some(keys) = keys.into_iter().map(|key| over_rows(key, select)).collect::<Option<Vec<_>>>() else {
                return Ok(false);
            };
            select.projection.push(row_number(keys)?);
        }
        _ => {
            let names = headings::of(query).known();
            let keys = keys.into_iter().map(|key| over_outputs(key, names.as_deref()));
            let Some(keys) = keys.collect::<Option<Vec<_>>>() else { return Ok(false) };
            let inner = std::mem::replace(query, *template("SELECT \"d\".* FROM (SELECT 1) AS \"d\"")?);
            if let SetExpr::Select(select) = query.body.as_mut() {
                select.projection.push(row_number(keys)?);
                if let Some(TableFactor::Derived { subquery, .. }) =
                    select.from.first_mut().map(|table| &mut table.relation)
                {
                    **subquery = inner;
                }
            }
        }
    }
    Ok(true)
}

/// A key of ORDER BY as an expression of the rows before the select list: it may name or count a column of that list.
fn over_rows(mut key: OrderByExpr, select: &Select) -> Option<OrderByExpr> {
    match &key.expr {
        Expr::Value(value) => {
            let Value::Number(at, _) = &value.value else { return None };
            let at = at.parse::<usize>().ok()?.checked_sub(1)?;
            let is_item =
                |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
            if !select.projection.iter().take(at + 1).all(is_item) {
                return None;
            }
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = select.projection.get(at)?
            else {
                return None;
            };
            key.expr = expr.clone();
        }
        Expr::Identifier(name) => {
            let name = fold(name);
            let named = select.projection.iter().find_map(|item| match item {
                SelectItem::ExprWithAlias { expr, alias } if fold(alias) == name => Some(expr.clone()),
                _ => None,
            });
            if let Some(expr) = named {
                key.expr = expr;
            }
        }
        _ => {}
    }
    Some(key)
}

/// A key of ORDER BY as a column of the query's result.
fn over_outputs(mut key: OrderByExpr, names: Option<&[String]>) -> Option<OrderByExpr> {
    match &key.expr {
        Expr::Identifier(_) => {}
        Expr::Value(value) => {
            let Value::Number(at, _) = &value.value else { return None };
            let at = at.parse::<usize>().ok()?.checked_sub(1)?;
            let name = names?.get(at)?;
            if names?.iter().filter(|other| *other == name).count() > 1 {
                return None;
            }
            key.expr = Expr::Identifier(Ident::with_quote('"', name));
        }
        _ => return None,
    }
    Some(key)
}

fn row_number(keys: Vec<OrderByExpr>) -> Result<SelectItem> {
    let lost = || SqlError::new("XX000", "the template is no window function");
    let query = template("SELECT row_number() OVER (ORDER BY 1)")?;
    let SetExpr::Select(mut select) = *query.body else { return Err(lost()) };
    let Some(SelectItem::UnnamedExpr(mut expr)) = select.projection.pop() else { return Err(lost()) };
    match &mut expr {
        Expr::Function(call) => match &mut call.over {
            Some(WindowType::WindowSpec(window)) => window.order_by = keys,
            _ => return Err(lost()),
        },
        _ => return Err(lost()),
    }
    Ok(SelectItem::ExprWithAlias { expr, alias: hidden() })
}
