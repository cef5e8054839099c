//! `ALTER { TABLE | [MATERIALIZED] VIEW | SEQUENCE } [IF EXISTS] name SET SCHEMA schema`, read from its tokens.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

use crate::error::Result;
use crate::names::fold;
use crate::parsing::sequence_statement::PlacedName;
use crate::parsing::words;
use crate::syntax::source::Source;

/// What is to be in another schema.
#[derive(Clone)]
pub(crate) struct SetSchema {
    /// `TABLE`, `VIEW`, `MATERIALIZED VIEW` or `SEQUENCE`; a table may be one of the others.
    pub(crate) kind: &'static str,
    pub(crate) name: PlacedName,
    pub(crate) if_exists: bool,
    pub(crate) schema: PlacedName,
}

const KINDS: [(Keyword, &str); 4] = [
    (Keyword::TABLE, "TABLE"),
    (Keyword::VIEW, "VIEW"),
    (Keyword::MATERIALIZED, "MATERIALIZED VIEW"),
    (Keyword::SEQUENCE, "SEQUENCE"),
];

/// Reads such a statement, if the next one is.
pub(crate) fn parse_set_schema(parser: &mut Parser, source: &Source) -> Result<Option<SetSchema>> {
    if !parser.peek_keyword(Keyword::ALTER) {
        return Ok(None);
    }
    let read = parser.maybe_parse(|parser| -> std::result::Result<_, ParserError> {
        parser.expect_keyword(Keyword::ALTER)?;
        let kind = match parser.parse_keyword(Keyword::MATERIALIZED) {
            true => parser.expect_keyword(Keyword::VIEW).map(|_| Keyword::MATERIALIZED)?,
            false => parser.expect_one_of_keywords(&KINDS.map(|(keyword, _)| keyword))?,
        };
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name: ObjectName = words::object_name(parser)?;
        parser.expect_keywords(&[Keyword::SET, Keyword::SCHEMA])?;
        let schema: Ident = words::identifier(parser)?;
        Ok((kind, if_exists, name, schema))
    });
    let Some((kind, if_exists, name, schema)) = read.map_err(|error| source.parser_error(error))? else {
        return Ok(None);
    };
    let kind = KINDS.iter().find(|(keyword, _)| *keyword == kind).map_or("TABLE", |(_, kind)| kind);
    let schema = PlacedName { name: fold(&schema), position: source.start(schema.span), says_schema: false };
    let name = PlacedName::of(&name, source)?;
    Ok(Some(SetSchema { kind, name, if_exists, schema }))
}
