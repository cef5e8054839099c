//! The bytes of a `jsonb` gone through from the front: parts are found without a tree of the whole.
use std::fmt;

use super::fault::DEPTH_MAX;
use super::jsonb::{ARRAY, EMPTY, FALSE, Jsonb, NEGATIVE, NULL, NUMBER, OBJECT, POSITIVE, TEXT, TRUE, ZERO};
use super::number::JsonNumber;
use super::tree::Json;

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonbKind {
    /// `null`
    Null,
    /// a string
    Text,
    /// a number
    Number,
    /// `true` or `false`
    Boolean,
    /// an array of so many items
    Array(usize),
    /// an object of so many members
    Object(usize),
}

impl JsonbKind {
    /// What the value is that is kept as these bytes.
    pub fn of(bytes: &[u8]) -> JsonbKind {
        let mut walk = Walk::new(bytes);
        let first = walk.byte();
        let count = |mut walk: Walk<'_>| walk.count().unwrap_or(0);
        match first {
            Some(TEXT) => JsonbKind::Text,
            Some(NUMBER) => JsonbKind::Number,
            Some(TRUE | FALSE) => JsonbKind::Boolean,
            Some(EMPTY) => JsonbKind::Array(0),
            Some(ARRAY) => JsonbKind::Array(count(walk)),
            Some(OBJECT) => JsonbKind::Object(count(walk)),
            _ => JsonbKind::Null,
        }
    }

    /// PostgreSQL's name of it.
    pub fn name(self) -> &'static str {
        match self {
            JsonbKind::Null => "null",
            JsonbKind::Text => "string",
            JsonbKind::Number => "number",
            JsonbKind::Boolean => "boolean",
            JsonbKind::Array(_) => "array",
            JsonbKind::Object(_) => "object",
        }
    }
}

/// A place in the bytes of a value.
#[derive(Clone)]
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many numbers lie before it.
    numbers: u32,
    depth: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Walk<'a> {
        Walk { bytes, at: 0, numbers: 0, depth: 0 }
    }

    /// How many bytes lie before it.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The byte that is next, which tells what the value is that is next.
    pub(super) fn first(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The bytes from a place up to here.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn count(&mut self) -> Option<usize> {
        let count = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        usize::try_from(u32::from_be_bytes(count.try_into().ok()?)).ok()
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).ok()
    }

    pub(super) fn number(&mut self) -> Option<JsonNumber> {
        self.numbers += 1;
        let (is_negative, turned) = match self.byte()? {
            ZERO => return Some(JsonNumber { is_negative: false, digits: Vec::new(), point: 0, scale: 0 }),
            POSITIVE => (false, 0),
            NEGATIVE => (true, u8::MAX),
            _ => return None,
        };
        let point: [u8; 4] = self.bytes.get(self.at..self.at + 4)?.try_into().ok()?;
        let point = (u32::from_be_bytes(point.map(|byte| byte ^ turned)) ^ 1 << 31).cast_signed();
        self.at += 4;
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == turned)?;
        self.at += length + 1;
        let mut digits = Vec::with_capacity(length * 2);
        for pair in &rest[..length] {
            let pair = (pair ^ turned).checked_sub(1).filter(|pair| *pair < 100)?;
            digits.extend([pair / 10, pair % 10]);
        }
        digits.pop_if(|last| *last == 0);
        let mut number = JsonNumber { is_negative, digits, point, scale: 0 };
        number.scale = number.decimals();
        Some(number)
    }

    /// Goes behind a number.
    pub(super) fn skip_number(&mut self) -> Option<()> {
        self.numbers += 1;
        let turned = match self.byte()? {
            ZERO => return Some(()),
            POSITIVE => 0,
            NEGATIVE => u8::MAX,
            _ => return None,
        };
        let digits = self.bytes.get(self.at + 4..)?;
        self.at += 4 + digits.iter().position(|byte| *byte == turned)? + 1;
        Some(())
    }

    /// Goes behind a value.
    pub(super) fn skip(&mut self) -> Option<()> {
        match self.byte()? {
            EMPTY | NULL | TRUE | FALSE => Some(()),
            TEXT => self.text().map(drop),
            NUMBER => self.skip_number(),
            ARRAY => {
                let count = self.count()?;
                self.deeper(|walk| (0..count).try_for_each(|_| walk.skip()))
            }
            OBJECT => {
                let count = self.count()?;
                self.deeper(|walk| (0..count).try_for_each(|_| walk.text().and_then(|_| walk.skip())))
            }
            _ => None,
        }
    }

    pub(super) fn deeper<T>(&mut self, go: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let gone = if self.depth > DEPTH_MAX { None } else { go(self) };
        self.depth -= 1;
        gone
    }

    /// The tree of the whole.
    pub(super) fn tree(mut self) -> Option<Json> {
        let mut end = Walk::new(self.bytes);
        end.skip()?;
        let zeros = Zeros { bytes: self.bytes.get(end.at..)? };
        self.subtree(&zeros)
    }

    fn subtree(&mut self, zeros: &Zeros<'_>) -> Option<Json> {
        Some(match self.byte()? {
            EMPTY => Json::Array(Vec::new()),
            NULL => Json::Null,
            TRUE => Json::Boolean(true),
            FALSE => Json::Boolean(false),
            TEXT => Json::Text(self.text()?.to_owned()),
            NUMBER => {
                let place = self.numbers;
                let mut number = self.number()?;
                number.scale += zeros.of(place);
                Json::Number(number)
            }
            ARRAY => {
                let count = self.count()?;
                self.deeper(|walk| {
                    let items: Option<Vec<Json>> = (0..count).map(|_| walk.subtree(zeros)).collect();
                    items.map(Json::Array)
                })?
            }
            OBJECT => {
                let count = self.count()?;
                self.deeper(|walk| {
                    let member = |_| Some((walk.text()?.to_owned(), walk.subtree(zeros)?));
                    let members: Option<Vec<(String, Json)>> = (0..count).map(member).collect();
                    members.map(Json::Object)
                })?
            }
            _ => return None,
        })
    }

    /// The value that is next, as a value of its own.
    fn part(&mut self) -> Option<Jsonb> {
        let (start, first) = (self.at, self.numbers);
        self.skip()?;
        let (end, behind) = (self.at, self.numbers);
        let mut whole = Walk::new(self.bytes);
        whole.skip()?;
        let mut bytes = match self.bytes.get(start..end)? {
            [ARRAY, 0, 0, 0, 0] => vec![EMPTY],
            part => part.to_vec(),
        };
        let zeros = Zeros { bytes: self.bytes.get(whole.at..)? };
        for (place, count) in zeros.all().filter(|(place, _)| (first..behind).contains(place)) {
            bytes.extend((place - first).to_be_bytes());
            bytes.extend(count.to_be_bytes());
        }
        Some(Jsonb::from_bytes(&bytes))
    }
}

/// The zeros that numbers show at their ends.
struct Zeros<'a> {
    bytes: &'a [u8],
}

impl Zeros<'_> {
    fn all(&self) -> impl Iterator<Item = (u32, u16)> {
        self.bytes.chunks_exact(6).map(|entry| {
            let place = u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]);
            (place, u16::from_be_bytes([entry[4], entry[5]]))
        })
    }

    fn of(&self, place: u32) -> u32 {
        self.all().find(|(known, _)| *known == place).map_or(0, |(_, count)| count.into())
    }
}

impl Jsonb {
    /// The value as a tree; what is no value is `null`.
    pub fn to_json(&self) -> Json {
        Jsonb::tree_of(self.as_bytes())
    }

    /// The tree of the value that is kept as these bytes; what is no value is `null`.
    pub fn tree_of(bytes: &[u8]) -> Json {
        Walk::new(bytes).tree().unwrap_or(Json::Null)
    }

    /// The part of the bytes that equal values have in common.
    pub fn key_of(bytes: &[u8]) -> &[u8] {
        let mut walk = Walk::new(bytes);
        match walk.skip() {
            Some(()) => &bytes[..walk.at()],
            None => bytes,
        }
    }

    /// The value under a key of an object that is kept as these bytes.
    pub fn field(bytes: &[u8], key: &str) -> Option<Jsonb> {
        let mut walk = Walk::new(bytes);
        if walk.byte()? != OBJECT {
            return None;
        }
        for _ in 0..walk.count()? {
            if walk.text()? == key {
                return walk.part();
            }
            walk.skip()?;
        }
        None
    }

    /// The item at a place of an array that is kept as these bytes; negative places count from the end.
    pub fn item(bytes: &[u8], place: i64) -> Option<Jsonb> {
        let mut walk = Walk::new(bytes);
        if walk.byte()? != ARRAY {
            return None;
        }
        let count = walk.count()?;
        let place = if place < 0 { i64::try_from(count).ok()?.checked_add(place)? } else { place };
        let place = usize::try_from(place).ok().filter(|place| *place < count)?;
        (0..place).try_for_each(|_| walk.skip())?;
        walk.part()
    }

    /// What `->>` makes of the value that is kept as these bytes: a text as it is, all else as it is shown; `None` for `null`.
    pub fn text_of(bytes: &[u8]) -> Option<String> {
        match JsonbKind::of(bytes) {
            JsonbKind::Null => None,
            JsonbKind::Text => Walk { at: 1, ..Walk::new(bytes) }.text().map(str::to_owned),
            _ => Some(Jsonb::tree_of(bytes).to_string()),
        }
    }
}

impl fmt::Display for Jsonb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_json())
    }
}
