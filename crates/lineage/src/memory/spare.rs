//! Spare words: the memory of pages that nobody reads any more, kept for new pages of the same size.
//!
//! Tail pages come and go as fast as rows are updated. New memory from the system was never in the cache, and memory from the
//! allocator has to be made zeros by the writer that needs the page. Words from here were made zeros by the thread that dropped the
//! page before.
//!
//! A few are kept, so that they need no account, as what an allocator keeps has none; none while memory is short.
use std::fmt;

use sync::atomic::AtomicU64;
use sync::blocking::Mutex;

/// Arrays that are kept, of at most so many words.
const ARRAYS_MAX: usize = 128;
const WORDS_MAX: usize = 1 << 13;

/// See the module.
#[derive(Default)]
pub(crate) struct SpareWords(Mutex<Vec<Box<[AtomicU64]>>>);

impl SpareWords {
    /// An array of so many words, if there is one, as it was given.
    pub(crate) fn take(&self, len: usize) -> Option<Box<[AtomicU64]>> {
        // A thread that has the list now is done in a moment, but a writer need not wait for it.
        let mut kept = self.0.try_lock().ok()?;
        let at = kept.iter().rposition(|words| words.len() == len)?;
        Some(kept.swap_remove(at))
    }

    /// Keeps an array for a new page, if there is room.
    pub(crate) fn keep(&self, words: Box<[AtomicU64]>) {
        if words.len() <= WORDS_MAX
            && let Ok(mut kept) = self.0.try_lock()
            && kept.len() < ARRAYS_MAX
        {
            kept.push(words);
        }
    }

    /// Lets go of all.
    pub(crate) fn clear(&self) {
        if let Ok(mut kept) = self.0.try_lock() {
            kept.clear();
        }
    }
}

impl fmt::Debug for SpareWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpareWords").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use sync::zeroed_atomics;

    use super::*;

    #[test]
    fn arrays_come_back_by_their_length_and_few_are_kept() {
        let spare = SpareWords::default();
        (0..ARRAYS_MAX + 3).for_each(|at| spare.keep(zeroed_atomics(1 + at % 2)));
        spare.keep(zeroed_atomics(WORDS_MAX + 1));
        assert!(spare.take(WORDS_MAX + 1).is_none() && spare.take(3).is_none());
        for _ in 0..ARRAYS_MAX / 2 {
            assert_eq!(spare.take(1).map(|words| words.len()), Some(1));
        }
        assert!(spare.take(1).is_none() && spare.take(2).is_some());
        spare.clear();
        assert!(spare.take(2).is_none());
    }
}
