//! The values of the dictionaries: numbers, or byte strings (text compares like its bytes in UTF-8).
//!
//! ```text
//! number:            | value, 8 bytes |
//! string up to 12:   | length, 4 | bytes ............ |          16 bytes, four entries in a line
//! longer string:     | length, 4 | first 4 | address  |  ----> | all bytes | in the pool of the dictionary
//! ```
//!
//! The paper's dictionary is an array of values of one size. Strings are laid out so that most comparisons are decided in
//! the entry, by the first bytes, and touch one line as there.
use std::cmp::Ordering as Order;
use std::ptr::{from_ref, without_provenance_mut};

use sync::atomic::Ordering;
use sync::zeroed::{AtomicPtr, AtomicU64};

use super::buckets::Zeroed;
use super::footprint::{LineKind, Visitor};
use super::pool::Pool;

/// A type with values that a [`DeltaIndex`](super::DeltaIndex) can hold: `u64` and `[u8]`.
///
/// # Safety
/// What [`DictionaryValue::read`] returns is what was written; it lives as long as the entry and the pool.
pub unsafe trait DictionaryValue: 'static {
    /// A value as callers pass and receive it.
    type Borrowed<'a>: Copy + Ord;
    /// A value as a dictionary keeps it.
    type Entry: Zeroed;

    /// The bytes that a value takes beside its entry.
    fn pool_bytes(value: Self::Borrowed<'_>) -> usize;

    /// Fills an entry, once.
    ///
    /// # Safety
    /// No thread reads the entry yet, and the caller may allocate from the pool (`Pool::allocate`).
    unsafe fn write(entry: &Self::Entry, value: Self::Borrowed<'_>, pool: &Pool);

    /// The value of an entry.
    ///
    /// # Safety
    /// The entry was written before, by the order of happens-before.
    unsafe fn read(entry: &Self::Entry) -> Self::Borrowed<'_>;

    /// How the value of an entry stands to another.
    ///
    /// # Safety
    /// As for [`DictionaryValue::read`].
    unsafe fn compare(entry: &Self::Entry, sought: Self::Borrowed<'_>, visitor: &mut impl Visitor) -> Order;
}

// SAFETY: a number is its entry.
unsafe impl DictionaryValue for u64 {
    type Borrowed<'a> = u64;
    type Entry = AtomicU64;

    fn pool_bytes(_: u64) -> usize {
        0
    }

    unsafe fn write(entry: &AtomicU64, value: u64, _: &Pool) {
        entry.store(value, Ordering::Relaxed);
    }

    #[inline]
    unsafe fn read(entry: &AtomicU64) -> u64 {
        entry.load(Ordering::Relaxed)
    }

    #[inline]
    unsafe fn compare(entry: &AtomicU64, sought: u64, visitor: &mut impl Visitor) -> Order {
        visitor.touch(LineKind::Dictionary, entry);
        entry.load(Ordering::Relaxed).cmp(&sought)
    }
}

/// The bytes that an entry holds itself.
const INLINE_BYTES: usize = 12;
const PREFIX_BYTES: usize = 4;

/// An entry for a string.
#[repr(C, align(16))]
pub struct BytesEntry {
    /// Length and first bytes, in the order in which they lie in memory.
    head: AtomicU64,
    /// The other bytes of a short string, in that order too, or where the bytes of a long one begin.
    tail: AtomicPtr<u8>,
}

const _: () = assert!(size_of::<BytesEntry>() == 16 && size_of::<*mut u8>() == 8);

// SAFETY: zeros are the empty string; integers and pointers need no drop.
unsafe impl Zeroed for BytesEntry {}

impl BytesEntry {
    /// The length, and the first bytes as a number that compares like them (shorter strings as if followed by zeros).
    #[inline]
    fn head(&self) -> (usize, u32) {
        let [a, b, c, d, e, f, g, h] = self.head.load(Ordering::Relaxed).to_ne_bytes();
        (u32::from_ne_bytes([a, b, c, d]) as usize, u32::from_be_bytes([e, f, g, h]))
    }
}

/// The first `N` bytes of a string, with zeros behind its end.
#[inline]
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    let len = bytes.len().min(N);
    padded[..len].copy_from_slice(&bytes[..len]);
    padded
}

// SAFETY: the bytes of a short string lie in the entry behind its length, those of a long one in the pool; neither
// changes after it was written.
unsafe impl DictionaryValue for [u8] {
    type Borrowed<'a> = &'a [u8];
    type Entry = BytesEntry;

    fn pool_bytes(value: &[u8]) -> usize {
        if value.len() > INLINE_BYTES { value.len() } else { 0 }
    }

    unsafe fn write(entry: &BytesEntry, value: &[u8], pool: &Pool) {
        let [a, b, c, d] = (value.len() as u32).to_ne_bytes();
        let [e, f, g, h] = padded::<PREFIX_BYTES>(value);
        entry.head.store(u64::from_ne_bytes([a, b, c, d, e, f, g, h]), Ordering::Relaxed);
        let tail = if value.len() > INLINE_BYTES {
            // SAFETY: the caller's promise.
            let start = unsafe { pool.allocate(value.len(), 1) };
            // SAFETY: the pool has just handed out this many bytes.
            unsafe { start.as_ptr().copy_from_nonoverlapping(value.as_ptr(), value.len()) };
            start.as_ptr()
        } else {
            without_provenance_mut(usize::from_ne_bytes(padded(value.get(PREFIX_BYTES..).unwrap_or_default())))
        };
        entry.tail.store(tail, Ordering::Relaxed);
    }

    #[inline]
    unsafe fn read(entry: &BytesEntry) -> &[u8] {
        let (len, _) = entry.head();
        let start = if len > INLINE_BYTES {
            entry.tail.load(Ordering::Relaxed).cast_const()
        } else {
            // SAFETY: the bytes of a short string follow its length in the entry.
            unsafe { from_ref(entry).cast::<u8>().add(size_of::<u32>()) }
        };
        // SAFETY: `len` bytes were written there before, and they do not change while the entry can be borrowed.
        unsafe { std::slice::from_raw_parts(start, len) }
    }

    #[inline]
    unsafe fn compare(entry: &BytesEntry, sought: &[u8], visitor: &mut impl Visitor) -> Order {
        visitor.touch(LineKind::Dictionary, entry);
        let (len, prefix) = entry.head();
        let by_prefix = prefix.cmp(&u32::from_be_bytes(padded(sought)));
        if by_prefix.is_ne() {
            return by_prefix;
        }
        // SAFETY: the caller's promise.
        let value = unsafe { Self::read(entry) };
        if len > INLINE_BYTES {
            visitor.touch(LineKind::Value, &value[..len.min(sought.len().max(1))]);
        }
        value.cmp(sought)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::footprint::Holder;
    use super::*;

    fn entry_of(value: &[u8], pool: &Pool) -> BytesEntry {
        let entry = BytesEntry { head: AtomicU64::new(0), tail: AtomicPtr::default() };
        // SAFETY: the entry is new, and the pool is used by one thread.
        unsafe { <[u8]>::write(&entry, value, pool) };
        entry
    }

    /// Strings that agree in their first bytes, some of them zeros.
    fn string() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0u8), Just(b'a'), Just(0xFF), any::<u8>()], 0..20)
    }

    proptest! {
        #[test]
        fn an_entry_keeps_its_string_and_compares_like_it(left in string(), right in string(), keep in 0..20usize) {
            let pool = Pool::default();
            let common: Vec<u8> = left.iter().take(keep).chain(&right).copied().collect();
            for value in [&left, &common, &right] {
                let entry = entry_of(value, &pool);
                // SAFETY: written by this thread.
                prop_assert_eq!(unsafe { <[u8]>::read(&entry) }, &value[..]);
                for sought in [&left, &common, &right] {
                    // SAFETY: as above.
                    let order = unsafe { <[u8]>::compare(&entry, sought, &mut Holder) };
                    prop_assert_eq!(order, value.cmp(sought));
                }
            }
        }
    }
}
