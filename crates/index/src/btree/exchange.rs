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
    pub(super) fn split(&self, at: usize, right: &Self, guard: &Guard) -> K::Owned {
        let shape = self.shape();
        let separator = self.cut_key(at, self, at, guard);
        right.set_shared(&self.shared());
        self.move_entries(at..shape.count, right, 0);
        self.set_shape(Shape { count: at, ..shape });
        right.set_shape(Shape { count: shape.count - at, ..shape });
        self.share_most();
        right.share_most();
        separator
    }

    /// The separator between entry `at - 1` of this node and entry `right_at` of `right`. An inner node's key there is
    /// taken out, as it is to become key 0.
    fn cut_key(&self, at: usize, right: &Self, right_at: usize, guard: &Guard) -> K::Owned {
        let level = self.shape().level;
        let key = right.own_key(level, right_at);
        if level == 0 {
            return K::separator(K::of(&self.own_key(level, at - 1)), K::of(&key));
        }
        // SAFETY: the caller holds the latch and does not use the key again.
        unsafe { K::retire(right.slot(level, right_at), Some(guard)) };
        key
    }

    /// Moves entries to the same places of `to` and on, where room has been made and where all have what its keys
    /// share. Neither key 0 of an inner node nor what becomes one is moved.
    fn move_entries(&self, range: Range<usize>, to: &Self, to_index: usize) {
        let level = self.shape().level;
        let (from_shared, to_shared) = (self.shared(), to.shared());
        for (offset, index) in range.enumerate() {
            let target = to_index + offset;
            if level == 0 || (index > 0 && target > 0) {
                // SAFETY: the caller holds both latches, and the key has what both nodes share.
                unsafe { K::carry((&from_shared, &to_shared), self.slot(level, index), to.slot(level, target)) };
            }
            to.set_payload(level, target, self.payload_word(level, index));
        }
    }

    /// Prepares the node for the keys of `other` and the separator between them.
    fn share_with_neighbour(&self, other: &Self, separator: K::Ref<'_>) {
        if K::SHARED_WORDS > 0 {
            let union = K::union(&self.shared(), &other.shared());
            self.share(&K::narrowed(&union, separator).unwrap_or(union));
        }
    }

    /// Appends the first entries of the right neighbour, which keeps the others where they are.
    fn append(&self, right: &Self, count: usize, separator: K::Ref<'_>) {
        let shape = self.shape();
        self.share_with_neighbour(right, separator);
        right.move_entries(0..count, self, shape.count);
        self.set_shape(Shape { count: shape.count + count, ..shape });
        if shape.level > 0 {
            K::store(&self.shared(), self.slot(shape.level, shape.count), separator);
        }
    }

    /// Takes over all entries of the right neighbour, which is not used again.
    pub(super) fn merge(&self, right: &Self, separator: K::Ref<'_>) {
        self.append(right, right.shape().count, separator);
        right.set_shape(Shape { count: 0, ..right.shape() });
    }

    /// Moves entries between the two neighbours until they have equally many; returns what separates them now.
    pub(super) fn even_out(&self, right: &Self, separator: K::Ref<'_>, guard: &Guard) -> K::Owned {
        let (left_shape, right_shape) = (self.shape(), right.shape());
        let (level, left_count) = (left_shape.level, (left_shape.count + right_shape.count) / 2);
        if left_shape.count < left_count {
            let count = left_count - left_shape.count;
            self.append(right, count, separator);
            let separator = self.cut_key(left_count, right, count, guard);
            right.shift(level, count..right_shape.count, 0);
            right.set_shape(Shape { level, count: right_shape.count - count });
            return separator;
        }
        let count = left_shape.count - left_count;
        right.share_with_neighbour(self, separator);
        right.shift(level, 0..right_shape.count, count);
        right.set_shape(Shape { level, count: right_shape.count + count });
        if level > 0 {
            K::store(&right.shared(), right.slot(level, count), separator);
        }
        let separator = self.cut_key(left_count, self, left_count, guard);
        self.move_entries(left_count..left_shape.count, right, 0);
        self.set_shape(Shape { level, count: left_count });
        separator
    }
}
