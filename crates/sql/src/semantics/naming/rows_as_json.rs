//! Whole rows as JSON: `row_to_json(t)` and its kin get a row with the names of the columns of `t`.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, SelectItem, SetExpr, Statement,
    TableFactor, Value, VisitorMut,
};

use super::columns::Scope;
use super::whole_rows::find;
use crate::names::tables::Tables;
use crate::semantics::spelling::spellings::calling;
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::visit::own_after;
use crate::syntax::walk::WalkMut;

/// Functions that take a row.
const TAKE_ROWS: [&str; 5] = ["row_to_json", "to_json", "to_jsonb", "json_agg", "jsonb_agg"];

/// Rewrites the rows of a statement's calls.
pub(crate) fn rewrite(statement: &mut Statement, tables: &Tables) {
    let _ = statement.walk_mut(&mut Queries { scope: Scope::new(tables) });
}

struct Queries<'a> {
    scope: Scope<'a>,
}

impl VisitorMut for Queries<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if query.with.is_some() {
            self.scope.enter(query);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if query.with.is_some() {
            self.scope.leave();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let (from, scope) = (select.from.clone(), &self.scope);
        let columns = |label: &Ident| {
            let wanted = fold(label);
            let (factor, _) = from.iter().find_map(|table| find(table, &wanted))?;
            columns_of(factor, scope)
        };
        own_after(&mut select.projection, |expr| spell_out(expr, &columns));
        own_after(&mut select.having, |expr| spell_out(expr, &columns));
        ControlFlow::Continue(())
    }
}

/// The names of the columns of a table in FROM, if they are known here.
fn columns_of(factor: &TableFactor, scope: &Scope<'_>) -> Option<Vec<Ident>> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. }
            if !alias.columns.is_empty() =>
        {
            Some(alias.columns.iter().map(|column| column.name.clone()).collect())
        }
        TableFactor::Table { name, args: None, .. } => {
            let table = scope.table(name)?;
            Some(table.schema().columns().iter().map(|column| quoted(&column.name)).collect())
        }
        TableFactor::Derived { subquery, .. } => {
            let SetExpr::Select(select) = subquery.body.as_ref() else { return None };
            let name = |item: &SelectItem| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.clone()),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().cloned(),
                _ => None,
            };
            select.projection.iter().map(name).collect()
        }
        _ => None,
    }
}

fn spell_out(expr: &mut Expr, columns: &impl Fn(&Ident) -> Option<Vec<Ident>>) {
    let Expr::Function(call) = expr else { return };
    if !last_part(&call.name).is_some_and(|name| TAKE_ROWS.contains(&name.as_str())) {
        return;
    }
    let FunctionArguments::List(list) = &mut call.args else { return };
    let Some(FunctionArg::Unnamed(arg)) = list.args.first_mut() else { return };
    let label = match arg {
        FunctionArgExpr::Expr(Expr::Identifier(label)) => Some(label.clone()),
        FunctionArgExpr::QualifiedWildcard(name) => name.0.last().and_then(|part| part.as_ident()).cloned(),
        _ => None,
    };
    if let Some(label) = label
        && let Some(columns) = columns(&label)
    {
        *arg = FunctionArgExpr::Expr(row_of(&label, &columns));
    }
}

/// The row of these columns, under their names.
fn row_of(label: &Ident, columns: &[Ident]) -> Expr {
    let field = |column: &Ident| {
        let name = Expr::value(Value::SingleQuotedString(fold(column)));
        [name, Expr::CompoundIdentifier(vec![label.clone(), column.clone()])]
    };
    let args = columns.iter().flat_map(field);
    calling("named_struct", args.collect())
}
