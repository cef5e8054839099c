//! The terms of a `jsonb`: what an inverted index knows it by.
//!
//! | of | terms | that a part of it has as well |
//! |---|---|---|
//! | [`JsonTerms::Names`] | each key of an object, and each value without parts | all |
//! | [`JsonTerms::Paths`] | for each value without parts a hash of the keys that lead to it and of itself | all |
//!
//! A string that is an item, or the whole, counts as a key among names. So a value can only contain (`@>`) another one whose terms it all
//! has. Arrays are no step of a path, as a plain value lies within an array of it, too. These are the terms of PostgreSQL's classes
//! `jsonb_ops` and `jsonb_path_ops`.
use super::jsonb::{ARRAY, FALSE, Jsonb, NULL, NUMBER, OBJECT, TEXT, TRUE};
use super::walk::Walk;
use crate::stable_hash::{STABLE_SEED, stable_hash};

/// Which terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonTerms {
    /// Keys and plain values, each by itself.
    Names,
    /// Plain values, each with the keys that lead to it.
    Paths,
}

/// What a term begins with.
mod kind {
    pub(super) const KEY: u8 = b'k';
    pub(super) const TEXT: u8 = b't';
    pub(super) const NUMBER: u8 = b'n';
    pub(super) const NULL: u8 = b'z';
    pub(super) const TRUE: u8 = b'y';
    pub(super) const FALSE: u8 = b'x';
}

impl Jsonb {
    /// Passes on the terms of the value that is kept as these bytes, in no order and some of them more than once.
    pub fn for_each_term(bytes: &[u8], of: JsonTerms, take: &mut dyn FnMut(&[u8])) {
        let mut terms = Terms { of, take, term: Vec::new() };
        // What follows on damage is nothing of a value.
        let _end = terms.value(&mut Walk::new(bytes), STABLE_SEED, false);
    }

    /// The term of a key, as [`JsonTerms::Names`] has it.
    pub fn term_of_key(key: &str) -> Vec<u8> {
        let mut term = vec![kind::KEY];
        term.extend(key.as_bytes());
        term
    }
}

struct Terms<'t> {
    of: JsonTerms,
    take: &'t mut dyn FnMut(&[u8]),
    term: Vec<u8>,
}

impl Terms<'_> {
    fn give(&mut self, path: u64, kind: u8, bytes: &[u8]) {
        self.term.clear();
        match self.of {
            JsonTerms::Names => {
                self.term.push(kind);
                self.term.extend(bytes);
            }
            JsonTerms::Paths if kind == kind::KEY => return,
            JsonTerms::Paths => {
                let hash = stable_hash(stable_hash(path, &[kind]), bytes);
                self.term.extend(hash.to_be_bytes());
            }
        }
        (self.take)(&self.term);
    }

    /// The terms of the value that is next, to which a path leads: a member of an object or not.
    fn value(&mut self, walk: &mut Walk<'_>, path: u64, is_member: bool) -> Option<()> {
        let start = walk.at();
        match walk.byte()? {
            OBJECT => {
                let count = walk.count()?;
                return walk.deeper(|walk| (0..count).try_for_each(|_| self.member(walk, path)));
            }
            ARRAY => {
                let count = walk.count()?;
                return walk.deeper(|walk| (0..count).try_for_each(|_| self.value(walk, path, false)));
            }
            TEXT => {
                let text = walk.text()?.as_bytes();
                let is_key = !is_member && self.of == JsonTerms::Names;
                self.give(path, if is_key { kind::KEY } else { kind::TEXT }, text);
            }
            NUMBER => {
                walk.skip_number()?;
                self.give(path, kind::NUMBER, walk.since(start + 1));
            }
            NULL => self.give(path, kind::NULL, &[]),
            TRUE => self.give(path, kind::TRUE, &[]),
            FALSE => self.give(path, kind::FALSE, &[]),
            // An empty array, or no value.
            _ => {}
        }
        Some(())
    }

    fn member(&mut self, walk: &mut Walk<'_>, path: u64) -> Option<()> {
        let key = walk.text()?.as_bytes();
        self.give(path, kind::KEY, key);
        // The end of a key is told, so that "ab" and "a" over "b" are two paths.
        self.value(walk, stable_hash(stable_hash(path, key), &[0]), true)
    }
}
