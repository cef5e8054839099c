//! An index of which parts may be away: what of its image on disk is in memory, how that is held, and how a new image takes the place
//! of an old one.
//!
//! ```text
//! blocks of the image   | a .. d | d .. h | h .. m | m .. t | t ..  |     neighbours in the order of the index, a blob each
//! first entries         a        d        h        m        t            in memory, as is what each block's standing is
//! standing              away     here     away     here     away
//!                                  |                 |
//! entries in memory     e      d e f g        k    m n p s    u v       of blocks that are here, and what came since the image
//! ```
//!
//! What the index has is what is in memory and what the blocks that are away have. A thread that asks for a key holds the block between
//! whose first entries the key lies ([`BlockList::hold`]), which reads it before if it is away. A block that nobody holds may leave
//! ([`Residence::evict`]): what the image has of it is taken out of memory, and what came since stays.
//!
//! An index without a list of blocks is *whole*: one load tells ([`Residence::blocks`]), and nobody holds anything. It becomes so again
//! once all blocks are here ([`Residence::note_here`]).
//!
//! **A new image** ([`Residence::exchange`]) brings a list of blocks of its own, whether the index was whole or not:
//!
//! ```text
//! old list      | here | away | here |  a block that is away is marked as replaced: a thread that wants it takes the new list
//! new list      |  here  | away |here|  here where all that lies between its bounds is here; the same block where run and place are one
//! published     one pointer; from now on threads take the new list
//! blocks leave  once no thread has the old list, or takes the index for whole: each of them has the epoch pinned
//! ```
//!
//! So what a thread has seen to be here stays until it lets go of the epoch, and no two threads load the same entries at once under
//! different locks, which matters where loading changes the order of a list for a moment. Exchanges, and blocks that leave, take one
//! mutex; readers never do.
#[cfg(all(shuttle, test))]
mod models;
#[cfg(test)]
mod tests;

use std::ops::Bound;
use std::sync::{Arc, PoisonError, TryLockError, Weak};

use sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sync::blocking::{Mutex, MutexGuard};
use sync::{EpochCell, Guard, Shared, SharedLock};

/// Whether the entries of a block are in memory, and where the image has them.
pub enum Standing<B> {
    /// The image alone has them.
    Away(B),
    /// They are in memory, and the image has them.
    Here(B),
    /// They are in memory, and do not leave.
    Stays,
    /// It was away when a list of blocks took the place of this one, and is no longer loaded.
    Replaced,
}

struct Block<E, B> {
    first: E,
    standing: SharedLock<Standing<B>>,
    /// since the last look for what may leave
    is_used: AtomicBool,
}

impl<E, B> Block<E, B> {
    fn new(first: E, standing: Standing<B>) -> Arc<Block<E, B>> {
        Arc::new(Block { first, standing: SharedLock::new(standing), is_used: AtomicBool::new(false) })
    }

    fn is_away(&self) -> bool {
        matches!(*self.standing.read(), Standing::Away(_))
    }

    /// Whether it is here, to be known once and for all: where it is away it is replaced. To be called while none may leave.
    fn settle(&self) -> bool {
        loop {
            if !self.is_away() {
                return true;
            }
            // A thread that loads it now may wait for the exchange, once it holds the block: no waiting for it.
            if let Some(mut standing) = self.standing.try_write()
                && matches!(*standing, Standing::Away(_))
            {
                *standing = Standing::Replaced;
                return false;
            }
            sync::thread::yield_now();
        }
    }
}

/// The blocks of an image in the order of the index: `E` is an entry, `B` where a block is on disk, `X` what the caller keeps with them.
pub struct BlockList<E, B, X> {
    list: Box<[Arc<Block<E, B>>]>,
    with: X,
    /// where the next look for blocks that may leave begins
    hand: AtomicUsize,
}

/// A block that stays in memory as long as this lives.
pub type HeldBlock<'b, B> = Shared<'b, Standing<B>>;

impl<E: Ord, B: Clone + PartialEq, X: PartialEq> BlockList<E, B, X> {
    /// Blocks that are all away, in their order with the first entry of each.
    ///
    /// # Panics
    /// If there are none: an image without entries leaves nothing to be read.
    pub fn new(blocks: Vec<(E, B)>, with: X) -> BlockList<E, B, X> {
        Self::of(blocks.into_iter().map(|(first, blob)| Block::new(first, Standing::Away(blob))).collect(), with)
    }

    fn of(list: Box<[Arc<Block<E, B>>]>, with: X) -> BlockList<E, B, X> {
        assert!(!list.is_empty(), "an image without blocks is whole");
        debug_assert!(list.is_sorted_by(|one, next| one.first < next.first), "invariant 7: blocks out of order");
        BlockList { list, with, hand: AtomicUsize::new(0) }
    }

    /// What the caller keeps with them.
    pub fn with(&self) -> &X {
        &self.with
    }

    /// How many there are, at least one.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The entries between which a block lies.
    pub fn bounds(&self, block: usize) -> (Bound<&E>, Bound<&E>) {
        let low = if block == 0 { Bound::Unbounded } else { Bound::Included(&self.list[block].first) };
        (low, self.first(block + 1).map_or(Bound::Unbounded, Bound::Excluded))
    }

    /// The first entry of a block, if there is such a block.
    pub fn first(&self, block: usize) -> Option<&E> {
        self.list.get(block).map(|block| &block.first)
    }

    /// The block in which an entry is; where `may_begin_there` is false, the one in which those just before it are.
    pub fn of_entry(&self, entry: &E, may_begin_there: bool) -> usize {
        let is_before = |block: &Arc<Block<E, B>>| match may_begin_there {
            true => block.first <= *entry,
            false => block.first < *entry,
        };
        self.list.partition_point(is_before).saturating_sub(1)
    }

    /// The block in which a range begins.
    pub fn of_low(&self, low: Bound<&E>) -> usize {
        match low {
            Bound::Unbounded => 0,
            Bound::Included(entry) | Bound::Excluded(entry) => self.of_entry(entry, true),
        }
    }

    /// The block in which a range ends.
    pub fn of_high(&self, high: Bound<&E>) -> usize {
        match high {
            Bound::Unbounded => self.list.len() - 1,
            Bound::Included(entry) => self.of_entry(entry, true),
            Bound::Excluded(entry) => self.of_entry(entry, false),
        }
    }

    /// Holds a block, and has it in memory: `load` enters its entries where it is away, while nobody else holds it, and says whether
    /// they are those that the image has. `None` if another list has taken the place of this one, which is to be asked instead.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn hold<F>(
        &self,
        block: usize,
        mut load: impl FnMut(&B) -> Result<bool, F>,
    ) -> Result<Option<HeldBlock<'_, B>>, F> {
        let Block { standing, is_used, .. } = &*self.list[block];
        loop {
            is_used.store(true, Ordering::Relaxed);
            // A thread that holds it may ask for it once more while another one waits to have it leave.
            let held = standing.read();
            match *held {
                Standing::Here(_) | Standing::Stays => return Ok(Some(held)),
                Standing::Replaced => return Ok(None),
                Standing::Away(_) => drop(held),
            }
            let mut loading = standing.write();
            if let Standing::Away(blob) = &*loading {
                let blob = blob.clone();
                *loading = if load(&blob)? { Standing::Here(blob) } else { Standing::Stays };
            }
        }
    }

    /// Has `look` look at a block that is away, which nobody loads meanwhile. `None` where it is here.
    pub fn while_away<R>(&self, block: usize, look: impl FnOnce(&B) -> R) -> Option<R> {
        match &*self.list[block].standing.read() {
            Standing::Away(blob) => Some(look(blob)),
            Standing::Here(_) | Standing::Stays | Standing::Replaced => None,
        }
    }

    /// The list of a new image, which takes the place of this one, and how many of its blocks are here. To be called while none may
    /// leave.
    fn succeeded_by(&self, blocks: Vec<(E, B)>, with: X) -> (BlockList<E, B, X>, usize) {
        let may_keep = self.with == with;
        let same = |(first, blob): &(E, B)| {
            let known = &self.list[self.of_entry(first, true)];
            let is_same = may_keep
                && known.first == *first
                && matches!(&*known.standing.read(), Standing::Away(place) | Standing::Here(place) if place == blob);
            is_same.then(|| known.clone())
        };
        let kept: Vec<Option<Arc<Block<E, B>>>> = blocks.iter().map(same).collect();
        let mut kept_in_order = kept.iter().flatten().peekable();
        let mut is_here = Vec::with_capacity(self.list.len());
        for block in &self.list {
            let stays = kept_in_order.next_if(|kept| Arc::ptr_eq(kept, block)).is_some();
            is_here.push(if stays { !block.is_away() } else { block.settle() });
        }
        debug_assert!(kept_in_order.next().is_none(), "invariant 7: kept blocks out of order");
        let (mut list, mut here) = (Vec::with_capacity(blocks.len()), 0);
        let mut blocks = blocks.into_iter().zip(kept).peekable();
        while let Some(((first, blob), kept)) = blocks.next() {
            let low = if list.is_empty() { 0 } else { self.of_entry(&first, true) };
            let high = blocks.peek().map_or(self.list.len() - 1, |((next, _), _)| self.of_entry(next, false));
            let is_here = is_here[low..=high].iter().all(|is_here| *is_here);
            here += usize::from(is_here);
            list.push(kept.unwrap_or_else(|| {
                Block::new(first, if is_here { Standing::Here(blob) } else { Standing::Away(blob) })
            }));
        }
        (Self::of(list.into(), with), here)
    }
}

/// What threads take for the index until another list of blocks takes its place.
struct Generation<L> {
    /// `None` where it was whole from the beginning
    list: Option<Arc<L>>,
    /// The one before: threads may have it until it is dropped.
    former: Weak<()>,
    alive: Arc<()>,
}

/// Which blocks an index has, if it is not whole.
pub struct Residence<E, B, X> {
    /// whether a block may be away
    is_partial: AtomicBool,
    current: EpochCell<Generation<BlockList<E, B, X>>>,
    /// held while a list takes the place of another, blocks leave, or the index becomes whole
    changing: Mutex<()>,
}

/// No block leaves, and no other list comes, as long as this lives.
pub struct Unchanging<'r> {
    _changing: MutexGuard<'r, ()>,
}

impl<E, B, X> Residence<E, B, X>
where
    E: Ord + Send + Sync + 'static,
    B: Clone + PartialEq + Send + Sync + 'static,
    X: PartialEq + Send + Sync + 'static,
{
    /// That of an index that is whole.
    pub fn whole() -> Self {
        let current = EpochCell::new(Generation { list: None, former: Weak::new(), alive: Arc::new(()) });
        Residence { is_partial: AtomicBool::new(false), current, changing: Mutex::new(()) }
    }

    /// The blocks, as long as one may be away. Where there are none, none leaves as long as the epoch is pinned.
    #[inline]
    pub fn blocks<'g>(&'g self, guard: &'g Guard) -> Option<&'g BlockList<E, B, X>> {
        if self.is_partial.load(Ordering::Acquire) { self.current.load(guard).list.as_deref() } else { None }
    }

    /// The blocks, as long as one may be away, for a caller that has them read and does not look at what is in memory: what it holds
    /// stays there only until another list comes.
    pub fn shared_blocks(&self) -> Option<Arc<BlockList<E, B, X>>> {
        match self.is_partial.load(Ordering::Acquire) {
            true => self.current.load(&sync::pin()).list.clone(),
            false => None,
        }
    }

    /// Whether a block may be away.
    #[inline]
    pub fn is_partial(&self) -> bool {
        self.is_partial.load(Ordering::Acquire)
    }

    /// Has the blocks of an image read when they are needed: of an index that has no entries, and that no other thread asks.
    pub fn begin(&self, blocks: Vec<(E, B)>, with: X) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.publish(BlockList::new(blocks, with), Weak::new());
    }

    /// Has the blocks of a new image take the place of what there was: they have all entries that were in memory, or in blocks that
    /// were away, when that image began to be made. Returns how many of them are here; `None`, and nothing has changed, where blocks
    /// leave at the time.
    pub fn exchange(&self, blocks: Vec<(E, B)>, with: X) -> Option<usize> {
        let _changing = self.try_change()?;
        let guard = &sync::pin();
        let Generation { list, alive, .. } = self.current.load(guard);
        let (list, here) = match list {
            Some(list) => list.succeeded_by(blocks, with),
            None => {
                let here = |(first, blob): (E, B)| Block::new(first, Standing::Here(blob));
                let list: Box<[_]> = blocks.into_iter().map(here).collect();
                let count = list.len();
                (BlockList::of(list, with), count)
            }
        };
        self.publish(list, Arc::downgrade(alive));
        Some(here)
    }

    /// A thread that still finds the index whole, or the list before, has pinned the epoch before that is taken away.
    fn publish(&self, list: BlockList<E, B, X>, former: Weak<()>) {
        self.is_partial.store(true, Ordering::Release);
        let generation = Generation { list: Some(Arc::new(list)), former, alive: Arc::new(()) };
        let guard = sync::pin();
        self.current.replace(generation, &guard);
        // What this thread has replaced goes once others have gone on, whatever it does from here on.
        guard.flush();
    }

    fn try_change(&self) -> Option<MutexGuard<'_, ()>> {
        match self.changing.try_lock() {
            Ok(changing) => Some(changing),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Keeps the blocks as they are, but for those that come.
    pub fn keep(&self) -> Unchanging<'_> {
        Unchanging { _changing: self.changing.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Has blocks leave that were not used since they were last asked to, until they took `wanted`: `unload` takes the entries of one
    /// out that its image has, and says how much they took, or that they can't be read. Returns how much that is together. No block
    /// leaves as long as a thread may still take the index for what it was before.
    pub fn evict(&self, wanted: u64, mut unload: impl FnMut(&BlockList<E, B, X>, &B) -> Option<u64>) -> u64 {
        let Some((_changing, list)) = self.try_change().and_then(|changing| Some((changing, self.leaving()?))) else {
            return 0;
        };
        let mut left = 0;
        // Each is asked twice at most: those that were used stay the first time.
        for _ in 0..2 * list.list.len() {
            if left >= wanted {
                break;
            }
            let block = &list.list[list.hand.fetch_add(1, Ordering::Relaxed) % list.list.len()];
            if !block.is_used.swap(false, Ordering::Relaxed)
                && let Some(mut held) = block.standing.try_write()
                && let Standing::Here(blob) = &*held
                && let Some(bytes) = unload(&list, blob)
            {
                left += bytes;
                *held = Standing::Away(blob.clone());
            }
        }
        left
    }

    /// The list whose blocks may leave, if there is one. To be called while none is exchanged.
    fn leaving(&self) -> Option<Arc<BlockList<E, B, X>>> {
        let guard = sync::pin();
        let generation = self.current.load(&guard);
        if self.is_partial() && generation.former.strong_count() == 0 {
            return generation.list.clone();
        }
        // It goes once others have gone on.
        guard.flush();
        None
    }

    /// Takes the index for whole from now on, if all blocks are here. Returns whether it is; not so where blocks leave at the time, or
    /// are kept as they are.
    pub fn note_here(&self) -> bool {
        let Some(_changing) = self.try_change() else { return false };
        let list = match self.shared_blocks() {
            Some(list) if list.list.iter().any(|block| block.is_away()) => return false,
            Some(list) => list,
            None => return true,
        };
        self.is_partial.store(false, Ordering::Release);
        // Files that no checkpoint needs go. A thread that still holds a block has looked before, and goes on.
        list.list
            .iter()
            .filter_map(|block| block.standing.try_write())
            .for_each(|mut standing| *standing = Standing::Stays);
        true
    }
}
