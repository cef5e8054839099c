//! Iteration in key order, from both ends.
//!
//! An iterator goes from node to node and copies some dozens of entries at a time, so that it holds no reader back
//! between them: memory taken out of use is not kept by a scan that takes its time. It sees every entry that is there
//! from its beginning to its end, none that was gone before it began, and of what changes meanwhile the one or the
//! other; each node as of one moment.
use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use sync::Guard;

use super::level_two::{PAGE_SHIFT, Slot};
use super::link::Leaf;
use super::node::{FANOUT, Node, base_of};
use super::{KissTree, Shared, Word};

/// An iterator copies so many entries at once, or those of so many nodes.
const ENTRIES_AHEAD: usize = 64;
const NODES_AHEAD: usize = 32;

impl<S: Slot> Shared<S> {
    /// The first node at or after `from` that is not empty.
    fn first_from<'g>(&'g self, from: u64, guard: &'g Guard) -> Option<(u64, Node<'g>)> {
        let from = base_of(from);
        let sparse = self.skip_moved(from, |from| self.trie.first_from(from, guard), |last| last.checked_add(1), true);
        // The pages are asked second: what has left the trie meanwhile is found here.
        let dense = self.level_two.first_from(from, &self.arena, guard);
        match (sparse, dense) {
            (Some(sparse), Some(dense)) if sparse.0 < dense.0 => Some(sparse),
            (sparse, dense) => dense.or(sparse),
        }
    }

    /// The last node at or before `to` that is not empty.
    fn last_to<'g>(&'g self, to: u64, guard: &'g Guard) -> Option<(u64, Node<'g>)> {
        let sparse = self.skip_moved(to, |to| self.trie.last_to(to, guard), |first| first.checked_sub(1), false);
        let dense = self.level_two.last_to(to, &self.arena, guard);
        match (sparse, dense) {
            (Some(sparse), Some(dense)) if sparse.0 > dense.0 => Some(sparse),
            (sparse, dense) => dense.or(sparse),
        }
    }

    /// The next leaf of the trie whose page has not become dense; the leaves of such a page may stay for a while.
    fn skip_moved<'g>(
        &'g self,
        mut from: u64,
        next: impl Fn(u64) -> Option<Leaf<'g>>,
        beyond: impl Fn(u64) -> Option<u64>,
        is_upward: bool,
    ) -> Option<(u64, Node<'g>)> {
        loop {
            let leaf = next(from)?;
            let base = leaf.base();
            if !self.level_two.page_of(base).is_some_and(|page| self.level_two.is_dense(page)) {
                return Some((base, leaf.node()));
            }
            let first = base >> PAGE_SHIFT << PAGE_SHIFT;
            from = beyond(if is_upward { first | ((1 << PAGE_SHIFT) - 1) } else { first })?;
        }
    }
}

/// An iterator over entries in key order; see [`KissTree::range`].
pub struct Range<'t, V, S: Slot> {
    tree: &'t KissTree<V, S>,
    /// The keys not yet returned lie from `low` to `high`; `None` when there are none.
    bounds: Option<(u64, u64)>,
    front: VecDeque<(u64, u64)>,
    back: VecDeque<(u64, u64)>,
}

impl<'t, V: Word, S: Slot> Range<'t, V, S> {
    pub(super) fn new(tree: &'t KissTree<V, S>, range: impl RangeBounds<u64>) -> Self {
        let low = match range.start_bound() {
            Bound::Included(key) => Some(*key),
            Bound::Excluded(key) => key.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let high = match range.end_bound() {
            Bound::Included(key) => Some(*key),
            Bound::Excluded(key) => key.checked_sub(1),
            Bound::Unbounded => Some(u64::MAX),
        };
        let bounds = low.zip(high).filter(|(low, high)| low <= high);
        Range { tree, bounds, front: VecDeque::new(), back: VecDeque::new() }
    }

    /// Copies the next entries above `low`.
    fn fill_front(&mut self, low: u64, high: u64) {
        let guard = sync::pin();
        let mut from = Some(low);
        for nodes in 0.. {
            let is_enough = nodes >= NODES_AHEAD && !self.front.is_empty();
            let Some(start) = from.filter(|_| !is_enough && self.front.len() < ENTRIES_AHEAD) else { return };
            let Some((base, node)) = self.tree.shared.first_from(start, &guard) else { return };
            if base > high {
                return;
            }
            self.front.extend(node.entries(base).filter(|(key, _)| (low..=high).contains(key)));
            from = base.checked_add(FANOUT as u64);
        }
    }

    /// Copies the next entries below `high`.
    fn fill_back(&mut self, low: u64, high: u64) {
        let guard = sync::pin();
        let mut to = Some(high);
        for nodes in 0.. {
            let is_enough = nodes >= NODES_AHEAD && !self.back.is_empty();
            let Some(start) = to.filter(|_| !is_enough && self.back.len() < ENTRIES_AHEAD) else { return };
            let Some((base, node)) = self.tree.shared.last_to(start, &guard) else { return };
            if base < base_of(low) {
                return;
            }
            let count = self.back.len();
            self.back.extend(node.entries(base).filter(|(key, _)| (low..=high).contains(key)));
            self.back.make_contiguous()[count..].reverse();
            to = base.checked_sub(1);
        }
    }
}

impl<V: Word, S: Slot> Iterator for Range<'_, V, S> {
    type Item = (u64, V);

    fn next(&mut self) -> Option<(u64, V)> {
        let (low, high) = self.bounds?;
        if self.front.is_empty() {
            self.fill_front(low, high);
        }
        let entry = self.front.pop_front().filter(|(key, _)| *key <= high);
        self.bounds = entry.and_then(|(key, _)| Some((key.checked_add(1)?, high))).filter(|(low, high)| low <= high);
        entry.map(|(key, word)| (key, V::from_word(word)))
    }
}

impl<V: Word, S: Slot> DoubleEndedIterator for Range<'_, V, S> {
    fn next_back(&mut self) -> Option<(u64, V)> {
        let (low, high) = self.bounds?;
        if self.back.is_empty() {
            self.fill_back(low, high);
        }
        let entry = self.back.pop_front().filter(|(key, _)| *key >= low);
        self.bounds = entry.and_then(|(key, _)| Some((low, key.checked_sub(1)?))).filter(|(low, high)| low <= high);
        entry.map(|(key, word)| (key, V::from_word(word)))
    }
}
