//! A `jsonb` as bytes whose order is the order of the values:
//!
//! ```text
//! []  (not within another value)   0
//! null                             1
//! string                           2 | its bytes | 0
//! number                           3 | sign and digits, see below
//! false, true                      4, 5
//! array                            6 | count, 4 bytes | items
//! object                           7 | count, 4 bytes | key as a string without its 2, value; in the order of keys
//! behind the whole                 for each number that shows zeros at its end: its place among the numbers, 4 bytes | zeros, 2
//! ```
//!
//! Longer arrays and objects are greater than shorter ones, and an empty array is less than all else, as in PostgreSQL. A number is
//! `0.DIGITS * 10^point`:
//!
//! ```text
//! 0          128
//! positive   192 | point + 2^31, 4 bytes, the most significant first | two digits each, plus 1 | 0
//! negative    64 | the bytes behind the first one of a positive number, each turned over
//! ```
//!
//! `1.0` and `1.00` are equal and are shown as they were written. That is why zeros are told at the end: without it, equal values have
//! equal bytes. No text in a `jsonb` has the character 0.
use super::fault::JsonFault;
use super::number::JsonNumber;
use super::tree::Json;

pub(super) const EMPTY: u8 = 0;
pub(super) const NULL: u8 = 1;
pub(super) const TEXT: u8 = 2;
pub(super) const NUMBER: u8 = 3;
pub(super) const FALSE: u8 = 4;
pub(super) const TRUE: u8 = 5;
pub(super) const ARRAY: u8 = 6;
pub(super) const OBJECT: u8 = 7;

pub(super) const ZERO: u8 = 128;
pub(super) const POSITIVE: u8 = 192;
pub(super) const NEGATIVE: u8 = 64;

/// A value in the form in which it is kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Jsonb(Box<[u8]>);

impl Jsonb {
    /// The value of a text.
    ///
    /// # Errors
    /// As [`Json::parse`].
    pub fn parse(text: &str) -> Result<Jsonb, JsonFault> {
        Json::parse(text).map(|json| Jsonb::of(&json))
    }

    /// A value, kept.
    pub fn of(json: &Json) -> Jsonb {
        let mut writer = Writer::default();
        match json {
            Json::Array(items) if items.is_empty() => writer.bytes.push(EMPTY),
            other => writer.value(other),
        }
        writer.bytes.append(&mut writer.zeros);
        Jsonb(writer.bytes.into())
    }

    /// The value that is kept as these bytes. Bytes that no value has become a value, too.
    pub fn from_bytes(bytes: &[u8]) -> Jsonb {
        Jsonb(bytes.into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    zeros: Vec<u8>,
    numbers: u32,
}

impl Writer {
    fn value(&mut self, json: &Json) {
        match json {
            Json::Null => self.bytes.push(NULL),
            Json::Boolean(value) => self.bytes.push(if *value { TRUE } else { FALSE }),
            Json::Text(text) => {
                self.bytes.push(TEXT);
                self.text(text);
            }
            Json::Number(number) => {
                self.bytes.push(NUMBER);
                self.number(number);
            }
            Json::Array(items) => {
                self.bytes.push(ARRAY);
                self.count(items.len());
                items.iter().for_each(|item| self.value(item));
            }
            Json::Object(members) => {
                self.bytes.push(OBJECT);
                self.count(members.len());
                for (key, value) in members {
                    self.text(key);
                    self.value(value);
                }
            }
        }
    }

    fn count(&mut self, count: usize) {
        self.bytes.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend(text.bytes().filter(|byte| *byte != 0));
        self.bytes.push(0);
    }

    fn number(&mut self, number: &JsonNumber) {
        let zeros = number.scale.saturating_sub(number.decimals());
        if zeros > 0 {
            self.zeros.extend(self.numbers.to_be_bytes());
            self.zeros.extend(u16::try_from(zeros).unwrap_or(u16::MAX).to_be_bytes());
        }
        self.numbers += 1;
        if number.digits.is_empty() {
            self.bytes.push(ZERO);
            return;
        }
        let turned = if number.is_negative { u8::MAX } else { 0 };
        self.bytes.push(if number.is_negative { NEGATIVE } else { POSITIVE });
        let point = number.point.cast_unsigned() ^ 1 << 31;
        self.bytes.extend(point.to_be_bytes().map(|byte| byte ^ turned));
        let pair = |pair: &[u8]| pair[0] * 10 + pair.get(1).copied().unwrap_or(0) + 1;
        self.bytes.extend(number.digits.chunks(2).map(|digits| pair(digits) ^ turned));
        self.bytes.push(turned);
    }
}
