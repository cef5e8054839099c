//! A text as the tokens of JSON.
use super::fault::{JsonFault, What};

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    /// One of `{}[]:,`.
    Sign(u8),
    /// A string, with its escapes read if they were asked for.
    Text(String),
    Number,
    True,
    False,
    Null,
    End,
}

/// Reads one token after the other.
pub(super) struct Lexer<'a> {
    text: &'a str,
    /// Whether strings are wanted. Where they are not, their escapes are looked at and not read.
    reads_strings: bool,
    /// Where the last token begins.
    pub(super) start: usize,
    /// Where it ends.
    pub(super) end: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, reads_strings: bool) -> Lexer<'a> {
        Lexer { text, reads_strings, start: 0, end: 0 }
    }

    /// The text of the last token.
    pub(super) fn found(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    /// What is wrong with the last token.
    pub(super) fn fault(&self, what: What) -> JsonFault {
        JsonFault { what, start: self.start, end: self.end }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token, JsonFault> {
        let mut at = self.end;
        while matches!(self.byte(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            at += 1;
        }
        (self.start, self.end) = (at, at);
        let Some(first) = self.byte(at) else { return Ok(Token::End) };
        match first {
            b'{' | b'}' | b'[' | b']' | b':' | b',' => {
                self.end = at + 1;
                Ok(Token::Sign(first))
            }
            b'"' => self.string().map(Token::Text),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.word(),
        }
    }

    /// Where the run of characters ends that belong to a word.
    fn end_of_word(&self, from: usize) -> usize {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        from + self.text.as_bytes()[from..].iter().take_while(|byte| is_part(**byte)).count()
    }

    fn word(&mut self) -> Result<Token, JsonFault> {
        self.end = self.end_of_word(self.start);
        if self.end == self.start {
            self.end += 1;
        }
        match self.found() {
            "true" => Ok(Token::True),
            "false" => Ok(Token::False),
            "null" => Ok(Token::Null),
            _ => Err(self.fault(What::Token)),
        }
    }

    fn digits(&self, from: usize) -> usize {
        from + self.text.as_bytes()[from..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    fn number(&mut self) -> Result<Token, JsonFault> {
        let whole = self.start + usize::from(self.byte(self.start) == Some(b'-'));
        let (mut end, mut is_number) = match self.byte(whole) {
            Some(b'0') => (whole + 1, true),
            Some(b'1'..=b'9') => (self.digits(whole), true),
            _ => (whole, false),
        };
        if self.byte(end) == Some(b'.') {
            let behind = self.digits(end + 1);
            is_number &= behind > end + 1;
            end = behind;
        }
        if matches!(self.byte(end), Some(b'e' | b'E')) {
            let from = end + 1 + usize::from(matches!(self.byte(end + 1), Some(b'+' | b'-')));
            let behind = self.digits(from);
            is_number &= behind > from;
            end = behind;
        }
        self.end = self.end_of_word(end);
        if is_number && self.end == end { Ok(Token::Number) } else { Err(self.fault(What::Token)) }
    }

    /// A fault of a part of a string.
    fn fault_at(&self, what: What, start: usize, bytes: usize) -> JsonFault {
        let mut end = (start + bytes).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        JsonFault { what, start, end }
    }

    fn string(&mut self) -> Result<String, JsonFault> {
        let (mut read, mut at) = (String::new(), self.start + 1);
        let mut plain = at;
        loop {
            match self.byte(at) {
                None => {
                    self.end = at;
                    return Err(self.fault(What::Token));
                }
                Some(b'"') => {
                    if self.reads_strings {
                        read.push_str(&self.text[plain..at]);
                    }
                    self.end = at + 1;
                    return Ok(read);
                }
                Some(0..=0x1f) => return Err(self.fault_at(What::Control, at, 1)),
                Some(b'\\') => {
                    if self.reads_strings {
                        read.push_str(&self.text[plain..at]);
                    }
                    at = self.escape(at, &mut read)?;
                    plain = at;
                }
                Some(_) => at += 1,
            }
        }
    }

    /// Reads what a backslash stands before; gives where that ends.
    fn escape(&self, at: usize, read: &mut String) -> Result<usize, JsonFault> {
        let sign = match self.byte(at + 1) {
            Some(b'u') => return self.code(at, read),
            Some(sign @ (b'"' | b'\\' | b'/')) => char::from(sign),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            None => return Err(JsonFault { what: What::Token, start: self.start, end: self.text.len() }),
            Some(_) => return Err(self.fault_at(What::Escape, at, 2)),
        };
        if self.reads_strings {
            read.push(sign);
        }
        Ok(at + 2)
    }

    /// The number that four digits behind `\u` are.
    fn four_digits(&self, at: usize) -> Result<u32, JsonFault> {
        let digits = self.text.as_bytes().get(at + 2..at + 6);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        number.ok_or_else(|| self.fault_at(What::Digits, at, 6))
    }

    /// `\uXXXX`, or two of them that are the halves of a character.
    fn code(&self, at: usize, read: &mut String) -> Result<usize, JsonFault> {
        let first = self.four_digits(at)?;
        if !self.reads_strings {
            return Ok(at + 6);
        }
        let (code, end) = match first {
            0 => return Err(self.fault_at(What::Zero, at, 6)),
            0xd800..=0xdbff => {
                if self.byte(at + 6) != Some(b'\\') || self.byte(at + 7) != Some(b'u') {
                    return Err(self.fault_at(What::LowAlone, at, 6));
                }
                match self.four_digits(at + 6)? {
                    low @ 0xdc00..=0xdfff => (0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00), at + 12),
                    0xd800..=0xdbff => return Err(self.fault_at(What::HighBehindHigh, at, 12)),
                    _ => return Err(self.fault_at(What::LowAlone, at, 12)),
                }
            }
            0xdc00..=0xdfff => return Err(self.fault_at(What::LowAlone, at, 6)),
            code => (code, at + 6),
        };
        read.push(char::from_u32(code).ok_or_else(|| self.fault_at(What::Digits, at, 6))?);
        Ok(end)
    }
}
