//! Arrays of arguments: `concat(VARIADIC a)` and its kin.
//!
//! An array that is written out is as many arguments. Of others there are functions that do the same with an array.
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

use super::spellings::calling;
use crate::error::{Result, SqlError};
use crate::syntax::identifiers::last_part;
use crate::syntax::text_tokens::VARIADIC;

/// What stands for a call whose last argument is an array of arguments; `None` of any other. A call with an array that is written out gets
/// its items in place of it.
///
/// # Errors
/// If the function takes no such array.
pub(super) fn spelled_out(call: &mut Function) -> Result<Option<Expr>> {
    let name = last_part(&call.name).unwrap_or_default();
    let FunctionArguments::List(list) = &mut call.args else { return Ok(None) };
    let is_marked = |arg: &FunctionArg| matches!(arg, FunctionArg::Named { name, .. } if name.value == VARIADIC);
    if !list.args.last().is_some_and(is_marked) {
        return Ok(None);
    }
    let Some(FunctionArg::Named { arg: FunctionArgExpr::Expr(array), .. }) = list.args.pop() else { return Ok(None) };
    let plain = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let before = list.args.iter().map(plain).collect::<Option<Vec<_>>>().unwrap_or_default();
    let of_any = ["concat", "num_nulls", "num_nonnulls", "jsonb_build_array", "json_build_array"];
    if of_any.contains(&&*name) && !before.is_empty() {
        return Err(SqlError::new("42883", format!("function {name} does not take VARIADIC behind other arguments")));
    }
    if let Some(items) = items(&array) {
        list.args.extend(items.iter().map(|item| FunctionArg::Unnamed(FunctionArgExpr::Expr(item.clone()))));
        return Ok(None);
    }
    let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
    let operation = |op| match &before[..] {
        [value] => {
            let (left, right) = (Box::new(Expr::Nested(Box::new(value.clone()))), Box::new(array.clone()));
            Some(Expr::Nested(Box::new(Expr::BinaryOp { left, op, right })))
        }
        _ => None,
    };
    let present =
        || calling("cardinality", vec![calling("array_remove", vec![array.clone(), Expr::value(Value::Null)])]);
    let instead = match (&*name, &before[..]) {
        ("concat", []) => Some(calling("array_to_string", vec![array.clone(), text("")])),
        ("concat_ws", [separator]) => Some(calling("array_to_string", vec![array.clone(), separator.clone()])),
        ("jsonb_build_array", []) => Some(calling("to_jsonb", vec![array.clone()])),
        ("json_build_array", []) => Some(calling("to_json", vec![array.clone()])),
        ("num_nonnulls", []) => Some(present()),
        ("num_nulls", []) => {
            let (left, right) = (Box::new(calling("cardinality", vec![array.clone()])), Box::new(present()));
            Some(Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Minus, right })))
        }
        ("jsonb_extract_path" | "json_extract_path", [_]) => operation(BinaryOperator::HashArrow),
        ("jsonb_extract_path_text" | "json_extract_path_text", [_]) => operation(BinaryOperator::HashLongArrow),
        _ => None,
    };
    match instead {
        Some(instead) => Ok(Some(instead)),
        None => {
            let error = SqlError::unsupported(format!("VARIADIC of an array that is not written out in {name}"));
            Err(error.hint("Write ARRAY[...], or give each argument by itself."))
        }
    }
}

/// The items of an array that is written out.
fn items(array: &Expr) -> Option<&[Expr]> {
    match array {
        Expr::Array(array) => Some(&array.elem),
        Expr::Nested(inner) => items(inner),
        _ => None,
    }
}
