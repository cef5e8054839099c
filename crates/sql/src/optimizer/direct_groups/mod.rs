//! Grouping without a general hash table: by one integer key, or by a few keys of a few words.
//!
//! ```text
//! AggregateExec    keys ─▶ hash ─▶ table of all types of keys ─▶ group ─┐
//! DirectGroupsExec keys ─▶ `dense`: a place in an array       ─▶ group ─┼─▶ the aggregate functions' own states
//!                  keys ─▶ `words`: numbers, compared at once ─▶ group ─┤
//!                  keys ─▶ `runs`: equal to the row before    ─▶ group ─┘
//! ```
//!
//! Keys are taken where statistics say that there are few groups: of several keys, or texts, some thousands. Of many groups the first
//! step takes runs, if the rows of a group lie side by side; a single step becomes two then.
//!
//! The functions are the planner's, so that results and errors are as they were; the rule changes how rows find their groups. It also
//! works decimals out in 64 bits where they fit ([`super::short_decimals`], [`batch_sums`]), looks for the parts of a LIKE one after the
//! other ([`super::like_parts`]), and compares beginnings of texts where they are ([`super::prefixes`]). It comes last, when nothing asks
//! for the operator by its type any more.
//! `SET lstore.own_operators = off` leaves plans as they are.
mod batch_sums;
mod dense;
mod exec;
mod runs;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode, AggregateMode};
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::like_parts::LikeParts;
use super::options::PlanOptions;
use super::prefixes::Prefixes;
use super::short_decimals::ShortDecimals;
use crate::access::totals::SUM;
use crate::syntax::walk::WalkTree;
use dense::DenseKeys;
pub(super) use exec::DirectGroupsExec;
use runs::are_runs;
use words::WordKeys;

/// So many groups by several keys are few.
const GROUPS_FEW: usize = 4096;

/// So many by one integer key, whose numbers the second cache still holds. With 750,000 orders, Q18 of TPC-H takes a third longer than
/// by the library's table.
const GROUPS_BY_INTEGER: usize = 1 << 18;

/// More of them are taken as runs where they are some.
const GROUPS_BEFORE_RUNS: usize = 1 << 16;

/// Puts our own operators and expressions in the place of the library's.
#[derive(Debug)]
pub(crate) struct OwnOperators {
    /// whether a function is the one that takes a part of a text by its place
    pub(crate) is_substring: fn(&ScalarUDF) -> bool,
}

impl PhysicalOptimizerRule for OwnOperators {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let options = PlanOptions::of(config);
        // These keep their groups in memory.
        if !options.own_operators || options.spilling_bytes > 0 {
            return Ok(plan);
        }
        plan.change_up(|node| Ok(self.replaced(&node)?.map_or_else(|| Transformed::no(node), Transformed::yes)))
            .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "own_operators"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl OwnOperators {
    fn replaced(&self, node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            return of_projection(projection);
        }
        if let Some(filter) = node.downcast_ref::<FilterExec>() {
            return self.of_filter(filter);
        }
        let Some(aggregate) = node.downcast_ref::<AggregateExec>() else { return Ok(None) };
        let short = with_short_arguments(aggregate);
        let aggregate = short.as_ref().unwrap_or(aggregate);
        match way(aggregate)? {
            Some(Way::Runs) if *aggregate.mode() != AggregateMode::Partial => {
                return Ok(Some(Arc::new(in_two_steps(aggregate)?)));
            }
            Some(way) => return Ok(Some(Arc::new(DirectGroupsExec::new(aggregate, way)?))),
            None => {}
        }
        Ok(short.map(|short| Arc::new(short) as _))
    }

    fn of_filter(&self, filter: &FilterExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let schema = filter.input().schema();
        let changed = filter.predicate().clone().change_up(|part| {
            if let Some(parts) = LikeParts::of(&part, &schema) {
                return Ok(Transformed::yes(Arc::new(parts) as _));
            }
            let prefixes = Prefixes::of(&part, &schema, self.is_substring);
            Ok(prefixes.map_or_else(|| Transformed::no(part), |prefixes| Transformed::yes(Arc::new(prefixes) as _)))
        })?;
        if !changed.transformed {
            return Ok(None);
        }
        Ok(Some(Arc::new(FilterExecBuilder::from(filter).with_predicate(changed.data).build()?)))
    }
}

/// The aggregate of one step as two: one of runs, and one that brings those of a group together.
fn in_two_steps(aggregate: &AggregateExec) -> Result<AggregateExec> {
    let step = |mode, groups, input| {
        let (functions, filters) = (aggregate.aggr_expr().to_vec(), aggregate.filter_expr().to_vec());
        AggregateExec::try_new(mode, groups, functions, filters, input, aggregate.input_schema())
    };
    let groups = aggregate.group_expr();
    let partial = step(AggregateMode::Partial, groups.clone(), aggregate.input().clone())?;
    let runs = Arc::new(DirectGroupsExec::new(&partial, Way::Runs)?);
    let last = match aggregate.mode() {
        AggregateMode::SinglePartitioned => AggregateMode::FinalPartitioned,
        _ => AggregateMode::Final,
    };
    step(last, groups.as_final(), runs)
}

/// The expression worked out in 64 bits where its numbers fit; `None` if it is not of that kind.
fn short(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Arc<dyn PhysicalExpr>> {
    ShortDecimals::of(expr, schema).map(|short| Arc::new(short) as _)
}

fn of_projection(projection: &ProjectionExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let schema = projection.input().schema();
    let mut is_changed = false;
    let exprs = projection.expr().iter().map(|known| {
        let short = short(&known.expr, &schema);
        is_changed |= short.is_some();
        ProjectionExpr { expr: short.unwrap_or_else(|| known.expr.clone()), alias: known.alias.clone() }
    });
    let exprs: Vec<ProjectionExpr> = exprs.collect();
    if !is_changed {
        return Ok(None);
    }
    // What is known of the columns beside their types, such as a length, stays.
    let (input, schema) = (projection.input().clone(), projection.schema());
    Ok(Some(Arc::new(ProjectionExec::try_new_with_schema_metadata(exprs, input, &schema)?)))
}

/// The aggregate with arguments in 64 bits; `None` if it has none of that kind.
fn with_short_arguments(aggregate: &AggregateExec) -> Option<AggregateExec> {
    if aggregate.mode().input_mode() != AggregateInputMode::Raw {
        return None;
    }
    let schema = aggregate.input().schema();
    let mut is_changed = false;
    let functions = aggregate.aggr_expr().iter().map(|function| {
        let parts = function.all_expressions();
        let arguments: Vec<_> = parts.args.iter().map(|argument| short(argument, &schema)).collect();
        if arguments.iter().all(Option::is_none) {
            return function.clone();
        }
        let arguments = arguments.into_iter().zip(parts.args).map(|(short, known)| short.unwrap_or(known)).collect();
        match function.with_new_expressions(arguments, parts.order_by_exprs) {
            Some(changed) => {
                is_changed = true;
                Arc::new(changed)
            }
            None => function.clone(),
        }
    });
    let functions: Vec<_> = functions.collect();
    is_changed.then(|| aggregate.with_new_aggr_exprs(functions))
}

/// How rows find their groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By their keys.
    Keys,
    /// By the row before.
    Runs,
}

/// How rows find their groups directly; `None` if they don't.
fn way(aggregate: &AggregateExec) -> Result<Option<Way>> {
    let groups = aggregate.group_expr();
    let is_plain = groups.is_single()
        && !groups.is_empty()
        && !groups.has_grouping_set()
        && aggregate.limit_options().is_none()
        && *aggregate.input_order_mode() == InputOrderMode::Linear;
    if !is_plain || !aggregate.aggr_expr().iter().all(|function| is_known(function)) {
        return Ok(None);
    }
    let schema = aggregate.input().schema();
    let types = groups.expr().iter().map(|(key, _)| key.data_type(&schema)).collect::<Result<Vec<DataType>>>()?;
    let is_one_integer = types.len() == 1 && DenseKeys::takes(&types[0]);
    let groups_max = match aggregate.mode() {
        AggregateMode::PartialReduce => return Ok(None),
        _ if is_one_integer => GROUPS_BY_INTEGER,
        // States of many groups come by one integer key alone.
        AggregateMode::Final | AggregateMode::FinalPartitioned => return Ok(None),
        AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned => GROUPS_FEW,
    };
    let groups = groups_of(aggregate)?;
    if groups.is_some_and(|groups| groups > GROUPS_BEFORE_RUNS) && are_runs(aggregate) {
        return Ok(Some(Way::Runs));
    }
    let are_few = groups.is_some_and(|groups| groups <= groups_max);
    Ok((are_few && (is_one_integer || WordKeys::takes(&types))).then_some(Way::Keys))
}

/// How many groups there are at most, as far as is known. Of many, the library's table is as fast.
fn groups_of(aggregate: &AggregateExec) -> Result<Option<usize>> {
    let known = StatisticsContext::new().compute(aggregate.input().as_ref(), &StatisticsArgs::new())?;
    let mut values = aggregate.group_expr().expr().iter().map(|(key, _)| {
        let column = known.column_statistics.get(key.downcast_ref::<Column>()?.index())?;
        // NULL is a value, too.
        Some(column.distinct_count.get_value()?.saturating_add(1))
    });
    Ok(values.try_fold(1, |groups: usize, values| Some(groups.saturating_mul(values?))))
}

/// Whether the function has states for many groups, whatever the order of the rows.
fn is_known(function: &AggregateFunctionExpr) -> bool {
    matches!(function.fun().name(), SUM | "avg" | "count" | "min" | "max")
        && function.order_bys().is_empty()
        && !function.is_distinct()
        && function.groups_accumulator_supported()
}
