//! Sorts below a merge of sorted streams have the whole order of the merge.
//!
//! Of the columns of an order the library leaves out those that are constant in each stream below, though they differ from
//! stream to stream, as in `SELECT 'b', x ... UNION ALL SELECT 'a', y ... ORDER BY 1, 2 LIMIT 1`. That sorts each stream
//! right. But with a limit the streams share the greatest row that they still want, by the columns that are left, and one
//! stream throws away what is before the rows of the other by the column that was left out.
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use crate::syntax::walk::WalkTree;

/// See the module.
#[derive(Debug)]
pub(crate) struct WholeOrders;

impl PhysicalOptimizerRule for WholeOrders {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.change_up(|node| {
            Ok(match whole(&node) {
                Some(replaced) => Transformed::yes(replaced),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "whole_orders"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The merge above a sort of its whole order, if it stands above one of less.
fn whole(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let merge = node.downcast_ref::<SortPreservingMergeExec>()?;
    let sort = merge.input().downcast_ref::<SortExec>()?;
    if sort.expr() == merge.expr() || !sort.preserve_partitioning() {
        return None;
    }
    let sorted = SortExec::new(merge.expr().clone(), Arc::clone(sort.input()))
        .with_fetch(sort.fetch())
        .with_preserve_partitioning(true);
    let whole = SortPreservingMergeExec::new(merge.expr().clone(), Arc::new(sorted)).with_fetch(merge.fetch());
    Some(Arc::new(whole))
}
