//! Texts with numbers of characters, intervals with digits, arrays of arguments, and operators with their schemas, brought into words that
//! the parser's library reads, among the tokens of a statement:
//!
//! ```text
//! U&'d\0061t'                        ->  'dat'
//! U&'d!0061t' UESCAPE '!'            ->  'dat'
//! U&"d\0061t"                        ->  "dat"
//! interval(3) '1.5'                  ->  interval '1.5' SECOND(3)
//! f(a, VARIADIC b)                   ->  f(a, "\0variadic" => b)
//! a OPERATOR(public.<>) b            ->  a <> b
//! COMMENT ON TABLE t IS $$it's$$     ->  COMMENT ON TABLE t IS 'it''s'
//! ```
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::syntax::source::Source;
use crate::syntax::tokens::{following, keyword};

/// The name of an argument that is an array of arguments.
pub(crate) const VARIADIC: &str = "\0variadic";

/// Changes the tokens of a statement.
///
/// # Errors
/// If a number is no character's, or the sign before it can't be one.
pub(crate) fn spell_out(tokens: &mut Vec<TokenWithSpan>, source: &Source) -> Result<()> {
    let first = tokens.iter().find(|token| !matches!(token.token, Token::Whitespace(_)));
    let is_comment = first.is_some_and(|first| keyword(first) == Keyword::COMMENT);
    for at in (0..tokens.len()).rev() {
        // Tokens that were taken out have left fewer than there were.
        let Some(token) = tokens.get(at) else { continue };
        match &token.token {
            Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("variadic") => {
                variadic(tokens, at);
            }
            Token::Word(_) if keyword(&tokens[at]) == Keyword::INTERVAL => digits_behind(tokens, at),
            Token::Word(_) if keyword(&tokens[at]) == Keyword::OPERATOR => operator_behind(tokens, at),
            // The library takes no other texts for those of comments.
            Token::DollarQuotedString(text) if is_comment => {
                tokens[at].token = Token::SingleQuotedString(text.value.clone());
            }
            Token::UnicodeStringLiteral(_) => {
                let start = source.start(tokens[at].span);
                let raw = start.and_then(|start| raw_text(&source.text[start..])).map(str::to_owned);
                let Some(raw) = raw else { continue };
                let text = decoded(&raw.replace("''", "'"), escape(tokens, at)?);
                tokens[at].token = Token::SingleQuotedString(text.map_err(|error| error.at(start))?);
            }
            Token::Word(word) if word.quote_style == Some('"') && is_marked(tokens, at) => {
                let (raw, start) = (word.value.clone(), source.start(tokens[at].span));
                let name = decoded(&raw, escape(tokens, at)?).map_err(|error| error.at(start))?;
                tokens[at].token = Token::make_word(&name, Some('"'));
                tokens.drain(at - 2..at);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether `U&` stands right before this token.
fn is_marked(tokens: &[TokenWithSpan], at: usize) -> bool {
    let [.., letter, sign] = &tokens[..at] else { return false };
    let is_letter = matches!(&letter.token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("u"));
    is_letter && sign.token == Token::Ampersand
}

/// What stands between the quotes of a literal that a text begins with.
fn raw_text(text: &str) -> Option<&str> {
    let inner = &text[text.find('\'')? + 1..];
    let mut from = 0;
    loop {
        let quote = from + inner[from..].find('\'')?;
        if !inner[quote + 1..].starts_with('\'') {
            return Some(&inner[..quote]);
        }
        from = quote + 2;
    }
}

/// The sign that stands before numbers; `UESCAPE` and what it says are taken out of the tokens behind.
fn escape(tokens: &mut Vec<TokenWithSpan>, at: usize) -> Result<char> {
    let next: Vec<usize> = following(tokens, at).take(2).collect();
    let [word, sign] = next[..] else { return Ok('\\') };
    let is_it = matches!(&tokens[word].token, Token::Word(word) if word.value.eq_ignore_ascii_case("uescape"));
    let Token::SingleQuotedString(text) = &tokens[sign].token else { return Ok('\\') };
    if !is_it {
        return Ok('\\');
    }
    let mut signs = text.chars();
    let found = match (signs.next(), signs.next()) {
        (Some(one), None) if !one.is_ascii_hexdigit() && !one.is_whitespace() && !"+'\"".contains(one) => one,
        _ => return Err(SqlError::syntax("invalid Unicode escape character")),
    };
    tokens.drain(at + 1..=sign);
    Ok(found)
}

/// A text with the characters that its numbers are of: four digits, or six behind a plus; the sign twice is itself.
fn decoded(text: &str, escape: char) -> Result<String> {
    let wrong = || {
        let error = SqlError::syntax("invalid Unicode escape");
        error.hint("Unicode escapes must be \\XXXX or \\+XXXXXX.")
    };
    let (mut plain, mut rest, mut high) = (String::with_capacity(text.len()), text, None::<u32>);
    let unpaired = || SqlError::syntax("invalid Unicode surrogate pair");
    while let Some(place) = rest.find(escape) {
        if high.is_some() && place > 0 {
            return Err(unpaired());
        }
        plain.push_str(&rest[..place]);
        rest = &rest[place + escape.len_utf8()..];
        if high.is_none()
            && let Some(behind) = rest.strip_prefix(escape)
        {
            plain.push(escape);
            rest = behind;
            continue;
        }
        let (digits, behind) = match rest.strip_prefix('+') {
            Some(long) => (long.get(..6), long.get(6..)),
            None => (rest.get(..4), rest.get(4..)),
        };
        let (digits, behind) = digits.zip(behind).ok_or_else(wrong)?;
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')).ok_or_else(wrong)?;
        let number = match (high.take(), number) {
            (Some(first), 0xDC00..=0xDFFF) => 0x1_0000 + (((first - 0xD800) << 10) | (number - 0xDC00)),
            (None, 0xD800..=0xDBFF) => {
                high = Some(number);
                rest = behind;
                continue;
            }
            (Some(_), _) | (None, 0xDC00..=0xDFFF) => return Err(unpaired()),
            (None, number) => number,
        };
        let invalid = || SqlError::syntax("invalid Unicode escape value");
        plain.push(char::from_u32(number).filter(|sign| *sign != '\0').ok_or_else(invalid)?);
        rest = behind;
    }
    if high.is_some() {
        return Err(unpaired());
    }
    plain.push_str(rest);
    Ok(plain)
}

/// The digits of an interval behind its text.
fn digits_behind(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let next: Vec<usize> = following(tokens, at).take(4).collect();
    let [open, number, close, text] = next[..] else { return };
    let [open, number, close, text] = [open, number, close, text].map(|at| tokens[at].clone());
    if let (Token::LParen, Token::Number(..), Token::RParen, Token::SingleQuotedString(_)) =
        (&open.token, &number.token, &close.token, &text.token)
    {
        let second = TokenWithSpan { token: Token::make_word("SECOND", None), span: open.span };
        tokens.splice(next[0]..=next[3], [text, second, open, number, close]);
    }
}

/// The operator that `OPERATOR(schema.sign)` names, of the catalog or of `public`, where extensions have theirs.
fn operator_behind(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let next: Vec<usize> = following(tokens, at).take(5).collect();
    let schema = |at: usize| match &tokens[at].token {
        Token::Word(word) => ["pg_catalog", "public"].contains(&word.value.to_lowercase().as_str()),
        _ => false,
    };
    let is = |at: usize, token: &Token| tokens[at].token == *token;
    let sign = match next[..] {
        [open, sign, close, ..] if is(open, &Token::LParen) && is(close, &Token::RParen) => Some((sign, close)),
        [open, name, dot, sign, close] if is(open, &Token::LParen) && is(close, &Token::RParen) => {
            (schema(name) && is(dot, &Token::Period)).then_some((sign, close))
        }
        _ => None,
    };
    let is_word = |at: usize| matches!(tokens[at].token, Token::Word(_) | Token::Number(..));
    if let Some((sign, close)) = sign.filter(|(sign, _)| !is_word(*sign)) {
        let sign = tokens[sign].clone();
        tokens.splice(at..=close, [sign]);
    }
}

/// `VARIADIC` before the last argument of a call.
fn variadic(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let before = (0..at).rev().find(|at| crate::syntax::tokens::is_sign(&tokens[*at]));
    let is_argument = before.is_some_and(|at| matches!(tokens[at].token, Token::LParen | Token::Comma));
    let begins = following(tokens, at).next().is_some_and(|next| {
        !matches!(tokens[next].token, Token::Comma | Token::RParen | Token::RArrow | Token::Period)
    });
    let first = tokens.iter().find(|token| crate::syntax::tokens::is_sign(token)).map(keyword);
    let is_definition = matches!(first, Some(Keyword::CREATE | Keyword::DROP | Keyword::ALTER | Keyword::COMMENT))
        && !tokens.iter().any(|token| matches!(keyword(token), Keyword::SELECT | Keyword::TABLE));
    if is_argument && begins && !is_definition {
        let span = tokens[at].span;
        let made = [Token::make_word(VARIADIC, Some('"')), Token::RArrow];
        tokens.splice(at..=at, made.map(|token| TokenWithSpan { token, span }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> String {
        let source = Source::new(text);
        let mut tokens = source.tokens().unwrap();
        spell_out(&mut tokens, &source).unwrap();
        tokens.iter().map(|token| token.token.to_string()).collect::<String>().replace('\0', "#")
    }

    #[test]
    fn numbers_become_characters() {
        // Tokens are shown without the quotes within them doubled.
        assert_eq!(spelled(r"SELECT U&'d\0061t\+000061', U&'it''s \\'"), r"SELECT 'data', 'it's \'");
        assert_eq!(spelled(r"SELECT U&'d!0061' UESCAPE '!' || 'x'"), r"SELECT 'da' || 'x'");
        assert_eq!(spelled(r#"SELECT U&"d\0061t" FROM u"#), r#"SELECT "dat" FROM u"#);
        assert_eq!(decoded(r"\D83D\DE00", '\\').unwrap(), "\u{1F600}");
        for wrong in [r"\00", r"\zzzz", r"\D83D", r"\0000", r"\DE00", r"\+110000"] {
            assert!(decoded(wrong, '\\').is_err(), "{wrong}");
        }
    }

    #[test]
    fn operators_are_known_without_their_schemas() {
        assert_eq!(spelled("a OPERATOR(pg_catalog.~) b"), "a ~ b");
        assert_eq!(spelled("(a OPERATOR ( public . <> ) b)"), "(a <> b)");
        assert_eq!(spelled("a OPERATOR(=) b OPERATOR(other.=) c"), "a = b OPERATOR(other.=) c");
    }

    #[test]
    fn digits_of_an_interval_stand_behind_its_text() {
        assert_eq!(
            spelled("SELECT interval (3)'1.5', a::interval(3)"),
            "SELECT interval '1.5'SECOND(3), a::interval(3)"
        );
    }

    #[test]
    fn an_array_of_arguments_is_one_of_a_name() {
        assert_eq!(spelled("SELECT f(1, VARIADIC b)"), "SELECT f(1, \"#variadic\"=> b)");
        for text in ["SELECT variadic, a", "SELECT (variadic)", "CREATE FUNCTION f(VARIADIC a int[])"] {
            assert_eq!(spelled(text), text);
        }
    }
}
