//! A table that has rows changed, as it stands in the FROM clause of the queries that a statement makes of itself.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, SetExpr, TableFactor, TableWithJoins};

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
