//! Asking an index that may have blocks away: what is held, block by block or those of a key, and how it becomes whole, or no
//! longer is (see [`super::blocks`]).
//!
//! The epoch is pinned from the look at whether there are blocks to the last look at the entries: what was there at the beginning is
//! there until then.
use std::ops::Deref;
use std::sync::Weak;
use std::sync::atomic::Ordering;

use index::{HeldBlock, Unchanging};
use lineage::MemoryBudget;
use smallvec::SmallVec;
use sync::Guard;
use types::Rid;

use super::blocks::{BLOCK_BYTES, BlockPlace, Blocks, bounds_of};
use super::data::{BlockSource, IndexData};
use super::entries::{Entries, Entry};
use super::order::{Bounds, Direction, IndexKey, beside_all};
use crate::error::Result;

/// The entries in memory, in which none is missing that is held.
pub(crate) struct Resident<'i> {
    entries: &'i Entries,
    _held: SmallVec<[HeldBlock<'i, BlockPlace>; 1]>,
}

impl Deref for Resident<'_> {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        self.entries
    }
}

/// All entries, which stay in memory as long as this lives.
pub(crate) struct AllResident<'i> {
    entries: &'i Entries,
    _unchanging: Unchanging<'i>,
}

impl Deref for AllResident<'_> {
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
    pub(crate) fn at<'g>(&'g self, guard: &'g Guard, key: &IndexKey) -> Result<Resident<'g>> {
        match self.blocks(guard) {
            None => Ok(Resident { entries: self.entries(), _held: SmallVec::new() }),
            Some(_) => self.between(guard, &beside_all(key, false), &beside_all(key, true)),
        }
    }

    #[cold]
    fn between<'g>(&'g self, guard: &'g Guard, low: &Entry, high: &Entry) -> Result<Resident<'g>> {
        debug_assert!(low <= high, "invariant 7: a key ends before it begins");
        loop {
            let Some(blocks) = self.blocks(guard) else {
                return Ok(Resident { entries: self.entries(), _held: SmallVec::new() });
            };
            let blocks_between = blocks.of_entry(low, true)..=blocks.of_entry(high, true);
            match blocks_between.map(|block| self.hold(blocks, block)).collect::<Result<_>>()? {
                Some(held) => return Ok(Resident { entries: self.entries(), _held: held }),
                None => std::thread::yield_now(),
            }
        }
    }

    /// Whether there is an entry, in an index whose entries are pairs.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn has_entry(&self, guard: &Guard, key: &IndexKey, rid: Rid) -> Result<bool> {
        if self.blocks(guard).is_none() {
            return Ok(self.entries().has(guard, key, rid));
        }
        let entry = (key.clone(), rid);
        Ok(self.between(guard, &entry, &entry)?.has(guard, key, rid))
    }

    /// All entries. None leaves meanwhile, whatever memory they take.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn all(&self) -> Result<AllResident<'_>> {
        let unchanging = self.residence.keep();
        if let Some(blocks) = self.residence.shared_blocks() {
            for block in 0..blocks.len() {
                let held = self.hold(&blocks, block)?;
                debug_assert!(held.is_some(), "invariant 7: a block is replaced while none may be");
            }
        }
        Ok(AllResident { entries: self.entries(), _unchanging: unchanging })
    }

    /// Holds a block; `None` if another list of blocks has come.
    fn hold<'b>(&self, blocks: &'b Blocks, block: usize) -> Result<Option<HeldBlock<'b, BlockPlace>>> {
        blocks.hold(block, |place| {
            let source = self.block_source().expect("a thread that uses an index has its table");
            source.load(self, blocks, (block, place))
        })
    }

    /// Adds entries of ascending keys for records that follow one another, as [`Entries::insert_new`] does.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn insert_new(&self, keys: &[IndexKey], first: Rid) -> Result<usize> {
        let guard = &sync::pin();
        loop {
            let (Some(blocks), [low, ..]) = (self.blocks(guard), keys) else {
                return Ok(self.entries().insert_new(keys, first));
            };
            let block = blocks.of_entry(&beside_all(low, false), true);
            let Some(_held) = self.hold(blocks, block)? else {
                std::thread::yield_now();
                continue;
            };
            let end = blocks.first(block + 1).map(|(key, _)| key);
            debug_assert!(end.is_none_or(|end| low < end), "invariant 7: {low:?} is behind its block");
            let count = keys.iter().take_while(|key| end.is_none_or(|end| *key < end)).count();
            return Ok(self.entries().insert_new(&keys[..count], first));
        }
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
        let guard = &sync::pin();
        loop {
            let Some(blocks) = self.blocks(guard) else {
                return Ok(self.entries().next(bounds, direction, count, out));
            };
            let before = out.len();
            match self.next_of_blocks(blocks, bounds, (direction, count), out)? {
                Some(has_more) => return Ok(has_more),
                None => {
                    out.truncate(before);
                    std::thread::yield_now();
                }
            }
        }
    }

    /// As [`IndexData::next`]; `None` if another list of blocks has come.
    #[cold]
    fn next_of_blocks(
        &self,
        blocks: &Blocks,
        (low, high): &Bounds,
        (direction, count): (Direction, usize),
        out: &mut Vec<Entry>,
    ) -> Result<Option<bool>> {
        let (first, last, full) = (blocks.of_low(low.as_ref()), blocks.of_high(high.as_ref()), out.len() + count);
        let count_of_blocks = (last + 1).saturating_sub(first);
        for step in 0..count_of_blocks {
            let block = if direction == Direction::Upward { first + step } else { last - step };
            let (from, to) = bounds_of(blocks, block);
            let from = if block == first { low.clone() } else { from };
            let to = if block == last { high.clone() } else { to };
            let Some(_held) = self.hold(blocks, block)? else { return Ok(None) };
            if self.entries().next(&(from, to), direction, full - out.len(), out) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// Has blocks that are away read, as long as `goes_on`, and is whole once all are here.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    pub(crate) fn become_whole(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let Some(blocks) = self.residence.shared_blocks() else { return Ok(()) };
        for block in 0..blocks.len() {
            if !goes_on() || self.hold(&blocks, block)?.is_none() {
                return Ok(());
            }
        }
        if self.residence.note_here() {
            self.bytes_here.store(0, Ordering::Relaxed);
            self.imaged.set_served(false);
        }
        Ok(())
    }

    /// Takes the blocks of the newest image, so that they may leave, if it has not those of that image yet. They are entered by `table`.
    pub(crate) fn take_blocks(&self, table: impl FnOnce() -> Weak<dyn BlockSource>) {
        debug_assert!(self.is_filled() && self.has_order(), "invariant 7: entries that no block has may be missing");
        let Some(image) = self.imaged.unserved().filter(|image| image.runs.len() > 1) else { return };
        self.block_source.get_or_init(table);
        // Where one is no longer there, a newer checkpoint has another image.
        let count = image.runs.len() as u64;
        if let Some(blocks) = image.blocks()
            && let Some(here) = self.residence.exchange(blocks, image.counting)
        {
            // What is in memory is what those have that are here, but for what has come since the image.
            self.bytes_here.store(self.counted_bytes() * here as u64 / count, Ordering::Relaxed);
            self.imaged.set_served(true);
        }
    }

    /// Has blocks leave that were not used since they were last asked to and take so much memory, if there are such.
    pub(crate) fn evict(&self, budget: &MemoryBudget, bytes: u64) {
        if bytes == 0 || !self.residence.is_partial() {
            return;
        }
        let left = self.residence.evict(bytes, |blocks, place| {
            let run = blocks.with().read(&*place.held).ok()?;
            let bytes = run.bytes();
            self.entries_so_far().unload(run);
            Some(bytes)
        });
        let left_of = |here: u64| Some(here.saturating_sub(left));
        let _here = self.bytes_here.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left_of);
        self.charge(budget, -(left as i64));
    }

    /// About the memory that blocks take that are here, and may leave.
    pub(crate) fn bytes_here(&self) -> u64 {
        if self.residence.is_partial() { self.bytes_here.load(Ordering::Relaxed) } else { 0 }
    }

    /// About the memory that all blocks take; `None` where the index is whole.
    pub(crate) fn bytes_of_blocks(&self) -> Option<u64> {
        self.residence.shared_blocks().map(|blocks| blocks.len() as u64 * BLOCK_BYTES)
    }

    /// Makes room for what a block has that is read, and counts it. What is entered is counted once more, together with all else, when
    /// that is next looked at.
    pub(crate) fn note_read(&self, budget: &MemoryBudget, bytes: u64) {
        debug_assert!(self.residence.is_partial(), "invariant 7: an index that is whole reads nothing");
        if budget.is_crowded() {
            self.evict(budget, bytes);
        }
        self.bytes_here.fetch_add(bytes, Ordering::Relaxed);
        self.charge(budget, bytes as i64);
    }
}
