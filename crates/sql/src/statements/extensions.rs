//! `CREATE EXTENSION` and `DROP EXTENSION`: what some extensions bring to PostgreSQL is there without them.
use datafusion::sql::sqlparser::ast::Ident;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::parsing::extension_statement::ExtensionStatement;
use crate::session::Session;
use crate::state::outcome::{Command, Notice};
use crate::syntax::source::Source;

/// The extensions of which scripts ask that there is nothing else: keys of numbers and texts in a search tree are built in, random uuids
/// are, for which schemas ask for two others, indexes of trigrams are, and no schema needs the last one, but for functions in its language,
/// which are refused.
const KNOWN: [&str; 5] = ["btree_gist", "pgcrypto", "uuid-ossp", "pg_trgm", "plpgsql"];

/// Runs one of the statements.
pub(crate) fn run(session: &mut Session, statement: &ExtensionStatement, source: &Source) -> Result<Command> {
    let tag = match statement {
        ExtensionStatement::Create { .. } => "CREATE EXTENSION",
        ExtensionStatement::Drop { .. } => "DROP EXTENSION",
    };
    session.write(tag, |_, _| match statement {
        ExtensionStatement::Create { name, if_not_exists } => create(name, *if_not_exists, Command::new(tag), source),
        ExtensionStatement::Drop { names, if_exists } => {
            names.iter().try_fold(Command::new(tag), |command, name| drop(name, *if_exists, command, source))
        }
    })
}

/// Refuses the name of an extension that is not there.
pub(crate) fn check_known(extension: &str, at: Option<usize>) -> Result<()> {
    match KNOWN.contains(&extension) {
        true => Ok(()),
        false => Err(SqlError::new("42704", format!("extension \"{extension}\" does not exist")).at(at)),
    }
}

fn create(name: &Ident, if_not_exists: bool, command: Command, source: &Source) -> Result<Command> {
    let extension = fold(name);
    if !KNOWN.contains(&extension.as_str()) {
        let message = format!("extension \"{extension}\" is not available");
        let error = SqlError::new("0A000", message).at(source.start(name.span));
        return Err(error.hint("What is not built in cannot be added. Leave the statement out."));
    }
    let message = format!("extension \"{extension}\" already exists");
    match (if_not_exists, extension.as_str()) {
        (true, _) => Ok(command.with_notice(Notice::skipping("42710", message))),
        // It is one of those that PostgreSQL's databases begin with.
        (false, "plpgsql") => Err(SqlError::new("42710", message).at(source.start(name.span))),
        (false, _) => Ok(command),
    }
}

fn drop(name: &Ident, if_exists: bool, command: Command, source: &Source) -> Result<Command> {
    let extension = fold(name);
    let message = format!("extension \"{extension}\" does not exist");
    match (KNOWN.contains(&extension.as_str()), if_exists) {
        (true, _) => {
            Err(SqlError::unsupported(format!("dropping extension \"{extension}\"")).at(source.start(name.span)))
        }
        (false, true) => Ok(command.with_notice(format!("{message}, skipping"))),
        (false, false) => Err(SqlError::new("42704", message).at(source.start(name.span))),
    }
}
