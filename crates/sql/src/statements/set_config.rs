//! `SELECT set_config(name, value, is_local)`: `SET` in the shape of a query, as some tools send it.
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SelectItem, SetExpr, Value,
};

use crate::error::Result;
use crate::session::Session;
use crate::syntax::identifiers::last_part;

/// Carries out what a query of nothing else asks for, and puts the new values into the query.
pub(crate) fn apply(session: &mut Session, query: &mut Query) -> Result<()> {
    each(query, |name, value, is_local| {
        session.set_named(name, value, is_local)?;
        Ok(session.setting(name).unwrap_or_default())
    })
}

/// Prepares the query for its columns, without carrying anything out.
pub(crate) fn describe(query: &mut Query) -> Result<()> {
    each(query, |_, value, _| Ok(value.to_owned()))
}

fn each(query: &mut Query, mut set: impl FnMut(&str, &str, bool) -> Result<String>) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    if !select.from.is_empty() || select.selection.is_some() {
        return Ok(());
    }
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        if let Some((name, value, is_local)) = asked(expr) {
            *expr = Expr::value(Value::SingleQuotedString(set(&name, &value, is_local)?));
        }
    }
    Ok(())
}

/// The name, the value and whether it is for the block only, if an expression is such a call.
fn asked(expr: &Expr) -> Option<(String, String, bool)> {
    let Expr::Function(function) = expr else { return None };
    let name = last_part(&function.name);
    let FunctionArguments::List(list) = &function.args else { return None };
    let literal = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => literal(expr),
        _ => None,
    };
    match (name.as_deref(), &list.args[..]) {
        (Some("set_config"), [name, value, is_local]) => {
            Some((literal(name)?, literal(value)?, literal(is_local)? == "true"))
        }
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Cast { expr, .. } => literal(expr),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::Number(text, _) => Some(text.clone()),
            Value::Boolean(value) => Some(value.to_string()),
            Value::Null => Some(String::new()),
            _ => None,
        },
        _ => None,
    }
}
