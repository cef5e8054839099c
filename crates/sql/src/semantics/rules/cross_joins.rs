//! The library's search for conditions between tables that stand beside each other, kept to statements of few tables.
//!
//! It takes a row of joins apart and looks, for each table, among all others for one with a condition, and does that again
//! for the joins below each join: the time grows with the fourth power of the number of tables, in one step that nothing
//! interrupts. With many tables the order in which they are written stays, and their conditions still find their joins,
//! as filters that are pushed down.
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::syntax::walk::WalkPlan;

/// Up to so many joins the search takes milliseconds.
const JOINS_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct FewCrossJoins(pub(crate) EliminateCrossJoin);

impl OptimizerRule for FewCrossJoins {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match count_joins(&plan)? > JOINS_MAX {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}

fn count_joins(plan: &LogicalPlan) -> Result<usize> {
    let mut count = 0;
    plan.look_with_subqueries(|node| {
        count += usize::from(matches!(node, LogicalPlan::Join(_)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(count)
}
