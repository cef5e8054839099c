//! `FETCH FIRST (n) ROWS`, of which the parser's library reads no parentheses, among the tokens of a statement:
//!
//! ```text
//! FETCH FIRST (2) ROWS WITH TIES            ->  FETCH FIRST 2 ROWS WITH TIES
//! FETCH FIRST ($1::integer) ROWS WITH TIES  ->  FETCH FIRST $1 ROWS WITH TIES
//! FETCH NEXT (1 + $1) ROWS ONLY             ->  LIMIT (1 + $1)
//! ```
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::syntax::tokens::{closing, following, keyword};

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let fetches: Vec<usize> = (0..tokens.len()).filter(|at| keyword(&tokens[*at]) == Keyword::FETCH).collect();
    // From the last one on, so that the places of those before stay.
    for fetch in fetches.into_iter().rev() {
        rewrite(tokens, fetch);
    }
}

fn rewrite(tokens: &mut Vec<TokenWithSpan>, fetch: usize) {
    let mut next = following(tokens, fetch);
    let (Some(first), Some(open)) = (next.next(), next.next()) else { return };
    drop(next);
    if !matches!(keyword(&tokens[first]), Keyword::FIRST | Keyword::NEXT) || tokens[open].token != Token::LParen {
        return;
    }
    let Some(close) = closing(tokens, open) else { return };
    let behind: Vec<usize> = following(tokens, close).take(2).collect();
    let [rows, only] = behind[..] else { return };
    if !matches!(keyword(&tokens[rows]), Keyword::ROW | Keyword::ROWS) {
        return;
    }
    if let Some(behind_value) = behind_one_value(tokens, open, close) {
        tokens.drain(behind_value..=close);
        tokens.remove(open);
    } else if keyword(&tokens[only]) == Keyword::ONLY {
        let limit = Word { value: "LIMIT".to_owned(), quote_style: None, keyword: Keyword::LIMIT };
        tokens[fetch].token = Token::Word(limit);
        tokens.drain(close + 1..=only);
        tokens.drain(fetch + 1..open);
    }
}

/// The place behind the one number or parameter between the parentheses, if they have nothing else but its cast to whole numbers.
fn behind_one_value(tokens: &[TokenWithSpan], open: usize, close: usize) -> Option<usize> {
    let mut inner = following(tokens, open).take_while(|at| *at < close);
    let value = inner.next().filter(|at| matches!(tokens[*at].token, Token::Number(..) | Token::Placeholder(_)))?;
    match (inner.next(), inner.next(), inner.next()) {
        (None, ..) => Some(close),
        (Some(cast), Some(of), None) if tokens[cast].token == Token::DoubleColon => {
            let is_whole =
                matches!(keyword(&tokens[of]), Keyword::SMALLINT | Keyword::INT | Keyword::INTEGER | Keyword::BIGINT);
            is_whole.then_some(value + 1)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::source::Source;

    #[test]
    fn parentheses_of_a_fetch_go_or_become_a_limit() {
        for (text, expected) in [
            ("SELECT 1 FETCH FIRST (2) ROWS ONLY", "SELECT 1 FETCH FIRST 2 ROWS ONLY"),
            ("SELECT 1 FETCH NEXT ( $1 ) ROW WITH TIES", "SELECT 1 FETCH NEXT  $1  ROW WITH TIES"),
            ("SELECT 1 FETCH NEXT ($1::INTEGER) ROWS WITH TIES", "SELECT 1 FETCH NEXT $1 ROWS WITH TIES"),
            ("SELECT 1 FETCH NEXT ($1::text) ROWS WITH TIES", "SELECT 1 FETCH NEXT ($1::text) ROWS WITH TIES"),
            ("SELECT 1 FETCH FIRST (1 + (2)) ROWS ONLY, x", "SELECT 1 LIMIT(1 + (2)), x"),
            ("SELECT (SELECT 1 FETCH FIRST (-1) ROWS ONLY)", "SELECT (SELECT 1 LIMIT(-1))"),
            ("SELECT 1 FETCH FIRST (1 + 2) ROWS WITH TIES", "SELECT 1 FETCH FIRST (1 + 2) ROWS WITH TIES"),
            ("FETCH FIRST FROM c", "FETCH FIRST FROM c"),
            ("FETCH FIRST (", "FETCH FIRST ("),
        ] {
            let mut tokens = Source::new(text).tokens().unwrap();
            spell_out(&mut tokens);
            let spelled: String = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(spelled, expected, "{text}");
        }
    }
}
