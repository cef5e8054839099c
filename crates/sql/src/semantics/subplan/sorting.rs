//! Subqueries in `ORDER BY` that name columns which the query does not select: they are selected until it is ordered.
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, Sort};

use super::scope::{self, subquery_of};
use crate::syntax::walk::WalkTree;

/// A sort over its projection with such columns; any other node stays. The second is what takes them away again.
pub(super) fn widened(node: LogicalPlan) -> Result<(LogicalPlan, Option<Vec<Column>>)> {
    let LogicalPlan::Sort(sort) = &node else { return Ok((node, None)) };
    let LogicalPlan::Projection(projection) = sort.input.as_ref() else { return Ok((node, None)) };
    let mut missing: Vec<Column> = Vec::new();
    for by in &sort.expr {
        by.expr.look(|expr| {
            if let Some(subquery) = subquery_of(expr) {
                for (_, column) in scope::open_references(&subquery.subquery)? {
                    let is_missing = !projection.schema.has_column(&column) && !missing.contains(&column);
                    if is_missing && projection.input.schema().has_column(&column) {
                        missing.push(column);
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    if missing.is_empty() {
        return Ok((node, None));
    }
    let selected = projection.schema.columns();
    let exprs = projection.expr.iter().cloned().chain(missing.into_iter().map(Expr::Column)).collect();
    let wider = Projection::try_new(exprs, projection.input.clone())?;
    let sort = Sort { input: Arc::new(LogicalPlan::Projection(wider)), ..sort.clone() };
    Ok((LogicalPlan::Sort(sort), Some(selected)))
}

/// Narrows the rows to these columns.
pub(super) fn narrowed(node: LogicalPlan, columns: Option<Vec<Column>>) -> Result<LogicalPlan> {
    match columns {
        Some(columns) => LogicalPlanBuilder::from(node).project(columns.into_iter().map(Expr::Column))?.build(),
        None => Ok(node),
    }
}
