//! The library's search for conditions between tables that stand beside each other, kept to plans that have such tables and
//! not too many.
//!
//! It takes a row of joins apart and looks, for each table, among all others for one with a condition, and does that again
//! for the joins below each join: the time grows with the fourth power of the number of tables, in one step that nothing
//! interrupts. With many tables the order in which they are written stays, and their conditions still find their joins,
//! as filters that are pushed down.
use datafusion::common::JoinType;
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
        let joins = Joins::of(&plan)?;
        match joins.are_crossed && joins.count <= JOINS_MAX {
            true => self.0.rewrite(plan, config),
            false => Ok(Transformed::no(plan)),
        }
    }
}

/// The joins of a plan.
#[derive(Default)]
struct Joins {
    count: usize,
    /// Whether one sets no columns of its sides equal. The search leaves none that need not be, and all rules run again after it.
    are_crossed: bool,
}

impl Joins {
    fn of(plan: &LogicalPlan) -> Result<Joins> {
        let mut joins = Joins::default();
        plan.look_with_subqueries(|node| {
            if let LogicalPlan::Join(join) = node {
                joins.count += 1;
                joins.are_crossed |= join.join_type == JoinType::Inner && join.on.is_empty();
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(joins)
    }
}
