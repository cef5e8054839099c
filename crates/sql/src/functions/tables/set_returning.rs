//! Functions that give rows, in the select list: `SELECT id, generate_series(1, k) FROM t`.
//!
//! The planner knows one such function there, `unnest` of a list: each row is repeated for each value; several go side by
//! side, the shorter ones filled up with NULL; a list without values gives no row. `generate_series` becomes that of a list.
//! What orders the rows and is no column of them is worked out beside them, in a query of its own:
//!
//! ```text
//! SELECT unnest(l) FROM t ORDER BY a   ->   SELECT unnest FROM (SELECT unnest(l), a AS key FROM t) AS spread ORDER BY key
//! ```
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableFactor,
    Value, ValueWithSpan, Visitor, VisitorMut,
};

use super::generate;
use crate::names::headings::heading;
use crate::syntax::identifiers::{fold, hidden, shown};
use crate::syntax::template::template;
use crate::syntax::visit::own_after;
use crate::syntax::walk::{Walk, WalkMut, walk_expressions};

/// Brings such calls into the words that the planner knows.
pub(crate) fn spell_out(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let _ = order_beside(query);
        ControlFlow::Continue(())
    }

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

/// Whether a column that is worked out has the name of one that the list reads: the planner does not tell them apart beside lists.
fn hides_input(items: &[SelectItem]) -> bool {
    let reads = |expr: &Expr, name: &str| {
        let visited = walk_expressions(expr, |expr| {
            let last = match expr {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            if last.is_some_and(|last| fold(last) == name) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        visited.is_break()
    };
    let is_worked_out = |expr: &Expr| !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let columns = items.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) => Some((heading(expr).unwrap_or_default(), expr)),
        SelectItem::ExprWithAlias { expr, alias } => Some((fold(alias), expr)),
        _ => None,
    });
    let columns: Vec<(String, &Expr)> = columns.collect();
    columns.iter().any(|(name, expr)| {
        is_worked_out(expr) && called(expr).is_none() && columns.iter().any(|(_, expr)| reads(expr, name))
    })
}

/// Puts a query whose list gives several rows into one that orders them, if it is ordered by anything but its columns, or one of these
/// hides a column of its input.
fn order_beside(query: &mut Query) -> Option<()> {
    let keys: &mut [OrderByExpr] = match query.order_by.as_mut().map(|order| &mut order.kind) {
        Some(OrderByKind::Expressions(keys)) => keys,
        Some(OrderByKind::All(_)) => return None,
        None => &mut [],
    };
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let gives_rows = |item: &SelectItem| item.walk(&mut GivesRows { queries: 0 }).is_break();
    if select.distinct.is_some() || !select.projection.iter().any(gives_rows) {
        return None;
    }
    let named = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => Some((heading(expr).unwrap_or_else(|| "?column?".to_owned()), expr.clone())),
        SelectItem::ExprWithAlias { expr, alias } => Some((shown(&fold(alias)).to_owned(), expr.clone())),
        _ => None,
    };
    let columns: Vec<(String, Expr)> = select.projection.iter().map(named).collect::<Option<_>>()?;
    let is_own = |key: &Expr| match key {
        Expr::Value(ValueWithSpan { value: Value::Number(..), .. }) => true,
        Expr::Identifier(name) => columns.iter().any(|(own, _)| *own == fold(name)),
        _ => false,
    };
    if keys.iter().all(|key| is_own(&key.expr)) && !hides_input(&select.projection) {
        return None;
    }
    let mut outer = template("SELECT * FROM (SELECT 1) AS spread").ok()?;
    let SetExpr::Select(shell) = outer.body.as_mut() else { return None };
    let TableFactor::Derived { subquery, alias: Some(TableAlias { name, .. }), .. } =
        &mut shell.from.first_mut()?.relation
    else {
        return None;
    };
    *name = hidden("spread", "");
    let aliased = |expr: Expr, alias: Ident| SelectItem::ExprWithAlias { expr, alias };
    let mut within: Vec<SelectItem> = Vec::new();
    shell.projection.clear();
    for (at, (name, expr)) in columns.iter().enumerate() {
        let column = hidden(format_args!("column {at}"), name);
        within.push(aliased(expr.clone(), column.clone()));
        shell.projection.push(aliased(Expr::Identifier(column), Ident::with_quote('"', name)));
    }
    for (at, key) in keys.iter_mut().enumerate().filter(|(_, key)| !is_own(&key.expr)) {
        // Columns that are shown under one name would be renamed.
        let column = hidden(format_args!("key {at}"), &format!("?key {at}?"));
        within.push(aliased(std::mem::replace(&mut key.expr, Expr::Identifier(column.clone())), column));
    }
    select.projection = within;
    std::mem::swap(subquery.body.as_mut(), query.body.as_mut());
    query.body = outer.body;
    Some(())
}

/// Looks for a call that gives rows; those of a subquery stay within it.
struct GivesRows {
    queries: usize,
}

impl Visitor for GivesRows {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match self.queries {
            0 if called(expr).is_some() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
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
