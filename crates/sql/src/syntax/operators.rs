//! How strongly operators bind where the parser's library has other ranks than PostgreSQL.
//!
//! PostgreSQL has one rank for all operators that have no rank of their own, before an operand and between two: below `+` and
//! above `LIKE`. So `~ a + b` is `~ (a + b)`, and `a || b ~ c || d` is `((a || b) ~ c) || d`. `ISNULL` ranks with `IS NULL`.
use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, TypedString, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Word};
use engine::{NetworkKind, RangeKind};

/// The rank of a token behind an operand, if the library has another one.
pub(crate) fn precedence(dialect: &impl Dialect, token: &Token) -> Option<u8> {
    let rank = match token {
        Token::Tilde
        | Token::TildeAsterisk
        | Token::ExclamationMarkTilde
        | Token::ExclamationMarkTildeAsterisk
        | Token::DoubleTilde
        | Token::DoubleTildeAsterisk
        | Token::ExclamationMarkDoubleTilde
        | Token::ExclamationMarkDoubleTildeAsterisk
        | Token::AmpersandLeftAngleBracket
        | Token::AmpersandRightAngleBracket
        | Token::AmpersandLeftAngleBracketVerticalBar
        | Token::VerticalBarAmpersandRightAngleBracket
        | Token::ShiftLeftVerticalBar
        | Token::VerticalBarShiftRight
        | Token::TwoWayArrow
        | Token::LeftAngleBracketCaret
        | Token::RightAngleBracketCaret
        | Token::QuestionMarkDash
        | Token::QuestionMarkSharp
        | Token::TildeEqual => Precedence::PgOther,
        token if is_isnull(token) => Precedence::Is,
        _ => return None,
    };
    Some(dialect.prec_value(rank))
}

/// Whether this is the word `ISNULL`, which the library does not know.
pub(crate) fn is_isnull(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("isnull"))
}

/// An operator and the operand behind it, if an operator with the rank of the others is next, or a literal of a range type or of an
/// address, whose names the library does not know.
///
/// # Errors
/// Where the operand is no expression.
pub(crate) fn prefixed(dialect: &impl Dialect, parser: &mut Parser) -> Result<Option<Expr>, ParserError> {
    let op = match &parser.peek_token_ref().token {
        Token::Tilde => UnaryOperator::BitwiseNot,
        Token::AtSign => UnaryOperator::PGAbs,
        Token::PGSquareRoot => UnaryOperator::PGSquareRoot,
        Token::PGCubeRoot => UnaryOperator::PGCubeRoot,
        Token::Word(word) if names_range(word) => return ranged(parser),
        Token::Word(word) if may_name_type(word) && stands_before_text(parser) => return typed(parser),
        _ => return Ok(None),
    };
    parser.advance_token();
    let expr = Box::new(parser.parse_subexpr(dialect.prec_value(Precedence::PgOther))?);
    Ok(Some(Expr::UnaryOp { op, expr }))
}

/// Whether a word may be the name of a type that a user has made: no word of the library's own begins a literal then.
fn may_name_type(word: &Word) -> bool {
    word.quote_style.is_some() || word.keyword == Keyword::NoKeyword
}

/// Whether a text follows the name, which may have a schema's before it.
fn stands_before_text(parser: &Parser) -> bool {
    let is_text = |at: usize| matches!(parser.peek_nth_token_ref(at).token, Token::SingleQuotedString(_));
    let is_qualified = || {
        parser.peek_nth_token_ref(1).token == Token::Period
            && matches!(parser.peek_nth_token_ref(2).token, Token::Word(_))
    };
    is_text(1) || (is_qualified() && is_text(3))
}

/// A literal such as `mood 'ok'`, as the cast that it stands for. Types that the library knows are left to it.
fn typed(parser: &mut Parser) -> Result<Option<Expr>, ParserError> {
    let start = parser.index();
    let data_type = parser.parse_data_type()?;
    if !matches!(data_type, DataType::Custom(..)) {
        while parser.index() > start {
            parser.prev_token();
        }
        return Ok(None);
    }
    let expr = Box::new(Expr::Value(parser.parse_value()?));
    Ok(Some(Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }))
}

/// Whether a word is the name of a range type, or of addresses.
fn names_range(word: &Word) -> bool {
    let mut names =
        RangeKind::ALL.iter().map(|kind| kind.name()).chain(NetworkKind::ALL.iter().map(|kind| kind.name()));
    word.quote_style.is_none() && names.any(|name| word.value.eq_ignore_ascii_case(name))
}

/// A literal such as `int4range '[1,5)'`, if a text follows the name of the type.
fn ranged(parser: &mut Parser) -> Result<Option<Expr>, ParserError> {
    if !matches!(parser.peek_nth_token_ref(1).token, Token::SingleQuotedString(_)) {
        return Ok(None);
    }
    let data_type = DataType::Custom(parser.parse_object_name(false)?, Vec::new());
    let value = parser.parse_value()?;
    Ok(Some(Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false })))
}
