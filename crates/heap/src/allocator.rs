//! Which words of a heap belong to which block.
//!
//! ```text
//!   word 0        words 1..64     blocks, in any order, with gaps
//!   no place      roots           |header|payload ......|header|payload ...|0 0 0|header|...      0 0 0 ->
//!                                                                           gap                  ^ frontier
//!   header        0xA110 (16 bits) | 1 in use, 0 free (8 bits) | words of the payload (40 bits)
//! ```
//!
//! **Only the headers are durable**, and they are written by transactions like any other word: an allocation
//! becomes durable with the transaction that made it, and is gone with it. Which blocks are free, and up to where
//! words were ever handed out, is kept in memory and found again by walking from header to header when the heap is
//! opened. No two transactions meet at a list of free blocks or a pointer to the end.
//!
//! **A block is given out again only once its freeing is stable.** Otherwise a transaction that recovery applies could
//! stand on one that it drops: a partition commit in a block that a lost transaction had freed would find the block in use
//! by what the lost one had taken it from.
//!
//! **Words that were never given out are zeros**, also those of a transaction that was lost: the walk takes zeros for
//! gaps, and the gaps for room.
//!
//! Each thread has an arena: the free blocks by size, and a stretch of new words to cut blocks from. Sizes are rounded
//! up to steps of an eighth, so that a freed block fits others.

use std::collections::VecDeque;
use std::ops::Range;

use durability::Lsn;
use parking_lot::Mutex;
use sync::CachePadded;
use sync::atomic::{AtomicU64, Ordering};

use crate::error::{HeapError, HeapResult};
use crate::memory::Memory;

/// The roots stand in words 1 to here.
pub(crate) const BLOCKS_START: u64 = 64;
/// The largest payload that a header can tell.
const PAYLOAD_MAX: u64 = (1 << 40) - 1;
const MAGIC: u64 = 0xA110 << 48;
const IN_USE: u64 = 1 << 40;
const ARENAS: usize = 32;
/// An arena takes new words by so many, by fewer in a small heap; what is larger than a quarter of that comes from the
/// frontier directly.
const STRETCH_WORDS_MAX: u64 = 1 << 12;
const STRETCH_WORDS_MIN: u64 = 1 << 6;
const STRETCHES_MIN: u64 = 1 << 8;
/// Gaps that are looked at for one that is wide enough.
const GAPS_TRIED: usize = 8;

/// A block by its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The first word of the payload, after the header.
    pub(crate) at: u64,
    pub(crate) words: u64,
    /// No word of the payload was ever written.
    pub(crate) is_zero: bool,
}

impl Block {
    pub(crate) fn header_at(&self) -> u64 {
        self.at - 1
    }

    /// The header of a block in use.
    pub(crate) fn header_in_use(&self) -> u64 {
        MAGIC | IN_USE | self.words
    }

    /// The header of a free block.
    pub(crate) fn header_free(&self) -> u64 {
        MAGIC | self.words
    }

    /// Decodes the header of the block at `at`: the block, and whether it is in use.
    pub(crate) fn decode(at: u64, header: u64) -> Option<(Block, bool)> {
        let (words, state) = (header & PAYLOAD_MAX, header & (0xFF << 40));
        let is_header = header & (0xFFFF << 48) == MAGIC && matches!(state, 0 | IN_USE) && words > 0;
        is_header.then_some((Block { at, words, is_zero: false }, state == IN_USE))
    }
}

/// A free block, to be given out once everything up to an LSN is stable.
#[derive(Clone, Copy, Debug)]
struct Free {
    block: Block,
    after: Lsn,
}

#[derive(Default)]
struct Arena {
    /// By the number of their size.
    free: Vec<VecDeque<Free>>,
    /// New words, all zero.
    stretch: Range<u64>,
}

/// The result of the search for a block.
pub(crate) enum Found {
    Block(Block),
    /// There is one once this LSN is stable.
    Later(Lsn),
    Nothing,
}

/// The free words of a heap.
pub(crate) struct Allocator {
    arenas: Box<[CachePadded<Mutex<Arena>>]>,
    /// Stretches of zeros below the frontier.
    gaps: Mutex<Vec<Range<u64>>>,
    /// No word from here on was ever given out.
    frontier: AtomicU64,
    size_words: u64,
    stretch_words: u64,
}

impl Allocator {
    /// Of a heap in which nothing was ever given out.
    pub(crate) fn empty(memory: &Memory) -> Allocator {
        Allocator {
            arenas: (0..ARENAS).map(|_| CachePadded::default()).collect(),
            gaps: Mutex::default(),
            frontier: AtomicU64::new(BLOCKS_START),
            size_words: memory.size_words(),
            stretch_words: (memory.size_words() / STRETCHES_MIN).clamp(STRETCH_WORDS_MIN, STRETCH_WORDS_MAX),
        }
    }

    /// Walks over the words of a heap, up to `end`, from where on they are zeros.
    pub(crate) fn find(memory: &Memory, end: u64) -> HeapResult<Allocator> {
        let mut free: Vec<Free> = Vec::new();
        let mut gaps = Vec::new();
        let (mut at, mut gap_start) = (BLOCKS_START, BLOCKS_START);
        let mut frontier = BLOCKS_START;
        while at < end {
            let header = memory.get(at);
            if header == 0 {
                at += 1;
                continue;
            }
            let block_end = |block: &Block| block.at + block.words;
            let found = Block::decode(at + 1, header).filter(|(block, _)| block_end(block) <= memory.size_words());
            let Some((block, is_in_use)) = found else {
                return Err(HeapError::NotABlock { at });
            };
            if gap_start < at {
                gaps.push(gap_start..at);
            }
            if !is_in_use {
                free.push(Free { block, after: 0 });
            }
            at = block_end(&block);
            (gap_start, frontier) = (at, at);
        }
        let (gaps, frontier) = (Mutex::new(gaps), AtomicU64::new(frontier));
        let allocator = Allocator { gaps, frontier, ..Allocator::empty(memory) };
        free.into_iter().enumerate().for_each(|(turn, free)| allocator.put(turn, free));
        Ok(allocator)
    }

    /// No word from here on was ever given out.
    pub(crate) fn frontier(&self) -> u64 {
        self.frontier.load(Ordering::Acquire).min(self.size_words)
    }

    /// A block of at least `words` words. Everything up to `stable` is stable.
    pub(crate) fn take(&self, words: u64, stable: Lsn, thread: usize) -> Found {
        let Some(words) = rounded(words).filter(|&words| words < self.size_words) else {
            return Found::Nothing;
        };
        let size = size_number(words);
        let home = thread % ARENAS;
        {
            let mut arena = self.arenas[home].lock();
            if let Some(block) = arena.free_block(size, stable) {
                return Found::Block(block);
            }
            if let Some(block) = self.new_block(&mut arena, words) {
                return Found::Block(block);
            }
        }
        let mut later = Found::Nothing;
        for other in 0..ARENAS {
            let mut arena = self.arenas[(home + other) % ARENAS].lock();
            if let Some(block) = arena.free_block(size, stable) {
                return Found::Block(block);
            }
            if let Some(block) = self.new_block(&mut arena, words) {
                return Found::Block(block);
            }
            if let Some(first) = arena.free.get(size).and_then(VecDeque::front) {
                later = Found::Later(first.after);
            }
        }
        later
    }

    /// A block that was taken and not used after all: its words are as they were.
    pub(crate) fn put_back(&self, block: Block, thread: usize) {
        self.put(thread, Free { block, after: 0 });
    }

    /// A block that the commit `lsn` has freed.
    pub(crate) fn put_freed(&self, block: Block, lsn: Lsn, thread: usize) {
        self.put(thread, Free { block: Block { is_zero: false, ..block }, after: lsn });
    }

    fn put(&self, thread: usize, free: Free) {
        let mut arena = self.arenas[thread % ARENAS].lock();
        let size = size_number(free.block.words);
        if arena.free.len() <= size {
            arena.free.resize_with(size + 1, VecDeque::new);
        }
        // Those at the front become stable first.
        if free.after == 0 { arena.free[size].push_front(free) } else { arena.free[size].push_back(free) }
    }

    /// A block of words that were never used.
    fn new_block(&self, arena: &mut Arena, words: u64) -> Option<Block> {
        let need = words + 1;
        let block = |stretch: Range<u64>| Block { at: stretch.start + 1, words, is_zero: true };
        if need > self.stretch_words / 4 {
            return self.stretch(need, need).map(block);
        }
        if arena.stretch.end - arena.stretch.start < need {
            let next = self.stretch(need, self.stretch_words)?;
            let rest = std::mem::replace(&mut arena.stretch, next);
            if !rest.is_empty() {
                self.gaps.lock().push(rest);
            }
        }
        let start = arena.stretch.start;
        arena.stretch.start += need;
        Some(block(start..start + need))
    }

    /// New words, `wanted` of them or at least `need`: from a gap that is wide enough, or from the frontier.
    fn stretch(&self, need: u64, wanted: u64) -> Option<Range<u64>> {
        {
            let mut gaps = self.gaps.lock();
            let tried = gaps.len().saturating_sub(GAPS_TRIED);
            let fits = |gap: &Range<u64>| gap.end - gap.start >= need;
            if let Some(found) = gaps[tried..].iter().position(fits) {
                let gap = gaps.swap_remove(tried + found);
                if gap.end - gap.start > wanted {
                    gaps.push(gap.start + wanted..gap.end);
                }
                return Some(gap.start..gap.end.min(gap.start + wanted));
            }
        }
        let room = |start: u64| (start + need <= self.size_words).then(|| (start + wanted).min(self.size_words));
        let start = self.frontier.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).ok()?;
        Some(start..(start + wanted).min(self.size_words))
    }
}

impl Arena {
    fn free_block(&mut self, size: usize, stable: Lsn) -> Option<Block> {
        let free = self.free.get_mut(size)?;
        if free.front()?.after > stable {
            return None;
        }
        free.pop_front().map(|free| free.block)
    }
}

/// The size of the block for a payload of so many words: even with its header while it is small, in steps of an
/// eighth when it is large.
fn rounded(words: u64) -> Option<u64> {
    if words > PAYLOAD_MAX / 2 {
        return None;
    }
    let whole = words.max(1) + 1;
    Some(whole.next_multiple_of(step(whole)) - 1)
}

fn step(whole: u64) -> u64 {
    (1 << (63 - whole.leading_zeros()) >> 3).max(2)
}

/// Numbers the sizes that [`rounded`] makes, from small to large.
fn size_number(words: u64) -> usize {
    let whole = words + 1;
    if whole < 16 {
        return (whole / 2) as usize;
    }
    let power = 63 - u64::from(whole.leading_zeros());
    (8 * (power - 3) + (whole >> (power - 3)) - 8) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sizes_waste_an_eighth_and_have_numbers_in_their_order() {
        let sizes: BTreeSet<u64> = (1..100_000).map(|words| rounded(words).unwrap()).collect();
        for words in 1..100_000_u64 {
            let size = rounded(words).unwrap();
            assert!(size >= words && size <= words + (words + 1) / 8 + 1, "{words}: {size}");
            assert_eq!(rounded(size), Some(size));
        }
        let numbers: Vec<usize> = sizes.iter().map(|&size| size_number(size)).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
        assert!(size_number(rounded(PAYLOAD_MAX / 2).unwrap()) < 400);
        assert_eq!(rounded(u64::MAX), None);
    }

    #[test]
    fn headers_are_told_from_other_words() {
        let block = Block { at: 70, words: 5, is_zero: false };
        assert_eq!(Block::decode(70, block.header_in_use()), Some((block, true)));
        assert_eq!(Block::decode(70, block.header_free()), Some((block, false)));
        for other in [0, 5, u64::MAX, MAGIC, block.header_in_use() | 1 << 41, !MAGIC] {
            assert_eq!(Block::decode(70, other), None, "{other:x}");
        }
    }

    /// Takes blocks of many sizes and gives some back; what is given out never overlaps.
    #[test]
    fn blocks_never_overlap_and_come_back_when_they_are_stable() {
        let memory = Memory::plain(1 << 14);
        let allocator = Allocator::find(&memory, 0).unwrap();
        let (mut taken, mut used) = (Vec::new(), 0);
        for turn in 0_u64.. {
            let words = 1 + turn * turn % 90;
            match allocator.take(words, 0, turn as usize % 3) {
                Found::Block(block) => taken.push(block),
                _ => break,
            }
            used += words + 1;
        }
        assert!(used > (1 << 14) * 3 / 4, "{used} words used of {}", 1 << 14);
        while let Found::Block(block) = allocator.take(1, 0, 0) {
            taken.push(block);
        }
        taken.sort_by_key(|block| block.at);
        assert!(taken.windows(2).all(|pair| pair[0].at + pair[0].words < pair[1].at), "headers lie between");
        assert!(taken[0].at > BLOCKS_START && taken.last().is_some_and(|last| last.at + last.words <= 1 << 14));
        let (first, other) = (taken[0], taken[1]);
        allocator.put_freed(first, 7, 0);
        assert!(matches!(allocator.take(first.words, 6, 5), Found::Later(7)));
        assert!(matches!(allocator.take(first.words, 7, 5), Found::Block(block) if block.at == first.at));
        allocator.put_back(other, 4);
        assert!(matches!(allocator.take(other.words, 0, 4), Found::Block(block) if block == other));
    }

    #[test]
    fn the_walk_finds_blocks_and_gaps() {
        let memory = Memory::plain(4096);
        let block = |at, words| Block { at, words, is_zero: false };
        for (block, is_in_use) in [(block(65, 5), true), (block(71, 3), false), (block(100, 9), true)] {
            let header = if is_in_use { block.header_in_use() } else { block.header_free() };
            memory.set(block.header_at(), header);
        }
        let allocator = Allocator::find(&memory, 4096).unwrap();
        assert_eq!(allocator.frontier(), 109);
        assert_eq!(allocator.gaps.lock().as_slice(), &[const { 74..99 }]);
        assert!(matches!(allocator.take(3, 0, 0), Found::Block(free) if free == block(71, 3)));
        assert!(matches!(allocator.take(3, 0, 0), Found::Block(new) if new.at == 75 && new.is_zero));
        memory.set(74, 12);
        assert!(matches!(Allocator::find(&memory, 4096), Err(HeapError::NotABlock { at: 74 })));
        memory.set(74, block(75, 5000).header_in_use());
        assert!(matches!(Allocator::find(&memory, 4096), Err(HeapError::NotABlock { at: 74 })), "beyond the end");
    }
}
