//! Literals of intervals in PostgreSQL's spellings, with the fields that stand beside them, written as the planner knows them: months,
//! days and seconds.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Interval, Statement, UnaryOperator, Value, VisitorMut};

use crate::error::{Result, SqlError};
use crate::syntax::walk::WalkMut;
use crate::values::interval_form::Span;
use crate::values::interval_input::of_literal;

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
        match of_literal(literal) {
            Ok(Some(span)) => *expr = written(if is_negative { span.negated() } else { span }),
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
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
