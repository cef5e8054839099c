//! Large zeroed arrays of atomics, whose memory the system hands out only where they are touched.
use crate::atomic::AtomicU64;

/// An array of `len` zeros. It comes from the allocator's zeroed path, so that a large array costs address space,
/// and memory only for the parts that are written.
#[cfg(not(any(loom, shuttle)))]
pub fn zeroed_atomics(len: usize) -> Box<[AtomicU64]> {
    let words: Box<[u64]> = vec![0u64; len].into_boxed_slice();
    // SAFETY: `AtomicU64` has the same size, alignment (on the 64-bit targets that lstore supports) and bit validity
    // as `u64`, and the box is the only owner of the words.
    unsafe { Box::from_raw(Box::into_raw(words) as *mut [AtomicU64]) }
}

/// An array of `len` zeros, each known to the model checker.
#[cfg(any(loom, shuttle))]
pub fn zeroed_atomics(len: usize) -> Box<[AtomicU64]> {
    (0..len).map(|_| AtomicU64::new(0)).collect()
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(align_of::<AtomicU64>() == align_of::<u64>() && size_of::<AtomicU64>() == size_of::<u64>());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::Ordering;

    #[test]
    fn arrays_start_as_zeros() {
        let words = zeroed_atomics(70_000);
        assert_eq!(words.len(), 70_000);
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        words[69_999].store(7, Ordering::Relaxed);
        assert_eq!(words[69_999].load(Ordering::Relaxed), 7);
        assert!(zeroed_atomics(0).is_empty());
    }
}
