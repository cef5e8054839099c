//! `JOIN ... USING` and `NATURAL JOIN` of columns that have no type in common are refused, as in PostgreSQL.
use arrow_schema::DataType;
use datafusion::common::JoinConstraint;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::error::SqlError;
use crate::types::type_name;
use crate::walk::WalkPlan;

/// See the module.
#[derive(Debug)]
pub(crate) struct UsingTypes;

impl AnalyzerRule for UsingTypes {
    fn name(&self) -> &str {
        "using_types"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.look_with_subqueries(|node| {
            if let LogicalPlan::Join(join) = node
                && join.join_constraint == JoinConstraint::Using
            {
                for (left, right) in &join.on {
                    let (left, right) = (left.get_type(join.left.schema())?, right.get_type(join.right.schema())?);
                    if !are_matched(&left, &right) {
                        let (left, right) = (type_name(&left), type_name(&right));
                        let error =
                            SqlError::mismatch(format!("JOIN/USING types {left} and {right} cannot be matched"));
                        return Err(DataFusionError::External(Box::new(error)));
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(plan)
    }
}

/// Whether values of two types are compared as values of one of them.
fn are_matched(left: &DataType, right: &DataType) -> bool {
    let is_day = |of: &DataType| matches!(of, DataType::Date32 | DataType::Timestamp(..));
    match (left, right) {
        (DataType::Null, _) | (_, DataType::Null) => true,
        (DataType::List(left), DataType::List(right)) => are_matched(left.data_type(), right.data_type()),
        _ => {
            left == right
                || left.is_numeric() && right.is_numeric()
                || left.is_string() && right.is_string()
                || is_day(left) && is_day(right)
                || left.is_binary() && right.is_binary()
        }
    }
}
