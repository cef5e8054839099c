//! The row of a table as an expression: `named_struct('a', t.a, 'b', t.b)`, and as no row at all where an outer join has left it out:
//! `CASE WHEN t.a IS NOT NULL OR t.b IS NOT NULL THEN named_struct(...) END`. A row of nothing but NULLs is not told from none there.
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectNamePart, Value,
};

use super::row_values::balanced;
use super::spellings::calling;
use crate::syntax::identifiers::shown;

/// The function that makes a row of names and values.
const MAKE: &str = "named_struct";

/// The row of these columns of a table.
pub(crate) fn row_of(label: &Ident, columns: &[String], may_miss: bool) -> Expr {
    let field = |column: &String| {
        let name = Expr::value(Value::SingleQuotedString(shown(column).to_owned()));
        [name, Expr::CompoundIdentifier(vec![label.clone(), Ident::with_quote('"', column)])]
    };
    let row = calling(MAKE, columns.iter().flat_map(field).collect());
    let condition = match made(&row).filter(|_| may_miss) {
        Some(fields) => has_any(&fields),
        None => None,
    };
    match condition {
        None => row,
        Some(condition) => only_when(condition, row),
    }
}

/// The fields of such a row.
pub(crate) fn fields(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::Case { operand: None, conditions, else_result: None, .. } => {
            let [CaseWhen { condition, result }] = &conditions[..] else { return None };
            made(result).filter(|fields| has_any(fields).as_ref() == Some(condition))
        }
        other => made(other),
    }
}

/// What holds of rows, as far as there are such rows.
pub(super) fn if_there(rows: &[&Expr], result: Expr) -> Expr {
    let condition = |row: &&Expr| match row {
        Expr::Case { conditions, .. } => conditions.first().map(|when| when.condition.clone()),
        _ => None,
    };
    rows.iter().filter_map(condition).fold(result, |result, condition| only_when(condition, result))
}

/// `CASE WHEN condition THEN result END`
fn only_when(condition: Expr, result: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: None,
    }
}

/// The values that a row is made of.
fn made(expr: &Expr) -> Option<Vec<&Expr>> {
    let Expr::Function(call) = expr else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let [ObjectNamePart::Identifier(name)] = &call.name.0[..] else { return None };
    let value = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    (name.value == MAKE).then(|| list.args.iter().skip(1).step_by(2).map(value).collect())?
}

/// Whether any of these is not NULL.
fn has_any(fields: &[&Expr]) -> Option<Expr> {
    let is_there = |field: &&Expr| Expr::IsNotNull(Box::new((*field).clone()));
    balanced(fields.iter().map(is_there).collect(), &BinaryOperator::Or)
}
