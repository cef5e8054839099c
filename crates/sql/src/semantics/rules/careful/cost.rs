//! How costly an expression is, as PostgreSQL counts when it puts the conditions of a filter in order, and whether it may fail.
use std::sync::Arc;

use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

/// What a subquery costs at the least.
const SUBQUERY: u64 = 1 << 20;

/// Operators and functions cost two each, an item of a list one.
pub(super) fn cost(expr: &Arc<dyn PhysicalExpr>) -> u64 {
    let own = if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        if matches!(binary.op(), Operator::And | Operator::Or) { 0 } else { 2 }
    } else if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
        if function.name().ends_with("_subplan") { SUBQUERY } else { 2 }
    } else if let Some(list) = expr.downcast_ref::<InListExpr>() {
        list.list().len() as u64
    } else if expr.is::<CastExpr>() || expr.is::<LikeExpr>() {
        2
    } else {
        0
    };
    expr.children().into_iter().fold(own, |sum, part| sum.saturating_add(cost(part)))
}

/// Whether an expression names columns: one that does not is asked first.
pub(super) fn has_columns(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.is::<Column>() || expr.children().into_iter().any(has_columns)
}

/// Whether working out an expression may be an error, or do more than give a value, as far as can be seen.
pub(super) fn may_fail(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let is_safe = match expr.downcast_ref::<BinaryExpr>() {
        Some(binary) => {
            let is_regex = matches!(
                binary.op(),
                Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch
            );
            binary.op().is_logic_operator() || (binary.op().supports_propagation() && !is_regex)
        }
        None => {
            expr.is::<Column>()
                || expr.is::<Literal>()
                || expr.is::<NotExpr>()
                || expr.is::<IsNullExpr>()
                || expr.is::<IsNotNullExpr>()
                || expr.is::<LikeExpr>()
                || expr.is::<InListExpr>()
                || expr.is::<CaseExpr>()
        }
    };
    !is_safe || expr.children().into_iter().any(may_fail)
}
