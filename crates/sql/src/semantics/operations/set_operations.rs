//! The columns of `INTERSECT` and `EXCEPT`: those of both sides become one type before rows are compared, where the planner
//! keeps the left one's.
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Distinct, Join, LogicalPlan};

use super::mixed;
use crate::values::types::is_enum;

/// Whether a join stands for such an operation. No other one takes NULLs for equal.
pub(crate) fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
}

/// A node with columns of the types that both sides have in common.
pub(crate) fn adapt_node(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Join(mut join) = plan else { return Ok(plan) };
    if !is_set_operation(&join) {
        return Ok(LogicalPlan::Join(join));
    }
    let pairs = join.left.schema().fields().iter().zip(join.right.schema().fields());
    let common: Vec<Option<ArrowType>> =
        pairs.map(|(left, right)| common(left.data_type(), right.data_type())).collect();
    if common.iter().any(Option::is_some) {
        join.left = with_types(join.left, &common)?;
        join.right = with_types(join.right, &common)?;
    }
    Ok(LogicalPlan::Join(join))
}

/// The type that two numbers or two times become, if they differ.
fn common(left: &ArrowType, right: &ArrowType) -> Option<ArrowType> {
    let is_one_kind = (left.is_numeric() && right.is_numeric()) || (left.is_temporal() && right.is_temporal());
    if left == right || !is_one_kind || is_enum(left) || is_enum(right) {
        return None;
    }
    mixed::common_of([left, right].into_iter(), false).or_else(|| comparison_coercion(left, right))
}

/// Rows are told apart once they have their types.
fn with_types(plan: Arc<LogicalPlan>, types: &[Option<ArrowType>]) -> Result<Arc<LogicalPlan>> {
    Ok(Arc::new(match Arc::unwrap_or_clone(plan) {
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let typed = mixed::projected(Arc::unwrap_or_clone(input), types)?;
            LogicalPlan::Distinct(Distinct::All(Arc::new(typed)))
        }
        other => mixed::projected(other, types)?,
    }))
}
