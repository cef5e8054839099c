//! Rows that `OFFSET` skips are the first of the order that stands below it.
//!
//! A query in `FROM`, or a part of a set operation, may order its rows and skip some of them, and the query around it may ask for
//! another order. The library then sorts below the `OFFSET` by the order that is asked for above, so that other rows are skipped.
//! With a `LIMIT` beside it, it does not. So an `OFFSET` without `LIMIT` becomes an operator that needs the order that it has found.
//!
//! ```text
//! SELECT * FROM (SELECT k FROM t ORDER BY k DESC OFFSET 1) ORDER BY k
//!
//! Sort k                                              Sort k
//!   GlobalLimit skip=1     the library moves    ->      Offset skip=1      keeps
//!     Sort k DESC          this sort away                 Sort k DESC      its sort
//! ```
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, replace_children_if_necessary,
};

use crate::syntax::walk::WalkTree;

/// Replaces each `OFFSET` without `LIMIT` above rows that have an order. It stands before the rule that moves sorts.
#[derive(Debug)]
pub(crate) struct OffsetsInOrder;

impl PhysicalOptimizerRule for OffsetsInOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.change_up(|node| {
            let Some(limit) = node.downcast_ref::<GlobalLimitExec>() else { return Ok(Transformed::no(node)) };
            Ok(match in_order(limit)? {
                Some(plan) => Transformed::yes(plan),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "offsets_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The operator in the place of such a limit. It goes below projections that drop what the rows are ordered by: the order is
/// known no more above them.
fn in_order(limit: &GlobalLimitExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if limit.skip() == 0 || limit.fetch().is_some() {
        return Ok(None);
    }
    let mut projections = Vec::new();
    let mut input = limit.input();
    while input.output_ordering().is_none() && input.downcast_ref::<ProjectionExec>().is_some() {
        projections.push(input.clone());
        input = input.children()[0];
    }
    let Some(order) = input.output_ordering() else { return Ok(None) };
    let order = OrderingRequirements::from(order.clone());
    let limit = GlobalLimitExec::new(input.clone(), limit.skip(), None);
    let mut plan: Arc<dyn ExecutionPlan> = Arc::new(OffsetExec { limit, order });
    for projection in projections.into_iter().rev() {
        plan = replace_children_if_necessary(projection, vec![plan])?;
    }
    Ok(Some(plan))
}

/// Skips the first rows of an order.
#[derive(Debug)]
struct OffsetExec {
    limit: GlobalLimitExec,
    order: OrderingRequirements,
}

impl DisplayAs for OffsetExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OffsetExec: skip={}", self.limit.skip())
    }
}

impl ExecutionPlan for OffsetExec {
    fn name(&self) -> &str {
        "OffsetExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.limit.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.limit.input()]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let limit = GlobalLimitExec::new(children.swap_remove(0), self.limit.skip(), None);
        Ok(Arc::new(OffsetExec { limit, order: self.order.clone() }))
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(self.order.clone())]
    }

    /// It does, but sorts would be moved below it if it said so.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.limit.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.limit.metrics()
    }
}
