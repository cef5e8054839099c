//! `SELECT set_config(name, value, is_local)`: `SET` in the shape of a query, as some tools send it, alone or within an expression.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SetExpr, Value,
};

use crate::error::Result;
use crate::session::Session;
use crate::syntax::identifiers::last_part;
use crate::syntax::visit::{self, Found};

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

/// Each call of a query that reads nothing, but for those in a `CASE`, which may not be reached.
fn each(query: &mut Query, mut set: impl FnMut(&str, &str, bool) -> Result<String>) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    if !select.from.is_empty() {
        return Ok(());
    }
    let mut cases = 0;
    let found = visit::own_around(select, |found| {
        match found {
            Found::Expr(Expr::Case { .. }) => cases += 1,
            Found::Left(Expr::Case { .. }) => cases -= 1,
            Found::Expr(expr)
                if cases == 0
                    && let Some((name, value, is_local)) = asked(expr) =>
            {
                match set(&name, &value, is_local) {
                    Ok(value) => *expr = text(value),
                    Err(error) => return ControlFlow::Break(error),
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found.break_value().map_or(Ok(()), Err)
}

/// A text as an expression of that type.
fn text(value: String) -> Expr {
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::value(Value::SingleQuotedString(value))),
        data_type: DataType::Text,
        array: false,
        format: None,
    }
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
