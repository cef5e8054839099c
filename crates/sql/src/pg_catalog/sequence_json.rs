//! JSON of the one row of `pg_sequence` that belongs to a column, as SQLAlchemy asks for the options of identity columns.
//!
//! ```text
//! (SELECT json_build_object('always', a.attidentity = 'a', 'start', s.seqstart) FROM pg_sequence s WHERE c)
//!
//! CASE WHEN (SELECT s.seqrelid FROM pg_sequence s WHERE c) IS NOT NULL
//!      THEN json_build_object('always', a.attidentity = 'a', 'start', (SELECT s.seqstart FROM pg_sequence s WHERE c)) END
//! ```
//!
//! The planner joins a query whose value is a column to the query around it, and none whose value names columns of both.
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, SelectItem, SetExpr, TableFactor,
};

use super::calls::catalog_name;
use super::columns::columns;
use super::rewrite::one_row;
use crate::error::Result;
use crate::syntax::identifiers::fold;
use crate::syntax::template::template;

/// The relation.
const RELATION: &str = "pg_sequence";

/// By what a query calls the columns of `pg_sequence`, if it reads that alone.
fn label(query: &Query, select: &Select) -> Option<Ident> {
    let [from] = &select.from[..] else { return None };
    let TableFactor::Table { name, args: None, alias, .. } = &from.relation else { return None };
    let is_whole = from.joins.is_empty() && query.limit_clause.is_none() && query.with.is_none();
    let is_sequences = catalog_name(name).is_some_and(|name| name == RELATION);
    let label = || alias.as_ref().map_or_else(|| Ident::new(RELATION), |alias| alias.name.clone());
    (is_whole && is_sequences).then(label)
}

/// Whether an expression is a column of the relation.
fn is_column(expr: &Expr, label: &Ident) -> bool {
    let names = columns(RELATION).map_or("", |(_, columns)| columns);
    let is_known = |name: &Ident| names.split(' ').step_by(2).any(|column| column == fold(name));
    match expr {
        Expr::Identifier(name) => is_known(name),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [.., table, name] => fold(table) == fold(label) && is_known(name),
            _ => false,
        },
        _ => false,
    }
}

/// The query with one column in place of what it gives.
fn cell(query: &Query, column: Expr) -> Result<Expr> {
    let mut query = query.clone();
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(column)];
    }
    one_row(&mut query)?;
    Ok(Expr::Subquery(Box::new(query)))
}

/// What takes the place of such a query, if it is one.
pub(super) fn of_a_column(query: &Query) -> Result<Option<Expr>> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(None) };
    let ([SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }], Some(label)) =
        (&select.projection[..], label(query, select))
    else {
        return Ok(None);
    };
    let Expr::Function(function) = item else { return Ok(None) };
    let mut json = function.clone();
    let FunctionArguments::List(list) = &mut json.args else { return Ok(None) };
    if catalog_name(&function.name).is_none_or(|name| name != "json_build_object") {
        return Ok(None);
    }
    for argument in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument
            && is_column(value, &label)
        {
            *value = cell(query, value.clone())?;
        }
    }
    let key = Expr::CompoundIdentifier(vec![label, Ident::new("seqrelid")]);
    let outer = template("SELECT CASE WHEN 1 IS NOT NULL THEN 1 END")?;
    let SetExpr::Select(mut outer) = *outer.body else { return Ok(None) };
    let Some(SelectItem::UnnamedExpr(mut case)) = outer.projection.pop() else { return Ok(None) };
    if let Expr::Case { conditions, .. } = &mut case
        && let [when] = &mut conditions[..]
    {
        when.condition = Expr::IsNotNull(Box::new(cell(query, key)?));
        when.result = Expr::Function(json);
    }
    Ok(Some(case))
}
