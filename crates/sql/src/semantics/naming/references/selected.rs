//! What the columns of a select list are to an ORDER BY.
use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Select, SelectItem, Value, ValueWithSpan};

use super::Level;
use crate::names::headings::heading;
use crate::semantics::outer_aggregates::Clause;
use crate::syntax::identifiers::{fold, hidden, shown};

/// The clause that a select list is. The values of an `INSERT` and of an `UPDATE` are worked out by queries, whose lists have
/// names that no user can write.
pub(super) fn clause_of_list(select: &Select) -> Clause {
    match select.projection.first() {
        Some(SelectItem::ExprWithAlias { alias, .. }) if alias.value == "\u{0}0" => match select.from.is_empty() {
            true => Clause::Values,
            false => Clause::Update,
        },
        _ => Clause::OfGroups,
    }
}

/// Whether two columns of the select list are one.
pub(super) fn is_same(one: &Expr, other: &Expr) -> bool {
    let parts = |expr: &Expr| match expr {
        Expr::Identifier(ident) => Some(vec![fold(ident)]),
        Expr::CompoundIdentifier(parts) => Some(parts.iter().map(fold).collect::<Vec<_>>()),
        _ => None,
    };
    match (parts(one), parts(other)) {
        // Of two that are called the same, one of them without a table, there is no second table with such a column.
        (Some(one), Some(other)) if one.len() != other.len() => one.last() == other.last(),
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// Whether a key is the number of a column that is a constant.
pub(super) fn is_constant(key: &Expr, select: &Select) -> bool {
    fn is_literal(expr: &Expr) -> bool {
        match expr {
            Expr::Value(_) | Expr::TypedString(_) => true,
            Expr::Cast { expr, .. } | Expr::Nested(expr) => is_literal(expr),
            _ => false,
        }
    }
    let Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) = key else { return false };
    let Some(at) = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)) else { return false };
    let items = select.projection.get(..=at).unwrap_or_default();
    let is_column = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    match items.last() {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
            select.distinct.is_none() && items.iter().all(is_column) && is_literal(expr)
        }
        _ => false,
    }
}

/// The place of an expression in a list of distinct rows, which are ordered by nothing else. The planner looks for it by its
/// name, which may be that of another column.
pub(super) fn place_in_list(expr: &Expr, select: &Select) -> Option<Expr> {
    select.distinct.as_ref()?;
    let place = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(own) | SelectItem::ExprWithAlias { expr: own, .. } => Some(is_same(expr, own)),
        _ => None,
    };
    let places = select.projection.iter().map(place).collect::<Option<Vec<bool>>>()?;
    let at = places.into_iter().position(|is_same| is_same)?;
    Some(Expr::value(Value::Number((at + 1).to_string(), false)))
}

/// A column of the select list, and the name that it has in ORDER BY.
pub(super) fn given(item: &SelectItem) -> Option<(String, &Expr)> {
    match item {
        SelectItem::ExprWithAlias { alias, expr } => Some((shown(&fold(alias)).to_owned(), expr)),
        SelectItem::UnnamedExpr(expr) => Some((heading(expr)?, expr)),
        _ => None,
    }
}

/// Gives columns that repeat a name hidden ones, and those that are a query's around this one their own, which the planner
/// would make up.
pub(super) fn name_columns(select: &mut Select, level: &Level) {
    let is_outer = |expr: &Expr| match expr {
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [table, _] => !level.items.iter().any(|item| item.is_called(table)),
            _ => false,
        },
        Expr::Identifier(name) => match &level.outputs {
            Some(outputs) => !outputs.iter().any(|output| output.name == fold(name)),
            None => false,
        },
        _ => false,
    };
    let mut seen = HashSet::new();
    for (at, item) in select.projection.iter_mut().enumerate() {
        let Some((name, _)) = given(item) else { continue };
        let is_first = seen.insert(name.clone());
        match &*item {
            SelectItem::UnnamedExpr(expr) if is_first && is_outer(expr) => {
                let alias = Ident::with_quote('"', name);
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } if !is_first => {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: hidden(at, &name) };
            }
            _ => {}
        }
    }
}
