//! A directory that only grows: entries are made on first use, never move, and are read without a latch.
//!
//! Entries live in buckets that double in size, so that an index finds its entry in two steps and growing never
//! copies one that a reader may hold:
//!
//! ```text
//! bucket 0: [0 .. B)   bucket 1: [B .. 3B)   bucket 2: [3B .. 7B)   ...        B = 32
//! ```
use crate::blocking::OnceLock;

const FIRST_BUCKET_BITS: u32 = 5;
const FIRST_BUCKET: usize = 1 << FIRST_BUCKET_BITS;
const BUCKETS: usize = 40;

/// A growing array of entries with stable addresses. Reading costs two dependent loads; making an entry
/// synchronises only with others that make the same one.
pub struct Directory<T> {
    buckets: [OnceLock<Box<[OnceLock<T>]>>; BUCKETS],
}

impl<T> Default for Directory<T> {
    fn default() -> Self {
        Directory { buckets: std::array::from_fn(|_| OnceLock::new()) }
    }
}

impl<T> Directory<T> {
    /// An empty directory; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The entry at `index`, or `None` where none was made yet.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        let (bucket, offset) = locate(index);
        self.buckets[bucket].get()?[offset].get()
    }

    /// The entry at `index`, made by `make` if this is its first use. Several callers get the same entry.
    pub fn get_or_init(&self, index: usize, make: impl FnOnce() -> T) -> &T {
        let (bucket, offset) = locate(index);
        let entries =
            self.buckets[bucket].get_or_init(|| (0..FIRST_BUCKET << bucket).map(|_| OnceLock::new()).collect());
        entries[offset].get_or_init(make)
    }
}

/// The bucket of an index and its offset there.
#[inline]
fn locate(index: usize) -> (usize, usize) {
    let shifted = index + FIRST_BUCKET;
    let bucket = (usize::BITS - 1 - shifted.leading_zeros() - FIRST_BUCKET_BITS) as usize;
    (bucket, shifted - (FIRST_BUCKET << bucket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_index_has_its_own_place() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            assert_eq!(locate(index), expected, "index {index}");
            expected.1 += 1;
            if expected.1 == FIRST_BUCKET << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn an_entry_is_made_once_by_whoever_comes_first() {
        let directory = Directory::new();
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for index in 0..1_000 {
                        let entry = directory.get_or_init(index, || {
                            made.fetch_add(1, Ordering::Relaxed);
                            index * 3
                        });
                        assert_eq!(*entry, index * 3);
                    }
                });
            }
        });
        assert_eq!(made.into_inner(), 1_000);
        assert_eq!(directory.get(1_000), None);
        assert_eq!(directory.get(usize::MAX / 1_000_000), None);
    }
}
