//! Memory of tail pages that are gone, kept for those that come next.
//!
//! A writer makes a tail page for every 256 versions, and each merge leaves as many to be given up. Through the allocator they would
//! wait at the latches of its arenas, one of which the merging threads hold while they free pages, and while the system takes memory
//! back that it has to clear again a moment later. So the words of some pages are kept here, the latest first, as they are still in
//! a cache. Nothing waits here either: a thread that finds the place taken goes to the allocator.
use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;

use sync::atomic::AtomicU64;
use sync::zeroed_atomics;

/// How much is kept at most: what four merges of 8,192 versions leave, where a version has two cache lines.
const KEPT_BYTES: usize = 4 << 20;

/// The words of pages that are gone.
#[derive(Default)]
pub(crate) struct SpareWords(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// oldest first
    blocks: VecDeque<Box<[AtomicU64]>>,
    bytes: usize,
}

impl SpareWords {
    /// So many words, all of them 0.
    pub(crate) fn take_zeroed(&self, len: usize) -> Box<[AtomicU64]> {
        let Some(mut words) = self.take(len) else { return zeroed_atomics(len) };
        words.fill_with(|| AtomicU64::new(0));
        words
    }

    fn take(&self, len: usize) -> Option<Box<[AtomicU64]>> {
        let mut kept = self.0.try_lock().ok()?;
        let at = kept.blocks.iter().rposition(|words| words.len() == len)?;
        let words = kept.blocks.remove(at)?;
        kept.bytes -= size_of_val(&*words);
        Some(words)
    }

    /// Keeps these words, in place of the oldest if there are too many.
    pub(crate) fn put(&self, words: Box<[AtomicU64]>) {
        let Ok(mut kept) = self.0.try_lock() else { return };
        kept.bytes += size_of_val(&*words);
        kept.blocks.push_back(words);
        while kept.bytes > KEPT_BYTES {
            let Some(oldest) = kept.blocks.pop_front() else { break };
            kept.bytes -= size_of_val(&*oldest);
        }
    }
}

impl fmt::Debug for SpareWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpareWords").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn words_come_back_as_zeros_and_the_oldest_go_first() {
        let spare = SpareWords::default();
        let words = zeroed_atomics(4_103);
        words.iter().for_each(|word| word.store(7, Ordering::Relaxed));
        let place = words.as_ptr();
        spare.put(words);
        spare.put(zeroed_atomics(64));
        let words = spare.take_zeroed(4_103);
        assert_eq!(words.as_ptr(), place);
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        (0..200).for_each(|_| spare.put(zeroed_atomics(4_103)));
        let kept = spare.0.lock().unwrap();
        let bytes: usize = kept.blocks.iter().map(|words| size_of_val(&**words)).sum();
        assert_eq!(bytes, kept.bytes);
        assert!(bytes <= KEPT_BYTES && bytes + 4_103 * 8 > KEPT_BYTES, "{bytes}");
        assert!(kept.blocks.iter().all(|words| words.len() == 4_103), "the oldest are gone");
    }
}
