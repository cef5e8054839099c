//! Times among the constant arguments of functions in FROM. The planner reads their texts by itself, in fewer forms than PostgreSQL has and
//! in no zone, so each is written in the one form that means the same there.
use chrono::DateTime;
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr, FunctionArg, FunctionArgExpr, TimezoneInfo, Value, ValueWithSpan,
};

use crate::values::datetime::parse_timestamp;

/// Rewrites the texts of times in arguments. One that is none is left for the planner to refuse.
pub(super) fn spell_out(args: &mut [FunctionArg]) {
    for arg in args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
            in_expression(expr);
        }
    }
}

fn in_expression(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => in_expression(inner),
        Expr::BinaryOp { left, right, .. } => {
            in_expression(left);
            in_expression(right);
        }
        Expr::TypedString(typed) => rewrite(&mut typed.value, &typed.data_type),
        Expr::Cast { expr: inner, data_type, .. } => match inner.as_mut() {
            Expr::Value(value) => rewrite(value, data_type),
            other => in_expression(other),
        },
        _ => {}
    }
}

fn rewrite(value: &mut ValueWithSpan, data_type: &SqlType) {
    let (SqlType::Timestamp(_, zone), Value::SingleQuotedString(text)) = (data_type, &mut value.value) else { return };
    let has_zone = matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz);
    let time = parse_timestamp(text, has_zone).ok().and_then(DateTime::from_timestamp_micros);
    if let Some(time) = time {
        *text = time.format("%Y-%m-%dT%H:%M:%S%.6f").to_string() + if has_zone { "Z" } else { "" };
    }
}
