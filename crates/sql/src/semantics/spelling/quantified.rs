//! `x op ANY (ARRAY[...])` and `x op ALL (ARRAY[...])`, item by item, so that a NULL among them is what it is in SQL; over
//! `ARRAY(SELECT ...)` the same as over the subquery; over any other array a function, or for patterns its rows.
use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, Expr, Function, FunctionArguments, Ident, ObjectNamePart, SelectItem, SetExpr, Statement,
    VisitMut,
};

use super::array_literals;
use super::row_values::{balanced, compared_values};
use crate::error::{Result, SqlError};
use crate::functions::arrays::lists;
use crate::syntax::identifiers::fold;
use crate::syntax::template::template;
use crate::syntax::visit::replace;

/// Where the operands stand in a template; no statement can spell it.
const LEFT: &str = "\0left";
const RIGHT: &str = "\0right";

/// Rewrites every such comparison of a statement.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    replace(statement, rewritten)
}

/// Rewrites those with arrays of which the items are not known.
pub(crate) fn over_arrays(statement: &mut impl VisitMut) -> Result<()> {
    replace(statement, |expr| match parts(expr) {
        Some((left, op, right, is_all)) if !is_subquery(right) => over_array(left, op, right, is_all),
        _ => Ok(None),
    })
}

fn parts(expr: &Expr) -> Option<(&Expr, &BinaryOperator, &Expr, bool)> {
    match expr {
        Expr::AnyOp { left, compare_op, right, .. } => Some((left, compare_op, right, false)),
        Expr::AllOp { left, compare_op, right } => Some((left, compare_op, right, true)),
        _ => None,
    }
}

fn rewritten(expr: &Expr) -> Result<Option<Expr>> {
    let Some((left, op, right, is_all)) = parts(expr) else { return Ok(None) };
    if let Some(query) = array_of_query(right) {
        let (left, op, right) = (Box::new(left.clone()), op.clone(), Box::new(query));
        return Ok(Some(match is_all {
            false => Expr::AnyOp { left, compare_op: op, right, is_some: false },
            true => Expr::AllOp { left, compare_op: op, right },
        }));
    }
    if matches!(left, Expr::Tuple(_)) {
        return Ok(None);
    }
    if let Some(items) = items(right) {
        return each(left, op, items, is_all);
    }
    if is_membership(op, is_all) {
        return Ok(None);
    }
    match array_literals::items_of(right)? {
        Some(items) => each(left, op, &items, is_all),
        None => Ok(None),
    }
}

fn is_membership(op: &BinaryOperator, is_all: bool) -> bool {
    matches!((op, is_all), (BinaryOperator::Eq, false) | (BinaryOperator::NotEq, true))
}

fn is_subquery(expr: &Expr) -> bool {
    match expr {
        Expr::Subquery(_) => true,
        Expr::Nested(inner) => is_subquery(inner),
        _ => false,
    }
}

/// The subquery of `ARRAY(SELECT ...)`.
fn array_of_query(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Nested(inner) => array_of_query(inner),
        Expr::Function(Function { name, args: FunctionArguments::Subquery(query), .. }) => {
            let is_array = matches!(&name.0[..], [ObjectNamePart::Identifier(ident)] if fold(ident) == "array");
            is_array.then(|| Expr::Subquery(query.clone()))
        }
        _ => None,
    }
}

/// The items of an array that is written out, none of which is an array.
fn items(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Nested(inner) => items(inner),
        Expr::Array(Array { elem, .. }) => {
            let is_flat = !elem.iter().any(|item| matches!(item, Expr::Array(_)));
            Some(&elem[..]).filter(|items| is_flat && !items.is_empty())
        }
        _ => None,
    }
}

fn each(left: &Expr, op: &BinaryOperator, items: &[Expr], is_all: bool) -> Result<Option<Expr>> {
    if is_membership(op, is_all) {
        let left = Box::new(Expr::Nested(Box::new(left.clone())));
        let list = Expr::InList { expr: left, list: items.to_vec(), negated: is_all };
        return Ok(Some(Expr::Nested(Box::new(list))));
    }
    let one = |item: &Expr| compared_values(left.clone(), op, item.clone());
    let joined = if is_all { BinaryOperator::And } else { BinaryOperator::Or };
    let compared = items.iter().map(one).collect::<Option<Vec<Expr>>>();
    let Some(compared) = compared else { return Ok(None) };
    let none = || Expr::value(datafusion::sql::sqlparser::ast::Value::Boolean(is_all));
    Ok(Some(balanced(compared, &joined).unwrap_or_else(none)))
}

fn over_array(left: &Expr, op: &BinaryOperator, right: &Expr, is_all: bool) -> Result<Option<Expr>> {
    let text = match lists::comparison(op, is_all) {
        Some(name) => format!("SELECT \"{name}\"(\"{LEFT}\", \"{RIGHT}\")"),
        None => format!(
            "SELECT CASE WHEN \"{RIGHT}\" IS NOT NULL THEN \"{LEFT}\" = {} (SELECT unnest(\"{RIGHT}\")) END",
            if is_all { "ALL" } else { "ANY" }
        ),
    };
    let mut query = template(&text)?;
    replace(&mut query, |expr| {
        let nested = |expr: &Expr| Some(Expr::Nested(Box::new(expr.clone())));
        Ok(match expr {
            Expr::Identifier(Ident { value, quote_style: Some(_), .. }) if value == LEFT => nested(left),
            Expr::Identifier(Ident { value, quote_style: Some(_), .. }) if value == RIGHT => nested(right),
            _ => None,
        })
    })?;
    let lost = || SqlError::new("XX000", "the template has no expression");
    let SetExpr::Select(mut select) = *query.body else { return Err(lost()) };
    let Some(SelectItem::UnnamedExpr(mut expr)) = select.projection.pop() else { return Err(lost()) };
    if let Expr::Case { conditions, .. } = &mut expr
        && let Some(Expr::AnyOp { compare_op, .. } | Expr::AllOp { compare_op, .. }) =
            conditions.first_mut().map(|when| &mut when.result)
    {
        *compare_op = op.clone();
    }
    Ok(Some(expr))
}
