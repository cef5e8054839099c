//! Literals of intervals in PostgreSQL's spellings, with the fields that stand beside them, written as the planner knows them: months,
//! days and seconds.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Interval, Statement, UnaryOperator, Value, VisitorMut};

use crate::error::{Result, SqlError};
use crate::syntax::walk::WalkMut;
use crate::values::Misfit;
use crate::values::interval_form::{IntervalForm, Span};
use crate::values::interval_input::parse_as;

/// Rewrites the literals of a statement.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Literals) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Literals;

impl VisitorMut for Literals {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let (literal, is_negative) = match &*expr {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => (&**expr, true),
            other => (other, false),
        };
        match read(literal) {
            Ok(Some(span)) => *expr = written(if is_negative { span.negated() } else { span }),
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// What an expression says, if it is a literal of an interval.
fn read(expr: &Expr) -> Result<Option<Span>> {
    let (value, form) = match expr {
        Expr::Interval(interval) => match &*interval.value {
            Expr::Value(value) => (value, IntervalForm::of_literal(interval)?),
            _ => return Ok(None),
        },
        Expr::Cast { expr, data_type, .. } => match (&**expr, IntervalForm::of_type(data_type)?) {
            (Expr::Value(value), Some(form)) => (value, form),
            _ => return Ok(None),
        },
        Expr::TypedString(typed) => match IntervalForm::of_type(&typed.data_type)? {
            Some(form) => (&typed.value, form),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Some(text) = text_of(&value.value) else { return Ok(None) };
    let span = parse_as(text, form).map_err(|misfit| match misfit {
        Misfit::DateField => SqlError::new("22015", format!("interval field value out of range: \"{text}\"")),
        _ => SqlError::new("22007", format!("invalid input syntax for type interval: \"{text}\"")),
    })?;
    Ok(Some(span))
}

fn written(Span { months, days, micros }: Span) -> Expr {
    let sign = if micros < 0 { "-" } else { "" };
    let (seconds, fraction) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    let text = format!("{months} months {days} days {sign}{seconds}.{fraction:06} seconds");
    Expr::Interval(Interval {
        value: Box::new(Expr::value(Value::SingleQuotedString(text))),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })
}
