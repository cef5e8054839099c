//! Dates, times and intervals where DataFusion would drop a part of them.
use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast, lit};

use crate::error::SqlError;

const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// Changes sums of dates and intervals, and parts of times.
pub(super) fn adapt(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right })
            if has_hours(&left, schema) || has_hours(&right, schema) =>
        {
            let (left, right) = (timestamp(*left, schema), timestamp(*right, schema));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
        }
        Expr::ScalarFunction(call) if call.name() == "date_part" => part(call),
        other => Transformed::no(other),
    })
}

/// Whether this is an interval that may not be whole days. A date plus whole days is a date here.
fn has_hours(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => {
            interval.nanoseconds % NANOS_PER_DAY != 0
        }
        Expr::Literal(..) | Expr::Column(_) | Expr::BinaryExpr(_) => {
            matches!(expr.get_type(schema), Ok(ArrowType::Interval(_)))
        }
        other => matches!(other.get_type(schema), Ok(ArrowType::Interval(_) | ArrowType::Duration(_))),
    }
}

fn timestamp(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(ArrowType::Date32 | ArrowType::Date64) => cast(expr, ArrowType::Timestamp(TimeUnit::Microsecond, None)),
        _ => expr,
    }
}

/// Seconds and milliseconds with their fractions.
fn part(call: ScalarFunction) -> Transformed<Expr> {
    let name = match call.args.first() {
        Some(Expr::Literal(value, _)) => value.try_as_str().flatten().map(str::to_ascii_lowercase),
        _ => None,
    };
    let per_unit = match name.as_deref() {
        Some("second" | "seconds") => 1e6,
        Some("millisecond" | "milliseconds") => 1e3,
        _ => return Transformed::no(Expr::ScalarFunction(call)),
    };
    let args = std::iter::once(lit("microsecond")).chain(call.args.into_iter().skip(1)).collect();
    let micros = Expr::ScalarFunction(ScalarFunction { func: call.func, args });
    Transformed::yes(cast(micros, ArrowType::Float64) / lit(per_unit))
}

/// `AT TIME ZONE` is planned as a cast, which leaves a time that has a zone as it is.
pub(super) fn check_zone(from: &ArrowType, to: &ArrowType) -> Result<()> {
    match (from, to) {
        (ArrowType::Timestamp(_, Some(_)), ArrowType::Timestamp(_, Some(zone)))
            if !matches!(&**zone, "UTC" | "+00:00" | "+00") =>
        {
            let error = SqlError::unsupported("AT TIME ZONE of a timestamp with time zone");
            Err(DataFusionError::External(Box::new(error)))
        }
        _ => Ok(()),
    }
}
