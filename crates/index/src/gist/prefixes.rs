//! Byte strings, or texts as their bytes, by what they begin with.
//!
//! The key of an inner node is a common beginning, and where all that is below goes on after it, the range of the bytes with
//! which it does: `ab[c-x]`. Without that range the keys near the root would be empty and tell nothing apart.
use std::cmp::Ordering;

use super::extension::{Extension, KeyList};

/// The kind of keys that are byte strings.
#[derive(Debug, Clone, Copy)]
pub struct Prefixes;

/// A set of strings with a common beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    bytes: Box<[u8]>,
    after: After,
}

/// What comes after the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum After {
    /// Nothing: the string itself.
    Nothing,
    /// A byte of a range, and then anything.
    Bytes(u8, u8),
    /// Anything or nothing.
    Anything,
}

/// A question about byte strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrefixQuery {
    /// Those that begin with this one: `LIKE 'abc%'`.
    StartsWith(Box<[u8]>),
    /// Those with which this one begins, as in a table of dialling codes.
    PrefixOf(Box<[u8]>),
    /// This one.
    Equals(Box<[u8]>),
}

impl Prefix {
    /// Whether a string of the set can begin with `bytes`.
    fn may_begin_with(&self, bytes: &[u8]) -> bool {
        let common = common(&self.bytes, bytes);
        common == bytes.len() || (common == self.bytes.len() && self.after.may_be(bytes[common]))
    }

    /// Whether a string of the set can be a beginning of `bytes`.
    fn may_be_beginning_of(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(&self.bytes)
            && match self.after {
                After::Nothing | After::Anything => true,
                After::Bytes(..) => bytes.get(self.bytes.len()).is_some_and(|byte| self.after.may_be(*byte)),
            }
    }

    /// What comes after the first `length` bytes.
    fn after(&self, length: usize) -> After {
        self.bytes.get(length).map_or(self.after, |byte| After::Bytes(*byte, *byte))
    }
}

impl After {
    /// Whether the next byte may be this one.
    fn may_be(self, byte: u8) -> bool {
        match self {
            After::Nothing => false,
            After::Bytes(first, last) => first <= byte && byte <= last,
            After::Anything => true,
        }
    }

    fn union(self, other: After) -> After {
        match (self, other) {
            (After::Nothing, After::Nothing) => After::Nothing,
            (After::Bytes(first, last), After::Bytes(other_first, other_last)) => {
                After::Bytes(first.min(other_first), last.max(other_last))
            }
            _ => After::Anything,
        }
    }

    /// How many ways there are to go on.
    fn width(self) -> f64 {
        match self {
            After::Nothing => 0.0,
            After::Bytes(first, last) => f64::from(last - first) + 1.0,
            After::Anything => 257.0,
        }
    }
}

/// How many bytes both begin with.
fn common(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

impl Extension for Prefixes {
    type Value = Box<[u8]>;
    type Key = Prefix;
    type Query = PrefixQuery;
    type Origin = Box<[u8]>;
    type Slots = KeyList<Prefix>;

    const DIMENSIONS: usize = 1;

    fn compress(value: &Box<[u8]>) -> Prefix {
        Prefix { bytes: value.clone(), after: After::Nothing }
    }

    fn decompress(key: &Prefix) -> Box<[u8]> {
        key.bytes.clone()
    }

    fn consistent(key: &Prefix, query: &PrefixQuery, _is_leaf: bool) -> bool {
        match query {
            PrefixQuery::StartsWith(bytes) => key.may_begin_with(bytes),
            PrefixQuery::PrefixOf(bytes) => key.may_be_beginning_of(bytes),
            PrefixQuery::Equals(bytes) if key.after == After::Nothing => key.bytes == *bytes,
            PrefixQuery::Equals(bytes) => key.may_be_beginning_of(bytes),
        }
    }

    fn union(left: &Prefix, right: &Prefix) -> Prefix {
        let length = common(&left.bytes, &right.bytes);
        Prefix { bytes: left.bytes[..length].into(), after: left.after(length).union(right.after(length)) }
    }

    /// How many bytes of the common beginning are lost; among equals, how many more ways there are to go on.
    fn penalty(key: &Prefix, new: &Prefix) -> (f64, f64) {
        let union = Self::union(key, new);
        let lost = (key.bytes.len() - union.bytes.len()) as f64;
        (lost, union.after.width() - key.after.width())
    }

    /// In order, and in the middle third where neighbours have the least in common.
    fn pick_split(keys: &[Prefix]) -> u64 {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by(|one, other| Self::compare(0, &keys[*one], &keys[*other]));
        let least = (keys.len() / 3).max(1);
        let in_common = |at: &usize| common(&keys[order[*at - 1]].bytes, &keys[order[*at]].bytes);
        let at = (least..=keys.len() - least).min_by_key(in_common).expect("a full node has several keys");
        order[at..].iter().fold(0, |moved, slot| moved | 1 << slot)
    }

    /// How many bytes of the origin, from its end, are not in common: the longest beginning in common is the nearest.
    fn distance(key: &Prefix, origin: &Box<[u8]>) -> f64 {
        let common = common(&key.bytes, origin);
        let may_go_on = common == key.bytes.len() && origin.get(common).is_none_or(|byte| key.after.may_be(*byte));
        if may_go_on { 0.0 } else { (origin.len() - common) as f64 }
    }

    fn compare(_dimension: usize, left: &Prefix, right: &Prefix) -> Ordering {
        left.bytes.cmp(&right.bytes).then(left.after.cmp(&right.after))
    }
}
