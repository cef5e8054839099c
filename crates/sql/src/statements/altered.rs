//! The table that an `ALTER TABLE` is about, and when an action on it is done.
use datafusion::sql::sqlparser::ast::AlterTable;
use engine::{Table, Transaction};

use crate::error::{Result, SqlError};
use crate::names::position;
use crate::state::outcome::Command;
use crate::statements::wrong_kind;
use crate::syntax::source::Source;

/// When an action is done, in the order of PostgreSQL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pass {
    Drop,
    Type,
    Add,
    NotNull,
    Key,
    Constraint,
    Rest,
}

/// The table to be altered, or what to say where it is missing and may be.
pub(crate) fn altered(
    transaction: &Transaction,
    name: &str,
    alter: &AlterTable,
    source: &Source,
) -> Result<std::result::Result<Table, Command>> {
    match transaction.table(name).map_err(|error| SqlError::from(error).at(position(&alter.name, source))) {
        Err(error) if alter.if_exists && error.sqlstate == "42P01" => {
            let notice = format!("{}, skipping", error.message);
            Ok(Err(Command::new("ALTER TABLE").with_notice(notice)))
        }
        found => found.map(Ok),
    }
}

/// The table to be altered by an action that only tables take, which has PostgreSQL's name; otherwise as [`altered`].
pub(crate) fn altered_table(
    transaction: &Transaction,
    name: &str,
    (alter, action): (&AlterTable, &str),
    source: &Source,
) -> Result<std::result::Result<Table, Command>> {
    let found = altered(transaction, name, alter, source)?;
    if let Ok(table) = &found {
        wrong_kind::check_is_altered(table, action)?;
    }
    Ok(found)
}

/// The table to be altered as [`altered_table`] finds it, with no other transaction writing to it or altering it from here on. It is
/// looked for again once that holds: while it was waited for, another table may have taken its place.
pub(crate) fn locked_table(
    transaction: &mut Transaction,
    name: &str,
    (alter, action): (&AlterTable, &str),
    source: &Source,
) -> Result<std::result::Result<Table, Command>> {
    if let Err(skipped) = altered_table(transaction, name, (alter, action), source)? {
        return Ok(Err(skipped));
    }
    transaction.lock_table(name)?;
    altered_table(transaction, name, (alter, action), source)
}

/// The table or materialized view of which a column gets another name, with no other transaction writing to it from here on.
pub(crate) fn renamed_in(
    transaction: &mut Transaction,
    name: &str,
    alter: &AlterTable,
    source: &Source,
) -> Result<std::result::Result<Table, Command>> {
    let check = |found: &std::result::Result<Table, Command>| match found {
        Ok(table) if !table.is_materialized() => wrong_kind::check_is_altered(table, "RENAME COLUMN"),
        _ => Ok(()),
    };
    let found = altered(transaction, name, alter, source)?;
    check(&found)?;
    if found.is_err() {
        return Ok(found);
    }
    transaction.lock_table(name)?;
    let found = altered(transaction, name, alter, source)?;
    check(&found)?;
    Ok(found)
}
