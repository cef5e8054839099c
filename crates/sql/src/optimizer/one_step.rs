//! `count(DISTINCT value)` of groups in one step.
//!
//! ```text
//! the library              here
//! count by k               count of distinct v by k
//!   partial count by k       rows dealt out by k
//! groups of k, v
//!   rows dealt out by k, v
//!     partial groups of k, v
//! ```
//!
//! The library makes groups of the keys and the value, and counts them by the keys, each in two steps. Where nearly every row is a group
//! of its own, the first step takes as long as the second and leaves as many rows. In one step, rows find the groups of their keys, of
//! which there are fewer, and each group's numbers stand in one set.
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::options::PlanOptions;
use crate::syntax::walk::WalkTree;

/// So many groups are dealt out to threads evenly.
const GROUPS_MANY: usize = 256;

/// Counts distinct values in one step where two would not make rows fewer.
#[derive(Debug)]
pub(crate) struct DistinctInOneStep;

impl PhysicalOptimizerRule for DistinctInOneStep {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let options = PlanOptions::of(config);
        // The sets stay in memory.
        if !options.own_operators || options.spilling_bytes > 0 {
            return Ok(plan);
        }
        plan.change_up(|node| Ok(in_one_step(&node)?.map_or_else(|| Transformed::no(node), Transformed::yes)))
            .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "distinct_in_one_step"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn in_one_step(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some((mode, counts)) = whole(node) else { return Ok(None) };
    let Some((_, groups)) = whole(counts.input()) else { return Ok(None) };
    let Some((keys, value)) = keys_and_value(counts, groups) else { return Ok(None) };
    let input = groups.input();
    if mode == AggregateMode::SinglePartitioned && !is_one_step_enough(input, &keys, &value)? {
        return Ok(None);
    }
    let mut functions = Vec::new();
    for function in counts.aggr_expr() {
        let function = AggregateExprBuilder::new(Arc::new(function.fun().clone()), vec![value.clone()])
            .schema(groups.input_schema())
            .alias(function.name())
            .human_display(format!("{}(DISTINCT {value})", function.fun().name()))
            .human_display_alias(function.name())
            .distinct()
            .build()?;
        // Without one state for all groups, each would have a set of its own.
        if !function.groups_accumulator_supported() {
            return Ok(None);
        }
        functions.push(Arc::new(function));
    }
    let filters = vec![None; functions.len()];
    let keys = PhysicalGroupBy::new_single(keys);
    let one = AggregateExec::try_new(mode, keys, functions, filters, input.clone(), groups.input_schema())?;
    Ok(Some(Arc::new(one)))
}

/// A grouping, be it in one step or in two, as one: the mode of one step, and what takes the rows.
fn whole(node: &Arc<dyn ExecutionPlan>) -> Option<(AggregateMode, &AggregateExec)> {
    let last = node.downcast_ref::<AggregateExec>()?;
    let (mode, first) = match last.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => (*last.mode(), last),
        AggregateMode::Final => (AggregateMode::Single, first_step(last)?),
        AggregateMode::FinalPartitioned => (AggregateMode::SinglePartitioned, first_step(last)?),
        AggregateMode::Partial | AggregateMode::PartialReduce => return None,
    };
    let groups = first.group_expr();
    let is_plain = groups.is_single()
        && !groups.is_empty()
        && !groups.has_grouping_set()
        && [last, first].iter().all(|step| step.limit_options().is_none())
        && first.filter_expr().iter().all(Option::is_none)
        && *first.input_order_mode() == InputOrderMode::Linear;
    is_plain.then_some((mode, first))
}

fn first_step(last: &AggregateExec) -> Option<&AggregateExec> {
    last.input().downcast_ref::<AggregateExec>().filter(|step| *step.mode() == AggregateMode::Partial)
}

type Keys = Vec<(Arc<dyn PhysicalExpr>, String)>;

/// The keys by which the groups of `groups` are counted, and the value of which these are the groups beside the keys.
fn keys_and_value(counts: &AggregateExec, groups: &AggregateExec) -> Option<(Keys, Arc<dyn PhysicalExpr>)> {
    let known = groups.group_expr().expr();
    let place = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().map(Column::index);
    let keys: Vec<(usize, &String)> =
        counts.group_expr().expr().iter().map(|(key, name)| Some((place(key)?, name))).collect::<Option<_>>()?;
    let is_key = |place: usize| keys.iter().any(|(key, _)| *key == place);
    let values: Vec<usize> = (0..known.len()).filter(|place| !is_key(*place)).collect();
    let [value] = values[..] else { return None };
    let is_count = |function: &AggregateFunctionExpr| {
        let of_value = matches!(function.expressions().as_slice(), [argument] if place(argument) == Some(value));
        function.fun().name() == "count" && !function.is_distinct() && function.order_bys().is_empty() && of_value
    };
    let are_counts = !counts.aggr_expr().is_empty() && counts.aggr_expr().iter().all(|function| is_count(function));
    if !groups.aggr_expr().is_empty() || !are_counts {
        return None;
    }
    let keys = keys.into_iter().map(|(place, name)| Some((known.get(place)?.0.clone(), name.clone())));
    Some((keys.collect::<Option<_>>()?, known[value].0.clone()))
}

/// Whether rows are dealt out by the keys evenly, and are as many as groups of the keys and the value, as far as is known.
fn is_one_step_enough(input: &Arc<dyn ExecutionPlan>, keys: &Keys, value: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    let known = StatisticsContext::new().compute(input.as_ref(), &StatisticsArgs::new())?;
    let distinct = |expr: &Arc<dyn PhysicalExpr>| {
        let column = known.column_statistics.get(expr.downcast_ref::<Column>()?.index())?;
        column.distinct_count.get_value().copied()
    };
    let groups = keys.iter().try_fold(1, |groups: usize, (key, _)| Some(groups.saturating_mul(distinct(key)?)));
    let (Some(groups), Some(values), Some(rows)) = (groups, distinct(value), known.num_rows.get_value()) else {
        return Ok(false);
    };
    Ok(groups >= GROUPS_MANY && groups.saturating_mul(values) >= *rows)
}
