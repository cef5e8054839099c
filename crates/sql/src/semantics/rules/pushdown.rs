//! Keeps conditions where they belong: above aggregates that have a row even where there is none below them, and above
//! joins of columns with the same name; and has their constants in one form, by which the library tells them apart.
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, ScalarUDF};
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_join::EliminateJoin;
use datafusion::optimizer::propagate_empty_relation::PropagateEmptyRelation;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::careful::OpenRowsOnly;
use super::cross_joins::FewCrossJoins;
use super::dependencies::{CarefulJoins, TrueDependencies};
use super::distinct_keys::DistinctKeys;
use super::distinct_windows::DistinctWindows;
use super::filters_first::FiltersFirst;
use super::lists::VaryingLists;
use super::offsets::OffsetsInOrder;
use super::outer_joins::NeedlessOuterJoins;
use super::plain_inputs::PlainInputs;
use super::unions::EmptyParts;
use super::whole_filters::WholeFilters;
use super::whole_orders::WholeOrders;
use crate::access::nearest::NearestFirst;
use crate::access::spatial_join::SpatialJoins;
use crate::access::totals::AggregateScans;
use crate::functions::typed::substring;
use crate::optimizer::{
    CopyPlans, DistinctInOneStep, JoinMethod, JoinOrder, Offloading, OwnOperators, RunTimeFilters, SpillingOperators,
};
use crate::syntax::walk::WalkTree;

/// The library's rules, in which some have another in their place, and some of our own. Comparisons with `ANY` and `ALL` of a
/// subquery are calls by then, so that the rule for them would look through each plan in vain.
pub(crate) fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let careful = |rule: Arc<dyn OptimizerRule + Send + Sync>| match rule.name() {
        "push_down_filter" => Arc::new(CarefulPushDown(PushDownFilter::new())) as Arc<dyn OptimizerRule + Send + Sync>,
        "propagate_empty_relation" => Arc::new(EmptyParts(PropagateEmptyRelation::new())),
        "eliminate_cross_join" => Arc::new(FewCrossJoins(EliminateCrossJoin::new())),
        "eliminate_join" => Arc::new(CarefulJoins(EliminateJoin::new())),
        _ => rule,
    };
    let last = Arc::new(VaryingLists) as Arc<_>;
    let mut rules: Vec<Arc<_>> = Optimizer::new().rules.into_iter().map(careful).chain([last]).collect();
    // The first is only asked where it is switched on; the others are about fields of files, of which tables have none.
    let needless = ["filter_null_join_keys", "extract_leaf_expressions", "push_down_leaf_projections"];
    rules.retain(|rule| rule.name() != "rewrite_set_comparison" && !needless.contains(&rule.name()));
    let of_common = rules.iter().position(|rule| rule.name() == "common_sub_expression_eliminate");
    rules.insert(of_common.unwrap_or_default(), Arc::new(DistinctWindows));
    let of_distinct = rules.iter().position(|rule| rule.name() == "replace_distinct_aggregate");
    rules.insert(of_distinct.unwrap_or_default(), Arc::new(DistinctKeys));
    for name in ["replace_distinct_aggregate", "eliminate_duplicated_expr", "optimize_projections"] {
        let by_dependencies = rules.iter().position(|rule| rule.name() == name);
        rules.insert(by_dependencies.unwrap_or_default(), Arc::new(TrueDependencies));
    }
    // Once conditions of tables that stand beside each other are keys of their joins.
    let of_outer = rules.iter().position(|rule| rule.name() == "eliminate_outer_join");
    rules.insert(of_outer.unwrap_or_default(), Arc::new(NeedlessOuterJoins));
    // While columns that are asked for below are still there, and before those that are not are taken out.
    let of_columns = rules.iter().rposition(|rule| rule.name() == "true_dependencies");
    rules.insert(of_columns.unwrap_or_default(), Arc::new(JoinOrder));
    rules
}

/// The library's rules for physical plans but for the one that finds the columns of a filter by name: where both sides
/// of a join have a column `c`, `a.c < b.c` came out as `b.c < b.c`. Filters are where they belong by then. And some
/// of our own. `is_steady` is as [`RunTimeFilters`] asks it.
pub(crate) fn physical_rules(is_steady: fn(&ScalarUDF) -> bool) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    // What it brings down while a plan runs, no scan takes.
    rules.retain(|rule| rule.name() != "FilterPushdown" && rule.name() != "FilterPushdown(Post)");
    // Before sorts are moved, and after.
    let sorting = rules.iter().position(|rule| rule.name() == "EnsureRequirements").unwrap_or_default();
    // What it leaves out is not laid out.
    rules.insert(sorting, Arc::new(DistinctInOneStep));
    // What is in its place has one partition, in no order.
    rules.insert(sorting, Arc::new(Offloading));
    rules.insert(sorting, Arc::new(OffsetsInOrder));
    rules.insert(sorting, Arc::new(PlainInputs));
    // What it makes of a join asks for sorts.
    rules.insert(sorting, Arc::new(JoinMethod));
    rules.insert(sorting, Arc::new(SpatialJoins));
    let moving = |rule: &Arc<dyn PhysicalOptimizerRule + Send + Sync>| rule.name() == "ProjectionPushdown";
    if let Some(last) = rules.iter().rposition(moving) {
        rules.insert(last + 1, Arc::new(FiltersFirst));
    }
    for at in (0..rules.len()).rev().filter(|at| moving(&rules[*at])).collect::<Vec<_>>() {
        rules.insert(at, Arc::new(WholeFilters));
    }
    let ensuring = rules.iter().find(|rule| rule.name() == "EnsureRequirements").cloned();
    if let (Some(ensuring), Some(check)) = (ensuring, rules.iter_mut().find(|rule| rule.name() == "SanityCheckPlan")) {
        *check = Arc::new(EnsuredAgain { ensuring, check: check.clone() });
    }
    if let Some(known) = rules.iter_mut().find(|rule| rule.name() == "aggregate_statistics") {
        *known = Arc::new(OfUnfiltered(known.clone()));
    }
    rules.push(Arc::new(WholeOrders));
    // First of all, while a scan stands directly below its aggregate.
    rules.insert(0, Arc::new(AggregateScans));
    rules.push(Arc::new(OpenRowsOnly));
    rules.push(Arc::new(NearestFirst));
    // What stands behind it is done for each run of a plan that is kept.
    rules.push(Arc::new(CopyPlans));
    // Nothing may change a plan any more that has scans wait for joins.
    rules.push(Arc::new(RunTimeFilters { is_steady }));
    // But for operators that do what those in their places did.
    rules.push(Arc::new(OwnOperators { is_substring: |function| *function == substring() }));
    rules.push(Arc::new(SpillingOperators));
    rules
}

/// The library's last check, and the rule that sees to what it checks once more where it fails: where a sort below a join is
/// left out, what is above it was laid out for one partition and gets several.
#[derive(Debug)]
struct EnsuredAgain {
    ensuring: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
    check: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl PhysicalOptimizerRule for EnsuredAgain {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        match self.check.optimize(plan.clone(), config) {
            Ok(plan) => Ok(plan),
            Err(_) => self.check.optimize(self.ensuring.optimize(plan, config)?, config),
        }
    }

    fn name(&self) -> &str {
        self.check.name()
    }

    fn schema_check(&self) -> bool {
        self.check.schema_check()
    }
}

/// The library's replacement of aggregates by what is known of their input, but for plans with `FILTER`: it would pass by
/// such an aggregate, and put one from below it in its place.
#[derive(Debug)]
struct OfUnfiltered(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for OfUnfiltered {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let is_filtered = |node: &AggregateExec| node.filter_expr().iter().any(Option::is_some);
        let has_filter = plan.has(|node| Ok(node.downcast_ref::<AggregateExec>().is_some_and(is_filtered)))?;
        if has_filter { Ok(plan) } else { self.0.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Pushes filters down as the library does, but for `HAVING (SELECT false)` and `HAVING max(a) = 1 AND max(a) = 2`: below the
/// aggregate they would take away the rows and leave the group.
#[derive(Debug)]
struct CarefulPushDown(PushDownFilter);

impl OptimizerRule for CarefulPushDown {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = &plan else { return self.0.rewrite(plan, config) };
        if let LogicalPlan::Filter(inner) = filter.input.as_ref() {
            return self.rewrite(one_filter(filter, inner)?, config);
        }
        if has_empty_group(&filter.input) {
            return Ok(Transformed::no(plan));
        }
        match plainly_compared(filter)? {
            Some(plain) => self.0.rewrite(plain, config).map(|done| Transformed::yes(done.data)),
            None => self.0.rewrite(plan, config),
        }
    }
}

/// A filter whose conditions have their constants on the right, without metadata, zeros without a sign. The library takes
/// `5 = k` and `k = 5` for two values of which `k` can be but one, and of `k >= 5` and `5 < k` it may drop the second.
fn plainly_compared(filter: &Filter) -> Result<Option<LogicalPlan>> {
    let conditions = split_conjunction(&filter.predicate);
    let plain: Vec<Option<Expr>> = conditions.iter().map(|condition| plain(condition)).collect();
    if plain.iter().all(Option::is_none) {
        return Ok(None);
    }
    let conditions = plain.into_iter().zip(conditions).map(|(plain, old)| plain.unwrap_or_else(|| old.clone()));
    let Some(condition) = conjunction(conditions) else { return Ok(None) };
    Filter::try_new(condition, filter.input.clone()).map(|filter| Some(LogicalPlan::Filter(filter)))
}

/// A comparison of a column with a constant in this form, if it is not in it.
fn plain(condition: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    let (column, op, value, metadata) = match (left.as_ref(), right.as_ref()) {
        (Expr::Literal(value, metadata), Expr::Column(_)) => (right, op.swap()?, value, metadata),
        (Expr::Column(_), Expr::Literal(value, metadata)) => (left, *op, value, metadata),
        _ => return None,
    };
    let unsigned = match value {
        ScalarValue::Float64(Some(zero)) if *zero == 0.0 => ScalarValue::Float64(Some(0.0)),
        ScalarValue::Float32(Some(zero)) if *zero == 0.0 => ScalarValue::Float32(Some(0.0)),
        other => other.clone(),
    };
    if std::ptr::eq(column, left) && metadata.is_none() && unsigned == *value {
        return None;
    }
    let value = Box::new(Expr::Literal(unsigned, None));
    Some(Expr::BinaryExpr(BinaryExpr { left: column.clone(), op, right: value }))
}

/// A filter above another as one, which asks the conditions of the inner one first.
fn one_filter(outer: &Filter, inner: &Filter) -> Result<LogicalPlan> {
    let mut conditions = split_conjunction(&inner.predicate);
    for condition in split_conjunction(&outer.predicate) {
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    let input = inner.input.clone();
    Ok(match conjunction(conditions.into_iter().cloned()) {
        Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, input)?),
        None => input.as_ref().clone(),
    })
}

/// Whether a plan is an aggregate that has a group without rows, too: no column is one of all of its groups then, and a condition
/// that comes to false must not go below it.
fn has_empty_group(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = plan else { return false };
    aggregate.group_expr.iter().all(|group| match group {
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().any(Vec::is_empty),
        Expr::GroupingSet(GroupingSet::Cube(_) | GroupingSet::Rollup(_)) => true,
        _ => false,
    })
}
