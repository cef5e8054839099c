//! What `VACUUM` and `ANALYZE` answer: nothing is done, but the tables have to be there.
use crate::error::{Result, SqlError};
use crate::names::tables::Tables;
use crate::parsing::maintenance::Maintenance;
use crate::state::outcome::Command;

/// Answers such a statement, of a session that sees these tables and is in a block or not.
pub(crate) fn answer(asked: &Maintenance, tables: &Tables, is_in_block: bool) -> Result<Command> {
    if asked.tag == "VACUUM" && is_in_block {
        return Err(SqlError::new("25001", "VACUUM cannot run inside a transaction block"));
    }
    for (table, at) in &asked.tables {
        tables.find(table).map_err(|error| SqlError::from(error).at(*at))?;
    }
    Ok(Command::new(asked.tag))
}
