//! Exclusion constraints, brought into words that the parser's library reads, among the tokens of a statement:
//!
//! ```text
//! EXCLUDE USING gist (room WITH =, during WITH &&)  ->  UNIQUE "\0exclude" USING gist (room "\0with =", during "\0with &&")
//! EXCLUDE USING gist (room WITH =) WHERE (a > 1)     ->  UNIQUE "\0exclude" USING gist (room "\0with =", (a > 1) "\0where")
//! ```
//!
//! So each is a UNIQUE constraint with operator classes that no statement can name: that of the element, if it has one, follows the
//! operator.
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::syntax::tokens::{following, is_sign, keyword};

/// The index name of a UNIQUE constraint that stands for an exclusion constraint.
pub(crate) const EXCLUDE: &str = "\0exclude";
/// What its operator classes begin with; the operator follows, and behind a blank the class.
pub(crate) const WITH: &str = "\0with ";

/// The operator class of the last element, if that is the condition of the constraint.
pub(crate) const WHERE: &str = "\0where";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let first = tokens.iter().find(|token| is_sign(token)).map_or(Keyword::NoKeyword, keyword);
    if !matches!(first, Keyword::CREATE | Keyword::ALTER) {
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        let is_start = keyword(&tokens[at]) == Keyword::EXCLUDE
            && following(tokens, at).next().is_some_and(|next| keyword(&tokens[next]) == Keyword::USING);
        if is_start {
            rewrite(tokens, at);
        }
        at += 1;
    }
}

fn word(value: String) -> Token {
    Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword })
}

/// The operator class of an element, if one stands in front of its WITH, and where.
fn class_before(tokens: &[TokenWithSpan], with: usize) -> Option<(String, usize)> {
    let mut before = (0..with).rev().filter(|at| is_sign(&tokens[*at]));
    let (place, element) = (before.next()?, before.next()?);
    let follows_element = match &tokens[element].token {
        Token::RParen => true,
        Token::Word(_) => keyword(&tokens[element]) != Keyword::COLLATE,
        _ => false,
    };
    match &tokens[place].token {
        Token::Word(class) if follows_element => Some((class.value.to_lowercase(), place)),
        _ => None,
    }
}

/// The condition that follows the list which ends here, as one more element of it.
fn predicate(tokens: &mut Vec<TokenWithSpan>, close: usize) {
    let next: Vec<usize> = following(tokens, close).take(2).collect();
    let [first, open] = next[..] else { return };
    if keyword(&tokens[first]) != Keyword::WHERE || tokens[open].token != Token::LParen {
        return;
    }
    let (mut depth, mut end) = (0_usize, open);
    while end < tokens.len() {
        match tokens[end].token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => break,
            Token::RParen => depth -= 1,
            _ => {}
        }
        end += 1;
    }
    if end == tokens.len() {
        return;
    }
    let span = tokens[first].span;
    let sign = |token: Token| TokenWithSpan { token, span };
    let blank = Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space);
    let condition = tokens[open..=end].to_vec();
    let marks = vec![sign(blank), sign(word(WHERE.to_owned())), sign(Token::RParen)];
    tokens.splice(close..=end, [vec![sign(Token::Comma)], condition, marks].concat());
}

/// Rewrites the constraint that begins here.
fn rewrite(tokens: &mut Vec<TokenWithSpan>, start: usize) {
    let (mut depth, mut at) = (0_usize, start);
    while at < tokens.len() {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => break,
            Token::RParen => depth -= 1,
            Token::Word(_) if depth == 1 && keyword(&tokens[at]) == Keyword::WITH => {
                let operator = following(tokens, at).next();
                if let Some(operator) = operator {
                    let (mut name, mut first) = (format!("{WITH}{}", tokens[operator].token), at);
                    if let Some((class, place)) = class_before(tokens, at) {
                        (name, first) = (format!("{name} {class}"), place);
                    }
                    let span = tokens[first].span;
                    tokens.splice(first..=operator, [TokenWithSpan { token: word(name), span }]);
                    at = first;
                }
            }
            _ => {}
        }
        at += 1;
    }
    predicate(tokens, at);
    let span = tokens[start].span;
    let unique = Token::make_keyword("UNIQUE");
    let blank = Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space);
    let made = [unique, blank, word(EXCLUDE.to_owned())];
    tokens.splice(start..=start, made.map(|token| TokenWithSpan { token, span }));
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
    fn operators_become_classes_and_other_statements_stay() {
        let text = "CREATE TABLE t (a int, CONSTRAINT n EXCLUDE USING gist (a WITH =, (f(a, 1)) WITH &&), b int)";
        let expected = "CREATE TABLE t (a int, CONSTRAINT n UNIQUE \"#exclude\" USING gist (a \"#with =\", (f(a, 1)) \
                        \"#with &&\"), b int)";
        assert_eq!(spelled(text), expected);
        let text =
            "CREATE TABLE t (EXCLUDE USING gist (a INET_ops WITH &&, (b) range_ops WITH =, c COLLATE \"C\" WITH =))";
        let expected = "CREATE TABLE t (UNIQUE \"#exclude\" USING gist (a \"#with && inet_ops\", (b) \"#with = range_ops\", \
                        c COLLATE \"C\" \"#with =\"))";
        assert_eq!(spelled(text), expected);
        let text = "CREATE TABLE t (EXCLUDE USING gist (a WITH =) WHERE (b > (1)), c int)";
        let expected = "CREATE TABLE t (UNIQUE \"#exclude\" USING gist (a \"#with =\",(b > (1)) \"#where\"), c int)";
        assert_eq!(spelled(text), expected);
        for text in ["SELECT exclude using", "CREATE TABLE t (exclude int)", "WITH a AS (SELECT 1) SELECT 1"] {
            assert_eq!(spelled(text), text);
        }
    }
}
