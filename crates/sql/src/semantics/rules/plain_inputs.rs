//! Inputs of which nothing is known but their order, where the library would make too much of the rest.
//!
//! It notes that a column is constant, or the same as another, and leaves such columns out of orders. That does not hold any
//! longer above some operators, and yet it goes on:
//!
//! - sets of groups (`ROLLUP` and its kin) put NULLs into a column that was constant below them,
//! - so does an outer join for the rows that have no other,
//! - a column that is constant in each part of a union differs from part to part,
//! - a window whose partition is by such a column finds no order for it, and fails,
//! - a window above a limit of rows in an order has its own order put into the sort below the limit, where the streams are
//!   then merged by the order of the limit alone,
//! - a maximum over a growing frame grows, but not from its NULLs on: a sort by it is no less needed. So is a window that parts
//!   or orders its rows by it,
//! - a join that spills gives its rows in no order, and the library's, which it takes the place of, in that of an input.
//!
//! Between such an operator and its input comes one that passes rows on and knows of their order only. It asks for that order,
//! so that sorts below it stay, and none is moved through it.
use std::fmt;
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowExpr};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, replace_children_if_necessary,
};

use crate::optimizer::may_spill;
use crate::syntax::walk::WalkTree;

/// Puts the operator where it is needed. It stands before the rules that look at orders.
#[derive(Debug)]
pub(crate) struct PlainInputs;

impl PhysicalOptimizerRule for PlainInputs {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = if may_spill(config) { below_joins_that_spill(plan)? } else { plan };
        plan.change_up(|node| {
            if goes_by_window(&node) {
                let unordered = PlainExec::above(Arc::clone(node.children()[0]), None);
                return replace_children_if_necessary(node, vec![Arc::new(unordered)]).map(Transformed::yes);
            }
            let inputs = node.children();
            let has_constants = inputs.iter().any(|input| !input.equivalence_properties().eq_group().is_empty());
            if !(is_one(&node) && has_constants || is_window(&node) && inputs.iter().any(|input| is_cut(input))) {
                return Ok(Transformed::no(node));
            }
            let plain = inputs.into_iter().map(|input| Arc::new(PlainExec::new(Arc::clone(input))) as _).collect();
            replace_children_if_necessary(node, plain).map(Transformed::yes)
        })
        .data()
    }

    fn name(&self) -> &str {
        "plain_inputs"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Hides the order in which joins give rows: it is that of an input, and joins that spill give them in another.
fn below_joins_that_spill(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.change_up(|node| match node.is::<HashJoinExec>() {
        true => Ok(Transformed::yes(Arc::new(PlainExec::above(node, None)) as _)),
        false => Ok(Transformed::no(node)),
    })
    .data()
}

fn is_one(node: &Arc<dyn ExecutionPlan>) -> bool {
    let has_sets = |aggregate: &AggregateExec| !aggregate.group_expr().is_single();
    let is_outer = |join_type: &JoinType| matches!(join_type, JoinType::Left | JoinType::Right | JoinType::Full);
    node.downcast_ref::<AggregateExec>().is_some_and(has_sets)
        || node.downcast_ref::<HashJoinExec>().is_some_and(|join| is_outer(join.join_type()))
        || node.downcast_ref::<NestedLoopJoinExec>().is_some_and(|join| is_outer(join.join_type()))
        || node.downcast_ref::<UnionExec>().is_some()
        || is_window(node)
}

/// Whether a sort or a window goes by the result of a window below it.
fn goes_by_window(node: &Arc<dyn ExecutionPlan>) -> bool {
    let keys: Vec<&Arc<dyn PhysicalExpr>> = match node.downcast_ref::<SortExec>() {
        Some(sort) => sort.expr().iter().map(|key| &key.expr).collect(),
        None => windows(node).iter().flat_map(keys_of).collect(),
    };
    match node.children()[..] {
        [input] => keys.into_iter().any(|key| names_window(key, input)),
        _ => false,
    }
}

fn keys_of(window: &Arc<dyn WindowExpr>) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
    window.partition_by().iter().chain(window.order_by().iter().map(|key| &key.expr))
}

/// The functions of a node that is a window.
fn windows(node: &Arc<dyn ExecutionPlan>) -> &[Arc<dyn WindowExpr>] {
    if let Some(window) = node.downcast_ref::<WindowAggExec>() {
        return window.window_expr();
    }
    node.downcast_ref::<BoundedWindowAggExec>().map_or(&[], |window| window.window_expr())
}

/// Whether an expression over the rows of a plan is about a column that a window gives, whatever stands between.
fn names_window(expr: &Arc<dyn PhysicalExpr>, plan: &Arc<dyn ExecutionPlan>) -> bool {
    collect_columns(expr).iter().any(|column| {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let inner = projection.expr().get(column.index());
            return inner.is_some_and(|inner| names_window(&inner.expr, projection.input()));
        }
        match plan.children()[..] {
            [input] if is_window(plan) => {
                column.index() >= input.schema().fields().len() || names_window(&(Arc::new(column.clone()) as _), input)
            }
            [input] if input.schema() == plan.schema() => names_window(&(Arc::new(column.clone()) as _), input),
            _ => false,
        }
    })
}

fn is_window(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<WindowAggExec>().is_some() || node.downcast_ref::<BoundedWindowAggExec>().is_some()
}

/// Whether the rows are the first so many of an order.
fn is_cut(input: &Arc<dyn ExecutionPlan>) -> bool {
    let mut node = input;
    loop {
        if node.fetch().is_some() {
            return node.output_ordering().is_some();
        }
        match node.children()[..] {
            [below] => node = below,
            _ => return false,
        }
    }
}

/// Passes rows on.
#[derive(Debug)]
struct PlainExec {
    input: Arc<dyn ExecutionPlan>,
    order: Option<LexOrdering>,
    properties: Arc<PlanProperties>,
}

impl PlainExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> PlainExec {
        let order = input.output_ordering().cloned();
        PlainExec::above(input, order)
    }

    /// Above rows in an order, which another input may know in fewer columns: it asks for all of them.
    fn above(input: Arc<dyn ExecutionPlan>, order: Option<LexOrdering>) -> PlainExec {
        let known = EquivalenceProperties::new_with_orderings(input.schema(), order.clone());
        let properties = input.properties().as_ref().clone().with_eq_properties(known);
        PlainExec { input, order, properties: Arc::new(properties) }
    }
}

impl DisplayAs for PlainExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlainExec")
    }
}

impl ExecutionPlan for PlainExec {
    fn name(&self) -> &str {
        "PlainExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(PlainExec::above(children.swap_remove(0), self.order.clone())))
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone().map(OrderingRequirements::from)]
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
        self.input.execute(partition, context)
    }
}
