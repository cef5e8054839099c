//! `VACUUM`, `ANALYZE` and `REINDEX`, which have nothing to do here: merges and statistics need no request, and indexes don't grow by
//! what is deleted. They are accepted so that programs which keep house in PostgreSQL go on, and look whether what they name is there.
//!
//! ```text
//! VACUUM [(option [value], ...)] [FULL] [FREEZE] [VERBOSE] [ANALYZE] [table [(column, ...)], ...]
//! ANALYZE [(option [value], ...)] [VERBOSE] [table [(column, ...)], ...]
//! REINDEX [(option [value], ...)] INDEX | TABLE | SCHEMA | DATABASE | SYSTEM [CONCURRENTLY] name
//! ```
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::Result;
use crate::names::{fold, position, table_name};
use crate::parsing::owner::{OwnedKind, Owner};
use crate::parsing::words;
use crate::parsing::words::is_word;
use crate::syntax::source::Source;

/// A `VACUUM`, `ANALYZE` or `REINDEX` statement.
#[derive(Clone)]
pub(crate) enum Maintenance {
    /// What cleans tables up or takes their statistics.
    Tables { tag: &'static str, tables: Vec<MaintainedTable> },
    /// What makes indexes anew: those of what is named. `System` is a database.
    Indexes { of: Owner, is_concurrent: bool },
}

/// A table that such a statement names.
#[derive(Clone, Debug)]
pub(crate) struct MaintainedTable {
    /// Its name as the catalog has it, in the schema `public` where none is said.
    pub(crate) name: String,
    pub(crate) has_schema: bool,
    pub(crate) at: Option<usize>,
    /// The columns that are named, and where.
    pub(crate) columns: Vec<(String, Option<usize>)>,
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_maintenance(parser: &mut Parser, source: &Source) -> Result<Option<Maintenance>> {
    if is_word(parser, 0, "reindex") {
        parser.next_token();
        return reindex(parser).map(Some).map_err(|error| source.parser_error(error));
    }
    let tag = match parser.peek_token().token {
        Token::Word(word) if word.keyword == Keyword::VACUUM => "VACUUM",
        Token::Word(word) if word.keyword == Keyword::ANALYZE => "ANALYZE",
        _ => return Ok(None),
    };
    parser.next_token();
    let names = read(parser).map_err(|error| source.parser_error(error))?;
    let table = |(name, columns): &(ObjectName, Vec<Ident>)| {
        let columns = columns.iter().map(|column| (fold(column), source.start(column.span))).collect();
        let (known, at) = (table_name(name, source)?, position(name, source));
        Ok(MaintainedTable { name: known, has_schema: name.0.len() > 1, at, columns })
    };
    Ok(Some(Maintenance::Tables { tag, tables: names.iter().map(table).collect::<Result<_>>()? }))
}

/// What follows the word `REINDEX`.
fn reindex(parser: &mut Parser) -> Result<Maintenance, ParserError> {
    skip_options(parser)?;
    let kinds = [
        (Keyword::INDEX, OwnedKind::Index),
        (Keyword::TABLE, OwnedKind::Table),
        (Keyword::SCHEMA, OwnedKind::Schema),
        (Keyword::DATABASE, OwnedKind::Database),
        (Keyword::SYSTEM, OwnedKind::Database),
    ];
    let word = parser.expect_one_of_keywords(&kinds.map(|(word, _)| word))?;
    let kind = kinds.into_iter().find(|(of, _)| *of == word).map_or(OwnedKind::Index, |(_, kind)| kind);
    let is_concurrent = parser.parse_keyword(Keyword::CONCURRENTLY);
    let of = Owner { kind, name: words::object_name(parser)?, if_exists: false };
    Ok(Maintenance::Indexes { of, is_concurrent })
}

/// Options in parentheses, whatever they are.
fn skip_options(parser: &mut Parser) -> Result<(), ParserError> {
    if parser.consume_token(&Token::LParen) {
        while !parser.consume_token(&Token::RParen) {
            let next = parser.next_token();
            if next.token == Token::EOF {
                return parser.expected("a closing parenthesis", next);
            }
        }
    }
    Ok(())
}

fn read(parser: &mut Parser) -> Result<Vec<(ObjectName, Vec<Ident>)>, ParserError> {
    skip_options(parser)?;
    while parser.parse_one_of_keywords(&[Keyword::FULL, Keyword::FREEZE, Keyword::VERBOSE, Keyword::ANALYZE]).is_some()
    {
    }
    let mut names = Vec::new();
    if matches!(parser.peek_token().token, Token::Word(_)) {
        loop {
            let name = words::object_name(parser)?;
            names.push((name, words::columns(parser)?));
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::Maintenance;
    use crate::parsing::parse::parse;
    use crate::parsing::{OwnStatement, ParsedStatement};

    #[test]
    fn all_forms_are_read() {
        for (text, tables) in [
            ("VACUUM", 0),
            ("vacuum analyze a, public.b (x, y);", 2),
            ("VACUUM (FREEZE, PARALLEL 2) a", 1),
            ("VACUUM FULL FREEZE VERBOSE ANALYZE a", 1),
            ("analyze verbose", 0),
            ("ANALYZE a", 1),
        ] {
            match parse(text) {
                Ok(ParsedStatement::Own(OwnStatement::Maintenance(Maintenance::Tables { tables: named, .. }))) => {
                    assert_eq!(named.len(), tables, "{text}")
                }
                _ => panic!("{text}"),
            }
        }
        assert_eq!(parse("VACUUM (FULL").err().map(|error| error.sqlstate), Some("42601"));
    }
}
