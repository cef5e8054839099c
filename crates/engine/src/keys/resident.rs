//! Asking an index that may have blocks away: what is held, block by block or those of a key, and how it becomes whole (see
//! [`super::blocks`]).
use std::ops::Deref;

use lineage::MemoryBudget;
use smallvec::SmallVec;
use types::Rid;

use super::blocks::{Blocks, HeldBlock};
use super::data::IndexData;
use super::entries::{Entries, Entry};
use super::order::{Bounds, Direction, IndexKey, beside_all};
use crate::error::Result;

/// The entries in memory, in which none is missing that is held.
pub(crate) struct Resident<'i> {
    entries: &'i Entries,
    _held: SmallVec<[HeldBlock<'i>; 1]>,
}

impl Deref for Resident<'_> {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        self.entries
    }
}

impl IndexData {
    /// The entries, all those of a key among them.
    ///
    /// # Errors
    /// Those of [`BlockSource::load`](super::data::BlockSource::load).
    #[inline]
    pub(crate) fn at(&self, key: &IndexKey) -> Result<Resident<'_>> {
        match self.blocks() {
            None => Ok(self.whole()),
            Some(blocks) => self.between(blocks, &beside_all(key, false), &beside_all(key, true)),
        }
    }

    /// All entries.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn all(&self) -> Result<Resident<'_>> {
        let Some(blocks) = self.blocks() else { return Ok(self.whole()) };
        let held = (0..blocks.len()).map(|block| self.hold(blocks, block)).collect::<Result<_>>()?;
        Ok(Resident { entries: self.entries(), _held: held })
    }

    fn hold<'b>(&self, blocks: &'b Blocks, block: usize) -> Result<HeldBlock<'b>> {
        blocks.hold(block, |blob| {
            let source = self.block_source().expect("a thread that uses an index has its table");
            source.load(self, blocks, (block, blob))
        })
    }

    #[inline]
    fn whole(&self) -> Resident<'_> {
        Resident { entries: self.entries(), _held: SmallVec::new() }
    }

    #[cold]
    fn between<'i>(&'i self, blocks: &'i Blocks, low: &Entry, high: &Entry) -> Result<Resident<'i>> {
        debug_assert!(low <= high, "invariant 7: a key ends before it begins");
        let blocks_between = blocks.of(low, true)..=blocks.of(high, true);
        let held = blocks_between.map(|block| self.hold(blocks, block)).collect::<Result<_>>()?;
        Ok(Resident { entries: self.entries(), _held: held })
    }

    /// Adds entries of ascending keys for records that follow one another, as [`Entries::insert_new`] does.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn insert_new(&self, keys: &[IndexKey], first: Rid) -> Result<usize> {
        let (Some(blocks), [low, ..]) = (self.blocks(), keys) else {
            return Ok(self.entries().insert_new(keys, first));
        };
        let block = blocks.of(&beside_all(low, false), true);
        let _held = self.hold(blocks, block)?;
        let end = blocks.end_key(block);
        debug_assert!(end.is_none_or(|end| low < end), "invariant 7: {low:?} is behind its block");
        let count = keys.iter().take_while(|key| end.is_none_or(|end| *key < end)).count();
        Ok(self.entries().insert_new(&keys[..count], first))
    }

    /// Appends the first entries between the bounds to `out`, as [`Entries::next`] does.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn next(
        &self,
        bounds: &Bounds,
        direction: Direction,
        count: usize,
        out: &mut Vec<Entry>,
    ) -> Result<bool> {
        match self.blocks() {
            None => Ok(self.entries().next(bounds, direction, count, out)),
            Some(blocks) => self.next_of_blocks(blocks, bounds, (direction, count), out),
        }
    }

    #[cold]
    fn next_of_blocks(
        &self,
        blocks: &Blocks,
        (low, high): &Bounds,
        (direction, count): (Direction, usize),
        out: &mut Vec<Entry>,
    ) -> Result<bool> {
        let (first, last, full) = (blocks.of_low(low), blocks.of_high(high), out.len() + count);
        let count_of_blocks = (last + 1).saturating_sub(first);
        for step in 0..count_of_blocks {
            let block = if direction == Direction::Upward { first + step } else { last - step };
            let (from, to) = blocks.bounds(block);
            let from = if block == first { low.clone() } else { from };
            let to = if block == last { high.clone() } else { to };
            let _held = self.hold(blocks, block)?;
            if self.entries().next(&(from, to), direction, full - out.len(), out) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Has blocks that are away read, as long as `goes_on`, and is whole once all are here.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn become_whole(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let Some(blocks) = self.blocks() else { return Ok(()) };
        for block in 0..blocks.len() {
            if !goes_on() {
                return Ok(());
            }
            drop(self.hold(blocks, block)?);
        }
        blocks.all_stay(|| self.note_whole());
        Ok(())
    }

    /// Has blocks leave that were not used since they were last asked to and take so much memory, if there are such.
    pub(crate) fn evict(&self, budget: &MemoryBudget, bytes: u64) {
        let Some(blocks) = self.blocks().filter(|_| bytes > 0) else { return };
        let left = blocks.evict(bytes, || self.blocks().is_some(), |run| self.entries_so_far().unload(run));
        self.charge(budget, -(left as i64));
    }

    /// Makes room for what a block has that is read, and counts it. What is entered is counted once more, together with all else, when
    /// that is next looked at.
    pub(crate) fn note_read(&self, blocks: &Blocks, budget: &MemoryBudget, bytes: u64) {
        if budget.is_crowded() {
            self.evict(budget, bytes);
        }
        blocks.note_bytes(bytes);
        self.charge(budget, bytes as i64);
    }
}
