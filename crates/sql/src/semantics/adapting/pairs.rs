//! Operators of `hstore`, and its casts to JSON. A literal without a type beside one is one.
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::DataType;

use super::untyped::{typed, untyped};
use super::{chars, lengths};
use crate::functions::texts::hstore::{as_json, gives_pairs, operator};
use crate::semantics::operations::operand_types;
use crate::values::types::type_of_field;

fn is_one(expr: &Expr, schema: &DFSchema) -> bool {
    let is_made = matches!(expr, Expr::ScalarFunction(call) if gives_pairs(call.name()));
    is_made || chars::mark(expr, schema) == Some(DataType::HSTORE)
}

/// A literal without a type as one.
fn read(expr: &Expr) -> Result<Expr> {
    untyped(expr).map_or_else(|| Ok(expr.clone()), |text| typed(text, DataType::HSTORE))
}

/// The call that an operator is, if one of its operands is a `hstore`.
///
/// # Errors
/// 42883 where there is no such operator, and those of a literal that is none.
pub(super) fn plan(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    use BinaryOperator as B;
    // Equal values are equal texts.
    if matches!(op, B::And | B::Or | B::Eq | B::NotEq | B::Plus | B::Multiply | B::Divide | B::Custom(_)) {
        return Ok(None);
    }
    let (of_left, of_right) = (is_one(left, schema), is_one(right, schema));
    if !of_left && !of_right {
        return Ok(None);
    }
    let may_be = |expr: &Expr| is_one(expr, schema) || untyped(expr).is_some();
    let are_both = may_be(left) && may_be(right);
    let is_list = right.get_type(schema).is_ok_and(|found| found.is_list());
    let (name, operands) = match op {
        B::Arrow if of_left => ("->", [left.clone(), right.clone()]),
        B::Question if of_left => ("?", [left.clone(), right.clone()]),
        B::QuestionPipe if of_left => ("?|", [left.clone(), right.clone()]),
        B::QuestionAnd if of_left => ("?&", [left.clone(), right.clone()]),
        B::AtArrow if are_both => ("@>", [read(left)?, read(right)?]),
        B::ArrowAt if are_both => ("@>", [read(right)?, read(left)?]),
        B::StringConcat if are_both => ("||", [read(left)?, read(right)?]),
        B::Minus if of_left && may_be(right) => ("-", [left.clone(), read(right)?]),
        B::Minus if of_left || is_list => ("- key", [left.clone(), right.clone()]),
        B::StringConcat => return Ok(None),
        _ => return Err(operand_types::refused(op, left, right, schema)),
    };
    Ok(operator(name).map(|function| marked(function.call(operands.into()))))
}

/// A call with the type of what it gives.
pub(super) fn marked(expr: Expr) -> Expr {
    match &expr {
        Expr::ScalarFunction(call) if gives_pairs(call.name()) => lengths::marked_as(expr, DataType::HSTORE),
        _ => expr,
    }
}

/// The value of a key, of an expression that is one.
pub(super) fn value_of(expr: &Expr, key: &Expr, schema: &DFSchema) -> Option<Expr> {
    is_one(expr, schema).then(|| operator("->").map(|get| get.call(vec![expr.clone(), key.clone()])))?
}

/// A cast to a `json` or a `jsonb`, if it is one; calls with their types.
pub(super) fn adapt(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::Cast(Cast { expr: inner, field }) if is_one(&inner, schema) => match type_of_field(&field) {
            Some(to @ (DataType::Json | DataType::Jsonb)) => as_json(to == DataType::Jsonb).call(vec![*inner]),
            _ => Expr::Cast(Cast { expr: inner, field }),
        },
        other => marked(other),
    }
}
