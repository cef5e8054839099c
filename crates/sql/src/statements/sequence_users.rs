//! The columns that use a sequence: those that are filled from it, and the one that it belongs to.
//!
//! Defaults name sequences by their text, so that this is looked up in the settings of all tables. A sequence that is dropped or
//! renamed takes the defaults along; one that belongs to a column is dropped with the table.
use engine::{ColumnDefault, Transaction};

use crate::access::default_expressions::{renamed, sequences_named};
use crate::access::index_expressions::text::parsed;
use crate::error::{Result, SqlError};

/// A column that is filled from a sequence.
pub(crate) struct User {
    pub(crate) table: String,
    pub(crate) column: String,
    pub(crate) at: usize,
    is_identity: bool,
}

/// The columns that are filled from a sequence.
pub(crate) fn users(transaction: &Transaction, sequence: &str) -> Result<Vec<User>> {
    let mut users = Vec::new();
    for name in transaction.table_names() {
        let table = transaction.table(&name)?;
        for default in transaction.settings(&table).defaults {
            let named = default.expression.as_deref().and_then(|text| parsed(text).ok());
            if named.is_some_and(|expr| sequences_named(&expr).iter().any(|named| named == sequence)) {
                let column = table.schema().columns()[default.column].name.clone();
                let is_identity = default.identity.is_some();
                users.push(User { table: name.clone(), column, at: default.column, is_identity });
            }
        }
    }
    Ok(users)
}

/// Refuses to drop a sequence that an identity column needs.
pub(crate) fn check_no_identity(transaction: &Transaction, sequence: &str, shown: &str) -> Result<()> {
    match users(transaction, sequence)?.iter().find(|user| user.is_identity) {
        None => Ok(()),
        Some(User { table, column, .. }) => {
            let message = format!("cannot drop {shown} because column {column} of table {table} requires it");
            let hint = format!("You can drop column {column} of table {table} instead.");
            Err(SqlError::new("2BP01", message).hint(hint))
        }
    }
}

/// Changes the defaults of every table of which one is to change.
fn change_all(transaction: &mut Transaction, change: impl Fn(&str, &mut ColumnDefault)) -> Result<()> {
    for name in transaction.table_names() {
        let before = transaction.settings(&transaction.table(&name)?).defaults;
        let mut after = before.clone();
        after.iter_mut().for_each(|default| change(&name, default));
        if after != before {
            transaction.set_defaults(&name, after)?;
        }
    }
    Ok(())
}

/// Has nothing fill a column.
pub(crate) fn clear_default(transaction: &mut Transaction, table: &str, column: &str) -> Result<()> {
    let found = transaction.table(table)?;
    let Some(at) = found.schema().position(column) else { return Ok(()) };
    let mut defaults = transaction.settings(&found).defaults;
    defaults.iter_mut().filter(|default| default.column == at).for_each(|default| default.expression = None);
    Ok(transaction.set_defaults(table, defaults)?)
}

/// Has sequences belong to no column.
pub(crate) fn forget(transaction: &mut Transaction, sequences: &[String]) -> Result<()> {
    change_all(transaction, |_, default| default.sequences.retain(|name| !sequences.contains(name)))
}

/// Tells the columns that use a sequence its new name.
pub(crate) fn rename(transaction: &mut Transaction, from: &str, to: &str) -> Result<()> {
    change_all(transaction, |_, default| {
        default.sequences.iter_mut().filter(|name| *name == from).for_each(|name| to.clone_into(name));
        if let Some(text) = &mut default.expression {
            *text = renamed(text, from, to);
        }
    })
}

/// Has a sequence belong to a column, or to none.
pub(crate) fn give(transaction: &mut Transaction, sequence: &str, owner: Option<(&str, usize)>) -> Result<()> {
    forget(transaction, &[sequence.to_owned()])?;
    let Some((name, column)) = owner else { return Ok(()) };
    let mut defaults = transaction.settings(&transaction.table(name)?).defaults;
    of_column(&mut defaults, column).sequences.push(sequence.to_owned());
    Ok(transaction.set_defaults(name, defaults)?)
}

/// The default of a column, which is put on the list where there is none.
pub(crate) fn of_column(defaults: &mut Vec<ColumnDefault>, column: usize) -> &mut ColumnDefault {
    let at = defaults.partition_point(|default| default.column < column);
    if defaults.get(at).is_none_or(|default| default.column != column) {
        defaults.insert(at, ColumnDefault { column, ..ColumnDefault::default() });
    }
    &mut defaults[at]
}

/// The sequences that belong to columns of a table.
pub(crate) fn owned_by(transaction: &Transaction, table: &str) -> Result<Vec<String>> {
    let defaults = transaction.settings(&transaction.table(table)?).defaults;
    Ok(defaults.into_iter().flat_map(|default| default.sequences).collect())
}
