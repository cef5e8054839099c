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
//!
//! And conditions as its parser makes them out of the words of the language, with casts where they compare:
//!
//! ```text
//! a BETWEEN 1 AND 2                 a >= 1 AND a <= 2
//! c IN ('x', 'y')                   c = ANY (ARRAY['x'::text, 'y'::text])
//! c LIKE 'x%'                       c ~~ 'x%'::text
//! n > 0, of a numeric               n > 0::numeric
//! ```
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CastKind, DataType as SqlType, ExactNumberInfo, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, UnaryOperator, Value, ValueWithSpan,
    VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use engine::{Column, DataType, Interval};

use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::walk::WalkMut;
use crate::values::builder::ColumnBuilder;
use crate::values::interval_form::IntervalForm;
use crate::values::interval_input::of_literal;
use crate::values::literals::{Literal, literal};
use crate::values::long_kept_name;
use crate::values::numerics;
use crate::values::text::lasting_text;

/// An expression over these columns, told so.
pub(super) fn told(expr: &Expr, columns: &[Column]) -> Expr {
    let mut told = expr.clone();
    let _ = told.walk_mut(&mut Words);
    let _ = told.walk_mut(&mut Constants);
    let _ = told.walk_mut(&mut Operands { columns });
    told
}

/// Words of the language as operators.
struct Words;

impl VisitorMut for Words {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let told = match &mut *expr {
            Expr::Between { expr: of, negated, low, high } => {
                let (from, to, joined) = match negated {
                    false => (BinaryOperator::GtEq, BinaryOperator::LtEq, BinaryOperator::And),
                    true => (BinaryOperator::Lt, BinaryOperator::Gt, BinaryOperator::Or),
                };
                let low = Expr::BinaryOp { left: of.clone(), op: from, right: low.clone() };
                let high = Expr::BinaryOp { left: of.clone(), op: to, right: high.clone() };
                Expr::BinaryOp { left: Box::new(low), op: joined, right: Box::new(high) }
            }
            Expr::InList { expr: of, list, negated } if list.iter().all(is_constant) => match (&mut list[..], *negated)
            {
                ([only], negated) => {
                    let op = if negated { BinaryOperator::NotEq } else { BinaryOperator::Eq };
                    Expr::BinaryOp { left: of.clone(), op, right: Box::new(only.clone()) }
                }
                (list, negated) => {
                    let elem = list.to_vec();
                    let right = Box::new(Expr::Array(Array { elem, named: true }));
                    match negated {
                        false => {
                            let compare_op = BinaryOperator::Eq;
                            Expr::AnyOp { left: of.clone(), compare_op, right, is_some: false }
                        }
                        true => Expr::AllOp { left: of.clone(), compare_op: BinaryOperator::NotEq, right },
                    }
                }
            },
            Expr::Like { negated, any: false, expr: of, pattern, escape_char: None } => {
                let op = if *negated { BinaryOperator::PGNotLikeMatch } else { BinaryOperator::PGLikeMatch };
                Expr::BinaryOp { left: of.clone(), op, right: pattern.clone() }
            }
            Expr::ILike { negated, any: false, expr: of, pattern, escape_char: None } => {
                let op = if *negated { BinaryOperator::PGNotILikeMatch } else { BinaryOperator::PGILikeMatch };
                Expr::BinaryOp { left: of.clone(), op, right: pattern.clone() }
            }
            _ => return ControlFlow::Continue(()),
        };
        *expr = told;
        ControlFlow::Continue(())
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } | Expr::Cast { expr, .. } => is_constant(expr),
        _ => false,
    }
}

/// Operands with the types that they are compared as.
struct Operands<'a> {
    columns: &'a [Column],
}

/// What an operand is, as far as that decides about casts.
#[derive(Clone, Copy, PartialEq)]
enum Operand {
    Text,
    Varchar,
    Char,
    Numeric,
    Float,
    Other(DataType),
    Unknown,
}

impl Operands<'_> {
    fn kind(&self, expr: &Expr) -> Operand {
        let name = match expr {
            Expr::Nested(inner) => return self.kind(inner),
            Expr::Identifier(ident) => fold(ident),
            Expr::CompoundIdentifier(parts) => parts.last().map(fold).unwrap_or_default(),
            Expr::Cast { data_type: SqlType::Text, .. } | Expr::Trim { .. } | Expr::Substring { .. } => {
                return Operand::Text;
            }
            Expr::Extract { .. } => return Operand::Numeric,
            Expr::BinaryOp { op: BinaryOperator::LongArrow | BinaryOperator::StringConcat, .. } => {
                return Operand::Text;
            }
            Expr::Function(function) => {
                let name = last_part(&function.name).unwrap_or_default();
                return match name.as_str() {
                    _ if GIVING_TEXTS.contains(&name.as_str()) => Operand::Text,
                    "coalesce" | "nullif" => {
                        first_argument(function).map_or(Operand::Unknown, |first| self.kind(first))
                    }
                    "date_part" => Operand::Float,
                    _ => Operand::Unknown,
                };
            }
            _ => return Operand::Unknown,
        };
        match self.columns.iter().find(|column| column.name == name).map(|column| column.data_type) {
            Some(DataType::TEXT) => Operand::Text,
            Some(DataType::Text { .. }) => Operand::Varchar,
            Some(DataType::Char { .. }) => Operand::Char,
            Some(DataType::Decimal { .. } | DataType::Numeric) => Operand::Numeric,
            Some(DataType::Real | DataType::Double) => Operand::Float,
            Some(other) => Operand::Other(other),
            None => Operand::Unknown,
        }
    }

    /// Casts an operand to what it is compared as beside another one of a kind.
    fn adapt(&self, expr: &mut Expr, other: Operand) {
        let data_type = match (other, &*expr) {
            (Operand::Text | Operand::Varchar, of) if text_of(of).is_some() => SqlType::Text,
            (Operand::Char, of) if text_of(of).is_some() => {
                SqlType::Custom(ObjectName::from(vec![Ident::new("bpchar")]), Vec::new())
            }
            (Operand::Other(data_type), of) if let Some(text) = text_of(of) => {
                let Some(to) = spelled_type(data_type) else { return };
                *expr = of_type(value_text(text, data_type).unwrap_or_else(|| text.to_owned()), to);
                return;
            }
            (Operand::Numeric, of) if is_whole(of) => NUMERIC,
            (Operand::Float, of) if is_number(of) => SqlType::DoublePrecision,
            _ => return,
        };
        *expr = cast(expr.clone(), data_type);
    }
}

/// Functions whose values are texts.
const GIVING_TEXTS: [&str; 20] = [
    "btrim",
    "concat",
    "concat_ws",
    "format",
    "initcap",
    "json_typeof",
    "jsonb_typeof",
    "left",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "substr",
    "upper",
];

impl VisitorMut for Operands<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::BinaryOp { left, op, right } => {
                use BinaryOperator as Op;
                let is_match = matches!(
                    op,
                    Op::PGRegexMatch
                        | Op::PGRegexIMatch
                        | Op::PGRegexNotMatch
                        | Op::PGRegexNotIMatch
                        | Op::PGLikeMatch
                        | Op::PGNotLikeMatch
                        | Op::PGILikeMatch
                        | Op::PGNotILikeMatch
                );
                let is_compared = matches!(op, Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq);
                let of_numbers = matches!(op, Op::Plus | Op::Minus | Op::Multiply | Op::Divide | Op::Modulo);
                let kinds = (self.kind(left), self.kind(right));
                if is_match {
                    if kinds.0 == Operand::Varchar {
                        **left = cast((**left).clone(), SqlType::Text);
                    }
                    self.adapt(right, Operand::Text);
                } else if is_compared
                    || of_numbers
                        && [kinds.0, kinds.1].iter().any(|kind| matches!(kind, Operand::Numeric | Operand::Float))
                {
                    let is_text =
                        |of: &Expr, kind| text_of(of).is_some() || matches!(kind, Operand::Text | Operand::Varchar);
                    let are_texts = is_text(left, kinds.0) && is_text(right, kinds.1);
                    self.adapt(left, kinds.1);
                    self.adapt(right, kinds.0);
                    for (side, kind) in [(left, kinds.0), (right, kinds.1)] {
                        if are_texts && kind == Operand::Varchar {
                            **side = cast((**side).clone(), SqlType::Text);
                        }
                    }
                }
            }
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } => self.items(left, right),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Operands<'_> {
    /// The items of an array that is compared item by item.
    fn items(&self, left: &mut Expr, right: &mut Expr) {
        let kind = self.kind(left);
        let Expr::Array(array) = right else { return };
        let plain = array.elem.iter().map(|item| match item {
            Expr::Cast { expr, data_type: SqlType::Text, .. } if text_of(expr).is_some() => (**expr).clone(),
            other => other.clone(),
        });
        let mut elem: Vec<Expr> = plain.collect();
        for item in &mut elem {
            match (text_of(item), kind) {
                (Some(_), Operand::Varchar) => *item = cast(item.clone(), SqlType::Varchar(None)),
                (Some(_), Operand::Unknown) => *item = cast(item.clone(), SqlType::Text),
                _ => self.adapt(item, kind),
            }
        }
        *right = Expr::Array(Array { elem, named: true });
        if kind == Operand::Varchar {
            let texts = SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(SqlType::Text), None));
            *right = cast(right.clone(), texts);
            *left = cast(left.clone(), SqlType::Text);
        }
    }
}

/// A type of columns as a statement says it, for constants of it.
fn spelled_type(data_type: DataType) -> Option<SqlType> {
    let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(&long_kept_name(data_type)).ok()?;
    parser.parse_data_type().ok()
}

/// The text of the value of a type that a text stands for.
fn value_text(text: &str, data_type: DataType) -> Option<String> {
    let mut builder = ColumnBuilder::new(data_type);
    builder.append_text(text).ok()?;
    lasting_text(&builder.finish(), 0)
}

fn first_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// Whether an expression is a whole number.
fn is_whole(expr: &Expr) -> bool {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(number, false), .. }) => !number.contains('.'),
        Expr::Cast { expr, data_type: SqlType::Integer(None) | SqlType::BigInt(None), .. } => text_of(expr).is_some(),
        _ => false,
    }
}

fn is_number(expr: &Expr) -> bool {
    is_whole(expr) || matches!(expr, Expr::Value(ValueWithSpan { value: Value::Number(_, false), .. }))
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
                    Some(Expr::Array(Array { elem, named: true }))
                }
                (inner, _, SqlType::Int(None) | SqlType::Integer(None) | SqlType::Int4(None)) if is_integer(inner) => {
                    Some(inner.clone())
                }
                _ => interval(expr).or_else(|| typed(expr)),
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => negative(inner),
        Expr::Value(ValueWithSpan { value: Value::Number(number, false), .. }) => {
            let is_long = || number.parse::<i32>().is_err() && number.parse::<i64>().is_ok();
            let long = || is_long().then(|| of_type(number.clone(), SqlType::BigInt(None)));
            exponent("", number).or_else(long)
        }
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

/// A text with a type that is not written as its value is.
fn typed(expr: &Expr) -> Option<Expr> {
    let data_type = match expr {
        Expr::TypedString(typed) => &typed.data_type,
        Expr::Cast { data_type, .. } => data_type,
        _ => return None,
    };
    // A number has the digits that it is written with.
    let Literal::Typed(value, of) = literal(expr)? else { return None };
    if matches!(of, DataType::Decimal { .. } | DataType::Numeric) {
        return None;
    }
    Some(of_type(lasting_text(&value, 0)?, data_type.clone()))
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
