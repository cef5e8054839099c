//! Batches of queries, level by level (the paper, section 3.2).
//!
//! ```text
//!   root       [ q0 q1 q2 q3 q4 q5 ]                 a queue for each node: the queries that have to look there
//!                  |           |
//!   children   [ q0 q2 q5 ]  [ q1 q2 ]               the device tests all nodes of a level, queue by slots;
//!                  |                                 found slots of inner nodes make the queues of the next level,
//!   leaves     [ q2 ] [ q0 q5 ] ...                  those of leaves are results
//! ```
//!
//! A node is read once for all queries of the batch. The queues of a level lie one after the other in one array; those of the
//! next level are counted first and then filled, so that nothing grows while it is filled.
use sync::Guard;
use types::Rid;

use super::device::{Device, NodeScan};
use super::extension::{Extension, SLOTS_MAX, slots_of};
use super::node::Content;
use super::tree::Gist;

/// The Rids that each query of a batch has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches {
    /// Where the Rids of each query begin, and where those of the last one end.
    starts: Vec<usize>,
    rids: Vec<Rid>,
}

/// Puts Rids in the order of their queries, once it is known how many each has.
pub(crate) struct Grouping {
    starts: Vec<usize>,
    next: Vec<usize>,
    rids: Vec<Rid>,
}

impl Grouping {
    /// For so many Rids of each query.
    pub(crate) fn of_counts(counts: impl IntoIterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        for count in counts {
            starts.push(starts[starts.len() - 1] + count);
        }
        let rids = vec![Rid::from_word(0); starts[starts.len() - 1]];
        Grouping { next: starts.clone(), starts, rids }
    }

    #[inline]
    pub(crate) fn push(&mut self, query: usize, rid: Rid) {
        self.rids[self.next[query]] = rid;
        self.next[query] += 1;
    }

    pub(crate) fn finish(self) -> Matches {
        debug_assert!(
            self.next.iter().zip(&self.starts[1..]).all(|(next, end)| next == end),
            "as many as were counted"
        );
        Matches { starts: self.starts, rids: self.rids }
    }
}

impl Matches {
    /// Orders pairs of a query and a Rid by query.
    pub(crate) fn of(query_count: usize, pairs: &[(u32, Rid)]) -> Self {
        let mut counts = vec![0; query_count];
        pairs.iter().for_each(|(query, _)| counts[*query as usize] += 1);
        let mut grouping = Grouping::of_counts(counts);
        pairs.iter().for_each(|(query, rid)| grouping.push(*query as usize, *rid));
        grouping.finish()
    }

    /// How many queries there are.
    pub fn query_count(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The Rids that a query has found, in no order.
    ///
    /// # Panics
    /// If the batch had no such query.
    pub fn of_query(&self, query: usize) -> &[Rid] {
        &self.rids[self.starts[query]..self.starts[query + 1]]
    }

    /// How many Rids all queries have found.
    pub fn len(&self) -> usize {
        self.rids.len()
    }

    /// Whether no query has found anything.
    pub fn is_empty(&self) -> bool {
        self.rids.is_empty()
    }
}

/// The nodes of a level that queries have to look at, and their queues, one after the other.
struct Level<'g, E: Extension> {
    nodes: Vec<&'g Content<E>>,
    /// Where each node's queue ends.
    ends: Vec<usize>,
    queues: Vec<u32>,
}

impl<'g, E: Extension> Level<'g, E> {
    fn scans(&self) -> Vec<NodeScan<'_, E>> {
        let mut start = 0;
        let scan = |(node, end): (&&'g Content<E>, &usize)| {
            let queue = &self.queues[std::mem::replace(&mut start, *end)..*end];
            NodeScan { slots: &node.slots, count: node.count, is_leaf: node.is_leaf(), queue }
        };
        self.nodes.iter().zip(&self.ends).map(scan).collect()
    }

    /// Calls `each` for every node with its queue and what was found for it.
    fn each_node(&self, found: &[u64], mut each: impl FnMut(&'g Content<E>, &[u32], &[u64])) {
        let mut start = 0;
        for (node, end) in self.nodes.iter().zip(&self.ends) {
            each(node, &self.queues[start..*end], &found[start..*end]);
            start = *end;
        }
    }

    /// The children that queries have to look at.
    fn below(&self, found: &[u64], guard: &'g Guard) -> Level<'g, E> {
        let mut next = Level { nodes: vec![], ends: vec![], queues: vec![] };
        next.queues.resize(found.iter().map(|word| word.count_ones() as usize).sum(), 0);
        let mut total = 0;
        self.each_node(found, |node, queue, found| {
            let mut counts = [0usize; SLOTS_MAX];
            found.iter().flat_map(|word| slots_of(*word)).for_each(|slot| counts[slot] += 1);
            let mut places = [0usize; SLOTS_MAX];
            for slot in (0..node.count).filter(|slot| counts[*slot] > 0) {
                places[slot] = total;
                total += counts[slot];
                next.nodes.push(node.children()[slot].content(guard));
                next.ends.push(total);
            }
            for (query, word) in queue.iter().zip(found) {
                for slot in slots_of(*word) {
                    next.queues[places[slot]] = *query;
                    places[slot] += 1;
                }
            }
        });
        next
    }
}

impl<E: Extension> Gist<E> {
    /// What each query finds, in the order of the queries: level by level, on `device`.
    pub fn search_batch(&self, queries: &[E::Query], device: &impl Device<E>) -> Matches {
        let mut pairs = Vec::new();
        self.search_batch_each(queries, device, |query, rid| pairs.push((query as u32, rid)));
        Matches::of(queries.len(), &pairs)
    }

    /// Gives what the queries find to `each`, with the query's place in the batch, in the order in which it is found.
    ///
    /// # Panics
    /// If there are more than 2^32 queries.
    pub fn search_batch_each(
        &self,
        queries: &[E::Query],
        device: &(impl Device<E> + ?Sized),
        mut each: impl FnMut(usize, Rid),
    ) {
        let query_count = u32::try_from(queries.len()).expect("a batch has fewer than 2^32 queries");
        let guard = &sync::pin();
        let mut level =
            Level { nodes: vec![self.root(guard)], ends: vec![queries.len()], queues: (0..query_count).collect() };
        let mut found = Vec::new();
        while !level.queues.is_empty() {
            found.clear();
            found.resize(level.queues.len(), 0);
            device.scan(&level.scans(), queries, &mut found);
            if level.nodes[0].is_leaf() {
                level.each_node(&found, |leaf, queue, found| {
                    for (query, word) in queue.iter().zip(found) {
                        slots_of(*word).for_each(|slot| each(*query as usize, leaf.rid(slot)));
                    }
                });
                return;
            }
            level = level.below(&found, guard);
        }
    }
}
