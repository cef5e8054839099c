//! Parts of `CREATE TABLE ... AS` that the parser's library does not read, brought into its words among the tokens of a statement:
//!
//! ```text
//! CREATE TABLE t (a, b) AS q       ->  CREATE TABLE t AS SELECT * FROM (q) AS "t" (a, b)
//! CREATE TABLE t AS q WITH DATA    ->  CREATE TABLE t AS q
//! CREATE TABLE t AS q WITH NO DATA ->  CREATE TABLE t AS SELECT * FROM (q) AS "t" LIMIT 0
//! ```
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::syntax::tokens::{is_sign, keyword};

/// The name of the query, which is read by nothing.
const QUERY: &str = "query";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    if tokens.iter().find(|token| is_sign(token)).map(keyword) != Some(Keyword::CREATE) {
        return;
    }
    let signs: Vec<usize> = (0..tokens.len()).filter(|at| is_sign(&tokens[*at])).collect();
    let Some(query) = query_of(tokens, &signs) else { return };
    let end = signs.iter().rposition(|at| !matches!(tokens[*at].token, Token::SemiColon | Token::EOF));
    let last: Vec<Keyword> = signs[..end.map_or(0, |end| end + 1)].iter().map(|at| keyword(&tokens[*at])).collect();
    let (said, has_rows) = match last[..] {
        [.., Keyword::WITH, Keyword::NO, Keyword::DATA] => (3, false),
        [.., Keyword::WITH, Keyword::DATA] => (2, true),
        _ => (0, true),
    };
    let behind = signs.get(last.len() - said).copied().unwrap_or(tokens.len());
    let columns = columns_of(tokens, &signs);
    let stop = signs.get(last.len()).copied().unwrap_or(tokens.len());
    tokens.drain(behind..stop);
    if columns.is_none() && has_rows {
        return;
    }
    let names = columns.as_ref().map(|(from, to)| tokens[*from..=*to].to_vec()).unwrap_or_default();
    let span = tokens[query].span;
    let put = |token: Token| TokenWithSpan { token, span };
    let blank = || put(Token::Whitespace(Whitespace::Space));
    let word = |text: &str, quote: Option<char>| put(Token::make_word(text, quote));
    let mut after = vec![put(Token::RParen), blank(), word("AS", None), blank(), word(QUERY, Some('"')), blank()];
    after.extend(names);
    if !has_rows {
        after.extend([blank(), word("LIMIT", None), blank(), put(Token::Number("0".to_owned(), false))]);
    }
    tokens.splice(behind..behind, after);
    let before = [word("SELECT", None), blank(), put(Token::Mul), blank(), word("FROM", None), blank()];
    tokens.splice(query..query, before.into_iter().chain([put(Token::LParen)]));
    if let Some((from, to)) = columns {
        tokens.drain(from..=to);
    }
}

/// Where the query begins, if what is created is a table of a query.
fn query_of(tokens: &[TokenWithSpan], signs: &[usize]) -> Option<usize> {
    let words = || signs.iter().map(|at| keyword(&tokens[*at]));
    let table = words().take(4).position(|word| word == Keyword::TABLE)?;
    let mut depth = 0_usize;
    let from = signs[table..].iter().position(|at| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && keyword(&tokens[*at]) == Keyword::AS
    })?;
    let query = *signs.get(table + from + 1)?;
    // What is prepared is no query that stands in parentheses.
    (keyword(&tokens[query]) != Keyword::EXECUTE && tokens[query].token != Token::EOF).then_some(query)
}

/// The parentheses around the names of columns, which stand behind the table's name.
fn columns_of(tokens: &[TokenWithSpan], signs: &[usize]) -> Option<(usize, usize)> {
    let open = signs.iter().position(|at| tokens[*at].token == Token::LParen)?;
    let stop =
        signs.iter().position(|at| matches!(keyword(&tokens[*at]), Keyword::AS | Keyword::WITH | Keyword::USING))?;
    let close = open + signs[open..].iter().position(|at| tokens[*at].token == Token::RParen)?;
    let inner = &signs[open + 1..close];
    let is_name = |(at, sign): (usize, &usize)| match at % 2 {
        0 => matches!(tokens[*sign].token, Token::Word(_)),
        _ => tokens[*sign].token == Token::Comma,
    };
    let are_names = inner.len() % 2 == 1 && inner.iter().enumerate().all(is_name);
    (open < stop && are_names).then(|| (signs[open], signs[close]))
}
