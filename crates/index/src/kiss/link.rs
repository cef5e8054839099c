//! The nodes of the trie in memory: tagged links, inner nodes, leaves (drawn in [`super::trie`]).
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering;

use sync::Guard;
use sync::zeroed::{AtomicPtr, AtomicU64};

use super::node::{Node, base_of};

const LEAF: usize = 1;
const FROZEN: usize = 2;
const CLOSED: usize = 4;
const TAGS: usize = LEAF | FROZEN | CLOSED;

/// Words of an inner node before its links: prefix, bitmap, shift.
const INNER_HEAD: usize = 3;
/// Words of a leaf before its values: base, bitmap.
const LEAF_HEAD: usize = 2;

/// How many bits of the key an inner node with this shift looks at.
#[inline]
fn width_of(shift: u32) -> u32 {
    if shift < 16 { 5 } else { 6 }
}

/// The shift of the node that tells two keys of different leaves apart.
pub(super) fn shift_between(one: u64, other: u64) -> u32 {
    match (one ^ other).ilog2() {
        bit @ 16.. => 16 + (bit - 16) / 6 * 6,
        11.. => 11,
        _ => 6,
    }
}

fn layout(words: usize) -> Layout {
    // The largest node has 3 + 64 words; the size is far from overflowing.
    Layout::array::<u64>(words).unwrap_or(Layout::new::<u64>())
}

fn allocate(words: usize) -> NonNull<u64> {
    // SAFETY: the layout is not empty, as every node has a head.
    let memory = unsafe { alloc(layout(words)) };
    NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout(words)))
}

/// Frees memory of [`allocate`] once no reader can hold it.
///
/// # Safety
/// The memory is from [`allocate`] with this many words, and the caller has taken it out of the trie: no thread that pins from now
/// on finds it, and no other retires it.
unsafe fn retire(memory: NonNull<u64>, words: usize, guard: &Guard) {
    // SAFETY: the caller's promise.
    unsafe { guard.defer_unchecked(move || give_back(memory, words)) };
}

/// # Safety
/// The memory is from [`allocate`] with this many words, and is not used any more.
unsafe fn give_back(memory: NonNull<u64>, words: usize) {
    if cfg!(shuttle) {
        // A reader that came too late shall see it: memory is overwritten and never used again.
        // SAFETY: the caller's promise.
        unsafe { memory.write_bytes(0xA5, words) };
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { dealloc(memory.as_ptr().cast(), layout(words)) };
}

/// A link as read: an address with tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link(*mut u8);

/// Where a link leads.
#[derive(Clone, Copy)]
pub(super) enum Child<'g> {
    Empty,
    Leaf(Leaf<'g>),
    Inner(Inner<'g>),
}

impl Link {
    pub(super) const EMPTY: Link = Link(null_mut());

    #[inline]
    pub(super) fn load(slot: &AtomicPtr<u8>) -> Link {
        Link(slot.load(Ordering::Acquire))
    }

    /// Exchanges the link in `slot`, if it still is this one.
    pub(super) fn swap(self, slot: &AtomicPtr<u8>, new: Link) -> bool {
        slot.compare_exchange(self.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0.addr() & !TAGS == 0
    }

    pub(super) fn is_frozen(self) -> bool {
        self.0.addr() & FROZEN != 0
    }

    pub(super) fn is_closed(self) -> bool {
        self.0.addr() & CLOSED != 0
    }

    pub(super) fn closed(self) -> Link {
        Link(self.0.map_addr(|address| address | CLOSED))
    }

    pub(super) fn reopened(self) -> Link {
        Link(self.0.map_addr(|address| address & !CLOSED))
    }

    fn thawed(self) -> Link {
        Link(self.0.map_addr(|address| address & !FROZEN))
    }

    #[inline]
    fn address(self) -> *mut u64 {
        self.0.map_addr(|address| address & !TAGS).cast()
    }

    /// The node that the link leads to. The link was read from the trie under `guard`.
    #[inline]
    pub(super) fn child<'g>(self, _guard: &'g Guard) -> Child<'g> {
        let Some(words) = NonNull::new(self.address()) else { return Child::Empty };
        if self.0.addr() & LEAF != 0 {
            Child::Leaf(Leaf { words, lifetime: PhantomData })
        } else {
            Child::Inner(Inner { words, lifetime: PhantomData })
        }
    }

    /// One step of a reader: the next link on the way to `key`, or the node of the key where the way ends.
    #[inline]
    pub(super) fn step<'g>(self, key: u64, guard: &'g Guard) -> Result<Link, Option<Node<'g>>> {
        match self.child(guard) {
            Child::Empty => Err(None),
            Child::Leaf(leaf) => Err((leaf.base() == base_of(key)).then(|| leaf.node())),
            Child::Inner(inner) if !inner.covers(key) => Err(None),
            Child::Inner(inner) => inner.slot(key).map(Link::load).ok_or(None),
        }
    }

    /// Asks for the first cache line of the node that the link leads to.
    #[inline]
    pub(super) fn prefetch(self) {
        sync::prefetch(self.address());
    }

    /// Frees the node, without what is below it.
    ///
    /// # Safety
    /// No other thread can reach the node, and the link is not used afterwards.
    pub(super) unsafe fn free(self) {
        let Some(memory) = NonNull::new(self.address()) else { return };
        let words = if self.0.addr() & LEAF != 0 {
            Leaf { words: memory, lifetime: PhantomData }.words_len()
        } else {
            Inner { words: memory, lifetime: PhantomData }.words_len()
        };
        // SAFETY: nodes come from `allocate` with this many words, and the caller owns this one.
        unsafe { give_back(memory, words) };
    }
}

/// A leaf: a node of the third level that knows its key.
#[derive(Clone, Copy)]
pub(super) struct Leaf<'g> {
    words: NonNull<u64>,
    lifetime: PhantomData<&'g u64>,
}

impl<'g> Leaf<'g> {
    /// Creates a leaf. `write` fills in its bitmap and values.
    pub(super) fn create(base: u64, bitmap: u64, write: impl FnOnce(NonNull<u64>)) -> Link {
        let words = allocate(LEAF_HEAD + bitmap.count_ones() as usize);
        // SAFETY: the memory is new and has room for the base and more.
        let node = unsafe {
            words.write(base);
            words.add(1)
        };
        write(node);
        Link(words.as_ptr().cast::<u8>().map_addr(|address| address | LEAF))
    }

    /// The key of the node.
    #[inline]
    pub(super) fn base(self) -> u64 {
        // SAFETY: a leaf begins with its base, which never changes; it lives for `'g`.
        unsafe { self.words.read() }
    }

    /// Bitmap and values.
    #[inline]
    pub(super) fn node(self) -> Node<'g> {
        // SAFETY: bitmap and values follow the base, never change, and live for `'g`.
        unsafe { Node::at(self.words.add(1).cast::<AtomicU64>()) }
    }

    fn words_len(self) -> usize {
        LEAF_HEAD + self.node().bitmap().count_ones() as usize
    }

    pub(super) fn bytes(self) -> u64 {
        8 * self.words_len() as u64
    }

    /// Frees the leaf after its readers have gone.
    ///
    /// # Safety
    /// The caller has taken the leaf out of the trie, or the node above it, and retires it once.
    pub(super) unsafe fn retire(self, guard: &Guard) {
        // SAFETY: a leaf is from `allocate` with the words that its bitmap tells; the rest is the caller's promise.
        unsafe { retire(self.words, self.words_len(), guard) };
    }
}

/// An inner node. Prefix, bitmap and shift never change; links do.
#[derive(Clone, Copy)]
pub(super) struct Inner<'g> {
    words: NonNull<u64>,
    lifetime: PhantomData<&'g u64>,
}

impl<'g> Inner<'g> {
    /// A node with these links, given in key order. `key` is any key below it.
    fn create(key: u64, bitmap: u64, shift: u32, links: impl Iterator<Item = Link>) -> Link {
        let len = bitmap.count_ones() as usize;
        let words = allocate(INNER_HEAD + len);
        let below = shift + width_of(shift);
        let prefix = if below == u64::BITS { 0 } else { key >> below << below };
        // SAFETY: the memory is new and has room for the head and `len` links; the links fill it exactly.
        unsafe {
            words.write(prefix);
            words.add(1).write(bitmap);
            words.add(2).write(u64::from(shift));
            let mut count = 0;
            for link in links.take(len) {
                words.add(INNER_HEAD + count).cast::<AtomicPtr<u8>>().write(AtomicPtr::new(link.0));
                count += 1;
            }
            assert_eq!(count, len, "one link for each bit");
        }
        Link(words.as_ptr().cast())
    }

    /// A node with two links to nodes with different prefixes.
    pub(super) fn fork(one: Link, one_key: u64, other: Link, other_key: u64) -> Link {
        let shift = shift_between(one_key, other_key);
        let bits = fragment_bit(one_key, shift) | fragment_bit(other_key, shift);
        let links = if one_key < other_key { [one, other] } else { [other, one] };
        Self::create(one_key, bits, shift, links.into_iter())
    }

    /// A copy of a frozen node without its empty links, with one more if given, and the number of its links. A single
    /// link needs no node, and stands for itself.
    pub(super) fn copy(self, more: Option<(u64, Link)>) -> (Link, usize) {
        let (mut bitmap, mut left) = (0, self.bitmap());
        let mut links = [Link::EMPTY; 64];
        for link in self.links() {
            let bit = left & left.wrapping_neg();
            left ^= bit;
            if !link.is_empty() {
                bitmap |= bit;
                links[bit.trailing_zeros() as usize] = link.thawed();
            }
        }
        if let Some((key, link)) = more {
            bitmap |= fragment_bit(key, self.shift());
            links[fragment_bit(key, self.shift()).trailing_zeros() as usize] = link;
        }
        let used = links.into_iter().filter(|link| !link.is_empty());
        match bitmap.count_ones() as usize {
            0 => (Link::EMPTY, 0),
            1 => (used.last().unwrap_or(Link::EMPTY), 1),
            len => (Self::create(self.prefix(), bitmap, self.shift(), used), len),
        }
    }

    /// The head: prefix, bitmap and shift.
    #[inline]
    fn head(self) -> [u64; INNER_HEAD] {
        // SAFETY: a node begins with its head, which never changes and lives for `'g`.
        unsafe { self.words.cast::<[u64; INNER_HEAD]>().read() }
    }

    /// The first key that can be below the node.
    #[inline]
    pub(super) fn prefix(self) -> u64 {
        self.head()[0]
    }

    #[inline]
    fn bitmap(self) -> u64 {
        self.head()[1]
    }

    #[inline]
    pub(super) fn shift(self) -> u32 {
        self.head()[2] as u32
    }

    /// The last key that can be below the node.
    pub(super) fn last_key(self) -> u64 {
        self.prefix() | u64::MAX >> (u64::BITS - self.shift() - width_of(self.shift()))
    }

    /// Whether `key` belongs below the node.
    #[inline]
    pub(super) fn covers(self, key: u64) -> bool {
        let below = self.shift() + width_of(self.shift());
        below == u64::BITS || (key ^ self.prefix()) >> below == 0
    }

    /// The link for a key that the node covers, if the node has it.
    #[inline]
    pub(super) fn slot(self, key: u64) -> Option<&'g AtomicPtr<u8>> {
        let (bitmap, bit) = (self.bitmap(), fragment_bit(key, self.shift()));
        // SAFETY: fewer bits are set below one that is set than are set in all.
        (bitmap & bit != 0).then(|| unsafe { self.link_at((bitmap & (bit - 1)).count_ones() as usize) })
    }

    /// The link at a place.
    ///
    /// # Safety
    /// The place is below the number of set bits.
    #[inline]
    unsafe fn link_at(self, place: usize) -> &'g AtomicPtr<u8> {
        // SAFETY: as many links as bits follow the head, and live for `'g`; the place is one of them by the caller's promise.
        unsafe { self.words.add(INNER_HEAD + place).cast::<AtomicPtr<u8>>().as_ref() }
    }

    /// The number of links, empty ones included.
    pub(super) fn len(self) -> usize {
        self.bitmap().count_ones() as usize
    }

    /// The number of links that are not empty.
    pub(super) fn used_len(self) -> usize {
        self.links().filter(|link| !link.is_empty()).count()
    }

    /// How many links stand before that of a key which the node covers.
    pub(super) fn places_below(self, key: u64) -> usize {
        (self.bitmap() & (fragment_bit(key, self.shift()) - 1)).count_ones() as usize
    }

    /// How many links stand up to that of a key which the node covers, with it.
    pub(super) fn places_to(self, key: u64) -> usize {
        self.places_below(key) + usize::from(self.bitmap() & fragment_bit(key, self.shift()) != 0)
    }

    /// The links in key order.
    pub(super) fn links(self) -> impl DoubleEndedIterator<Item = Link> + ExactSizeIterator + use<'g> {
        // SAFETY: the places are below the number of set bits.
        (0..self.len()).map(move |place| Link::load(unsafe { self.link_at(place) }))
    }

    /// Makes the links unchangeable: every compare-and-swap on them fails from now on.
    pub(super) fn freeze(self) {
        for place in 0..self.len() {
            // SAFETY: the places are below the number of set bits.
            unsafe { self.link_at(place) }.fetch_or(FROZEN, Ordering::AcqRel);
        }
    }

    fn words_len(self) -> usize {
        INNER_HEAD + self.len()
    }

    pub(super) fn bytes(self) -> u64 {
        8 * self.words_len() as u64
    }

    /// Frees the node after its readers have gone.
    ///
    /// # Safety
    /// The caller has taken the node out of the trie, or one above it, and retires it once.
    pub(super) unsafe fn retire(self, guard: &Guard) {
        // SAFETY: a node is from `allocate` with the words that its bitmap tells; the rest is the caller's promise.
        unsafe { retire(self.words, self.words_len(), guard) };
    }
}

#[inline]
fn fragment_bit(key: u64, shift: u32) -> u64 {
    1 << (key >> shift & ((1 << width_of(shift)) - 1))
}
