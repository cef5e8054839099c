//! Rows of tables where the parser's library looks for `*` of a select list alone, among the tokens of a statement:
//!
//! ```text
//! SELECT t.* IS NULL, t.*::text, t.* = u.*   ->  SELECT row(t.*) IS NULL, row(t.*)::text, row(t.*) = row(u.*)
//! SELECT (t).*                               ->  SELECT t.*
//! SELECT (f(x)).*                            ->  SELECT (f(x))."\0all fields"
//! ```
//!
//! The function is one that no statement can spell, and shown as its table; its call is the row of that.
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Select, SelectItem, SelectItemQualifiedWildcardKind, Value, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::syntax::tokens::{following, is_sign, keyword};

/// The field that stands for all of a row that is no table's.
const ALL_FIELDS: &str = "\0all fields";

/// How the name of the function begins; that of the table follows.
pub(crate) const ROW: &str = "\0row\0";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        let next = if tokens[at].token == Token::Period { following(tokens, at).next() } else { None };
        if let Some(star) = next
            && tokens[star].token == Token::Mul
        {
            rewrite(tokens, at, star);
        }
        at += 1;
    }
}

/// Makes all fields of a row in a select list what the parser's library has for them.
pub(crate) fn all_fields(select: &mut Select) {
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(Expr::CompoundFieldAccess { root, access_chain }) = item else { continue };
        if let [AccessExpr::Dot(Expr::Identifier(field))] = &access_chain[..]
            && field.value == ALL_FIELDS
        {
            let root = std::mem::replace(&mut **root, Expr::value(Value::Null));
            let kind = SelectItemQualifiedWildcardKind::Expr(root);
            *item = SelectItem::QualifiedWildcard(kind, WildcardAdditionalOptions::default());
        }
    }
}

/// Rewrites the `*` of what stands before a period.
fn rewrite(tokens: &mut Vec<TokenWithSpan>, period: usize, star: usize) {
    let before: Vec<usize> = (0..period).rev().filter(|at| is_sign(&tokens[*at])).take(4).collect();
    let is = |place: usize, wanted: &Token| before.get(place).is_some_and(|at| tokens[*at].token == *wanted);
    let is_word = |place: usize| before.get(place).is_some_and(|at| matches!(tokens[*at].token, Token::Word(_)));
    if is(0, &Token::RParen) && is_word(1) && is(2, &Token::LParen) {
        if before.get(3).is_some_and(|at| begins_item(&tokens[*at])) {
            tokens.remove(before[0]);
            tokens.remove(before[2]);
        }
        return;
    }
    if is(0, &Token::RParen) {
        tokens[star].token = Token::make_word(ALL_FIELDS, Some('"'));
        return;
    }
    if !is_word(0) || is(1, &Token::Period) {
        return;
    }
    let is_left = following(tokens, star).next().is_some_and(|next| {
        compares(&tokens[next].token)
            || tokens[next].token == Token::DoubleColon
            || matches!(keyword(&tokens[next]), Keyword::IS | Keyword::IN)
    });
    let is_right = before.get(1).is_some_and(|at| compares(&tokens[*at].token));
    if is_left || is_right {
        let (first, span) = (before[0], tokens[before[0]].span);
        let label = match &tokens[first].token {
            Token::Word(word) if word.quote_style.is_some() => word.value.clone(),
            other => other.to_string().to_lowercase(),
        };
        let made = |token: Token| TokenWithSpan { token, span };
        tokens.insert(star + 1, made(Token::RParen));
        tokens.insert(first, made(Token::LParen));
        tokens.insert(first, made(Token::make_word(&format!("{ROW}{label}"), Some('"'))));
    }
}

/// Whether a column of a select list may stand behind a token.
fn begins_item(token: &TokenWithSpan) -> bool {
    token.token == Token::Comma
        || matches!(keyword(token), Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL | Keyword::RETURNING)
}

fn compares(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::source::Source;

    #[test]
    fn rows_are_called_rows() {
        for (text, expected) in [
            ("SELECT t.* IS NULL, u.* FROM t", "SELECT \"#t\"(t.*) IS NULL, u.* FROM t"),
            ("SELECT t.*::text, t.*=u.* FROM t", "SELECT \"#t\"(t.*)::text, \"#t\"(t.*)=\"#u\"(u.*) FROM t"),
            ("SELECT (t).*, ( u ).*, f(t.*) FROM t", "SELECT t.*,  u .*, f(t.*) FROM t"),
            ("SELECT s.t.* FROM s.t WHERE a.b * 2 = 3", "SELECT s.t.* FROM s.t WHERE a.b * 2 = 3"),
            ("SELECT (f(x)).* FROM t", "SELECT (f(x)).\"all\" FROM t"),
        ] {
            let mut tokens = Source::new(text).tokens().unwrap();
            spell_out(&mut tokens);
            let spelled: String = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(spelled.replace(ROW, "#").replace(ALL_FIELDS, "all"), expected, "{text}");
        }
    }
}
