//! `COMMENT ON` what belongs to a table, read from its tokens: the parser's library knows the other kinds.
//!
//! ```text
//! COMMENT ON CONSTRAINT name ON [DOMAIN] name IS { 'text' | NULL }
//! COMMENT ON { TRIGGER | RULE | POLICY } name ON table IS { 'text' | NULL }
//! ```
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::Result;
use crate::parsing::words;
use crate::syntax::source::Source;

/// What the comment is on.
#[derive(Clone)]
pub(crate) struct CommentStatement {
    pub(crate) kind: PartKind,
    pub(crate) name: Ident,
    /// The table or domain that it belongs to.
    pub(crate) of: ObjectName,
    pub(crate) of_domain: bool,
    pub(crate) text: Option<String>,
}

/// The kinds of what belongs to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Constraint,
    Policy,
    Rule,
    Trigger,
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_comment(parser: &mut Parser, source: &Source) -> Result<Option<CommentStatement>> {
    let word = |at: usize| match parser.peek_nth_token(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let kind = match (word(0), word(1), word(2)) {
        (Keyword::COMMENT, Keyword::ON, Keyword::CONSTRAINT) => PartKind::Constraint,
        (Keyword::COMMENT, Keyword::ON, Keyword::POLICY) => PartKind::Policy,
        (Keyword::COMMENT, Keyword::ON, Keyword::RULE) => PartKind::Rule,
        (Keyword::COMMENT, Keyword::ON, Keyword::TRIGGER) => PartKind::Trigger,
        _ => return Ok(None),
    };
    (0..3).for_each(|_| parser.advance_token());
    read(parser, kind).map(Some).map_err(|error| source.parser_error(error))
}

fn read(parser: &mut Parser, kind: PartKind) -> std::result::Result<CommentStatement, ParserError> {
    let name = words::identifier(parser)?;
    parser.expect_keyword(Keyword::ON)?;
    let of_domain = kind == PartKind::Constraint && parser.parse_keyword(Keyword::DOMAIN);
    let of = words::object_name(parser)?;
    parser.expect_keyword(Keyword::IS)?;
    let text = if parser.parse_keyword(Keyword::NULL) { None } else { Some(parser.parse_literal_string()?) };
    Ok(CommentStatement { kind, name, of, of_domain, text })
}
