//! `ALTER DATABASE`: the settings that the sessions of a database begin with.
//!
//! ```text
//! ALTER DATABASE name SET setting { TO | = } { value [, ...] | DEFAULT }      ... SET TIME ZONE value
//! ALTER DATABASE name RESET { setting | ALL }
//! ```
//!
//! The database remembers them as texts (`engine`'s `remembered`), by the names of the settings after a prefix.
//! Sessions that begin after the commit have them, as in PostgreSQL. `memory_limit` is not a session's but the
//! database's: it holds for all from the commit on, and when the database is opened again. A session that has
//! committed one reads what is remembered by then and sets it, one after the other, so that the limit in force is
//! that of the newest commit.
use datafusion::sql::sqlparser::ast::{Reset, Set, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use engine::{Database, Transaction};
use parking_lot::Mutex;

use crate::error::{Result, SqlError};
use crate::memory_limit;
use crate::names::fold;
use crate::outcome::{Command, Notice};
use crate::parse::Source;
use crate::session::Session;
use crate::settings::Settings;
use crate::tables::CATALOG;

const PREFIX: &str = "setting ";
pub(crate) const MEMORY_LIMIT: &str = "memory_limit";

/// An `ALTER DATABASE`.
#[derive(Clone, Debug)]
pub(crate) struct AlterDatabase {
    database: String,
    position: Option<usize>,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Set(Box<Set>),
    Reset(Reset),
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_alter_database(parser: &mut Parser, source: &Source) -> Result<Option<AlterDatabase>> {
    if !parser.parse_keywords(&[Keyword::ALTER, Keyword::DATABASE]) {
        return Ok(None);
    }
    read(parser, source).map(Some).map_err(|error| source.parser_error(error))
}

/// `ALTER DATABASE` is read.
fn read(parser: &mut Parser, source: &Source) -> Result<AlterDatabase, ParserError> {
    let name = parser.parse_identifier()?;
    let next = parser.peek_token();
    let change = match parser.peek_one_of_keywords(&[Keyword::SET, Keyword::RESET]) {
        Some(_) => parser.parse_statement()?,
        None => return parser.expected("SET or RESET", next),
    };
    let change = match change {
        Statement::Set(set) => Change::Set(Box::new(set)),
        Statement::Reset(reset) => Change::Reset(reset.reset),
        _ => return parser.expected("a setting", next),
    };
    Ok(AlterDatabase { database: fold(&name), position: source.start(name.span), change })
}

/// Runs such a statement.
pub(crate) fn run(session: &mut Session, alter: &AlterDatabase) -> Result<Command> {
    if alter.database != CATALOG {
        let message = format!("database \"{}\" does not exist", alter.database);
        let hint = format!("The one database here is called \"{CATALOG}\".");
        return Err(SqlError::new("3D000", message).at(alter.position).hint(hint));
    }
    let changed = session
        .write("ALTER DATABASE", |session, write| remember(&session.settings, write.transaction, &alter.change))?;
    let command = Command::new("ALTER DATABASE");
    if !changed.contains(&key(MEMORY_LIMIT)) {
        return Ok(command);
    }
    match &mut session.block {
        Some(block) => {
            block.alter_memory_limit();
            Ok(command)
        }
        None => Ok(with_memory_limit(&session.db, command)),
    }
}

/// Has the database remember a change; returns what it is about.
fn remember(settings: &Settings, transaction: &mut Transaction, change: &Change) -> Result<Vec<String>> {
    let changed = match change {
        Change::Set(set) => {
            let (name, value) = settings.for_a_database(set)?;
            transaction.remember(&key(&name), value.as_deref())?;
            return Ok(vec![key(&name)]);
        }
        Change::Reset(Reset::ConfigurationParameter(name)) => {
            vec![key(Settings::check_name(&name.to_string().to_lowercase())?)]
        }
        Change::Reset(Reset::ALL) => {
            transaction.remembered()?.into_keys().filter(|name| name.starts_with(PREFIX)).collect()
        }
    };
    for name in &changed {
        transaction.remember(name, None)?;
    }
    Ok(changed)
}

/// The memory limit that was committed takes effect. Where it can't be read the commit stands all the same, and a warning
/// tells of it.
pub(crate) fn with_memory_limit(db: &Database, command: Command) -> Command {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    match remembered_memory_limit(db) {
        Ok(limit) => {
            db.set_memory_limit_bytes(limit.unwrap_or_else(|| db.memory_limit_at_opening_bytes()));
            command
        }
        Err(error) => {
            let message = format!("the memory limit takes effect at the next opening: {}", error.message);
            command.with_notice(Notice::warning(error.sqlstate, message))
        }
    }
}

fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The settings, by name, that a database gives its sessions to begin with.
pub(crate) fn remembered(db: &Database) -> Result<Vec<(String, String)>> {
    let all = db.remembered()?.into_iter();
    Ok(all.filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?.to_owned(), value))).collect())
}

/// The limit of memory that a database is to begin with, if it has been given one by `ALTER DATABASE`: some bytes, or none.
///
/// # Errors
/// What it remembers can't be read.
pub fn remembered_memory_limit(db: &Database) -> Result<Option<Option<u64>>, SqlError> {
    let found = remembered(db)?.into_iter().find(|(name, _)| name == MEMORY_LIMIT);
    Ok(found.and_then(|(_, value)| memory_limit::parse(&value).ok()))
}
