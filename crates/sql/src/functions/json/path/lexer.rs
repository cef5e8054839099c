//! The text of a path as tokens.
use std::ops::Range;

use crate::error::SqlError;

/// A token, and where it stands.
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) place: Range<usize>,
}

#[derive(PartialEq)]
pub(super) enum TokenKind {
    /// a name or a word of the language
    Word(String),
    Text(String),
    Variable(String),
    Number(String),
    Sign(&'static str),
    End,
    /// what is no token
    Wrong(Box<SqlError>),
}

/// Signs, those first that begin as another one.
const SIGNS: [&str; 29] = [
    "&&", "||", "**", "<=", "<>", "==", "!=", ">=", "<", ">", "!", "?", "%", "$", ".", "[", "]", "{", "}", "(", ")",
    "|", "&", "=", "@", "#", ",", "*", ":",
];
const MORE_SIGNS: [&str; 3] = ["-", "+", "/"];

/// The tokens of a text; the last is its end, or what is no token, which is an error only where somebody gets as far.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        let blanks = lexer.skip_blanks();
        let start = lexer.at;
        let kind = blanks.and_then(|()| lexer.token()).unwrap_or_else(|error| TokenKind::Wrong(Box::new(error)));
        let is_last = matches!(kind, TokenKind::End | TokenKind::Wrong(_));
        let end = lexer.at;
        // PostgreSQL says of a word the blank behind it.
        let rest = lexer.rest();
        let behind = rest.find(|sign| !is_blank(sign)).unwrap_or(rest.len());
        let place = if let TokenKind::Word(_) = kind { end..end + behind } else { start..end };
        tokens.push(Token { kind, place });
        if is_last {
            return tokens;
        }
    }
}

/// An error at a part of a path.
pub(super) fn wrong(message: &str, near: &str) -> SqlError {
    match near {
        "" => SqlError::syntax(format!("{message} at end of jsonpath input")),
        near => SqlError::syntax(format!("{message} at or near \"{near}\" of jsonpath input")),
    }
}

fn is_blank(sign: char) -> bool {
    matches!(sign, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// Whether a name may have the character as it is.
fn is_of_name(sign: char) -> bool {
    !is_blank(sign) && !"?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(sign)
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip_blanks(&mut self) -> Result<(), SqlError> {
        loop {
            self.take_while(is_blank);
            if !self.rest().starts_with("/*") {
                return Ok(());
            }
            match self.rest().get(2..).and_then(|rest| rest.find("*/")) {
                Some(length) => self.at += length + 4,
                None => return Err(wrong("unexpected end of comment", "")),
            }
        }
    }

    fn take_while(&mut self, is_in: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|sign| !is_in(sign)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn token(&mut self) -> Result<TokenKind, SqlError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(TokenKind::End) };
        let second = rest[first.len_utf8()..].chars().next();
        if first.is_ascii_digit() || (first == '.' && second.is_some_and(|sign| sign.is_ascii_digit())) {
            return self.number();
        }
        match (first, second) {
            ('"', _) => {
                self.at += 1;
                Ok(TokenKind::Text(self.quoted()?))
            }
            ('$', Some('"')) => {
                self.at += 2;
                Ok(TokenKind::Variable(self.quoted()?))
            }
            ('$', Some(sign)) if is_of_name(sign) => {
                self.at += 1;
                Ok(TokenKind::Variable(self.take_while(is_of_name).to_owned()))
            }
            (sign, _) if sign == '\\' || is_of_name(sign) => Ok(TokenKind::Word(self.name()?)),
            _ => match SIGNS.iter().chain(&MORE_SIGNS).find(|sign| rest.starts_with(**sign)) {
                Some(sign) => {
                    self.at += sign.len();
                    // Both are the same.
                    Ok(TokenKind::Sign(if *sign == "<>" { "!=" } else { sign }))
                }
                None => Err(wrong("syntax error", &first.to_string())),
            },
        }
    }

    /// `12`, `1.5`, `1.`, `.5`, `1e-3`
    fn number(&mut self) -> Result<TokenKind, SqlError> {
        let start = self.at;
        match self.rest().starts_with('0') {
            true => self.at += 1,
            false => drop(self.take_while(|sign| sign.is_ascii_digit())),
        }
        if self.peek() == Some('.') {
            self.at += 1;
            self.take_while(|sign| sign.is_ascii_digit());
        }
        let mantissa = self.at;
        if let Some('e' | 'E') = self.peek() {
            self.at += 1;
            if let Some('+' | '-') = self.peek() {
                self.at += 1;
            }
            if self.take_while(|sign| sign.is_ascii_digit()).is_empty() {
                return Err(wrong("trailing junk after numeric literal", &self.text[start..self.at]));
            }
        }
        if let Some(sign) = self.peek().filter(|sign| is_of_name(*sign)) {
            let end = self.at.max(mantissa) + sign.len_utf8();
            return Err(wrong("trailing junk after numeric literal", &self.text[start..end]));
        }
        Ok(TokenKind::Number(self.text[start..self.at].to_owned()))
    }

    fn name(&mut self) -> Result<String, SqlError> {
        let mut name = String::new();
        loop {
            name.push_str(self.take_while(is_of_name));
            match self.peek() {
                Some('\\') => self.escape(&mut name)?,
                _ => return Ok(name),
            }
        }
    }

    /// What stands up to a quote.
    fn quoted(&mut self) -> Result<String, SqlError> {
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|sign| sign != '"' && sign != '\\'));
            match self.peek() {
                Some('\\') => self.escape(&mut text)?,
                Some(_) => {
                    self.at += 1;
                    return Ok(text);
                }
                None => return Err(wrong("unexpected end of quoted string", "")),
            }
        }
    }

    /// A backslash and what follows.
    fn escape(&mut self, out: &mut String) -> Result<(), SqlError> {
        let start = self.at;
        self.at += 1;
        let Some(sign) = self.next() else { return Err(wrong("unexpected end after backslash", "")) };
        out.push(match sign {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => {
                let digits = self.rest().get(..2).filter(|digits| is_hex(digits));
                let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                    return Err(wrong("invalid hex character sequence", &self.text[start..self.at]));
                };
                self.at += 2;
                unicode(byte.into())?
            }
            'u' => {
                let code = self.code(start)?;
                self.pair(code)?
            }
            other => other,
        });
        Ok(())
    }

    /// The number behind `\u`.
    fn code(&mut self, start: usize) -> Result<u32, SqlError> {
        let rest = self.rest();
        let (digits, length) = match rest.strip_prefix('{') {
            Some(rest) => {
                let digits = rest.split('}').next().unwrap_or_default();
                (digits, digits.len() + 2)
            }
            None => (rest.get(..4).unwrap_or_default(), 4),
        };
        let is_whole = rest.len() >= length && (1..=6).contains(&digits.len()) && is_hex(digits);
        match u32::from_str_radix(digits, 16) {
            Ok(code) if is_whole => {
                self.at += length;
                Ok(code)
            }
            _ => {
                self.take_while(|sign| sign.is_ascii_hexdigit() || sign == '{');
                Err(wrong("invalid unicode sequence", &self.text[start..self.at]))
            }
        }
    }

    /// A character of one code, or of two halves.
    fn pair(&mut self, code: u32) -> Result<char, SqlError> {
        let halves = |why: &str| {
            SqlError::new("22P02", "invalid input syntax for type jsonpath").detail(format!("Unicode {why}."))
        };
        match code {
            0xd800..=0xdbff => {
                let start = self.at;
                if !self.rest().starts_with("\\u") {
                    return Err(halves("low surrogate must follow a high surrogate"));
                }
                self.at += 2;
                match self.code(start)? {
                    low @ 0xdc00..=0xdfff => unicode(0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff)),
                    0xd800..=0xdbff => Err(halves("high surrogate must not follow a high surrogate")),
                    _ => Err(halves("low surrogate must follow a high surrogate")),
                }
            }
            0xdc00..=0xdfff => Err(halves("low surrogate must follow a high surrogate")),
            code => unicode(code),
        }
    }
}

fn is_hex(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn unicode(code: u32) -> Result<char, SqlError> {
    match char::from_u32(code) {
        Some('\0') => Err(SqlError::new("22P05", "unsupported Unicode escape sequence")
            .detail("\\u0000 cannot be converted to text.")),
        Some(sign) => Ok(sign),
        None => Err(SqlError::new("22P02", "invalid input syntax for type jsonpath")
            .detail("Unicode escape value could not be translated.")),
    }
}
