//! The types of number literals, as PostgreSQL has them: `integer` if it fits, then `bigint`, then `numeric`.
//!
//! The planner knows `bigint`, unsigned integers of 64 bits, and decimals. So a literal is written such that it can't be
//! mistaken: what is no `bigint` as a decimal with all of its digits, and small ones, where their type is seen, as a cast to
//! `integer`. (Operands of operators become integers in [`crate::semantics::LiteralPlanner`], where that costs less.)
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Query, Select, SelectItem, SetExpr, Statement, TableFactor, UnaryOperator, Value, Values,
    VisitorMut,
};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::walk::WalkMut;
use crate::values::types::is_bare_numeric;

/// The digits that a decimal of the planner may have.
const DIGITS_MAX: usize = 76;

/// Functions with a result of the type of their arguments.
const TYPED_BY_ARGUMENTS: [&str; 27] = [
    "coalesce",
    "nullif",
    "greatest",
    "least",
    "min",
    "max",
    "sum",
    "array_agg",
    "pg_typeof",
    "abs",
    "gcd",
    "lcm",
    "mod",
    "div",
    "generate_series",
    "array_fill",
    "array_append",
    "array_prepend",
    "array_remove",
    "array_replace",
    "array_position",
    "array_positions",
    "to_hex",
    "bit_and",
    "bit_or",
    "bit_xor",
    "mode",
];
/// Functions with a result of the type of their first argument; the others are counts.
const TYPED_BY_THE_FIRST: [&str; 5] = ["lag", "lead", "first_value", "last_value", "nth_value"];

/// Rewrites the literals of a statement.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Numbers) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Numbers;

impl VisitorMut for Numbers {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                narrow(expr);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<SqlError> {
        if let TableFactor::Table { name, args: Some(args), .. } = table
            && name.0.last().and_then(|part| part.as_ident()).is_some_and(|name| fold(name) == "generate_series")
        {
            args.args.iter_mut().for_each(narrow_arg);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        if let SetExpr::Values(values) = query.body.as_mut() {
            type_columns(values);
            values.rows.iter_mut().flat_map(|row| &mut row.content).for_each(narrow);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match expr {
            Expr::Cast { expr: inner, data_type, .. } if is_float(data_type) => {
                if let Some(number) = number(inner).filter(|number| !number.bytes().all(|byte| byte.is_ascii_digit())) {
                    **inner = Expr::value(Value::SingleQuotedString(number.to_owned()));
                }
            }
            Expr::Cast { expr: inner, data_type, .. } if is_bare_numeric(data_type) => {
                if let Some((precision, scale)) = digits_of(inner) {
                    *data_type = DataType::Numeric(ExactNumberInfo::PrecisionAndScale(precision, scale));
                }
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if number(inner).is_some() => negative(expr),
            Expr::UnaryOp { op: UnaryOperator::BitwiseNot | UnaryOperator::PGAbs, expr: inner } => narrow(inner),
            Expr::BinaryOp {
                left,
                op:
                    BinaryOperator::PGBitwiseShiftLeft | BinaryOperator::PGBitwiseShiftRight | BinaryOperator::PGBitwiseXor,
                right,
            } => {
                narrow(left);
                narrow(right);
            }
            Expr::BinaryOp { left, right, .. } => {
                beside_a_float(left);
                beside_a_float(right);
            }
            Expr::Between { low, high, .. } => {
                beside_a_float(low);
                beside_a_float(high);
            }
            Expr::Case { conditions, else_result, .. } => {
                conditions.iter_mut().for_each(|when| narrow(&mut when.result));
                if let Some(result) = else_result {
                    narrow(result);
                }
            }
            Expr::Array(array) if is_of_unlimited(&array.elem) => array.elem.iter_mut().for_each(become_unlimited),
            Expr::Array(array) => array.elem.iter_mut().for_each(narrow),
            Expr::Function(function) => {
                let name = last_part(&function.name);
                let narrowed = name.map_or(0, |name| match &*name {
                    name if TYPED_BY_ARGUMENTS.contains(&name) => usize::MAX,
                    name if TYPED_BY_THE_FIRST.contains(&name) => 1,
                    _ => 0,
                });
                if let FunctionArguments::List(list) = &mut function.args {
                    list.args.iter_mut().take(narrowed).for_each(narrow_arg);
                    constant_keys(&mut list.clauses, narrowed > 0);
                }
            }
            Expr::Value(value) => {
                if let Value::Number(number, _) = &mut value.value
                    && number.parse::<i64>().is_err()
                    && !number.contains('_')
                {
                    match plain(number) {
                        Some(digits) => *number = digits,
                        None => *expr = unlimited(number),
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A sign before parentheses is that of the number in them. The least numbers of their types have digits that alone do not fit.
fn negative(expr: &mut Expr) {
    let Expr::UnaryOp { expr: inner, .. } = expr else { return };
    while let Expr::Nested(within) = &mut **inner {
        *inner = std::mem::replace(within, Box::new(Expr::value(Value::Null)));
    }
    let (text, data_type) = match number(inner) {
        Some("9223372036854775808") => ("-9223372036854775808", DataType::BigInt(None)),
        Some("2147483648") => ("-2147483648", DataType::Int(None)),
        _ => return,
    };
    *expr = cast(Expr::value(Value::SingleQuotedString(text.to_owned())), data_type);
}

/// A number of so many digits that no decimal holds it takes its type from the float that it is compared with, as a text without a
/// type does.
fn beside_a_float(expr: &mut Expr) {
    let (sign, inner) = match &*expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => ("-", &**expr),
        other => ("", other),
    };
    let is_long = |number: &&str| number.parse::<i64>().is_err() && plain(number).is_none();
    if let Some(number) = number(inner).filter(is_long) {
        *expr = Expr::value(Value::SingleQuotedString(format!("{sign}{number}")));
    }
}

/// A number that no decimal of the planner has digits for, as a numeric without limits.
fn unlimited(number: &str) -> Expr {
    cast(Expr::value(Value::SingleQuotedString(number.to_owned())), DataType::Numeric(ExactNumberInfo::None))
}

fn is_float(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::DoublePrecision
            | DataType::Float8
            | DataType::Double(ExactNumberInfo::None)
            | DataType::Float(_)
            | DataType::Real
            | DataType::Float4
    )
}

/// How many digits and decimals a literal has, be it a number or a text of one, if 38 digits hold it.
fn digits_of(expr: &Expr) -> Option<(u64, i64)> {
    let text = match expr {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => return digits_of(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) | Value::SingleQuotedString(text) => text.trim(),
            _ => return None,
        },
        _ => return None,
    };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = [whole, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let precision = (whole.trim_start_matches('0').len() + fraction.len()).max(1);
    let is_one = is_plain && !(whole.is_empty() && fraction.is_empty()) && precision <= 38;
    is_one.then_some((u64::try_from(precision).ok()?, i64::try_from(fraction.len()).ok()?))
}

fn is_double(data_type: &DataType) -> bool {
    is_float(data_type) && !matches!(data_type, DataType::Real | DataType::Float4)
}

/// Whether a type is one of numbers.
fn is_number(data_type: &DataType) -> bool {
    use DataType::{BigInt, Dec, Decimal, Int, Int2, Int4, Int8, Integer, Numeric, SmallInt};
    let is_integer = matches!(data_type, SmallInt(_) | Int2(_) | Int(_) | Integer(_) | Int4(_) | BigInt(_) | Int8(_));
    is_float(data_type) || is_integer || matches!(data_type, Numeric(_) | Decimal(_) | Dec(_))
}

fn number(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => Some(number),
            _ => None,
        },
        Expr::Nested(inner) => number(inner),
        _ => None,
    }
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// Gives literals in a list of rows the type that another row of their column names: texts any, numbers that of floats.
fn type_columns(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for at in 0..width {
        let mut named = values.rows.iter().filter_map(|row| row.content.get(at).and_then(named_type));
        let Some(first) = named.next() else { continue };
        // A double among numbers makes doubles of them.
        let double = is_number(&first).then(|| named.find(is_double)).flatten();
        let to = double.unwrap_or(first);
        if is_bare_numeric(&to) && values.rows.iter().filter_map(|row| row.content.get(at)).any(is_unlimited) {
            values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)).for_each(become_unlimited);
            continue;
        }
        for expr in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
            let is_text = matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
            let unsigned = match &*expr {
                Expr::UnaryOp { op: UnaryOperator::Minus, expr } => expr,
                other => other,
            };
            let is_exact = named_type(expr).is_some_and(|own| is_number(&own) && !is_double(&own));
            if is_text || (is_float(&to) && number(unsigned).is_some()) || (is_double(&to) && is_exact) {
                *expr = cast(std::mem::replace(expr, Expr::value(Value::Null)), to.clone());
            }
        }
    }
}

/// The literal that an expression is, or that it casts to a numeric without precision.
fn literal_of_numeric(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Cast { expr, data_type, .. } if is_bare_numeric(data_type) => literal_of_numeric(expr),
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_) | Value::Number(..)).then_some(expr),
        _ => None,
    }
}

/// Whether an expression is a literal that no decimal has digits for, as NaN.
fn is_unlimited(expr: &Expr) -> bool {
    literal_of_numeric(expr).is_some_and(|literal| digits_of(literal).is_none())
}

/// Whether the items of an array are numerics, one of which no decimal has digits for, or is NULL.
fn is_of_unlimited(items: &[Expr]) -> bool {
    let is_null = |item: &Expr| match item {
        Expr::Cast { expr, .. } => matches!(expr.as_ref(), Expr::Value(value) if value.value == Value::Null),
        _ => false,
    };
    let mut numerics = items.iter().filter(|item| named_type(item).is_some_and(|named| is_bare_numeric(&named)));
    numerics.any(|item| is_null(item) || is_unlimited(item))
}

/// A literal as a numeric without limits, by way of its text, whatever digits it has.
fn become_unlimited(expr: &mut Expr) {
    if let Some(literal) = literal_of_numeric(expr) {
        let text = match literal {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => Expr::value(Value::SingleQuotedString(number.clone())),
                _ => literal.clone(),
            },
            other => other.clone(),
        };
        *expr = cast(cast(text, DataType::Text), DataType::Numeric(ExactNumberInfo::None));
    }
}

/// The type that an expression names, with or without a sign before it.
fn named_type(expr: &Expr) -> Option<DataType> {
    match expr {
        Expr::Cast { data_type, .. } => Some(data_type.clone()).filter(is_uncut),
        Expr::TypedString(typed) => Some(typed.data_type.clone()).filter(is_uncut),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } | Expr::Nested(expr) => named_type(expr),
        _ => None,
    }
}

/// Whether a cast to a type leaves texts as they are.
fn is_uncut(data_type: &DataType) -> bool {
    let cuts = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::Char(_) | DataType::Character(_)
        )
    };
    !cuts(data_type)
}

fn narrow_arg(arg: &mut FunctionArg) {
    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
        narrow(expr);
    }
}

/// Puts numbers in the ORDER BY of an aggregate in parentheses: there they are constants, while the planner takes them for
/// numbers of columns. They are typed as its arguments are.
fn constant_keys(clauses: &mut [FunctionArgumentClause], is_narrowed: bool) {
    for clause in clauses {
        let FunctionArgumentClause::OrderBy(keys) = clause else { continue };
        for key in keys.iter_mut().filter(|key| number(&key.expr).is_some()) {
            let inner = std::mem::replace(&mut key.expr, Expr::value(Value::Null));
            key.expr = Expr::Nested(Box::new(inner));
            if is_narrowed {
                narrow(&mut key.expr);
            }
        }
    }
}

/// Makes a literal that fits an `integer` one.
fn narrow(expr: &mut Expr) {
    let (mut inner, mut sign) = (&*expr, "");
    loop {
        inner = match inner {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                sign = if sign.is_empty() { "-" } else { "" };
                expr
            }
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } | Expr::Nested(expr) => expr,
            _ => break,
        }
    }
    if number(inner).is_some_and(|number| format!("{sign}{number}").parse::<i32>().is_ok()) {
        *expr = cast(std::mem::replace(expr, Expr::value(Value::Null)), DataType::Int(None));
    }
}

/// A number with all of its digits and an exponent of zero, which tells it from an integer; `None` where it has too many.
fn plain(number: &str) -> Option<String> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.parse::<i64>().ok().filter(|exponent| exponent.abs() <= 1000)?;
    let digits = format!("{whole}{fraction}");
    let point = i64::try_from(whole.len()).ok()? + exponent;
    let (whole, fraction) = match usize::try_from(point) {
        Ok(point) if point >= digits.len() => (format!("{digits:0<point$}"), String::new()),
        Ok(point) => (digits[..point].to_owned(), digits[point..].to_owned()),
        Err(_) => (String::new(), format!("{}{digits}", "0".repeat(usize::try_from(-point).ok()?))),
    };
    let whole = whole.trim_start_matches('0');
    if whole.len() + fraction.len() > DIGITS_MAX {
        return None;
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() { format!("{whole}e0") } else { format!("{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_all_digits() {
        let cases = [
            ("1.50", "1.50"),
            (".5", "0.5"),
            ("5.", "5e0"),
            ("1e3", "1000e0"),
            ("1.5e1", "15e0"),
            ("12.345e1", "123.45"),
            ("1e-3", "0.001"),
            ("12345678901234567890", "12345678901234567890e0"),
            ("000000000000000000000000001e0", "1e0"),
        ];
        for (number, expected) in cases {
            assert_eq!(plain(number).as_deref(), Some(expected), "{number}");
        }
        assert!(plain("1e75").is_some());
        assert!(["1e76", "1e-77", "1e999999999999999999999"].iter().all(|number| plain(number).is_none()));
    }
}
