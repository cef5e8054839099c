//! Filters that pass all columns on, where two columns below them have one name.
//!
//! A filter may leave columns out itself. The library then moves a projection below such a filter, and looks for the columns
//! of the condition in the projection by their names and places: those of the condition are places below the filter, those
//! of the projection places above it. With two columns of one name, as in a join, it may find the other one. So such a
//! filter becomes a filter and a projection, before projections are moved.
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::syntax::walk::WalkTree;

/// See the module.
#[derive(Debug)]
pub(crate) struct WholeFilters;

impl PhysicalOptimizerRule for WholeFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.change_up(|node| {
            Ok(match split(&node)? {
                Some(replaced) => Transformed::yes(replaced),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "whole_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A projection above the filter without its own.
fn split(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(None) };
    let Some(kept) = filter.projection() else { return Ok(None) };
    let below = filter.input().schema();
    let mut seen = HashSet::new();
    if below.fields().iter().all(|field| seen.insert(field.name())) {
        return Ok(None);
    }
    let columns = kept.iter().map(|at| {
        let name = below.field(*at).name();
        ProjectionExpr { expr: Arc::new(Column::new(name, *at)) as Arc<dyn PhysicalExpr>, alias: name.clone() }
    });
    let columns: Vec<ProjectionExpr> = columns.collect();
    let whole = Arc::new(FilterExecBuilder::from(filter).apply_projection(None)?.build()?);
    Ok(Some(Arc::new(ProjectionExec::try_new(columns, whole)?)))
}
