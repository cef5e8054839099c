//! `CREATE EXTENSION` and `DROP EXTENSION`: what some extensions bring to PostgreSQL is there without them.
use datafusion::sql::sqlparser::ast::Ident;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::parsing::extension_statement::ExtensionStatement;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::extensions::{self, KNOWN, LANGUAGE};
use crate::state::outcome::{Command, Notice};
use crate::syntax::source::Source;

/// Runs one of the statements.
pub(crate) fn run(session: &mut Session, statement: &ExtensionStatement, source: &Source) -> Result<Command> {
    let tag = match statement {
        ExtensionStatement::Create { .. } => "CREATE EXTENSION",
        ExtensionStatement::Drop { .. } => "DROP EXTENSION",
    };
    session.write(tag, |_, write| match statement {
        ExtensionStatement::Create { name, if_not_exists } => {
            create(write, (name, *if_not_exists), Command::new(tag), source)
        }
        ExtensionStatement::Drop { names, if_exists } => {
            let mut names = names.iter();
            names.try_fold(Command::new(tag), |command, name| drop(write, (name, *if_exists), command, source))
        }
    })
}

fn is_known(extension: &str) -> bool {
    KNOWN.iter().any(|known| known.name == extension)
}

/// Refuses the name of an extension that is not there.
pub(crate) fn check_known(extension: &str, at: Option<usize>) -> Result<()> {
    match is_known(extension) {
        true => Ok(()),
        false => Err(SqlError::new("42704", format!("extension \"{extension}\" does not exist")).at(at)),
    }
}

fn create(
    write: &mut Write<'_>,
    (name, if_not_exists): (&Ident, bool),
    command: Command,
    source: &Source,
) -> Result<Command> {
    let extension = fold(name);
    if !is_known(&extension) {
        let message = format!("extension \"{extension}\" is not available");
        let error = SqlError::new("0A000", message).at(source.start(name.span));
        return Err(error.hint("What is not built in cannot be added. Leave the statement out."));
    }
    let message = format!("extension \"{extension}\" already exists");
    match (extensions::is_there(write.transaction, &extension)?, if_not_exists) {
        (false, _) => extensions::set(write.transaction, &extension, true).map(|()| command),
        (true, true) => Ok(command.with_notice(Notice::skipping("42710", message))),
        (true, false) => Err(SqlError::new("42710", message).at(source.start(name.span))),
    }
}

fn drop(
    write: &mut Write<'_>,
    (name, if_exists): (&Ident, bool),
    command: Command,
    source: &Source,
) -> Result<Command> {
    let extension = fold(name);
    let message = format!("extension \"{extension}\" does not exist");
    match (extensions::is_there(write.transaction, &extension)?, if_exists) {
        (true, _) if extension == LANGUAGE => {
            Err(SqlError::unsupported(format!("dropping extension \"{extension}\"")).at(source.start(name.span)))
        }
        (true, _) => extensions::set(write.transaction, &extension, false).map(|()| command),
        (false, true) => Ok(command.with_notice(format!("{message}, skipping"))),
        (false, false) => Err(SqlError::new("42704", message).at(source.start(name.span))),
    }
}
