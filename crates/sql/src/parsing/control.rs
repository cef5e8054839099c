//! The statements that begin, end and divide transactions, read from their tokens: the parser's library knows some of
//! them only, and these not all.
//!
//! ```text
//! BEGIN [WORK | TRANSACTION] [mode [,] ...]              START TRANSACTION [mode [,] ...]
//! COMMIT | END [WORK | TRANSACTION] [AND [NO] CHAIN]     ROLLBACK | ABORT [WORK | TRANSACTION] [AND [NO] CHAIN]
//! SAVEPOINT name     RELEASE [SAVEPOINT] name            ROLLBACK [WORK | TRANSACTION] TO [SAVEPOINT] name
//! WAIT FOR LSN n [WITH (TIMEOUT time)]
//! SET TRANSACTION mode [,] ...                           SET SESSION CHARACTERISTICS AS TRANSACTION mode [,] ...
//! SET CONSTRAINTS ALL | name, ... DEFERRED | IMMEDIATE
//! mode:  ISOLATION LEVEL level | READ ONLY | READ WRITE | [NOT] DEFERRABLE
//! ```
use std::time::Duration;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::parsing::modes::{AskedModes, IsolationLevel};
use crate::parsing::time_limit;
use crate::parsing::words;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// A statement that begins, ends or divides a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Begin {
        tag: &'static str,
        modes: AskedModes,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    SetTransaction(AskedModes),
    SetSession(AskedModes),
    /// Of all constraints, or of those with these names.
    SetConstraints {
        names: Option<Vec<String>>,
        deferred: bool,
    },
    /// No transaction's business, but as short a statement.
    Checkpoint,
    /// The directory to copy the database to.
    Backup(String),
    /// Until this commit is on disk, or so long.
    WaitForLsn {
        lsn: u64,
        time: Option<Duration>,
    },
}

impl Control {
    /// Whether it is what a block takes that has failed.
    pub(crate) fn ends_block(&self) -> bool {
        matches!(self, Control::Commit { .. } | Control::Rollback { .. } | Control::RollbackTo(_))
    }
}

/// Reads such a statement, if the next one is.
pub(crate) fn parse_control(parser: &mut Parser, source: &Source) -> Result<Option<Control>> {
    let word = |at: usize| match parser.peek_nth_token(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    if word(0) == Keyword::PREPARE && word(1) == Keyword::TRANSACTION {
        let hint = "There are no prepared transactions; those of a session end with it.";
        let error = SqlError::new("55000", "prepared transactions are disabled").hint(hint);
        return Err(error.at(source.find_word("prepare")));
    }
    let starts_control = match word(0) {
        Keyword::BEGIN
        | Keyword::COMMIT
        | Keyword::END
        | Keyword::ROLLBACK
        | Keyword::ABORT
        | Keyword::SAVEPOINT
        | Keyword::RELEASE => true,
        Keyword::START | Keyword::SET if word(1) == Keyword::TRANSACTION => true,
        Keyword::SET if is_word(&parser.peek_nth_token(1).token, "constraints") => is_set_constraints(parser),
        Keyword::SET => word(1) == Keyword::SESSION && word(2) == Keyword::CHARACTERISTICS,
        _ => ["checkpoint", "backup", "wait"].iter().any(|first| is_word(&parser.peek_token().token, first)),
    };
    if !starts_control {
        return Ok(None);
    }
    let is_prepared =
        matches!(&parser.peek_nth_token(1).token, Token::Word(word) if word.value.eq_ignore_ascii_case("prepared"));
    if matches!(word(0), Keyword::COMMIT | Keyword::ROLLBACK) && is_prepared {
        return Err(SqlError::unsupported("a prepared transaction").at(source.find_word("prepared")));
    }
    if word(1) == Keyword::TRANSACTION && word(2) == Keyword::SNAPSHOT {
        return Err(SqlError::unsupported("SET TRANSACTION SNAPSHOT").at(source.find_word("snapshot")));
    }
    read(parser).map(Some).map_err(|error| source.parser_error(error))
}

fn read(parser: &mut Parser) -> Result<Control, ParserError> {
    let first = parser.next_token().token;
    if is_word(&first, "checkpoint") {
        return Ok(Control::Checkpoint);
    }
    if is_word(&first, "backup") {
        parser.expect_keyword(Keyword::TO)?;
        let directory = parser.next_token();
        let Token::SingleQuotedString(path) = directory.token else {
            return parser.expected("a directory in single quotes", directory);
        };
        return Ok(Control::Backup(path));
    }
    if is_word(&first, "wait") {
        return wait(parser);
    }
    let Token::Word(first) = first else { return parser.expected("a word", parser.peek_token()) };
    Ok(match first.keyword {
        Keyword::BEGIN => {
            skip_noise(parser);
            Control::Begin { tag: "BEGIN", modes: modes(parser, false)? }
        }
        Keyword::START => {
            parser.expect_keyword(Keyword::TRANSACTION)?;
            Control::Begin { tag: "START TRANSACTION", modes: modes(parser, false)? }
        }
        Keyword::COMMIT | Keyword::END => {
            skip_noise(parser);
            Control::Commit { chain: chain(parser)? }
        }
        Keyword::ROLLBACK | Keyword::ABORT => {
            skip_noise(parser);
            if first.keyword == Keyword::ROLLBACK && parser.parse_keyword(Keyword::TO) {
                Control::RollbackTo(savepoint(parser)?)
            } else {
                Control::Rollback { chain: chain(parser)? }
            }
        }
        Keyword::SAVEPOINT => Control::Savepoint(fold(&words::identifier(parser)?)),
        Keyword::RELEASE => Control::Release(savepoint(parser)?),
        _ if is_word(&parser.peek_token().token, "constraints") => constraints(parser)?,
        _ if parser.parse_keyword(Keyword::TRANSACTION) => Control::SetTransaction(modes(parser, true)?),
        _ => {
            let words = [Keyword::SESSION, Keyword::CHARACTERISTICS, Keyword::AS, Keyword::TRANSACTION];
            parser.expect_keywords(&words)?;
            Control::SetSession(modes(parser, true)?)
        }
    })
}

/// Whether it is no setting of this name.
fn is_set_constraints(parser: &Parser) -> bool {
    !matches!(parser.peek_nth_token(2).token, Token::Eq)
}

/// `SET` is read.
fn constraints(parser: &mut Parser) -> Result<Control, ParserError> {
    parser.next_token();
    let names = match parser.parse_keyword(Keyword::ALL) {
        true => None,
        false => {
            let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
            Some(names.iter().filter_map(last_part).collect())
        }
    };
    let deferred = parser.parse_keyword(Keyword::DEFERRED);
    if !deferred {
        parser.expect_keyword(Keyword::IMMEDIATE)?;
    }
    Ok(Control::SetConstraints { names, deferred })
}

/// `WAIT` is read.
fn wait(parser: &mut Parser) -> Result<Control, ParserError> {
    parser.expect_keyword(Keyword::FOR)?;
    let word = parser.next_token();
    if !is_word(&word.token, "lsn") {
        return parser.expected("LSN", word);
    }
    let number = parser.next_token();
    let (Token::Number(digits, _) | Token::SingleQuotedString(digits)) = &number.token else {
        return parser.expected("the number of a commit", number);
    };
    let Ok(lsn) = digits.parse() else { return parser.expected("the number of a commit", number) };
    let mut time = None;
    if parser.parse_keyword(Keyword::WITH) {
        parser.expect_token(&Token::LParen)?;
        let word = parser.next_token();
        if !is_word(&word.token, "timeout") {
            return parser.expected("TIMEOUT", word);
        }
        let length = parser.next_token();
        let (Token::Number(text, _) | Token::SingleQuotedString(text)) = &length.token else {
            return parser.expected("a time", length);
        };
        let Ok(millis) = time_limit::parse(text) else { return parser.expected("a time such as '10s'", length) };
        time = Some(Duration::from_millis(millis.into()));
        parser.expect_token(&Token::RParen)?;
    }
    Ok(Control::WaitForLsn { lsn, time })
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

fn skip_noise(parser: &mut Parser) {
    let _ = parser.parse_one_of_keywords(&[Keyword::WORK, Keyword::TRANSACTION]);
}

fn chain(parser: &mut Parser) -> Result<bool, ParserError> {
    if !parser.parse_keyword(Keyword::AND) {
        return Ok(false);
    }
    let chain = !parser.parse_keyword(Keyword::NO);
    parser.expect_keyword(Keyword::CHAIN)?;
    Ok(chain)
}

/// A savepoint's name after an optional word. It may be called `savepoint` itself.
fn savepoint(parser: &mut Parser) -> Result<String, ParserError> {
    if !matches!(parser.peek_nth_token(1).token, Token::EOF | Token::SemiColon) {
        parser.expect_keyword(Keyword::SAVEPOINT)?;
    }
    Ok(fold(&words::identifier(parser)?))
}

/// The modes up to the end, with or without commas between them.
fn modes(parser: &mut Parser, is_needed: bool) -> Result<AskedModes, ParserError> {
    let mut modes = AskedModes::default();
    let mut is_needed = is_needed;
    loop {
        if parser.parse_keywords(&[Keyword::ISOLATION, Keyword::LEVEL]) {
            modes.isolation = Some(level(parser)?);
        } else if parser.parse_keywords(&[Keyword::READ, Keyword::ONLY]) {
            modes.is_read_only = Some(true);
        } else if parser.parse_keywords(&[Keyword::READ, Keyword::WRITE]) {
            modes.is_read_only = Some(false);
        } else if parser.parse_keywords(&[Keyword::NOT, Keyword::DEFERRABLE]) {
            modes.is_deferrable = Some(false);
        } else if parser.parse_keyword(Keyword::DEFERRABLE) {
            modes.is_deferrable = Some(true);
        } else if is_needed {
            return parser.expected("a mode of the transaction", parser.peek_token());
        } else {
            return Ok(modes);
        }
        is_needed = parser.consume_token(&Token::Comma);
    }
}

fn level(parser: &mut Parser) -> Result<IsolationLevel, ParserError> {
    let levels = [
        (&[Keyword::READ, Keyword::UNCOMMITTED][..], IsolationLevel::ReadUncommitted),
        (&[Keyword::READ, Keyword::COMMITTED], IsolationLevel::ReadCommitted),
        (&[Keyword::REPEATABLE, Keyword::READ], IsolationLevel::RepeatableRead),
        (&[Keyword::SERIALIZABLE], IsolationLevel::Serializable),
    ];
    let found = levels.into_iter().find(|(words, _)| parser.parse_keywords(words));
    found.map_or_else(|| parser.expected("an isolation level", parser.peek_token()), |(_, level)| Ok(level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsing::ParsedStatement;
    use crate::parsing::parse::parse;

    fn control(text: &str) -> Control {
        match parse(text) {
            Ok(ParsedStatement::Control(control)) => control,
            Ok(_) => panic!("{text} is another statement"),
            Err(error) => panic!("{text}: {error:?}"),
        }
    }

    #[test]
    fn all_spellings_of_a_statement_mean_the_same() {
        let plain = AskedModes::default();
        for text in ["BEGIN", "begin work;", "BEGIN TRANSACTION"] {
            assert_eq!(control(text), Control::Begin { tag: "BEGIN", modes: plain }, "{text}");
        }
        for text in ["COMMIT", "END", "END WORK", "COMMIT TRANSACTION AND NO CHAIN"] {
            assert_eq!(control(text), Control::Commit { chain: false }, "{text}");
        }
        for text in ["ROLLBACK AND CHAIN", "ABORT WORK AND CHAIN"] {
            assert_eq!(control(text), Control::Rollback { chain: true }, "{text}");
        }
        for text in ["ROLLBACK TO a", "ROLLBACK WORK TO SAVEPOINT A", "ROLLBACK TRANSACTION TO \"a\";"] {
            assert_eq!(control(text), Control::RollbackTo("a".to_owned()), "{text}");
        }
        for text in ["RELEASE savepoint", "RELEASE SAVEPOINT savepoint"] {
            assert_eq!(control(text), Control::Release("savepoint".to_owned()), "{text}");
        }
    }

    #[test]
    fn checkpoint_and_backup_are_statements() {
        for text in ["CHECKPOINT", "checkpoint;"] {
            assert_eq!(control(text), Control::Checkpoint, "{text}");
        }
        assert!(parse("CHECKPOINT now").is_err());
        assert_eq!(control("backup to '/tmp/x';"), Control::Backup("/tmp/x".to_owned()));
        assert!(parse("BACKUP TO x").is_err() && parse("BACKUP '/tmp/x'").is_err());
    }

    #[test]
    fn a_wait_names_a_commit_and_a_time() {
        assert_eq!(control("WAIT FOR LSN 7"), Control::WaitForLsn { lsn: 7, time: None });
        let time = Some(Duration::from_secs(10));
        assert_eq!(control("wait for lsn '7' with (timeout '10s');"), Control::WaitForLsn { lsn: 7, time });
        for wrong in ["WAIT", "WAIT FOR LSN", "WAIT FOR LSN x", "WAIT FOR LSN 7 WITH (TIMEOUT)", "WAIT FOR LSN -7"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn modes_stand_with_and_without_commas() {
        let modes = AskedModes {
            isolation: Some(IsolationLevel::Serializable),
            is_read_only: Some(true),
            is_deferrable: Some(false),
        };
        for comma in ["", ","] {
            let list = format!("ISOLATION LEVEL SERIALIZABLE{comma} READ ONLY{comma} NOT DEFERRABLE");
            let started = Control::Begin { tag: "START TRANSACTION", modes };
            assert_eq!(control(&format!("START TRANSACTION {list}")), started);
            assert_eq!(control(&format!("SET TRANSACTION {list}")), Control::SetTransaction(modes));
            let session = format!("SET SESSION CHARACTERISTICS AS TRANSACTION {list}");
            assert_eq!(control(&session), Control::SetSession(modes));
        }
    }

    #[test]
    fn constraints_are_named_or_all() {
        let all = Control::SetConstraints { names: None, deferred: true };
        assert_eq!(control("SET CONSTRAINTS ALL DEFERRED"), all);
        let named = Control::SetConstraints { names: Some(vec!["a".to_owned(), "B".to_owned()]), deferred: false };
        assert_eq!(control("set constraints a, public.\"B\" immediate;"), named);
        assert!(parse("SET CONSTRAINTS a").is_err() && parse("SET CONSTRAINTS DEFERRED").is_err());
    }

    #[test]
    fn what_is_no_such_statement_is_an_error() {
        let wrong =
            ["BEGIN READ", "BEGIN READ ONLY,", "SET TRANSACTION", "COMMIT AND", "SAVEPOINT", "ROLLBACK TO", "END x"];
        for text in wrong {
            assert_eq!(parse(text).err().map(|error| error.sqlstate), Some("42601"), "{text}");
        }
        assert_eq!(parse("COMMIT PREPARED 'x'").err().map(|error| error.sqlstate), Some("0A000"));
    }
}
