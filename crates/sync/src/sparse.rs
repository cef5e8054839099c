//! Arrays of zeros of which most stay untouched, in pages of their own.
//!
//! An allocator hands out zeros by mapping fresh memory, or by clearing what somebody has freed: then all of an array takes memory, however
//! little of it is ever written. A sparse array is always mapped afresh, takes memory only where it is written, and gives it back to the
//! system when it is dropped. Making one costs a call of the system, so it is for what is large and lives long.
use std::ops::Deref;
use std::ptr::NonNull;

use crate::atomic::AtomicU64;
use crate::zeroed::zeroed_atomics;

/// The size of the pages that the system hands out, in bytes, at the least.
pub const PAGE_BYTES: usize = 4096;

/// Smaller arrays are left to the allocator.
const MAPPED_MIN: usize = 16 * PAGE_BYTES;

/// An array of words, zeros at first, that takes memory page by page where it is written.
pub struct SparseAtomics {
    start: NonNull<AtomicU64>,
    len: usize,
    is_mapped: bool,
}

// SAFETY: it owns the words behind its address, which are atomics.
unsafe impl Send for SparseAtomics {}
// SAFETY: as above.
unsafe impl Sync for SparseAtomics {}

impl SparseAtomics {
    /// `len` zeros.
    pub fn new(len: usize) -> SparseAtomics {
        if len * size_of::<AtomicU64>() >= MAPPED_MIN
            && let Some(start) = map(len)
        {
            return SparseAtomics { start, len, is_mapped: true };
        }
        let start = NonNull::from(Box::leak(zeroed_atomics(len))).cast();
        SparseAtomics { start, len, is_mapped: false }
    }
}

impl Deref for SparseAtomics {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: there are so many words, zeros or what was stored, until this is dropped.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for SparseAtomics {
    fn drop(&mut self) {
        if self.is_mapped {
            unmap(self.start, self.len);
        } else {
            // SAFETY: the words came out of a box of this length, and nobody borrows them any more.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len)) });
        }
    }
}

/// Fresh memory for so many words; `None` where the system gives none, or words are more than numbers to the program that runs.
#[cfg(all(target_os = "linux", not(any(miri, loom, shuttle))))]
fn map(len: usize) -> Option<NonNull<AtomicU64>> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let bytes = len.checked_mul(size_of::<AtomicU64>())?;
    // SAFETY: a new private anonymous mapping at an address that the system chooses touches nothing of ours.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED)
}

#[cfg(all(target_os = "linux", not(any(miri, loom, shuttle))))]
fn unmap(start: NonNull<AtomicU64>, len: usize) {
    // SAFETY: it was mapped with this size, and nobody borrows it any more.
    let outcome = unsafe { libc::munmap(start.as_ptr().cast(), len * size_of::<AtomicU64>()) };
    debug_assert_eq!(outcome, 0, "a mapping of our own is given back");
}

#[cfg(not(all(target_os = "linux", not(any(miri, loom, shuttle)))))]
fn map(_len: usize) -> Option<NonNull<AtomicU64>> {
    None
}

#[cfg(not(all(target_os = "linux", not(any(miri, loom, shuttle)))))]
fn unmap(_start: NonNull<AtomicU64>, _len: usize) {
    unreachable!("nothing was mapped")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::Ordering;

    #[test]
    fn an_array_starts_as_zeros_and_keeps_what_is_stored() {
        let words = SparseAtomics::new(70_000);
        assert_eq!(words.len(), 70_000);
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        for at in [0, 511, 512, 69_999] {
            words[at].store(at as u64 + 1, Ordering::Relaxed);
        }
        let stored = words.iter().enumerate().filter(|(_, word)| word.load(Ordering::Relaxed) != 0);
        assert!(stored.map(|(at, word)| (at, word.load(Ordering::Relaxed))).eq([
            (0, 1),
            (511, 512),
            (512, 513),
            (69_999, 70_000)
        ]));
        let few = SparseAtomics::new(3);
        few[2].store(9, Ordering::Relaxed);
        assert!(few.iter().map(|word| word.load(Ordering::Relaxed)).eq([0, 0, 9]));
        assert!(SparseAtomics::new(0).is_empty());
    }

    /// Clearing memory that was freed would take all of it.
    #[cfg(all(target_os = "linux", not(any(miri, loom, shuttle))))]
    #[test]
    fn what_is_not_written_takes_no_memory() {
        const LEN: usize = 4 << 20;
        let words = SparseAtomics::new(LEN);
        words[LEN / 2].store(1, Ordering::Relaxed);
        let address = words.as_ptr().addr();
        let resident = |from: usize, bytes: usize| {
            let mut pages = vec![0u8; bytes / PAGE_BYTES];
            // SAFETY: the span lies within the mapping, and there is a byte for each of its pages.
            let outcome = unsafe { libc::mincore(from as *mut _, bytes, pages.as_mut_ptr()) };
            assert_eq!(outcome, 0);
            pages.iter().filter(|page| **page & 1 != 0).count()
        };
        let found = resident(address, LEN * size_of::<AtomicU64>());
        // A system that prefers large pages hands out one of 2 MiB.
        assert!((1..=512).contains(&found), "{found} pages are resident");
    }
}
