//! Calls of functions in a statement's tree: their names as the catalog knows them, their arguments, and new ones.
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, ObjectNamePart, SelectItem, SetExpr,
    Value,
};

use super::oids::CATALOG_SCHEMA;
use crate::error::Result;
use crate::syntax::identifiers::fold;
use crate::syntax::template::template;

/// The last part of a name that is one of the catalog's, or has no schema.
pub(super) fn catalog_name(name: &ObjectName) -> Option<String> {
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    match &parts[..] {
        [name] => Some(name.clone()),
        [schema, name] if schema == CATALOG_SCHEMA => Some(name.clone()),
        _ => None,
    }
}

/// A text that stands in a statement as it is.
pub(super) fn quoted_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Takes an expression out of its place.
pub(super) fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::value(Value::Null))
}

/// A text as an expression.
pub(super) fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

/// A call of a function with these arguments.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Result<Expr> {
    let query = template(&format!("SELECT {name}()"))?;
    let SetExpr::Select(mut select) = *query.body else { return Ok(Expr::value(Value::Null)) };
    match select.projection.pop() {
        Some(SelectItem::UnnamedExpr(Expr::Function(mut function))) => {
            if let FunctionArguments::List(list) = &mut function.args {
                list.args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
            }
            Ok(Expr::Function(function))
        }
        _ => Ok(Expr::value(Value::Null)),
    }
}

/// The arguments of a call.
pub(super) fn arguments(function: &mut Function) -> Vec<&mut Expr> {
    let FunctionArguments::List(list) = &mut function.args else { return Vec::new() };
    fn plain(arg: &mut FunctionArg) -> Option<&mut Expr> {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        }
    }
    list.args.iter_mut().filter_map(plain).collect()
}
