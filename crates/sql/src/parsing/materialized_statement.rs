//! The statements about materialized views, read from their tokens: the query is kept as it was written.
//!
//! ```text
//! CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [(column [, ...])] [USING heap] AS query [WITH [NO] DATA]
//! REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH [NO] DATA]
//! ALTER MATERIALIZED VIEW [IF EXISTS] name RENAME TO name
//! ALTER MATERIALIZED VIEW [IF EXISTS] name RENAME [COLUMN] column TO column
//! DROP MATERIALIZED VIEW [IF EXISTS] name [, ...] [CASCADE | RESTRICT]
//! ```
use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError};
use crate::parsing::sequence_statement::PlacedName;
use crate::parsing::view_statement::{NewView, named};
use crate::parsing::words;
use crate::syntax::source::Source;

/// A statement about materialized views.
#[derive(Clone)]
pub(crate) enum MaterializedStatement {
    Create { new: NewView, if_not_exists: bool, with_data: bool },
    Refresh { view: PlacedName, concurrently: bool, with_data: bool },
    Rename { view: PlacedName, if_exists: bool, to: PlacedName },
    RenameColumn { view: PlacedName, if_exists: bool, from: Ident, to: Ident },
    Drop { views: Vec<PlacedName>, if_exists: bool, cascade: bool },
}

impl MaterializedStatement {
    /// The command tag.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            MaterializedStatement::Create { .. } => "CREATE MATERIALIZED VIEW",
            MaterializedStatement::Refresh { .. } => "REFRESH MATERIALIZED VIEW",
            MaterializedStatement::Rename { .. } | MaterializedStatement::RenameColumn { .. } => {
                "ALTER MATERIALIZED VIEW"
            }
            MaterializedStatement::Drop { .. } => "DROP MATERIALIZED VIEW",
        }
    }
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_materialized(parser: &mut Parser, source: &Source) -> Result<Option<MaterializedStatement>> {
    let word = |at: usize| parser.peek_nth_token(at).token;
    let is_word = |at: usize, text: &str| match word(at) {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text),
        _ => false,
    };
    let after = if is_word(1, "or") && is_word(2, "replace") { 3 } else { 2 };
    if is_word(0, "create") && is_word(after, "materialized") && is_word(after + 1, "view") {
        let near = parser.peek_nth_token(after);
        let error = SqlError::syntax(format!("syntax error at or near \"{}\"", near.token));
        return Err(error.at(source.start(near.span)));
    }
    if !is_word(1, "materialized") || !is_word(2, "view") {
        return Ok(None);
    }
    let read = match word(0) {
        Token::Word(first) if first.keyword == Keyword::CREATE => create,
        Token::Word(first) if first.keyword == Keyword::ALTER => alter,
        Token::Word(first) if first.keyword == Keyword::DROP => drop,
        _ if is_word(0, "refresh") => refresh,
        _ => return Ok(None),
    };
    (0..3).for_each(|_| parser.advance_token());
    read(parser, source).map(Some)
}

fn create(parser: &mut Parser, source: &Source) -> Result<MaterializedStatement> {
    let wrong = |error: ParserError| source.parser_error(error);
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let view = named(parser, source)?;
    let mut columns = Vec::new();
    if parser.consume_token(&Token::LParen) {
        columns = parser.parse_comma_separated(words::identifier).map_err(wrong)?;
        parser.expect_token(&Token::RParen).map_err(wrong)?;
    }
    if parser.parse_keyword(Keyword::USING) {
        let method = words::identifier(parser).map_err(wrong)?;
        if !method.value.eq_ignore_ascii_case("heap") {
            let message = format!("access method \"{}\" does not exist", method.value);
            return Err(SqlError::new("42704", message).at(source.start(method.span)));
        }
    }
    if parser.parse_keyword(Keyword::WITH) {
        return Err(SqlError::unsupported("an option of a materialized view").at(source.find_word("with")));
    }
    parser.expect_keyword(Keyword::AS).map_err(wrong)?;
    let start = source.start(parser.peek_token().span).unwrap_or(source.text.len());
    let query = words::query(parser, source)?;
    let end = source.start(parser.peek_token().span);
    let with_data = with_data(parser, source)?;
    let new = NewView { view, or_replace: false, is_temporary: false, columns, query, start, end, check: None };
    Ok(MaterializedStatement::Create { new, if_not_exists, with_data })
}

/// Whether it is to have rows at once, which is what holds where nothing is said.
fn with_data(parser: &mut Parser, source: &Source) -> Result<bool> {
    if !parser.parse_keyword(Keyword::WITH) {
        return Ok(true);
    }
    let has_none = parser.parse_keyword(Keyword::NO);
    parser.expect_keyword(Keyword::DATA).map_err(|error| source.parser_error(error))?;
    Ok(!has_none)
}

fn refresh(parser: &mut Parser, source: &Source) -> Result<MaterializedStatement> {
    let concurrently = parser.parse_keyword(Keyword::CONCURRENTLY);
    let view = named(parser, source)?;
    let with_data = with_data(parser, source)?;
    if concurrently && !with_data {
        return Err(SqlError::syntax("CONCURRENTLY and WITH NO DATA options cannot be used together"));
    }
    Ok(MaterializedStatement::Refresh { view, concurrently, with_data })
}

fn alter(parser: &mut Parser, source: &Source) -> Result<MaterializedStatement> {
    let wrong = |error: ParserError| source.parser_error(error);
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let view = named(parser, source)?;
    let next = parser.peek_token();
    if !parser.parse_keyword(Keyword::RENAME) {
        let message = format!("ALTER MATERIALIZED VIEW ... {}", next.token.to_string().to_uppercase());
        let error = SqlError::unsupported(message).at(source.start(next.span));
        return Err(error.hint("RENAME TO, RENAME COLUMN, SET SCHEMA and OWNER TO are all that there is."));
    }
    if parser.parse_keyword(Keyword::TO) {
        return Ok(MaterializedStatement::Rename { view, if_exists, to: named(parser, source)? });
    }
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let from = words::identifier(parser).map_err(wrong)?;
    parser.expect_keyword(Keyword::TO).map_err(wrong)?;
    let to = words::identifier(parser).map_err(wrong)?;
    Ok(MaterializedStatement::RenameColumn { view, if_exists, from, to })
}

fn drop(parser: &mut Parser, source: &Source) -> Result<MaterializedStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let mut views = vec![named(parser, source)?];
    while parser.consume_token(&Token::Comma) {
        views.push(named(parser, source)?);
    }
    let cascade = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]) == Some(Keyword::CASCADE);
    Ok(MaterializedStatement::Drop { views, if_exists, cascade })
}
