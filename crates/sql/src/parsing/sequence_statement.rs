//! The statements about sequences, read from their tokens: the parser's library knows some of them only.
//!
//! ```text
//! CREATE SEQUENCE [IF NOT EXISTS] name [AS type] [option] ...
//! ALTER SEQUENCE [IF EXISTS] name { [AS type] [option] ... | RENAME TO name }
//! DROP SEQUENCE [IF EXISTS] name [, ...] [CASCADE | RESTRICT]
//! option:  INCREMENT [BY] n | MINVALUE n | NO MINVALUE | MAXVALUE n | NO MAXVALUE | START [WITH] n
//!          | RESTART [[WITH] n] | CACHE n | [NO] CYCLE | OWNED BY { table.column | NONE }
//! ```
use datafusion::sql::sqlparser::ast::ObjectName;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError};
use crate::names::{fold, position, table_name};
use crate::parsing::sequence_options::{AskedOptions, Owner};
use crate::parsing::words;
use crate::syntax::source::Source;
use crate::values::types::column_type;

/// A statement about sequences.
#[derive(Clone)]
pub(crate) enum SequenceStatement {
    Create { sequence: PlacedName, is_temporary: bool, if_not_exists: bool, options: AskedOptions },
    Alter { sequence: PlacedName, if_exists: bool, options: AskedOptions },
    Rename { sequence: PlacedName, if_exists: bool, to: PlacedName },
    Drop { sequences: Vec<PlacedName>, if_exists: bool, cascade: bool },
}

/// A name and where it stands.
#[derive(Clone)]
pub(crate) struct PlacedName {
    pub(crate) name: String,
    pub(crate) position: Option<usize>,
    /// Whether a schema stands before it, also if that is `public`.
    pub(crate) says_schema: bool,
}

impl PlacedName {
    pub(crate) fn of(name: &ObjectName, source: &Source) -> Result<PlacedName> {
        let (known, says_schema) = (table_name(name, source)?, name.0.len() > 1);
        Ok(PlacedName { name: known, position: position(name, source), says_schema })
    }

    pub(crate) fn error(&self, error: engine::Error) -> SqlError {
        SqlError::from(error).at(self.position)
    }

    pub(crate) fn skipped_notice(&self) -> String {
        format!("sequence \"{}\" does not exist, skipping", self.name)
    }
}

impl SequenceStatement {
    /// The command tag.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            SequenceStatement::Create { .. } => "CREATE SEQUENCE",
            SequenceStatement::Alter { .. } | SequenceStatement::Rename { .. } => "ALTER SEQUENCE",
            SequenceStatement::Drop { .. } => "DROP SEQUENCE",
        }
    }
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_sequence(parser: &mut Parser, source: &Source) -> Result<Option<SequenceStatement>> {
    let word = |at: usize| match parser.peek_nth_token(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match (word(0), word(1), word(2)) {
        (Keyword::CREATE, Keyword::TEMP | Keyword::TEMPORARY, Keyword::SEQUENCE) => {
            skipping(parser, 3, |parser| create(parser, true, source)).map(Some)
        }
        (Keyword::CREATE, Keyword::SEQUENCE, _) => {
            skipping(parser, 2, |parser| create(parser, false, source)).map(Some)
        }
        (Keyword::ALTER, Keyword::SEQUENCE, _) => skipping(parser, 2, |parser| alter(parser, source)).map(Some),
        (Keyword::DROP, Keyword::SEQUENCE, _) => skipping(parser, 2, |parser| drop(parser, source)).map(Some),
        _ => Ok(None),
    }
}

fn skipping<T>(parser: &mut Parser, words: usize, read: impl FnOnce(&mut Parser) -> Result<T>) -> Result<T> {
    (0..words).for_each(|_| parser.advance_token());
    read(parser)
}

fn create(parser: &mut Parser, is_temporary: bool, source: &Source) -> Result<SequenceStatement> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let sequence = named(parser, source)?;
    let options = options(parser, source, false)?;
    Ok(SequenceStatement::Create { sequence, is_temporary, if_not_exists, options })
}

fn alter(parser: &mut Parser, source: &Source) -> Result<SequenceStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let sequence = named(parser, source)?;
    if parser.parse_keyword(Keyword::RENAME) {
        parser.expect_keyword(Keyword::TO).map_err(|error| source.parser_error(error))?;
        let to = named(parser, source)?;
        return Ok(SequenceStatement::Rename { sequence, if_exists, to });
    }
    let options = options(parser, source, true)?;
    Ok(SequenceStatement::Alter { sequence, if_exists, options })
}

fn drop(parser: &mut Parser, source: &Source) -> Result<SequenceStatement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let mut sequences = vec![named(parser, source)?];
    while parser.consume_token(&Token::Comma) {
        sequences.push(named(parser, source)?);
    }
    let cascade = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]) == Some(Keyword::CASCADE);
    Ok(SequenceStatement::Drop { sequences, if_exists, cascade })
}

fn named(parser: &mut Parser, source: &Source) -> Result<PlacedName> {
    let name = words::object_name(parser).map_err(|error| source.parser_error(error))?;
    PlacedName::of(&name, source)
}

/// The options up to the end.
fn options(parser: &mut Parser, source: &Source, may_restart: bool) -> Result<AskedOptions> {
    let mut asked = AskedOptions::default();
    loop {
        let next = parser.peek_token();
        if matches!(next.token, Token::EOF | Token::SemiColon) {
            return Ok(asked);
        }
        let at = source.start(next.span);
        let is_new = option(parser, source, may_restart, &mut asked)?;
        if !is_new {
            return Err(SqlError::syntax("conflicting or redundant options").at(at));
        }
    }
}

/// Reads one option; whether it is the first of its kind.
pub(super) fn option(
    parser: &mut Parser,
    source: &Source,
    may_restart: bool,
    asked: &mut AskedOptions,
) -> Result<bool> {
    let wrong = |error: ParserError| source.parser_error(error);
    let at = source.start(parser.peek_token().span);
    if parser.parse_keyword(Keyword::AS) {
        let data_type = parser.parse_data_type().map_err(wrong)?;
        return Ok(asked.data_type.replace(column_type(&data_type).map_err(|error| error.at(at))?.0).is_none());
    }
    if parser.parse_keyword(Keyword::INCREMENT) {
        let _ = parser.parse_keyword(Keyword::BY);
        return Ok(asked.increment.replace(number(parser, source)?).is_none());
    }
    if parser.parse_keyword(Keyword::MINVALUE) {
        return Ok(asked.min.replace(Some(number(parser, source)?)).is_none());
    }
    if parser.parse_keyword(Keyword::MAXVALUE) {
        return Ok(asked.max.replace(Some(number(parser, source)?)).is_none());
    }
    if parser.parse_keyword(Keyword::START) {
        let _ = parser.parse_keyword(Keyword::WITH);
        return Ok(asked.start.replace(number(parser, source)?).is_none());
    }
    if may_restart && parser.parse_keyword(Keyword::RESTART) {
        let has_number = parser.parse_keyword(Keyword::WITH) || is_number(parser);
        let restart = if has_number { Some(number(parser, source)?) } else { None };
        return Ok(asked.restart.replace(restart).is_none());
    }
    if parser.parse_keyword(Keyword::CACHE) {
        return Ok(asked.cache.replace(number(parser, source)?).is_none());
    }
    if parser.parse_keyword(Keyword::CYCLE) {
        return Ok(asked.cycle.replace(true).is_none());
    }
    if parser.parse_keywords(&[Keyword::OWNED, Keyword::BY]) {
        let owner = if parser.parse_keyword(Keyword::NONE) { None } else { Some(owner(parser, source)?) };
        return Ok(asked.owner.replace(owner).is_none());
    }
    parser.expect_keyword(Keyword::NO).map_err(wrong)?;
    match parser.expect_one_of_keywords(&[Keyword::MINVALUE, Keyword::MAXVALUE, Keyword::CYCLE]).map_err(wrong)? {
        Keyword::MINVALUE => Ok(asked.min.replace(None).is_none()),
        Keyword::MAXVALUE => Ok(asked.max.replace(None).is_none()),
        _ => Ok(asked.cycle.replace(false).is_none()),
    }
}

/// The column that a sequence is to belong to.
fn owner(parser: &mut Parser, source: &Source) -> Result<Owner> {
    let mut name = words::object_name(parser).map_err(|error| source.parser_error(error))?;
    let position = position(&name, source);
    let column = name.0.pop().and_then(|part| part.as_ident().map(fold));
    match column.filter(|_| !name.0.is_empty()) {
        Some(column) => {
            let PlacedName { name: table, says_schema, .. } = PlacedName::of(&name, source)?;
            Ok(Owner { table, says_schema, column, position })
        }
        None => {
            let error = SqlError::syntax("invalid OWNED BY option").at(position);
            Err(error.hint("Specify OWNED BY table.column or OWNED BY NONE."))
        }
    }
}

fn is_number(parser: &Parser) -> bool {
    matches!(parser.peek_token().token, Token::Number(..) | Token::Minus | Token::Plus)
}

/// A whole number of 64 bits with or without a sign.
pub(crate) fn number(parser: &mut Parser, source: &Source) -> Result<i64> {
    let at = source.start(parser.peek_token().span);
    let sign = match parser.consume_token(&Token::Minus) {
        true => "-",
        false => {
            let _ = parser.consume_token(&Token::Plus);
            ""
        }
    };
    let token = parser.next_token();
    let Token::Number(digits, _) = &token.token else {
        let error = parser.expected::<()>("a number", token).err();
        return Err(error.map_or_else(|| SqlError::syntax("a number is missing"), |error| source.parser_error(error)));
    };
    let text = format!("{sign}{digits}");
    let out_of_range = || SqlError::new("22003", format!("value \"{text}\" is out of range for type bigint")).at(at);
    text.parse().map_err(|_| out_of_range())
}
