//! Aggregates that tell orders apart, as `array_agg` and `string_agg`, over rows in an order.
//!
//! `array_agg(x) FROM (SELECT ... ORDER BY y)`: the order of a query in FROM is the order in which an aggregate sees its
//! rows, while the planner takes what an aggregate reads for a set. So the rows are numbered in that order, and the
//! aggregate is ordered by the number.
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, Sort as Key};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::SubqueryAlias;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprFunctionExt, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Projection, Sort, TableScan,
    WindowFrame,
};

use crate::syntax::walk::WalkTree;

/// The column of the numbers; no statement can spell it.
const NUMBER: &str = "\0number";

/// An aggregate over rows in an order sees them in it; any other node stays. Some scans are known to be in one.
pub(crate) fn numbered(node: LogicalPlan, is_in_order: &dyn Fn(&TableScan) -> bool) -> Result<LogicalPlan> {
    let LogicalPlan::Aggregate(aggregate) = node else { return Ok(node) };
    if !has_order(&aggregate.input, is_in_order) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let is_numbered = has_unordered(&aggregate);
    let (input, number) = without_sort(aggregate.input.as_ref().clone(), is_numbered, false)?;
    let key = |call: &AggregateFunction| number.clone().map(Expr::Column).filter(|_| !call.params.distinct);
    with_keys(aggregate, Arc::new(input), &key)
}

/// The call, if it tells orders apart and has none of its own.
fn unordered(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::AggregateFunction(call) if tells_orders_apart(call.func.name()) && call.params.order_by.is_empty() => {
            Some(call)
        }
        Expr::Alias(alias) => unordered(&alias.expr),
        _ => None,
    }
}

fn has_unordered(aggregate: &Aggregate) -> bool {
    aggregate.aggr_expr.iter().filter_map(unordered).any(|call| !call.params.distinct)
}

/// The aggregate over another input, its calls in the order of the keys that there are for them.
fn with_keys(
    aggregate: Aggregate,
    input: Arc<LogicalPlan>,
    key: &dyn Fn(&AggregateFunction) -> Option<Expr>,
) -> Result<LogicalPlan> {
    let node = LogicalPlan::Aggregate(aggregate);
    let names = NamePreserver::new(&node);
    let LogicalPlan::Aggregate(Aggregate { group_expr, aggr_expr, .. }) = node else { return Ok(node) };
    let with_key = |expr: Expr| match unordered(&expr).and_then(key) {
        Some(key) => match expr {
            Expr::AggregateFunction(mut call) => {
                call.params.order_by.push(Key::new(key, true, false));
                Transformed::yes(Expr::AggregateFunction(call))
            }
            other => Transformed::no(other),
        },
        None => Transformed::no(expr),
    };
    let calls = aggr_expr.into_iter().map(|expr| {
        let name = names.save(&expr);
        let ordered = expr.change_down(|expr| Ok(with_key(expr)))?;
        Ok(name.restore(ordered.data))
    });
    let calls = calls.collect::<Result<Vec<Expr>>>()?;
    Aggregate::try_new(input, group_expr, calls).map(LogicalPlan::Aggregate)
}

/// Whether the rows of a plan come in an order that its text asks for.
pub(crate) fn has_order(plan: &LogicalPlan, is_in_order: &dyn Fn(&TableScan) -> bool) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::TableScan(scan) => is_in_order(scan),
        LogicalPlan::Projection(projection) => has_order(&projection.input, is_in_order),
        LogicalPlan::SubqueryAlias(alias) => has_order(&alias.input, is_in_order),
        LogicalPlan::Filter(filter) => has_order(&filter.input, is_in_order),
        LogicalPlan::Limit(limit) => has_order(&limit.input, is_in_order),
        _ => false,
    }
}

/// The rows without their sort, unless a limit above it takes the first of them, and the column of their numbers if they are
/// numbered.
fn without_sort(plan: LogicalPlan, is_numbered: bool, is_limited: bool) -> Result<(LogicalPlan, Option<Column>)> {
    let below = |plan: &Arc<LogicalPlan>| without_sort(plan.as_ref().clone(), is_numbered, is_limited);
    Ok(match plan {
        LogicalPlan::Sort(Sort { expr, input, fetch }) => {
            let (input, number) = match is_numbered {
                true => number(input.as_ref().clone(), expr.clone())?,
                false => (input.as_ref().clone(), None),
            };
            match is_limited || fetch.is_some() {
                true => (LogicalPlan::Sort(Sort { expr, input: Arc::new(input), fetch }), number),
                false => (input, number),
            }
        }
        LogicalPlan::TableScan(_) if is_numbered => number(plan, Vec::new())?,
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let (input, number) = below(&input)?;
            let exprs = expr.into_iter().chain(number.clone().map(Expr::Column)).collect();
            (LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?), number)
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            let (input, number) = below(&input)?;
            let number = number.map(|_| Column::new(Some(alias.clone()), NUMBER));
            (LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(input), alias)?), number)
        }
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let (input, number) = below(&input)?;
            (LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?), number)
        }
        LogicalPlan::Limit(Limit { skip, fetch, input }) => {
            let (input, number) = without_sort(input.as_ref().clone(), is_numbered, true)?;
            (LogicalPlan::Limit(Limit { skip, fetch, input: Arc::new(input) }), number)
        }
        other => (other, None),
    })
}

/// The rows with numbers in the order of the keys, or as they come.
fn number(rows: LogicalPlan, keys: Vec<Key>) -> Result<(LogicalPlan, Option<Column>)> {
    let number = row_number().order_by(keys).window_frame(WindowFrame::new(None)).build()?.alias(NUMBER);
    let rows = LogicalPlanBuilder::from(rows).window([number])?.build()?;
    Ok((rows, Some(Column::new_unqualified(NUMBER))))
}

/// Whether what an aggregate gives depends on the order of its values.
pub(crate) fn tells_orders_apart(name: &str) -> bool {
    matches!(name, "array_agg" | "string_agg" | "json_agg" | "jsonb_agg" | "json_object_agg" | "jsonb_object_agg")
}
