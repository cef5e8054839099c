//! `CREATE DOMAIN`, `ALTER DOMAIN` and `DROP DOMAIN`, read from their tokens.
//!
//! ```text
//! CREATE DOMAIN name [AS] type { COLLATE c | DEFAULT expr | [CONSTRAINT n] { NOT NULL | NULL | CHECK (expr) } } ...
//! ALTER DOMAIN name { SET DEFAULT expr | DROP DEFAULT | SET NOT NULL | DROP NOT NULL | ADD [CONSTRAINT n] CHECK (expr)
//!     | DROP CONSTRAINT [IF EXISTS] n [CASCADE | RESTRICT] | RENAME CONSTRAINT n TO n | RENAME TO name | VALIDATE CONSTRAINT n }
//! DROP DOMAIN [IF EXISTS] name, ... [CASCADE | RESTRICT]
//! ```
use datafusion::sql::sqlparser::ast::{ColumnOption, DataType as SqlType, Expr, Ident, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError};
use crate::parsing::words;
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;
use crate::values::collated::{BYTE_ORDERS, DEFAULT};

/// What a statement does with domains.
#[derive(Clone)]
pub(crate) enum DomainStatement {
    Create(Box<NewDomain>),
    Alter { name: ObjectName, change: Box<DomainChange> },
    Drop { names: Vec<ObjectName>, if_exists: bool, cascade: bool },
}

/// What changes of a domain.
#[derive(Clone)]
pub(crate) enum DomainChange {
    /// What fills columns; nothing does where there is none.
    Default(Option<Expr>),
    NotNull(bool),
    AddCheck(Option<Ident>, Expr),
    Drop {
        name: Ident,
        if_exists: bool,
    },
    Rename(Ident, Ident),
    /// The domain gets another name.
    RenameTo(Ident),
    Validate(Ident),
}

/// A domain that is asked for.
#[derive(Clone)]
pub(crate) struct NewDomain {
    pub(crate) name: ObjectName,
    pub(crate) base: SqlType,
    pub(crate) default: Option<Expr>,
    pub(crate) not_null: bool,
    pub(crate) checks: Vec<(Option<Ident>, Expr)>,
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_domain(parser: &mut Parser, source: &Source) -> Result<Option<DomainStatement>> {
    let is_of_domain = |parser: &Parser| {
        let is_verb = parser.peek_keyword(Keyword::CREATE)
            || parser.peek_keyword(Keyword::DROP)
            || parser.peek_keyword(Keyword::ALTER);
        is_verb && matches!(&parser.peek_nth_token(1).token, Token::Word(word) if word.keyword == Keyword::DOMAIN)
    };
    if !is_of_domain(parser) {
        return Ok(None);
    }
    let failed = |error: ParserError| source.parser_error(error);
    if parser.parse_keyword(Keyword::ALTER) {
        parser.advance_token();
        return alter(parser, source).map(Some);
    }
    if parser.parse_keyword(Keyword::DROP) {
        parser.expect_keyword(Keyword::DOMAIN).map_err(failed)?;
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let names = parser.parse_comma_separated(words::object_name).map_err(failed)?;
        let behavior = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
        let cascade = behavior == Some(Keyword::CASCADE);
        return Ok(Some(DomainStatement::Drop { names, if_exists, cascade }));
    }
    parser.expect_keywords(&[Keyword::CREATE, Keyword::DOMAIN]).map_err(failed)?;
    let name = words::object_name(parser).map_err(failed)?;
    let _ = parser.parse_keyword(Keyword::AS);
    let base = parser.parse_data_type().map_err(failed)?;
    let mut new = NewDomain { name, base, default: None, not_null: false, checks: Vec::new() };
    let (mut says_null, mut says_not_null) = (false, false);
    loop {
        let named = parser.parse_keyword(Keyword::CONSTRAINT);
        let constraint = if named { Some(words::identifier(parser).map_err(failed)?) } else { None };
        if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
            (new.not_null, says_not_null) = (true, true);
        } else if parser.parse_keyword(Keyword::NULL) {
            says_null = true;
        } else if parser.parse_keyword(Keyword::CHECK) {
            parser.expect_token(&Token::LParen).map_err(failed)?;
            let condition = parser.parse_expr().map_err(failed)?;
            parser.expect_token(&Token::RParen).map_err(failed)?;
            new.checks.push((constraint, condition));
        } else if constraint.is_none() && parser.peek_keyword(Keyword::DEFAULT) {
            // As of a column, where NOT NULL behind it is no operator.
            let option = parser.parse_optional_column_option().map_err(failed)?;
            let Some(ColumnOption::Default(expr)) = option else { break };
            if new.default.replace(expr).is_some() {
                return Err(SqlError::syntax("multiple default expressions"));
            }
        } else if constraint.is_none() && parser.parse_keyword(Keyword::COLLATE) {
            let collation = words::object_name(parser).map_err(failed)?;
            let name = collation.0.last().and_then(|name| name.as_ident()).map(fold).unwrap_or_default();
            if name != DEFAULT && !BYTE_ORDERS.contains(&name.as_str()) {
                return Err(SqlError::unsupported(format!("COLLATE {collation}")));
            }
        } else if constraint.is_some() {
            let found = parser.peek_token().token;
            return Err(SqlError::syntax(format!("syntax error at or near \"{found}\"")));
        } else {
            break;
        }
    }
    if says_null && says_not_null {
        return Err(SqlError::syntax("conflicting NULL/NOT NULL constraints"));
    }
    Ok(Some(DomainStatement::Create(Box::new(new))))
}

fn alter(parser: &mut Parser, source: &Source) -> Result<DomainStatement> {
    let failed = |error: ParserError| source.parser_error(error);
    let name = words::object_name(parser).map_err(failed)?;
    let next = parser.peek_token();
    let unsupported = |what: &str| Err(SqlError::unsupported(what).at(source.start(next.span)));
    let words = [Keyword::SET, Keyword::DROP, Keyword::ADD, Keyword::RENAME, Keyword::VALIDATE];
    let change = match parser.expect_one_of_keywords(&words).map_err(failed)? {
        Keyword::SET if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) => DomainChange::NotNull(true),
        Keyword::SET if parser.parse_keyword(Keyword::SCHEMA) => return unsupported("ALTER DOMAIN ... SET SCHEMA"),
        Keyword::SET => {
            parser.expect_keyword(Keyword::DEFAULT).map_err(failed)?;
            DomainChange::Default(Some(parser.parse_expr().map_err(failed)?))
        }
        Keyword::DROP if parser.parse_keyword(Keyword::DEFAULT) => DomainChange::Default(None),
        Keyword::DROP if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) => DomainChange::NotNull(false),
        Keyword::DROP => {
            parser.expect_keyword(Keyword::CONSTRAINT).map_err(failed)?;
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let name = words::identifier(parser).map_err(failed)?;
            let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
            DomainChange::Drop { name, if_exists }
        }
        Keyword::ADD => {
            let is_named = parser.parse_keyword(Keyword::CONSTRAINT);
            let constraint = if is_named { Some(words::identifier(parser).map_err(failed)?) } else { None };
            parser.expect_keyword(Keyword::CHECK).map_err(failed)?;
            parser.expect_token(&Token::LParen).map_err(failed)?;
            let condition = parser.parse_expr().map_err(failed)?;
            parser.expect_token(&Token::RParen).map_err(failed)?;
            if parser.parse_keywords(&[Keyword::NOT, Keyword::VALID]) {
                return unsupported("a constraint of a domain that is NOT VALID");
            }
            DomainChange::AddCheck(constraint, condition)
        }
        Keyword::RENAME if parser.parse_keyword(Keyword::CONSTRAINT) => {
            let constraint = words::identifier(parser).map_err(failed)?;
            parser.expect_keyword(Keyword::TO).map_err(failed)?;
            DomainChange::Rename(constraint, words::identifier(parser).map_err(failed)?)
        }
        Keyword::RENAME => {
            parser.expect_keyword(Keyword::TO).map_err(failed)?;
            DomainChange::RenameTo(words::identifier(parser).map_err(failed)?)
        }
        _ => {
            parser.expect_keyword(Keyword::CONSTRAINT).map_err(failed)?;
            DomainChange::Validate(words::identifier(parser).map_err(failed)?)
        }
    };
    Ok(DomainStatement::Alter { name, change: Box::new(change) })
}
