//! The statements about views, read from their tokens: a view's query is kept as it was written.
//!
//! ```text
//! CREATE [OR REPLACE] VIEW name [(column [, ...])] [WITH (check_option = {local | cascaded})] AS query
//!     [WITH [LOCAL | CASCADED] CHECK OPTION]
//! ALTER VIEW [IF EXISTS] name {SET (check_option = ...) | RESET (check_option)}
//! ALTER VIEW [IF EXISTS] name RENAME TO name
//! ALTER VIEW [IF EXISTS] name RENAME [COLUMN] column TO column
//! DROP VIEW [IF EXISTS] name [, ...] [CASCADE | RESTRICT]
//! ```
use datafusion::sql::sqlparser::ast::{Ident, Query};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::CheckOption;

use crate::error::{Result, SqlError};
use crate::parsing::sequence_statement::PlacedName;
use crate::parsing::words;
use crate::syntax::source::Source;

/// A statement about views.
#[derive(Clone)]
pub(crate) enum ViewStatement {
    Create(NewView),
    Rename { view: PlacedName, if_exists: bool, to: PlacedName },
    RenameColumn { view: PlacedName, if_exists: bool, from: Ident, to: Ident },
    SetCheck { view: PlacedName, if_exists: bool, check: Option<CheckOption> },
    Drop { views: Vec<PlacedName>, if_exists: bool, cascade: bool },
}

/// A view that is to be made.
#[derive(Clone)]
pub(crate) struct NewView {
    pub(crate) view: PlacedName,
    pub(crate) or_replace: bool,
    pub(crate) is_temporary: bool,
    /// The names of its columns, as far as they are given.
    pub(crate) columns: Vec<Ident>,
    pub(crate) query: Box<Query>,
    /// Where the query starts in the statement's text.
    pub(crate) start: usize,
    /// Where it ends, if not with the text.
    pub(crate) end: Option<usize>,
    /// What has to hold of rows that are changed through it.
    pub(crate) check: Option<CheckOption>,
}

impl ViewStatement {
    /// The command tag.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            ViewStatement::Create(_) => "CREATE VIEW",
            ViewStatement::Rename { .. } | ViewStatement::RenameColumn { .. } | ViewStatement::SetCheck { .. } => {
                "ALTER VIEW"
            }
            ViewStatement::Drop { .. } => "DROP VIEW",
        }
    }
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_view(parser: &mut Parser, source: &Source) -> Result<Option<ViewStatement>> {
    let word = |at: usize| match parser.peek_nth_token(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let or_replace = (word(1), word(2)) == (Keyword::OR, Keyword::REPLACE);
    let before = if or_replace { 3 } else { 1 };
    let is_temporary = matches!(word(before), Keyword::TEMP | Keyword::TEMPORARY);
    let after_create = before + usize::from(is_temporary);
    match (word(0), word(after_create), word(after_create + 1)) {
        (Keyword::CREATE, Keyword::VIEW, _) => {
            skip(parser, after_create + 1);
            let new = create(parser, source)?;
            Ok(Some(ViewStatement::Create(NewView { or_replace, is_temporary, ..new })))
        }
        (Keyword::CREATE, Keyword::RECURSIVE, Keyword::VIEW) => {
            let error = SqlError::unsupported("CREATE RECURSIVE VIEW").at(source.find_word("recursive"));
            Err(error.hint("Write CREATE VIEW ... AS WITH RECURSIVE ... instead."))
        }
        (Keyword::ALTER, Keyword::VIEW, _) => {
            skip(parser, 2);
            alter(parser, source).map(Some)
        }
        (Keyword::DROP, Keyword::VIEW, _) => {
            skip(parser, 2);
            drop(parser, source).map(Some)
        }
        _ => Ok(None),
    }
}

fn skip(parser: &mut Parser, words: usize) {
    (0..words).for_each(|_| parser.advance_token());
}

fn create(parser: &mut Parser, source: &Source) -> Result<NewView> {
    let wrong = |error: ParserError| source.parser_error(error);
    let view = named(parser, source)?;
    let mut columns = Vec::new();
    if parser.consume_token(&Token::LParen) {
        columns = parser.parse_comma_separated(words::identifier).map_err(wrong)?;
        parser.expect_token(&Token::RParen).map_err(wrong)?;
    }
    let mut check = None;
    if parser.parse_keyword(Keyword::WITH) {
        check = options(parser, source, true)?;
    }
    parser.expect_keyword(Keyword::AS).map_err(wrong)?;
    let start = source.start(parser.peek_token().span).unwrap_or(source.text.len());
    let query = words::query(parser, source)?;
    let next = parser.peek_token();
    let mut end = None;
    if parser.parse_keyword(Keyword::WITH) {
        end = source.start(next.span);
        let is_local = parser.parse_keyword(Keyword::LOCAL);
        let _ = !is_local && parser.parse_keyword(Keyword::CASCADED);
        parser.expect_keywords(&[Keyword::CHECK, Keyword::OPTION]).map_err(wrong)?;
        check = Some(if is_local { CheckOption::Local } else { CheckOption::Cascaded });
    }
    Ok(NewView { view, or_replace: false, is_temporary: false, columns, query, start, end, check })
}

/// Options in parentheses, of which there is one, with or without its value.
fn options(parser: &mut Parser, source: &Source, has_values: bool) -> Result<Option<CheckOption>> {
    let wrong = |error: ParserError| source.parser_error(error);
    let mut check = None;
    parser.expect_token(&Token::LParen).map_err(wrong)?;
    loop {
        let option = parser.parse_identifier().map_err(wrong)?;
        if !option.value.eq_ignore_ascii_case("check_option") {
            let error = SqlError::unsupported(format!("the option {} of a view", option.value));
            return Err(error.at(source.start(option.span)));
        }
        if has_values {
            parser.expect_token(&Token::Eq).map_err(wrong)?;
            let value = parser.parse_identifier().map_err(wrong)?;
            check = Some(match value.value.to_lowercase().as_str() {
                "local" => CheckOption::Local,
                "cascaded" => CheckOption::Cascaded,
                other => {
                    let message = format!("invalid value for enum option \"check_option\": {other}");
                    let error = SqlError::new("22023", message).at(source.start(value.span));
                    return Err(error.detail("Valid values are \"local\" and \"cascaded\"."));
                }
            });
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen).map_err(wrong)?;
    Ok(check)
}

fn alter(parser: &mut Parser, source: &Source) -> Result<ViewStatement> {
    let wrong = |error: ParserError| source.parser_error(error);
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let view = named(parser, source)?;
    let next = parser.peek_token();
    if let Some(word) = parser.parse_one_of_keywords(&[Keyword::SET, Keyword::RESET]) {
        let check = options(parser, source, word == Keyword::SET)?;
        return Ok(ViewStatement::SetCheck { view, if_exists, check });
    }
    if !parser.parse_keyword(Keyword::RENAME) {
        let message = format!("ALTER VIEW ... {}", next.token.to_string().to_uppercase());
        let error = SqlError::unsupported(message).at(source.start(next.span));
        return Err(error.hint("ALTER VIEW ... RENAME TO and ... RENAME COLUMN are all that there is."));
    }
    if parser.parse_keyword(Keyword::TO) {
        return Ok(ViewStatement::Rename { view, if_exists, to: named(parser, source)? });
    }
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let from = words::identifier(parser).map_err(wrong)?;
    parser.expect_keyword(Keyword::TO).map_err(wrong)?;
    let to = words::identifier(parser).map_err(wrong)?;
    Ok(ViewStatement::RenameColumn { view, if_exists, from, to })
}

fn drop(parser: &mut Parser, source: &Source) -> Result<ViewStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let mut views = vec![named(parser, source)?];
    while parser.consume_token(&Token::Comma) {
        views.push(named(parser, source)?);
    }
    let cascade = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]) == Some(Keyword::CASCADE);
    Ok(ViewStatement::Drop { views, if_exists, cascade })
}

/// A name and its place.
pub(crate) fn named(parser: &mut Parser, source: &Source) -> Result<PlacedName> {
    let name = words::object_name(parser).map_err(|error| source.parser_error(error))?;
    PlacedName::of(&name, source)
}
