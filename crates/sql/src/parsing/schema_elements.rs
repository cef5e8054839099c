//! `CREATE SCHEMA` with what is to be in it, as steps that are done one after the other:
//!
//! ```text
//! CREATE SCHEMA s CREATE TABLE t (...) CREATE VIEW v AS ...
//!     ->  CREATE SCHEMA s;  names without a schema are of s;  CREATE TABLE t (...);  CREATE VIEW v AS ...;  as before
//! ```
//!
//! As in PostgreSQL sequences are made first, then tables, views and indexes, and privileges are granted last.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::parsing::do_block::{DoBlock, Step};
use crate::syntax::source::Source;
use crate::syntax::tokens::{following, is_sign, keyword};

/// The kinds of elements in their order.
const KINDS: [Keyword; 5] = [Keyword::SEQUENCE, Keyword::TABLE, Keyword::VIEW, Keyword::INDEX, Keyword::GRANT];

/// The steps of such a statement, if these are its tokens.
///
/// # Errors
/// 0A000 for `IF NOT EXISTS` and a schema without a name of its own, 42P15 for an element of another schema.
pub(crate) fn steps(tokens: &[TokenWithSpan], source: &Source) -> Result<Option<DoBlock>> {
    let signs: Vec<usize> = (0..tokens.len()).filter(|at| is_sign(&tokens[*at])).collect();
    let [first, second, third, ..] = signs[..] else { return Ok(None) };
    if keyword(&tokens[first]) != Keyword::CREATE || keyword(&tokens[second]) != Keyword::SCHEMA {
        return Ok(None);
    }
    let starts = starts(tokens, second);
    let Some(start) = starts.first().copied() else { return Ok(None) };
    if keyword(&tokens[third]) == Keyword::IF {
        let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
        return Err(SqlError::new("0A000", message).at(source.start(tokens[start].span)));
    }
    let Token::Word(word) = &tokens[third].token else { return Ok(None) };
    if keyword(&tokens[third]) == Keyword::AUTHORIZATION {
        return Err(SqlError::unsupported("CREATE SCHEMA without a name").at(source.start(tokens[third].span)));
    }
    let schema = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
    let text =
        |from: usize, to: usize| tokens[from..to].iter().map(|token| token.token.to_string()).collect::<String>();
    let end =
        tokens.iter().position(|token| matches!(token.token, Token::SemiColon | Token::EOF)).unwrap_or(tokens.len());
    let ends = starts.iter().skip(1).copied().chain([end]);
    let mut elements: Vec<(usize, String)> = Vec::with_capacity(starts.len());
    for (from, to) in starts.iter().copied().zip(ends) {
        check_schema(tokens, from, &schema, source)?;
        elements.push((kind(tokens, from), text(from, to)));
    }
    elements.sort_by_key(|(kind, _)| *kind);
    let elements = elements.into_iter().map(|(_, text)| Step::Statement(text)).collect();
    let steps = vec![Step::Statement(text(first, start)), Step::Within(schema, elements)];
    Ok(Some(DoBlock { steps, tag: Some("CREATE SCHEMA"), ..DoBlock::default() }))
}

/// Where elements begin.
fn starts(tokens: &[TokenWithSpan], schema: usize) -> Vec<usize> {
    let (mut depth, mut starts) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate().skip(schema + 1) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && matches!(keyword(token), Keyword::CREATE | Keyword::GRANT) => starts.push(at),
            _ => {}
        }
    }
    starts
}

/// The place of an element's kind among the kinds.
fn kind(tokens: &[TokenWithSpan], start: usize) -> usize {
    let words = std::iter::once(start).chain(following(tokens, start).take(4)).map(|at| keyword(&tokens[at]));
    words.filter_map(|word| KINDS.iter().position(|kind| *kind == word)).next().unwrap_or(KINDS.len())
}

/// Refuses an element whose name says another schema.
fn check_schema(tokens: &[TokenWithSpan], start: usize, schema: &str, source: &Source) -> Result<()> {
    let is_kind = |at: &usize| matches!(keyword(&tokens[*at]), Keyword::TABLE | Keyword::VIEW | Keyword::SEQUENCE);
    let Some(kind) = following(tokens, start).take(4).find(is_kind) else { return Ok(()) };
    let [name, period] = following(tokens, kind).take(2).collect::<Vec<_>>()[..] else { return Ok(()) };
    match &tokens[name].token {
        Token::Word(word) if tokens[period].token == Token::Period => {
            let said = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
            if said == schema {
                return Ok(());
            }
            let message = format!("CREATE specifies a schema ({said}) different from the one being created ({schema})");
            Err(SqlError::new("42P15", message).at(source.start(tokens[name].span)))
        }
        _ => Ok(()),
    }
}
