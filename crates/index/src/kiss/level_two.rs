//! The virtual first and the on-demand second level (KISS-Tree, sections 3.1 and 3.2), for the 32-bit keys below one
//! upper half, the *home* of the tree.
//!
//! ```text
//! key     | home: 32 | page: 16 | slot: 10 | value: 6 |
//!                      `- the place of the slot is computed: the first level is no memory at all
//!
//! mapping | 2^26 slots: 65,536 pages of 1,024 | dense: a bit a page | closing: a bit a page | summary | large |
//! ```
//!
//! The paper gives every page 4 KiB as soon as one key falls into it. Here a page counts only once its `dense` bit
//! is set; before, its few keys live in the trie above ([`super::trie`]), so that a small tree stays small.
//! `closing` says that a thread is moving the page, and `summary` has a bit for each word of `dense`, for
//! iteration. Where half of the pages in a span of 2 MiB have come into use, they become one large page of the
//! machine; `large` has a bit a span.
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sync::Guard;
use sync::hint::SpinWait;
use sync::zeroed::{AtomicU32, AtomicU64};

use super::KissOptions;
use super::blocks::{Arena, Pointer};
use super::mapping::{AddressSpaceError, HUGE_PAGE, Mapping, Pages};
use super::node::{Edit, Node};

const PAGES: usize = 1 << 16;
pub(super) const PAGE_SLOTS: usize = 1 << 10;
pub(super) const SLOTS: usize = PAGES * PAGE_SLOTS;
const VALUE_BITS: u32 = 6;
pub(super) const PAGE_SHIFT: u32 = 16;
const BITMAP_WORDS: usize = PAGES / 64;
const SUMMARY_WORDS: usize = BITMAP_WORDS / 64;
/// Enough for slots of 8 bytes.
const LARGE_WORDS: usize = SLOTS * 8 / HUGE_PAGE / 64;
const ALL_WORDS: usize = 2 * BITMAP_WORDS + SUMMARY_WORDS + LARGE_WORDS;

/// A slot of the second level: a compact pointer, and what its kind has beside it.
pub trait Slot: Send + Sync + 'static {
    /// Whether values can be written in place.
    const IN_PLACE: bool;
    /// The slot's word.
    fn read(&self) -> u64;
    /// The word once no thread is writing a value in place.
    fn read_settled(&self) -> u64;
    /// The compact pointer of a word.
    fn pointer(word: u64) -> u32;
    /// Exchanges the pointer, if the slot still holds `seen`.
    fn replace(&self, seen: u64, pointer: u32) -> bool;
    /// Runs `write`, which writes a value in place, if the slot still holds `seen`. A thread that has copied the
    /// node since fails to exchange it.
    fn update(&self, seen: u64, write: impl FnOnce()) -> bool;
}

/// The paper's slots: 4 bytes, a compact pointer and nothing else. Every change of a value copies its node.
#[repr(transparent)]
pub struct Compact(AtomicU32);

impl Slot for Compact {
    const IN_PLACE: bool = false;

    #[inline]
    fn read(&self) -> u64 {
        u64::from(self.0.load(Ordering::Acquire))
    }

    #[inline]
    fn read_settled(&self) -> u64 {
        self.read()
    }

    #[inline]
    fn pointer(word: u64) -> u32 {
        word as u32
    }

    #[inline]
    fn replace(&self, seen: u64, pointer: u32) -> bool {
        self.0.compare_exchange(seen as u32, pointer, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn update(&self, _: u64, _: impl FnOnce()) -> bool {
        unreachable!("compact slots have no version")
    }
}

/// Slots of 8 bytes with a version beside the compact pointer, the paper's wish for quicker updates (section 7).
///
/// ```text
/// | version: 31 | latch: 1 | compact pointer: 32 |
/// ```
///
/// A version alone is not enough: were a value written before the version is raised, a reader could see the new value,
/// then the old one in a copy made meanwhile; were it written after, the copy could lose it. So the writer of a value
/// latches the slot for the one store; other writers of the same 64 keys wait for it, readers never do.
#[repr(transparent)]
pub struct Versioned(AtomicU64);

const LATCH: u64 = 1 << 32;
const NEXT_VERSION: u64 = 1 << 33;

impl Slot for Versioned {
    const IN_PLACE: bool = true;

    #[inline]
    fn read(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    #[inline]
    fn read_settled(&self) -> u64 {
        let mut wait = SpinWait::new();
        loop {
            let word = self.read();
            if word & LATCH == 0 {
                return word;
            }
            wait.pause();
        }
    }

    #[inline]
    fn pointer(word: u64) -> u32 {
        word as u32
    }

    #[inline]
    fn replace(&self, seen: u64, pointer: u32) -> bool {
        let new = (seen & !(LATCH | u64::from(u32::MAX))).wrapping_add(NEXT_VERSION) | u64::from(pointer);
        self.0.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn update(&self, seen: u64, write: impl FnOnce()) -> bool {
        if self.0.compare_exchange(seen, seen | LATCH, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        write();
        self.0.store(seen.wrapping_add(NEXT_VERSION), Ordering::Release);
        true
    }
}

/// The slots of the home, and which pages are in use.
pub(super) struct LevelTwo<S> {
    mapping: Mapping,
    home: u64,
    pages: Pages,
    slots: std::marker::PhantomData<S>,
}

impl<S: Slot> LevelTwo<S> {
    /// Pages of the second level that one large page of the machine holds.
    const SPAN_PAGES: usize = HUGE_PAGE / (PAGE_SLOTS * size_of::<S>());

    pub(super) fn new(KissOptions { home, pages }: KissOptions) -> Result<Self, AddressSpaceError> {
        let len_bytes = SLOTS * size_of::<S>() + ALL_WORDS * 8;
        let mapping = Mapping::reserve(len_bytes.next_multiple_of(4096))?;
        Ok(LevelTwo { mapping, home: u64::from(home) << 32, pages, slots: std::marker::PhantomData })
    }

    /// The page of a key of the home.
    #[inline]
    pub(super) fn page_of(&self, key: u64) -> Option<usize> {
        let below = key ^ self.home;
        (below >> 32 == 0).then_some((below >> PAGE_SHIFT) as usize)
    }

    /// The first key of a page.
    pub(super) fn key_of(&self, page: usize) -> u64 {
        self.home | (page as u64) << PAGE_SHIFT
    }

    /// The keys of the home.
    pub(super) fn keys(&self) -> RangeInclusive<u64> {
        self.home..=self.home | u64::from(u32::MAX)
    }

    #[inline]
    fn slot(&self, key: u64) -> &S {
        let index = (key as u32 >> VALUE_BITS) as usize;
        // SAFETY: the index has 26 bits and the mapping starts with 2^26 slots; a zeroed slot is an empty one.
        unsafe { self.mapping.start().cast::<S>().add(index).as_ref() }
    }

    #[inline]
    fn bitmap_word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < ALL_WORDS);
        // SAFETY: the bitmaps follow the slots in the mapping and have this many words; the start of the mapping and
        // the size of the slots are multiples of 8.
        unsafe { self.mapping.start().add(SLOTS * size_of::<S>()).cast::<AtomicU64>().add(index).as_ref() }
    }

    /// Whether the page is in use: its keys are here, and nowhere else.
    #[inline]
    pub(super) fn is_dense(&self, page: usize) -> bool {
        self.bitmap_word(page / 64).load(Ordering::Acquire) >> (page % 64) & 1 != 0
    }

    /// Gives the caller the task of moving the page here, unless another thread has or had it.
    pub(super) fn begin_closing(&self, page: usize) -> bool {
        let bit = 1 << (page % 64);
        self.bitmap_word(BITMAP_WORDS + page / 64).fetch_or(bit, Ordering::AcqRel) & bit == 0
    }

    /// The move did not happen.
    pub(super) fn give_up_closing(&self, page: usize) {
        self.bitmap_word(BITMAP_WORDS + page / 64).fetch_and(!(1 << (page % 64)), Ordering::AcqRel);
    }

    /// Waits while another thread is moving the page.
    pub(super) fn wait_while_closing(&self, page: usize) {
        let mut wait = SpinWait::new();
        let is_closing = || self.bitmap_word(BITMAP_WORDS + page / 64).load(Ordering::Acquire) >> (page % 64) & 1 != 0;
        while is_closing() && !self.is_dense(page) {
            wait.pause();
        }
    }

    /// The page is complete: from now on its keys are here.
    pub(super) fn open(&self, page: usize) {
        let word = page / 64;
        self.bitmap_word(2 * BITMAP_WORDS + word / 64).fetch_or(1 << (word % 64), Ordering::AcqRel);
        self.bitmap_word(word).fetch_or(1 << (page % 64), Ordering::AcqRel);
        self.enlarge_if_crowded(page / Self::SPAN_PAGES);
    }

    /// Puts a span on one large page of the machine when half of it is in use: it takes at most twice the memory then.
    fn enlarge_if_crowded(&self, span: usize) {
        let pages_in_use = || self.count_dense(span * Self::SPAN_PAGES / 64..(span + 1) * Self::SPAN_PAGES / 64);
        if self.pages == Pages::Small || pages_in_use() < Self::SPAN_PAGES / 2 {
            return;
        }
        let (large, bit) = (self.bitmap_word(2 * BITMAP_WORDS + SUMMARY_WORDS + span / 64), 1 << (span % 64));
        if large.load(Ordering::Relaxed) & bit == 0 && large.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.mapping.make_huge(span * HUGE_PAGE..(span + 1) * HUGE_PAGE);
        }
    }

    /// Sets a slot of a page that the caller is moving.
    pub(super) fn fill(&self, key: u64, pointer: Pointer) -> Pointer {
        let slot = self.slot(key);
        let seen = slot.read();
        let is_alone = slot.replace(seen, pointer.word());
        assert!(is_alone, "a page that is being moved has one writer");
        Pointer::from_word(S::pointer(seen))
    }

    /// The pointer in the slot of a key.
    #[inline]
    pub(super) fn pointer(&self, key: u64) -> Pointer {
        Pointer::from_word(S::pointer(self.slot(key).read()))
    }

    /// Asks for the cache line of a key's slot.
    #[inline]
    pub(super) fn prefetch(&self, key: u64) {
        sync::prefetch(self.slot(key));
    }

    /// The node of a key of a dense page.
    #[inline]
    pub(super) fn node<'g>(&self, key: u64, arena: &'g Arena, guard: &'g Guard) -> Option<Node<'g>> {
        // SAFETY: the pointer comes from a slot of this tree, read under the guard.
        unsafe { arena.node(self.pointer(key), guard) }
    }

    /// Applies an edit to a node of a dense page: read, copy, and one compare-and-swap (section 4.1).
    pub(super) fn change<E: Edit>(
        &self,
        arena: &Arc<Arena>,
        edit: &mut E,
        guard: &Guard,
    ) -> Result<(), AddressSpaceError> {
        let slot = self.slot(edit.base());
        loop {
            let seen = slot.read_settled();
            let pointer = Pointer::from_word(S::pointer(seen));
            // SAFETY: the pointer comes from a slot of this tree, read under the guard.
            let old = unsafe { arena.node(pointer, guard) };
            let Some(bitmap) = edit.plan(old) else { return Ok(()) };
            if S::IN_PLACE
                && let Some(node) = old
                && let Some((place, value)) = edit.in_place(node)
            {
                // SAFETY: an edit names the place of a key that the node has.
                if slot.update(seen, || unsafe { node.overwrite(place, value) }) {
                    return Ok(());
                }
                continue;
            }
            let mut lists = arena.lists();
            let mut new = Pointer::EMPTY;
            if bitmap != 0 {
                let (block, memory) = lists.take(bitmap)?;
                // SAFETY: the block has room for the bitmap's values, is not published, and the plan is for `old`.
                unsafe { edit.write(old, bitmap, memory) };
                new = block;
            }
            if slot.replace(seen, new.word()) {
                let retired = lists.retire(pointer);
                arena.wait_for_readers(retired, guard);
                return Ok(());
            }
            lists.put_back(new);
        }
    }

    /// The first node of a dense page that has a key at or after `from`.
    pub(super) fn first_from<'g>(&self, from: u64, arena: &'g Arena, guard: &'g Guard) -> Option<(u64, Node<'g>)> {
        let mut from = from.max(*self.keys().start());
        loop {
            let page = self.next_dense(self.page_of(from)?)?;
            let mut base = from.max(self.key_of(page)) & !0x3F;
            let end = self.key_of(page) + ((PAGE_SLOTS as u64 - 1) << VALUE_BITS);
            while base <= end {
                if let Some(node) = self.node(base, arena, guard) {
                    return Some((base, node));
                }
                base += 1 << VALUE_BITS;
            }
            from = end.checked_add(1 << VALUE_BITS)?;
        }
    }

    /// The last node of a dense page that has a key at or before `to`.
    pub(super) fn last_to<'g>(&self, to: u64, arena: &'g Arena, guard: &'g Guard) -> Option<(u64, Node<'g>)> {
        let mut to = to.min(*self.keys().end());
        loop {
            let page = self.last_dense(self.page_of(to)?)?;
            let start = self.key_of(page);
            let mut base = to.min(start + ((1 << PAGE_SHIFT) - 1)) & !0x3F;
            loop {
                if let Some(node) = self.node(base, arena, guard) {
                    return Some((base, node));
                }
                if base == start {
                    break;
                }
                base -= 1 << VALUE_BITS;
            }
            to = start.checked_sub(1)?;
        }
    }

    /// The first dense page at or after `page`.
    fn next_dense(&self, page: usize) -> Option<usize> {
        let above = |index: usize, from: u32| self.bitmap_word(index).load(Ordering::Acquire) & (u64::MAX << from);
        let word = above(page / 64, page as u32 % 64);
        if word != 0 {
            return Some(page & !63 | word.trailing_zeros() as usize);
        }
        let next = page / 64 + 1;
        for summary in next / 64..SUMMARY_WORDS {
            let from = if summary == next / 64 { next as u32 % 64 } else { 0 };
            let mut words = above(2 * BITMAP_WORDS + summary, from);
            while words != 0 {
                let index = summary * 64 + words.trailing_zeros() as usize;
                let pages = above(index, 0);
                if pages != 0 {
                    return Some(index * 64 + pages.trailing_zeros() as usize);
                }
                words &= words - 1;
            }
        }
        None
    }

    /// The last dense page at or before `page`.
    fn last_dense(&self, page: usize) -> Option<usize> {
        let below = |index: usize, to: u32| self.bitmap_word(index).load(Ordering::Acquire) & (u64::MAX >> (63 - to));
        let word = below(page / 64, page as u32 % 64);
        if word != 0 {
            return Some(page & !63 | word.ilog2() as usize);
        }
        let last = (page / 64).checked_sub(1)?;
        for summary in (0..=last / 64).rev() {
            let to = if summary == last / 64 { last as u32 % 64 } else { 63 };
            let mut words = below(2 * BITMAP_WORDS + summary, to);
            while words != 0 {
                let index = summary * 64 + words.ilog2() as usize;
                let pages = below(index, 63);
                if pages != 0 {
                    return Some(index * 64 + pages.ilog2() as usize);
                }
                words &= !(1 << words.ilog2());
            }
        }
        None
    }

    /// How many pages are dense.
    pub(super) fn page_count(&self) -> usize {
        self.count_dense(0..BITMAP_WORDS)
    }

    /// How many pages are dense by some words of the bitmap.
    fn count_dense(&self, words: Range<usize>) -> usize {
        words.map(|word| self.bitmap_word(word).load(Ordering::Relaxed).count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_from_before_a_value_was_written_in_place_is_refused() {
        let slot = Versioned(AtomicU64::new(0));
        assert!(slot.replace(slot.read(), 7));
        let copied = slot.read_settled();
        assert!(slot.update(copied, || assert!(slot.read() & LATCH != 0 && Versioned::pointer(slot.read()) == 7)));
        assert!(!slot.replace(copied, 8) && !slot.update(copied, || unreachable!("the slot has changed")));
        assert!(slot.replace(slot.read_settled(), 8));
        assert_eq!(Versioned::pointer(slot.read()), 8);
    }

    #[test]
    fn versions_go_round_without_touching_pointer_or_latch() {
        let slot = Versioned(AtomicU64::new(!LATCH));
        assert!(slot.update(slot.read_settled(), || ()));
        assert_eq!(slot.read_settled(), u64::from(u32::MAX));
    }

    #[test]
    fn dense_pages_are_found_in_both_directions() {
        let level_two = LevelTwo::<Compact>::new(KissOptions { home: 5, ..KissOptions::default() }).unwrap();
        let dense = [0, 1, 63, 64, 4_095, 4_096, 40_000, 65_535];
        assert_eq!((level_two.next_dense(0), level_two.last_dense(PAGES - 1)), (None, None));
        dense.iter().for_each(|page| level_two.open(*page));
        for page in 0..PAGES {
            let expected = dense.iter().copied().find(|other| *other >= page);
            assert_eq!(level_two.next_dense(page), expected, "from {page}");
            let expected = dense.iter().copied().rev().find(|other| *other <= page);
            assert_eq!(level_two.last_dense(page), expected, "down from {page}");
        }
        assert_eq!(level_two.page_count(), dense.len());
        assert_eq!((level_two.page_of(4 << 32), level_two.page_of(5 << 32 | 65_536)), (None, Some(1)));
    }
}
