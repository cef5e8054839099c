//! Items and slices of arrays that are set, brought into words that the parser's library reads, among the tokens of a statement:
//!
//! ```text
//! SET a[2] = x + 1, b = 3    ->  SET "a\0" = "\0item"(2, x + 1), b = 3
//! SET a[2:3] = x             ->  SET "a\0" = "\0slice"(2, 3, x)
//! SET j['a'][2] = x          ->  SET "j\0" = "\0item"('a', 2, x)
//! ```
//!
//! The name that ends with a zero byte is that of the column; what sets the column calls the function for the column as well. A value ends
//! with its list of assignments or at a comma, outside of parentheses and of `CASE`.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

use crate::syntax::tokens::{closing, following, keyword};

/// The end of the name of a column of which a part is set.
pub(crate) const PART: char = '\0';

/// The function of an array with another item.
pub(crate) const ITEM: &str = "\0item";

/// The function of an array with another slice.
pub(crate) const SLICE: &str = "\0slice";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let sets: Vec<usize> = (0..tokens.len()).filter(|at| keyword(&tokens[*at]) == Keyword::SET).collect();
    // From the last one on, so that the places of those before stay.
    for set in sets.into_iter().rev() {
        for start in assignments(tokens, set).into_iter().rev() {
            rewrite(tokens, start);
        }
    }
}

/// Where the assignments behind a `SET` begin.
fn assignments(tokens: &[TokenWithSpan], set: usize) -> Vec<usize> {
    let mut starts: Vec<usize> = following(tokens, set).take(1).collect();
    let mut at = set;
    while let Some(comma) = end_of_value(tokens, at + 1)
        && tokens[comma].token == Token::Comma
    {
        starts.extend(following(tokens, comma).next());
        at = comma;
    }
    starts
}

/// The token at which a value that begins here has ended, if there is one.
fn end_of_value(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let (mut depth, mut before) = (0_usize, Keyword::NoKeyword);
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if depth == 0 => return Some(at),
            Token::RParen | Token::RBracket => depth -= 1,
            Token::Comma | Token::SemiColon | Token::EOF if depth == 0 => return Some(at),
            Token::Whitespace(_) => continue,
            _ => match keyword(token) {
                Keyword::CASE => depth += 1,
                Keyword::END if depth > 0 => depth -= 1,
                Keyword::FROM if before == Keyword::DISTINCT => {}
                Keyword::FROM | Keyword::WHERE | Keyword::RETURNING | Keyword::WHEN if depth == 0 => return Some(at),
                _ => {}
            },
        }
        before = keyword(token);
    }
    None
}

/// Rewrites the assignment that begins here if it is one of a part.
fn rewrite(tokens: &mut Vec<TokenWithSpan>, start: usize) {
    let Token::Word(column) = &tokens[start].token else { return };
    // Each pair of brackets, one behind the other.
    let (mut bounds, mut is_slice, mut last) = (Vec::new(), false, start);
    while let Some(open) = following(tokens, last).next().filter(|at| tokens[*at].token == Token::LBracket) {
        let Some(close) = closing(tokens, open) else { return };
        if !bounds.is_empty() {
            bounds.push(sign(Token::Comma, tokens[open].span));
        }
        let mut inner = tokens[open + 1..close].to_vec();
        if let Some(colon) = inner.iter().position(|token| token.token == Token::Colon) {
            (inner[colon].token, is_slice) = (Token::Comma, true);
        }
        bounds.extend(inner);
        last = close;
    }
    if bounds.is_empty() {
        return;
    }
    let Some(equals) = following(tokens, last).next().filter(|at| tokens[*at].token == Token::Eq) else { return };
    let end = end_of_value(tokens, equals + 1).unwrap_or(tokens.len());
    let name = match column.quote_style {
        Some(_) => column.value.clone(),
        None => column.value.to_lowercase(),
    };
    let span = tokens[start].span;
    let function = if is_slice { SLICE } else { ITEM };
    let mut made = vec![word(format!("{name}{PART}"), span), tokens[equals].clone(), word(function.to_owned(), span)];
    made.push(sign(Token::LParen, span));
    made.extend(bounds);
    made.push(sign(Token::Comma, span));
    made.extend_from_slice(&tokens[equals + 1..end]);
    made.push(sign(Token::RParen, span));
    tokens.splice(start..end, made);
}

fn word(value: String, span: Span) -> TokenWithSpan {
    sign(Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword }), span)
}

fn sign(token: Token, span: Span) -> TokenWithSpan {
    TokenWithSpan { token, span }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::source::Source;

    fn spelled(text: &str) -> String {
        let mut tokens = Source::new(text).tokens().unwrap();
        spell_out(&mut tokens);
        tokens.iter().map(|token| token.token.to_string()).collect::<String>().replace(PART, "#")
    }

    #[test]
    fn parts_of_columns_are_set_by_functions() {
        for (text, expected) in [
            ("UPDATE t SET a[1] = 2", r##"UPDATE t SET "a#"="#item"(1, 2)"##),
            ("UPDATE t SET A[1]=b[2],\"C\"[i + 1:3] = '{}' WHERE a[1]=2", {
                r##"UPDATE t SET "a#"="#item"(1,b[2]),"C#"="#slice"(i + 1,3, '{}' )WHERE a[1]=2"##
            }),
            ("UPDATE t SET a[1]=f(x,2), b=(1) RETURNING a, c[1] = 2", {
                r##"UPDATE t SET "a#"="#item"(1,f(x,2)), b=(1) RETURNING a, c[1] = 2"##
            }),
            (
                "SET a[1]=CASE WHEN x THEN 1 END IS DISTINCT FROM y FROM z",
                r##"SET "a#"="#item"(1,CASE WHEN x THEN 1 END IS DISTINCT FROM y )FROM z"##,
            ),
            ("UPDATE t SET j['a'] [2]=x, b=1", r##"UPDATE t SET "j#"="#item"('a',2,x), b=1"##),
            ("UPDATE t SET a = b[1], c = 2", "UPDATE t SET a = b[1], c = 2"),
            ("SET x = 'y'", "SET x = 'y'"),
        ] {
            assert_eq!(spelled(text), expected, "{text}");
        }
    }
}
