//! The errors of statements that name something of another kind than they are about.
use engine::{Table, Transaction};

use crate::error::{Result, SqlError};

/// What a table is, as a word of the language.
pub(crate) fn kind(table: &Table) -> &'static str {
    match table {
        _ if table.view().is_some() => "view",
        _ if table.sequence().is_some() => "sequence",
        _ if table.is_materialized() => "materialized view",
        _ => "table",
    }
}

/// Refuses to drop as a `wanted` thing what is something else.
pub(crate) fn check_dropped(transaction: &Transaction, name: &str, wanted: &str) -> Result<()> {
    match transaction.table(name) {
        Ok(table) if kind(&table) != wanted => Err(error(&table, wanted)),
        _ => Ok(()),
    }
}

/// Refuses what is no `wanted` thing.
pub(crate) fn check_is(table: &Table, wanted: &str) -> Result<()> {
    match kind(table) == wanted {
        true => Ok(()),
        false => Err(SqlError::new("42809", format!("\"{}\" is not a {wanted}", table.name()))),
    }
}

/// Refuses what `ALTER TABLE` does with tables alone.
pub(crate) fn check_is_altered(table: &Table, action: &str) -> Result<()> {
    match kind(table) {
        "table" => Ok(()),
        kind => {
            let message = format!("ALTER action {action} cannot be performed on relation \"{}\"", table.name());
            Err(SqlError::new("42809", message).detail(format!("This operation is not supported for {kind}s.")))
        }
    }
}

/// Refuses a view for what is done with tables.
pub(crate) fn check_is_no_view(table: &Table, what: impl FnOnce() -> String) -> Result<()> {
    match table.view() {
        Some(_) => Err(SqlError::new("42809", what()).detail("This operation is not supported for views.")),
        None => Ok(()),
    }
}

/// The error of a `DROP` of a `wanted` thing that meets something else.
fn error(table: &Table, wanted: &str) -> SqlError {
    let (name, kind) = (table.name(), kind(table));
    let error = SqlError::new("42809", format!("\"{name}\" is not a {wanted}"));
    error.hint(format!("Use DROP {} to remove a {kind}.", kind.to_uppercase()))
}
