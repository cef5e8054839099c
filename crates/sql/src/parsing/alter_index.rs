//! `ALTER INDEX [IF EXISTS] name { SET (option [= value], ...) | RESET (option, ...) }`, read from its tokens.
use datafusion::sql::sqlparser::ast::{Expr, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::Result;
use crate::parsing::words;
use crate::syntax::source::Source;

/// The options of an index that are given other values, or those of before.
#[derive(Clone)]
pub(crate) struct AlterIndex {
    pub(crate) name: ObjectName,
    pub(crate) if_exists: bool,
    pub(crate) is_reset: bool,
    /// Names, with `=` and a value behind them or without.
    pub(crate) options: Vec<Expr>,
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_alter_index(parser: &mut Parser, source: &Source) -> Result<Option<AlterIndex>> {
    if !parser.peek_keyword(Keyword::ALTER) {
        return Ok(None);
    }
    let head = parser.maybe_parse(|parser| -> std::result::Result<_, ParserError> {
        parser.expect_keywords(&[Keyword::ALTER, Keyword::INDEX])?;
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name = words::object_name(parser)?;
        let is_reset = parser.expect_one_of_keywords(&[Keyword::SET, Keyword::RESET])? == Keyword::RESET;
        parser.expect_token(&Token::LParen)?;
        Ok((name, if_exists, is_reset))
    });
    let error = |error| source.parser_error(error);
    let Some((name, if_exists, is_reset)) = head.map_err(error)? else { return Ok(None) };
    let options = parser.parse_comma_separated(Parser::parse_expr).map_err(error)?;
    parser.expect_token(&Token::RParen).map_err(error)?;
    Ok(Some(AlterIndex { name, if_exists, is_reset, options }))
}
