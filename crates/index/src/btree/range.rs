//! Iteration in key order, from both ends, while others write.
//!
//! An iterator goes from leaf to leaf and copies the entries of one at a time, as of one moment. On the way down it
//! takes from the parent where the next leaf begins, and continues there:
//!
//! ```text
//! what was returned   front          region, not read yet              back       what was returned from the back
//! ------------------> | d | e | f |  low .................... high  | w | x | y | <----------------------
//! ```
//!
//! The three parts never overlap, so that each entry that is there all the time is seen exactly once, in order,
//! whatever is split or merged between two steps. Of what is inserted or removed meanwhile the iterator sees the one or
//! the other. It holds back no memory between two leaves.
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use sync::Guard;
use sync::latch::Restart;

use super::descent::Visit;
use super::key::Key;
use super::latching::Latching;
use super::node::Node;
use super::{BPlusTree, NodeLatches, Value};

/// A node, and the key at which its right neighbour begins, or it itself, if it has a neighbour there.
type Bounded<'s, 'g, K, V, L> = (Visit<'s, 'g, K, V, L>, Option<<K as Key>::Owned>);

impl<K: Key, V: Value, L: Latching> BPlusTree<K, V, L> {
    /// The entries with keys in `range`, in key order, from either end.
    pub fn range<'k>(&self, range: impl RangeBounds<K::Ref<'k>>) -> TreeRange<'_, K, V, L> {
        let bound = |bound: Bound<&K::Ref<'k>>| bound.map(|key| K::to_owned(*key));
        let is_empty = match (range.start_bound(), range.end_bound()) {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
        };
        let region = (!is_empty).then(|| (bound(range.start_bound()), bound(range.end_bound())));
        TreeRange { tree: self, region, front: VecDeque::new(), back: VecDeque::new() }
    }

    /// The node of a level that has the keys from `low` on, and where the next one begins.
    pub(super) fn node_from<'s, 'g>(
        &'g self,
        section: L::Section<'s>,
        level: usize,
        low: Option<K::Ref<'_>>,
        guard: &'g Guard,
    ) -> Result<Bounded<'s, 'g, K, V, L>, Restart> {
        let (mut visit, mut next) = (self.begin(section, guard), None);
        while visit.shape().level > level {
            let index = low.map_or(Ok(0), |low| visit.search_inner(low, false))?;
            if index + 1 < visit.shape().count {
                next = Some(visit.key(index + 1)?);
                // Of the nodes on the way only the one that is gone through next.
                if visit.shape().level == level + 1 {
                    Node::prefetch(visit.address(index + 1));
                }
            }
            visit = visit.child(index)?;
        }
        Ok((visit, next))
    }

    /// The leaf that has the keys up to `high`, and where it begins if there is one before it.
    fn leaf_to<'s, 'g>(
        &'g self,
        section: L::Section<'s>,
        high: Bound<K::Ref<'_>>,
        guard: &'g Guard,
    ) -> Result<Bounded<'s, 'g, K, V, L>, Restart> {
        let (mut visit, mut begin) = (self.begin(section, guard), None);
        while !visit.shape().is_leaf() {
            let index = match high {
                Bound::Unbounded => visit.shape().count.saturating_sub(1),
                Bound::Included(high) => visit.search_inner(high, false)?,
                Bound::Excluded(high) => visit.search_inner(high, true)?,
            };
            if index > 0 {
                begin = Some(visit.key(index)?);
                Node::prefetch(visit.address(index - 1));
            }
            visit = visit.child(index)?;
        }
        Ok((visit, begin))
    }
}

/// A lower and an upper bound.
type Region<K> = (Bound<<K as Key>::Owned>, Bound<<K as Key>::Owned>);

/// An iterator over entries in key order; see [`BPlusTree::range`].
pub struct TreeRange<'t, K: Key, V: Value, L: Latching = NodeLatches> {
    tree: &'t BPlusTree<K, V, L>,
    /// Between these bounds nothing has been read yet; `None` when all has.
    region: Option<Region<K>>,
    /// Entries before the region, in key order.
    front: VecDeque<(K::Owned, V)>,
    /// Entries behind the region, in key order.
    back: VecDeque<(K::Owned, V)>,
}

/// Where in a leaf the keys above `low` begin.
fn begin_of<K: Key, V: Value, L: Latching>(
    leaf: &Visit<'_, '_, K, V, L>,
    low: &Bound<K::Owned>,
) -> Result<usize, Restart> {
    Ok(match low {
        Bound::Unbounded => 0,
        Bound::Included(low) => leaf.search_leaf(K::of(low))?.unwrap_or_else(|index| index),
        Bound::Excluded(low) => leaf.search_leaf(K::of(low))?.map_or_else(|index| index, |index| index + 1),
    })
}

/// Where in a leaf the keys below `high` end.
fn end_of<K: Key, V: Value, L: Latching>(
    leaf: &Visit<'_, '_, K, V, L>,
    high: &Bound<K::Owned>,
) -> Result<usize, Restart> {
    Ok(match high {
        Bound::Unbounded => leaf.shape().count,
        Bound::Included(high) => leaf.search_leaf(K::of(high))?.map_or_else(|index| index, |index| index + 1),
        Bound::Excluded(high) => leaf.search_leaf(K::of(high))?.unwrap_or_else(|index| index),
    })
}

impl<K: Key, V: Value, L: Latching> TreeRange<'_, K, V, L> {
    /// Copies entries of a leaf.
    fn copy(
        leaf: &Visit<'_, '_, K, V, L>,
        begin: usize,
        end: usize,
        to: &mut VecDeque<(K::Owned, V)>,
    ) -> Result<(), Restart> {
        to.clear();
        to.reserve(end.saturating_sub(begin));
        leaf.entries(begin..end, |key, value| to.push_back((key, value)))?;
        leaf.check()
    }

    /// Copies the entries of the first leaf of the region that has any.
    fn fill_front(&mut self) {
        while self.front.is_empty()
            && let Some((low, high)) = self.region.take()
        {
            let (tree, front, guard) = (self.tree, &mut self.front, sync::pin());
            let next = tree.latching.read(|section| {
                let from = match &low {
                    Bound::Unbounded => None,
                    Bound::Included(low) | Bound::Excluded(low) => Some(K::of(low)),
                };
                let (leaf, next) = tree.node_from(section, 0, from, &guard)?;
                let next = next.filter(|next| match &high {
                    Bound::Unbounded => true,
                    Bound::Included(high) => next <= high,
                    Bound::Excluded(high) => next < high,
                });
                let end = if next.is_some() { leaf.shape().count } else { end_of(&leaf, &high)? };
                Self::copy(&leaf, begin_of(&leaf, &low)?, end, front)?;
                Ok(next)
            });
            self.region = next.map(|next| (Bound::Included(next), high));
        }
    }

    /// Copies the entries of the last leaf of the region that has any.
    fn fill_back(&mut self) {
        while self.back.is_empty()
            && let Some((low, high)) = self.region.take()
        {
            let (tree, back, guard) = (self.tree, &mut self.back, sync::pin());
            let begin = tree.latching.read(|section| {
                let (leaf, begin) = tree.leaf_to(section, high.as_ref().map(K::of), &guard)?;
                let begin = begin.filter(|begin| match &low {
                    Bound::Unbounded => true,
                    Bound::Included(low) | Bound::Excluded(low) => begin.cmp(low) == Ordering::Greater,
                });
                let first = if begin.is_some() { 0 } else { begin_of(&leaf, &low)? };
                Self::copy(&leaf, first, end_of(&leaf, &high)?, back)?;
                Ok(begin)
            });
            self.region = begin.map(|begin| (low, Bound::Excluded(begin)));
        }
    }
}

impl<K: Key, V: Value, L: Latching> Iterator for TreeRange<'_, K, V, L> {
    type Item = (K::Owned, V);

    fn next(&mut self) -> Option<(K::Owned, V)> {
        if self.front.is_empty() {
            self.fill_front();
        }
        self.front.pop_front().or_else(|| self.back.pop_front())
    }
}

impl<K: Key, V: Value, L: Latching> DoubleEndedIterator for TreeRange<'_, K, V, L> {
    fn next_back(&mut self) -> Option<(K::Owned, V)> {
        if self.back.is_empty() {
            self.fill_back();
        }
        self.back.pop_back().or_else(|| self.front.pop_back())
    }
}
