//! What a physical plan is likely to cost: of each operator what has been spent before its first row and in all, its rows and their
//! bytes, in PostgreSQL's form as `EXPLAIN (OPERATORS, COSTS)` shows it.
//!
//! ```text
//! HashJoinExec: mode=CollectLeft, ...  (cost=12.50..98.25 rows=1000 width=16)
//!   ScanExec: table=a, ...  (cost=0.00..8.75 rows=500 width=8)
//! ```
use std::sync::Arc;

use costs::{CostModel, Side};
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, displayable};

use super::direct_groups::DirectGroupsExec;
use super::join_method::{side, width};
use super::spilling::{SpillingGroupsExec, SpillingJoinExec};
use crate::access::scan::ScanExec;

/// The rows of an operator of which nothing is known.
const GUESS_OF_ROWS: f64 = 1_000.0;

/// What an operator and all below it cost.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// before its first row
    pub(crate) startup: f64,
    pub(crate) total: f64,
    /// its rows and their bytes
    pub(crate) given: Side,
}

/// The plan, an operator a line, with its costs.
pub(crate) fn explained(plan: &Arc<dyn ExecutionPlan>, model: &CostModel) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    write(plan, model, 0, &mut lines)?;
    Ok(lines)
}

#[recursive::recursive]
fn write(plan: &Arc<dyn ExecutionPlan>, model: &CostModel, depth: usize, lines: &mut Vec<String>) -> Result<Cost> {
    let at = lines.len();
    lines.push(String::new());
    let mut inputs = Vec::new();
    for child in plan.children() {
        inputs.push(write(child, model, depth + 1, lines)?);
    }
    let cost = cost(plan, &inputs, model)?;
    let Cost { startup, total, given } = cost;
    let operator = displayable(plan.as_ref()).one_line().to_string();
    lines[at] = format!(
        "{:indent$}{}  (cost={startup:.2}..{total:.2} rows={:.0} width={:.0})",
        "",
        operator.trim_end(),
        given.rows,
        given.width,
        indent = 2 * depth
    );
    Ok(cost)
}

/// What an operator costs whose inputs cost this.
pub(crate) fn cost(plan: &Arc<dyn ExecutionPlan>, inputs: &[Cost], model: &CostModel) -> Result<Cost> {
    let known = side(plan.as_ref())?;
    let of_inputs = inputs.iter().map(|input| input.given.rows).reduce(f64::max).unwrap_or(GUESS_OF_ROWS);
    let given = known.unwrap_or(Side { rows: of_inputs, width: width(&plan.schema()) });
    // The library's sum of nothing is -0.
    let startup = inputs.iter().fold(0.0, |sum, input| sum + input.startup);
    let total = inputs.iter().fold(0.0, |sum, input| sum + input.total);
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Ok(Cost { startup: 0.0, total: scan.cost(given.rows, model), given });
    }
    if let [input] = inputs
        && plan.is::<SortExec>()
    {
        let sorted = input.total + model.cpu_sort(input.given.rows) + model.sort_io(input.given.pages());
        return Ok(Cost { startup: sorted, total: sorted, given });
    }
    if let [input] = inputs
        && let Some(is_dealt_out) = whole_groups(plan)
    {
        let dealt_out = if is_dealt_out { model.dealt_out_io(input.given.pages(), 0.0) } else { 0.0 };
        let grouped = input.total + dealt_out + model.cpu_hashjoin(given.rows, input.given.rows, 0.0);
        return Ok(Cost { startup: grouped, total: grouped + model.cpu_scan(given.rows, 0.0), given });
    }
    let [inner, outer] = inputs else {
        return Ok(Cost { startup, total: total + model.cpu_scan(given.rows, 0.0), given });
    };
    if plan.is::<HashJoinExec>() {
        let built = inner.total + model.cpu_hashjoin(inner.given.rows, 0.0, 0.0);
        let joined = model.hashjoin(inner.given, outer.given, given.rows);
        return Ok(Cost { startup: built + outer.startup, total: total + joined, given });
    }
    if plan.is::<SpillingJoinExec>() {
        // Nothing is given before all of the inner side is in files, and then all of the outer one.
        let read = inner.total + outer.total + model.dealt_out_io(inner.given.pages(), outer.given.pages());
        let joined = model.cpu_hashjoin(inner.given.rows, outer.given.rows, given.rows);
        return Ok(Cost { startup: read, total: read + joined, given });
    }
    if plan.is::<SortMergeJoinExec>() {
        // Its sorts are operators of their own.
        let merged =
            model.cpu_scan(given.rows, 0.0) + model.cpu_hashjoin(0.0, inner.given.rows + outer.given.rows, 0.0);
        return Ok(Cost { startup, total: total + merged, given });
    }
    if plan.is::<NestedLoopJoinExec>() || plan.is::<CrossJoinExec>() {
        let joined = model.nested_loops(inner.given, outer.given, given.rows);
        return Ok(Cost { startup: inner.total + outer.startup, total: total + joined, given });
    }
    Ok(Cost { startup, total: total + model.cpu_scan(given.rows, 0.0), given })
}

/// Whether a grouping that reads all its input before it gives a row deals that out to files; `None` of another operator.
fn whole_groups(plan: &Arc<dyn ExecutionPlan>) -> Option<bool> {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return (*aggregate.input_order_mode() == InputOrderMode::Linear).then_some(false);
    }
    (plan.is::<DirectGroupsExec>() || plan.is::<SpillingGroupsExec>()).then(|| plan.is::<SpillingGroupsExec>())
}
