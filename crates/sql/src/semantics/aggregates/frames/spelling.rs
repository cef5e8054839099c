//! Frames in the syntax tree: PostgreSQL's rules for them, offsets as plain numbers, and the mark of what is left out.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Interval, UnaryOperator, Value, VisitorMut, WindowFrame, WindowFrameBound as Bound,
    WindowFrameUnits as Units, WindowSpec,
};

use super::MARK;
use crate::error::{Result, SqlError};
use crate::syntax::tokens::{CURRENT, EXCLUSION, UNBOUNDED};
use crate::syntax::walk::WalkMut;

/// Brings the frame of a window that is whole into words that the planner knows.
pub(crate) fn spell_out(window: &mut WindowSpec) -> Result<()> {
    let Some(frame) = &mut window.window_frame else { return Ok(()) };
    let mut excluded = excluded(frame);
    let end = frame.end_bound.clone().unwrap_or(Bound::CurrentRow);
    check(frame, &end, window.order_by.len())?;
    let units = frame.units;
    plain(&mut frame.start_bound, units, "starting")?;
    if let Some(end) = &mut frame.end_bound {
        plain(end, units, "ending")?;
    }
    if is_empty(frame) {
        // The current row without the current row.
        *frame = WindowFrame { units: Units::Rows, start_bound: Bound::CurrentRow, end_bound: Some(Bound::CurrentRow) };
        excluded = Some("CURRENT ROW".to_owned());
    }
    if let Some(words) = excluded {
        let mark = Expr::value(Value::SingleQuotedString(format!("{MARK}{words}")));
        // A constant without parentheses is dropped.
        window.partition_by.push(Expr::Nested(Box::new(mark)));
    }
    Ok(())
}

/// What the frame leaves out, whose mark is taken away.
fn excluded(frame: &mut WindowFrame) -> Option<String> {
    let bound = frame.end_bound.as_mut().unwrap_or(&mut frame.start_bound);
    let mut mark = Mark { found: None };
    let _ = bound.walk_mut(&mut mark);
    let found = mark.found?;
    let mut parts = found.split('\0').skip(2);
    let words = parts.next().unwrap_or_default().to_owned();
    match (parts.next(), &mut *bound) {
        (Some(UNBOUNDED), Bound::Preceding(offset) | Bound::Following(offset)) => *offset = None,
        (Some(CURRENT), bound) => *bound = Bound::CurrentRow,
        _ => {}
    }
    Some(words)
}

struct Mark {
    found: Option<String>,
}

impl VisitorMut for Mark {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Collate { expr: inner, collation } = expr
            && let Some(name) = collation.0.first().and_then(|part| part.as_ident())
            && name.value.starts_with(EXCLUSION)
        {
            self.found = Some(name.value.clone());
            *expr = inner.as_ref().clone();
        }
        ControlFlow::Continue(())
    }
}

/// PostgreSQL's rules for frames.
fn check(frame: &WindowFrame, end: &Bound, keys: usize) -> Result<()> {
    let refuse = |message: &str| Err(SqlError::new("42P20", message));
    match (&frame.start_bound, end) {
        (Bound::Following(None), _) => return refuse("frame start cannot be UNBOUNDED FOLLOWING"),
        (_, Bound::Preceding(None)) => return refuse("frame end cannot be UNBOUNDED PRECEDING"),
        (Bound::CurrentRow, Bound::Preceding(_)) => {
            return refuse("frame starting from current row cannot have preceding rows");
        }
        (Bound::Following(_), Bound::CurrentRow) if frame.end_bound.is_none() => {
            return refuse("frame starting from following row cannot end with current row");
        }
        (Bound::Following(_), Bound::Preceding(_) | Bound::CurrentRow) => {
            return refuse("frame starting from following row cannot have preceding rows");
        }
        _ => {}
    }
    let has_offset = |bound: &Bound| matches!(bound, Bound::Preceding(Some(_)) | Bound::Following(Some(_)));
    match frame.units {
        Units::Groups if keys == 0 => refuse("GROUPS mode requires an ORDER BY clause"),
        Units::Range if keys != 1 && (has_offset(&frame.start_bound) || has_offset(end)) => {
            refuse("RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
        }
        _ => Ok(()),
    }
}

/// Puts the value of an offset in its place, if it is known.
fn plain(bound: &mut Bound, units: Units, which: &str) -> Result<()> {
    let (Bound::Preceding(Some(offset)) | Bound::Following(Some(offset))) = bound else { return Ok(()) };
    if is_null(offset) {
        return Err(SqlError::new("22004", format!("frame {which} offset must not be null")));
    }
    if units == Units::Range {
        if let Some(other) = of_range(offset) {
            **offset = other;
        }
        let is_negative = |expr: &Expr| matches!(number(expr), Some(text) if text.starts_with('-'));
        return match is_negative(offset) {
            true => Err(SqlError::new("22013", "invalid preceding or following size in window function")),
            false => Ok(()),
        };
    }
    match count(offset) {
        Some(count) if count < 0 => Err(SqlError::new("22013", format!("frame {which} offset must not be negative"))),
        Some(count) => {
            **offset = Expr::value(Value::Number(count.to_string(), false));
            Ok(())
        }
        None => Ok(()),
    }
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => value.value == Value::Null,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_null(inner),
        _ => false,
    }
}

/// An offset of a range as the planner knows it: a number, or an interval.
fn of_range(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Cast { data_type: DataType::Interval { .. }, expr: inner, .. } => match inner.as_ref() {
            Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)) => {
                Some(Expr::Interval(Interval {
                    value: inner.clone(),
                    leading_field: None,
                    leading_precision: None,
                    last_field: None,
                    fractional_seconds_precision: None,
                }))
            }
            _ => None,
        },
        Expr::Nested(inner) => of_range(inner).or_else(|| Some(inner.as_ref().clone())),
        _ => {
            let text = number(expr).or_else(|| count(expr).map(|count| count.to_string()))?;
            let is_negative = text.starts_with('-');
            let value = Expr::value(Value::Number(text.trim_start_matches('-').to_owned(), false));
            Some(match is_negative {
                true => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(value) },
                false => value,
            })
        }
    }
}

/// The digits of a number, whatever type it is of.
fn number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => Some(text.clone()),
            _ => None,
        },
        Expr::Nested(inner) => number(inner),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => number(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number(expr).map(|text| match text.strip_prefix('-') {
            Some(positive) => positive.to_owned(),
            None => format!("-{text}"),
        }),
        Expr::Cast { expr, data_type, .. } if !matches!(data_type, DataType::Interval { .. }) => {
            let text = |value: &Value| match value {
                Value::SingleQuotedString(text) => Some(text.trim().to_owned()),
                _ => None,
            };
            match expr.as_ref() {
                Expr::Value(value) => text(&value.value).or_else(|| number(expr)),
                _ => number(expr),
            }
        }
        _ => None,
    }
}

/// The value of a whole number.
fn count(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Nested(inner) => count(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => count(expr)?.checked_neg(),
        Expr::BinaryOp { left, op, right } => {
            let (left, right) = (count(left)?, count(right)?);
            match op {
                BinaryOperator::Plus => left.checked_add(right),
                BinaryOperator::Minus => left.checked_sub(right),
                BinaryOperator::Multiply => left.checked_mul(right),
                _ => None,
            }
        }
        other => number(other)?.parse().ok(),
    }
}

/// Whether the frame has no row whatever the rows are.
fn is_empty(frame: &WindowFrame) -> bool {
    let value = |offset: &Expr| number(offset).and_then(|text| text.parse::<f64>().ok());
    match (&frame.start_bound, &frame.end_bound) {
        (Bound::Preceding(Some(start)), Some(Bound::Preceding(Some(end)))) => value(start) < value(end),
        (Bound::Following(Some(start)), Some(Bound::Following(Some(end)))) => value(start) > value(end),
        _ => false,
    }
}
