//! `INTERSECT ALL` and `EXCEPT ALL`: of a row that is there several times on both sides, as many as the fewer, or those that
//! are left when the others are taken away.
//!
//! The planner makes a semi or anti join of each, which keeps all or none. So the copies of each row are numbered on both
//! sides, and the numbers are compared along with the columns.
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

use crate::syntax::walk::WalkPlan;

/// Numbers the copies.
#[derive(Debug)]
pub(crate) struct Multisets;

impl AnalyzerRule for Multisets {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.change_up_with_subqueries(|node| match node {
            LogicalPlan::Join(join) if is_of_all(&join) => numbered(join).map(Transformed::yes),
            other => Ok(Transformed::no(other)),
        })
        .map(|transformed| transformed.data)
    }

    fn name(&self) -> &str {
        "multisets"
    }
}

/// Whether a join stands for a set operation with `ALL`. No other one takes NULLs for equal here, and without `ALL` the
/// rows on the left are distinct.
fn is_of_all(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)))
}

fn numbered(join: Join) -> Result<LogicalPlan> {
    let columns = join.left.schema().columns();
    let (left, right) = (with_numbers(join.left)?, with_numbers(join.right)?);
    let keys = (left.schema().columns(), right.schema().columns());
    LogicalPlanBuilder::from(left)
        .join_detailed(right, join.join_type, keys, None, NullEquality::NullEqualsNull)?
        .project(columns.into_iter().map(Expr::Column))?
        .build()
}

/// A plan with the number of each copy of a row in one more column.
fn with_numbers(plan: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let number = row_number().partition_by(columns.clone()).build()?;
    let name = Column::new_unqualified(number.schema_name().to_string());
    let number_column = Expr::Column(name).alias("\0copy");
    LogicalPlanBuilder::from(plan).window([number])?.project(columns.into_iter().chain([number_column]))?.build()
}
