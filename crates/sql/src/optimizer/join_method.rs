//! Whether two sides are joined by a hash table or by merging them in order.
//!
//! As long as the table fits the memory of an operator (`lstore.operator_memory`, which has no limit by default), it is a hash join. Where
//! it does not, the model compares writing both sides in batches (its equation 36) with sorting both (equation 34). Sorts are
//! put below a merge join by the library's rule that comes after this one.
use std::sync::Arc;

use arrow_schema::SortOptions;
use costs::{CostModel, Side};
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use crate::access::scan_costs::PlanCosts;
use crate::syntax::walk::WalkTree;

/// The bytes that a value of no fixed width is taken to have.
const TEXT_BYTES: usize = 24;

/// The bytes that a row of a schema is taken to have.
pub(super) fn width(schema: &arrow_schema::Schema) -> f64 {
    let bytes = |field: &arrow_schema::FieldRef| field.data_type().primitive_width().unwrap_or(TEXT_BYTES);
    schema.fields().iter().map(bytes).sum::<usize>() as f64
}

/// What a plan gives, as far as that is known.
pub(super) fn side(plan: &dyn ExecutionPlan) -> Result<Option<Side>> {
    let known = StatisticsContext::new().compute(plan, &StatisticsArgs::new())?;
    let rows = known.num_rows.get_value().copied();
    Ok(rows.map(|rows| Side { rows: rows as f64, width: width(&plan.schema()) }))
}

/// Makes merge joins of hash joins where these would cost more.
#[derive(Debug)]
pub(crate) struct JoinMethod;

impl PhysicalOptimizerRule for JoinMethod {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let model = PlanCosts::of(config);
        if model.operator_pages.is_none() {
            return Ok(plan);
        }
        plan.change_up(|node| Ok(merged(&node, &model)?.map_or_else(|| Transformed::no(node), Transformed::yes)))
            .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "join_method"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The merge join in place of a hash join, where it is cheaper.
fn merged(node: &Arc<dyn ExecutionPlan>, model: &CostModel) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    let is_known = matches!(
        join.join_type,
        JoinType::Inner
            | JoinType::Left
            | JoinType::Right
            | JoinType::Full
            | JoinType::LeftSemi
            | JoinType::RightSemi
            | JoinType::LeftAnti
            | JoinType::RightAnti
    );
    // With conditions beside the keys the library's merge join is right for inner joins, and these alone are taken.
    let has_more = join.filter.is_some() && join.join_type != JoinType::Inner;
    if !is_known || has_more || join.null_aware || join.projection.is_some() || join.on.is_empty() {
        return Ok(None);
    }
    // Sorts tell the zeros of floats apart, and the library's merge join does not.
    let schema = join.left.schema();
    for (left, _) in &join.on {
        if left.data_type(&schema)?.is_floating() {
            return Ok(None);
        }
    }
    let (Some(inner), Some(outer)) = (side(join.left.as_ref())?, side(join.right.as_ref())?) else { return Ok(None) };
    let given = side(node.as_ref())?.map_or(0.0, |given| given.rows);
    if !model.best_join(inner, outer, given).1 {
        return Ok(None);
    }
    let merge = SortMergeJoinExec::try_new(
        join.left.clone(),
        join.right.clone(),
        join.on.clone(),
        join.filter.clone(),
        join.join_type,
        vec![SortOptions::default(); join.on.len()],
        join.null_equality,
    )?;
    Ok(Some(Arc::new(merge)))
}
