//! `DISTINCT ON` by expressions: they become columns below it.
//!
//! The library groups by them and then sorts the groups by `ORDER BY`, whose expressions it looks for in vain among the groups' columns.
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, DistinctOn, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// See the module. It stands before the rule that makes groups of `DISTINCT ON`.
#[derive(Debug)]
pub(crate) struct DistinctKeys;

impl OptimizerRule for DistinctKeys {
    fn name(&self) -> &str {
        "distinct_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let is_column = |key: &Expr| matches!(key, Expr::Column(_));
        match plan {
            LogicalPlan::Distinct(Distinct::On(on)) if !on.on_expr.iter().all(is_column) => {
                Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(by_columns(on)?))))
            }
            plan => Ok(Transformed::no(plan)),
        }
    }
}

fn by_columns(on: DistinctOn) -> Result<DistinctOn> {
    let name = |at: usize| format!("\0distinct\0{at}");
    let below = on.input.schema().columns().into_iter().map(Expr::Column);
    let keys = on.on_expr.iter().enumerate().map(|(at, key)| key.clone().unalias().alias(name(at)));
    let input = LogicalPlanBuilder::from(Arc::clone(&on.input)).project(below.chain(keys))?.build()?;
    let column = |at: usize| Expr::Column(Column::new_unqualified(name(at)));
    let sort_expr = on.sort_expr.map(|mut order| {
        for sort in &mut order {
            // Rules before keep the name of either by an alias.
            let expr = sort.expr.clone().unalias();
            if let Some(at) = on.on_expr.iter().position(|key| key.clone().unalias() == expr) {
                sort.expr = column(at);
            }
        }
        order
    });
    let on_expr = (0..on.on_expr.len()).map(column).collect();
    Ok(DistinctOn { on_expr, sort_expr, input: Arc::new(input), ..on })
}
