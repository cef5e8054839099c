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
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use lineage::HeldBlob;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use types::Rid;

use super::entries::Entry;
use super::order::{Bounds, IndexKey};
use super::runs::Run;
use crate::error::Result;

/// Whether the entries of a block are in memory, and where the image has them.
pub(super) enum Standing {
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
    /// held by the thread that has blocks leave, or says that all stay
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
    pub(super) fn of(&self, entry: &Entry, may_begin_there: bool) -> usize {
        let is_before = |block: &Block| if may_begin_there { block.first <= *entry } else { block.first < *entry };
        debug_assert!(!self.list.is_empty(), "invariant 7: an image without blocks is whole");
        self.list.partition_point(is_before).saturating_sub(1)
    }

    pub(super) fn of_low(&self, low: &Bound<Entry>) -> usize {
        match low {
            Bound::Unbounded => 0,
            Bound::Included(entry) | Bound::Excluded(entry) => self.of(entry, true),
        }
    }

    pub(super) fn of_high(&self, high: &Bound<Entry>) -> usize {
        match high {
            Bound::Unbounded => self.list.len() - 1,
            Bound::Included(entry) => self.of(entry, true),
            Bound::Excluded(entry) => self.of(entry, false),
        }
    }

    /// Holds a block, and has it in memory: `load` enters its entries where it is away, while nobody else holds it, and says whether
    /// they are those that the image has.
    ///
    /// # Errors
    /// Those of `load`.
    pub(super) fn hold(&self, block: usize, load: impl FnOnce(&dyn HeldBlob) -> Result<bool>) -> Result<HeldBlock<'_>> {
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
            *held = if load(&*blob)? { Standing::Here(blob) } else { Standing::Stays };
        }
        debug_assert!(!matches!(*held, Standing::Away(_)), "invariant 7: a block is held that is away");
        Ok(RwLockWriteGuard::downgrade(held))
    }

    /// Whether all blocks are here and stay so: no thread has any leave meanwhile, and `note_whole` is told before one may.
    pub(super) fn all_stay(&self, note_whole: impl FnOnce()) {
        let _leaving = self.leaving.lock();
        let is_here = |block: &Block| !matches!(*block.standing.read_recursive(), Standing::Away(_));
        if self.list.iter().all(is_here) {
            note_whole();
            // Files that no checkpoint needs go. A thread that still holds a block has looked before, and goes on.
            self.list
                .iter()
                .filter_map(|block| block.standing.try_write())
                .for_each(|mut held| *held = Standing::Stays);
        }
    }

    /// Has blocks leave that were not used since they were last asked to and take so much memory, if there are such and `may_leave` holds
    /// then: `unload` takes their entries out. Returns how much they took.
    pub(super) fn evict(&self, bytes: u64, may_leave: impl FnOnce() -> bool, unload: impl Fn(Run)) -> u64 {
        let Some(_leaving) = self.leaving.try_lock().filter(|_| may_leave()) else { return 0 };
        let mut left = 0;
        // Each is asked twice at most: those that were used stay the first time.
        for _ in 0..2 * self.list.len() {
            if left >= bytes {
                break;
            }
            let block = &self.list[self.hand.fetch_add(1, Ordering::Relaxed) % self.list.len()];
            if !block.is_used.swap(false, Ordering::Relaxed)
                && let Some(mut held) = block.standing.try_write()
                && let Standing::Here(blob) = &*held
                && let Ok(run) = self.read(&**blob)
            {
                left += run.bytes();
                unload(run);
                *held = Standing::Away(blob.clone());
            }
        }
        let here = self.bytes_here.fetch_sub(left, Ordering::Relaxed);
        debug_assert!(left <= here, "invariant 9: {left} bytes have left of {here}");
        left
    }

    /// Notes that the entries of a block come.
    pub(super) fn note_bytes(&self, bytes: u64) {
        self.bytes_here.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Where the key of the block behind this one begins.
    pub(super) fn end_key(&self, block: usize) -> Option<&IndexKey> {
        self.list.get(block + 1).map(|next| &next.first.0)
    }
}

/// A block that stays in memory as long as this lives.
pub(super) type HeldBlock<'b> = RwLockReadGuard<'b, Standing>;

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
