//! Compressed nodes of the third level (KISS-Tree, section 3.3), and the edits that make a new one of an old one.
//!
//! ```text
//! +----------------+---------+---------+-----+
//! | 64-bit bitmap  | value 0 | value 1 | ... |     one value for each bit that is set
//! +----------------+---------+---------+-----+
//! ```
//!
//! The lowest six bits of a key choose the bit; the number of set bits below it is the place of its value. A node
//! is replaced as a whole (read-copy-update). Only a tree with versioned pointers writes a value in place, which
//! is why every value is read as an atomic word.
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use sync::zeroed::AtomicU64;

/// How many keys share a node, and the bits of the key that tell them apart.
pub(crate) const FANOUT: usize = 64;
const FRAGMENT: u64 = FANOUT as u64 - 1;

/// The key of a node: that of its first possible entry.
#[inline]
pub(super) fn base_of(key: u64) -> u64 {
    key & !FRAGMENT
}

/// The bit of a key in the bitmap of its node.
#[inline]
pub(super) fn bit_of(key: u64) -> u64 {
    1 << (key & FRAGMENT)
}

/// A node that is published: its bitmap and its values.
#[derive(Clone, Copy)]
pub(super) struct Node<'g> {
    words: NonNull<AtomicU64>,
    lifetime: PhantomData<&'g AtomicU64>,
}

impl<'g> Node<'g> {
    /// The node at `words`.
    ///
    /// # Safety
    /// `words` points to an initialised bitmap followed by as many values as it has bits, and both stay there for
    /// `'g`; only values may change, and only by atomic writes.
    #[inline]
    pub(super) unsafe fn at(words: NonNull<AtomicU64>) -> Node<'g> {
        Node { words, lifetime: PhantomData }
    }

    /// The word at an index.
    ///
    /// # Safety
    /// The index is 0, or 1 + a place below the number of set bits.
    #[inline]
    unsafe fn word(self, index: usize) -> &'g AtomicU64 {
        // SAFETY: the bitmap and as many values as it has bits are there for `'g`, as the caller of `Node::at` has promised.
        unsafe { self.words.add(index).as_ref() }
    }

    #[inline]
    pub(super) fn bitmap(self) -> u64 {
        // SAFETY: the bitmap is word 0.
        unsafe { self.word(0) }.load(Ordering::Relaxed)
    }

    /// The place of the value of `key`, if the node has one.
    #[inline]
    pub(super) fn place(self, key: u64) -> Option<usize> {
        let (bitmap, bit) = (self.bitmap(), bit_of(key));
        (bitmap & bit != 0).then(|| (bitmap & (bit - 1)).count_ones() as usize)
    }

    /// The value at a place.
    ///
    /// # Safety
    /// The place is below the number of set bits.
    #[inline]
    pub(super) unsafe fn value(self, place: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.word(1 + place) }.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn get(self, key: u64) -> Option<u64> {
        self.value_of(key).map(|value| value.load(Ordering::Acquire))
    }

    /// Where the value of `key` is, if the node has one.
    #[inline]
    pub(super) fn value_of(self, key: u64) -> Option<&'g AtomicU64> {
        // SAFETY: the place is that of a key that the node has.
        self.place(key).map(|place| unsafe { self.word(1 + place) })
    }

    /// Where the value of `key` is in a full node, without a look at its bitmap.
    ///
    /// # Safety
    /// The node is full.
    #[inline]
    pub(super) unsafe fn full_value(self, key: u64) -> &'g AtomicU64 {
        // SAFETY: a full node has a value for every fragment.
        unsafe { self.word(1 + (key & FRAGMENT) as usize) }
    }

    /// Writes a value in place. Only for a holder of the pointer's latch; see [`super::level_two::Versioned`].
    ///
    /// # Safety
    /// The place is below the number of set bits.
    pub(super) unsafe fn overwrite(self, place: usize, value: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.word(1 + place) }.store(value, Ordering::Release);
    }

    /// Asks the processor for the cache line of the bitmap.
    #[inline]
    pub(super) fn prefetch(self) {
        sync::prefetch(self.words.as_ptr());
    }

    /// Asks the processor for the cache line of the value at `place`.
    #[inline]
    pub(super) fn prefetch_value(self, place: usize) {
        sync::prefetch(self.words.as_ptr().wrapping_add(1 + place));
    }

    /// Asks the processor for the cache line of a key's value, in a node known to be full.
    #[inline]
    pub(super) fn prefetch_full(self, key: u64) {
        self.prefetch_value((key & FRAGMENT) as usize);
    }

    /// The entries in key order; `base` is the key of the node.
    pub(super) fn entries(self, base: u64) -> impl Iterator<Item = (u64, u64)> + use<'g> {
        let mut left = self.bitmap();
        (0..left.count_ones() as usize).map(move |place| {
            let key = base | u64::from(left.trailing_zeros());
            left &= left - 1;
            // SAFETY: there are as many places as set bits.
            (key, unsafe { self.value(place) })
        })
    }

    /// Copies the whole node.
    ///
    /// # Safety
    /// `to` has room for the bitmap and the values, and belongs to the caller alone.
    pub(super) unsafe fn copy_to(self, to: NonNull<u64>) {
        // SAFETY: the caller's promise.
        unsafe {
            to.write(self.bitmap());
            self.copy_values(0..self.bitmap().count_ones() as usize, to.add(1));
        }
    }

    /// Copies the values at `places`.
    ///
    /// # Safety
    /// `places` exist, `to` has room for them and belongs to the caller alone.
    unsafe fn copy_values(self, places: std::ops::Range<usize>, to: NonNull<u64>) {
        for (offset, place) in places.enumerate() {
            // SAFETY: the caller's promise.
            unsafe { to.add(offset).write(self.word(1 + place).load(Ordering::Relaxed)) };
        }
    }
}

/// Decides what becomes of a node. An edit may be asked again, when another thread was quicker; the last answer
/// counts.
pub(super) trait Edit {
    /// The key of the node.
    fn base(&self) -> u64;

    /// The bitmap that the node gets, 0 if the node goes, `None` if all stays as it is.
    fn plan(&mut self, old: Option<Node<'_>>) -> Option<u64>;

    /// After a plan that only replaces the value of one key: its place and the value.
    fn in_place(&self, old: Node<'_>) -> Option<(usize, u64)>;

    /// Writes the new node, bitmap and values, of the plan for `old`.
    ///
    /// # Safety
    /// `to` has room for `bitmap` and its values and belongs to the caller alone; `bitmap` is what `plan` answered
    /// for `old`.
    unsafe fn write(&self, old: Option<Node<'_>>, bitmap: u64, to: NonNull<u64>);
}

/// The change to make to the entry of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<V> {
    /// Leave it, or leave it absent.
    Keep,
    /// Give the key this value, whether it had one or not.
    Set(V),
    /// Remove the entry, if there is one.
    Remove,
}

/// The edit of one key: `decide` sees its value and says what to do.
pub(super) struct OneKey<F> {
    key: u64,
    decide: F,
    /// The value before, as of the last plan.
    pub(super) found: Option<u64>,
    change: Change<u64>,
}

impl<F: FnMut(Option<u64>) -> Change<u64>> OneKey<F> {
    pub(super) fn new(key: u64, decide: F) -> Self {
        OneKey { key, decide, found: None, change: Change::Keep }
    }
}

impl<F: FnMut(Option<u64>) -> Change<u64>> Edit for OneKey<F> {
    fn base(&self) -> u64 {
        base_of(self.key)
    }

    fn plan(&mut self, old: Option<Node<'_>>) -> Option<u64> {
        self.found = old.and_then(|node| node.get(self.key));
        self.change = (self.decide)(self.found);
        let bitmap = old.map_or(0, Node::bitmap);
        match self.change {
            Change::Keep => None,
            Change::Set(_) => Some(bitmap | bit_of(self.key)),
            Change::Remove => self.found.is_some().then_some(bitmap & !bit_of(self.key)),
        }
    }

    fn in_place(&self, old: Node<'_>) -> Option<(usize, u64)> {
        let Change::Set(value) = self.change else { return None };
        Some((old.place(self.key)?, value))
    }

    unsafe fn write(&self, old: Option<Node<'_>>, bitmap: u64, to: NonNull<u64>) {
        let below = (bitmap & (bit_of(self.key) - 1)).count_ones() as usize;
        // SAFETY: the caller's promise. `below` values stand before the key's in both nodes, as they differ at most
        // in its bit, and the rest of the old values follows in the same order.
        unsafe {
            to.write(bitmap);
            let mut to = to.add(1);
            if let Some(old) = old {
                old.copy_values(0..below, to);
            }
            to = to.add(below);
            if let Change::Set(value) = self.change {
                to.write(value);
                to = to.add(1);
            }
            if let Some(old) = old {
                let next = below + usize::from(self.found.is_some());
                old.copy_values(next..old.bitmap().count_ones() as usize, to);
            }
        }
    }
}

/// The edit of many keys of one node: all of them get the values given, in key order; or none of them, if only new keys are to
/// get theirs and one of these is not new.
pub(super) struct ManyKeys<'a> {
    base: u64,
    bitmap: u64,
    values: &'a [u64],
    only_new: bool,
    /// Whether there was such a key, as of the last plan.
    pub(super) has_met: bool,
}

impl<'a> ManyKeys<'a> {
    /// One value for each bit of `bitmap`, whether the keys have others or not.
    pub(super) fn new(base: u64, bitmap: u64, values: &'a [u64]) -> Self {
        assert_eq!(bitmap.count_ones() as usize, values.len(), "one value for each key");
        ManyKeys { base, bitmap, values, only_new: false, has_met: false }
    }

    /// One value for each bit of `bitmap`, if none of the keys has one.
    pub(super) fn only_new(base: u64, bitmap: u64, values: &'a [u64]) -> Self {
        ManyKeys { only_new: true, ..ManyKeys::new(base, bitmap, values) }
    }
}

impl Edit for ManyKeys<'_> {
    fn base(&self) -> u64 {
        self.base
    }

    fn plan(&mut self, old: Option<Node<'_>>) -> Option<u64> {
        let old = old.map_or(0, Node::bitmap);
        self.has_met = self.only_new && old & self.bitmap != 0;
        (!self.has_met).then_some(self.bitmap | old)
    }

    fn in_place(&self, _: Node<'_>) -> Option<(usize, u64)> {
        None
    }

    unsafe fn write(&self, old: Option<Node<'_>>, bitmap: u64, to: NonNull<u64>) {
        // SAFETY: the caller's promise: room for the bitmap and one value for each of its bits.
        unsafe { to.write(bitmap) };
        if old.is_none() {
            // SAFETY: as above; the bits are those of the values given.
            unsafe { to.add(1).copy_from_nonoverlapping(NonNull::from(self.values).cast(), self.values.len()) };
            return;
        }
        let mut given = self.values.iter();
        let mut left = bitmap;
        for place in 1..=bitmap.count_ones() as usize {
            let key = u64::from(left.trailing_zeros());
            left &= left - 1;
            let new = if self.bitmap & bit_of(key) != 0 { given.next().copied() } else { None };
            let value = new.or_else(|| old.and_then(|node| node.get(key))).unwrap_or_default();
            // SAFETY: as above.
            unsafe { to.add(place).write(value) };
        }
    }
}
