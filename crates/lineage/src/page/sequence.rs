//! The numbers of tail records: 1, 2, 3, ... within an update range, handed to writers in blocks so that two of them
//! seldom meet (L-Store, section 4.3, pre-allocates tail Rids for a range; here a worker takes a block of them).
//!
//! ```text
//! shared    numbers handed out in blocks so far
//! worker w  [ next number (48 bits) | how many are left of the block (16 bits) ]      a cache line of its own
//! ```
//!
//! The Indirection word of a record only grows, so a writer whose block lies below the record's newest version leaves
//! the rest of the block unused and takes a fresh one. Unused numbers are *buried*: their records become tombstones, or
//! no merge could ever pass them. A merge begins by burying what is left of all blocks ([`SequenceBlocks::seal`]).
use std::ops::Range;

use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, writer_slot};

/// Numbers in a block.
const BLOCK: u64 = 16;
const LEFT_BITS: u32 = 16;
const LEFT_MASK: u64 = (1 << LEFT_BITS) - 1;

/// Hands out the numbers of one update range.
pub(crate) struct SequenceBlocks {
    allocated: CachePadded<AtomicU64>,
    workers: Box<[CachePadded<AtomicU64>]>,
}

impl SequenceBlocks {
    /// No number handed out, for so many workers.
    pub(crate) fn new(workers: usize) -> SequenceBlocks {
        SequenceBlocks {
            allocated: CachePadded::new(AtomicU64::new(0)),
            // Of a power of two a thread finds its place without a division.
            workers: (0..workers.next_power_of_two()).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
        }
    }

    /// The highest number handed out to a block; its record may not be written yet, or never.
    #[inline]
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Acquire)
    }

    /// Numbers up to here were handed out before a restart.
    pub(crate) fn restore(&self, allocated: u64) {
        self.allocated.store(allocated, Ordering::Release);
    }

    /// Takes `count` consecutive numbers above `above` and returns the first. Numbers that will never be used are
    /// passed to `bury`.
    #[inline(always)]
    pub(crate) fn take(&self, count: u64, above: u64, bury: impl Fn(Range<u64>)) -> u64 {
        let worker = &self.workers[writer_slot() & (self.workers.len() - 1)];
        let seen = worker.load(Ordering::Acquire);
        let (next, left) = (seen >> LEFT_BITS, seen & LEFT_MASK);
        let rest = seen.wrapping_add((count << LEFT_BITS).wrapping_sub(count));
        let is_taken = left >= count
            && next > above
            && worker.compare_exchange(seen, rest, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_taken { next } else { self.take_from(worker, count, above, bury) }
    }

    /// As [`take`](Self::take), where the worker's block may be at its end.
    #[inline(never)]
    fn take_from(&self, worker: &AtomicU64, count: u64, above: u64, bury: impl Fn(Range<u64>)) -> u64 {
        loop {
            let seen = worker.load(Ordering::Acquire);
            let (next, left) = (seen >> LEFT_BITS, seen & LEFT_MASK);
            let is_fresh = left < count || next <= above;
            let (taken, rest) = if is_fresh {
                let block = BLOCK.max(count);
                let first = self.allocated.fetch_add(block, Ordering::AcqRel) + 1;
                debug_assert!(first > above, "a version's number was handed out before it was published");
                (first, (first + count) << LEFT_BITS | (block - count))
            } else {
                (next, (next + count) << LEFT_BITS | (left - count))
            };
            if worker.compare_exchange(seen, rest, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                if is_fresh && left > 0 {
                    bury(next..next + left);
                }
                return taken;
            }
            if is_fresh {
                // The fresh block's numbers are this call's alone; a thread that shares the worker's place was faster.
                let block = BLOCK.max(count);
                bury(taken + count..taken + block);
                return taken;
            }
        }
    }

    /// Buries what is left of every block, so that each number handed out so far is used, or is buried by its
    /// owner.
    pub(crate) fn seal(&self, bury: impl Fn(Range<u64>)) {
        for worker in &self.workers {
            let seen = worker.load(Ordering::Acquire);
            let (next, left) = (seen >> LEFT_BITS, seen & LEFT_MASK);
            // Where a writer is faster, it goes on with its block and a later merge takes in the rest.
            if left > 0 && worker.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                bury(next..next + left);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;

    #[test]
    fn every_number_is_used_or_buried_once() {
        let blocks = SequenceBlocks::new(2);
        let seen = Mutex::new(HashSet::new());
        let note = |numbers: Range<u64>| {
            for number in numbers {
                assert!(seen.lock().unwrap().insert(number), "{number} came twice");
            }
        };
        std::thread::scope(|scope| {
            // More threads than workers: some share a place.
            for thread in 0..4u64 {
                let (blocks, note) = (&blocks, &note);
                scope.spawn(move || {
                    for i in 0..5_000 {
                        let count = 1 + (i + thread) % 3;
                        let first = blocks.take(count, 0, note);
                        note(first..first + count);
                        if i % 97 == 0 {
                            blocks.seal(note);
                        }
                    }
                });
            }
        });
        blocks.seal(note);
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen.len() as u64, blocks.allocated());
        assert_eq!(seen.into_iter().max(), Some(blocks.allocated()));
    }

    #[test]
    fn numbers_lie_above_the_newest_version() {
        let blocks = SequenceBlocks::new(1);
        let buried = Mutex::new(Vec::new());
        let bury = |numbers: Range<u64>| buried.lock().unwrap().push((numbers.start, numbers.end));
        assert_eq!(blocks.take(2, 0, bury), 1);
        assert_eq!(blocks.take(1, 2, bury), 3);
        assert_eq!(blocks.take(1, 9, bury), 17, "the newest version is of another worker's block");
        assert_eq!(*buried.lock().unwrap(), [(4, 17)]);
        assert_eq!(blocks.take(20, 0, bury), 33, "more than a block");
        assert_eq!(blocks.allocated(), 52);
    }
}
