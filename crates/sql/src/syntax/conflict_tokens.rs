//! What the target of `ON CONFLICT` says beyond the names of columns, as names that no statement can spell: the parser's library reads
//! names alone.
//!
//! ```text
//! ON CONFLICT (lower(a), b) WHERE c > 0 DO ...  ->  ON CONFLICT ("\0of lower(a)", b, "\0where c > 0") DO ...
//! ```
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::syntax::tokens::{following, is_sign, keyword};

/// How the name begins that stands for an expression.
pub(crate) const EXPRESSION: &str = "\0of ";

/// How the name begins that stands for the condition.
pub(crate) const CONDITION: &str = "\0where ";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if keyword(&tokens[at]) == Keyword::ON
            && let [conflict, open] = following(tokens, at).take(2).collect::<Vec<_>>()[..]
            && keyword(&tokens[conflict]) == Keyword::CONFLICT
            && tokens[open].token == Token::LParen
        {
            rewrite(tokens, open);
        }
        at += 1;
    }
}

/// The target whose list opens here.
fn rewrite(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let Some(close) = end_of(tokens, open + 1, |token| token.token == Token::RParen) else { return };
    let mut list = Vec::new();
    let mut start = open + 1;
    while start <= close {
        let end = end_of(tokens, start, |token| matches!(token.token, Token::Comma | Token::RParen)).unwrap_or(close);
        list.push(item(&tokens[start..end]));
        start = end + 1;
    }
    let mut last = close;
    if let Some(word) = following(tokens, close).next()
        && keyword(&tokens[word]) == Keyword::WHERE
        && let Some(end) = end_of(tokens, word + 1, |token| keyword(token) == Keyword::DO)
    {
        list.push(named(CONDITION, &tokens[word + 1..end]));
        last = end - 1;
    }
    let comma = TokenWithSpan { token: Token::Comma, span: tokens[open].span };
    let mut instead: Vec<TokenWithSpan> = Vec::new();
    for (at, item) in list.into_iter().enumerate() {
        instead.extend((at > 0).then(|| comma.clone()));
        instead.extend(item);
    }
    instead.push(tokens[close].clone());
    tokens.splice(open + 1..=last, instead);
}

/// Where the next token stands that ends a part which begins here, not within parentheses of its own.
fn end_of(tokens: &[TokenWithSpan], start: usize, ends: impl Fn(&TokenWithSpan) -> bool) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        if depth == 0 && ends(token) {
            return Some(at);
        }
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// An item of the list: a name stays, an expression gets one.
fn item(part: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let signs: Vec<&TokenWithSpan> = part.iter().filter(|token| is_sign(token)).collect();
    match signs[..] {
        [] => part.to_vec(),
        [TokenWithSpan { token: Token::Word(_), .. }] => part.to_vec(),
        _ => named(EXPRESSION, part),
    }
}

/// A token as it is read again: what it has of quotes within quotes is doubled.
fn spelled(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) => format!("'{}'", text.replace('\'', "''")),
        Token::EscapedStringLiteral(text) => format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
        Token::Word(Word { value, quote_style: Some('"'), .. }) => format!("\"{}\"", value.replace('"', "\"\"")),
        other => other.to_string(),
    }
}

/// A name for a part of the statement, where that stands.
fn named(mark: &str, part: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let text: String = part.iter().map(|token| spelled(&token.token)).collect();
    let first = part.iter().find(|token| is_sign(token));
    let name = |first: &TokenWithSpan| TokenWithSpan {
        token: Token::make_word(&format!("{mark}{}", text.trim()), Some('"')),
        span: first.span,
    };
    first.map(name).into_iter().collect()
}
