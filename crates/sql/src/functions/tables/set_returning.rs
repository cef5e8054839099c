//! Functions that give rows, in the select list: `SELECT id, generate_series(1, k) FROM t`.
//!
//! The planner knows one such function there, `unnest` of a list: each row is repeated for each value; several go side by
//! side, the shorter ones filled up with NULL; a list without values gives no row. `generate_series` becomes that of a list.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Select, SelectItem, Statement, VisitorMut,
};

use super::generate;
use crate::syntax::identifiers::fold;
use crate::syntax::visit::own_after;
use crate::syntax::walk::WalkMut;

/// Brings such calls into the words that the planner knows.
pub(crate) fn spell_out(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
            let name = called(expr);
            let mut is_found = false;
            own_after(expr, |expr| is_found |= spread(expr));
            // The column is called like the function, also for a query around this one.
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some(name) = name.filter(|_| is_found)
            {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
            }
        }
        ControlFlow::Continue(())
    }
}

/// The name of the function that an expression calls, if it gives rows.
fn called(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else { return None };
    let parts: Vec<String> = function.name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    let name = match &parts[..] {
        [name] => name,
        [schema, name] if schema == "pg_catalog" => name,
        _ => return None,
    };
    (name == generate::NAME || name == "unnest").then(|| name.clone())
}

/// Makes a call that gives rows one of `unnest`; whether it is such a call.
fn spread(expr: &mut Expr) -> bool {
    let Some(name) = called(expr) else { return false };
    if let Expr::Function(function) = expr {
        function.name = ObjectName::from(vec![Ident::new("unnest")]);
        if name == generate::NAME {
            let mut list = function.clone();
            list.name = ObjectName::from(vec![Ident::with_quote('"', generate::LIST_NAME)]);
            wrap(function, Expr::Function(list));
        }
    }
    true
}

/// Gives a call one argument.
fn wrap(function: &mut Function, argument: Expr) {
    let args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))];
    let list = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
    function.args = FunctionArguments::List(list);
}
