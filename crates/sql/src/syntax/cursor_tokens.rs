//! `WHERE CURRENT OF cursor`, which the parser's library does not read, as a name that no statement can spell, among its tokens:
//!
//! ```text
//! UPDATE t SET a = 1 WHERE CURRENT OF c    ->  UPDATE t SET a = 1 WHERE "\0current of c"
//! ```
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::syntax::tokens::{following, keyword};

/// What the name begins with; that of the cursor follows.
const CURRENT_OF: &str = "\0current of ";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let Some(start) = tokens.iter().rposition(|token| keyword(token) == Keyword::WHERE) else { return };
    let [current, of, name] = following(tokens, start).take(3).collect::<Vec<_>>()[..] else { return };
    if keyword(&tokens[current]) != Keyword::CURRENT || keyword(&tokens[of]) != Keyword::OF {
        return;
    }
    if let Token::Word(word) = &tokens[name].token {
        let called = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
        let token = Token::make_word(&format!("{CURRENT_OF}{called}"), Some('"'));
        let span = tokens[name].span;
        tokens.splice(current..=name, [TokenWithSpan { token, span }]);
    }
}

/// The cursor on whose row a condition is, if it is about one.
pub(crate) fn cursor_of(condition: &Expr) -> Option<&str> {
    match condition {
        Expr::Identifier(name) => name.value.strip_prefix(CURRENT_OF),
        _ => None,
    }
}
