//! A table that has rows changed, and what it is joined to, as they stand in the FROM clause of the queries that a statement makes of
//! itself.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, SetExpr, TableFactor, TableWithJoins};

use crate::error::{Result, SqlError};
use crate::state::view::{TARGET_SCHEMA, target_table};
use crate::syntax::template::template;

/// The target table of this number under its alias.
pub(crate) fn target_factor(alias: &str, at: usize) -> Result<TableWithJoins> {
    let SetExpr::Select(mut select) = *template("SELECT 1 FROM s.t AS t")?.body else {
        return Err(SqlError::new("XX000", "the template is no SELECT"));
    };
    let mut factor = select.from.pop().ok_or_else(|| SqlError::new("XX000", "the template has no table"))?;
    if let TableFactor::Table { name, alias: Some(shown), .. } = &mut factor.relation {
        let quoted = |name: &str| Ident::with_quote('"', name);
        *name = ObjectName::from(vec![quoted(TARGET_SCHEMA), quoted(&target_table(at))]);
        shown.name = quoted(alias);
    }
    Ok(factor)
}

/// A query under an alias.
pub(crate) fn query_factor(alias: &str, query: Box<Query>) -> Result<TableWithJoins> {
    let mut factor = target_factor(alias, 0)?;
    let TableFactor::Table { alias, .. } = &mut factor.relation else {
        return Err(SqlError::new("XX000", "the template has no table"));
    };
    let alias = alias.take();
    factor.relation = TableFactor::Derived { lateral: false, subquery: query, alias, sample: None };
    Ok(factor)
}
