//! `ALTER ... OWNER TO role`, read from its tokens.
//!
//! There are no roles yet, and everything belongs to the one user; the statement is read for the scripts that `pg_dump` writes.
use datafusion::sql::sqlparser::ast::ObjectName;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

use crate::error::Result;
use crate::parsing::words;
use crate::syntax::source::Source;

/// What is to belong to a role.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) kind: OwnedKind,
    pub(crate) name: ObjectName,
    pub(crate) if_exists: bool,
}

/// The kinds of what may be owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnedKind {
    Table,
    View,
    MaterializedView,
    Sequence,
    Index,
    Schema,
    Type,
    Domain,
    Database,
    Collation,
}

impl OwnedKind {
    const ALL: [(Keyword, OwnedKind); 10] = [
        (Keyword::MATERIALIZED, OwnedKind::MaterializedView),
        (Keyword::TABLE, OwnedKind::Table),
        (Keyword::VIEW, OwnedKind::View),
        (Keyword::SEQUENCE, OwnedKind::Sequence),
        (Keyword::INDEX, OwnedKind::Index),
        (Keyword::SCHEMA, OwnedKind::Schema),
        (Keyword::TYPE, OwnedKind::Type),
        (Keyword::DOMAIN, OwnedKind::Domain),
        (Keyword::DATABASE, OwnedKind::Database),
        (Keyword::COLLATION, OwnedKind::Collation),
    ];

    /// The command tag.
    pub(crate) fn tag(self) -> &'static str {
        match self {
            OwnedKind::Table => "ALTER TABLE",
            OwnedKind::View => "ALTER VIEW",
            OwnedKind::MaterializedView => "ALTER MATERIALIZED VIEW",
            OwnedKind::Sequence => "ALTER SEQUENCE",
            OwnedKind::Index => "ALTER INDEX",
            OwnedKind::Schema => "ALTER SCHEMA",
            OwnedKind::Type => "ALTER TYPE",
            OwnedKind::Domain => "ALTER DOMAIN",
            OwnedKind::Database => "ALTER DATABASE",
            OwnedKind::Collation => "ALTER COLLATION",
        }
    }

    /// What makes all indexes within it anew.
    pub(crate) fn reindexed(self) -> &'static str {
        if self == OwnedKind::Schema { "REINDEX SCHEMA" } else { "REINDEX DATABASE" }
    }
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_owner(parser: &mut Parser, source: &Source) -> Result<Option<Owner>> {
    if !parser.peek_keyword(Keyword::ALTER) {
        return Ok(None);
    }
    let read = parser.maybe_parse(|parser| -> std::result::Result<_, ParserError> {
        parser.expect_keyword(Keyword::ALTER)?;
        let is_materialized = parser.parse_keyword(Keyword::MATERIALIZED);
        let keyword = match is_materialized {
            true => parser.expect_keyword(Keyword::VIEW).map(|_| Keyword::MATERIALIZED)?,
            false => parser.expect_one_of_keywords(&OwnedKind::ALL.map(|(keyword, _)| keyword))?,
        };
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let _ = keyword == Keyword::TABLE && parser.parse_keyword(Keyword::ONLY);
        let name = words::object_name(parser)?;
        parser.expect_keywords(&[Keyword::OWNER, Keyword::TO])?;
        parser.parse_identifier()?;
        Ok((keyword, if_exists, name))
    });
    let read = read.map_err(|error| source.parser_error(error))?;
    Ok(read.and_then(|(keyword, if_exists, name)| {
        let kind = OwnedKind::ALL.iter().find(|(known, _)| *known == keyword)?.1;
        Some(Owner { kind, name, if_exists })
    }))
}
