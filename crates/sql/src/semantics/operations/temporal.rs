//! Arithmetic and comparisons of dates, times and intervals by PostgreSQL's rules.
use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::times::intervals;

/// `interval * number`, `number * interval` and `interval / number`, for which the planner has no types.
pub(crate) fn scale(
    op: BinaryOperator,
    (left, first): (Expr, &ArrowType),
    (right, second): (Expr, &ArrowType),
) -> PlannerResult<RawBinaryExpr> {
    let is_interval = |found: &ArrowType| matches!(found, ArrowType::Interval(_) | ArrowType::Duration(_));
    let divides = op == BinaryOperator::Divide;
    if is_interval(first) && second.is_numeric() {
        PlannerResult::Planned(intervals::scaled(left, right, divides))
    } else if !divides && first.is_numeric() && is_interval(second) {
        PlannerResult::Planned(intervals::scaled(right, left, false))
    } else {
        PlannerResult::Original(RawBinaryExpr { op, left, right })
    }
}

/// Orders by intervals as they are compared.
pub(crate) fn order(plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    let LogicalPlan::Sort(mut sort) = plan else { return Ok(plan) };
    for key in &mut sort.expr {
        if is_interval(&key.expr, schema) {
            let expr = std::mem::replace(&mut key.expr, lit(false));
            key.expr = intervals::order(expr);
        }
    }
    Ok(LogicalPlan::Sort(sort))
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(value, _) => matches!(value, ScalarValue::IntervalMonthDayNano(_)),
        other => matches!(other.get_type(schema), Ok(ArrowType::Interval(_))),
    }
}

fn is_comparison(op: Operator) -> bool {
    matches!(op, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn is_date(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(ArrowType::Date32 | ArrowType::Date64))
}

/// Changes sums, differences and comparisons of dates, times and intervals.
pub(crate) fn adapt(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => comparison(*left, op, *right, schema),
        Expr::Between(Between { expr, negated, low, high }) if is_date(&expr, schema) => {
            let (low, high) = (Box::new(as_date(*low, schema)), Box::new(as_date(*high, schema)));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::Between(Between { expr, negated, low, high })
            if is_interval(&expr, schema) && is_interval(&low, schema) && is_interval(&high, schema) =>
        {
            let key = |expr: Box<Expr>| Box::new(intervals::order(*expr));
            Transformed::yes(Expr::Between(Between { expr: key(expr), negated, low: key(low), high: key(high) }))
        }
        Expr::ScalarFunction(mut call) if call.name() == "to_timestamp" && call.args.len() == 1 => {
            match call.args[0].get_type(schema) {
                Ok(found) if found.is_numeric() => Transformed::yes(intervals::to_timestamp(call.args.remove(0))),
                _ => Transformed::no(Expr::ScalarFunction(call)),
            }
        }
        other => Transformed::no(other),
    })
}

/// A date plus an interval is a timestamp. The difference of dates is an `integer`, that of timestamps an interval.
pub(crate) fn sum(
    (left, first): (Expr, &ArrowType),
    op: Operator,
    (right, second): (Expr, &ArrowType),
) -> PlannerResult<RawBinaryExpr> {
    let binary = |left, right| Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) });
    let is_date = |found: &ArrowType| matches!(found, ArrowType::Date32 | ArrowType::Date64);
    let is_timestamp = |found: &ArrowType| matches!(found, ArrowType::Timestamp(..));
    match (first, second) {
        (date, ArrowType::Interval(_)) if is_date(date) => PlannerResult::Planned(binary(timestamp(left), right)),
        (ArrowType::Interval(_), date) if is_date(date) => PlannerResult::Planned(binary(left, timestamp(right))),
        (first, second) if op == Operator::Minus && is_date(first) && is_date(second) => {
            PlannerResult::Planned(cast(binary(left, right), ArrowType::Int32))
        }
        (first, second)
            if op == Operator::Minus
                && (is_timestamp(first) || is_timestamp(second))
                && (is_timestamp(first) || is_date(first))
                && (is_timestamp(second) || is_date(second)) =>
        {
            let left = if is_date(first) { timestamp(left) } else { left };
            let right = if is_date(second) { timestamp(right) } else { right };
            PlannerResult::Planned(intervals::from_difference(binary(left, right)))
        }
        _ => {
            let op = if op == Operator::Plus { BinaryOperator::Plus } else { BinaryOperator::Minus };
            PlannerResult::Original(RawBinaryExpr { op, left, right })
        }
    }
}

fn timestamp(expr: Expr) -> Expr {
    cast(expr, ArrowType::Timestamp(TimeUnit::Microsecond, None))
}

/// Intervals are compared by their length. A date is compared with another day, not with its midnight, where only whole
/// days were added to that: scans know how.
fn comparison(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let binary = |left, right| Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) });
    if is_interval(&left, schema) && is_interval(&right, schema) {
        return Transformed::yes(binary(intervals::order(left), intervals::order(right)));
    }
    match (is_date(&left, schema), is_date(&right, schema)) {
        (true, false) => Transformed::yes(binary(left, as_date(right, schema))),
        (false, true) => Transformed::yes(binary(as_date(left, schema), right)),
        _ => Transformed::no(binary(left, right)),
    }
}

/// The sum of a date and whole days as a date again, where it was made a timestamp; anything else as it is.
fn as_date(expr: Expr, schema: &DFSchema) -> Expr {
    const NANOS_PER_DAY: i64 = 86_400_000_000_000;
    let is_whole = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => {
            interval.nanoseconds % NANOS_PER_DAY == 0
        }
        _ => false,
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) => {
            match (*left, *right) {
                (Expr::Cast(inner), right) if is_whole(&right) && is_date(&inner.expr, schema) => {
                    Expr::BinaryExpr(BinaryExpr { left: inner.expr, op, right: Box::new(right) })
                }
                (left, Expr::Cast(inner)) if is_whole(&left) && is_date(&inner.expr, schema) => {
                    Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: inner.expr })
                }
                (left, right) => Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }),
            }
        }
        other => other,
    }
}
