//! A node: one layout for leaves and inner nodes, for every kind of key and both ways of latching.
//!
//! ```text
//!  0        8        16
//! +--------+--------+----------------+--------------------+--------------------+-------------------+
//! | latch  | shape  | shared by keys | first words of all | second words       | payload           |
//! |        | level, | e.g. a prefix  | keys, in order     | of all keys        | leaf:  values     |
//! |        | count  |                |                    | (if they have two) | inner: children   |
//! +--------+--------+----------------+--------------------+--------------------+-------------------+
//!                    <-------------------------- 126 words: 1 KiB in all ------------------------->
//! ```
//!
//! An inner node has as many keys as children; child *n* has the keys from key *n* up to below key *n + 1*. Key 0 is not
//! stored and never looked at: it would be the lower bound that the parent knows. So leaves and inner nodes are searched,
//! split, merged and evened out by the same code.
//!
//! **Search** is branch-free: the steps of its binary search are selections, so that keys at random cost no
//! mispredicted branches. Measured with 20,000 keys, which fit the cache, a lookup takes two thirds of what it
//! takes with branches, and three quarters of that with a branch-free count of all smaller keys. Vector
//! instructions would need loads that are no atomics, and a reader that races with a writer may not have those.
//!
//! The methods that change a node are for the holder of its latch, and for nodes that no other thread knows yet. Those
//! that follow what a key keeps outside of the node rest on that and are `unsafe`.
use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::marker::PhantomData;
use std::ops::Range;

use sync::Guard;
use sync::atomic::{AtomicU64, Ordering::Relaxed};
use sync::latch::Restart;

use super::Value;
use super::key::{Key, Slot};
use super::latching::Latching;

/// Words behind the header. Small in tests, so that few keys make a tall tree.
pub(super) const NODE_WORDS: usize = if cfg!(loom) {
    8
} else if cfg!(test) {
    20
} else {
    126
};

/// The level of a node above the leaves and how many entries it has; one word, so that both are of one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) level: usize,
    pub(super) count: usize,
}

impl Shape {
    #[inline]
    pub(super) fn is_leaf(self) -> bool {
        self.level == 0
    }

    /// The first key that is stored.
    #[inline]
    pub(super) fn first_key(self) -> usize {
        usize::from(!self.is_leaf())
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Shape { level: (word >> 32) as usize, count: word as u32 as usize }
    }

    #[inline]
    fn word(self) -> u64 {
        (self.level as u64) << 32 | self.count as u64
    }
}

/// A node; see above.
#[repr(C, align(64))]
pub(super) struct Node<K, V, L: Latching> {
    pub(super) latch: L::Node,
    shape: AtomicU64,
    words: [AtomicU64; NODE_WORDS],
    entries: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value, L: Latching> Node<K, V, L> {
    pub(super) const LEAF_CAPACITY: usize = (NODE_WORDS - K::SHARED_WORDS) / (K::WORDS + V::WORDS);
    pub(super) const INNER_CAPACITY: usize = (NODE_WORDS - K::SHARED_WORDS) / (K::WORDS + 1);
    const HAS_ROOM: () = assert!(Self::LEAF_CAPACITY >= 4 && Self::INNER_CAPACITY >= 4);

    /// A node without entries.
    pub(super) fn new(level: usize) -> Box<Self> {
        let () = Self::HAS_ROOM;
        let shape = Shape { level, count: 0 };
        Box::new(Node {
            latch: L::Node::default(),
            shape: AtomicU64::new(shape.word()),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            entries: PhantomData,
        })
    }

    #[inline]
    pub(super) fn shape(&self) -> Shape {
        Shape::from_word(self.shape.load(Relaxed))
    }

    #[inline]
    pub(super) fn set_shape(&self, shape: Shape) {
        debug_assert!(shape.count <= Self::capacity(shape.level));
        self.shape.store(shape.word(), Relaxed);
    }

    /// How many entries a node of this level holds.
    #[inline]
    pub(super) fn capacity(level: usize) -> usize {
        if level == 0 { Self::LEAF_CAPACITY } else { Self::INNER_CAPACITY }
    }

    #[inline]
    pub(super) fn is_full(shape: Shape) -> bool {
        shape.count == Self::capacity(shape.level)
    }

    /// Fewer entries than that make a node look for a neighbour to merge with.
    #[inline]
    pub(super) fn is_underfull(shape: Shape) -> bool {
        shape.count < Self::capacity(shape.level).div_ceil(3)
    }

    /// Two neighbours with no more entries than that become one; with more they share them evenly, and neither is
    /// underfull then. A merged node has room left for some inserts.
    #[inline]
    pub(super) fn merged_max(level: usize) -> usize {
        Self::capacity(level) * 3 / 4
    }

    /// Where the words of a key are.
    #[inline]
    pub(super) fn slot(&self, level: usize, index: usize) -> Slot<'_> {
        Slot::new(&self.words, K::SHARED_WORDS + index, Self::capacity(level))
    }

    /// The value of a leaf's entry or the child of an inner node's, as a word. A leaf of a tree without values has none.
    #[inline]
    pub(super) fn payload(&self, level: usize, index: usize) -> &AtomicU64 {
        &self.words[K::SHARED_WORDS + K::WORDS * Self::capacity(level) + index]
    }

    #[inline]
    fn has_payload(level: usize) -> bool {
        level > 0 || V::WORDS > 0
    }

    #[inline]
    pub(super) fn payload_word(&self, level: usize, index: usize) -> u64 {
        if Self::has_payload(level) { self.payload(level, index).load(Relaxed) } else { 0 }
    }

    #[inline]
    pub(super) fn set_payload(&self, level: usize, index: usize, word: u64) {
        if Self::has_payload(level) {
            self.payload(level, index).store(word, Relaxed);
        }
    }

    #[inline]
    pub(super) fn shared(&self) -> K::Shared {
        K::load_shared(Slot::new(&self.words, 0, 1))
    }

    #[inline]
    pub(super) fn set_shared(&self, shared: &K::Shared) {
        K::store_shared(Slot::new(&self.words, 0, 1), shared);
    }

    /// Asks the processor for all cache lines of a node at once: the steps of the search would ask for them one after
    /// another, the payload's last. Measured with 1M keys at random: lookups take 0.66 of the time that they take
    /// without, and 0.79 of what they take with the keys' lines alone.
    #[inline]
    pub(super) fn prefetch(node: *const Self) {
        const LINE_BYTES: usize = 64;
        for line in 0..size_of::<Self>() / LINE_BYTES {
            sync::prefetch(node.cast::<u8>().wrapping_add(line * LINE_BYTES));
        }
    }

    /// How many keys of `range`, counted from the beginning of the node, `goes_before` holds for; it holds for the
    /// first ones, up to one.
    ///
    /// # Safety
    ///
    /// As for [`Key::compare`].
    #[inline]
    unsafe fn partition_point(
        &self,
        level: usize,
        range: Range<usize>,
        probe: &K::Probe<'_>,
        check: impl Fn() -> Result<(), Restart>,
        goes_before: impl Fn(Ordering) -> bool,
    ) -> Result<usize, Restart> {
        let (mut base, mut len) = (range.start, range.len());
        while len > 1 {
            let half = len / 2;
            // SAFETY: the caller's promise.
            let ordering = unsafe { K::compare(self.slot(level, base + half - 1), probe, &check)? };
            base = select_unpredictable(goes_before(ordering), base + half, base);
            len -= half;
        }
        if len == 1 {
            // SAFETY: the caller's promise.
            let ordering = unsafe { K::compare(self.slot(level, base), probe, &check)? };
            base += usize::from(goes_before(ordering));
        }
        Ok(base)
    }

    /// Where a key is in a leaf, or where it would have to be inserted.
    ///
    /// # Safety
    ///
    /// As for [`Key::compare`].
    #[inline]
    pub(super) unsafe fn search_leaf(
        &self,
        count: usize,
        key: K::Ref<'_>,
        check: impl Fn() -> Result<(), Restart>,
    ) -> Result<Result<usize, usize>, Restart> {
        let probe = match K::probe(&self.shared(), key) {
            Ok(probe) => probe,
            Err(ordering) => return Ok(Err(if ordering.is_lt() { count } else { 0 })),
        };
        // SAFETY: the caller's promise.
        let index = unsafe { self.partition_point(0, 0..count, &probe, &check, Ordering::is_lt)? };
        // SAFETY: the caller's promise.
        let is_found = index < count && unsafe { K::compare(self.slot(0, index), &probe, &check)?.is_eq() };
        Ok(if is_found { Ok(index) } else { Err(index) })
    }

    /// Which child of an inner node has a key; with `is_below` the child that has the keys just below it.
    ///
    /// # Safety
    ///
    /// As for [`Key::compare`].
    #[inline]
    pub(super) unsafe fn search_inner(
        &self,
        shape: Shape,
        key: K::Ref<'_>,
        is_below: bool,
        check: impl Fn() -> Result<(), Restart>,
    ) -> Result<usize, Restart> {
        let probe = match K::probe(&self.shared(), key) {
            Ok(probe) => probe,
            Err(ordering) => return Ok(if ordering.is_lt() { shape.count.saturating_sub(1) } else { 0 }),
        };
        let goes_before = |ordering: Ordering| if is_below { ordering.is_lt() } else { ordering.is_le() };
        // SAFETY: the caller's promise.
        let beyond = unsafe { self.partition_point(shape.level, 1..shape.count.max(1), &probe, check, goes_before)? };
        Ok(beyond - 1)
    }

    /// A copy of a key.
    ///
    /// # Safety
    ///
    /// As for [`Key::load`].
    pub(super) unsafe fn load_key(
        &self,
        level: usize,
        index: usize,
        check: impl Fn() -> Result<(), Restart>,
    ) -> Result<K::Owned, Restart> {
        // SAFETY: the caller's promise.
        unsafe { K::load(&self.shared(), self.slot(level, index), check) }
    }

    /// A copy of a key.
    ///
    /// # Safety
    ///
    /// The caller holds the node's latch, or no other thread knows the node; and the keys from the first that is stored
    /// up to the node's count are stored with what the node says they share.
    pub(super) unsafe fn own_key(&self, level: usize, index: usize) -> K::Owned {
        // SAFETY: only the caller changes the node, so that all of it belongs together and none of it is freed.
        let key = unsafe { self.load_key(level, index, || Ok(())) };
        key.unwrap_or_else(|Restart| unreachable!("nothing was checked"))
    }

    /// Inserts an entry where [`Node::search_leaf`] said, or a child behind its left neighbour.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`].
    pub(super) unsafe fn insert(&self, index: usize, key: K::Ref<'_>, payload: u64) {
        let Shape { level, count } = self.shape();
        // SAFETY: the caller's promise.
        let shared = unsafe { self.share_with(key) };
        self.shift(level, index..count, index + 1);
        self.set_shape(Shape { level, count: count + 1 });
        K::store(&shared, self.slot(level, index), key);
        self.set_payload(level, index, payload);
    }

    /// Removes an entry.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`].
    pub(super) unsafe fn remove(&self, index: usize, guard: &Guard) {
        let shape = self.shape();
        if index >= shape.first_key() {
            // SAFETY: the caller holds the latch, the key is stored, and its slot is overwritten below.
            unsafe { K::retire(self.slot(shape.level, index), Some(guard)) };
        }
        self.shift(shape.level, index + 1..shape.count, index);
        self.set_shape(Shape { count: shape.count - 1, ..shape });
    }

    /// Makes sure that `key` has what all keys of the node share.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`].
    unsafe fn share_with(&self, key: K::Ref<'_>) -> K::Shared {
        let (shape, shared) = (self.shape(), self.shared());
        if K::SHARED_WORDS == 0 {
            return shared;
        }
        if shape.count <= shape.first_key() {
            let shared = K::common(key, key);
            self.set_shared(&shared);
            return shared;
        }
        match K::narrowed(&shared, key) {
            None => shared,
            Some(narrowed) => {
                // SAFETY: the caller's promise; what is narrowed for one more key is still what the others have.
                unsafe { self.share(&narrowed) };
                narrowed
            }
        }
    }

    /// Stores all keys with that in common, which they have.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`], and the keys have that in common.
    pub(super) unsafe fn share(&self, shared: &K::Shared) {
        let (shape, before) = (self.shape(), self.shared());
        if *shared == before {
            return;
        }
        for index in shape.first_key()..shape.count {
            let slot = self.slot(shape.level, index);
            // SAFETY: the caller has the node, its keys were stored with `before`, and they have `shared`.
            unsafe { K::carry((&before, shared), slot, slot) };
        }
        self.set_shared(shared);
    }

    /// Stores the keys with as much in common as they have.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`].
    pub(super) unsafe fn share_most(&self) {
        let shape = self.shape();
        if K::SHARED_WORDS > 0 && shape.count > shape.first_key() {
            // SAFETY: the caller's promise, and both keys are stored.
            let [first, last] =
                [shape.first_key(), shape.count - 1].map(|index| unsafe { self.own_key(shape.level, index) });
            // SAFETY: the caller's promise; the keys are in order, so what first and last have in common all have.
            unsafe { self.share(&K::common(K::of(&first), K::of(&last))) };
        }
    }

    /// Moves entries within the node, word by word.
    pub(super) fn shift(&self, level: usize, range: Range<usize>, to: usize) {
        for column in 0..K::WORDS + usize::from(Self::has_payload(level)) {
            let first = K::SHARED_WORDS + column * Self::capacity(level);
            let from = &self.words[first + range.start..first + range.end];
            let target = &self.words[first + to..first + to + range.len()];
            let copy = |(from, to): (&AtomicU64, &AtomicU64)| to.store(from.load(Relaxed), Relaxed);
            if to > range.start {
                from.iter().zip(target).rev().for_each(copy);
            } else {
                from.iter().zip(target).for_each(copy);
            }
        }
    }

    /// Takes over all that another node has; its keys are now this node's.
    pub(super) fn take_over(&self, other: &Self) {
        for (to, from) in self.words.iter().zip(&other.words) {
            to.store(from.load(Relaxed), Relaxed);
        }
        self.set_shape(other.shape());
    }

    /// Frees what the keys keep outside of a node that goes with its tree.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`], and the keys are not used again.
    pub(super) unsafe fn free_keys(&self) {
        let shape = self.shape();
        for index in shape.first_key()..shape.count {
            // SAFETY: the caller's promise.
            unsafe { K::retire(self.slot(shape.level, index), None) };
        }
    }
}
