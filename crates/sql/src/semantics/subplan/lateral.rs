//! LATERAL: a list of rows for each row on the left, unnested.
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ExprSchema, JoinType, UnnestOptions};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder};

use super::call::{self, Kind, item_name};
use super::{Subplans, scope};
use crate::syntax::walk::WalkTree;

/// The column of the lists; no statement can spell it.
const ROWS: &str = "\0rows";

/// Converts a join with a right side that names columns of the left one; any other node stays.
pub(super) fn convert(node: LogicalPlan, plans: &Subplans) -> Result<LogicalPlan> {
    let LogicalPlan::Join(join) = node else { return Ok(node) };
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) || (plans.are_marked && !has_wrapper(&join.right)?) {
        return Ok(LogicalPlan::Join(join));
    }
    let references = scope::open_references(&join.right)?;
    if !references.iter().any(|(_, column)| join.left.schema().has_column(column)) {
        return Ok(LogicalPlan::Join(join));
    }
    let outer: Vec<Column> = join.left.schema().columns();
    let inner: Vec<Column> = join.right.schema().columns();
    let rows = matching_rows(&join, plans)?;
    let call = call::call(&plans.statement, Kind::Rows, None, rows, join.left.schema())?;
    let with_rows = outer.iter().cloned().map(Expr::Column).chain([call.alias(ROWS)]);
    // A row on the left without any on the right has no list.
    let options = UnnestOptions::new().with_preserve_nulls(join.join_type == JoinType::Left);
    let unnested = LogicalPlanBuilder::from(join.left)
        .project(with_rows)?
        .unnest_column_with_options(Column::new_unqualified(ROWS), options)?;
    let item = |(at, column): (usize, &Column)| {
        let row = Expr::Column(Column::new_unqualified(ROWS));
        get_field(row, item_name(at)).alias_qualified(column.relation.clone(), column.name.as_str())
    };
    let items = inner.iter().enumerate().map(item);
    unnested.project(outer.iter().cloned().map(Expr::Column).chain(items))?.build()
}

/// The right side under the condition of the join, in which the columns of the left side are an outer query's.
fn matching_rows(join: &Join, plans: &Subplans) -> Result<LogicalPlan> {
    let equalities = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let condition = conjunction(equalities.chain(join.filter.clone()));
    let rows = join.right.as_ref().clone();
    let Some(condition) = condition else { return Ok(rows) };
    let condition = with_outer_columns(condition, join.left.schema(), rows.schema())?;
    let filter = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(rows))?);
    Ok(plans.convert_node(filter)?.data)
}

fn with_outer_columns(expr: Expr, outer: &DFSchema, inner: &DFSchema) -> Result<Expr> {
    let changed = expr.change_up(|expr| match expr {
        Expr::Column(column) if !inner.has_column(&column) => {
            let field = outer.field_from_column(&column)?.clone();
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(changed.data)
}

/// Whether a plan has a node that marks a LATERAL subquery.
pub(crate) fn has_wrapper(plan: &LogicalPlan) -> Result<bool> {
    plan.has(|node| Ok(matches!(node, LogicalPlan::Subquery(_))))
}
