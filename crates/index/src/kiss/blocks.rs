//! Memory for the nodes of the third level (KISS-Tree, section 5), named by compact pointers of 32 bits (section 3.2).
//!
//! ```text
//! compact pointer   | size class: 6 | chunk: 9 | block within the chunk: 17 |      class c holds c + 1 values
//!                    `------ directory index -----'
//! ```
//!
//! A class is a segment of at most 2^26 blocks of one size. The paper reserves all segments at once, 1.15 TB of
//! address space, of which a process could hold about a hundred. Here a segment grows by chunks of 2^17 blocks, found
//! through a directory with the upper 15 bits of the pointer: one more load, nearly always from the first-level
//! cache, and a tree reserves what it needs. The first 2 MiB of a segment have small pages, what follows has large ones:
//! so a segment never has more than twice the memory that its blocks take.
//!
//! A thread takes a run of blocks from the segment by one atomic addition and goes on alone. Blocks taken out of
//! use gather in its inactive list; a full list waits as a whole until every reader of its time has gone (a grace
//! period), and then becomes active: free for new nodes, on the lists of the thread that saw the period end.
//! Threads find their lists by their number; a thread without free blocks looks for some on the lists of others
//! before it takes a fresh run. The latch of lists is tried, never waited for, unless all are taken.
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use sync::zeroed::{AtomicPtr, AtomicU32, AtomicU64};
use sync::{CachePadded, Guard, thread_slot};

use super::mapping::{AddressSpaceError, HUGE_PAGE, Mapping, Pages};
use super::node::Node;

const CLASSES: usize = 64;
const BLOCK_BITS: u32 = 26;
const CHUNK_BITS: u32 = 17;
const CHUNK_BLOCKS: u32 = 1 << CHUNK_BITS;
const CHUNKS: usize = 1 << (u32::BITS - CHUNK_BITS);
const DIRECTORY_BYTES: usize = CHUNKS * size_of::<AtomicPtr<u8>>();
const SHELVES: usize = 16;
/// How many blocks wait together for a grace period.
const WAITING: usize = if cfg!(shuttle) { 1 } else { 128 };
/// A thread takes about as many blocks at once as fill this.
const RUN_BYTES: usize = 4096;

/// The name of a block: its size class and its number. The zero pointer names none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pointer(u32);

impl Pointer {
    pub(super) const EMPTY: Pointer = Pointer(0);

    fn new(class: usize, block: u32) -> Pointer {
        Pointer((class as u32) << BLOCK_BITS | block)
    }

    #[inline]
    pub(super) fn from_word(word: u32) -> Pointer {
        Pointer(word)
    }

    #[inline]
    pub(super) fn word(self) -> u32 {
        self.0
    }

    #[inline]
    fn class(self) -> usize {
        (self.0 >> BLOCK_BITS) as usize
    }

    fn block(self) -> u32 {
        self.0 & ((1 << BLOCK_BITS) - 1)
    }

    /// Whether the node has all its values.
    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.class() == CLASSES - 1
    }
}

#[inline]
const fn block_bytes(class: usize) -> usize {
    8 * (class + 2)
}

const fn chunk_bytes(class: usize) -> usize {
    block_bytes(class) << CHUNK_BITS
}

/// How many blocks a thread takes at once: a power of two, so that a run never crosses a chunk.
fn run_blocks(class: usize) -> u32 {
    // In a model a single one, so that threads use each other's.
    if cfg!(shuttle) { 1 } else { 1 << (RUN_BYTES / block_bytes(class)).ilog2() }
}

/// The lists of the threads with one number.
struct Lists {
    active: [Vec<u32>; CLASSES],
    fresh: [Range<u32>; CLASSES],
    inactive: Vec<Pointer>,
    taken_count: u64,
    retired_count: u64,
}

/// Counts of the blocks of an arena by their state.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct BlockCounts {
    /// Blocks that hold a node.
    pub(super) used: u64,
    /// Bytes of blocks ever handed out: used, waiting and free ones, with what threads hold in reserve.
    pub(super) claimed_bytes: u64,
}

/// The segments of one tree.
pub(super) struct Arena {
    directory: Mapping,
    next: [AtomicU32; CLASSES],
    shelves: [CachePadded<Mutex<Option<Box<Lists>>>>; SHELVES],
    pages: Pages,
}

impl Arena {
    pub(super) fn new(pages: Pages) -> Result<Arc<Arena>, AddressSpaceError> {
        // Block 0 of class 0 would be the zero pointer; its run is never handed out.
        let next = std::array::from_fn(|class| AtomicU32::new(if class == 0 { run_blocks(0) } else { 0 }));
        let shelves = std::array::from_fn(|_| CachePadded::new(Mutex::new(None)));
        let directory = Mapping::reserve(DIRECTORY_BYTES)?;
        Ok(Arc::new(Arena { directory, next, shelves, pages }))
    }

    #[inline]
    fn chunk(&self, index: usize) -> &AtomicPtr<u8> {
        debug_assert!(index < CHUNKS);
        // SAFETY: the directory has `CHUNKS` entries, the index comes from the upper 15 bits of a pointer, and zeros
        // are a valid null pointer.
        unsafe { self.directory.start().cast::<AtomicPtr<u8>>().add(index).as_ref() }
    }

    /// Where a block lies. The pointer was handed out by this arena, so its chunk is there.
    #[inline]
    fn address(&self, pointer: Pointer) -> NonNull<u64> {
        self.address_of_block(pointer, block_bytes(pointer.class()))
    }

    /// Where a block of so many bytes lies.
    #[inline]
    fn address_of_block(&self, pointer: Pointer, bytes: usize) -> NonNull<u64> {
        let chunk = self.chunk((pointer.0 >> CHUNK_BITS) as usize).load(Ordering::Acquire);
        debug_assert!(!chunk.is_null() && bytes == block_bytes(pointer.class()));
        let offset = (pointer.0 & (CHUNK_BLOCKS - 1)) as usize * bytes;
        // SAFETY: the chunk was mapped before any pointer into it was handed out, and holds 2^17 blocks of the class.
        unsafe { NonNull::new_unchecked(chunk.add(offset).cast()) }
    }

    /// The node of a block that was published, if the pointer names one.
    ///
    /// # Safety
    /// `pointer` was read from a slot of this arena's tree while `guard` was pinned, or is empty.
    #[inline]
    pub(super) unsafe fn node<'g>(&'g self, pointer: Pointer, _guard: &'g Guard) -> Option<Node<'g>> {
        // SAFETY: a published block is initialised, and is reused only after every guard pinned before it was taken
        // out of its slot is gone; the arena, which the result borrows, keeps the chunk.
        (pointer != Pointer::EMPTY).then(|| unsafe { Node::at(self.address(pointer).cast::<AtomicU64>()) })
    }

    /// The node, if it has all its values.
    ///
    /// # Safety
    /// As for [`node`](Self::node).
    #[inline]
    pub(super) unsafe fn full_node<'g>(&'g self, pointer: Pointer, _guard: &'g Guard) -> Option<Node<'g>> {
        let address = || self.address_of_block(pointer, block_bytes(CLASSES - 1)).cast::<AtomicU64>();
        // SAFETY: as in `node`; a pointer to a full node is not the empty one.
        pointer.is_full().then(|| unsafe { Node::at(address()) })
    }

    /// The lists of this thread, for one change. Not to be held while anything else of the arena is called.
    pub(super) fn lists(&self) -> ListsGuard<'_> {
        ListsGuard { arena: self, shelf: self.shelf() }
    }

    /// A run of blocks that were never used. Its chunk is there before the run is taken, so a run that the system refuses is
    /// not lost: the next thread asks for it again.
    fn take_run(&self, class: usize) -> Result<Range<u32>, AddressSpaceError> {
        let (run, next) = (run_blocks(class), &self.next[class]);
        loop {
            let start = next.load(Ordering::Relaxed);
            if start >= 1 << BLOCK_BITS {
                return Err(AddressSpaceError::UsedUp { values: class + 1 });
            }
            self.make_chunk(class, start)?;
            if next.compare_exchange(start, start + run, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Ok(start..start + run);
            }
        }
    }

    /// Reserves the chunk of a block, unless it is there.
    fn make_chunk(&self, class: usize, block: u32) -> Result<(), AddressSpaceError> {
        let chunk = self.chunk((Pointer::new(class, block).0 >> CHUNK_BITS) as usize);
        if chunk.load(Ordering::Acquire).is_null() {
            let mapping = Mapping::reserve(chunk_bytes(class))?;
            if self.pages == Pages::Adaptive {
                let is_first = block < CHUNK_BLOCKS;
                mapping.prefer_huge(if is_first { HUGE_PAGE } else { 0 }..chunk_bytes(class));
            }
            let ours = mapping.start().as_ptr();
            if chunk.compare_exchange(std::ptr::null_mut(), ours, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                mapping.into_start();
            }
        }
        Ok(())
    }

    /// Blocks out of their slots become free once every reader of this time has gone.
    pub(super) fn wait_for_readers(self: &Arc<Self>, retired: Option<Vec<Pointer>>, guard: &Guard) {
        let Some(retired) = retired else { return };
        let arena = Arc::clone(self);
        guard.defer(move || arena.activate(&retired));
        // A deferred call would otherwise stay with the thread until there are some dozens of them.
        guard.flush();
    }

    /// A grace period is over: the blocks are free.
    fn activate(&self, blocks: &[Pointer]) {
        let mut shelf = self.shelf();
        let lists = shelf.get_or_insert_with(Lists::empty);
        for pointer in blocks {
            lists.active[pointer.class()].push(pointer.block());
        }
    }

    /// The lists of this thread, or of another number if a thread with the same one is at work.
    fn shelf(&self) -> MutexGuard<'_, Option<Box<Lists>>> {
        let mine = &self.shelves[thread_slot() % SHELVES];
        self.free_shelves().next().unwrap_or_else(|| mine.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The shelves that no thread is working on, that of this thread first.
    fn free_shelves(&self) -> impl Iterator<Item = MutexGuard<'_, Option<Box<Lists>>>> {
        let mine = thread_slot() % SHELVES;
        (mine..mine + SHELVES).filter_map(|number| match self.shelves[number % SHELVES].try_lock() {
            Ok(lists) => Some(lists),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// Takes the free blocks of lists that no thread is working on, if they are at least as many as a fresh run
    /// has. A thread that sees a grace period end gets its blocks; a reader may be that thread, and needs none.
    fn take_from_others(&self, class: usize) -> Option<Vec<u32>> {
        self.free_shelves().find_map(|mut shelf| {
            let blocks = &mut shelf.as_mut()?.active[class];
            (blocks.len() >= run_blocks(class) as usize).then(|| std::mem::take(blocks))
        })
    }

    pub(super) fn counts(&self) -> BlockCounts {
        let mut counts = BlockCounts::default();
        for shelf in &self.shelves {
            let lists = shelf.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(lists) = &*lists {
                counts.used = counts.used.wrapping_add(lists.taken_count.wrapping_sub(lists.retired_count));
            }
        }
        for (class, next) in self.next.iter().enumerate() {
            counts.claimed_bytes += u64::from(next.load(Ordering::Relaxed)) * block_bytes(class) as u64;
        }
        counts
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for class in 0..CLASSES {
            let block_count = self.next[class].load(Ordering::Relaxed);
            for first_block in (0..block_count).step_by(CHUNK_BLOCKS as usize) {
                let index = Pointer::new(class, first_block).0 >> CHUNK_BITS;
                let start = self.chunk(index as usize).load(Ordering::Relaxed);
                if let Some(start) = NonNull::new(start) {
                    // SAFETY: `take_run` took this mapping apart when it put its start here, with this length.
                    drop(unsafe { Mapping::from_start(start, chunk_bytes(class)) });
                }
            }
        }
    }
}

/// The lists of one thread, in use.
pub(super) struct ListsGuard<'a> {
    arena: &'a Arena,
    shelf: MutexGuard<'a, Option<Box<Lists>>>,
}

impl ListsGuard<'_> {
    /// A block for as many values as `bitmap` has bits, at least one, and its memory.
    pub(super) fn take(&mut self, bitmap: u64) -> Result<(Pointer, NonNull<u64>), AddressSpaceError> {
        let class = bitmap.count_ones() as usize - 1;
        let lists = self.shelf.get_or_insert_with(Lists::empty);
        if lists.active[class].is_empty() && lists.fresh[class].is_empty() {
            match self.arena.take_from_others(class) {
                Some(blocks) => lists.active[class] = blocks,
                None => lists.fresh[class] = self.arena.take_run(class)?,
            }
        }
        let block = lists.active[class].pop().or_else(|| lists.fresh[class].next()).expect("one was found");
        lists.taken_count += 1;
        let pointer = Pointer::new(class, block);
        Ok((pointer, self.arena.address(pointer)))
    }

    /// Takes back a block that no other thread has seen.
    pub(super) fn put_back(&mut self, pointer: Pointer) {
        if pointer != Pointer::EMPTY {
            let lists = self.shelf.get_or_insert_with(Lists::empty);
            lists.active[pointer.class()].push(pointer.block());
            lists.retired_count += 1;
        }
    }

    /// Takes back a block that is out of its slot; readers may still hold it. Now and then returns those that came
    /// together, for [`Arena::wait_for_readers`].
    pub(super) fn retire(mut self, pointer: Pointer) -> Option<Vec<Pointer>> {
        if pointer == Pointer::EMPTY {
            return None;
        }
        let lists = self.shelf.get_or_insert_with(Lists::empty);
        lists.inactive.push(pointer);
        lists.retired_count += 1;
        (lists.inactive.len() == WAITING).then(|| std::mem::replace(&mut lists.inactive, Vec::with_capacity(WAITING)))
    }
}

impl Lists {
    fn empty() -> Box<Lists> {
        Box::new(Lists {
            active: [const { Vec::new() }; CLASSES],
            fresh: [const { 0..0 }; CLASSES],
            inactive: Vec::new(),
            taken_count: 0,
            retired_count: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn blocks_of_all_classes_are_apart_and_none_is_the_zero_pointer() {
        let arena = Arena::new(Pages::default()).unwrap();
        let mut spans = Vec::new();
        for round in 0..300 {
            for class in 0..CLASSES {
                let (pointer, memory) = arena.lists().take(u64::MAX >> (63 - class)).unwrap();
                assert!(pointer != Pointer::EMPTY && pointer.class() == class, "round {round}");
                spans.push((memory.as_ptr().addr(), block_bytes(class)));
            }
        }
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    }

    #[test]
    fn a_segment_grows_beyond_its_first_chunk() {
        let arena = Arena::new(Pages::default()).unwrap();
        let seen: HashSet<usize> = (0..CHUNK_BLOCKS * 2)
            .map(|_| {
                let (pointer, memory) = arena.lists().take(1).unwrap();
                assert_eq!(arena.address(pointer), memory);
                memory.as_ptr().addr()
            })
            .collect();
        assert_eq!(seen.len(), CHUNK_BLOCKS as usize * 2);
        let claimed = arena.counts().claimed_bytes;
        assert!(claimed >= 16 * u64::from(CHUNK_BLOCKS) * 2, "{claimed}");
    }

    #[test]
    fn free_blocks_of_other_threads_are_used_before_fresh_ones() {
        let arena = Arena::new(Pages::default()).unwrap();
        let take = |class: usize| arena.lists().take(u64::MAX >> (63 - class)).unwrap().0;
        for class in [0, 5, 63] {
            let count = 3 * run_blocks(class) as usize;
            let taken = std::thread::scope(|scope| {
                let other = scope.spawn(|| {
                    let taken: Vec<Pointer> = (0..count).map(|_| take(class)).collect();
                    taken.iter().for_each(|pointer| arena.lists().put_back(*pointer));
                    taken
                });
                other.join().unwrap()
            });
            let claimed = arena.counts().claimed_bytes;
            let again: HashSet<u32> = (0..count).map(|_| take(class).word()).collect();
            assert_eq!(again, taken.iter().map(|pointer| pointer.word()).collect());
            assert_eq!(arena.counts().claimed_bytes, claimed, "no fresh run");
        }
    }

    #[test]
    fn a_retired_block_comes_back_only_after_its_readers_have_gone() {
        let arena = Arena::new(Pages::default()).unwrap();
        let reader = sync::pin();
        let retired: Vec<Pointer> = (0..WAITING).map(|_| arena.lists().take(0b11).unwrap().0).collect();
        retired.iter().for_each(|pointer| {
            let together = arena.lists().retire(*pointer);
            arena.wait_for_readers(together, &sync::pin());
        });
        let flush = || (0..200).for_each(|_| sync::pin().flush());
        flush();
        let meanwhile: Vec<Pointer> = (0..WAITING).map(|_| arena.lists().take(0b11).unwrap().0).collect();
        assert!(meanwhile.iter().all(|pointer| !retired.contains(pointer)));
        drop(reader);
        let mut reused = Vec::new();
        while reused.is_empty() {
            flush();
            reused.extend(
                (0..WAITING).map(|_| arena.lists().take(0b11).unwrap().0).filter(|pointer| retired.contains(pointer)),
            );
        }
        assert_eq!(arena.counts().used % WAITING as u64, 0);
    }
}
