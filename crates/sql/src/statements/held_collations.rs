//! What has a collation that a user has made, and the collations of a schema.
use engine::Transaction;

use crate::error::{Result, SqlError};
use crate::names::made_collations;
use crate::names::schemas::{schema_of, spelled};

/// The error of a collation that something has.
pub(super) fn still_used(name: &str, users: &[String]) -> SqlError {
    let message = format!("cannot drop collation {} because other objects depend on it", spelled(name));
    let lines = users.iter().map(|user| format!("{user} depends on collation {}", spelled(name)));
    let error = SqlError::new("2BP01", message).detail(lines.collect::<Vec<_>>().join("\n"));
    error.hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// The columns and indexes that have a collation.
pub(super) fn users_of(transaction: &Transaction, name: &str) -> Vec<String> {
    let mut users = Vec::new();
    for table in transaction.table_names().into_iter().chain(transaction.view_names()) {
        let Ok(table) = transaction.table(&table) else { continue };
        for column in table.schema().columns() {
            if column.collation.as_ref().is_some_and(|of| of.name == name) {
                let kind = if table.view().is_some() { "view" } else { "table" };
                users.push(format!("column {} of {kind} {}", column.name, spelled(table.name())));
            }
        }
        for index in transaction.indexes(&table) {
            let definition = index.definition();
            if definition.collations.iter().flatten().any(|of| of == name) {
                users.push(format!("index {}", spelled(&definition.name)));
            }
        }
    }
    users
}

/// The collations of a schema, by their names.
pub(super) fn of_schema(transaction: &Transaction, schema: &str) -> Result<Vec<String>> {
    let remembered = transaction.remembered()?;
    let names = made_collations::all(&remembered).map(|(name, _)| name.to_owned());
    Ok(names.filter(|name| schema_of(name) == schema).collect())
}

/// Drops the collations of a schema that goes, once its tables have gone.
pub(super) fn drop_of_schema<'n>(transaction: &mut Transaction, names: impl Iterator<Item = &'n str>) -> Result<()> {
    for name in names {
        let users = users_of(transaction, name);
        if !users.is_empty() {
            return Err(still_used(name, &users));
        }
        made_collations::set(transaction, name, None)?;
    }
    Ok(())
}
