//! Words of statements of our own, which the library's parser knows no keywords for, ahead of its place, and the names and
//! queries within such statements.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::Result;
use crate::syntax::dialect::SqlDialect;
use crate::syntax::limits;
use crate::syntax::reserved;
use crate::syntax::source::Source;
use crate::syntax::tokens::is_sign;

/// What parsers of the library give.
pub(super) type Read<T> = std::result::Result<T, ParserError>;

/// Whether the token so many places ahead is this word, without quotes.
pub(super) fn is_word(parser: &Parser, at: usize, text: &str) -> bool {
    matches!(parser.peek_nth_token(at).token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

/// Goes past these words, if they come next.
pub(super) fn take_words(parser: &mut Parser, words: &[&str]) -> bool {
    let is_it = words.iter().enumerate().all(|(at, word)| is_word(parser, at, word));
    if is_it {
        words.iter().for_each(|_| parser.advance_token());
    }
    is_it
}

/// A name, which is no reserved word.
pub(super) fn identifier(parser: &mut Parser) -> Read<Ident> {
    reserved::refuse_next(parser)?;
    parser.parse_identifier()
}

/// A name that may be qualified, whose first part is no reserved word.
pub(super) fn object_name(parser: &mut Parser) -> Read<ObjectName> {
    reserved::refuse_next(parser)?;
    parser.parse_object_name(false)
}

/// Names in parentheses, none of which is a reserved word, or nothing.
pub(super) fn columns(parser: &mut Parser) -> Read<Vec<Ident>> {
    if !parser.consume_token(&Token::LParen) {
        return Ok(Vec::new());
    }
    let columns = parser.parse_comma_separated(identifier)?;
    parser.expect_token(&Token::RParen)?;
    Ok(columns)
}

/// The query that comes next, in which reserved words are no names.
///
/// # Errors
/// Where none comes, or one with such names.
pub(super) fn query(parser: &mut Parser, source: &Source) -> Result<Box<Query>> {
    let rest = (0..).map(|at| parser.peek_nth_token_no_skip(at));
    let mut rest: Vec<TokenWithSpan> = rest.take_while(|token| token.token != Token::EOF).collect();
    reserved::mark(&mut rest);
    let dialect = SqlDialect::of(&rest);
    let mut inner = limits::parser(&dialect, rest);
    let query = inner.parse_query().map_err(|error| source.parser_error(error));
    if dialect.is_exhausted() {
        return Err(limits::too_many_readings());
    }
    let query = query?;
    reserved::refuse(&query, source)?;
    let end = inner.index();
    let taken = inner.into_tokens()[..end].iter().filter(|token| is_sign(token)).count();
    (0..taken).for_each(|_| parser.advance_token());
    Ok(query)
}
