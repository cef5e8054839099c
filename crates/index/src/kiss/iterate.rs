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
use super::{KissState, KissTree, Word};

/// An iterator takes the entries of one node first, then of twice as many each time, up to these. The nodes of a step
/// are asked from memory all at once.
const NODES_AHEAD: usize = 16;

impl<S: Slot> KissState<S> {
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
    nodes_ahead: usize,
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
        Range { tree, bounds, front: VecDeque::new(), back: VecDeque::new(), nodes_ahead: 1 }
    }

    /// Copies the next entries from `low` on.
    fn fill_front(&mut self, low: u64, high: u64) {
        let guard = sync::pin();
        let mut from = Some(low);
        while self.front.is_empty() && from.is_some() {
            let mut nodes: [Option<(u64, Node<'_>)>; NODES_AHEAD] = [None; NODES_AHEAD];
            for place in &mut nodes[..self.nodes_ahead] {
                let next = from.and_then(|from| self.tree.shared.first_from(from, &guard));
                *place = next.filter(|(base, _)| *base <= high).inspect(|(_, node)| node.prefetch());
                from = place.and_then(|(base, _)| base.checked_add(FANOUT as u64));
            }
            self.nodes_ahead = (2 * self.nodes_ahead).min(NODES_AHEAD);
            let entries = nodes.into_iter().flatten().flat_map(|(base, node)| node.entries(base));
            self.front.extend(entries.filter(|(key, _)| (low..=high).contains(key)));
        }
    }

    /// Copies the next entries from `high` down.
    fn fill_back(&mut self, low: u64, high: u64) {
        let guard = sync::pin();
        let mut to = Some(high);
        while self.back.is_empty() && to.is_some() {
            let mut nodes: [Option<(u64, Node<'_>)>; NODES_AHEAD] = [None; NODES_AHEAD];
            for place in &mut nodes[..self.nodes_ahead] {
                let next = to.and_then(|to| self.tree.shared.last_to(to, &guard));
                *place = next.filter(|(base, _)| *base >= base_of(low)).inspect(|(_, node)| node.prefetch());
                to = place.and_then(|(base, _)| base.checked_sub(1));
            }
            self.nodes_ahead = (2 * self.nodes_ahead).min(NODES_AHEAD);
            for (base, node) in nodes.into_iter().flatten() {
                let count = self.back.len();
                self.back.extend(node.entries(base).filter(|(key, _)| (low..=high).contains(key)));
                self.back.make_contiguous()[count..].reverse();
            }
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
