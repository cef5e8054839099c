//! The options of `COPY` that are about columns: `FORCE_QUOTE`, `FORCE_NOT_NULL` and `FORCE_NULL`.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;

/// The columns that such an option names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Forced {
    #[default]
    None,
    All,
    Named(Vec<String>),
}

impl Forced {
    /// Whether each of the columns that are copied is among them.
    ///
    /// # Errors
    /// 42P10 if one is named that is not copied.
    pub(crate) fn among(&self, option: &str, columns: &[&str]) -> Result<Vec<bool>> {
        let Forced::Named(names) = self else { return Ok(vec![*self == Forced::All; columns.len()]) };
        match names.iter().find(|name| !columns.contains(&name.as_str())) {
            None => Ok(columns.iter().map(|column| names.iter().any(|name| name == column)).collect()),
            Some(name) => Err(SqlError::new("42P10", format!("{option} column \"{name}\" not referenced by COPY"))),
        }
    }
}

/// Those of one `COPY`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForcedColumns {
    /// Texts that are always quoted.
    pub(crate) quoted: Forced,
    /// Columns in which the text for NULL is a text.
    pub(crate) not_null: Forced,
    /// Columns in which the text for NULL is NULL also where it is quoted.
    pub(crate) null: Forced,
}

impl ForcedColumns {
    /// Refuses what does not go with a format and a direction.
    pub(crate) fn check(&self, is_csv: bool, is_from: bool) -> Result<()> {
        let given = [
            ("force quote", &self.quoted, false),
            ("force not null", &self.not_null, true),
            ("force null", &self.null, true),
        ];
        for (option, _, of_input) in given.into_iter().filter(|(_, forced, _)| **forced != Forced::None) {
            if !is_csv {
                return Err(SqlError::new("0A000", format!("COPY {option} available only in CSV mode")));
            }
            if of_input != is_from {
                let way = if of_input { "FROM" } else { "TO" };
                return Err(SqlError::new("0A000", format!("COPY {option} only available using COPY {way}")));
            }
        }
        Ok(())
    }

    /// The columns of the option of a name.
    pub(crate) fn named(&mut self, name: &str) -> Option<&mut Forced> {
        match name {
            "force_quote" => Some(&mut self.quoted),
            "force_not_null" => Some(&mut self.not_null),
            "force_null" => Some(&mut self.null),
            _ => None,
        }
    }
}

/// Reads `(a, b)` or `*`.
pub(super) fn within_parentheses(parser: &mut Parser, source: &Source) -> Result<Forced> {
    if parser.consume_token(&Token::Mul) {
        return Ok(Forced::All);
    }
    let read = |parser: &mut Parser| {
        parser.expect_token(&Token::LParen)?;
        let names = parser.parse_comma_separated(Parser::parse_identifier)?;
        parser.expect_token(&Token::RParen)?;
        Ok(Forced::Named(names.iter().map(fold).collect()))
    };
    read(parser).map_err(|error| source.parser_error(error))
}

/// Reads what follows `FORCE` in the old syntax: the name of the option and its columns.
pub(super) fn legacy(parser: &mut Parser, source: &Source) -> Result<(&'static str, Forced)> {
    let read = |parser: &mut Parser| {
        let name = match parser.parse_one_of_keywords(&[Keyword::QUOTE, Keyword::NULL]) {
            Some(Keyword::QUOTE) => "force_quote",
            Some(_) => "force_null",
            None => {
                parser.expect_keywords(&[Keyword::NOT, Keyword::NULL])?;
                "force_not_null"
            }
        };
        if parser.consume_token(&Token::Mul) {
            return Ok((name, Forced::All));
        }
        let names = parser.parse_comma_separated(Parser::parse_identifier)?;
        Ok((name, Forced::Named(names.iter().map(fold).collect())))
    };
    read(parser).map_err(|error| source.parser_error(error))
}
