//! `a || b`: of texts, bytes and arrays. What stands beside a text becomes one as a cast makes it, a literal without a type
//! becomes what it stands beside.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::{mixed, operand_types};
use crate::functions::numbers::unlimited::as_type;
use crate::values::numerics::{is_exact, is_numeric};
use crate::values::types::is_space;

/// Plans the operator.
pub(crate) fn plan(left: Expr, right: Expr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    let original =
        |left, right| Ok(PlannerResult::Original(RawBinaryExpr { op: BinaryOperator::StringConcat, left, right }));
    let (Ok(first), Ok(second)) = (left.get_type(schema), right.get_type(schema)) else {
        return original(left, right);
    };
    match (first.is_list(), second.is_list()) {
        (true, true) => return original(left, right),
        // An array of no type, which is none at all.
        (true, false) if second.is_null() => return Ok(PlannerResult::Planned(left)),
        (false, true) if first.is_null() => return Ok(PlannerResult::Planned(right)),
        (true, false) => {
            let (list, item) = with_item((left, &first), (right, &second));
            return original(list, item);
        }
        (false, true) => {
            let (list, item) = with_item((right, &second), (left, &first));
            return original(item, list);
        }
        (false, false) => {}
    }
    let is_bytes = |found: &ArrowType| found.is_binary() && !is_numeric(found) && !is_space(found);
    if is_bytes(&first) && is_untyped(&right) {
        return original(left, cast(right, ArrowType::BinaryView));
    }
    if is_bytes(&second) && is_untyped(&left) {
        return original(cast(left, ArrowType::BinaryView), right);
    }
    let is_beside_text = first.is_string() || second.is_string() || first.is_null() || second.is_null();
    let as_text = |expr: Expr, found: &ArrowType| match found.is_string() || found.is_null() {
        true => expr,
        false => cast(expr, ArrowType::Utf8View),
    };
    match is_beside_text {
        true => original(as_text(left, &first), as_text(right, &second)),
        false if is_bytes(&first) && is_bytes(&second) => original(left, right),
        false => Err(operand_types::refused(&BinaryOperator::StringConcat, &left, &right, schema)),
    }
}

/// A literal that is a text or NULL.
fn is_untyped(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _))
}

/// An array and one more item of the same type.
fn with_item((list, of): (Expr, &ArrowType), (item, found): (Expr, &ArrowType)) -> (Expr, Expr) {
    let ArrowType::List(inner) = of else { return (list, item) };
    let of = inner.data_type();
    if is_numeric(of) && is_exact(found) {
        return (list, as_type(item, found, of));
    }
    if of == found || !of.is_numeric() || !found.is_numeric() {
        return (list, item);
    }
    let common = mixed::common_of([of, found].into_iter(), false).or_else(|| comparison_coercion(of, found));
    let Some(common) = common else { return (list, item) };
    let list = match common == *of {
        true => list,
        false => cast(list, ArrowType::List(Arc::new(Field::new_list_field(common.clone(), true)))),
    };
    (list, if common == *found { item } else { cast(item, common) })
}
