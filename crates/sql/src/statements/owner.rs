//! `ALTER ... OWNER TO`: everything belongs to the one user there is, so that nothing changes, whatever role is named.
use engine::{PUBLIC_SCHEMA, Transaction};

use crate::error::{Result, SqlError};
use crate::names::schemas::{entry, shown};
use crate::names::tables::CATALOG;
use crate::names::{position, table_name};
use crate::parsing::owner::{OwnedKind, Owner};
use crate::semantics::spelling::collations;
use crate::session::Session;
use crate::state::outcome::Command;
use crate::statements::made_types;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// Runs it: what it is about has to be there.
pub(crate) fn run(session: &mut Session, asked: &Owner, source: &Source) -> Result<Command> {
    run_as(asked.kind.tag(), session, asked, source)
}

/// Runs a statement of this tag that asks no more of what it names than to be there.
pub(super) fn run_as(tag: &'static str, session: &mut Session, asked: &Owner, source: &Source) -> Result<Command> {
    let command = Command::new(tag);
    session.write(tag, |session, write| match missing(write.transaction, session, asked, source)? {
        None => Ok(command.clone()),
        Some(error) if asked.if_exists => {
            Ok(command.clone().with_notice(shown(&format!("{}, skipping", error.message))))
        }
        Some(error) => Err(error.at(position(&asked.name, source))),
    })
}

/// The error of what is not there.
fn missing(transaction: &Transaction, session: &Session, asked: &Owner, source: &Source) -> Result<Option<SqlError>> {
    let local = last_part(&asked.name).unwrap_or_default();
    Ok(match asked.kind {
        OwnedKind::Type | OwnedKind::Domain => match made_types::find(transaction, session, &asked.name, source)? {
            Some(_) => None,
            None => Some(made_types::not_there(&asked.name, source)),
        },
        OwnedKind::Collation => collations::found(&asked.name, source).err(),
        OwnedKind::Schema if local == PUBLIC_SCHEMA || transaction.table(&entry(&local)).is_ok() => None,
        OwnedKind::Schema => Some(SqlError::new("3F000", format!("schema \"{local}\" does not exist"))),
        OwnedKind::Database if local == CATALOG => None,
        OwnedKind::Database => Some(SqlError::new("3D000", format!("database \"{local}\" does not exist"))),
        OwnedKind::Index => {
            let name = table_name(&asked.name, source)?;
            (!session.tables.newest().has_index(&name)).then(|| engine::Error::NoSuchTable(name).into())
        }
        OwnedKind::Table | OwnedKind::View | OwnedKind::MaterializedView | OwnedKind::Sequence => {
            transaction.table(&table_name(&asked.name, source)?).err().map(SqlError::from)
        }
    })
}
