//! An index that is on disk as an image, and in memory as far as it was asked for.
//!
//! ```text
//! blocks of the image   | a .. d | d .. h | h .. m | m .. t | t ..  |     neighbours in the order of the index, a blob each
//! first entries         a        d        h        m        t            in memory, as is what each block's standing is
//! standing              away     here     away     here     away
//!                                  |                 |
//! entries in memory     e      d e f g        k    m n p s    u v       of blocks that are here, and what came since the opening
//! ```
//!
//! What the index has is what is in memory and what the blocks that are away have. A reader that asks for a key, and a writer whose key
//! no other record may have, hold the blocks between whose first entries the key lies, reading them before if they are away; what was
//! read is entered in memory and from there on is found as quickly as anything. A walk holds one block after the other. So nothing but
//! memory is ever looked at, in which nothing is missing where a block is held. A writer to which other records do not matter enters
//! its key without a look at blocks, and what is taken out is taken out of memory alone: of what an image has too much, readers find no
//! version.
//!
//! A block that nobody holds may leave memory: what the image has of it is taken out, and what came since stays. A block that can't be
//! read is made anew from the table, and does not leave from then on. Once all blocks are here, and are to stay, the index is *whole*:
//! one load tells, and nobody holds anything any more.
//!
//! Of ranges that were behind the image when the index was first used all entries are in memory, and what the image says of them is left
//! out, as is what it says of records that were not there then (see [`super::image`]).
use std::ops::{Bound, Deref};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use lineage::{HeldBlob, MemoryBudget};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;
use types::Rid;

use super::data::IndexData;
use super::entries::{Entries, Entry};
use super::order::{Bounds, Direction, IndexKey, beside_all};
use super::runs::Run;
use crate::error::Result;

/// What enters the entries of a block: the table.
pub(crate) trait BlockSource: Send + Sync {
    /// Enters what a block has; nobody else holds it meanwhile. Returns whether that is what the image has.
    ///
    /// # Errors
    /// If neither the block nor what the table has in its place can be read, or the index can't grow.
    fn load(&self, index: &IndexData, blocks: &Blocks, block: (usize, &dyn HeldBlob)) -> Result<bool>;
}

/// Whether the entries of a block are in memory, and where the image has them.
enum Standing {
    Away(Arc<dyn HeldBlob>),
    Here(Arc<dyn HeldBlob>),
    Stays,
}

struct Block {
    first: Entry,
    standing: RwLock<Standing>,
    /// since the last look for what may leave
    is_used: AtomicBool,
}

/// The blocks of an image, and which of its entries count.
pub(crate) struct Blocks {
    list: Box<[Block]>,
    /// By range, the slots below which records were there when the index was first used; 0 of ranges that were behind.
    slots: Box<[usize]>,
    /// held by who has blocks leave, or says that all stay
    leaving: Mutex<()>,
    /// where the next one looks for blocks that may leave
    hand: AtomicUsize,
    /// about the memory that blocks take that are here
    bytes_here: AtomicU64,
}

impl Blocks {
    /// The blocks of an image, all away, in their order with the first entry of each.
    pub(crate) fn new(blobs: Vec<(Entry, Arc<dyn HeldBlob>)>, slots: Vec<usize>) -> Blocks {
        debug_assert!(blobs.is_sorted_by(|one, next| one.0 < next.0), "invariant 7: blocks out of order");
        let block = |(first, blob): (Entry, Arc<dyn HeldBlob>)| Block {
            first,
            standing: RwLock::new(Standing::Away(blob)),
            is_used: AtomicBool::new(false),
        };
        Blocks {
            list: blobs.into_iter().map(block).collect(),
            slots: slots.into(),
            leaving: Mutex::new(()),
            hand: AtomicUsize::new(0),
            bytes_here: AtomicU64::new(0),
        }
    }

    /// How many ranges the table had when the index was first used.
    pub(crate) fn ranges(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether an entry of the image that leads to this record counts.
    #[inline]
    fn counts(&self, rid: Rid) -> bool {
        self.slots.get(rid.range()).is_some_and(|slots| rid.slot() < *slots)
    }

    /// The entries between which a block lies: the first belongs to it, the second no longer.
    pub(crate) fn bounds(&self, block: usize) -> Bounds {
        let low = if block == 0 { Bound::Unbounded } else { Bound::Included(self.list[block].first.clone()) };
        let high = self.list.get(block + 1).map_or(Bound::Unbounded, |next| Bound::Excluded(next.first.clone()));
        (low, high)
    }

    /// What the image has of a block that is being loaded.
    ///
    /// # Errors
    /// Why it can't be read.
    pub(crate) fn read(&self, blob: &dyn HeldBlob) -> std::result::Result<Run, String> {
        let bytes = blob.read().map_err(|error| error.to_string())?;
        let mut run = Run::read(&bytes)?;
        run.retain(|rid| self.counts(rid));
        Ok(run)
    }

    /// The last block that does not begin behind an entry, or not at it either.
    fn of(&self, entry: &Entry, may_begin_there: bool) -> usize {
        let is_before = |block: &Block| if may_begin_there { block.first <= *entry } else { block.first < *entry };
        self.list.partition_point(is_before).saturating_sub(1)
    }

    fn of_low(&self, low: &Bound<Entry>) -> usize {
        match low {
            Bound::Unbounded => 0,
            Bound::Included(entry) | Bound::Excluded(entry) => self.of(entry, true),
        }
    }

    fn of_high(&self, high: &Bound<Entry>) -> usize {
        match high {
            Bound::Unbounded => self.list.len() - 1,
            Bound::Included(entry) => self.of(entry, true),
            Bound::Excluded(entry) => self.of(entry, false),
        }
    }

    /// Holds a block, and has it in memory.
    fn hold<'b>(&'b self, index: &IndexData, block: usize) -> Result<HeldBlock<'b>> {
        let Block { standing, is_used, .. } = &self.list[block];
        is_used.store(true, Ordering::Relaxed);
        // A thread that holds it may ask for it once more while another one waits to have it leave.
        let held = standing.read_recursive();
        if !matches!(*held, Standing::Away(_)) {
            return Ok(held);
        }
        drop(held);
        let mut held = standing.write();
        if let Standing::Away(blob) = &*held {
            let blob = blob.clone();
            let source = index.block_source().expect("who uses an index has its table");
            let is_of_image = source.load(index, self, (block, &*blob))?;
            *held = if is_of_image { Standing::Here(blob) } else { Standing::Stays };
        }
        Ok(RwLockWriteGuard::downgrade(held))
    }
}

/// A block that stays in memory as long as this lives.
type HeldBlock<'b> = RwLockReadGuard<'b, Standing>;

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
    /// Those of [`BlockSource::load`].
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
    /// Those of [`BlockSource::load`].
    pub(crate) fn all(&self) -> Result<Resident<'_>> {
        let Some(blocks) = self.blocks() else { return Ok(self.whole()) };
        let held = (0..blocks.list.len()).map(|block| blocks.hold(self, block)).collect::<Result<_>>()?;
        Ok(Resident { entries: self.entries(), _held: held })
    }

    #[inline]
    fn whole(&self) -> Resident<'_> {
        Resident { entries: self.entries(), _held: SmallVec::new() }
    }

    #[cold]
    fn between<'i>(&'i self, blocks: &'i Blocks, low: &Entry, high: &Entry) -> Result<Resident<'i>> {
        let blocks_between = blocks.of(low, true)..=blocks.of(high, true);
        let held = blocks_between.map(|block| blocks.hold(self, block)).collect::<Result<_>>()?;
        Ok(Resident { entries: self.entries(), _held: held })
    }

    /// Adds entries of ascending keys for records that follow one another, as [`Entries::insert_new`] does.
    ///
    /// # Errors
    /// Those of [`BlockSource::load`].
    pub(crate) fn insert_new(&self, keys: &[IndexKey], first: Rid) -> Result<usize> {
        let (Some(blocks), [low, ..]) = (self.blocks(), keys) else {
            return Ok(self.entries().insert_new(keys, first));
        };
        let block = blocks.of(&beside_all(low, false), true);
        let _held = blocks.hold(self, block)?;
        let end = blocks.list.get(block + 1).map(|next| &next.first.0);
        let count = keys.iter().take_while(|key| end.is_none_or(|end| *key < end)).count();
        Ok(self.entries().insert_new(&keys[..count], first))
    }

    /// Appends the first entries between the bounds to `out`, as [`Entries::next`] does.
    ///
    /// # Errors
    /// Those of [`BlockSource::load`].
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
            let _held = blocks.hold(self, block)?;
            if self.entries().next(&(from, to), direction, full - out.len(), out) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Has blocks that are away read, as long as `goes_on`, and is whole once all are here.
    ///
    /// # Errors
    /// Those of [`BlockSource::load`].
    pub(crate) fn become_whole(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let Some(blocks) = self.blocks() else { return Ok(()) };
        for block in 0..blocks.list.len() {
            if !goes_on() {
                return Ok(());
            }
            drop(blocks.hold(self, block)?);
        }
        let _leaving = blocks.leaving.lock();
        let is_here = |block: &Block| !matches!(*block.standing.read_recursive(), Standing::Away(_));
        if blocks.list.iter().all(is_here) {
            self.note_whole();
            // Files that no checkpoint needs go. Who still holds a block has looked before, and goes on.
            blocks
                .list
                .iter()
                .filter_map(|block| block.standing.try_write())
                .for_each(|mut held| *held = Standing::Stays);
        }
        Ok(())
    }

    /// Has blocks leave that were not used since they were last asked to and take so much memory, if there are such.
    pub(crate) fn evict(&self, budget: &MemoryBudget, bytes: u64) {
        let Some(blocks) = self.blocks().filter(|_| bytes > 0) else { return };
        let Some(_leaving) = blocks.leaving.try_lock().filter(|_| self.blocks().is_some()) else { return };
        let mut left = 0;
        // Each is asked twice at most: those that were used stay the first time.
        for _ in 0..2 * blocks.list.len() {
            if left >= bytes {
                break;
            }
            let block = &blocks.list[blocks.hand.fetch_add(1, Ordering::Relaxed) % blocks.list.len()];
            if !block.is_used.swap(false, Ordering::Relaxed)
                && let Some(mut held) = block.standing.try_write()
                && let Standing::Here(blob) = &*held
                && let Ok(run) = blocks.read(&**blob)
            {
                left += run.bytes();
                self.entries_so_far().unload(run);
                *held = Standing::Away(blob.clone());
            }
        }
        blocks.bytes_here.fetch_sub(left, Ordering::Relaxed);
        self.charge(budget, -(left as i64));
    }

    /// Makes room for what a block has that is read, and counts it. What is entered is counted once more, together with all else, when
    /// that is next looked at.
    pub(crate) fn note_read(&self, blocks: &Blocks, budget: &MemoryBudget, bytes: u64) {
        if budget.is_crowded() {
            self.evict(budget, bytes);
        }
        blocks.bytes_here.fetch_add(bytes, Ordering::Relaxed);
        self.charge(budget, bytes as i64);
    }
}

impl Blocks {
    /// About the memory that blocks take that are here.
    pub(crate) fn bytes_here(&self) -> u64 {
        self.bytes_here.load(Ordering::Relaxed)
    }

    /// About the memory that all take.
    pub(crate) fn bytes_of_all(&self) -> u64 {
        /// A block of words; others have fewer entries for their bytes.
        const BLOCK_BYTES: u64 = 128 << 10;
        self.list.len() as u64 * BLOCK_BYTES
    }
}
