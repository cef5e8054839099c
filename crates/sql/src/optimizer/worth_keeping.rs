//! Whether the rows of a query that is named several times are worth keeping.
//!
//! A join may give more rows than its tables have, as one of a table with itself on a key of few values. To keep them all takes longer
//! than to work out those that are asked for: where the query stands in the place of its name, the conditions of its readers, the keys of
//! their joins and the columns that nobody wants reach its tables.
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use super::estimate::{Estimate, of_node};
use crate::interrupt;

/// So few rows are kept in any case.
const FEW_ROWS: f64 = 10_000.0;

/// Whether a query, analyzed and not yet optimized, is likely to be worked out once for less than for each of its readers.
pub(crate) fn is_worth_keeping(query: &LogicalPlan) -> Result<bool> {
    let mut rows_read = 0.0;
    let given = joined(query, &mut rows_read)?;
    Ok(given.is_none_or(|given| given.rows <= rows_read.max(FEW_ROWS)))
}

/// The estimate of a query that does nothing but join rows; and the rows of its tables.
#[recursive::recursive]
fn joined(plan: &LogicalPlan, rows_read: &mut f64) -> Result<Option<Estimate>> {
    interrupt::check_plan()?;
    let is_plain = matches!(
        plan,
        LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::TableScan(_)
    );
    if !is_plain {
        return Ok(None);
    }
    let mut inputs = Vec::new();
    for input in plan.inputs() {
        let Some(estimate) = joined(input, rows_read)? else { return Ok(None) };
        inputs.push(estimate);
    }
    let estimate = of_node(plan, &inputs);
    if inputs.is_empty() {
        *rows_read += estimate.whole;
    }
    Ok(Some(estimate))
}
