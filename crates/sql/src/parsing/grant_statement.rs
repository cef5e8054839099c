//! `GRANT`, `REVOKE` and `ALTER DEFAULT PRIVILEGES`, read from their tokens.
//!
//! ```text
//! GRANT privilege [(column, ...)], ... ON objects TO role, ... [WITH GRANT OPTION] [GRANTED BY role]
//! REVOKE [GRANT OPTION FOR] privilege [(column, ...)], ... ON objects FROM role, ... [GRANTED BY role] [CASCADE | RESTRICT]
//! GRANT role, ... TO role, ... [WITH ADMIN OPTION]            REVOKE [ADMIN OPTION FOR] role, ... FROM role, ...
//! ALTER DEFAULT PRIVILEGES [FOR ROLE role, ...] [IN SCHEMA schema, ...] { GRANT | REVOKE } ...
//! objects: [TABLE] t, ... | SEQUENCE s, ... | ALL TABLES IN SCHEMA s, ... | SCHEMA s, ... | TYPE t, ... | FUNCTION f(type, ...), ... | ...
//! ```
//!
//! There is one role, to which everything belongs; the statements are read for the scripts that `pg_dump` writes.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::words::{Read, is_word, take_words};
use crate::error::Result;
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;

/// What is granted or taken back.
#[derive(Clone)]
pub(crate) struct Grant {
    pub(crate) tag: &'static str,
    /// None stand for all.
    pub(crate) privileges: Vec<Privilege>,
    pub(crate) on: GrantedOn,
    pub(crate) roles: Vec<Ident>,
}

/// A privilege, or a role, by its name, and the columns that it is about.
#[derive(Clone)]
pub(crate) struct Privilege {
    pub(crate) name: Ident,
    pub(crate) columns: Vec<Ident>,
}

/// What privileges are about.
#[derive(Clone)]
pub(crate) enum GrantedOn {
    Named(GrantedKind, Vec<ObjectName>),
    /// All of some schemas.
    AllIn(GrantedKind, Vec<Ident>),
    /// What is made from here on, in some schemas.
    Future(GrantedKind, Vec<Ident>),
    /// The privileges are roles.
    Roles,
}

/// The kinds of what privileges are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantedKind {
    Relation,
    Sequence,
    Database,
    Domain,
    Function,
    Language,
    Schema,
    Type,
}

impl GrantedKind {
    /// The word for one, which stands before names.
    const WORDS: [(Keyword, GrantedKind); 9] = [
        (Keyword::TABLE, GrantedKind::Relation),
        (Keyword::SEQUENCE, GrantedKind::Sequence),
        (Keyword::DATABASE, GrantedKind::Database),
        (Keyword::DOMAIN, GrantedKind::Domain),
        (Keyword::FUNCTION, GrantedKind::Function),
        (Keyword::PROCEDURE, GrantedKind::Function),
        (Keyword::LANGUAGE, GrantedKind::Language),
        (Keyword::SCHEMA, GrantedKind::Schema),
        (Keyword::TYPE, GrantedKind::Type),
    ];

    /// The kind of all, by the word for many.
    fn of_many(word: &str) -> Option<GrantedKind> {
        Some(match word {
            "tables" => GrantedKind::Relation,
            "sequences" => GrantedKind::Sequence,
            "functions" | "procedures" | "routines" => GrantedKind::Function,
            "types" => GrantedKind::Type,
            "schemas" => GrantedKind::Schema,
            _ => return None,
        })
    }
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_grant(parser: &mut Parser, source: &Source) -> Result<Option<Grant>> {
    let wrong = |error: ParserError| source.parser_error(error);
    if parser.peek_keyword(Keyword::GRANT) || parser.peek_keyword(Keyword::REVOKE) {
        return read(parser, None).map_err(wrong).map(Some);
    }
    let is_default = parser.peek_keyword(Keyword::ALTER)
        && [(1, "default"), (2, "privileges")].iter().all(|(at, word)| is_word(parser, *at, word));
    if !is_default {
        return Ok(None);
    }
    (0..3).for_each(|_| parser.advance_token());
    let mut owners = Vec::new();
    if parser.parse_keyword(Keyword::FOR) {
        parser.expect_one_of_keywords(&[Keyword::ROLE, Keyword::USER]).map_err(wrong)?;
        owners = roles(parser).map_err(wrong)?;
    }
    let in_schemas = parser.parse_keywords(&[Keyword::IN, Keyword::SCHEMA]);
    let schemas = if in_schemas { identifiers(parser).map_err(wrong)? } else { Vec::new() };
    let mut grant = read(parser, Some(schemas)).map_err(wrong)?;
    grant.tag = "ALTER DEFAULT PRIVILEGES";
    grant.roles.extend(owners);
    Ok(Some(grant))
}

/// Reads from GRANT or REVOKE on; with the schemas of `ALTER DEFAULT PRIVILEGES`, where it stands behind that.
fn read(parser: &mut Parser, future_in: Option<Vec<Ident>>) -> Read<Grant> {
    let grants = parser.expect_one_of_keywords(&[Keyword::GRANT, Keyword::REVOKE])? == Keyword::GRANT;
    if !grants {
        let _ = take_words(parser, &["grant", "option", "for"]) || take_words(parser, &["admin", "option", "for"]);
    }
    let is_all = take_words(parser, &["all"]);
    let mut privileges = Vec::new();
    match is_all {
        true => {
            let _ = take_words(parser, &["privileges"]);
            if parser.peek_token().token == Token::LParen {
                columns(parser)?;
            }
        }
        false => privileges = parser.parse_comma_separated(privilege)?,
    }
    let on = match (parser.parse_keyword(Keyword::ON), future_in) {
        (true, Some(schemas)) => GrantedOn::Future(of_many(parser)?, schemas),
        (true, None) => objects(parser)?,
        (false, None) if !is_all => GrantedOn::Roles,
        (false, _) => return parser.expected("ON", parser.peek_token()),
    };
    parser.expect_keyword(if grants { Keyword::TO } else { Keyword::FROM })?;
    let roles = roles(parser)?;
    options(parser);
    let tag = match (&on, grants) {
        (GrantedOn::Roles, true) => "GRANT ROLE",
        (GrantedOn::Roles, false) => "REVOKE ROLE",
        (_, true) => "GRANT",
        (_, false) => "REVOKE",
    };
    Ok(Grant { tag, privileges, on, roles })
}

/// What may stand behind the roles, in any order.
fn options(parser: &mut Parser) {
    loop {
        let is_one = take_words(parser, &["with", "grant", "option"])
            || take_words(parser, &["with", "admin", "option"])
            || parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]).is_some()
            || (take_words(parser, &["granted", "by"]) && parser.parse_identifier().is_ok());
        if !is_one {
            return;
        }
    }
}

fn privilege(parser: &mut Parser) -> Read<Privilege> {
    let name = parser.parse_identifier()?;
    let columns = if parser.peek_token().token == Token::LParen { columns(parser)? } else { Vec::new() };
    Ok(Privilege { name, columns })
}

fn columns(parser: &mut Parser) -> Read<Vec<Ident>> {
    parser.expect_token(&Token::LParen)?;
    let columns = identifiers(parser)?;
    parser.expect_token(&Token::RParen)?;
    Ok(columns)
}

fn identifiers(parser: &mut Parser) -> Read<Vec<Ident>> {
    parser.parse_comma_separated(Parser::parse_identifier)
}

fn roles(parser: &mut Parser) -> Read<Vec<Ident>> {
    parser.parse_comma_separated(|parser| {
        let _ = parser.parse_keyword(Keyword::GROUP);
        parser.parse_identifier()
    })
}

fn of_many(parser: &mut Parser) -> Read<GrantedKind> {
    let next = parser.peek_token();
    let word = parser.parse_identifier()?;
    GrantedKind::of_many(&fold(&word)).map_or_else(|| parser.expected("a kind of objects", next), Ok)
}

fn objects(parser: &mut Parser) -> Read<GrantedOn> {
    if parser.parse_keyword(Keyword::ALL) {
        let kind = of_many(parser)?;
        parser.expect_keywords(&[Keyword::IN, Keyword::SCHEMA])?;
        return Ok(GrantedOn::AllIn(kind, identifiers(parser)?));
    }
    let words = GrantedKind::WORDS.map(|(word, _)| word);
    let word = parser.parse_one_of_keywords(&words);
    let kind = GrantedKind::WORDS.iter().find(|(known, _)| Some(*known) == word);
    let is_routine = kind.is_none() && take_words(parser, &["routine"]);
    let plain = if is_routine { GrantedKind::Function } else { GrantedKind::Relation };
    let kind = kind.map_or(plain, |(_, kind)| *kind);
    let names = parser.parse_comma_separated(|parser| {
        let name = parser.parse_object_name(false)?;
        if kind == GrantedKind::Function {
            skip_parentheses(parser)?;
        }
        Ok(name)
    })?;
    Ok(GrantedOn::Named(kind, names))
}

/// Passes over the types of a function's arguments.
fn skip_parentheses(parser: &mut Parser) -> Read<()> {
    let mut depth = 0;
    loop {
        match parser.peek_token().token {
            Token::LParen => depth += 1,
            Token::RParen if depth > 0 => depth -= 1,
            Token::EOF if depth > 0 => return parser.expected(")", parser.peek_token()),
            _ if depth == 0 => return Ok(()),
            _ => {}
        }
        parser.advance_token();
        if depth == 0 {
            return Ok(());
        }
    }
}
