//! What `ALTER TABLE ... ALTER COLUMN` changes of an identity column:
//!
//! ```text
//! { SET GENERATED { ALWAYS | BY DEFAULT } | SET option | RESTART [[WITH] n] } ...
//! ```
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::Identity;

use crate::error::{Result, SqlError};
use crate::parsing::sequence_options::AskedOptions;
use crate::parsing::sequence_statement::option;
use crate::syntax::dialect::SqlDialect;
use crate::syntax::source::Source;

/// The changes.
#[derive(Clone)]
pub(crate) struct AskedIdentity {
    pub(crate) identity: Option<Identity>,
    pub(crate) options: AskedOptions,
}

/// Reads the changes from the words of the statement.
pub(crate) fn parse_identity(words: &str) -> Result<AskedIdentity> {
    let source = &Source::new(words);
    let tokens = source.tokens()?;
    let dialect = SqlDialect::of(&tokens);
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    let mut asked = AskedIdentity { identity: None, options: AskedOptions::default() };
    while parser.peek_token().token != Token::EOF {
        let is_restart = matches!(parser.peek_token().token, Token::Word(word) if word.keyword == Keyword::RESTART);
        if !is_restart {
            parser.expect_keyword(Keyword::SET).map_err(|error| placeless(source.parser_error(error)))?;
        }
        let is_new = match parser.parse_keyword(Keyword::GENERATED) {
            true => asked.identity.replace(strictness(&mut parser, source)?).is_none(),
            false => option(&mut parser, source, true, &mut asked.options).map_err(placeless)?,
        };
        if !is_new {
            return Err(SqlError::syntax("conflicting or redundant options"));
        }
        if asked.options.owner.is_some() {
            return Err(SqlError::syntax("sequence option \"owned_by\" not supported here"));
        }
    }
    Ok(asked)
}

/// An error without its place, which is none in the statement.
fn placeless(error: SqlError) -> SqlError {
    SqlError { position: None, ..error }
}

fn strictness(parser: &mut Parser, source: &Source) -> Result<Identity> {
    if parser.parse_keyword(Keyword::ALWAYS) {
        return Ok(Identity::Always);
    }
    let by_default = parser.expect_keywords(&[Keyword::BY, Keyword::DEFAULT]);
    by_default.map_err(|error| placeless(source.parser_error(error)))?;
    Ok(Identity::ByDefault)
}
