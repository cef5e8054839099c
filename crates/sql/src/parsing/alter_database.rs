//! `ALTER DATABASE` as it is read: the settings that the sessions of a database begin with (`database_settings`).
//!
//! ```text
//! ALTER DATABASE name SET setting { TO | = } { value [, ...] | DEFAULT }      ... SET TIME ZONE value
//! ALTER DATABASE name RESET { setting | ALL }
//! ```
//!
//! Sessions that begin after the commit have them, as in PostgreSQL. `set` runs it.
use datafusion::sql::sqlparser::ast::{Reset, Set, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

use crate::error::Result;
use crate::parsing::words;
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;

/// An `ALTER DATABASE`.
#[derive(Clone, Debug)]
pub(crate) struct AlterDatabase {
    /// the name of the database, and where it stands
    pub(crate) database: String,
    pub(crate) position: Option<usize>,
    pub(crate) change: Change,
}

/// What it does to the settings.
#[derive(Clone, Debug)]
pub(crate) enum Change {
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
    let name = words::identifier(parser)?;
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
