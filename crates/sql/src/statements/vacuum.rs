//! What `VACUUM` and `ANALYZE` answer: nothing is done, but the tables have to be there.
use crate::error::{Result, SqlError};
use crate::names::tables::Tables;
use crate::parsing::maintenance::Maintenance;
use crate::state::outcome::{Command, Notice};

/// Answers such a statement, of a session that sees these tables and is in a block or not.
pub(crate) fn answer(asked: &Maintenance, tables: &Tables, is_in_block: bool) -> Result<Command> {
    if asked.tag == "VACUUM" && is_in_block {
        return Err(SqlError::new("25001", "VACUUM cannot run inside a transaction block"));
    }
    let mut command = Command::new(asked.tag);
    for (name, at) in &asked.tables {
        let table = tables.find(name).map_err(|error| SqlError::from(error).at(*at))?;
        if table.view().is_some() {
            let doing = asked.tag.to_lowercase();
            let message = format!("skipping \"{name}\" --- cannot {doing} non-tables or special system tables");
            command = command.with_notice(Notice::warning("01000", message));
        }
    }
    Ok(command)
}
