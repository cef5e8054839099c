//! What `VACUUM`, `ANALYZE` and `REINDEX` answer: nothing is done, but what they name has to be there.
use engine::{PUBLIC_SCHEMA, Table, schema_and_name};

use crate::error::{Result, SqlError};
use crate::names::find_column;
use crate::parsing::maintenance::{MaintainedTable, Maintenance};
use crate::parsing::owner::OwnedKind;
use crate::session::Session;
use crate::state::outcome::{Command, Notice};
use crate::statements::owner;
use crate::syntax::source::Source;

/// Answers such a statement.
pub(crate) fn answer(asked: &Maintenance, session: &mut Session, source: &Source) -> Result<Command> {
    match asked {
        Maintenance::Tables { tag, tables } => kept(tag, tables, session),
        Maintenance::Indexes { of, is_concurrent } => {
            if session.block.is_some() && (*is_concurrent || matches!(of.kind, OwnedKind::Schema | OwnedKind::Database))
            {
                let what = if *is_concurrent { "REINDEX CONCURRENTLY" } else { of.kind.reindexed() };
                return Err(SqlError::new("25001", format!("{what} cannot run inside a transaction block")));
            }
            owner::run_as("REINDEX", session, of, source)
        }
    }
}

fn kept(tag: &'static str, tables: &[MaintainedTable], session: &Session) -> Result<Command> {
    if tag == "VACUUM" && session.block.is_some() {
        return Err(SqlError::new("25001", "VACUUM cannot run inside a transaction block"));
    }
    let mut command = Command::new(tag);
    for named in tables {
        let table = found(named, session)?;
        for (at, (column, place)) in named.columns.iter().enumerate() {
            find_column(&table, column, *place)?;
            if named.columns[..at].iter().any(|(other, _)| other == column) {
                let message = format!("column \"{column}\" of relation \"{}\" appears more than once", table.name());
                return Err(SqlError::new("42701", message).at(*place));
            }
        }
        if table.view().is_some() {
            let (doing, name) = (tag.to_lowercase(), schema_and_name(&named.name).1);
            let message = format!("skipping \"{name}\" --- cannot {doing} non-tables or special system tables");
            command = command.with_notice(Notice::warning("01000", message));
        }
    }
    Ok(command)
}

/// The table that a name means, by the search path where it has no schema.
fn found(named: &MaintainedTable, session: &Session) -> Result<Table> {
    let find = |name: &str| session.tables.find(name);
    let found = match (named.has_schema, schema_and_name(&named.name)) {
        (false, (PUBLIC_SCHEMA, local)) => session.path().names(local).find_map(|name| find(&name).ok()),
        _ => None,
    };
    found.map_or_else(|| find(&named.name), Ok).map_err(|error| SqlError::from(error).at(named.at))
}
