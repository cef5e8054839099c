//! Nearest neighbours, best first (Hjaltason and Samet, *Distance Browsing in Spatial Databases*, 1999).
//!
//! ```text
//! queue, by the nearest that is left:   [ leaf 7: 0.4 ]  [ node 2: 0.9 ]  [ leaf 5: 1.3 ]
//!                                             |
//! visited, with the distances of its slots:   [ --  0.4  2.1  1.0  ... ]     taken slots have none
//! ```
//!
//! The visited node with the nearest slot gives that slot: a child is visited in its turn, an entry is the next nearest of all.
//! The node goes back into the queue with the nearest of what is left. So the distances of a node are computed together, and only
//! those slots pass through the queue that are looked at.
use std::cmp::Ordering;
use std::collections::BinaryHeap;

use sync::Guard;
use types::Rid;

use super::extension::{Extension, SLOTS_MAX, Slots};
use super::node::Content;
use super::tree::Gist;

/// A visited node.
struct Visited<'g, E: Extension> {
    content: &'g Content<E>,
    /// Infinite where a slot is taken or empty.
    distances: [f64; SLOTS_MAX],
    /// The slots that are left.
    left: u64,
}

impl<'g, E: Extension> Visited<'g, E> {
    fn new(content: &'g Content<E>, origin: &E::Origin) -> Self {
        let mut distances = [f64::INFINITY; SLOTS_MAX];
        E::distances(&content.slots, content.count, origin, &mut distances);
        distances[content.count..].fill(f64::INFINITY);
        let left = if content.count == SLOTS_MAX { u64::MAX } else { (1 << content.count) - 1 };
        Visited { content, distances, left }
    }

    /// How far the nearest slot is that is left; `None` if none is.
    fn nearest(&self) -> Option<f64> {
        (self.left != 0).then(|| least(&self.distances))
    }

    /// Takes a slot at a distance that [`Visited::nearest`] has returned.
    fn take(&mut self, distance: f64) -> usize {
        let is_it = |slot: &usize| self.distances[*slot] == distance && self.left >> slot & 1 != 0;
        let slot = (0..SLOTS_MAX).find(is_it).expect("the nearest slot is left");
        self.distances[slot] = f64::INFINITY;
        self.left &= !(1 << slot);
        slot
    }
}

/// The least of a node's distances.
fn least(distances: &[f64; SLOTS_MAX]) -> f64 {
    // Eight at a time: one chain of comparisons would wait for itself.
    let mut least = [f64::INFINITY; 8];
    for eight in distances.chunks_exact(8) {
        for (least, distance) in least.iter_mut().zip(eight) {
            *least = if distance < least { *distance } else { *least };
        }
    }
    least.into_iter().fold(f64::INFINITY, f64::min)
}

/// A visited node in the queue, which has the nearest first.
struct Waiting {
    distance: f64,
    visited: usize,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.total_cmp(&self.distance)
    }
}

/// The entries of a tree by their distance from an origin, the nearest first; see [`Gist::by_distance`].
pub struct ByDistance<'g, E: Extension> {
    origin: &'g E::Origin,
    guard: &'g Guard,
    visited: Vec<Visited<'g, E>>,
    queue: BinaryHeap<Waiting>,
}

impl<'g, E: Extension> ByDistance<'g, E> {
    fn visit(&mut self, content: &'g Content<E>) {
        self.visited.push(Visited::new(content, self.origin));
        self.wait(self.visited.len() - 1);
    }

    fn wait(&mut self, visited: usize) {
        if let Some(distance) = self.visited[visited].nearest() {
            self.queue.push(Waiting { distance, visited });
        }
    }

    /// The next nearest entry with its value, for a reader that looks whether the record has it still.
    pub fn next_entry(&mut self) -> Option<(f64, E::Value, Rid)> {
        let (distance, leaf, slot) = self.next_slot()?;
        Some((distance, E::decompress(&leaf.slots.key(slot)), leaf.rid(slot)))
    }

    /// The leaf and the slot of the next nearest entry.
    fn next_slot(&mut self) -> Option<(f64, &'g Content<E>, usize)> {
        while let Some(Waiting { distance, visited }) = self.queue.pop() {
            let slot = self.visited[visited].take(distance);
            let content = self.visited[visited].content;
            self.wait(visited);
            if content.is_leaf() {
                return Some((distance, content, slot));
            }
            self.visit(content.children()[slot].content(self.guard));
        }
        None
    }
}

impl<E: Extension> Iterator for ByDistance<'_, E> {
    type Item = (f64, Rid);

    fn next(&mut self) -> Option<(f64, Rid)> {
        self.next_slot().map(|(distance, leaf, slot)| (distance, leaf.rid(slot)))
    }
}

impl<E: Extension> Gist<E> {
    /// The entries by their distance from an origin, the nearest first, as far as the caller goes. A reader checks of each
    /// whether it sees the record with that key, and goes on until it has enough.
    pub fn by_distance<'g>(&'g self, origin: &'g E::Origin, guard: &'g Guard) -> ByDistance<'g, E> {
        let mut found = ByDistance { origin, guard, visited: Vec::with_capacity(8), queue: BinaryHeap::new() };
        found.visit(self.root(guard));
        found
    }

    /// The `count` nearest entries that `accept` takes, with their distances, the nearest first.
    pub fn nearest(&self, origin: &E::Origin, count: usize, mut accept: impl FnMut(Rid) -> bool) -> Vec<(f64, Rid)> {
        self.by_distance(origin, &sync::pin()).filter(|(_, rid)| accept(*rid)).take(count).collect()
    }
}
