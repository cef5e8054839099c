//! Operators of arithmetic while they are planned: the types of what they give must be known before anything is compared
//! with it.
//!
//! DataFusion finds the type of an expression by going through all of it. In a long chain of operators that would be done
//! again for each of them, so that only so many levels are looked at.
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::untyped::{adapt, untyped};
use crate::functions::numbers::unlimited::{self, as_type};
use crate::functions::times::intervals;
use crate::semantics::operations::{decimals, long_sums, mixed, operand_types, temporal};
use crate::values::numerics::{NUMERIC, is_exact, is_numeric};

/// The levels of operators below which no type is looked for.
const LEVELS_MAX: usize = 200;

/// Plans `+`, `-`, `*`, `/` or `%`.
pub(crate) fn plan(
    op: BinaryOperator,
    left: Expr,
    right: Expr,
    schema: &DFSchema,
) -> Result<PlannerResult<RawBinaryExpr>> {
    let (left, right) = operands(left, right, schema)?;
    let (left, right) = (beside_a_time(&op, left, &right, schema)?, right);
    let right = beside_a_time(&op, right, &left, schema)?;
    let (Some(first), Some(second)) = (type_of(&left, schema), type_of(&right, schema)) else {
        return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
    };
    operand_types::check_arithmetic(&op, (&left, &first), (&right, &second), schema)?;
    let (left, right) = match (first == second).then(|| operator_of(&op)) {
        Some(operator) => match long_sums::joined(operator, left, right, &first) {
            Ok(row) => return Ok(PlannerResult::Planned(row)),
            Err(operands) => *operands,
        },
        None => (left, right),
    };
    if is_numeric(&first) || is_numeric(&second) {
        return Ok(without_limits(operator_of(&op), (left, &first), (right, &second)));
    }
    // A real beside another number that is none is a double.
    let (left, right) = match (&first, &second) {
        (ArrowType::Float64, other) if other.is_decimal() => (left, cast(right, ArrowType::Float64)),
        (other, ArrowType::Float64) if other.is_decimal() => (cast(left, ArrowType::Float64), right),
        (ArrowType::Float32, other) if other.is_integer() || other.is_decimal() => {
            (cast(left, ArrowType::Float64), right)
        }
        (other, ArrowType::Float32) if other.is_integer() || other.is_decimal() => {
            (left, cast(right, ArrowType::Float64))
        }
        _ => (left, right),
    };
    // The library adds numerics of one width only.
    let (left, right) = match mixed::common_of([&first, &second].into_iter(), false) {
        Some(wide @ ArrowType::Decimal256(..)) if is_additive(&op) => (cast(left, wide.clone()), cast(right, wide)),
        _ => (left, right),
    };
    Ok(match op {
        BinaryOperator::Multiply | BinaryOperator::Divide => {
            let operator = if op == BinaryOperator::Divide { Operator::Divide } else { Operator::Multiply };
            if let Some(function) = decimals::function(operator, (&left, &first), (&right, &second)) {
                let call = ScalarFunction::new_udf(Arc::new(function), vec![left, right]);
                return Ok(PlannerResult::Planned(Expr::ScalarFunction(call)));
            }
            let (left, right) = mixed::of_one_width(Box::new(left), Box::new(right), schema);
            temporal::scale(op, (*left, &first), (*right, &second))
        }
        BinaryOperator::Plus => temporal::sum((left, &first), Operator::Plus, (right, &second)),
        BinaryOperator::Minus => temporal::sum((left, &first), Operator::Minus, (right, &second)),
        _ => PlannerResult::Original(RawBinaryExpr { op, left, right }),
    })
}

fn is_additive(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Modulo)
}

fn operator_of(op: &BinaryOperator) -> Operator {
    match op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        _ => Operator::Modulo,
    }
}

/// An operator of numerics of which one is without limits: another number beside it becomes such a one, but beside a float both are
/// doubles. What is multiplied or divided by one takes it for a double.
fn without_limits(
    op: Operator,
    (left, first): (Expr, &ArrowType),
    (right, second): (Expr, &ArrowType),
) -> PlannerResult<RawBinaryExpr> {
    let is_number = |found: &ArrowType| is_exact(found) || found.is_null();
    let to = if is_number(first) && is_number(second) { NUMERIC } else { ArrowType::Float64 };
    let of = |expr: Expr, from: &ArrowType| match is_numeric(from) || from.is_numeric() || from.is_null() {
        true => as_type(expr, from, &to),
        false => expr,
    };
    let (left, right) = (of(left, first), of(right, second));
    if to == NUMERIC {
        return PlannerResult::Planned(unlimited::operator(op, 2).call(vec![left, right]));
    }
    let op = match op {
        Operator::Plus => BinaryOperator::Plus,
        Operator::Minus => BinaryOperator::Minus,
        Operator::Multiply => BinaryOperator::Multiply,
        Operator::Divide => BinaryOperator::Divide,
        _ => BinaryOperator::Modulo,
    };
    let as_double = |found: &ArrowType| if is_numeric(found) { ArrowType::Float64 } else { found.clone() };
    temporal::scale(op, (left, &as_double(first)), (right, &as_double(second)))
}

/// The operands of an operator of numbers: literals have the types that PostgreSQL gives them.
pub(crate) fn operands(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    let (left, right) = (operand(left), operand(right));
    let (left, right) = (literal(left, &right, schema)?, right);
    let right = literal(right, &left, schema)?;
    Ok((left, right))
}

/// A literal that fits `integer` is one. The planner reads all numbers as `bigint`.
pub(crate) fn operand(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), metadata) => match i32::try_from(value) {
            Ok(value) => Expr::Literal(ScalarValue::Int32(Some(value)), metadata),
            Err(_) => Expr::Literal(ScalarValue::Int64(Some(value)), metadata),
        },
        Expr::Negative(inner) => Expr::Negative(Box::new(operand(*inner))),
        other => other,
    }
}

/// A literal without a type, or NULL, beside a time: what is subtracted from it, or it from, is of its type, what is added is
/// an interval. An interval is multiplied by a float.
fn beside_a_time(op: &BinaryOperator, expr: Expr, other: &Expr, schema: &DFSchema) -> Result<Expr> {
    let is_null = matches!(&expr, Expr::Literal(ScalarValue::Null, _));
    if !is_null && untyped(&expr).is_none() {
        return Ok(expr);
    }
    let to = match (op, type_of(other, schema)) {
        (BinaryOperator::Minus, Some(time @ (ArrowType::Timestamp(..) | ArrowType::Date32))) => time,
        (BinaryOperator::Plus, Some(ArrowType::Timestamp(..) | ArrowType::Time64(_)))
        | (BinaryOperator::Plus | BinaryOperator::Minus, Some(ArrowType::Interval(_))) => intervals::INTERVAL,
        (BinaryOperator::Multiply | BinaryOperator::Divide, Some(ArrowType::Interval(_))) => ArrowType::Float64,
        _ => return Ok(expr),
    };
    match untyped(&expr) {
        None => Ok(Expr::Literal(ScalarValue::try_from(&to)?, None)),
        Some(text) if to == intervals::INTERVAL => intervals::read(text),
        Some(_) => Ok(cast(expr, to)),
    }
}

/// A text without a type beside a number is a number.
fn literal(expr: Expr, other: &Expr, schema: &DFSchema) -> Result<Expr> {
    match untyped(&expr).is_some()
        && type_of(other, schema).is_some_and(|found| found.is_numeric() || is_numeric(&found))
    {
        true => adapt(expr, other, schema),
        false => Ok(expr),
    }
}

/// The type of an expression, unless it is nested too deeply.
pub(super) fn type_of(expr: &Expr, schema: &DFSchema) -> Option<ArrowType> {
    let (mut next, mut levels) = (expr, 0);
    while let Expr::BinaryExpr(binary) = next {
        (next, levels) = (&binary.left, levels + 1);
        if levels > LEVELS_MAX {
            return None;
        }
    }
    match expr {
        Expr::ScalarFunction(call) => match decimals::result_of(call).or_else(|| long_sums::result_of(call)) {
            Some(known) => Some(known),
            None => expr.get_type(schema).ok(),
        },
        other => other.get_type(schema).ok(),
    }
}
