//! `COLLATE`: texts are ordered by their bytes, which is PostgreSQL's collation `"C"`. So `"C"` and its other names stand for
//! what is done anyhow, and any other collation is refused.
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, ObjectNamePart, Statement};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;
use crate::syntax::tokens::EXCLUSION;
use crate::syntax::visit::replace;

/// Names of the order by bytes; `default` is the database's collation.
const BYTE_ORDERS: [&str; 4] = ["C", "POSIX", "ucs_basic", "default"];

/// Takes the collations away that say what is done anyhow.
///
/// # Errors
/// 42704 where a collation has another name.
pub(crate) fn spell_out(statement: &mut Statement, source: &Source) -> Result<()> {
    replace(statement, |expr| {
        let mut inner = expr;
        while let Expr::Collate { expr, collation } = inner
            && !marks_exclusion(collation)
        {
            check(collation, source)?;
            inner = expr;
        }
        Ok(if std::ptr::eq(inner, expr) { None } else { Some(inner.clone()) })
    })
}

/// An error if this is no order by bytes.
///
/// # Errors
/// 42704, with the names that there are.
pub(crate) fn check(collation: &ObjectName, source: &Source) -> Result<()> {
    let parts: Vec<_> = collation.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    let name = match &parts[..] {
        [name] => fold(name),
        [schema, name] if fold(schema) == "pg_catalog" => fold(name),
        _ => collation.to_string(),
    };
    if BYTE_ORDERS.contains(&name.as_str()) {
        return Ok(());
    }
    let position = parts.first().and_then(|part| source.start(part.span));
    let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
    Err(SqlError::new("42704", message).hint("Texts are ordered by their bytes: COLLATE \"C\" says so.").at(position))
}

/// Whether the name stands for a part of a window's frame.
fn marks_exclusion(collation: &ObjectName) -> bool {
    let name = collation.0.first().and_then(ObjectNamePart::as_ident);
    name.is_some_and(|name| name.value.starts_with(EXCLUSION))
}
