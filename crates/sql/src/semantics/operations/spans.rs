//! Intervals that are equal without being the same, as a month and thirty days: what tells rows apart by them looks at their
//! length. Of equal ones the first stands for all.
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::expr::{Case, InList, InSubquery, ScalarFunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan, Operator, Projection, lit,
};

use crate::functions::times::intervals;

/// Of so many intervals at most the greatest is found by comparing each with all.
const CHOSEN_MOST: usize = 16;

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(ArrowType::Interval(_)))
}

fn is_interval_or_null(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(ArrowType::Interval(_) | ArrowType::Null))
}

/// An expression in the place of which its length is looked at.
fn measure(expr: &mut Expr) {
    let inner = std::mem::replace(expr, lit(false));
    *expr = intervals::order(inner);
}

/// Expressions that tell intervals apart.
pub(crate) fn adapt(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            mut left,
            op: op @ (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
            mut right,
        }) if is_interval(&left, schema) && is_interval(&right, schema) => {
            measure(&mut left);
            measure(&mut right);
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::InList(InList { mut expr, mut list, negated })
            if is_interval(&expr, schema) && list.iter().all(|item| is_interval(item, schema)) =>
        {
            measure(&mut expr);
            list.iter_mut().for_each(measure);
            Expr::InList(InList { expr, list, negated })
        }
        Expr::InSubquery(InSubquery { mut expr, mut subquery, negated }) if is_interval(&expr, schema) => {
            let plan = Arc::unwrap_or_clone(subquery.subquery.clone());
            if let Ok(measured) = measured_column(plan) {
                subquery.subquery = Arc::new(measured);
                measure(&mut expr);
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated })
        }
        Expr::Case(Case { expr: Some(mut of), mut when_then_expr, else_expr })
            if is_interval(&of, schema) && when_then_expr.iter().all(|(when, _)| is_interval(when, schema)) =>
        {
            measure(&mut of);
            when_then_expr.iter_mut().for_each(|(when, _)| measure(when));
            Expr::Case(Case { expr: Some(of), when_then_expr, else_expr })
        }
        Expr::ScalarFunction(call)
            if !call.args.is_empty()
                && call.args.len() <= CHOSEN_MOST
                && call.args.iter().any(|arg| is_interval(arg, schema))
                && call.args.iter().all(|arg| is_interval_or_null(arg, schema) && !arg.is_volatile()) =>
        {
            chosen(call)
        }
        Expr::AggregateFunction(mut call) => {
            if call.params.distinct
                && call.func.name() == "count"
                && let [arg] = &mut call.params.args[..]
                && is_interval(arg, schema)
            {
                measure(arg);
            }
            Expr::AggregateFunction(call)
        }
        Expr::WindowFunction(mut call) => {
            let params = &mut call.params;
            let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
            keys.chain(params.partition_by.iter_mut()).filter(|key| is_interval(key, schema)).for_each(measure);
            Expr::WindowFunction(call)
        }
        other => other,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

/// A function that gives one of its intervals, by their lengths.
fn chosen(call: ScalarFunction) -> Expr {
    let length = |expr: &Expr| intervals::order(expr.clone());
    let nothing = Expr::Literal(ScalarValue::IntervalMonthDayNano(None), None);
    let (branches, otherwise) = match (call.name(), &call.args[..]) {
        ("nullif", [first, second]) if !is_null(second) => {
            (vec![(length(first).eq(length(second)), nothing)], first.clone())
        }
        (name @ ("greatest" | "least"), args) => {
            let args: Vec<&Expr> = args.iter().filter(|arg| !is_null(arg)).collect();
            let is_beyond = |other: &Expr, arg: &Expr| match name {
                "greatest" => length(other).gt(length(arg)),
                _ => length(other).lt(length(arg)),
            };
            let branch = |arg: &Expr| {
                let others = args.iter().copied().filter(|other| *other != arg);
                let none_beyond = others.map(|other| is_beyond(other, arg).is_not_true());
                (none_beyond.fold(arg.clone().is_not_null(), Expr::and), arg.clone())
            };
            (args.iter().copied().map(branch).collect(), nothing)
        }
        _ => return Expr::ScalarFunction(call),
    };
    let when_then_expr = branches.into_iter().map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(otherwise)) })
}

/// A query of one column, as the lengths of its intervals.
fn measured_column(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (qualifier, field) = plan.schema().qualified_field(0);
    let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    let measured = intervals::order(column).alias_qualified(qualifier.cloned(), field.name());
    Ok(LogicalPlan::Projection(Projection::try_new(vec![measured], Arc::new(plan))?))
}

/// Nodes that tell rows apart.
pub(crate) fn adapt_node(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let schema = input.schema().clone();
            let columns = schema.columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
            if !columns.iter().any(|column| is_interval(column, &schema)) {
                return Ok(LogicalPlan::Distinct(Distinct::All(input)));
            }
            let mut keys = columns.clone();
            keys.iter_mut().filter(|key| is_interval(key, &schema)).for_each(measure);
            Ok(LogicalPlan::Distinct(Distinct::On(DistinctOn::try_new(keys, columns, None, input)?)))
        }
        LogicalPlan::Aggregate(aggregate) => group(aggregate),
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                if is_interval(left, join.left.schema()) && is_interval(right, join.right.schema()) {
                    measure(left);
                    measure(right);
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        other => Ok(other),
    }
}

/// Groups by lengths, and takes the first interval of each group for all of it.
fn group(aggregate: Aggregate) -> Result<LogicalPlan> {
    let inner = aggregate.input.schema().clone();
    let is_plain = !aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_)));
    if !is_plain || !aggregate.group_expr.iter().any(|key| is_interval(key, &inner)) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let outer = aggregate.schema.clone();
    let (mut keys, mut calls) = (aggregate.group_expr.clone(), aggregate.aggr_expr.clone());
    let plain = calls.len();
    for key in &mut keys {
        if is_interval(key, &inner) {
            *key = std::mem::take(key).unalias();
            calls.push(first_value(key.clone(), Vec::new()));
            measure(key);
        }
    }
    let grouped = Aggregate::try_new(aggregate.input, keys.clone(), calls)?;
    let column = |at: usize| {
        let (qualifier, field) = grouped.schema.qualified_field(at);
        Expr::Column(Column::new(qualifier.cloned(), field.name()))
    };
    let mut first = keys.len() + plain;
    let mut columns = Vec::with_capacity(first);
    for at in 0..keys.len() + plain {
        let (qualifier, field) = outer.qualified_field(at);
        let is_measured = aggregate.group_expr.get(at).is_some_and(|key| is_interval(key, &inner));
        let value = if is_measured { column(first) } else { column(at) };
        first += usize::from(is_measured);
        columns.push(value.alias_qualified(qualifier.cloned(), field.name()));
    }
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(grouped)))?))
}
