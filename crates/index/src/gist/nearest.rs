//! Nearest neighbours, best first (Hjaltason and Samet, *Distance Browsing in Spatial Databases*, 1999).
//!
//! Nodes wait in a queue by the distance of the nearest that they can have. The nearest entries so far wait in a second one,
//! the farthest of them first, as that is the next to go. The search ends when the nearest node is farther than that.
use std::cmp::Ordering;
use std::collections::BinaryHeap;

use types::Rid;

use super::extension::{Extension, SLOTS_MAX};
use super::node::Node;
use super::tree::Gist;

/// Something at a distance, which alone decides its order.
struct At<T>(f64, T);

impl<T> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for At<T> {}

impl<T> PartialOrd for At<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for At<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl<E: Extension> Gist<E> {
    /// The `count` entries nearest to an origin that `accept` takes, with their distances, the nearest first. `accept` is asked
    /// about an entry only if it is nearer than all but `count` of those taken before; a reader checks there whether it sees the
    /// record with that key.
    pub fn nearest(&self, origin: &E::Origin, count: usize, mut accept: impl FnMut(Rid) -> bool) -> Vec<(f64, Rid)> {
        let guard = sync::pin();
        let mut distances = [0.0; SLOTS_MAX];
        let mut found: BinaryHeap<At<Rid>> = BinaryHeap::new();
        // A heap has its greatest first: distances are negated, so that the nearest node is.
        let mut open: BinaryHeap<At<&Node<E>>> = BinaryHeap::new();
        open.push(At(0.0, self.root_node(&guard)));
        while let Some(At(negated, node)) = open.pop()
            && count > 0
        {
            let mut reach = reach(&found, count);
            if -negated > reach {
                break;
            }
            // Most nodes that wait are never looked at, so their contents are loaded only here.
            let content = node.content(&guard);
            E::distances(&content.slots, content.count, origin, &mut distances);
            for (slot, &distance) in distances.iter().enumerate().take(content.count) {
                // An entry as far as the farthest changes nothing.
                if distance > reach || (distance == reach && found.len() == count) {
                    continue;
                }
                if !content.is_leaf() {
                    open.push(At(-distance, &content.children()[slot]));
                } else if accept(content.rid(slot)) {
                    found.push(At(distance, content.rid(slot)));
                    if found.len() > count {
                        found.pop();
                    }
                    reach = self::reach(&found, count);
                }
            }
        }
        found.into_sorted_vec().into_iter().map(|At(distance, rid)| (distance, rid)).collect()
    }
}

/// How near an entry has to be to be among the nearest.
fn reach(found: &BinaryHeap<At<Rid>>, count: usize) -> f64 {
    match found.peek() {
        Some(farthest) if found.len() >= count => farthest.0,
        _ => f64::INFINITY,
    }
}
