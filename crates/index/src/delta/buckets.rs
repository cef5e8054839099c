//! An array that only grows. Its elements never move and are read without a latch.
//!
//! ```text
//! bucket 0: [0 .. 64)   bucket 1: [64 .. 192)   bucket 2: [192 .. 448)   ...      each twice as long as the one before
//! ```
//!
//! Finding an element reads one word of the table and the element. Elements start as zeros; a bucket takes memory where
//! it has been written.
use std::mem::needs_drop;
use std::ptr::{NonNull, null_mut};

use sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use sync::zeroed::{AtomicU32, AtomicU64};

use super::footprint::{LineKind, Visitor};
use super::lines;

const FIRST_BITS: u32 = 6;
/// Enough for every position of 32 bits.
const BUCKETS: usize = 33 - FIRST_BITS as usize;

/// Elements that may start as zeros and change behind a shared reference.
///
/// # Safety
/// All bytes zero are a value of the type, which needs no drop and no alignment beyond that of a cache line.
pub unsafe trait Zeroed: Send + Sync {}

// SAFETY: zero is a value of an integer.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: as above.
unsafe impl Zeroed for AtomicU64 {}

/// The array. Its owner knows how many elements are in use.
pub(super) struct Buckets<T> {
    table: [AtomicPtr<T>; BUCKETS],
    bytes: AtomicUsize,
}

impl<T: Zeroed> Default for Buckets<T> {
    fn default() -> Self {
        const { assert!(!needs_drop::<T>() && align_of::<T>() <= lines::LINE_BYTES) };
        Buckets { table: std::array::from_fn(|_| AtomicPtr::new(null_mut())), bytes: AtomicUsize::new(0) }
    }
}

impl<T> Buckets<T> {
    const fn bucket_bytes(bucket: usize) -> usize {
        size_of::<T>() << (FIRST_BITS as usize + bucket)
    }

    /// The memory that is reserved for elements.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl<T: Zeroed> Buckets<T> {
    /// The element at a position, unless its bucket was never reserved.
    #[inline]
    pub(super) fn get(&self, position: u32) -> Option<&T> {
        let (bucket, offset) = locate(position);
        let start = NonNull::new(self.table[bucket].load(Ordering::Acquire))?;
        // SAFETY: a bucket in the table has room for this offset, holds values from its making on, and lives as long as
        // the array.
        Some(unsafe { start.add(offset).as_ref() })
    }

    /// The element at a position. Each read is reported to `visitor`.
    #[inline]
    pub(super) fn visit(&self, position: u32, visitor: &mut impl Visitor) -> Option<&T> {
        visitor.touch(LineKind::Dictionary, &self.table[locate(position).0]);
        self.get(position)
    }

    /// The element at a position. Makes its bucket if it is missing; any number of threads may do that at once.
    pub(super) fn reserve(&self, position: u32) -> &T {
        if self.get(position).is_none() {
            self.make_bucket(locate(position).0);
        }
        self.get(position).expect("the bucket was made")
    }

    #[cold]
    fn make_bucket(&self, bucket: usize) {
        let made = lines::allocate(Self::bucket_bytes(bucket));
        let entered =
            self.table[bucket].compare_exchange(null_mut(), made.cast().as_ptr(), Ordering::AcqRel, Ordering::Relaxed);
        if entered.is_ok() {
            self.bytes.fetch_add(Self::bucket_bytes(bucket), Ordering::Relaxed);
        } else {
            // SAFETY: allocated above with this length; another thread was faster, so no other thread knows of this
            // one.
            unsafe { lines::free(made, Self::bucket_bytes(bucket)) };
        }
    }
}

impl<T> Drop for Buckets<T> {
    fn drop(&mut self) {
        for (bucket, start) in self.table.iter_mut().enumerate() {
            if let Some(start) = NonNull::new(*start.get_mut()) {
                // SAFETY: made by `make_bucket` with this length, and no borrow of an element is left.
                unsafe { lines::free(start.cast(), Self::bucket_bytes(bucket)) };
            }
        }
    }
}

/// The bucket of a position and its offset there.
#[inline]
fn locate(position: u32) -> (usize, usize) {
    let shifted = u64::from(position) + (1 << FIRST_BITS);
    let bucket = u64::BITS - 1 - shifted.leading_zeros() - FIRST_BITS;
    (bucket as usize, (shifted - (1 << (FIRST_BITS + bucket))) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_follow_one_another_through_the_buckets() {
        let mut expected = (0, 0);
        for position in 0..200_000 {
            assert_eq!(locate(position), expected, "position {position}");
            expected.1 += 1;
            if expected.1 == 1 << (FIRST_BITS as usize + expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
        let (bucket, offset) = locate(u32::MAX);
        assert!(bucket == BUCKETS - 1 && offset < 1 << (FIRST_BITS as usize + bucket));
    }

    #[test]
    fn threads_that_reserve_at_once_get_the_same_elements() {
        let words = Buckets::<AtomicU64>::default();
        assert!(words.get(0).is_none() && words.bytes() == 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..5_000).for_each(|position| {
                        words.reserve(position).fetch_add(u64::from(position) + 1, Ordering::Relaxed);
                    })
                });
            }
        });
        for position in 0..5_000 {
            assert_eq!(words.get(position).unwrap().load(Ordering::Relaxed), 4 * (u64::from(position) + 1));
        }
        assert_eq!(words.bytes(), 8 * 64 * 127);
    }
}
