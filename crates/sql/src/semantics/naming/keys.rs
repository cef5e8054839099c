//! `GROUP BY x::bigint, x`: the planner names a cast like what is cast, and wants each key by a name of its own. So one of two
//! such keys is put into a call, wherever it stands. So is a key that is a query: the planner names it like the query's column, which a
//! column of the tables may be called, too.
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Ident, OrderBy, Select, SelectItem, Value, VisitMut};

use super::cast_names::{coalesced, without_casts};
use crate::syntax::identifiers::fold;
use crate::syntax::visit::own_after;

/// Tells the keys of a query apart.
pub(crate) fn tell_apart(select: &mut Select, mut order: Option<&mut OrderBy>) {
    let mut known: Vec<(String, Vec<Expr>)> = Vec::new();
    for key in keys(select) {
        let Some(name) = without_casts(&key) else { continue };
        let name = name.to_lowercase();
        match known.iter_mut().find(|(known, _)| *known == name) {
            Some((_, keys)) if keys.contains(&key) => {}
            Some((_, keys)) => keys.push(key),
            None => known.push((name, vec![key])),
        }
    }
    for (_, mut keys) in known.into_iter().filter(|(_, keys)| keys.len() > 1) {
        // A column keeps its name.
        keys.sort_by_key(|key| !matches!(key, Expr::Identifier(_) | Expr::CompoundIdentifier(_)));
        for (times, key) in keys.iter().enumerate().skip(1) {
            let other = (0..times).fold(key.clone(), |expr, _| coalesced(expr));
            put_everywhere(select, order.as_deref_mut(), key, &other);
        }
    }
    // A cast of a column is called as the column is, which the key of its table may bring in.
    let is_taken =
        |key: &Expr| matches!(key, Expr::Subquery(_)) || matches!(key, Expr::Cast { .. }) && keys(select).len() > 1;
    for key in keys(select).into_iter().filter(is_taken).collect::<Vec<_>>() {
        put_everywhere(select, order.as_deref_mut(), &key, &coalesced(key.clone()));
    }
}

fn put_everywhere(select: &mut Select, order: Option<&mut OrderBy>, key: &Expr, other: &Expr) {
    put(&mut select.projection, key, other);
    put(&mut select.group_by, key, other);
    put(&mut select.having, key, other);
    put(&mut select.distinct, key, other);
    if let Some(order) = order {
        put(order, key, other);
    }
}

/// Whether keys of a query may be called the same.
pub(crate) fn may_repeat(select: &Select) -> bool {
    let keys = keys(select);
    let is_plain = |key: &Expr| matches!(key, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    keys.len() > 1 && !keys.iter().all(is_plain)
}

/// What a query groups by; a number means a column of its list.
fn keys(select: &Select) -> Vec<Expr> {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else { return Vec::new() };
    let mut all = Vec::with_capacity(keys.len());
    for key in keys {
        match key {
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => all.extend(sets.concat()),
            Expr::Value(value) => all.extend(numbered(&value.value, select).cloned()),
            Expr::Identifier(name) if let Some(query) = called(name, select) => all.push(query.clone()),
            Expr::Nested(key) => all.push(key.as_ref().clone()),
            key => all.push(key.clone()),
        }
    }
    all
}

/// The query in a list that has this name there.
fn called<'s>(name: &Ident, select: &'s Select) -> Option<&'s Expr> {
    select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr: expr @ Expr::Subquery(_), alias } if fold(alias) == fold(name) => Some(expr),
        _ => None,
    })
}

fn numbered<'s>(value: &Value, select: &'s Select) -> Option<&'s Expr> {
    let Value::Number(number, _) = value else { return None };
    match select.projection.get(number.parse::<usize>().ok()?.checked_sub(1)?)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn put(part: &mut impl VisitMut, key: &Expr, other: &Expr) {
    own_after(part, |expr| {
        if expr == key {
            *expr = other.clone();
        }
    });
}
