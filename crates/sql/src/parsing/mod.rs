//! Statements as they are read: the parser's, and those of our own syntax.
//!
//! Imports names, values and syntax; sessions and the statements that run import it.
pub(crate) mod alter_database;
pub(crate) mod alter_index;
pub(crate) mod comment_statement;
pub(crate) mod control;
mod copy_forced;
pub(crate) mod copy_options;
pub(crate) mod cursor_statement;
pub(crate) mod do_block;
pub(crate) mod domain_statement;
pub(crate) mod extension_statement;
pub(crate) mod function_statement;
pub(crate) mod grant_statement;
pub(crate) mod identity_options;
mod join_alias;
pub(crate) mod lock_clauses;
pub(crate) mod lock_statement;
pub(crate) mod maintenance;
pub(crate) mod materialized_statement;
pub(crate) mod modes;
pub(crate) mod owner;
pub(crate) mod parse;
mod schema_elements;
pub(crate) mod search_cycle;
pub(crate) mod select_into;
pub(crate) mod sequence_options;
pub(crate) mod sequence_statement;
pub(crate) mod set_schema;
pub(crate) mod table_options;
mod ties;
pub(crate) mod time_limit;
pub(crate) mod updatable;
pub(crate) mod view_statement;
mod words;

use datafusion::sql::sqlparser::ast::{Query, Statement};
use datafusion::sql::sqlparser::parser::Parser;

use crate::error::Result;
use crate::syntax::composed;
use crate::syntax::source::Source;
use alter_database::{AlterDatabase, parse_alter_database};
use alter_index::{AlterIndex, parse_alter_index};
use comment_statement::{CommentStatement, parse_comment};
use control::Control;
use copy_options::{CopyStatement, parse_copy};
use cursor_statement::{CursorStatement, parse_cursor};
use do_block::DoBlock;
use domain_statement::{DomainStatement, parse_domain};
use extension_statement::{ExtensionStatement, parse_extension};
use function_statement::{FunctionStatement, parse_function};
use grant_statement::{Grant, parse_grant};
use lock_clauses::LockClause;
use lock_statement::{LockStatement, parse_lock};
use maintenance::{Maintenance, parse_maintenance};
use materialized_statement::{MaterializedStatement, parse_materialized};
use owner::{Owner, parse_owner};
use sequence_statement::{SequenceStatement, parse_sequence};
use set_schema::{SetSchema, parse_set_schema};
use view_statement::{ViewStatement, parse_view};

/// What a statement's text turned out to be.
#[expect(clippy::large_enum_variant, reason = "one is made for each statement, and moved a few times")]
#[derive(Clone)]
pub(crate) enum ParsedStatement {
    /// Nothing but blanks and comments.
    Empty,
    /// What begins, ends or divides a transaction.
    Control(Control),
    /// What is read from its tokens here.
    Own(OwnStatement),
    /// A query that locks rows.
    Locking(Box<Query>, Vec<LockClause>),
    /// A statement with parts that write or lock rows before the rest is run: queries of `WITH`, subqueries. These know their
    /// clauses by numbers.
    Composed(Box<Statement>, Vec<LockClause>),
    /// Anything else.
    Statement(Box<Statement>),
}

/// A statement that the library does not know, or not as it is meant here. `statements` runs it.
#[derive(Clone)]
pub(crate) enum OwnStatement {
    /// `LOCK TABLE`.
    Lock(LockStatement),
    /// What sets the settings that sessions begin with.
    AlterDatabase(AlterDatabase),
    /// `VACUUM` or `ANALYZE`.
    Maintenance(Maintenance),
    /// `COPY`, whose options outgrew the library's.
    Copy(CopyStatement),
    /// What makes, changes or drops sequences.
    Sequence(SequenceStatement),
    /// What makes, changes or drops views.
    View(ViewStatement),
    /// What makes, refreshes, changes or drops materialized views.
    Materialized(MaterializedStatement),
    /// What makes or drops domains.
    Domain(DomainStatement),
    /// What puts a table, view or sequence into another schema.
    SetSchema(SetSchema),
    /// What says to which role something belongs.
    Owner(Owner),
    /// What declares, reads or closes cursors.
    Cursor(CursorStatement),
    /// What makes or drops functions.
    Function(FunctionStatement),
    /// What gives an index other options.
    AlterIndex(AlterIndex),
    /// What gives or takes privileges.
    Grant(Grant),
    /// What makes or drops extensions.
    Extension(ExtensionStatement),
    /// What comments on something that the library knows no comments on.
    Comment(CommentStatement),
    /// Steps that are done one after the other.
    Do(DoBlock),
}

impl ParsedStatement {
    /// A statement of the library's syntax, by what its parts do.
    pub(crate) fn of(statement: Box<Statement>, clauses: Vec<LockClause>) -> ParsedStatement {
        match clauses.is_empty() && !composed::has_parts(&statement) {
            true => ParsedStatement::Statement(statement),
            false => ParsedStatement::Composed(statement, clauses),
        }
    }

    /// The query of a statement that takes parameters and is none of the library's.
    pub(crate) fn query_mut(&mut self) -> Option<&mut Query> {
        match self {
            ParsedStatement::Locking(query, _)
            | ParsedStatement::Own(OwnStatement::Cursor(CursorStatement::Declare { query, .. })) => Some(query),
            _ => None,
        }
    }

    /// That query, to look at.
    pub(crate) fn query(&self) -> Option<&Query> {
        match self {
            ParsedStatement::Locking(query, _)
            | ParsedStatement::Own(OwnStatement::Cursor(CursorStatement::Declare { query, .. })) => Some(query),
            _ => None,
        }
    }
}

impl OwnStatement {
    /// Reads one of these; `None`, and nothing is consumed, where it is another statement.
    fn parse(parser: &mut Parser, source: &Source) -> Result<Option<OwnStatement>> {
        if let Some(copy) = parse_copy(parser, source)? {
            return Ok(Some(OwnStatement::Copy(copy)));
        }
        if let Some(lock) = parse_lock(parser, source)? {
            return Ok(Some(OwnStatement::Lock(lock)));
        }
        if let Some(owner) = parse_owner(parser, source)? {
            return Ok(Some(OwnStatement::Owner(owner)));
        }
        if let Some(grant) = parse_grant(parser, source)? {
            return Ok(Some(OwnStatement::Grant(grant)));
        }
        if let Some(comment) = parse_comment(parser, source)? {
            return Ok(Some(OwnStatement::Comment(comment)));
        }
        if let Some(extension) = parse_extension(parser, source)? {
            return Ok(Some(OwnStatement::Extension(extension)));
        }
        if let Some(alter) = parse_alter_database(parser, source)? {
            return Ok(Some(OwnStatement::AlterDatabase(alter)));
        }
        if let Some(alter) = parse_alter_index(parser, source)? {
            return Ok(Some(OwnStatement::AlterIndex(alter)));
        }
        if let Some(maintenance) = parse_maintenance(parser, source)? {
            return Ok(Some(OwnStatement::Maintenance(maintenance)));
        }
        if let Some(cursor) = parse_cursor(parser, source)? {
            return Ok(Some(OwnStatement::Cursor(cursor)));
        }
        if let Some(set) = parse_set_schema(parser, source)? {
            return Ok(Some(OwnStatement::SetSchema(set)));
        }
        if let Some(domain) = parse_domain(parser, source)? {
            return Ok(Some(OwnStatement::Domain(domain)));
        }
        if let Some(function) = parse_function(parser, source)? {
            return Ok(Some(OwnStatement::Function(function)));
        }
        if let Some(view) = parse_view(parser, source)? {
            return Ok(Some(OwnStatement::View(view)));
        }
        if let Some(materialized) = parse_materialized(parser, source)? {
            return Ok(Some(OwnStatement::Materialized(materialized)));
        }
        Ok(parse_sequence(parser, source)?.map(OwnStatement::Sequence))
    }

    /// Whether it does what no transaction can take back.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            OwnStatement::Maintenance(_) => true,
            OwnStatement::Lock(_)
            | OwnStatement::AlterDatabase(_)
            | OwnStatement::AlterIndex(_)
            | OwnStatement::Copy(_)
            | OwnStatement::Sequence(_)
            | OwnStatement::View(_)
            | OwnStatement::Materialized(_)
            | OwnStatement::Domain(_)
            | OwnStatement::SetSchema(_)
            | OwnStatement::Owner(_)
            | OwnStatement::Function(_)
            | OwnStatement::Grant(_)
            | OwnStatement::Extension(_)
            | OwnStatement::Comment(_)
            | OwnStatement::Do(_)
            | OwnStatement::Cursor(_) => false,
        }
    }
}
