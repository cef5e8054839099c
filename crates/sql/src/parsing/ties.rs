//! `FETCH FIRST n ROWS WITH TIES`: the rows whose rank in the order of the query is not above `n`.
//!
//! ```text
//! SELECT a FROM t ORDER BY b OFFSET 1 FETCH FIRST 2 ROWS WITH TIES
//!   ->  SELECT a FROM t QUALIFY rank() OVER (ORDER BY b) <= 2 + 1 AND row_number() OVER (ORDER BY b) > 1 ORDER BY b
//! ```
//!
//! Of queries with DISTINCT and of set operations it is not known here, and refused later.
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArgumentList, FunctionArguments, Ident, LimitClause, ObjectName, Offset,
    OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Value, WindowSpec, WindowType,
};

use crate::syntax::identifiers::fold;

/// Rewrites a query that asks for ties, if it is one of those that are known.
pub(super) fn spell_out(query: &mut Query) {
    let is_asked = query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties && !fetch.percent);
    let Some(OrderByKind::Expressions(order)) = query.order_by.as_ref().map(|order| &order.kind) else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    if !is_asked || select.distinct.is_some() || select.qualify.is_some() {
        return;
    }
    let key = |key: &OrderByExpr| Some(OrderByExpr { expr: meant(&key.expr, &select.projection)?, ..key.clone() });
    let Some(keys) = order.iter().map(key).collect::<Option<Vec<_>>>() else { return };
    let offset = match &mut query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: None, offset, .. }) => offset.take(),
        Some(_) => return,
    };
    let one = || Expr::value(Value::Number("1".to_owned(), false));
    let count = query.fetch.take().and_then(|fetch| fetch.quantity).unwrap_or_else(one);
    let binary = |left: Expr, op, right: Expr| Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) };
    let nested = |expr: Expr| Expr::Nested(Box::new(expr));
    let (rank, row) = (over("rank", &keys), over("row_number", &keys));
    select.qualify = Some(match offset {
        None => binary(rank, BinaryOperator::LtEq, nested(count)),
        Some(Offset { value, .. }) => {
            let last = nested(binary(nested(count), BinaryOperator::Plus, nested(value.clone())));
            let above = binary(row, BinaryOperator::Gt, nested(value));
            binary(binary(rank, BinaryOperator::LtEq, last), BinaryOperator::And, above)
        }
    });
}

/// What a key of the order means: an item of the list by its number or its name, or what it says. `None` where that is not known.
fn meant(key: &Expr, items: &[SelectItem]) -> Option<Expr> {
    match key {
        Expr::Value(value) => {
            let Value::Number(text, _) = &value.value else { return None };
            let at = text.parse::<usize>().ok()?.checked_sub(1)?;
            let is_plain =
                |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
            match items.get(..=at).filter(|before| before.iter().all(is_plain))?.last()? {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
                _ => None,
            }
        }
        Expr::Identifier(name) => {
            let named = items.iter().find_map(|item| match item {
                SelectItem::ExprWithAlias { expr, alias } if fold(alias) == fold(name) => Some(expr.clone()),
                _ => None,
            });
            Some(named.unwrap_or_else(|| key.clone()))
        }
        _ => Some(key.clone()),
    }
}

/// The call of a window function over all rows in this order.
fn over(name: &str, keys: &[OrderByExpr]) -> Expr {
    let (partition_by, order_by) = (Vec::new(), keys.to_vec());
    let window = WindowSpec { window_name: None, partition_by, order_by, window_frame: None };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: Vec::new(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: Some(WindowType::WindowSpec(window)),
        within_group: Vec::new(),
    })
}
