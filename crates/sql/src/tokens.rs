//! What the parser's library does not read, brought into words that it does, or refused, among the tokens of a statement.
//!
//! ```text
//! TABLE t                              ->  SELECT * FROM t
//! ... FOLLOWING EXCLUDE NO OTHERS)     ->  ... FOLLOWING)
//! ```
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::error::{Result, SqlError};
use crate::source::Source;

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>, source: &Source) -> Result<()> {
    let has = |wanted: Keyword| tokens.iter().any(|token| keyword(token) == wanted);
    if has(Keyword::EXCLUDE) {
        exclusions(tokens, source)?;
    }
    if tokens.iter().any(|token| keyword(token) == Keyword::TABLE) {
        tables(tokens);
    }
    Ok(())
}

fn keyword(token: &TokenWithSpan) -> Keyword {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// The places of the next tokens that are no blanks.
fn following(tokens: &[TokenWithSpan], at: usize) -> impl Iterator<Item = usize> {
    let is_sign = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    (at + 1..tokens.len()).filter(is_sign)
}

/// What a window's frame leaves out.
fn exclusions(tokens: &mut Vec<TokenWithSpan>, source: &Source) -> Result<()> {
    let mut at = 0;
    while at < tokens.len() {
        if keyword(&tokens[at]) == Keyword::EXCLUDE {
            let next: Vec<usize> = following(tokens, at).take(3).collect();
            let word =
                |nth: usize| next.get(nth).map_or(String::new(), |at| tokens[*at].token.to_string().to_uppercase());
            match (word(0).as_str(), word(1).as_str(), word(2).as_str()) {
                ("NO", "OTHERS", ")") => {
                    tokens.drain(at..=next[1]);
                }
                (what @ ("GROUP" | "TIES"), ")", _) => return Err(refused(what, &tokens[at], source)),
                ("CURRENT", "ROW", ")") => return Err(refused("CURRENT ROW", &tokens[at], source)),
                _ => {}
            }
        }
        at += 1;
    }
    Ok(())
}

fn refused(what: &str, token: &TokenWithSpan, source: &Source) -> SqlError {
    let error = SqlError::unsupported(format!("EXCLUDE {what} in the frame of a window"));
    let hint = "Join the rows with those of their frame, and leave out what is not meant by a condition.";
    error.hint(hint).at(source.start(token.span))
}

/// `TABLE t` where a query may stand.
fn tables(tokens: &mut Vec<TokenWithSpan>) {
    let mut before: Option<usize> = None;
    let mut at = 0;
    while at < tokens.len() {
        if matches!(tokens[at].token, Token::Whitespace(_)) {
            at += 1;
            continue;
        }
        let begins_query = match before.map(|before| &tokens[before]) {
            None => true,
            Some(TokenWithSpan { token: Token::LParen | Token::SemiColon, .. }) => true,
            Some(token) => {
                matches!(keyword(token), Keyword::UNION | Keyword::ALL | Keyword::INTERSECT | Keyword::EXCEPT)
            }
        };
        let names_table = || following(tokens, at).next().is_some_and(|at| matches!(tokens[at].token, Token::Word(_)));
        if begins_query && keyword(&tokens[at]) == Keyword::TABLE && names_table() {
            let span = tokens[at].span;
            let word =
                |text: &str, keyword: Keyword| Token::Word(Word { value: text.to_owned(), quote_style: None, keyword });
            let spelled = [word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM)];
            tokens.splice(at..=at, spelled.map(|token| TokenWithSpan { token, span }));
        }
        before = Some(at);
        at += 1;
    }
}
