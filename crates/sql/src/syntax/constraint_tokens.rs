//! Constraints that the parser's library does not read, brought into words that it does, among the tokens of a statement:
//!
//! ```text
//! a int CONSTRAINT c UNIQUE NULLS NOT DISTINCT       ->  a int COLLATE "\0nulls not distinct" CONSTRAINT c UNIQUE
//! a int UNIQUE NULLS DISTINCT                        ->  a int UNIQUE
//! REFERENCES p (x, y) ON DELETE SET NULL (b)         ->  REFERENCES p (x, y, "\0set", b) ON DELETE SET NULL
//! REFERENCES p ON DELETE SET DEFAULT (b)             ->  REFERENCES p ("\0set", b) ON DELETE SET DEFAULT
//! UNIQUE (a) INCLUDE (b, c)                          ->  UNIQUE (a, "\0include", b, c)
//! ```
//!
//! A constraint of a table says `UNIQUE NULLS NOT DISTINCT (a)`, which the library reads.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::syntax::tokens::{following, is_sign, keyword};

/// The collation that stands before a UNIQUE constraint of a column in which NULL equals NULL.
pub(crate) const NULLS_NOT_DISTINCT: &str = "\0nulls not distinct";

/// The name behind which, among the columns that are referred to, those stand that a delete sets.
pub(crate) const SET: &str = "\0set";

/// The name behind which, among the columns of a key, those stand that its index is asked to have beside it.
pub(crate) const INCLUDE: &str = "\0include";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let first = tokens.iter().find(|token| is_sign(token)).map_or(Keyword::NoKeyword, keyword);
    if !matches!(first, Keyword::CREATE | Keyword::ALTER) {
        return;
    }
    for at in (0..tokens.len()).rev() {
        match keyword(&tokens[at]) {
            Keyword::UNIQUE => nulls(tokens, at),
            Keyword::DELETE => set(tokens, at),
            Keyword::INCLUDE => include(tokens, at),
            _ => {}
        }
    }
}

/// The places of the tokens before one that are no blanks, the nearest first.
fn preceding(tokens: &[TokenWithSpan], at: usize) -> impl Iterator<Item = usize> {
    (0..at).rev().filter(|at| is_sign(&tokens[*at]))
}

/// `NULLS [NOT] DISTINCT` behind the `UNIQUE` here, of a column.
fn nulls(tokens: &mut Vec<TokenWithSpan>, unique: usize) {
    let next: Vec<usize> = following(tokens, unique).take(4).collect();
    let word = |at: usize| next.get(at).map_or(Keyword::NoKeyword, |at| keyword(&tokens[*at]));
    let (not, distinct) = match (word(0), word(1), word(2)) {
        (Keyword::NULLS, Keyword::NOT, Keyword::DISTINCT) => (true, 2),
        (Keyword::NULLS, Keyword::DISTINCT, _) => (false, 1),
        _ => return,
    };
    if next.get(distinct + 1).is_some_and(|at| tokens[*at].token == Token::LParen) {
        return;
    }
    tokens.drain(unique + 1..=next[distinct]);
    if !not {
        return;
    }
    let constraint = preceding(tokens, unique).nth(1).filter(|at| keyword(&tokens[*at]) == Keyword::CONSTRAINT);
    let (at, span) = (constraint.unwrap_or(unique), tokens[unique].span);
    let blank = || Token::Whitespace(Whitespace::Space);
    let mark = Token::make_word(NULLS_NOT_DISTINCT, Some('"'));
    let made = [Token::make_keyword("COLLATE"), blank(), mark, blank()];
    tokens.splice(at..at, made.map(|token| TokenWithSpan { token, span }));
}

/// `INCLUDE (b)` here, behind the columns of a key; that of an index is read.
fn include(tokens: &mut Vec<TokenWithSpan>, include: usize) {
    let (Some(close), Some(open)) = (preceding(tokens, include).next(), following(tokens, include).next()) else {
        return;
    };
    if tokens[close].token != Token::RParen || tokens[open].token != Token::LParen {
        return;
    }
    let list = preceding(tokens, close).find(|at| tokens[*at].token == Token::LParen);
    let before = list.and_then(|list| preceding(tokens, list).next());
    if before.is_some_and(|at| matches!(keyword(&tokens[at]), Keyword::UNIQUE | Keyword::DISTINCT | Keyword::KEY)) {
        let span = tokens[include].span;
        let made = [Token::Comma, Token::make_word(INCLUDE, Some('"')), Token::Comma];
        tokens.splice(close..=open, made.map(|token| TokenWithSpan { token, span }));
    }
}

/// `SET NULL (b)` behind the `DELETE` here.
fn set(tokens: &mut Vec<TokenWithSpan>, delete: usize) {
    let next: Vec<usize> = following(tokens, delete).take(3).collect();
    let [set, to, open] = next[..] else { return };
    let is_list = keyword(&tokens[set]) == Keyword::SET
        && matches!(keyword(&tokens[to]), Keyword::NULL | Keyword::DEFAULT)
        && tokens[open].token == Token::LParen
        && preceding(tokens, delete).next().is_some_and(|on| keyword(&tokens[on]) == Keyword::ON);
    let length = tokens[open..].iter().position(|token| token.token == Token::RParen);
    let references = preceding(tokens, delete).find(|at| keyword(&tokens[*at]) == Keyword::REFERENCES);
    let (true, Some(length), Some(references)) = (is_list, length, references) else { return };
    let list: Vec<TokenWithSpan> = tokens[open + 1..open + length].to_vec();
    let span = tokens[open].span;
    // The name of the table, with its schema.
    let is_of_name = |at: &usize| matches!(tokens[*at].token, Token::Word(_) | Token::Period);
    let is_name = |at: &usize| is_of_name(at) && !matches!(keyword(&tokens[*at]), Keyword::ON | Keyword::MATCH);
    let Some(last) = following(tokens, references).take_while(is_name).last() else { return };
    let referred = following(tokens, last).next().filter(|at| tokens[*at].token == Token::LParen);
    let close = referred.and_then(|from| {
        let length = tokens[from..].iter().position(|token| token.token == Token::RParen)?;
        Some(from + length)
    });
    tokens.drain(open..=open + length);
    let mark = TokenWithSpan { token: Token::make_word(SET, Some('"')), span };
    let sign = |token: Token| TokenWithSpan { token, span };
    let mut marked = vec![mark, sign(Token::Comma)];
    marked.extend(list);
    let (at, made) = match close {
        Some(close) => (close, [vec![sign(Token::Comma)], marked].concat()),
        None => (last + 1, [vec![sign(Token::LParen)], marked, vec![sign(Token::RParen)]].concat()),
    };
    tokens.splice(at..at, made);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::source::Source;

    fn spelled(text: &str) -> String {
        let mut tokens = Source::new(text).tokens().unwrap();
        spell_out(&mut tokens);
        tokens.iter().map(|token| token.token.to_string()).collect::<String>().replace('\0', "#")
    }

    #[test]
    fn marks_take_the_place_of_what_is_not_read() {
        let cases = [
            (
                "CREATE TABLE t (a int UNIQUE NULLS NOT DISTINCT)",
                "CREATE TABLE t (a int COLLATE \"#nulls not distinct\" UNIQUE)",
            ),
            (
                "CREATE TABLE t (a int CONSTRAINT c UNIQUE NULLS NOT DISTINCT DEFERRABLE, b int UNIQUE NULLS DISTINCT)",
                "CREATE TABLE t (a int COLLATE \"#nulls not distinct\" CONSTRAINT c UNIQUE DEFERRABLE, b int UNIQUE)",
            ),
            ("CREATE TABLE t (UNIQUE NULLS NOT DISTINCT (a))", "CREATE TABLE t (UNIQUE NULLS NOT DISTINCT (a))"),
            (
                "ALTER TABLE t ADD FOREIGN KEY (a, b) REFERENCES s.p ON DELETE SET NULL (b)",
                "ALTER TABLE t ADD FOREIGN KEY (a, b) REFERENCES s.p(\"#set\",b) ON DELETE SET NULL ",
            ),
            (
                "CREATE TABLE t (FOREIGN KEY (a) REFERENCES p (x, y) ON DELETE SET DEFAULT (b, c) ON UPDATE CASCADE)",
                "CREATE TABLE t (FOREIGN KEY (a) REFERENCES p (x, y,\"#set\",b, c) ON DELETE SET DEFAULT  ON UPDATE CASCADE)",
            ),
            ("CREATE TABLE t (UNIQUE (a, b) INCLUDE (c, d))", "CREATE TABLE t (UNIQUE (a, b,\"#include\",c, d))"),
            ("ALTER TABLE t ADD PRIMARY KEY (a) INCLUDE (b)", "ALTER TABLE t ADD PRIMARY KEY (a,\"#include\",b)"),
        ];
        for (text, expected) in cases {
            assert_eq!(spelled(text), expected);
        }
        for text in ["SELECT 1", "CREATE UNIQUE INDEX i ON t (a) INCLUDE (b)", "ALTER TABLE t ALTER a SET DEFAULT (5)"]
        {
            assert_eq!(spelled(text), text);
        }
    }
}
