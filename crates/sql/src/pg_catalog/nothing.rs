//! Queries that can't give a row, because their FROM needs one of a relation that never has any here.
use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, JoinOperator, Query, SelectItem, SetExpr, TableFactor, TableWithJoins,
};

use super::calls::catalog_name;
use super::columns::EMPTY;
use crate::error::Result;
use crate::names::fold;
use crate::names::headings::heading;
use crate::syntax::template::template;

/// Functions that make one row of many.
const AGGREGATES: [&str; 10] =
    ["count", "sum", "min", "max", "avg", "array_agg", "string_agg", "bool_and", "bool_or", "first_value"];

/// Columns of the catalog that are always NULL here.
const NULLS: [&str; 8] =
    ["reloptions", "relacl", "attacl", "attoptions", "datacl", "nspacl", "attfdwoptions", "fdwoptions"];

/// Functions that give the items of a list as rows.
const OF_LISTS: [&str; 3] = ["unnest", "aclexplode", "pg_options_to_table"];

fn last_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(fold(ident)),
        Expr::CompoundIdentifier(parts) => parts.last().map(fold),
        _ => None,
    }
}

fn is_empty(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name, args: None, .. } => {
            catalog_name(name).is_some_and(|name| EMPTY.iter().any(|(empty, _)| *empty == name))
        }
        // The items of a list that is always NULL.
        TableFactor::Table { name, args: Some(args), .. } => {
            let is_null = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                    last_name(expr).is_some_and(|name| NULLS.contains(&name.as_str()))
                }
                _ => false,
            };
            catalog_name(name).is_some_and(|name| OF_LISTS.contains(&name.as_str())) && args.args.iter().any(is_null)
        }
        _ => false,
    }
}

/// Whether a part of FROM can't give a row: it is empty itself, or joined to what is.
fn gives_nothing(table: &TableWithJoins) -> bool {
    let needs_right = |operator: &JoinOperator| {
        matches!(operator, JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_))
    };
    let keeps_left = |operator: &JoinOperator| {
        needs_right(operator) || matches!(operator, JoinOperator::Left(_) | JoinOperator::LeftOuter(_))
    };
    let joins = &table.joins;
    let is_plain = joins.iter().all(|join| keeps_left(&join.join_operator));
    is_plain
        && (is_empty(&table.relation)
            || joins.iter().any(|join| needs_right(&join.join_operator) && is_empty(&join.relation)))
}

/// Whether a column of a query is an aggregate.
pub(super) fn has_aggregate(item: &SelectItem) -> bool {
    calls(item).is_some_and(|name| AGGREGATES.contains(&name.as_str()))
}

/// The function that a column of a query calls.
fn calls(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(Expr::Function(function))
        | SelectItem::ExprWithAlias { expr: Expr::Function(function), .. } => catalog_name(&function.name),
        _ => None,
    }
}

/// The names of the columns of a query that can't give a row.
pub(super) fn nothing(body: &SetExpr) -> Option<Vec<Ident>> {
    match body {
        SetExpr::Select(select) => {
            let is_never = select.from.iter().any(gives_nothing);
            if !is_never || select.projection.iter().any(has_aggregate) {
                return None;
            }
            let name = |item: &SelectItem| match item {
                SelectItem::UnnamedExpr(expr) => Some(heading(expr).unwrap_or_else(|| "?column?".to_owned())),
                SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
                _ => None,
            };
            let names: Option<Vec<String>> = select.projection.iter().map(name).collect();
            Some(names?.into_iter().map(|name| Ident::with_quote('"', name)).collect())
        }
        SetExpr::SetOperation { left, right, .. } => nothing(right).and(nothing(left)),
        SetExpr::Query(query) => nothing(&query.body),
        _ => None,
    }
}

/// A query of these columns and no rows.
pub(super) fn empty_query(names: Vec<Ident>) -> Result<Query> {
    let mut query = *template("SELECT CAST(NULL AS TEXT) WHERE FALSE")?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(SelectItem::UnnamedExpr(null)) = select.projection.pop()
    {
        let mut taken = HashSet::new();
        let item = |(at, mut alias): (usize, Ident)| {
            // Two columns of one name are no problem for the client, but for the planner.
            if !taken.insert(alias.value.clone()) {
                alias.value = format!("{}\0{at}", alias.value);
            }
            SelectItem::ExprWithAlias { expr: null.clone(), alias }
        };
        select.projection = names.into_iter().enumerate().map(item).collect();
    }
    Ok(query)
}
