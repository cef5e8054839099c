//! From a statement's text to its syntax tree, with errors that point into the text.
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Query, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};
use engine::Value;

use crate::control::{Control, parse_control};
use crate::copy::options::{CopyStatement, parse_copy};
use crate::database_settings::{AlterDatabase, parse_alter_database};
use crate::dialect::SqlDialect;
use crate::error::{Result, SqlError};
use crate::locking::clauses::{self, LockClause};
use crate::maintenance::{Maintenance, parse_maintenance};
use crate::prepared::Prepared;
use crate::sequences::{SequenceStatement, parse_sequence};

/// How many levels of operators a statement may have. Every level costs stack in the planner, and time for each level
/// above it.
const DEPTH_MAX: usize = 2_000;

/// How many levels of parentheses and subqueries the parser follows.
const NESTING_MAX: usize = 200;

/// A statement as text, to find positions in.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
}

/// What a statement's text turned out to be.
#[derive(Clone)]
pub(crate) enum Parsed {
    /// Nothing but blanks and comments.
    Empty,
    /// What begins, ends or divides a transaction.
    Control(Control),
    /// What sets the settings that sessions begin with.
    AlterDatabase(AlterDatabase),
    /// `VACUUM` or `ANALYZE`.
    Maintenance(Maintenance),
    /// `COPY`, which has a parser of its own as its options outgrew the library's.
    Copy(CopyStatement),
    /// What makes, changes or drops sequences.
    Sequence(SequenceStatement),
    /// A prepared statement about rows by their keys, with the values of its parameters.
    Point(Arc<Prepared>, Vec<Value>),
    /// A query that locks rows.
    Locking(Box<Query>, Vec<LockClause>),
    /// Anything else.
    Statement(Box<Statement>),
}

impl Source<'_> {
    /// The byte offset of a line and column, both counted from 1 (0: unknown).
    pub(crate) fn offset(&self, location: Location) -> Option<usize> {
        let before_line = usize::try_from(location.line).ok()?.checked_sub(1)?;
        let before_column = usize::try_from(location.column).ok()?.checked_sub(1)?;
        let line_start = match before_line {
            0 => 0,
            n => self.text.match_indices('\n').nth(n - 1)?.0 + 1,
        };
        let line = &self.text[line_start..];
        let in_line = line.char_indices().nth(before_column).map_or(line.len(), |(at, _)| at);
        Some(line_start + in_line)
    }

    /// The byte offset at which a span starts.
    pub(crate) fn start(&self, span: Span) -> Option<usize> {
        self.offset(span.start)
    }

    /// Where the identifier `name` stands for the first time as a whole word, in any case.
    pub(crate) fn find_word(&self, name: &str) -> Option<usize> {
        let tokens = tokenize(self).ok()?;
        tokens.iter().find_map(|token| match &token.token {
            Token::Word(word) if word.value.eq_ignore_ascii_case(name) => self.start(token.span),
            _ => None,
        })
    }

    /// Where `table.column` stands.
    pub(crate) fn find_column(&self, table: &str, column: &str) -> Option<usize> {
        let tokens = tokenize(self).ok()?;
        let is =
            |token: &Token, name: &str| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
        let found = tokens
            .windows(3)
            .find(|three| is(&three[0].token, table) && three[1].token == Token::Period && is(&three[2].token, column));
        found.and_then(|three| self.start(three[0].span))
    }

    /// Where the only text of this value stands.
    pub(crate) fn find_text(&self, value: &str) -> Option<usize> {
        let tokens = tokenize(self).ok()?;
        let mut found =
            tokens.iter().filter(|token| matches!(&token.token, Token::SingleQuotedString(text) if text == value));
        found.next().filter(|_| found.next().is_none()).and_then(|token| self.start(token.span))
    }

    /// PostgreSQL's syntax error for what stands at a place.
    fn syntax_error(&self, position: Option<usize>, why: String) -> SqlError {
        let rest = position.map_or("", |at| &self.text[at..]);
        let message = match first_token(rest) {
            Some(token) => format!("syntax error at or near \"{token}\""),
            None => "syntax error at end of input".to_owned(),
        };
        SqlError::syntax(message).at(position.or(Some(self.text.len()))).detail(why)
    }
}

/// The text of the token at the start of `rest`.
fn first_token(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let first = rest.chars().next()?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let end = if is_word(first) {
        rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
    } else if first == '\'' || first == '"' {
        rest[1..].find(first).map_or(rest.len(), |at| at + 2)
    } else {
        first.len_utf8()
    };
    Some(&rest[..end])
}

fn tokenize(source: &Source) -> Result<Vec<TokenWithSpan>> {
    Tokenizer::new(&SqlDialect::default(), source.text).tokenize_with_location().map_err(|error| {
        let position = source.offset(error.location);
        let near = position.map_or("", |at| source.text[at..].trim_end());
        let near: String = near.chars().take(40).collect();
        let message = match error.message.to_ascii_lowercase().strip_prefix("unterminated ") {
            Some(what) => format!("unterminated {} at or near \"{near}\"", what.trim_end_matches([':', ' '])),
            None => format!("syntax error at or near \"{near}\""),
        };
        SqlError::syntax(message).at(position).detail(error.message)
    })
}

/// Parses exactly one statement.
pub(crate) fn parse(text: &str) -> Result<Parsed> {
    let source = Source { text };
    if let Some(at) = text.find('\0') {
        return Err(SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00").at(Some(at)));
    }
    let mut tokens = tokenize(&source)?;
    guard_depth(&tokens)?;
    let locks = clauses::take(&mut tokens, &source)?;
    let dialect = SqlDialect::of(&tokens);
    let mut parser = Parser::new(&dialect).with_recursion_limit(NESTING_MAX).with_tokens_with_locations(tokens);
    while parser.consume_token(&Token::SemiColon) {}
    let parsed = match parser.peek_token().token {
        Token::EOF => Parsed::Empty,
        Token::Word(word) if word.keyword == Keyword::COPY => Parsed::Copy(parse_copy(&mut parser, &source)?),
        _ => other_statement(&mut parser, &source)?,
    };
    while parser.consume_token(&Token::SemiColon) {}
    let next = parser.next_token();
    match next.token {
        Token::EOF => with_locks(parsed, locks),
        found => Err(source.syntax_error(source.start(next.span), format!("Expected the end, found {found}."))),
    }
}

/// A statement that is read from its tokens here, or else by the library.
fn other_statement(parser: &mut Parser, source: &Source) -> Result<Parsed> {
    if let Some(control) = parse_control(parser, source)? {
        return Ok(Parsed::Control(control));
    }
    if let Some(alter) = parse_alter_database(parser, source)? {
        return Ok(Parsed::AlterDatabase(alter));
    }
    if let Some(maintenance) = parse_maintenance(parser, source)? {
        return Ok(Parsed::Maintenance(maintenance));
    }
    if let Some(statement) = parse_sequence(parser, source)? {
        return Ok(Parsed::Sequence(statement));
    }
    parser.parse_statement().map(|statement| Parsed::Statement(Box::new(statement))).map_err(|e| source.parser_error(e))
}

/// Only a query can lock rows.
fn with_locks(parsed: Parsed, locks: Vec<LockClause>) -> Result<Parsed> {
    let Some(first) = locks.first() else { return Ok(parsed) };
    match parsed {
        Parsed::Statement(statement) => match *statement {
            Statement::Query(query) => Ok(Parsed::Locking(query, locks)),
            _ => Err(SqlError::unsupported(format!("{} in this statement", first.strength)).at(first.position)),
        },
        _ => Err(SqlError::syntax("syntax error at or near \"for\"").at(first.position)),
    }
}

impl Source<'_> {
    /// A parser's error as PostgreSQL's syntax error.
    pub(crate) fn parser_error(&self, error: ParserError) -> SqlError {
        let text = match error {
            ParserError::RecursionLimitExceeded => return too_deep(),
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        };
        let (why, position) = self.take_location(&text);
        self.syntax_error(position, format!("{}.", why.trim_end_matches('.')))
    }

    /// Cuts ` at Line: 1, Column: 8` off a message and finds that place.
    fn take_location<'t>(&self, text: &'t str) -> (&'t str, Option<usize>) {
        let Some((why, place)) = text.rsplit_once(" at Line: ") else { return (text, None) };
        let Some((line, column)) = place.split_once(", Column: ") else { return (text, None) };
        match (line.parse(), column.trim().parse()) {
            (Ok(line), Ok(column)) => (why, self.offset(Location { line, column })),
            _ => (text, None),
        }
    }
}

/// Refuses statements whose tree would be deeper than the planner's stack. The depth of an expression is at most the
/// number of its operators: counted between commas, and added up along open parentheses.
fn guard_depth(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut open = vec![0usize];
    let mut depth = 0usize;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => open.push(0),
            Token::RParen | Token::RBracket => depth -= close(&mut open),
            Token::Comma => depth -= open.last_mut().map_or(0, std::mem::take),
            Token::Word(word) if word.keyword == Keyword::CASE => open.push(0),
            Token::Word(word) if word.keyword == Keyword::END => depth -= close(&mut open),
            Token::Word(word) if matches!(word.keyword, Keyword::WHEN | Keyword::THEN | Keyword::ELSE) => {
                depth -= open.last_mut().map_or(0, std::mem::take);
            }
            operator if is_operator(operator) => {
                depth += 1;
                if let Some(top) = open.last_mut() {
                    *top += 1;
                }
            }
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
    }
    Ok(())
}

fn close(open: &mut Vec<usize>) -> usize {
    if open.len() > 1 { open.pop().unwrap_or(0) } else { 0 }
}

fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::JOIN
                | Keyword::IS
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::COLLATE
        ),
        Token::Number(..) | Token::Whitespace(_) | Token::SingleQuotedString(_) | Token::Period => false,
        Token::SemiColon | Token::EOF => false,
        _ => true,
    }
}

fn too_deep() -> SqlError {
    SqlError::new("54001", "stack depth limit exceeded").hint(
        "The statement nests too deeply. Split it, or use IN (...) or VALUES instead of long chains of operators.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> SqlError {
        match parse(text) {
            Err(error) => error,
            Ok(_) => panic!("{text} was accepted"),
        }
    }

    #[test]
    fn syntax_errors_point_at_the_token() {
        let wrong = error("SELECT 1 +\n  ) FROM t");
        assert_eq!(wrong.message, "syntax error at or near \")\"");
        assert_eq!((wrong.sqlstate, wrong.position), ("42601", Some(13)));
        assert_eq!(error("SELEC 1").position, Some(0));
        assert_eq!(error("SELECT (1").message, "syntax error at end of input");
        assert_eq!(error("SELECT 1; SELECT 2").position, Some(10));
        assert!(error("SELECT 'abc").message.starts_with("unterminated"));
    }

    #[test]
    fn depth_is_counted_along_one_chain() {
        assert_eq!(error(&format!("SELECT 1{}", "+1".repeat(DEPTH_MAX + 1))).sqlstate, "54001");
        assert_eq!(error(&format!("SELECT {}", "(".repeat(NESTING_MAX * 2))).sqlstate, "54001");
        assert!(parse(&format!("SELECT 1{}", ", 1 + 1".repeat(DEPTH_MAX + 1))).is_ok());
        let row = ", (1, 2 + 3, CASE WHEN 1 = 1 THEN 2 END)";
        assert!(parse(&format!("VALUES (1, 2, 3){}", row.repeat(DEPTH_MAX))).is_ok());
    }

    #[test]
    fn offsets_count_bytes() {
        let source = Source { text: "a\nä b" };
        assert_eq!(source.offset(Location { line: 2, column: 3 }), Some(5));
        assert_eq!(source.find_word("B"), Some(5));
    }
}
