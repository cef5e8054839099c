//! JSON read from its text: as a tree, checked only, or taken apart one level deep.
use std::ops::Range;

use super::fault::{DEPTH_MAX, JsonFault, What};
use super::lexer::{Lexer, Token};
use super::number::JsonNumber;
use super::tree::Json;

/// What is made of the parts of a text.
trait Make {
    type Value;
    const READS_STRINGS: bool;
    fn plain(&mut self, token: Token, lexer: &Lexer<'_>) -> Result<Self::Value, JsonFault>;
    fn array(&mut self, items: Vec<(Range<usize>, Self::Value)>) -> Self::Value;
    fn object(&mut self, members: Vec<(String, Range<usize>, Self::Value)>) -> Self::Value;
}

struct Parser<'a, M> {
    lexer: Lexer<'a>,
    token: Token,
    /// Where the token before it ends.
    last_end: usize,
    depth: usize,
    make: M,
}

impl<'a, M: Make> Parser<'a, M> {
    fn whole(text: &'a str, make: M) -> Result<M::Value, JsonFault> {
        let mut lexer = Lexer::new(text, M::READS_STRINGS);
        let token = lexer.next()?;
        let mut parser = Parser { lexer, token, last_end: 0, depth: 0, make };
        let value = parser.value(What::Value)?;
        match parser.token {
            Token::End => Ok(value),
            _ => Err(parser.fault(What::Behind)),
        }
    }

    fn fault(&self, what: What) -> JsonFault {
        let is_end = self.token == Token::End;
        self.lexer.fault(if is_end { What::Ended } else { what })
    }

    fn advance(&mut self) -> Result<Token, JsonFault> {
        self.last_end = self.lexer.end;
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// A value; `otherwise` says what is missing where there is none.
    fn value(&mut self, otherwise: What) -> Result<M::Value, JsonFault> {
        match self.token {
            Token::Sign(b'{') => self.nested(Self::object),
            Token::Sign(b'[') => self.nested(Self::array),
            Token::Sign(_) | Token::End => Err(self.fault(otherwise)),
            _ => {
                let token = std::mem::replace(&mut self.token, Token::End);
                let value = self.make.plain(token, &self.lexer)?;
                self.advance()?;
                Ok(value)
            }
        }
    }

    fn nested(&mut self, read: impl Fn(&mut Self) -> Result<M::Value, JsonFault>) -> Result<M::Value, JsonFault> {
        if self.depth == DEPTH_MAX {
            return Err(self.lexer.fault(What::Depth));
        }
        self.depth += 1;
        self.advance()?;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// A value, and the bytes of the text that it is.
    fn ranged(&mut self, otherwise: What) -> Result<(Range<usize>, M::Value), JsonFault> {
        let start = self.lexer.start;
        let value = self.value(otherwise)?;
        Ok((start..self.last_end, value))
    }

    fn array(&mut self) -> Result<M::Value, JsonFault> {
        let mut items = Vec::new();
        if self.token == Token::Sign(b']') {
            self.advance()?;
            return Ok(self.make.array(items));
        }
        items.push(self.ranged(What::FirstItem)?);
        loop {
            match self.token {
                Token::Sign(b',') => self.advance()?,
                Token::Sign(b']') => {
                    self.advance()?;
                    return Ok(self.make.array(items));
                }
                _ => return Err(self.fault(What::NextItem)),
            };
            items.push(self.ranged(What::Value)?);
        }
    }

    fn object(&mut self) -> Result<M::Value, JsonFault> {
        let mut members = Vec::new();
        if self.token == Token::Sign(b'}') {
            self.advance()?;
            return Ok(self.make.object(members));
        }
        let mut missing = What::FirstKey;
        loop {
            let Token::Text(_) = self.token else { return Err(self.fault(missing)) };
            let Token::Text(key) = self.advance()? else { return Err(self.fault(missing)) };
            if self.token != Token::Sign(b':') {
                return Err(self.fault(What::Colon));
            }
            self.advance()?;
            let (range, value) = self.ranged(What::Value)?;
            members.push((key, range, value));
            missing = What::Key;
            match self.token {
                Token::Sign(b',') => self.advance()?,
                Token::Sign(b'}') => {
                    self.advance()?;
                    return Ok(self.make.object(members));
                }
                _ => return Err(self.fault(What::NextKey)),
            };
        }
    }
}

struct Tree;

impl Make for Tree {
    type Value = Json;
    const READS_STRINGS: bool = true;

    fn plain(&mut self, token: Token, lexer: &Lexer<'_>) -> Result<Json, JsonFault> {
        Ok(match token {
            Token::Text(text) => Json::Text(text),
            Token::True => Json::Boolean(true),
            Token::False => Json::Boolean(false),
            Token::Number => {
                let number = JsonNumber::read(lexer.found());
                Json::Number(number.ok_or_else(|| lexer.fault(What::Overflow))?)
            }
            _ => Json::Null,
        })
    }

    fn array(&mut self, items: Vec<(Range<usize>, Json)>) -> Json {
        Json::Array(items.into_iter().map(|(_, item)| item).collect())
    }

    fn object(&mut self, members: Vec<(String, Range<usize>, Json)>) -> Json {
        Json::object(members.into_iter().map(|(key, _, value)| (key, value)).collect())
    }
}

impl Json {
    /// Reads a text.
    ///
    /// # Errors
    /// Where the text is no JSON, or has a number or a character that no `jsonb` has.
    pub fn parse(text: &str) -> Result<Json, JsonFault> {
        Parser::whole(text, Tree)
    }
}

struct Nothing;

impl Make for Nothing {
    type Value = ();
    const READS_STRINGS: bool = false;

    fn plain(&mut self, _: Token, _: &Lexer<'_>) -> Result<(), JsonFault> {
        Ok(())
    }

    fn array(&mut self, _: Vec<(Range<usize>, ())>) {}

    fn object(&mut self, _: Vec<(String, Range<usize>, ())>) {}
}

/// Checks that a text is a `json`.
///
/// # Errors
/// Where it is none.
pub fn check_json(text: &str) -> Result<(), JsonFault> {
    Parser::whole(text, Nothing)
}

/// The parts of a value in its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Members {
    /// The value has no parts. A string is read, of others it is the text.
    Plain {
        /// the value as text; `None` for `null`
        text: Option<String>,
        /// PostgreSQL's name of its type
        kind: &'static str,
    },
    /// Where the items of an array are.
    Array(Vec<Range<usize>>),
    /// The keys of an object, as often as they are there, and where their values are.
    Object(Vec<(String, Range<usize>)>),
}

struct Parts;

impl Make for Parts {
    type Value = Members;
    const READS_STRINGS: bool = true;

    fn plain(&mut self, token: Token, lexer: &Lexer<'_>) -> Result<Members, JsonFault> {
        let found = || Some(lexer.found().to_owned());
        let (text, kind) = match token {
            Token::Text(text) => (Some(text), "string"),
            Token::Number => (found(), "number"),
            Token::True | Token::False => (found(), "boolean"),
            _ => (None, "null"),
        };
        Ok(Members::Plain { text, kind })
    }

    fn array(&mut self, items: Vec<(Range<usize>, Members)>) -> Members {
        Members::Array(items.into_iter().map(|(range, _)| range).collect())
    }

    fn object(&mut self, members: Vec<(String, Range<usize>, Members)>) -> Members {
        Members::Object(members.into_iter().map(|(key, range, _)| (key, range)).collect())
    }
}

/// Takes a `json` apart, one level deep.
///
/// # Errors
/// Where a string in it has a character that no text has.
pub fn members(text: &str) -> Result<Members, JsonFault> {
    Parser::whole(text, Parts)
}
