//! `LIKE` among the columns of a `CREATE TABLE`, brought into words that the parser's library reads, among the tokens of a statement:
//!
//! ```text
//! CREATE TABLE t (LIKE s INCLUDING DEFAULTS, x int)    ->  CREATE TABLE t ("\0like" "s" ('including defaults'), x int)
//! ```
//!
//! So it is a column whose type is called as the other table is.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::syntax::tokens::{following, is_sign, keyword};

/// The name of the column that stands for those of another table.
pub(crate) const LIKE: &str = "\0like";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let signs: Vec<usize> = following(tokens, 0).take(4).collect();
    let first = tokens.iter().find(|token| is_sign(token)).map_or(Keyword::NoKeyword, keyword);
    let is_of_table = signs.iter().any(|at| keyword(&tokens[*at]) == Keyword::TABLE);
    if first != Keyword::CREATE || !is_of_table {
        return;
    }
    let (mut depth, mut starts) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let begins = matches!(token.token, Token::LParen | Token::Comma) && depth == 1;
        let next = following(tokens, at).next().filter(|next| begins && keyword(&tokens[*next]) == Keyword::LIKE);
        starts.extend(next);
    }
    for start in starts.into_iter().rev() {
        rewrite(tokens, start);
    }
}

/// Rewrites the clause that begins here.
fn rewrite(tokens: &mut Vec<TokenWithSpan>, start: usize) {
    let is_end = |token: &TokenWithSpan| matches!(token.token, Token::Comma | Token::RParen | Token::EOF);
    let Some(length) = tokens[start..].iter().position(is_end) else { return };
    let span = tokens[start].span;
    let word = |value: String| Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword });
    let (mut made, mut options) = (vec![word(LIKE.to_owned())], Vec::new());
    for token in &tokens[start + 1..start + length] {
        match (&token.token, keyword(token)) {
            (Token::Whitespace(_), _) => {}
            (_, Keyword::INCLUDING | Keyword::EXCLUDING) => options.push(token.token.to_string().to_lowercase()),
            (other, _) if let Some(option) = options.last_mut() => {
                option.push(' ');
                option.push_str(&other.to_string().to_lowercase());
            }
            (Token::Word(name), _) => made.push(word(match name.quote_style {
                Some(_) => name.value.clone(),
                None => name.value.to_lowercase(),
            })),
            (other, _) => made.push(other.clone()),
        }
    }
    for (at, option) in options.into_iter().enumerate() {
        made.push(if at == 0 { Token::LParen } else { Token::Comma });
        made.push(Token::SingleQuotedString(option));
    }
    if matches!(made.last(), Some(Token::SingleQuotedString(_))) {
        made.push(Token::RParen);
    }
    tokens.splice(start..start + length, made.into_iter().map(|token| TokenWithSpan { token, span }));
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
    fn other_tables_are_columns_with_a_type_of_their_name() {
        for (text, expected) in [
            ("CREATE TABLE t (LIKE S)", r##"CREATE TABLE t ("#like""s")"##),
            (
                "create table t (x int CHECK (a LIKE 'b'), LIKE a.\"B\" INCLUDING ALL EXCLUDING indexes)",
                r##"create table t (x int CHECK (a LIKE 'b'), "#like""a"."B"('including all','excluding indexes'))"##,
            ),
            ("CREATE VIEW v AS SELECT (a LIKE b)", "CREATE VIEW v AS SELECT (a LIKE b)"),
        ] {
            assert_eq!(spelled(text), expected, "{text}");
        }
    }
}
