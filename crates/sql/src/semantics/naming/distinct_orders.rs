//! `DISTINCT ON (a, b)` gives its rows in the order of `a` and `b`, which PostgreSQL sorts by. Where `ORDER BY` says less, it is said here.
//!
//! Positions and names of the select list stand for what they mean there, and what the rows are distinct by is put into the order in which
//! `ORDER BY` begins, as the planner compares the two lists one by one.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query, SelectItem, SetExpr, Spanned, Statement,
    Value, ValueWithSpan, VisitorMut,
};

use crate::error::{Result, SqlError};
use crate::names::headings::heading;
use crate::names::tables::Tables;
use crate::semantics::naming::columns::Scope;
use crate::syntax::identifiers::{fold, hidden};
use crate::syntax::source::Source;
use crate::syntax::walk::WalkMut;

/// Orders the rows of each such query.
///
/// # Errors
/// Where `ORDER BY` begins with something else than what the rows are distinct by.
pub(crate) fn spell_out(statement: &mut Statement, tables: &Tables, source: &Source) -> Result<()> {
    match statement.walk_mut(&mut Ordered { scope: Scope::new(tables), source }) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Ordered<'a> {
    scope: Scope<'a>,
    source: &'a Source<'a>,
}

impl VisitorMut for Ordered<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query);
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Some(Distinct::On(keys)) = &select.distinct
            && keys.iter().any(|key| position(key).is_some())
        {
            self.scope.write_out_stars(select);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.leave();
        match order(query, self.source) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

fn order(query: &mut Query, source: &Source) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    let Some(Distinct::On(keys)) = &mut select.distinct else { return Ok(()) };
    let nothing = || OrderBy { kind: OrderByKind::Expressions(Vec::new()), interpolate: None };
    let OrderByKind::Expressions(said) = &mut query.order_by.get_or_insert_with(nothing).kind else { return Ok(()) };
    let mut left: Vec<Expr> = Vec::with_capacity(keys.len());
    for key in keys.iter().map(|key| meant(key, &select.projection)) {
        if !left.contains(&key) {
            left.push(key);
        }
    }
    let mut ordered = Vec::with_capacity(left.len());
    for sort in said.iter_mut() {
        if left.is_empty() {
            break;
        }
        let expr = meant(&sort.expr, &select.projection);
        match left.iter().position(|key| *key == expr) {
            Some(at) => ordered.push(left.remove(at)),
            None if ordered.contains(&expr) => {}
            None => {
                let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
                let at = keys.iter().find(|key| left.contains(&meant(key, &select.projection)));
                let error = SqlError::new("42P10", message);
                return Err(error.at(at.and_then(|key| source.start(key.span()))));
            }
        }
        sort.expr = expr;
    }
    let mut seen: Vec<Expr> = Vec::new();
    said.retain(|sort| {
        let is_new = !seen.contains(&sort.expr);
        seen.extend(is_new.then(|| sort.expr.clone()));
        is_new
    });
    said.extend(left.iter().cloned().map(ascending));
    ordered.extend(left);
    *keys = ordered;
    // The planner takes an expression of the list in ORDER BY for the column there, which is not there yet.
    for (at, item) in select.projection.iter_mut().enumerate() {
        if let SelectItem::UnnamedExpr(expr) = &*item
            && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            && keys.contains(expr)
        {
            let name = heading(expr).unwrap_or_else(|| "?column?".to_owned());
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: hidden(format!("distinct {at}"), &name) };
        }
    }
    Ok(())
}

/// What a position or a name of the select list stands for, or the expression itself.
fn meant(expr: &Expr, items: &[SelectItem]) -> Expr {
    let expression = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(of) | SelectItem::ExprWithAlias { expr: of, .. } => Some(of.clone()),
        _ => None,
    };
    let named = |name: String| {
        let is_so = |item: &&SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if fold(alias) == name);
        items.iter().find(is_so).and_then(expression)
    };
    let found = match (position(expr), expr) {
        (Some(at), _) => {
            // What stands behind a star has another position.
            let before = items.get(..=at).unwrap_or_default();
            before.iter().map(expression).collect::<Option<Vec<_>>>().and_then(|mut all| all.pop())
        }
        (None, Expr::Identifier(ident)) => named(fold(ident)),
        _ => None,
    };
    found.unwrap_or_else(|| expr.clone())
}

/// The place in the select list that a number stands for.
fn position(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => {
            number.parse::<usize>().ok()?.checked_sub(1)
        }
        _ => None,
    }
}

fn ascending(expr: Expr) -> OrderByExpr {
    OrderByExpr { expr, options: OrderByOptions { asc: None, nulls_first: None }, with_fill: None }
}
