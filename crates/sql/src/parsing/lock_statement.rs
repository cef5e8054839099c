//! `LOCK [TABLE] [ONLY] name [*], ... [IN mode MODE] [NOWAIT]`, read from its tokens.
use datafusion::sql::sqlparser::ast::ObjectName;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::{LockWait, TableMode};

use crate::error::Result;
use crate::parsing::sequence_statement::PlacedName;
use crate::parsing::words;
use crate::syntax::source::Source;

/// What is to be locked, and how.
#[derive(Clone)]
pub(crate) struct LockStatement {
    pub(crate) tables: Vec<PlacedName>,
    pub(crate) mode: TableMode,
    pub(crate) wait: LockWait,
}

const MODES: [(&[Keyword], TableMode); 8] = [
    (&[Keyword::ACCESS, Keyword::SHARE], TableMode::AccessShare),
    (&[Keyword::ROW, Keyword::SHARE], TableMode::RowShare),
    (&[Keyword::ROW, Keyword::EXCLUSIVE], TableMode::RowExclusive),
    (&[Keyword::SHARE, Keyword::UPDATE, Keyword::EXCLUSIVE], TableMode::ShareUpdateExclusive),
    (&[Keyword::SHARE, Keyword::ROW, Keyword::EXCLUSIVE], TableMode::ShareRowExclusive),
    (&[Keyword::SHARE], TableMode::Share),
    (&[Keyword::EXCLUSIVE], TableMode::Exclusive),
    (&[Keyword::ACCESS, Keyword::EXCLUSIVE], TableMode::AccessExclusive),
];

/// Reads such a statement, if the next one is.
pub(crate) fn parse_lock(parser: &mut Parser, source: &Source) -> Result<Option<LockStatement>> {
    if !parser.parse_keyword(Keyword::LOCK) {
        return Ok(None);
    }
    let (names, mode, wait) = read(parser).map_err(|error| source.parser_error(error))?;
    let tables = names.iter().map(|name| PlacedName::of(name, source)).collect::<Result<_>>()?;
    Ok(Some(LockStatement { tables, mode, wait }))
}

fn read(parser: &mut Parser) -> std::result::Result<(Vec<ObjectName>, TableMode, LockWait), ParserError> {
    let _ = parser.parse_keyword(Keyword::TABLE);
    let mut names = Vec::new();
    loop {
        let _ = parser.parse_keyword(Keyword::ONLY);
        names.push(words::object_name(parser)?);
        let _ = parser.consume_token(&Token::Mul);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    let mode = match parser.parse_keyword(Keyword::IN) {
        false => TableMode::AccessExclusive,
        true => {
            let Some((_, mode)) = MODES.iter().find(|(words, _)| parser.parse_keywords(words)) else {
                let next = parser.next_token();
                return parser.expected("a mode of a lock", next);
            };
            parser.expect_keyword(Keyword::MODE)?;
            *mode
        }
    };
    let wait = if parser.parse_keyword(Keyword::NOWAIT) { LockWait::NoWait } else { LockWait::Block };
    Ok((names, mode, wait))
}
