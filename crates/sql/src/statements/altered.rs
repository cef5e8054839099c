//! The table that an `ALTER TABLE` is about.
use datafusion::sql::sqlparser::ast::AlterTable;
use engine::{Table, Transaction};

use crate::error::{Result, SqlError};
use crate::names::position;
use crate::state::outcome::Command;
use crate::syntax::source::Source;

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
