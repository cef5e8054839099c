//! Calls over windows that have become one while a plan was simplified, as `sum(a)` and `sum(a::bigint)`, are worked out once.
//!
//! The library takes a call that is there twice for an expression that any projection could work out.
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Window};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// See the module.
#[derive(Debug)]
pub(crate) struct DistinctWindows;

impl OptimizerRule for DistinctWindows {
    fn name(&self) -> &str {
        "distinct_windows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
        let calls: Vec<Expr> = window.window_expr.iter().map(|expr| expr.clone().unalias()).collect();
        let firsts: Vec<usize> =
            calls.iter().map(|call| calls.iter().position(|other| other == call).unwrap_or_default()).collect();
        if firsts.iter().enumerate().all(|(at, first)| at == *first) {
            return Ok(Transformed::no(plan));
        }
        let once = window.window_expr.iter().enumerate().filter(|(at, _)| firsts[*at] == *at);
        let once = Window::try_new(once.map(|(_, expr)| expr.clone()).collect(), Arc::clone(&window.input))?;
        let name = |at: usize| window.window_expr[at].schema_name().to_string();
        let column = |at: usize| Expr::Column(Column::new_unqualified(name(at)));
        let below = window.input.schema().columns().into_iter().map(Expr::Column);
        let above = firsts.iter().enumerate().map(|(at, first)| match at == *first {
            true => column(at),
            false => column(*first).alias(name(at)),
        });
        let plan = LogicalPlanBuilder::from(LogicalPlan::Window(once)).project(below.chain(above))?.build()?;
        Ok(Transformed::yes(plan))
    }
}
