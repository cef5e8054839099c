//! What a node's expressions may name.
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::utils::merge_schema;

use crate::syntax::walk::WalkPlan;

/// Whether a node has expressions. Tables that stand beside each other have none, and many columns.
pub(crate) fn has_expressions(plan: &LogicalPlan) -> Result<bool> {
    let looked = plan.look_at_expressions(|_| Ok(TreeNodeRecursion::Stop))?;
    Ok(looked == TreeNodeRecursion::Stop)
}

/// The columns that a plan's expressions may name. Where one schema has them already, it is not copied: most nodes have one
/// input, and a scan is without expressions until conditions are pushed down to it.
pub(crate) fn visible(plan: &LogicalPlan) -> Result<DFSchemaRef> {
    Ok(match plan {
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() => plan.schema().clone(),
        LogicalPlan::TableScan(scan) => {
            Arc::new(DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?)
        }
        _ => match plan.inputs()[..] {
            [input] => input.schema().clone(),
            ref inputs => Arc::new(merge_schema(inputs)),
        },
    })
}
