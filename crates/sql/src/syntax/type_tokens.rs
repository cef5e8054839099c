//! Types that the parser's library does not read, brought into words that it does, among the tokens of a statement:
//!
//! ```text
//! a text ARRAY NOT NULL                  ->  a text[] NOT NULL
//! CAST(a AS int ARRAY)                   ->  CAST(a AS int[])
//! ```
//!
//! A list or a query behind `ARRAY` makes an array of these. `ARRAY` is no name, so that what stands before it otherwise is a type.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::syntax::tokens::{following, is_sign, keyword};

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    for at in (1..tokens.len()).rev().filter(|at| keyword(&tokens[*at]) == Keyword::ARRAY).collect::<Vec<_>>() {
        // `IS JSON ARRAY` is no type.
        let mut before = (0..at).rev().filter(|at| is_sign(&tokens[*at])).map(|at| keyword(&tokens[at]));
        let is_json = before.next() == Some(Keyword::JSON);
        if is_json && matches!(before.next(), Some(Keyword::IS | Keyword::NOT)) {
            continue;
        }
        let makes_one = following(tokens, at)
            .next()
            .is_some_and(|next| matches!(tokens[next].token, Token::LBracket | Token::LParen));
        let before = tokens[..at].iter().rfind(|token| is_sign(token));
        let is_behind_type =
            before.is_some_and(|before| matches!(before.token, Token::Word(_) | Token::RParen | Token::RBracket));
        if is_behind_type && !makes_one {
            let span = tokens[at].span;
            let brackets = [Token::LBracket, Token::RBracket].map(|token| TokenWithSpan { token, span });
            tokens.splice(at..=at, brackets);
        }
    }
}
