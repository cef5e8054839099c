//! Whole rows as values: `row_to_json(t)` and its kin get a row with the names of the columns of `t`, and `t IS NULL` is of all of them.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, Statement, Value, VisitorMut,
};

use super::columns::Scope;
use super::whole_rows::{columns_of, find, may_be_column};
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
        let is_row = |label: &Ident| !may_be_column(&from, scope, label);
        for part in [&mut select.selection, &mut select.having] {
            own_after(part, |expr| spell_out(expr, &columns));
            own_after(part, |expr| test(expr, &columns, &is_row));
        }
        own_after(&mut select.projection, |expr| spell_out(expr, &columns));
        own_after(&mut select.projection, |expr| test(expr, &columns, &is_row));
        ControlFlow::Continue(())
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

/// Has `t IS NULL` test the columns of `t`.
fn test(expr: &mut Expr, columns: &impl Fn(&Ident) -> Option<Vec<Ident>>, is_row: &impl Fn(&Ident) -> bool) {
    let (Expr::IsNull(tested) | Expr::IsNotNull(tested)) = expr else { return };
    if let Expr::Identifier(label) = tested.as_ref()
        && let Some(columns) = columns(label).filter(|_| is_row(label))
    {
        let column = |column: Ident| Expr::CompoundIdentifier(vec![label.clone(), column]);
        **tested = Expr::Tuple(columns.into_iter().map(column).collect());
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
