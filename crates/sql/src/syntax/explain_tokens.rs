//! `EXPLAIN` of a query in parentheses, which the parser's library takes for options, among the tokens of a statement:
//!
//! ```text
//! EXPLAIN (SELECT 1) UNION (SELECT 2)     ->  EXPLAIN (COSTS ON) (SELECT 1) UNION (SELECT 2)
//! ```
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::syntax::tokens::{following, keyword};

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let Some(first) = (0..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_))) else { return };
    if keyword(&tokens[first]) != Keyword::EXPLAIN {
        return;
    }
    let mut next = following(tokens, first);
    let (Some(open), Some(inner)) = (next.next(), next.next()) else { return };
    drop(next);
    let is_query = tokens[inner].token == Token::LParen
        || matches!(keyword(&tokens[inner]), Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE);
    if tokens[open].token == Token::LParen && is_query {
        let at = |token: Token| TokenWithSpan { token, span: tokens[open].span };
        let word = |text: &str| at(Token::make_word(text, None));
        let options = [at(Token::LParen), word("COSTS"), word("ON"), at(Token::RParen)];
        tokens.splice(open..open, options);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::source::Source;

    fn spelled(text: &str) -> String {
        let mut tokens = Source::new(text).tokens().unwrap();
        spell_out(&mut tokens);
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn options_stay_and_queries_get_some() {
        assert_eq!(spelled("EXPLAIN (SELECT 1) UNION (SELECT 2)"), "EXPLAIN (COSTSON)(SELECT 1) UNION (SELECT 2)");
        for text in ["EXPLAIN (COSTS OFF) SELECT 1", "EXPLAIN SELECT (SELECT 1)", "SELECT (SELECT 1)", " "] {
            assert_eq!(spelled(text), text);
        }
        assert_eq!(spelled("EXPLAIN ((SELECT 1)) LIMIT 1"), "EXPLAIN (COSTSON)((SELECT 1)) LIMIT 1");
    }
}
