//! `ALTER DATABASE`: the settings that the sessions of a database begin with.
//!
//! ```text
//! ALTER DATABASE name SET setting { TO | = } { value [, ...] | DEFAULT }      ... SET TIME ZONE value
//! ALTER DATABASE name RESET { setting | ALL }
//! ```
//!
//! The database remembers them as texts (`engine`'s `remembered`), by the names of the settings after a prefix. Sessions that
//! begin after the commit have them, as in PostgreSQL. `memory_limit` is not a session's but the database's: it begins with
//! that when it is opened.
use datafusion::sql::sqlparser::ast::{Reset, Set, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use engine::Database;

use crate::catalog::CATALOG;
use crate::error::{Result, SqlError};
use crate::memory_limit;
use crate::names::fold;
use crate::outcome::Command;
use crate::parse::Source;
use crate::session::Session;
use crate::settings::Settings;

const PREFIX: &str = "setting ";
const MEMORY_LIMIT: &str = "memory_limit";

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
    session.write("ALTER DATABASE", |session, write| {
        let transaction = &mut *write.transaction;
        match &alter.change {
            Change::Set(set) => {
                let (name, value) = session.settings.for_a_database(set)?;
                transaction.remember(&key(&name), value.as_deref())?;
            }
            Change::Reset(Reset::ConfigurationParameter(name)) => {
                let name = name.to_string().to_lowercase();
                transaction.remember(&key(Settings::check_name(&name)?), None)?;
            }
            Change::Reset(Reset::ALL) => {
                for name in transaction.remembered()?.keys().filter(|name| name.starts_with(PREFIX)) {
                    transaction.remember(name, None)?;
                }
            }
        }
        Ok(Command::new("ALTER DATABASE"))
    })
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
