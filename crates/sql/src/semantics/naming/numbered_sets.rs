//! `GROUP BY GROUPING SETS ((1), (2))`: a number within sets of columns, or beside them, means a column of the query's list. The planner
//! knows numbers as keys of their own alone, so the expressions of the list take their places.
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select, SelectItem, Value,
};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::last_part;
use crate::syntax::tokens::SETS;

/// Puts the expressions of the list in the places of their numbers.
pub(crate) fn write_out(select: &mut Select) -> Result<()> {
    let listed: Vec<Option<Expr>> = select.projection.iter().map(expression).collect();
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return Ok(()) };
    keys.iter_mut().try_for_each(|key| in_key(key, &listed))
}

/// What an item of the list says; `None` where that is known with the tables alone.
fn expression(item: &SelectItem) -> Option<Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
        _ => None,
    }
}

fn in_key(key: &mut Expr, listed: &[Option<Expr>]) -> Result<()> {
    match key {
        Expr::Value(value) => {
            if let Value::Number(number, _) = &value.value
                && let Some(expr) = numbered(number, listed)?
            {
                *key = expr.clone();
            }
            Ok(())
        }
        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
            sets.iter_mut().flatten().try_for_each(|key| in_key(key, listed))
        }
        Expr::Tuple(keys) => keys.iter_mut().try_for_each(|key| in_key(key, listed)),
        Expr::Nested(key) => in_key(key, listed),
        Expr::Function(function) => in_nested(function, listed),
        _ => Ok(()),
    }
}

/// Sets within sets, which the parser takes for a function.
fn in_nested(function: &mut Function, listed: &[Option<Expr>]) -> Result<()> {
    let is_set = last_part(&function.name).is_some_and(|name| ["rollup", "cube", SETS].contains(&name.as_str()));
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    for arg in list.args.iter_mut().filter(|_| is_set) {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(key)) = arg {
            in_key(key, listed)?;
        }
    }
    Ok(())
}

/// The expression at a place of the list; `None` behind a `*`, which may stand for many.
fn numbered<'l>(number: &str, listed: &'l [Option<Expr>]) -> Result<Option<&'l Expr>> {
    let place = number.parse::<usize>().unwrap_or(0);
    let before = &listed[..place.min(listed.len())];
    if before.iter().any(Option::is_none) {
        return Ok(None);
    }
    match before.last().filter(|_| place <= listed.len()) {
        Some(expr) => Ok(expr.as_ref()),
        None => Err(SqlError::new("42P10", format!("GROUP BY position {number} is not in select list"))),
    }
}
