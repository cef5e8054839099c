//! `x op ANY (ARRAY[...])` and `x op ALL (ARRAY[...])`, item by item, so that a NULL among them is what it is in SQL; and
//! over `ARRAY(SELECT ...)` the same as over the subquery.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, Expr, Function, FunctionArguments, ObjectNamePart, Statement, VisitMut, VisitorMut,
};

use super::row_values::balanced;
use crate::names::fold;

/// Rewrites every such comparison of a statement.
pub(crate) fn spell_out(statement: &mut Statement) {
    let _ = statement.visit(&mut Quantified);
}

struct Quantified;

impl VisitorMut for Quantified {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let (left, op, right, is_all) = match expr {
            Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, false),
            Expr::AllOp { left, compare_op, right } => (left, compare_op, right, true),
            _ => return ControlFlow::Continue(()),
        };
        if let Some(query) = array_of_query(right) {
            **right = query;
        } else if let Some(items) = items(right)
            && let Some(spelled_out) = each(left, op, items, is_all)
        {
            *expr = spelled_out;
        }
        ControlFlow::Continue(())
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

fn each(left: &Expr, op: &BinaryOperator, items: &[Expr], is_all: bool) -> Option<Expr> {
    let is_comparison = matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    );
    if !is_comparison || matches!(left, Expr::Tuple(_)) {
        return None;
    }
    let nested = |expr: Expr| Box::new(Expr::Nested(Box::new(expr)));
    if matches!((op, is_all), (BinaryOperator::Eq, false) | (BinaryOperator::NotEq, true)) {
        let list = Expr::InList { expr: nested(left.clone()), list: items.to_vec(), negated: is_all };
        return Some(Expr::Nested(Box::new(list)));
    }
    let one = |item: &Expr| Expr::BinaryOp { left: nested(left.clone()), op: op.clone(), right: nested(item.clone()) };
    let joined = if is_all { BinaryOperator::And } else { BinaryOperator::Or };
    balanced(items.iter().map(one).collect(), &joined)
}
