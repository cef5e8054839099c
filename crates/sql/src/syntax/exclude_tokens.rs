//! Exclusion constraints, brought into words that the parser's library reads, among the tokens of a statement:
//!
//! ```text
//! EXCLUDE USING gist (room WITH =, during WITH &&)  ->  UNIQUE "\0exclude" USING gist (room "\0with =", during "\0with &&")
//! EXCLUDE USING gist (room WITH =) WHERE (a > 1)     ->  UNIQUE "\0exclude" USING gist (room "\0with =", (a > 1) "\0where")
//! EXCLUDE (room WITH =) INCLUDE (a, b) WITH (fillfactor = 70)
//!                             ->  UNIQUE "\0exclude" USING btree (room "\0with =", (a, b) "\0beside", (fillfactor = 70) "\0options")
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

/// The operator class of an element that is the condition of the constraint.
pub(crate) const WHERE: &str = "\0where";
/// The operator class of an element that is the columns which its index is asked to have beside its keys.
pub(crate) const INCLUDE: &str = "\0beside";
/// The operator class of an element that is the options of its index.
pub(crate) const OPTIONS: &str = "\0options";

/// Changes the tokens of a statement.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let first = tokens.iter().find(|token| is_sign(token)).map_or(Keyword::NoKeyword, keyword);
    if !matches!(first, Keyword::CREATE | Keyword::ALTER) {
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        if is_start(tokens, at) {
            rewrite(tokens, at);
        }
        at += 1;
    }
}

/// Whether an exclusion constraint begins here: a method or a list with operators follows.
fn is_start(tokens: &[TokenWithSpan], at: usize) -> bool {
    if keyword(&tokens[at]) != Keyword::EXCLUDE {
        return false;
    }
    let Some(next) = following(tokens, at).next() else { return false };
    if tokens[next].token != Token::LParen {
        return keyword(&tokens[next]) == Keyword::USING;
    }
    let before = (0..at).rev().filter(|at| is_sign(&tokens[*at])).map(|at| &tokens[at]);
    let before: Vec<&TokenWithSpan> = before.take(2).collect();
    let is = |at: usize, word: Keyword| before.get(at).is_some_and(|token| keyword(token) == word);
    let begins_element = before.first().is_some_and(|token| matches!(token.token, Token::LParen | Token::Comma));
    let list = tokens[next..].iter().take_while(|token| token.token != Token::RParen);
    (begins_element || is(0, Keyword::ADD) || is(1, Keyword::CONSTRAINT))
        && list.into_iter().any(|token| keyword(token) == Keyword::WITH)
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

/// What follows the list that ends here behind a word and in parentheses, as one more element of it that is marked; where the list
/// ends then.
fn brought_in(tokens: &mut Vec<TokenWithSpan>, close: usize, before: Keyword, mark: &str) -> usize {
    let next: Vec<usize> = following(tokens, close).take(2).collect();
    let [first, open] = next[..] else { return close };
    if keyword(&tokens[first]) != before || tokens[open].token != Token::LParen {
        return close;
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
        return close;
    }
    let span = tokens[first].span;
    let sign = |token: Token| TokenWithSpan { token, span };
    let blank = Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space);
    let element = tokens[open..=end].to_vec();
    let marks = vec![sign(blank), sign(word(mark.to_owned())), sign(Token::RParen)];
    let made = [vec![sign(Token::Comma)], element, marks].concat();
    let last = close + made.len() - 1;
    tokens.splice(close..=end, made);
    last
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
    for (before, mark) in [(Keyword::INCLUDE, INCLUDE), (Keyword::WITH, OPTIONS), (Keyword::WHERE, WHERE)] {
        at = brought_in(tokens, at, before, mark);
    }
    let span = tokens[start].span;
    let unique = Token::make_keyword("UNIQUE");
    let blank = || Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space);
    let mut made = vec![unique, blank(), word(EXCLUDE.to_owned())];
    if following(tokens, start).next().is_some_and(|next| tokens[next].token == Token::LParen) {
        made.extend([blank(), Token::make_keyword("USING"), blank(), Token::make_word("btree", None)]);
    }
    tokens.splice(start..=start, made.into_iter().map(|token| TokenWithSpan { token, span }));
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
        let text =
            "ALTER TABLE t ADD EXCLUDE (a WITH =) INCLUDE (b, c) WITH (fillfactor = 70) WHERE (b > 1) DEFERRABLE";
        let expected = "ALTER TABLE t ADD UNIQUE \"#exclude\" USING btree (a \"#with =\",(b, c) \"#beside\",(fillfactor = 70) \
                        \"#options\",(b > 1) \"#where\") DEFERRABLE";
        assert_eq!(spelled(text), expected);
        for text in ["SELECT exclude using", "CREATE TABLE t (exclude int)", "WITH a AS (SELECT 1) SELECT 1"] {
            assert_eq!(spelled(text), text);
        }
    }
}
