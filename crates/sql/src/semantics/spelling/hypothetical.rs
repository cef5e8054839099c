//! Where a row would stand among those of a group: `rank(3) WITHIN GROUP (ORDER BY x)`, as counts of rows before it.
//!
//! ```text
//! rank(a)          1 + count(*) FILTER (WHERE x is before a)
//! dense_rank(a)    1 + count(DISTINCT x) FILTER (WHERE x is before a)
//! percent_rank(a)  count(*) FILTER (WHERE x is before a) / count(*), of no rows 0
//! cume_dist(a)     (1 + count(*) FILTER (WHERE x is not after a)) / (1 + count(*))
//! ```
//!
//! Of several keys the first that differs decides. Nulls stand at the end that the order says, which by default is that of the
//! greatest values.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, OrderByExpr, Statement, Value, VisitorMut,
};

use super::spellings::{calling, cast};
use crate::error::{Result, SqlError};
use crate::syntax::identifiers::last_part;
use crate::syntax::walk::WalkMut;

/// Puts counts in the places of the calls of a statement.
///
/// # Errors
/// As [`counted`].
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Calls) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Calls;

impl VisitorMut for Calls {
    type Break = Box<SqlError>;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<SqlError>> {
        if let Expr::Function(call) = expr {
            match counted(call) {
                Ok(Some(counts)) => *expr = counts,
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(Box::new(error)),
            }
        }
        ControlFlow::Continue(())
    }
}

/// The expression that a call is, if it is of such an aggregate.
///
/// # Errors
/// Where there are not as many arguments as keys, or the ranks of several keys are to have no gaps.
fn counted(call: &Function) -> Result<Option<Expr>> {
    let name = last_part(&call.name).unwrap_or_default();
    if call.within_group.is_empty() || !["rank", "dense_rank", "percent_rank", "cume_dist"].contains(&&*name) {
        return Ok(None);
    }
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    let argument = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let Some(row) = list.args.iter().map(argument).collect::<Option<Vec<Expr>>>() else { return Ok(None) };
    let keys = &call.within_group;
    if row.len() != keys.len() {
        let message = format!("function {name} does not exist");
        let hint = "To use the hypothetical-set aggregate, the number of hypothetical direct arguments must match the number of ordering \
                    columns.";
        return Err(SqlError::new("42883", message).hint(hint));
    }
    let filter = call.filter.as_deref();
    let before = || before(keys, &row);
    let one = || number("1");
    Ok(Some(Expr::Nested(Box::new(match name.as_str() {
        "rank" => sum(one(), count(None, Some(before()), filter)),
        "dense_rank" => {
            let [key] = &keys[..] else {
                return Err(SqlError::unsupported("dense_rank of several keys within a group"));
            };
            let null = both(before(), Expr::IsNull(nested(key.expr.clone())));
            let nulls = sum(one(), calling("sign", vec![count(None, Some(null), filter)]));
            cast(nested_expr(sum(nulls, count(Some(&key.expr), Some(before()), filter))), DataType::BigInt(None))
        }
        "percent_rank" => {
            let all = || count(None, None, filter);
            let share = quotient(count(None, Some(before()), filter), all());
            let none = binary(all(), BinaryOperator::Eq, number("0"));
            let when = CaseWhen { condition: none, result: cast(number("0"), DataType::Float8) };
            case(when, share)
        }
        _ => {
            let until = either(before(), level(keys, &row));
            quotient(sum(one(), count(None, Some(until), filter)), sum(one(), count(None, None, filter)))
        }
    }))))
}

/// Whether the keys of a row stand before those of the one that is asked about.
fn before(keys: &[OrderByExpr], row: &[Expr]) -> Expr {
    let ([key, keys @ ..], [value, row @ ..]) = (keys, row) else { return Expr::value(Value::Boolean(false)) };
    let is_ascending = key.options.asc != Some(false);
    let nulls_first = key.options.nulls_first.unwrap_or(!is_ascending);
    let operator = if is_ascending { BinaryOperator::Lt } else { BinaryOperator::Gt };
    let (key, value) = (|| nested(key.expr.clone()), || nested(value.clone()));
    let less = Expr::IsTrue(nested(binary(*key(), operator, *value())));
    let null = match nulls_first {
        true => both(Expr::IsNull(key()), Expr::IsNotNull(value())),
        false => both(Expr::IsNotNull(key()), Expr::IsNull(value())),
    };
    let first = either(less, null);
    match keys.is_empty() {
        true => first,
        false => either(first, both(Expr::IsNotDistinctFrom(key(), value()), before(keys, row))),
    }
}

/// Whether the keys of a row are those of the one that is asked about.
fn level(keys: &[OrderByExpr], row: &[Expr]) -> Expr {
    let pairs = keys.iter().zip(row);
    let equal = pairs.map(|(key, value)| Expr::IsNotDistinctFrom(nested(key.expr.clone()), nested(value.clone())));
    equal.reduce(both).unwrap_or_else(|| Expr::value(Value::Boolean(true)))
}

/// `count(*)`, or of the different values of an expression, of the rows that pass both conditions.
fn count(distinct: Option<&Expr>, condition: Option<Expr>, filter: Option<&Expr>) -> Expr {
    let argument = distinct.map_or(FunctionArgExpr::Wildcard, |of| FunctionArgExpr::Expr(of.clone()));
    let condition = match (condition, filter) {
        (Some(condition), Some(filter)) => Some(both(nested_expr(filter.clone()), condition)),
        (condition, filter) => condition.or_else(|| filter.cloned()),
    };
    let Expr::Function(mut call) = calling("count", Vec::new()) else { return Expr::value(Value::Null) };
    call.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: distinct.map(|_| DuplicateTreatment::Distinct),
        args: vec![FunctionArg::Unnamed(argument)],
        clauses: Vec::new(),
    });
    call.filter = condition.map(Box::new);
    Expr::Function(call)
}

fn case(when: CaseWhen, otherwise: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![when],
        else_result: Some(Box::new(otherwise)),
    }
}

fn quotient(of: Expr, by: Expr) -> Expr {
    binary(cast(nested_expr(of), DataType::Float8), BinaryOperator::Divide, cast(nested_expr(by), DataType::Float8))
}

fn sum(left: Expr, right: Expr) -> Expr {
    binary(left, BinaryOperator::Plus, right)
}

fn both(left: Expr, right: Expr) -> Expr {
    nested_expr(binary(left, BinaryOperator::And, right))
}

fn either(left: Expr, right: Expr) -> Expr {
    nested_expr(binary(left, BinaryOperator::Or, right))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn number(text: &str) -> Expr {
    Expr::value(Value::Number(text.to_owned(), false))
}

fn nested(expr: Expr) -> Box<Expr> {
    Box::new(nested_expr(expr))
}

fn nested_expr(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}
