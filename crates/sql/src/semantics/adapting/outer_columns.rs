//! The types of an outer query's columns within its subqueries.
//!
//! A column of an outer query is noted in a subquery with the type that it had when the statement was read. What it is by
//! PostgreSQL's rules is known later: that `coalesce` of two `char(3)` is one, too. So a plan is changed from its inputs up:
//! first the inputs of a node, then its subqueries, whose columns of the outer query get the types that these now have, and
//! then the node. The right side of a join sees the columns of the left one (LATERAL).
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};

use crate::interrupt;
use crate::semantics::operations::visible::visible;
use crate::semantics::subplan::{Reference, has_subqueries, has_wrapper, replace_references};

type Change<'a> = dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>> + 'a;

/// Changes a plan, its inputs and its subqueries.
#[recursive::recursive]
pub(crate) fn change_up(plan: LogicalPlan, change: &mut Change<'_>) -> Result<Transformed<LogicalPlan>> {
    interrupt::check_plan()?;
    let inputs_changed = match plan {
        LogicalPlan::Join(join) if has_wrapper(&join.right)? => of_lateral(join, change)?,
        other => other.map_children(|input| change_up(input, change))?,
    };
    let subqueries_changed = inputs_changed.transform_data(|plan| {
        if !has_subqueries(&plan)? {
            return Ok(Transformed::no(plan));
        }
        let columns = visible(&plan)?;
        plan.map_subqueries(|subquery| change_up(typed(subquery, &columns)?, change))
    })?;
    subqueries_changed.transform_data(change)
}

fn of_lateral(mut join: Join, change: &mut Change<'_>) -> Result<Transformed<LogicalPlan>> {
    let left = change_up(Arc::unwrap_or_clone(join.left), change)?.data;
    let right = typed(Arc::unwrap_or_clone(join.right), left.schema())?;
    join.right = Arc::new(change_up(right, change)?.data);
    join.left = Arc::new(left);
    Ok(Transformed::yes(LogicalPlan::Join(join)))
}

/// A plan in which columns of the outer query have the types that they have there.
fn typed(plan: LogicalPlan, outer: &DFSchema) -> Result<LogicalPlan> {
    replace_references(plan, &|(field, column): &Reference| {
        let now = outer.field_from_column(column).ok()?;
        let is_older = now.data_type() != field.data_type() || now.metadata() != field.metadata();
        let now = now.as_ref().clone().with_nullable(field.is_nullable());
        is_older.then(|| Expr::OuterReferenceColumn(Arc::new(now), column.clone()))
    })
}
