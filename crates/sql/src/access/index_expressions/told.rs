//! Constants of expressions as PostgreSQL's catalog tells them: each by the text of its value and its type.
//!
//! ```text
//! now() - INTERVAL '1' DAY          now() - '1 day'::interval
//! a > -5                            a > '-5'::integer
//! n * 1e3                           n * '1000'::numeric
//! ARRAY['a', 'b']                   ARRAY['a'::text, 'b'::text]
//! ARRAY[1, 2]::bigint[]             ARRAY[(1)::bigint, (2)::bigint]
//! 5::integer                        5
//! ```
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType as SqlType, ExactNumberInfo, Expr, UnaryOperator, Value, ValueWithSpan,
    VisitorMut,
};
use engine::Interval;

use crate::syntax::walk::WalkMut;
use crate::values::interval_form::IntervalForm;
use crate::values::interval_input::of_literal;
use crate::values::literals::{Literal, literal};
use crate::values::numerics;
use crate::values::text::text_value;

/// An expression with its constants written so.
pub(super) fn told(expr: &Expr) -> Expr {
    let mut told = expr.clone();
    let _ = told.walk_mut(&mut Constants);
    told
}

struct Constants;

impl VisitorMut for Constants {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(constant) = constant(expr) {
            *expr = constant;
        } else if let Expr::Array(array) = expr
            && array.elem.iter().any(|item| text_of(item).is_some())
            && array.elem.iter().all(|item| text_of(item).is_some() || is_null(item))
        {
            array.elem.iter_mut().for_each(|item| *item = cast(item.clone(), SqlType::Text));
        }
        ControlFlow::Continue(())
    }
}

/// A constant, or an array with a type, that is told otherwise than it is written.
fn constant(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Interval(_) | Expr::TypedString(_) => interval(expr).or_else(|| typed(expr)),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr: inner, data_type, .. } => {
            let item = match data_type {
                SqlType::Array(ArrayElemTypeDef::SquareBracket(item, None)) => Some(item.as_ref()),
                _ => None,
            };
            match (without_parentheses(inner), item, data_type) {
                (Expr::Array(array), Some(item), _) if !array.elem.is_empty() => {
                    let elem = array.elem.iter().map(|value| cast(value.clone(), item.clone())).collect();
                    Some(Expr::Array(datafusion::sql::sqlparser::ast::Array { elem, named: true }))
                }
                (inner, _, SqlType::Int(None) | SqlType::Integer(None) | SqlType::Int4(None)) if is_integer(inner) => {
                    Some(inner.clone())
                }
                _ => interval(expr),
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => negative(inner),
        Expr::Value(ValueWithSpan { value: Value::Number(number, false), .. }) => exponent("", number),
        _ => None,
    }
}

fn without_parentheses(expr: &Expr) -> &Expr {
    if let Expr::Nested(inner) = expr { without_parentheses(inner) } else { expr }
}

fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        _ => None,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Null, .. }))
}

fn is_integer(expr: &Expr) -> bool {
    let is_so = |number: &str| number.parse::<i32>().is_ok();
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Number(number, false), .. }) if is_so(number))
}

fn cast(expr: Expr, data_type: SqlType) -> Expr {
    Expr::Cast { kind: CastKind::DoubleColon, expr: Box::new(expr), data_type, array: false, format: None }
}

/// A text with a type.
fn of_type(text: String, data_type: SqlType) -> Expr {
    cast(Expr::value(Value::SingleQuotedString(text)), data_type)
}

fn interval(expr: &Expr) -> Option<Expr> {
    let span = of_literal(expr).ok()??;
    let (months, days) = (i32::try_from(span.months).ok()?, i32::try_from(span.days).ok()?);
    let text = Interval { months, days, micros: span.micros }.to_string();
    let data_type = match expr {
        Expr::Cast { data_type, .. } if IntervalForm::of_type(data_type).is_ok_and(|form| form.is_some()) => {
            data_type.clone()
        }
        _ => SqlType::Interval { fields: None, precision: None },
    };
    Some(of_type(text, data_type))
}

fn typed(expr: &Expr) -> Option<Expr> {
    let (Expr::TypedString(typed), Some(Literal::Typed(value, _))) = (expr, literal(expr)) else { return None };
    Some(of_type(text_value(&value, 0)?, typed.data_type.clone()))
}

/// A number with a sign before it.
fn negative(inner: &Expr) -> Option<Expr> {
    let Expr::Value(ValueWithSpan { value: Value::Number(number, false), .. }) = inner else { return None };
    let number = number.replace('_', "");
    let text = format!("-{number}");
    let data_type = match () {
        () if text.parse::<i32>().is_ok() => SqlType::Integer(None),
        () if text.parse::<i64>().is_ok() => SqlType::BigInt(None),
        () => return exponent("-", &number).or_else(|| Some(of_type(text, NUMERIC))),
    };
    Some(of_type(text, data_type))
}

const NUMERIC: SqlType = SqlType::Numeric(ExactNumberInfo::None);

/// A number with an exponent, which is told without.
fn exponent(sign: &str, number: &str) -> Option<Expr> {
    let digits = number.contains(['e', 'E']).then(|| numerics::read(number).ok()).flatten()?;
    Some(of_type(format!("{sign}{digits}"), NUMERIC))
}
