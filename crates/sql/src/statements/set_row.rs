//! Several columns of `SET` that are given a row: each gets a part of it.
//!
//! ```text
//! (a, b) = (1, 2)                     ->  a = 1, b = 2; likewise for ROW (1, 2)
//! (a, b) = (SELECT x, y FROM t ...)   ->  a = (SELECT x FROM t ...), b = (SELECT y FROM t ...)
//! ```
//!
//! A query whose list can't be taken apart, as it has `*`, `DISTINCT` or a set operation, is put into the `FROM` of one query for each
//! column.
use std::borrow::Cow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins,
};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::last_part;
use crate::syntax::template::template;

/// The values of so many columns.
///
/// # Errors
/// If the row has more or fewer.
pub(super) fn values(count: usize, row: &Expr) -> Result<Vec<Cow<'_, Expr>>> {
    match row {
        Expr::Nested(inner) if count == 1 && !matches!(**inner, Expr::Subquery(_)) => Ok(vec![Cow::Borrowed(inner)]),
        Expr::Nested(inner) => values(count, inner),
        Expr::Tuple(items) => counted(count, items.iter().map(Cow::Borrowed).collect()),
        Expr::Function(call) if last_part(&call.name).as_deref() == Some("row") => {
            let FunctionArguments::List(list) = &call.args else {
                return Err(SqlError::unsupported("this row of SET"));
            };
            let item = |arg| match arg {
                &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref item)) => Ok(Cow::Borrowed(item)),
                _ => Err(SqlError::unsupported("a row of all columns of a table in SET")),
            };
            counted(count, list.args.iter().map(item).collect::<Result<_>>()?)
        }
        Expr::Subquery(query) => of_query(count, query),
        _ => {
            let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
            Err(SqlError::new("0A000", message))
        }
    }
}

fn counted<T>(count: usize, items: Vec<T>) -> Result<Vec<T>> {
    match items.len() == count {
        true => Ok(items),
        false => Err(SqlError::syntax("number of columns does not match number of values")),
    }
}

fn of_query(count: usize, query: &Query) -> Result<Vec<Cow<'_, Expr>>> {
    let is_plain = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    match query.body.as_ref() {
        SetExpr::Select(select) if select.distinct.is_none() && select.projection.iter().all(is_plain) => {
            let items = counted(count, select.projection.clone())?;
            // An order may name columns of the list by their places or names.
            if query.order_by.is_none() {
                let part = |item| {
                    let mut query = query.clone();
                    query.body =
                        Box::new(SetExpr::Select(Box::new(Select { projection: vec![item], ..*select.clone() })));
                    Cow::Owned(Expr::Subquery(Box::new(query)))
                };
                return Ok(items.into_iter().map(part).collect());
            }
        }
        SetExpr::Values(values) if let Some(first) = values.rows.first() => {
            counted(count, first.iter().collect())?;
        }
        _ => {}
    }
    (0..count).map(|at| Ok(Cow::Owned(Expr::Subquery(part_of(query, count, at)?)))).collect()
}

/// One column of a query that has so many.
fn part_of(query: &Query, count: usize, at: usize) -> Result<Box<Query>> {
    let quoted = |name: String| Ident::with_quote('"', name);
    let names: Vec<Ident> = (0..count).map(|at| quoted(format!("\0set {at}"))).collect();
    let mut part = template("SELECT 1")?;
    let SetExpr::Select(select) = part.body.as_mut() else {
        return Err(SqlError::new("XX000", "the template is no SELECT"));
    };
    select.projection = vec![SelectItem::UnnamedExpr(Expr::Identifier(names[at].clone()))];
    let columns = names.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    let alias = Some(TableAlias { explicit: true, name: quoted("\0set".to_owned()), columns, at: None });
    let relation = TableFactor::Derived { lateral: false, subquery: Box::new(query.clone()), alias, sample: None };
    select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
    Ok(part)
}
