//! An image of a tree of boxes for a device ([`crate::SearchDevice`]): its levels as they are now, in slices.
//!
//! ```text
//! coordinate -∞ ── low of all ─────────── high of all ── ∞        what lies between two numbers, its place does, too: boxes that
//! place          0 ────────────────────── 2^32 - 1                overlap do so in places; some that are only near do as well
//! ```
//!
//! The image has every entry that was there before it was begun, or that is left over as there is no room for all of them. What comes
//! later and what is left over is its owner's.
use types::Rid;

use super::bounds::Bounds;
use super::node::Content;
use super::rtree::RTree;
use super::tree::Gist;
use crate::beside::{BoxesImage, ImageId, Token};
use crate::gist::Slots;

/// What its owner keeps of an image.
pub struct TreeImage<const D: usize> {
    token: Token,
    places: [Places; D],
    rids: Vec<Rid>,
}

/// Entries of a tree.
type Entries<const D: usize> = Vec<(Bounds<f64, D>, Rid)>;

/// From coordinates of a dimension to places: the larger of two has no lower one.
#[derive(Clone, Copy)]
struct Places {
    low: f64,
    scale: f64,
}

impl Places {
    /// For coordinates in a span; those beyond are at its ends.
    fn of((low, high): (f64, f64)) -> Self {
        let scale = f64::from(u32::MAX) / (high - low);
        // A span of nothing, or of more than there are numbers, tells nothing apart.
        if scale.is_finite() && scale > 0.0 && low.is_finite() {
            Places { low, scale }
        } else {
            Places { low: 0.0, scale: 0.0 }
        }
    }

    #[inline]
    fn of_number(self, at: f64) -> u32 {
        // Infinity times nothing is NaN, whose place is that of all others then.
        ((at - self.low) * self.scale) as u32
    }
}

impl<const D: usize> TreeImage<D> {
    /// Which image it is.
    pub fn id(&self) -> ImageId {
        self.token.id()
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.rids.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rids.is_empty()
    }

    /// The record of an entry.
    pub fn rid(&self, number: u32) -> Rid {
        self.rids[number as usize]
    }

    /// Appends a box as the image's windows are: low ends and high ends.
    pub fn place(&self, bounds: &Bounds<f64, D>, out: &mut Vec<u32>) {
        place(&self.places, bounds, out);
    }
}

fn place<const D: usize>(places: &[Places; D], bounds: &Bounds<f64, D>, out: &mut Vec<u32>) {
    out.extend((0..D).map(|d| places[d].of_number(bounds.low[d])));
    out.extend((0..D).map(|d| places[d].of_number(bounds.high[d])));
}

/// Bytes of a slot of an image: its box and its child.
fn slot_bytes<const D: usize>() -> u64 {
    (2 * D as u64 + 1) * size_of::<u32>() as u64
}

impl<const D: usize> Gist<RTree<f64, D>> {
    /// An image of so many bytes at most, what goes to the device of it, and the entries for which there was no room: whole leaves,
    /// those that come last in the tree.
    pub fn image(&self, bytes_max: u64) -> (TreeImage<D>, BoxesImage, Entries<D>) {
        let guard = sync::pin();
        // From the root down: all nodes of a level are as far from it.
        let mut levels: Vec<Vec<&Content<RTree<f64, D>>>> = vec![vec![self.root(&guard)]];
        while let Some(level) = levels.last().filter(|level| !level[0].is_leaf()) {
            levels.push(level.iter().flat_map(|node| node.children()).map(|child| child.content(&guard)).collect());
        }
        let leaves = levels.pop().unwrap_or_default();
        let places = spans(&leaves).map(Places::of);
        // Inner nodes are a small part: two of hundred, or with small nodes more, which then take from what is left.
        let (mut slots_left, mut kept) = (bytes_max / slot_bytes::<D>(), 0);
        while let Some(leaf) = leaves.get(kept)
            && let Some(left) = slots_left.checked_sub(leaf.count as u64 + 2)
        {
            (slots_left, kept) = (left, kept + 1);
        }
        let entry = |leaf: &&Content<RTree<f64, D>>, slot: usize| (leaf.slots.key(slot), leaf.rid(slot));
        let rest = leaves[kept..].iter().flat_map(|leaf| (0..leaf.count).map(move |slot| entry(leaf, slot))).collect();
        let leaves = &leaves[..kept];
        let token = Token::new();
        let mut image = BoxesImage {
            id: token.id(),
            dimensions: D,
            nodes: Vec::new(),
            keys: Vec::new(),
            children: Vec::new(),
            height: levels.len() + 1,
            first_leaf: 0,
        };
        // How many nodes of each level lead to a leaf that is kept: the last of them may have children that do not.
        let mut counts = vec![kept];
        for level in levels.iter().rev() {
            let mut left = counts[counts.len() - 1];
            let has_kept = |node: &&&Content<RTree<f64, D>>| {
                let begins_kept = left > 0;
                left = left.saturating_sub(node.count);
                begins_kept
            };
            counts.push(level.iter().take_while(has_kept).count().max(1));
        }
        for (depth, level) in levels.iter().enumerate() {
            let (nodes, mut below) = (counts[levels.len() - depth], counts[levels.len() - depth - 1] as u32);
            let mut child = image.nodes.len() as u32 + nodes as u32;
            for node in &level[..nodes] {
                let count = (node.count as u32).min(below);
                below -= count;
                image.push(&places, node, count, |slot| child + slot as u32);
                child += count;
            }
        }
        image.first_leaf = image.nodes.len() as u32;
        let mut rids: Vec<Rid> = Vec::with_capacity(leaves.iter().map(|leaf| leaf.count).sum());
        for leaf in leaves {
            let first = rids.len() as u32;
            image.push(&places, leaf, leaf.count as u32, |slot| first + slot as u32);
            rids.extend((0..leaf.count).map(|slot| leaf.rid(slot)));
        }
        if leaves.is_empty() {
            // A level without nodes is none.
            image.nodes.push([image.children.len() as u32, 0]);
        }
        (TreeImage { token, places, rids }, image, rest)
    }
}

impl BoxesImage {
    /// How many bytes of a device's memory it takes.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&*self.nodes) + size_of_val(&*self.keys) + size_of_val(&*self.children)) as u64
    }

    fn push<const D: usize>(
        &mut self,
        places: &[Places; D],
        node: &Content<RTree<f64, D>>,
        count: u32,
        child: impl Fn(usize) -> u32,
    ) {
        self.nodes.push([self.children.len() as u32, count]);
        for slot in 0..count as usize {
            place(places, &node.slots.key(slot), &mut self.keys);
            self.children.push(child(slot));
        }
    }
}

/// From the lowest to the highest finite end of all entries, in each dimension.
fn spans<const D: usize>(leaves: &[&Content<RTree<f64, D>>]) -> [(f64, f64); D] {
    let mut spans = [(f64::INFINITY, f64::NEG_INFINITY); D];
    for leaf in leaves {
        for key in (0..leaf.count).map(|slot| leaf.slots.key(slot)) {
            for (d, span) in spans.iter_mut().enumerate() {
                for end in [key.low[d], key.high[d]].into_iter().filter(|end| end.is_finite()) {
                    *span = (span.0.min(end), span.1.max(end));
                }
            }
        }
    }
    spans
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::num::NonZero;

    use super::*;
    use crate::BoundsQuery;

    /// What windows meet in an image, as a device finds it.
    fn meet<const D: usize>(image: &BoxesImage, windows: &[u32]) -> Vec<(u32, u32)> {
        let is_met = |slot: usize, window: &[u32]| {
            let key = &image.keys[slot * 2 * D..(slot + 1) * 2 * D];
            (0..D).all(|d| key[d] <= window[D + d] && window[d] <= key[D + d])
        };
        let mut met = Vec::new();
        for (number, window) in (0..).zip(windows.chunks(2 * D)) {
            let mut open = vec![0u32];
            while let Some(node) = open.pop() {
                let [first, count] = image.nodes[node as usize];
                for slot in (first..first + count).filter(|slot| is_met(*slot as usize, window)) {
                    let child = image.children[slot as usize];
                    if node >= image.first_leaf { met.push((number, child)) } else { open.push(child) }
                }
            }
        }
        met
    }

    type Boxes = Vec<(Bounds<f64, 2>, Rid)>;

    fn tree(count: usize) -> (Gist<RTree<f64, 2>>, Boxes) {
        let number = |at: usize, of: usize| match (at * 7 + of) % 97 {
            0 => f64::NEG_INFINITY,
            1 => f64::INFINITY,
            _ => ((at * (31 + of)) % 1009) as f64 * 0.37 - 100.0,
        };
        let bounds = |at: usize| Bounds::from_corners([number(at, 0), number(at, 1)], [number(at, 2), number(at, 3)]);
        let entries: Vec<_> = (0..count).map(|at| (bounds(at).unwrap(), Rid::base(0, at))).collect();
        let packed = Gist::load(entries.iter().copied(), 8, 90, NonZero::<usize>::MIN);
        (packed, entries)
    }

    #[test]
    fn an_image_finds_what_the_tree_does_and_what_has_no_room_is_left_over() {
        for (count, bytes_max) in [(0, 1000), (1, 1000), (5, 0), (900, u64::MAX), (900, 9_000), (900, 300), (900, 0)] {
            let (tree, entries) = tree(count);
            let (image, sent, rest) = tree.image(bytes_max);
            assert_eq!(image.len() + rest.len(), count);
            assert!(sent.bytes() <= bytes_max.saturating_add(500), "{} bytes of {bytes_max}", sent.bytes());
            assert!(bytes_max < u64::MAX || rest.is_empty());
            for (at, window) in entries.iter().step_by(17) {
                let mut windows = Vec::new();
                image.place(at, &mut windows);
                let met = meet::<2>(&sent, &windows).into_iter().map(|(_, number)| image.rid(number));
                let query = BoundsQuery::overlaps(*at);
                let mut found: Vec<Rid> = met.chain(rest.iter().map(|(_, rid)| *rid)).collect();
                found.sort_unstable();
                let all = tree.rids(&query);
                assert!(all.contains(window) && all.iter().all(|rid| found.binary_search(rid).is_ok()), "{at:?}");
                if rest.is_empty() {
                    assert!(found.len() <= all.len() + all.len() / 4 + 4, "{} for {}", found.len(), all.len());
                }
            }
        }
    }

    #[test]
    fn the_larger_number_has_no_lower_place() {
        let numbers = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1e9,
            -3.5,
            -0.0,
            0.0,
            1e-300,
            2.0,
            2.0 + 1e-15,
            7e40,
            f64::MAX,
            f64::INFINITY,
        ];
        for span in [(0.0, 0.0), (-3.5, 2.0), (f64::MIN, f64::MAX), (0.0, 1e-320), (f64::INFINITY, f64::NEG_INFINITY)] {
            let places = Places::of(span);
            assert!(numbers.map(|number| places.of_number(number)).is_sorted(), "{span:?}");
        }
        assert_eq!([-4.0, 2.0].map(|at| Places::of((-4.0, 2.0)).of_number(at)), [0, u32::MAX]);
    }
}
