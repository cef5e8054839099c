//! `SELECT set_config(name, value, is_local)`: `SET` in the shape of a query, as some tools send it, alone or within an expression.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, SelectItem, SetExpr,
    Statement, Value,
};

use crate::error::Result;
use crate::session::Session;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::visit::{self, Found};
use crate::values::text::text_value;

/// Carries out what a query of nothing else asks for, or each row of one, and puts the new values into the query.
pub(crate) fn apply(session: &mut Session, query: &mut Query, source: &Source) -> Result<()> {
    if let Some(arguments) = asked_by_rows(query) {
        *query = of_rows(session, query.clone(), arguments.map(|argument| as_text(argument.clone())), source)?;
        return Ok(());
    }
    each(query, |arguments| {
        let mut values = arguments.into_iter().map(|argument| match literal(argument) {
            Some(value) => Ok(value),
            None => worked_out(session, argument, source),
        });
        let [name, value, is_local] = [values.next(), values.next(), values.next()].map(Option::transpose);
        let (name, value, is_local) =
            (name?.unwrap_or_default(), value?.unwrap_or_default(), is_local?.unwrap_or_default());
        session.set_named(&name, &value, is_local == "true")
    })
}

/// Prepares the query for its columns, without carrying anything out.
pub(crate) fn describe(query: &mut Query) -> Result<()> {
    if let Some([_, value, _]) = asked_by_rows(query) {
        let value = as_text(value.clone());
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = vec![SelectItem::UnnamedExpr(value)];
        }
        return Ok(());
    }
    each(query, |[_, value, _]| Ok(literal(value).unwrap_or_default()))
}

/// The arguments, if a query asks with each row that it reads, and for nothing else.
fn asked_by_rows(query: &Query) -> Option<[&Expr; 3]> {
    match query.body.as_ref() {
        SetExpr::Select(select) if !select.from.is_empty() => match &select.projection[..] {
            [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => asked(expr),
            _ => None,
        },
        _ => None,
    }
}

/// Carries out what the rows of a query ask for, and returns a query of the new values.
fn of_rows(session: &mut Session, mut query: Query, arguments: [Expr; 3], source: &Source) -> Result<Query> {
    if let SetExpr::Select(select) = query.body.as_mut() {
        let named = arguments.into_iter().zip(["name", "value", "is_local"]);
        let item = |(expr, alias)| SelectItem::ExprWithAlias { expr, alias: Ident::new(alias) };
        select.projection = named.map(item).collect();
    }
    let mut asked = Vec::new();
    for batch in session.plan(Statement::Query(Box::new(query)), source)?.start()? {
        let batch = batch?;
        let text = |row, column: usize| text_value(batch.column(column), row).unwrap_or_default();
        asked.extend((0..batch.num_rows()).map(|row| [0, 1, 2].map(|column| text(row, column))));
    }
    let mut values = Vec::with_capacity(asked.len());
    for [name, value, is_local] in asked {
        let value = session.set_named(&name, &value, matches!(is_local.as_str(), "true" | "t"))?;
        values.push(format!("('{}'::text)", value.replace('\'', "''")));
    }
    let (rows, none) = match values.is_empty() {
        true => ("(NULL::text)".to_owned(), " WHERE FALSE"),
        false => (values.join(", "), ""),
    };
    Ok(*template(&format!("SELECT * FROM (VALUES {rows}) AS \"v\"(\"set_config\"){none}"))?)
}

/// The text of an expression that reads no column, which is empty for NULL.
fn worked_out(session: &mut Session, expr: &Expr, source: &Source) -> Result<String> {
    let mut query = template("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(as_text(expr.clone()))];
    }
    let mut batches = session.plan(Statement::Query(query), source)?.start()?;
    let batch = batches.next().transpose()?;
    Ok(batch.and_then(|batch| text_value(batch.column(0), 0)).unwrap_or_default())
}

/// Each call of a query that reads nothing, but for those in a `CASE`, which may not be reached.
fn each(query: &mut Query, mut set: impl FnMut([&Expr; 3]) -> Result<String>) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    if !select.from.is_empty() {
        return Ok(());
    }
    let mut cases = 0;
    let found = visit::own_around(select, |found| {
        match found {
            Found::Expr(Expr::Case { .. }) => cases += 1,
            Found::Left(Expr::Case { .. }) => cases -= 1,
            Found::Expr(expr) if cases == 0 => match asked(expr).map(&mut set) {
                Some(Ok(value)) => *expr = as_text(Expr::value(Value::SingleQuotedString(value))),
                Some(Err(error)) => return ControlFlow::Break(error),
                None => {}
            },
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found.break_value().map_or(Ok(()), Err)
}

/// An expression as a text.
fn as_text(expr: Expr) -> Expr {
    let kind = CastKind::DoubleColon;
    Expr::Cast { kind, expr: Box::new(expr), data_type: DataType::Text, array: false, format: None }
}

/// The name, the value and whether it is for the block only, if an expression is such a call.
fn asked(expr: &Expr) -> Option<[&Expr; 3]> {
    let Expr::Function(function) = expr else { return None };
    let name = last_part(&function.name);
    let FunctionArguments::List(list) = &function.args else { return None };
    match (name.as_deref(), &list.args[..]) {
        (Some("set_config"), [name, value, is_local]) => {
            let [name, value, is_local] = [name, value, is_local].map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            });
            Some([name?, value?, is_local?])
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
