//! Operators of ranges, points, boxes, circles and addresses as functions.
//!
//! An operator is one of these where an operand is a range, a shape or an address. A literal without a type beside it is of the other's
//! type if there is such an operator, or else of the one type that the operator has there. Ranges and addresses are compared by the
//! planner's library, as the bytes that it has of them are in their order; of an `inet` and a `cidr` both are taken for `inet`.
use arrow_schema::DataType as ArrowType;
use datafusion::common::DFSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::{DataType, GeometryKind, NetworkKind};

use super::alike;
use super::arithmetic::type_of;
use super::untyped::{adapt, read, untyped};
use crate::error::SqlError;
use crate::functions::spaces::{PART, becomes, named, operands_of, operator};
use crate::semantics::operations::operand_types;
use crate::semantics::operations::spaces::{is_network, is_shape, is_zoned_time, need_operators, space_of};
use crate::semantics::spelling::row_values::{DISTINCT, NOT_DISTINCT};
use crate::values::types::type_name;

/// The call that an operator is, if it is one of these.
///
/// # Errors
/// Where there is no such operator for the operands.
pub(crate) fn plan(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let name = match op {
        BinaryOperator::Custom(name) => name.clone(),
        other => other.to_string(),
    };
    let Some(function) = operator(&name) else { return distinct(op, left, right, schema) };
    let (Some(first), Some(second)) = (type_of(left, schema), type_of(right, schema)) else { return Ok(None) };
    let (of_left, of_right) = (operand_of(&first), operand_of(&second));
    if of_left.is_none() && of_right.is_none() {
        return Ok(None);
    }
    let is_comparison = ["=", "<>", "<", "<=", ">", ">="].contains(&name.as_str());
    if is_comparison && !is_shape(&first) && !is_shape(&second) {
        return compared(op, left, right, schema);
    }
    let refused = || operand_types::refused(op, left, right, schema);
    let pairs = operands_of(&function);
    let left = match (untyped(left), of_right) {
        (Some(text), Some(other)) => {
            let candidates = pairs.iter().filter(|(_, of)| *of == other).map(|(of, _)| *of);
            read(text, type_beside(other, candidates, ("unknown", &name, &type_name(&second)))?)?
        }
        _ => left.clone(),
    };
    let right = match (untyped(right), of_left) {
        (Some(text), Some(other)) => {
            let candidates = pairs.iter().filter(|(of, _)| *of == other).map(|(_, of)| *of);
            read(text, type_beside(other, candidates, (&type_name(&first), &name, "unknown"))?)?
        }
        _ => right.clone(),
    };
    let (first, second) = (left.get_type(schema)?, right.get_type(schema)?);
    if !pairs.iter().any(|(of_left, of_right)| becomes(&first, *of_left) && becomes(&second, *of_right)) {
        return Err(refused());
    }
    Ok(Some(function.call(vec![left, right])))
}

/// The type that operators take an operand for: those of an `inet` are all that there is of a `cidr`.
fn operand_of(found: &ArrowType) -> Option<DataType> {
    match space_of(found) {
        Some(DataType::Network(_)) => Some(DataType::Network(NetworkKind::Inet)),
        other => other,
    }
}

/// A comparison of addresses of two kinds, or of a time with its zone and one on the session's clocks.
fn compared(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (left, right) = (adapt(left.clone(), right, schema)?, adapt(right.clone(), left, schema)?);
    let types = [left.get_type(schema)?, right.get_type(schema)?];
    let are_times = types.iter().all(|found| is_zoned_time(found) || matches!(found, ArrowType::Time64(_)));
    if types[0] == types[1] || !(are_times || types.iter().all(is_network)) {
        return Ok(None);
    }
    let widened = |of: Expr, found: &ArrowType| match space_of(found) {
        Some(DataType::Network(NetworkKind::Cidr)) => alike::as_inet(of),
        None => named("timetz").map_or(of.clone(), |function| function.call(vec![of])),
        _ => of,
    };
    let (left, right) = (widened(left, &types[0]), widened(right, &types[1]));
    let op = match op {
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => Operator::Eq,
    };
    Ok(Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })))
}

/// `IS DISTINCT FROM` of shapes and its inverse, which become what they mean by a rule that knows all of the plan.
///
/// # Errors
/// Where a literal is none of the other operand's type.
fn distinct(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let op = match op {
        BinaryOperator::Custom(name) if name == DISTINCT => Operator::IsDistinctFrom,
        BinaryOperator::Custom(name) if name == NOT_DISTINCT => Operator::IsNotDistinctFrom,
        _ => return Ok(None),
    };
    let types: Vec<ArrowType> = [left, right].into_iter().filter_map(|operand| type_of(operand, schema)).collect();
    if !need_operators(types.iter()) {
        return Ok(None);
    }
    let (left, right) = (adapt(left.clone(), right, schema)?, adapt(right.clone(), left, schema)?);
    Ok(Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })))
}

/// The type of a literal beside an operand: the operand's, or else the only one that there is.
fn type_beside(
    other: DataType,
    candidates: impl Iterator<Item = DataType>,
    (left, op, right): (&str, &str, &str),
) -> Result<DataType> {
    let candidates: Vec<DataType> = candidates.collect();
    let (code, what) = match candidates[..] {
        _ if candidates.contains(&other) => return Ok(other),
        [only] => return Ok(only),
        [] => ("42883", "operator does not exist"),
        _ => ("42725", "operator is not unique"),
    };
    let error = SqlError::new(code, format!("{what}: {left} {op} {right}"));
    Err(DataFusionError::External(Box::new(error.hint("You might need to add explicit type casts."))))
}

/// The part of a point or a box at a place, as `p[0]` is.
pub(crate) fn part(of: &Expr, at: &Expr, schema: &DFSchema) -> Option<Expr> {
    let found = of.get_type(schema).ok()?;
    let has_parts = matches!(space_of(&found), Some(DataType::Geometry(GeometryKind::Point | GeometryKind::Box)));
    has_parts.then(|| operator(PART)).flatten().map(|function| function.call(vec![of.clone(), at.clone()]))
}
