//! Exchanges between two neighbours and their parent: splitting a node, merging two, evening them out.
//!
//! ```text
//!          parent  | . | s | . |                   | . | s | t | . |
//!                      |   |          split            |   |   |
//!          node        a b c d       ------>         a b   c d          t = c, or shorter: above b, not above c
//!                                    <------
//!                                     merge
//! ```
//!
//! Between inner nodes the separator itself moves: the key 0 of the right one, which is not stored, is what the
//! parent calls the separator.
use std::ops::Range;

use sync::Guard;

use super::Value;
use super::key::Key;
use super::latching::Latching;
use super::node::{Node, Shape};

impl<K: Key, V: Value, L: Latching> Node<K, V, L> {
    /// Moves the entries from `at` on to the empty node `right`; returns what separates the two.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`], of both nodes; `at` is neither 0 nor beyond the last entry.
    pub(super) unsafe fn split(&self, at: usize, right: &Self, guard: &Guard) -> K::Owned {
        let shape = self.shape();
        // SAFETY: the caller's promise; the key is key 0 of an inner `right`, and so not used again.
        let separator = unsafe { self.cut_key(at, self, at, guard) };
        right.set_shared(&self.shared());
        // SAFETY: the caller's promise; both share the same, and the count below forgets what was moved.
        unsafe { self.move_entries(at..shape.count, right, 0) };
        self.set_shape(Shape { count: at, ..shape });
        right.set_shape(Shape { count: shape.count - at, ..shape });
        // SAFETY: the caller's promise; what was moved is stored with what both share.
        unsafe { self.share_most() };
        // SAFETY: as above.
        unsafe { right.share_most() };
        separator
    }

    /// The separator between entry `at - 1` of this node and entry `right_at` of `right`. An inner node's key there is
    /// taken out, as it is to become key 0.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`], of both nodes; both entries are there, and an inner node's key is not used again.
    unsafe fn cut_key(&self, at: usize, right: &Self, right_at: usize, guard: &Guard) -> K::Owned {
        let level = self.shape().level;
        // SAFETY: the caller's promise.
        let key = unsafe { right.own_key(level, right_at) };
        if level == 0 {
            // SAFETY: the caller's promise.
            let before = unsafe { self.own_key(level, at - 1) };
            return K::separator(K::of(&before), K::of(&key));
        }
        // SAFETY: the caller has the node and does not use the key again.
        unsafe { K::retire(right.slot(level, right_at), Some(guard)) };
        key
    }

    /// Moves entries to the same places of `to` and on, where room has been made and where all have what its keys
    /// share. Neither key 0 of an inner node nor what becomes one is moved.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`], of both nodes; the keys have what `to` says its keys share, and the caller uses them
    /// only there from now on.
    unsafe fn move_entries(&self, range: Range<usize>, to: &Self, to_index: usize) {
        let level = self.shape().level;
        let (from_shared, to_shared) = (self.shared(), to.shared());
        for (offset, index) in range.enumerate() {
            let target = to_index + offset;
            if level == 0 || (index > 0 && target > 0) {
                // SAFETY: the caller has both nodes, and the key has what both nodes share.
                unsafe { K::carry((&from_shared, &to_shared), self.slot(level, index), to.slot(level, target)) };
            }
            to.set_payload(level, target, self.payload_word(level, index));
        }
    }

    /// Prepares the node for the keys of `other` and the separator between them.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`], of both nodes.
    unsafe fn share_with_neighbour(&self, other: &Self, separator: K::Ref<'_>) {
        if K::SHARED_WORDS > 0 {
            let union = K::union(&self.shared(), &other.shared());
            // SAFETY: the caller's promise; the union is part of what the node's own keys share.
            unsafe { self.share(&K::narrowed(&union, separator).unwrap_or(union)) };
        }
    }

    /// Appends the first entries of the right neighbour, which keeps the others where they are.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`], of both nodes; the node has room for them, and the caller takes them out of `right`.
    unsafe fn append(&self, right: &Self, count: usize, separator: K::Ref<'_>) {
        let shape = self.shape();
        // SAFETY: the caller's promise.
        unsafe { self.share_with_neighbour(right, separator) };
        // SAFETY: the caller's promise; the node now shares only what the neighbour's keys have, too.
        unsafe { right.move_entries(0..count, self, shape.count) };
        self.set_shape(Shape { count: shape.count + count, ..shape });
        if shape.level > 0 {
            K::store(&self.shared(), self.slot(shape.level, shape.count), separator);
        }
    }

    /// Takes over all entries of the right neighbour, which is not used again.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`], of both nodes; the node has room for them.
    pub(super) unsafe fn merge(&self, right: &Self, separator: K::Ref<'_>) {
        // SAFETY: the caller's promise; the count below takes the entries out.
        unsafe { self.append(right, right.shape().count, separator) };
        right.set_shape(Shape { count: 0, ..right.shape() });
    }

    /// Moves entries between the two neighbours until they have equally many; returns what separates them now.
    ///
    /// # Safety
    ///
    /// As for [`Node::own_key`], of both nodes.
    pub(super) unsafe fn even_out(&self, right: &Self, separator: K::Ref<'_>, guard: &Guard) -> K::Owned {
        let (left_shape, right_shape) = (self.shape(), right.shape());
        let (level, left_count) = (left_shape.level, (left_shape.count + right_shape.count) / 2);
        if left_shape.count < left_count {
            let count = left_count - left_shape.count;
            // SAFETY: the caller's promise; the shift below takes the entries out.
            unsafe { self.append(right, count, separator) };
            // SAFETY: the caller's promise; the key becomes key 0 of an inner `right`.
            let separator = unsafe { self.cut_key(left_count, right, count, guard) };
            right.shift(level, count..right_shape.count, 0);
            right.set_shape(Shape { level, count: right_shape.count - count });
            return separator;
        }
        let count = left_shape.count - left_count;
        // SAFETY: the caller's promise.
        unsafe { right.share_with_neighbour(self, separator) };
        right.shift(level, 0..right_shape.count, count);
        right.set_shape(Shape { level, count: right_shape.count + count });
        if level > 0 {
            K::store(&right.shared(), right.slot(level, count), separator);
        }
        // SAFETY: the caller's promise; the key becomes key 0 of an inner `right`.
        let separator = unsafe { self.cut_key(left_count, self, left_count, guard) };
        // SAFETY: the caller's promise; `right` has room in front and shares only what these keys have, too, and the
        // count below forgets them here.
        unsafe { self.move_entries(left_count..left_shape.count, right, 0) };
        self.set_shape(Shape { level, count: left_count });
        separator
    }
}
