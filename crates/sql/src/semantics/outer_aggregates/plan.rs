//! Puts the columns of an outer query's aggregates into the subqueries beside which they were planned.
use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::functions::{BESIDE, StandIn};
use crate::error::SqlError;
use crate::semantics::operations::visible::visible;
use crate::semantics::subplan::change_subqueries;
use crate::syntax::walk::{WalkPlan, WalkTree};

/// See the module.
#[derive(Debug)]
pub(crate) struct OuterAggregates;

impl AnalyzerRule for OuterAggregates {
    fn name(&self) -> &str {
        "outer_aggregates"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut has_any = false;
        plan.look_with_subqueries(|node| {
            has_any |= has_columns(node)?;
            Ok(if has_any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !has_any {
            return Ok(plan);
        }
        plan.change_up_with_subqueries(with_columns).map(|done| done.data)
    }
}

/// Whether aggregates stand beside subqueries in a node.
fn has_columns(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.look_at_expressions(|expr| {
        found |= expr.has(|part| Ok(matches!(part, Expr::ScalarFunction(call) if call.name() == BESIDE)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn with_columns(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !has_columns(&node)? {
        return node.recompute_schema().map(Transformed::yes);
    }
    let schema = visible(&node)?;
    let names = NamePreserver::new(&node);
    node.change_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.change_up(|expr| match expr {
            Expr::ScalarFunction(call) if call.name() == BESIDE => filled(call.args, &schema).map(Transformed::yes),
            other => Ok(Transformed::no(other)),
        })?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })?
    .map_data(LogicalPlan::recompute_schema)
}

/// The expression with the subquery, in which the columns stand for the aggregates.
fn filled(args: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let mut args = args.into_iter();
    let with_subquery = args.next().ok_or_else(|| DataFusionError::Internal("a subquery is missing".to_owned()))?;
    let mut columns: BTreeMap<i64, Expr> = BTreeMap::new();
    while let (Some(number), Some(column)) = (args.next(), args.next()) {
        let (Some(number), Expr::Column(column)) = (number_of(&number), column.unalias()) else {
            let error = SqlError::unsupported("this aggregate of columns of an outer query within a subquery");
            let hint = "Work it out in the outer query, or in a query in its FROM.";
            return Err(DataFusionError::External(Box::new(error.hint(hint))));
        };
        let field = Arc::new(schema.field_from_column(&column)?.as_ref().clone().with_nullable(true));
        columns.insert(number, Expr::OuterReferenceColumn(field, column));
    }
    let column = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) if call.func.inner().downcast_ref::<StandIn>().is_some() => {
            columns.get(&call.args.first().and_then(number_of)?).cloned()
        }
        _ => None,
    };
    with_subquery.change_up(|expr| change_subqueries(expr, &column)).map(|done| done.data)
}

fn number_of(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(number), _) => *number,
        Expr::Literal(ScalarValue::Int32(number), _) => number.map(i64::from),
        _ => None,
    }
}
