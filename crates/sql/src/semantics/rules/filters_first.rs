//! Filters below what is computed of their rows.
//!
//! The library moves a projection below a filter where that leaves columns out, whatever the projection computes. An expression that fails
//! is then worked out for rows that the condition does not take, as in `SELECT id, 1 / (a + b) FROM t WHERE abs(id) <> 1`. So such a
//! projection is brought back above the filter, once none is moved any more; what stands between the two passes rows on as they are.
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::syntax::walk::WalkTree;

/// See the module.
#[derive(Debug)]
pub(crate) struct FiltersFirst;

impl PhysicalOptimizerRule for FiltersFirst {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.change_up(|node| {
            Ok(match lifted(&node)? {
                Some(replaced) => Transformed::yes(replaced),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "filters_first"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The projection that stands below a filter above it.
fn lifted(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(None) };
    let (mut between, mut below) = (Vec::new(), filter.input());
    while passes_on(below) {
        between.push(below.clone());
        below = below.children()[0];
    }
    let Some(projection) = below.downcast_ref::<ProjectionExec>() else { return Ok(None) };
    let is_computed = |given: &ProjectionExpr| !given.expr.is::<Column>() && !given.expr.is::<Literal>();
    let column = |column: &Column| projection.expr()[column.index()].expr.downcast_ref::<Column>().cloned();
    let is_plain = collect_columns(filter.predicate()).iter().all(|of| column(of).is_some());
    if !is_plain || !projection.expr().iter().any(is_computed) {
        return Ok(None);
    }
    let predicate = filter.predicate().clone().change_up(|expr| {
        Ok(match expr.downcast_ref::<Column>().and_then(column) {
            Some(column) => Transformed::yes(Arc::new(column) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(expr),
        })
    })?;
    let mut input = projection.input().clone();
    for node in between.into_iter().rev() {
        input = replace_children_if_necessary(node, vec![input])?;
    }
    let whole = FilterExecBuilder::from(filter).with_input(input).with_predicate(predicate.data);
    let whole = Arc::new(whole.apply_projection(None)?.build()?);
    let given = match filter.projection() {
        None => projection.expr().to_vec(),
        Some(kept) => kept.iter().map(|at| projection.expr()[*at].clone()).collect(),
    };
    Ok(Some(Arc::new(ProjectionExec::try_new_with_schema_metadata(given, whole, &node.schema())?)))
}

/// Whether an operator gives the rows that it gets, whatever their columns are.
fn passes_on(node: &Arc<dyn ExecutionPlan>) -> bool {
    let is_any = |node: &RepartitionExec| matches!(node.partitioning(), Partitioning::RoundRobinBatch(_));
    node.is::<CooperativeExec>() || node.downcast_ref::<RepartitionExec>().is_some_and(is_any)
}
