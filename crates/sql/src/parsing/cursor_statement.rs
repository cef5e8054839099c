//! The statements about cursors, read from their tokens.
//!
//! ```text
//! DECLARE name [BINARY] [ASENSITIVE | INSENSITIVE] [[NO] SCROLL] CURSOR [{WITH | WITHOUT} HOLD] FOR query
//! {FETCH | MOVE} [direction] [FROM | IN] name           CLOSE {name | ALL}
//! direction:  NEXT | PRIOR | FIRST | LAST | ABSOLUTE n | RELATIVE n | n | ALL
//!             | {FORWARD | BACKWARD} [n | ALL]
//! ```
use datafusion::sql::sqlparser::ast::Query;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::parsing::lock_clauses::LockClause;
use crate::parsing::sequence_statement::number;
use crate::parsing::words;
use crate::syntax::source::Source;

/// A statement about cursors.
#[derive(Clone)]
pub(crate) enum CursorStatement {
    Declare {
        name: String,
        is_scrollable: bool,
        is_holdable: bool,
        query: Box<Query>,
        /// How it locks its rows, if it does.
        locks: Vec<LockClause>,
    },
    Fetch {
        name: String,
        direction: Direction,
    },
    Move {
        name: String,
        direction: Direction,
    },
    /// All of them without a name.
    Close {
        name: Option<String>,
    },
}

impl CursorStatement {
    /// Has the query of a cursor lock its rows.
    ///
    /// # Errors
    /// PostgreSQL's, for one that goes back or outlives its transaction; 0A000 for locks of a subquery.
    pub(crate) fn lock(&mut self, asked: Vec<LockClause>, of_subqueries: &[LockClause]) -> Result<()> {
        if let Some(inner) = of_subqueries.first() {
            let what = format!("{} of a subquery of a cursor", inner.strength);
            return Err(SqlError::unsupported(what).at(inner.position));
        }
        let CursorStatement::Declare { is_scrollable, is_holdable, locks, .. } = self else {
            let position = asked.first().and_then(|first| first.position);
            return Err(SqlError::syntax("syntax error at or near \"for\"").at(position));
        };
        if let Some(first) = asked.first() {
            let refused = |what: &str, why: &str| {
                let message = format!("DECLARE {what} ... {} is not supported", first.strength);
                Err(SqlError::new("0A000", message).detail(why))
            };
            if *is_holdable {
                return refused("CURSOR WITH HOLD", "Holdable cursors must be READ ONLY.");
            }
            if *is_scrollable {
                return refused("SCROLL CURSOR", "Scrollable cursors must be READ ONLY.");
            }
        }
        *locks = asked;
        Ok(())
    }
}

/// Which rows are wanted, seen from where a cursor stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// As many of those that follow.
    Forward(usize),
    /// As many of those before, the nearest first.
    Backward(usize),
    /// The one of this number, counted from the end where it is negative.
    Absolute(i64),
    /// The one that is so many rows further on.
    Relative(i64),
}

impl Direction {
    const ALL: usize = usize::MAX;

    /// So many rows forward, or backward if they are fewer than none; of none the one where the cursor stands.
    fn by(count: i64, is_forward: bool) -> Direction {
        let rows = usize::try_from(count.unsigned_abs()).unwrap_or(Direction::ALL);
        match (count, is_forward) {
            (0, _) => Direction::Relative(0),
            (1.., true) | (..0, false) => Direction::Forward(rows),
            _ => Direction::Backward(rows),
        }
    }
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_cursor(parser: &mut Parser, source: &Source) -> Result<Option<CursorStatement>> {
    let Token::Word(word) = parser.peek_token().token else { return Ok(None) };
    let wrong = |error: ParserError| source.parser_error(error);
    match word.keyword {
        _ if word.quote_style.is_some() => Ok(None),
        Keyword::DECLARE => {
            parser.advance_token();
            declare(parser, source).map(Some)
        }
        Keyword::FETCH => {
            parser.advance_token();
            let (direction, name) = moved(parser, source)?;
            Ok(Some(CursorStatement::Fetch { name, direction }))
        }
        Keyword::CLOSE => {
            parser.advance_token();
            let name = match parser.parse_keyword(Keyword::ALL) {
                true => None,
                false => Some(fold(&words::identifier(parser).map_err(wrong)?)),
            };
            Ok(Some(CursorStatement::Close { name }))
        }
        _ if word.value.eq_ignore_ascii_case("move") => {
            parser.advance_token();
            let (direction, name) = moved(parser, source)?;
            Ok(Some(CursorStatement::Move { name, direction }))
        }
        _ => Ok(None),
    }
}

fn declare(parser: &mut Parser, source: &Source) -> Result<CursorStatement> {
    let wrong = |error: ParserError| source.parser_error(error);
    let name = fold(&words::identifier(parser).map_err(wrong)?);
    let mut is_scrollable = false;
    loop {
        let next = parser.peek_token();
        if is_next(parser, "binary") {
            return Err(SqlError::unsupported("a binary cursor").at(source.start(next.span)));
        }
        if is_next(parser, "insensitive") || is_next(parser, "asensitive") {
            parser.advance_token();
        } else if parser.parse_keyword(Keyword::SCROLL) {
            is_scrollable = true;
        } else if !parser.parse_keywords(&[Keyword::NO, Keyword::SCROLL]) {
            break;
        }
    }
    parser.expect_keyword(Keyword::CURSOR).map_err(wrong)?;
    let is_holdable = parser.parse_keywords(&[Keyword::WITH, Keyword::HOLD]);
    let _ = !is_holdable && parser.parse_keywords(&[Keyword::WITHOUT, Keyword::HOLD]);
    parser.expect_keyword(Keyword::FOR).map_err(wrong)?;
    let next = parser.peek_token();
    if matches!(&next.token, Token::Word(word) if !begins_query(word.keyword)) {
        return Err(wrong(parser.expected::<()>("a query", next).err().unwrap_or(ParserError::RecursionLimitExceeded)));
    }
    let query = words::query(parser, source)?;
    Ok(CursorStatement::Declare { name, is_scrollable, is_holdable, query, locks: Vec::new() })
}

fn begins_query(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE)
}

fn is_next(parser: &Parser, text: &str) -> bool {
    matches!(parser.peek_token().token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

/// Takes a word if it is the next one and no cursor's name: something follows it.
fn word(parser: &mut Parser, text: &str) -> bool {
    let is_end = |token: &Token| matches!(token, Token::EOF | Token::SemiColon);
    let is_it = is_next(parser, text) && !is_end(&parser.peek_nth_token(1).token);
    if is_it {
        parser.advance_token();
    }
    is_it
}

/// The direction and the name of a cursor.
fn moved(parser: &mut Parser, source: &Source) -> Result<(Direction, String)> {
    let direction = direction(parser, source)?;
    let _ = word(parser, "from") || word(parser, "in");
    let name = words::identifier(parser).map_err(|error| source.parser_error(error))?;
    Ok((direction, fold(&name)))
}

fn direction(parser: &mut Parser, source: &Source) -> Result<Direction> {
    let plain = [
        ("next", Direction::Forward(1)),
        ("prior", Direction::Backward(1)),
        ("first", Direction::Absolute(1)),
        ("last", Direction::Absolute(-1)),
        ("all", Direction::Forward(Direction::ALL)),
    ];
    if let Some((_, direction)) = plain.into_iter().find(|(text, _)| word(parser, text)) {
        return Ok(direction);
    }
    if word(parser, "absolute") {
        return number(parser, source).map(Direction::Absolute);
    }
    if word(parser, "relative") {
        return number(parser, source).map(Direction::Relative);
    }
    if is_number(parser) {
        return number(parser, source).map(|count| Direction::by(count, true));
    }
    let is_forward = word(parser, "forward");
    if !is_forward && !word(parser, "backward") {
        return Ok(Direction::Forward(1));
    }
    let all = if is_forward { Direction::Forward(Direction::ALL) } else { Direction::Backward(Direction::ALL) };
    match () {
        () if word(parser, "all") => Ok(all),
        () if is_number(parser) => number(parser, source).map(|count| Direction::by(count, is_forward)),
        () => Ok(Direction::by(1, is_forward)),
    }
}

fn is_number(parser: &Parser) -> bool {
    matches!(parser.peek_token().token, Token::Number(..) | Token::Minus | Token::Plus)
}
