//! `CREATE EXTENSION` and `DROP EXTENSION`, read from their tokens.
//!
//! ```text
//! CREATE EXTENSION [IF NOT EXISTS] name [WITH] [SCHEMA s] [VERSION v] [CASCADE]
//! DROP EXTENSION [IF EXISTS] name, ... [CASCADE | RESTRICT]
//! ```
use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::Result;
use crate::parsing::words;
use crate::syntax::source::Source;

/// A statement about extensions.
#[derive(Clone)]
pub(crate) enum ExtensionStatement {
    Create { name: Ident, if_not_exists: bool },
    Drop { names: Vec<Ident>, if_exists: bool },
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_extension(parser: &mut Parser, source: &Source) -> Result<Option<ExtensionStatement>> {
    let is_of_extension =
        matches!(&parser.peek_nth_token(1).token, Token::Word(word) if word.keyword == Keyword::EXTENSION);
    let verb = [Keyword::CREATE, Keyword::DROP].into_iter().find(|verb| parser.peek_keyword(*verb));
    let Some(verb) = verb.filter(|_| is_of_extension) else { return Ok(None) };
    (0..2).for_each(|_| parser.advance_token());
    let read = match verb {
        Keyword::CREATE => create(parser),
        _ => drop(parser),
    };
    read.map(Some).map_err(|error| source.parser_error(error))
}

fn create(parser: &mut Parser) -> std::result::Result<ExtensionStatement, ParserError> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = words::identifier(parser)?;
    let _ = parser.parse_keyword(Keyword::WITH);
    while let Some(option) = parser.parse_one_of_keywords(&[Keyword::SCHEMA, Keyword::VERSION, Keyword::CASCADE]) {
        if option != Keyword::CASCADE {
            words::identifier(parser)?;
        }
    }
    Ok(ExtensionStatement::Create { name, if_not_exists })
}

fn drop(parser: &mut Parser) -> std::result::Result<ExtensionStatement, ParserError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = parser.parse_comma_separated(words::identifier)?;
    let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
    Ok(ExtensionStatement::Drop { names, if_exists })
}
