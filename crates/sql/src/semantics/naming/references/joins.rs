//! What a table of FROM and a join are to the names in them.
use datafusion::sql::sqlparser::ast::{Expr, JoinConstraint, JoinOperator, SetExpr, TableFactor};

use crate::error::Result;
use crate::syntax::template::template;
use crate::syntax::visit::constraint_mut;

/// Whether a table sees the columns of those before it.
pub(super) fn is_lateral(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Derived { lateral: true, .. })
}

/// Makes `(a JOIN b) AS c` a query: the tables within are known by that name alone.
pub(super) fn named_join(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::NestedJoin { table_with_joins, alias: alias @ Some(_) } = factor else { return Ok(()) };
    let mut query = template("SELECT *")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![table_with_joins.as_ref().clone()];
    }
    *factor = TableFactor::Derived { lateral: false, subquery: query, alias: alias.take(), sample: None };
    Ok(())
}

/// The condition of a join.
pub(super) fn condition_of(join: &mut JoinOperator) -> Option<&mut Expr> {
    match constraint_mut(join) {
        Some(JoinConstraint::On(condition)) => Some(condition),
        _ => None,
    }
}
