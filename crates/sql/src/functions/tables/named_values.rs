//! Rows of one column called by the name of their table: in `FROM jsonb_array_elements(j) AS e`, `e` is `e.value`.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Ident, Select, TableFactor, TableWithJoins};

use crate::syntax::identifiers::fold;
use crate::syntax::visit::{own, own_after};

/// The name of such a column.
const VALUE: &str = "value";

/// Notes the tables of one column of that name that a table is joined of.
pub(super) fn collect(table: &TableWithJoins, named: &mut Vec<Ident>) {
    let factors = std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation));
    for factor in factors {
        if let TableFactor::Derived { alias: Some(alias), .. } = factor
            && let [column] = &alias.columns[..]
            && column.name.value == VALUE
            && column.name.quote_style.is_some()
        {
            named.push(alias.name.clone());
        }
    }
}

fn replaced(expr: &mut Expr, named: &[Ident]) {
    let Expr::Identifier(ident) = expr else { return };
    if named.iter().any(|name| fold(name) == fold(ident)) {
        *expr = Expr::CompoundIdentifier(vec![ident.clone(), Ident::with_quote('"', VALUE)]);
    }
}

/// Replaces the names of such tables in the arguments of calls in FROM.
pub(super) fn replace_in_calls(table: &mut TableWithJoins, named: &[Ident]) {
    if named.is_empty() {
        return;
    }
    let factors = std::iter::once(&mut table.relation).chain(table.joins.iter_mut().map(|join| &mut join.relation));
    for factor in factors {
        let args: &mut [FunctionArg] = match factor {
            TableFactor::Table { args: Some(args), .. } => &mut args.args,
            TableFactor::Function { args, .. } => args,
            _ => continue,
        };
        for arg in args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                own_after(expr, |expr| replaced(expr, named));
            }
        }
    }
}

/// Replaces the names of such tables in the expressions of a query.
pub(super) fn replace(select: &mut Select, named: &[Ident]) {
    if named.is_empty() {
        return;
    }
    let replace = |expr: &mut Expr| {
        replaced(expr, named);
        ControlFlow::<()>::Continue(())
    };
    let _ = own(&mut select.projection, replace);
    let _ = own(&mut select.selection, replace);
    let _ = own(&mut select.group_by, replace);
    let _ = own(&mut select.having, replace);
}
