//! Keys of bytes of any length, in the order of their bytes.
//!
//! A node stores once what all of its keys begin with, up to 24 bytes, and of each key two words. The first holds the
//! next eight bytes, so that nearly every comparison is one of two words. The second holds seven more and the length, or
//! leads to a copy of the whole key:
//!
//! ```text
//! node:   | prefix length | prefix, 3 words |        "order/2026/"
//!
//! key:    | head: 8 bytes behind the prefix, zeros where it is shorter      |
//!         | rest: 7 further bytes      | length behind the prefix, 0..=15 |1|     short
//!         | rest: address of | length | key, whole |                      |0|     long
//! ```
//!
//! Words of short keys compare as the keys do: zeros stand behind the end, and where two keys differ in such zeros
//! only, the length decides. A long key's memory never changes and moves with it from node to node, whatever their
//! prefixes; it is freed when no reader that could have seen it is pinned.
use std::cmp::Ordering;

use sync::Guard;
use sync::latch::Restart;

use super::key::{Key, Slot};
use crate::key_bytes::KeyBytes;

/// The kind of keys that are byte strings: `BPlusTree<Bytes, V>` has keys `&[u8]`.
#[derive(Debug)]
pub enum Bytes {}

const WORD: usize = size_of::<u64>();
const PREFIX_WORDS: usize = 3;
const PREFIX_MAX: usize = PREFIX_WORDS * WORD;

/// The longest key behind the prefix that is stored in its two words.
const SHORT_MAX: usize = 2 * WORD - 1;
const SHORT: u64 = 1;

/// The common beginning of the keys of a node.
#[derive(Clone, Copy, PartialEq)]
pub struct Prefix {
    len: usize,
    bytes: [u8; PREFIX_MAX],
}

impl Prefix {
    fn new(bytes: &[u8]) -> Self {
        let mut prefix = Prefix { len: bytes.len().min(PREFIX_MAX), bytes: [0; PREFIX_MAX] };
        prefix.bytes[..prefix.len].copy_from_slice(&bytes[..prefix.len]);
        prefix
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A key as it would be stored in the node, and all of it behind the prefix.
#[derive(Clone, Copy)]
pub struct BytesProbe<'k> {
    head: u64,
    rest: u64,
    suffix: &'k [u8],
    prefix_len: usize,
}

/// How many bytes two keys begin with in common.
fn common_len(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// Up to eight bytes as a word that sorts as they do, with zeros behind.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => {
            let mut word = [0; WORD];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(word)
        }
    }
}

/// The two words of a key behind the prefix. Of a long one the second is above that of every short one with the same
/// first fifteen bytes.
#[inline]
fn words_of(suffix: &[u8]) -> (u64, u64) {
    let further = word_of(suffix.get(WORD..).unwrap_or_default()) & !0xff;
    (word_of(suffix), further | (suffix.len().min(SHORT_MAX + 1) as u64) << 1 | SHORT)
}

/// A whole key outside of a node.
struct Outside(*mut u64);

impl Outside {
    fn new(key: &[u8]) -> Self {
        let mut words = Vec::with_capacity(1 + key.len().div_ceil(WORD));
        words.push(key.len() as u64);
        words.extend(key.chunks(WORD).map(|chunk| u64::from_ne_bytes(word_of(chunk).to_be_bytes())));
        Outside(Box::into_raw(words.into_boxed_slice()).cast())
    }

    fn at(rest: u64) -> Self {
        debug_assert!(rest & SHORT == 0 && rest != 0);
        Outside(std::ptr::with_exposed_provenance_mut(rest as usize))
    }

    fn rest(&self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// # Safety
    ///
    /// The address is that of an [`Outside::new`] that happened before and is not freed during `'k`.
    unsafe fn key<'k>(&self) -> &'k [u8] {
        // SAFETY: the first word is the length, as written before the address was published.
        let len = unsafe { self.0.read() } as usize;
        // SAFETY: that many bytes follow, and they never change.
        unsafe { std::slice::from_raw_parts(self.0.add(1).cast(), len) }
    }

    /// # Safety
    ///
    /// As for [`Outside::key`], and the key is not used from now on.
    unsafe fn free(self) {
        // SAFETY: as the caller promises.
        let len = unsafe { self.key() }.len();
        let words = std::ptr::slice_from_raw_parts_mut(self.0, 1 + len.div_ceil(WORD));
        // SAFETY: these are the words that `new` took out of their box.
        drop(unsafe { Box::from_raw(words) });
    }
}

/// Puts a short key together again.
#[inline]
fn short_key(prefix: &Prefix, head: u64, rest: u64) -> KeyBytes {
    // Where a writer disturbs, the length may be anything.
    let len = ((rest >> 1 & 0x7f) as usize).min(SHORT_MAX);
    let mut words = [0; 2 * WORD];
    words[..WORD].copy_from_slice(&head.to_be_bytes());
    words[WORD..].copy_from_slice(&rest.to_be_bytes());
    KeyBytes::joined_blocks((&prefix.bytes, prefix.len), (&words, len))
}

impl Key for Bytes {
    type Ref<'k> = &'k [u8];
    type Owned = KeyBytes;
    type Shared = Prefix;
    type Probe<'k> = BytesProbe<'k>;

    const WORDS: usize = 2;
    const SHARED_WORDS: usize = 1 + PREFIX_WORDS;

    fn of(owned: &KeyBytes) -> &[u8] {
        owned
    }

    fn to_owned(key: &[u8]) -> KeyBytes {
        key.into()
    }

    fn separator<'k>(left: &'k [u8], right: &'k [u8]) -> KeyBytes {
        right[..common_len(left, right) + 1].into()
    }

    fn common(first: &[u8], last: &[u8]) -> Prefix {
        Prefix::new(&first[..common_len(first, last)])
    }

    fn union(shared: &Prefix, other: &Prefix) -> Prefix {
        Self::common(shared.bytes(), other.bytes())
    }

    fn narrowed(shared: &Prefix, key: &[u8]) -> Option<Prefix> {
        (!key.starts_with(shared.bytes())).then(|| Self::common(shared.bytes(), key))
    }

    fn load_shared(words: Slot<'_>) -> Prefix {
        let len = (words.load(0) as usize).min(PREFIX_MAX);
        let mut bytes = [0; PREFIX_MAX];
        for (index, word) in bytes.chunks_exact_mut(WORD).enumerate().take(len.div_ceil(WORD)) {
            word.copy_from_slice(&words.load(1 + index).to_be_bytes());
        }
        Prefix { len, bytes }
    }

    fn store_shared(words: Slot<'_>, shared: &Prefix) {
        words.store(0, shared.len as u64);
        for (index, word) in shared.bytes.chunks_exact(WORD).enumerate() {
            words.store(1 + index, word_of(word));
        }
    }

    #[inline]
    fn probe<'k>(shared: &Prefix, key: &'k [u8]) -> Result<BytesProbe<'k>, Ordering>
    where
        'k: 'k,
    {
        let Some(suffix) = key.strip_prefix(shared.bytes()) else {
            return Err(shared.bytes().cmp(key));
        };
        let (head, rest) = words_of(suffix);
        Ok(BytesProbe { head, rest, suffix, prefix_len: shared.len })
    }

    #[inline]
    unsafe fn compare(
        slot: Slot<'_>,
        probe: &BytesProbe<'_>,
        check: impl Fn() -> Result<(), Restart>,
    ) -> Result<Ordering, Restart> {
        let head = slot.load(0);
        if head != probe.head {
            return Ok(head.cmp(&probe.head));
        }
        let rest = slot.load(1);
        if rest & SHORT != 0 {
            return Ok(rest.cmp(&probe.rest));
        }
        check()?;
        // SAFETY: as the check has succeeded, the word is the address of a long key that is freed after this guard.
        let key = unsafe { Outside::at(rest).key() };
        Ok(key[probe.prefix_len..].cmp(probe.suffix))
    }

    unsafe fn load(
        shared: &Prefix,
        slot: Slot<'_>,
        check: impl Fn() -> Result<(), Restart>,
    ) -> Result<KeyBytes, Restart> {
        let (head, rest) = (slot.load(0), slot.load(1));
        if rest & SHORT != 0 {
            return Ok(short_key(shared, head, rest));
        }
        check()?;
        // SAFETY: as in `compare`.
        Ok(unsafe { Outside::at(rest).key() }.into())
    }

    fn store(shared: &Prefix, slot: Slot<'_>, key: &[u8]) {
        let suffix = &key[shared.len..];
        let (head, rest) = words_of(suffix);
        slot.store(0, head);
        slot.store(1, if suffix.len() <= SHORT_MAX { rest } else { Outside::new(key).rest() });
    }

    unsafe fn carry(shared: (&Prefix, &Prefix), from: Slot<'_>, to: Slot<'_>) {
        let (head, rest) = (from.load(0), from.load(1));
        if shared.0 == shared.1 {
            to.store(0, head);
            to.store(1, rest);
        } else if rest & SHORT != 0 {
            Self::store(shared.1, to, &short_key(shared.0, head, rest));
        } else {
            // SAFETY: the caller alone may change the slot, so its key was not retired.
            let key = unsafe { Outside::at(rest).key() };
            to.store(0, word_of(&key[shared.1.len..]));
            to.store(1, rest);
        }
    }

    unsafe fn retire(slot: Slot<'_>, guard: Option<&Guard>) {
        let rest = slot.load(1);
        if rest & SHORT != 0 {
            return;
        }
        // SAFETY: the caller hands over the last use; with a guard the closure runs when no thread that has seen
        // the slot is pinned any more.
        let free = move || unsafe { Outside::at(rest).free() };
        match guard {
            Some(guard) => guard.defer(free),
            None => free(),
        }
    }

    unsafe fn bytes_outside(slot: Slot<'_>, check: impl Fn() -> Result<(), Restart>) -> Result<usize, Restart> {
        let rest = slot.load(1);
        if rest & SHORT != 0 {
            return Ok(0);
        }
        check()?;
        // SAFETY: as in `compare`.
        Ok((1 + unsafe { Outside::at(rest).key() }.len().div_ceil(WORD)) * WORD)
    }
}
