//! Joins and groupings that go to files where their rows are larger than their part of the query's memory.
//!
//! ```text
//! run 1   the library's operators; ours of `direct_groups`      ─ out of memory ─┐
//! run 2   joins by `join`, the library's groupings              ─ out of memory ─┤ before the first row was given
//! run 3   joins by `join`, groupings by `groups`                ─ out of memory ─▶ 53200
//! ```
//!
//! The library's hash join fails where its build side does not fit. Its grouping would go to files by itself, and merge them in the end,
//! for which it needs memory that depends on how long its rows are: with a few megabytes, or keys of many kilobytes, it fails in the middle
//! of its rows. So it gets no files ([`crate::state::query_memory`]) but in run 3. The planner plans the statement again with the
//! operators of this module (`PlanOptions::spilling_bytes`, `spills_groups`); where a grouping was too large run 3 follows run 1. Half of
//! the query's memory is theirs, in equal parts. What one key has is not divided by any hash: if that does not fit, the statement fails.
//!
//! With `lstore.operator_memory` the planner knows before what an operator is to hold: a join whose build side is likely to be larger
//! goes to files in run 1, as the model of costs counts it.
//!
//! A join that has to know all keys of its build side at once (`NOT IN`) stays as it is, and so does a grouping by several sets of keys
//! whose rows were not grouped before.
mod groups;
mod join;
mod join_work;
mod partitions;
mod streams;

use std::sync::Arc;

use costs::{CostModel, PAGE_BYTES};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::join_method::side;
use super::options::PlanOptions;
use crate::access::scan_costs::PlanCosts;
use crate::syntax::walk::WalkTree;
pub(super) use groups::SpillingGroupsExec;
pub(super) use join::SpillingJoinExec;

/// What an operator may hold at the least, whatever the query may take.
const SHARE_MIN_BYTES: usize = 64 << 10;

/// Puts operators that spill in the place of those that do not.
#[derive(Debug)]
pub(crate) struct SpillingOperators;

impl PhysicalOptimizerRule for SpillingOperators {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let options = PlanOptions::of(config);
        if options.spilling_bytes > 0 {
            return after_failing(plan, &options);
        }
        let model = PlanCosts::of(config);
        match model.operator_pages {
            Some(pages) => as_expected(plan, &model, (pages * PAGE_BYTES) as usize),
            None => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "spilling_operators"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// All that can spill does.
fn after_failing(plan: Arc<dyn ExecutionPlan>, options: &PlanOptions) -> Result<Arc<dyn ExecutionPlan>> {
    let is_replaced = |node: &Arc<dyn ExecutionPlan>| {
        join::divisible(node).is_some() || (options.spills_groups && groups::divisible(node).is_some())
    };
    let mut parts = 0;
    plan.has(|node| {
        parts += if is_replaced(node) { node.output_partitioning().partition_count() } else { 0 };
        Ok(false)
    })?;
    let share = (options.spilling_bytes / 2 / parts.max(1)).max(SHARE_MIN_BYTES);
    plan.change_up(|node| {
        if let Some(join) = join::divisible(&node) {
            return Ok(Transformed::yes(spilling_join(join, share)?));
        }
        let keys = groups::divisible(&node).map(|aggregate| aggregate.group_expr().input_exprs());
        match keys.filter(|_| options.spills_groups) {
            Some(keys) => Ok(Transformed::yes(Arc::new(SpillingGroupsExec::new(node, keys, share)) as _)),
            None => Ok(Transformed::no(node)),
        }
    })
    .data()
}

/// The joins spill of which the model counts that they write (its equations 35 and 36), and hold what it takes them to hold.
fn as_expected(plan: Arc<dyn ExecutionPlan>, model: &CostModel, bytes: usize) -> Result<Arc<dyn ExecutionPlan>> {
    plan.change_up(|node| {
        let Some(join) = join::divisible(&node) else { return Ok(Transformed::no(node)) };
        let is_large = side(join.left().as_ref())?.is_some_and(|inner| model.is_too_large(inner.pages()));
        let parts = join.right().output_partitioning().partition_count().max(1);
        match is_large {
            true => Ok(Transformed::yes(spilling_join(join, (bytes / parts).max(SHARE_MIN_BYTES))?)),
            false => Ok(Transformed::no(node)),
        }
    })
    .data()
}

fn spilling_join(join: &HashJoinExec, share: usize) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(Arc::new(SpillingJoinExec::new(join.builder().build()?, share)))
}

/// Whether plans with these options may have joins that spill, which give their rows in no order.
pub(crate) fn may_spill(config: &ConfigOptions) -> bool {
    PlanOptions::of(config).spilling_bytes > 0 || PlanCosts::of(config).operator_pages.is_some()
}
