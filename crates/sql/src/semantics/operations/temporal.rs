//! Arithmetic and comparisons of dates, times and intervals by PostgreSQL's rules.
use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction};
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::times::{days, intervals};

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

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(value, _) => matches!(value, ScalarValue::IntervalMonthDayNano(_)),
        other => matches!(other.get_type(schema), Ok(ArrowType::Interval(_))),
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn between(expr: Expr, negated: bool, low: Expr, high: Expr) -> Expr {
    Expr::Between(Between { expr: Box::new(expr), negated, low: Box::new(low), high: Box::new(high) })
}

fn is_date(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(ArrowType::Date32 | ArrowType::Date64))
}

/// Changes sums, differences and comparisons of dates, times and intervals.
pub(crate) fn adapt(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => comparison(*left, op, *right, schema),
        Expr::Between(Between { expr, negated, low, high }) if is_date(&expr, schema) => {
            let (mut expr, mut low, mut high) = (*expr, as_date(*low, schema), as_date(*high, schema));
            beside_timestamps(&mut [&mut expr, &mut low, &mut high], schema);
            Transformed::yes(between(expr, negated, low, high))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_date(&low, schema) || is_date(&high, schema) => {
            let (mut expr, mut low, mut high) = (*expr, *low, *high);
            beside_timestamps(&mut [&mut expr, &mut low, &mut high], schema);
            Transformed::yes(between(expr, negated, low, high))
        }
        Expr::InList(InList { mut expr, mut list, negated }) => {
            // Long lists are of one type; the first of them tells.
            let differs = list.first().is_some_and(|first| is_date(first, schema) != is_date(&expr, schema));
            if differs {
                let mut values: Vec<&mut Expr> = std::iter::once(&mut *expr).chain(list.iter_mut()).collect();
                beside_timestamps(&mut values, schema);
            }
            Transformed::yes(Expr::InList(InList { expr, list, negated }))
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
        Expr::ScalarFunction(mut call) => {
            let has_joined = joined(&mut call, schema);
            Transformed::new(Expr::ScalarFunction(call), has_joined, TreeNodeRecursion::Continue)
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
    let (left, right) = match (is_date(&left, schema), is_date(&right, schema)) {
        (true, false) => (left, as_date(right, schema)),
        (false, true) => (as_date(left, schema), right),
        _ => return Transformed::no(binary(left, right)),
    };
    let by_dates = match (&left, &right) {
        (date, Expr::Literal(ScalarValue::TimestampMicrosecond(Some(at), None), _)) => days::compared(date, op, *at),
        (Expr::Literal(ScalarValue::TimestampMicrosecond(Some(at), None), _), date) => {
            op.swap().and_then(|op| days::compared(date, op, *at))
        }
        _ => None,
    };
    let (mut left, mut right) = (left, right);
    beside_timestamps(&mut [&mut left, &mut right], schema);
    Transformed::yes(by_dates.unwrap_or_else(|| binary(left, right)))
}

/// Dates among values that are compared with timestamps.
fn beside_timestamps(values: &mut [&mut Expr], schema: &DFSchema) {
    let is_moment = |value: &&mut Expr| match value.get_type(schema) {
        Ok(ArrowType::Timestamp(TimeUnit::Microsecond, zone)) => Some(zone.is_some()),
        _ => None,
    };
    let Some(are_moments) = values.iter().find_map(is_moment) else { return };
    for value in values.iter_mut().filter(|value| is_date(value, schema)) {
        **value = days::beside_timestamps(std::mem::replace(*value, lit(false)), are_moments);
    }
}

/// The arguments of a function that gives one of them as timestamps, where some are and others dates.
fn joined(call: &mut ScalarFunction, schema: &DFSchema) -> bool {
    let is_plain = |arg: &Expr| matches!(arg.get_type(schema), Ok(ArrowType::Timestamp(TimeUnit::Microsecond, None)));
    if !["coalesce", "greatest", "least"].contains(&call.name()) || !call.args.iter().any(is_plain) {
        return false;
    }
    let dates: Vec<&mut Expr> = call.args.iter_mut().filter(|arg| is_date(arg, schema)).collect();
    let has_dates = !dates.is_empty();
    dates.into_iter().for_each(|date| *date = days::midnight(std::mem::replace(date, lit(false))));
    has_dates
}

/// The date that was made a timestamp.
fn date_below<'e>(expr: &'e Expr, schema: &DFSchema) -> Option<&'e Expr> {
    match expr {
        Expr::Cast(cast) => Some(&*cast.expr).filter(|inner| is_date(inner, schema)),
        Expr::ScalarFunction(call) => days::date_below(call),
        _ => None,
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
            let (left, right) = (*left, *right);
            let below = |expr: &Expr| date_below(expr, schema).cloned();
            let (left, right) = match (below(&left), below(&right)) {
                (Some(date), _) if is_whole(&right) => (date, right),
                (_, Some(date)) if is_whole(&left) => (left, date),
                _ => (left, right),
            };
            Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
        }
        other => other,
    }
}
