//! A descent through the tree: visiting a node, going on to a child, getting the right to change it.
//!
//! Nothing that was read of a node is followed before a check has shown that it belongs together. On the way to a child
//! that happens twice:
//!
//! ```text
//! read the child's address   check the parent   enter the child   check the parent
//!                            |                                    |
//!                            the address is one: it may be        the child was the right one when it was entered:
//!                            followed                             it had not been split or merged before
//! ```
//!
//! From then on the child's own version tells what becomes of it, and the parent may change as it likes.
use std::ops::{Deref, Range};

use sync::Guard;
use sync::latch::Restart;
use types::Rid;

use super::Value;
use super::key::Key;
use super::latching::Latching;
use super::node::{Node, Shape};

/// A node that is being read.
pub(super) struct Visit<'s, 'g, K: Key, V: Value, L: Latching> {
    node: &'g Node<K, V, L>,
    section: L::Section<'s>,
    seen: L::Seen,
    shape: Shape,
    guard: &'g Guard,
}

impl<K: Key, V: Value, L: Latching> Clone for Visit<'_, '_, K, V, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key, V: Value, L: Latching> Copy for Visit<'_, '_, K, V, L> {}

impl<'s, 'g, K: Key, V: Value, L: Latching> Visit<'s, 'g, K, V, L> {
    /// Begins at the root.
    #[inline]
    pub(super) fn begin(root: &'g Node<K, V, L>, section: L::Section<'s>, guard: &'g Guard) -> Self {
        let seen = L::enter(&root.latch);
        Visit { node: root, section, seen, shape: root.shape(), guard }
    }

    /// Level and number of entries, as read at first.
    #[inline]
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Under which the node was entered.
    pub(super) fn guard(&self) -> &'g Guard {
        self.guard
    }

    /// Whether all that was read of the node so far belongs together.
    #[inline]
    pub(super) fn check(&self) -> Result<(), Restart> {
        L::check(self.section, &self.node.latch, self.seen)
    }

    /// Where a key is in this leaf, or where it would have to be inserted.
    #[inline]
    pub(super) fn search_leaf(&self, key: K::Ref<'_>) -> Result<Result<usize, usize>, Restart> {
        // SAFETY: a check succeeds only if the node has not changed since it was entered under the guard, and what
        // writers take out of a node they free by deferring that.
        unsafe { self.node.search_leaf(self.shape.count, key, || self.check()) }
    }

    /// Which child of this inner node has a key, or with `is_below` the keys just below it.
    #[inline]
    pub(super) fn search_inner(&self, key: K::Ref<'_>, is_below: bool) -> Result<usize, Restart> {
        // SAFETY: as in `search_leaf`.
        unsafe { self.node.search_inner(self.shape, key, is_below, || self.check()) }
    }

    /// A copy of a key; right if a check succeeds afterwards.
    pub(super) fn key(&self, index: usize) -> Result<K::Owned, Restart> {
        // SAFETY: as in `search_leaf`.
        unsafe { self.node.load_key(self.shape.level, index, || self.check()) }
    }

    /// Passes on copies of some entries; right if a check succeeds afterwards.
    pub(super) fn entries(&self, entries: Range<usize>, mut take: impl FnMut(K::Owned, V)) -> Result<(), Restart> {
        let shared = self.node.shared();
        for index in entries {
            let slot = self.node.slot(self.shape.level, index);
            // SAFETY: as in `search_leaf`.
            let key = unsafe { K::load(&shared, slot, || self.check()) }?;
            take(key, self.value(index));
        }
        Ok(())
    }

    /// The bytes that a key takes outside of the node.
    pub(super) fn key_bytes_outside(&self, index: usize) -> Result<usize, Restart> {
        // SAFETY: as in `search_leaf`.
        unsafe { K::bytes_outside(self.node.slot(self.shape.level, index), || self.check()) }
    }

    /// A value of this leaf; right if a check succeeds afterwards.
    #[inline]
    pub(super) fn value(&self, index: usize) -> V {
        V::from_word(self.node.payload_word(0, index))
    }

    /// The address of a child, which may be followed only after a check.
    #[inline]
    pub(super) fn address(&self, index: usize) -> *const Node<K, V, L> {
        std::ptr::with_exposed_provenance(self.node.payload_word(self.shape.level, index) as usize)
    }

    /// Goes on to a child.
    #[inline]
    pub(super) fn child(&self, index: usize) -> Result<Self, Restart> {
        debug_assert!(!self.shape.is_leaf());
        let address = self.address(index);
        Node::prefetch(address);
        self.check()?;
        // SAFETY: as the check has succeeded, this node is an inner one with that child, and the child's contents
        // happen before. A node that leaves the tree is freed when no thread pinned at that time is left; the guard
        // was pinned before the node was entered.
        let node = unsafe { &*address };
        let child = Visit::begin(node, self.section, self.guard);
        self.check()?;
        Ok(child)
    }

    /// Gets the right to change the node, which is as it was seen.
    #[inline]
    pub(super) fn upgrade(&self) -> Result<Held<'g, K, V, L>, Restart> {
        L::upgrade(&self.node.latch, self.seen)?;
        Ok(Held { node: self.node })
    }
}

/// A node that this thread alone may change, until dropped.
#[must_use = "the node is released when this is dropped"]
pub(super) struct Held<'g, K: Key, V: Value, L: Latching> {
    node: &'g Node<K, V, L>,
}

impl<'g, K: Key, V: Value, L: Latching> Held<'g, K, V, L> {
    /// The neighbour at `index` below this node.
    pub(super) fn acquire_child(&self, index: usize, guard: &'g Guard) -> Result<Held<'g, K, V, L>, Restart> {
        let shape = self.node.shape();
        assert!(!shape.is_leaf() && index < shape.count);
        let address = self.node.payload_word(shape.level, index) as usize;
        let _pinned = guard;
        // SAFETY: the node is held and is an inner one, so that this is its child, which cannot leave the tree meanwhile;
        // when it does, it is freed after the guard.
        let node: &'g Node<K, V, L> = unsafe { &*std::ptr::with_exposed_provenance(address) };
        L::acquire(&node.latch)?;
        Ok(Held { node })
    }

    /// Frees the node once no thread can be looking at it. It is in the tree no more, and its keys are elsewhere.
    pub(super) fn retire(self, guard: &Guard) {
        let address = std::ptr::from_ref(self.node).expose_provenance();
        drop(self);
        let free = move || {
            let node: *mut Node<K, V, L> = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: every node but the root comes from a box, and left the tree once, under the latches of its
            // parent and its own. A reader that may have seen it was pinned before that, and is not now.
            drop(unsafe { Box::from_raw(node) });
        };
        // A model's atomics must not outlive its run.
        if cfg!(not(loom)) {
            guard.defer(free);
        }
    }
}

impl<K: Key, V: Value, L: Latching> Deref for Held<'_, K, V, L> {
    type Target = Node<K, V, L>;

    #[inline]
    fn deref(&self) -> &Node<K, V, L> {
        self.node
    }
}

impl<K: Key, V: Value, L: Latching> Drop for Held<'_, K, V, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread has upgraded or acquired it.
        unsafe { L::release(&self.node.latch) }
    }
}

/// The address of a new node, as the word of its parent.
pub(super) fn into_word<K, V, L: Latching>(node: Box<Node<K, V, L>>) -> u64 {
    Box::into_raw(node).expose_provenance() as u64
}

impl<K: Key, L: Latching> Visit<'_, '_, (K, Rid), (), L> {
    /// The record of a pair in this leaf, without a copy of its key; right if a check succeeds afterwards.
    #[inline]
    pub(super) fn rid(&self, index: usize) -> Result<Rid, Restart> {
        let slot = self.node.slot(0, index).skip(K::WORDS);
        // SAFETY: as in `search_leaf`.
        unsafe { Rid::load(&(), slot, || self.check()) }
    }
}
