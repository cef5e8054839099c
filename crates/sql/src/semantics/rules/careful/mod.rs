//! Expressions that fail for rows that they need not be worked out for.
//!
//! The library works out an operand of `AND`, `OR` and `IN` for all rows of a batch, where SQL needs it for those that the
//! operands before it leave open. That is quicker, and right unless it fails: so an expression that fails is worked out
//! once more, operand by operand, for open rows only (`logic`). The conditions of a filter are then taken in PostgreSQL's
//! order, the cheap ones first (`cost`), and what one of them does not take no other sees.
//!
//! ```text
//! evaluate  ─▶  as the library does  ─▶  its value
//!                        │ error
//!                        └──────────▶  with `Logic`, `Member`, `Conditions` in place of the operators  ─▶  value or error
//! ```
//!
//! The rule comes last of all, so that no other has to know these expressions. An expression that can't fail stays as it is,
//! and so does one without such an operator.
mod cost;
mod logic;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use logic::Twice;
pub(crate) use logic::plain_of;

use crate::syntax::walk::WalkTree;

/// Puts such expressions into filters, projections, aggregates and the conditions of joins.
#[derive(Debug)]
pub(crate) struct OpenRowsOnly;

impl PhysicalOptimizerRule for OpenRowsOnly {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.change_up(|node| Ok(changed(&node)?.map_or_else(|| Transformed::no(node), Transformed::yes)))
            .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "open_rows_only"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn changed(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let Some(condition) = Twice::of_condition(filter.predicate()) else { return Ok(None) };
        return Ok(Some(Arc::new(FilterExecBuilder::from(filter).with_predicate(condition).build()?)));
    }
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        return of_projection(projection);
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        return Ok(of_aggregate(aggregate));
    }
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        let Some(filter) = of_join(join.filter()) else { return Ok(None) };
        return Ok(Some(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?)));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let Some(filter) = of_join(join.filter()) else { return Ok(None) };
        return Ok(Some(Arc::new(HashJoinExecBuilder::from(join).with_filter(Some(filter)).build()?)));
    }
    Ok(None)
}

fn of_projection(projection: &ProjectionExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let careful: Vec<Option<Arc<dyn PhysicalExpr>>> =
        projection.expr().iter().map(|one| Twice::of(&one.expr)).collect();
    if careful.iter().all(Option::is_none) {
        return Ok(None);
    }
    let exprs = projection.expr().iter().zip(careful).map(|(one, careful)| ProjectionExpr {
        expr: careful.unwrap_or_else(|| one.expr.clone()),
        alias: one.alias.clone(),
    });
    let (input, schema) = (projection.input().clone(), projection.schema());
    Ok(Some(Arc::new(ProjectionExec::try_new_with_schema_metadata(exprs.collect::<Vec<_>>(), input, &schema)?)))
}

fn of_aggregate(aggregate: &AggregateExec) -> Option<Arc<dyn ExecutionPlan>> {
    let mut is_changed = false;
    let calls: Vec<Arc<AggregateFunctionExpr>> = aggregate
        .aggr_expr()
        .iter()
        .map(|call| {
            let all = call.all_expressions();
            let careful: Vec<_> = all.args.iter().map(Twice::of).collect();
            if careful.iter().all(Option::is_none) {
                return call.clone();
            }
            let args = all.args.iter().zip(careful).map(|(arg, careful)| careful.unwrap_or_else(|| arg.clone()));
            match call.with_new_expressions(args.collect(), all.order_by_exprs) {
                Some(new) => {
                    is_changed = true;
                    Arc::new(new)
                }
                None => call.clone(),
            }
        })
        .collect();
    is_changed.then(|| Arc::new(aggregate.with_new_aggr_exprs(calls)) as Arc<dyn ExecutionPlan>)
}

fn of_join(filter: Option<&JoinFilter>) -> Option<JoinFilter> {
    let filter = filter?;
    let careful = Twice::of_condition(filter.expression())?;
    Some(JoinFilter::new(careful, filter.column_indices().to_vec(), filter.schema().clone()))
}
