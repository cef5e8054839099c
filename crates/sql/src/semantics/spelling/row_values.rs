//! Rows compared with rows, `(a, b) < (c, d)`, and with lists of rows: column by column, with PostgreSQL's NULLs. The
//! planner would make structures of them, of which two that hold a NULL are equal. And `IS DISTINCT FROM` of values as an
//! operator, whose operands [`LiteralPlanner`](crate::semantics::adapting::adapt::LiteralPlanner) gives one type before
//! the planner asks for it.
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName,
    ObjectNamePart, Statement, UnaryOperator, Value,
};

use super::table_rows;
use crate::error::{Result, SqlError};
use crate::syntax::identifiers::fold;
use crate::syntax::visit::replace;

/// The operators for `IS DISTINCT FROM` and `IS NOT DISTINCT FROM`.
pub(crate) const DISTINCT: &str = "IS DISTINCT FROM";
pub(crate) const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// Rewrites every such comparison of a statement.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    replace(statement, rewritten)
}

fn rewritten(expr: &Expr) -> Result<Option<Expr>> {
    match expr {
        Expr::BinaryOp { left, op, right } => match (row(left), row(right)) {
            (Some(of_left), Some(of_right)) if is_of_table(left) || is_of_table(right) => {
                Ok(ordered(&of_left, op, &of_right)?.map(|result| table_rows::if_there(&[left, right], result)))
            }
            (Some(left), Some(right)) => compared(&left, op, &right),
            // What was no row before names were looked up.
            _ if *op == BinaryOperator::Custom(DISTINCT.to_owned()) => differ(left, right),
            _ if *op == BinaryOperator::Custom(NOT_DISTINCT.to_owned()) => Ok(differ(left, right)?.map(not)),
            _ => Ok(None),
        },
        Expr::Between { expr, negated, low, high } => match (row(expr), row(low), row(high)) {
            (Some(items), Some(low), Some(high)) => {
                let low = compared(&items, &BinaryOperator::GtEq, &low)?;
                let high = compared(&items, &BinaryOperator::LtEq, &high)?;
                let both = low.zip(high).map(|(low, high)| binary(low, &BinaryOperator::And, high));
                Ok(both.map(|both| if *negated { not(both) } else { both }))
            }
            _ => Ok(None),
        },
        Expr::IsDistinctFrom(left, right) => match differ(left, right)? {
            Some(differ) => Ok(Some(differ)),
            None => Ok(Some(binary(*left.clone(), &BinaryOperator::Custom(DISTINCT.to_owned()), *right.clone()))),
        },
        Expr::IsNotDistinctFrom(left, right) => match differ(left, right)? {
            Some(differ) => Ok(Some(not(differ))),
            None => Ok(Some(binary(*left.clone(), &BinaryOperator::Custom(NOT_DISTINCT.to_owned()), *right.clone()))),
        },
        Expr::InList { expr, list, negated } => {
            let Some(left) = row(expr) else { return Ok(None) };
            let Some(rows) = list.iter().map(row).collect::<Option<Vec<_>>>() else { return Ok(None) };
            let equal: Result<Vec<Expr>> = match is_of_table(expr) {
                true => rows.iter().map(|right| all_alike(&left, right)).collect(),
                false => rows.iter().map(|right| all_equal(&left, right)).collect(),
            };
            let any = balanced(equal?, &BinaryOperator::Or);
            Ok(any.map(|any| if *negated { not(any) } else { any }))
        }
        _ => Ok(None),
    }
}

fn plain(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// Whether a function makes a row of its arguments.
fn is_row(name: &ObjectName) -> bool {
    matches!(&name.0[..], [ObjectNamePart::Identifier(ident)] if fold(ident) == "row")
}

/// The items of `(a, b)` or `ROW(a, b)`, or of the row of a table.
pub(crate) fn row(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::Tuple(items) => Some(items.iter().collect()),
        Expr::Function(Function { name, args: FunctionArguments::List(list), over: None, .. }) if is_row(name) => {
            list.args.iter().map(plain).collect()
        }
        other => table_rows::fields(other),
    }
}

/// Two rows compared, if there is such a comparison of rows.
pub(crate) fn compared(left: &[&Expr], op: &BinaryOperator, right: &[&Expr]) -> Result<Option<Expr>> {
    let strict = match op {
        BinaryOperator::Eq => return all_equal(left, right).map(Some),
        BinaryOperator::NotEq => return Ok(Some(not(all_equal(left, right)?))),
        BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::Gt | BinaryOperator::GtEq => BinaryOperator::Gt,
        _ => return Ok(None),
    };
    let pairs = pairs(left, right)?;
    // What is worked out may fail: it is left alone behind a pair that differs or has a NULL.
    let are_plain = pairs.iter().all(|(left, right)| is_plain(left) && is_plain(right));
    let mut result: Option<Expr> = None;
    // The first columns that differ decide.
    for (left, right) in pairs.into_iter().rev() {
        result = Some(match result {
            None => binary(left.clone(), op, right.clone()),
            Some(rest) => {
                let equal = binary(left.clone(), &BinaryOperator::Eq, right.clone());
                let decided = binary(left.clone(), &strict, right.clone());
                match are_plain {
                    true => binary(decided, &BinaryOperator::Or, binary(equal, &BinaryOperator::And, rest)),
                    false => when(equal, rest, decided),
                }
            }
        });
    }
    Ok(result)
}

/// Whether a row is that of a table, which is compared as a whole: NULL equals NULL in it and comes after everything else.
fn is_of_table(expr: &Expr) -> bool {
    table_rows::fields(expr).is_some()
}

/// Two rows compared as wholes, if there is such a comparison.
fn ordered(left: &[&Expr], op: &BinaryOperator, right: &[&Expr]) -> Result<Option<Expr>> {
    let (strict, or_equal) = match op {
        BinaryOperator::Eq => return all_alike(left, right).map(Some),
        BinaryOperator::NotEq => return Ok(Some(not(all_alike(left, right)?))),
        BinaryOperator::Lt => (BinaryOperator::Lt, false),
        BinaryOperator::LtEq => (BinaryOperator::Lt, true),
        BinaryOperator::Gt => (BinaryOperator::Gt, false),
        BinaryOperator::GtEq => (BinaryOperator::Gt, true),
        _ => return Ok(None),
    };
    let constant = |value: bool| Expr::value(Value::Boolean(value));
    let is_null = |expr: &Expr| Expr::IsNull(Box::new(expr.clone()));
    let mut result = constant(or_equal);
    // The first columns that differ decide.
    for (left, right) in pairs(left, right)?.into_iter().rev() {
        let (last, first) = if strict == BinaryOperator::Lt { (right, left) } else { (left, right) };
        let both = when(is_null(first), constant(false), binary(left.clone(), &strict, right.clone()));
        let decided = when(is_null(last), constant(true), both);
        result = when(distinct(left, right), decided, result);
    }
    Ok(Some(result))
}

/// Whether no two values of rows are distinct.
fn all_alike(left: &[&Expr], right: &[&Expr]) -> Result<Expr> {
    let distinct = pairs(left, right)?.into_iter().map(|(left, right)| distinct(left, right)).collect();
    let any = balanced(distinct, &BinaryOperator::Or);
    any.map(not).ok_or_else(|| SqlError::syntax("cannot compare rows of zero length"))
}

fn distinct(left: &Expr, right: &Expr) -> Expr {
    let inner = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    Expr::Nested(Box::new(Expr::IsDistinctFrom(inner(left), inner(right))))
}

/// Whether an expression is a column or a constant.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::UnaryOp { expr: inner, .. } => is_plain(inner),
        _ => false,
    }
}

/// `CASE WHEN condition THEN result ELSE other END`
fn when(condition: Expr, result: Expr, other: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: Some(Box::new(other)),
    }
}

fn all_equal(left: &[&Expr], right: &[&Expr]) -> Result<Expr> {
    let equal = |(left, right): (&Expr, &Expr)| binary(left.clone(), &BinaryOperator::Eq, right.clone());
    let equal = pairs(left, right)?.into_iter().map(equal).collect();
    balanced(equal, &BinaryOperator::And).ok_or_else(|| SqlError::syntax("cannot compare rows of zero length"))
}

fn differ(left: &Expr, right: &Expr) -> Result<Option<Expr>> {
    let (Some(left), Some(right)) = (row(within(left)), row(within(right))) else { return Ok(None) };
    let differ = pairs(&left, &right)?.into_iter().map(|(left, right)| distinct(left, right)).collect();
    Ok(balanced(differ, &BinaryOperator::Or))
}

/// What stands in parentheses.
fn within(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => within(inner),
        other => other,
    }
}

fn pairs<'e>(left: &[&'e Expr], right: &[&'e Expr]) -> Result<Vec<(&'e Expr, &'e Expr)>> {
    match left.len() == right.len() {
        true => Ok(left.iter().copied().zip(right.iter().copied()).collect()),
        false => Err(SqlError::syntax("unequal number of entries in row expressions")),
    }
}

/// Two values compared by an operator that may stand before `ANY`.
pub(crate) fn compared_values(left: Expr, op: &BinaryOperator, right: Expr) -> Option<Expr> {
    let nested = |expr: Expr| Box::new(Expr::Nested(Box::new(expr)));
    let like = |ignores_case: bool, negated: bool| {
        let (expr, pattern) = (nested(left.clone()), nested(right.clone()));
        Expr::Nested(Box::new(match ignores_case {
            false => Expr::Like { negated, any: false, expr, pattern, escape_char: None },
            true => Expr::ILike { negated, any: false, expr, pattern, escape_char: None },
        }))
    };
    match op {
        BinaryOperator::PGLikeMatch => Some(like(false, false)),
        BinaryOperator::PGNotLikeMatch => Some(like(false, true)),
        BinaryOperator::PGILikeMatch => Some(like(true, false)),
        BinaryOperator::PGNotILikeMatch => Some(like(true, true)),
        BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::Lt
        | BinaryOperator::LtEq
        | BinaryOperator::Gt
        | BinaryOperator::GtEq
        | BinaryOperator::PGRegexMatch
        | BinaryOperator::PGRegexIMatch
        | BinaryOperator::PGRegexNotMatch
        | BinaryOperator::PGRegexNotIMatch => Some(binary(left, op, right)),
        _ => None,
    }
}

/// One expression of many: a tree that is no deeper than need be.
pub(crate) fn balanced(mut exprs: Vec<Expr>, op: &BinaryOperator) -> Option<Expr> {
    match exprs.len() {
        0 => None,
        1 => exprs.pop(),
        count => {
            let rest = exprs.split_off(count / 2);
            Some(binary(balanced(exprs, op)?, op, balanced(rest, op)?))
        }
    }
}

fn binary(left: Expr, op: &BinaryOperator, right: Expr) -> Expr {
    let nested = |expr| match expr {
        Expr::Nested(_) => Box::new(expr),
        other => Box::new(Expr::Nested(Box::new(other))),
    };
    Expr::Nested(Box::new(Expr::BinaryOp { left: nested(left), op: op.clone(), right: nested(right) }))
}

fn not(expr: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }))
}
