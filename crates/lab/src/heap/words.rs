//! Six random words of a large heap, read and written in one transaction: what durability costs where transactions
//! seldom meet (Hathi, section 5).
//!
//! A transaction moves an amount along its words, so that their sum never changes.

use durability::CommitMode;
use heap::{CommittedTransaction, Heap, HeapError, HeapRef, HeapResult};

use crate::heap::{Random, Workload};

/// Words of a transaction.
const TOUCHED: usize = 6;
const PAGE_WORDS: usize = 512;
/// Words that are looked at in one transaction of the check.
const CHECKED: u64 = 1 << 16;

/// A block of words that add up to 0.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    block: HeapRef,
    words: u64,
}

impl Words {
    /// A block of so many words.
    ///
    /// # Errors
    /// [`HeapError::OutOfSpace`] if the heap is too small for it; [`HeapError::Log`] if the log fails.
    pub fn create(heap: &Heap, words: u64) -> HeapResult<Words> {
        let block = heap.atomically(CommitMode::Async, |tx| tx.pmalloc(words))?;
        // The system gives memory when a page is touched, and that is not to be measured.
        heap.atomically(CommitMode::Async, |tx| {
            let mut pages = (0..words).step_by(PAGE_WORDS);
            pages.try_for_each(|at| tx.write(block.at(at), 0))
        })?;
        Ok(Words { block, words })
    }
}

impl Workload for Words {
    fn step(&self, heap: &Heap, random: &mut Random, mode: CommitMode) -> HeapResult<CommittedTransaction> {
        let places: [HeapRef; TOUCHED] = std::array::from_fn(|_| self.block.at(random.below(self.words)));
        let work = heap.atomically_split_phase(mode, |tx| {
            for (number, place) in places.into_iter().enumerate() {
                let change = if number % 2 == 0 { 1 } else { u64::MAX };
                let value = tx.read(place)?;
                tx.write(place, value.wrapping_add(change))?;
            }
            Ok::<_, HeapError>(())
        });
        work.map(|(_, committed)| committed)
    }

    /// Checks the words while no other thread is at work.
    fn check(&self, heap: &Heap) -> HeapResult<Result<(), String>> {
        let mut sum = 0_u64;
        for start in (0..self.words).step_by(CHECKED as usize) {
            let end = self.words.min(start + CHECKED);
            sum = sum.wrapping_add(heap.atomically(CommitMode::Async, |tx| {
                (start..end)
                    .try_fold(0_u64, |sum, at| Ok::<_, HeapError>(sum.wrapping_add(tx.read(self.block.at(at))?)))
            })?);
        }
        Ok(if sum == 0 { Ok(()) } else { Err(format!("the words sum up to {sum}, not to 0")) })
    }
}
