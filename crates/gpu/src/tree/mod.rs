//! Scans of a generalized search tree by many queries at a time (gist-coprocessor).
//!
//! A tree is some levels of nodes, the root's first. A node is slots side by side, each a key and a child: the
//! number of a node, or in the last level a record. A query goes to every child whose key is consistent with it.
//! The tree itself belongs to its owner; this sees its levels as plain slices.

mod on_device;
pub mod twin;

pub use on_device::Resident;

use crate::device::Plain;

/// Keys with a predicate that is compiled into the kernels.
pub trait Key: Plain {
    /// The kernel that scans for it.
    const KERNEL: &'static str;

    /// Whether there may be an answer to `query` under this key.
    fn is_consistent(&self, query: &Self) -> bool;
}

/// Rectangles x0, y0, x1, y1 with their ends inside: consistent if they have a point in common.
impl Key for [f32; 4] {
    const KERNEL: &'static str = "tree_overlap";

    fn is_consistent(&self, query: &Self) -> bool {
        self[0] <= query[2] && query[0] <= self[2] && self[1] <= query[3] && query[1] <= self[3]
    }
}

/// Ranges of numbers with their ends inside: consistent if they have a number in common.
impl Key for [i64; 2] {
    const KERNEL: &'static str = "tree_meet";

    fn is_consistent(&self, query: &Self) -> bool {
        self[0] <= query[1] && query[0] <= self[1]
    }
}

macro_rules! windows {
    ($($numbers:literal: $kernel:literal),*) => {
        $(
            /// Boxes of whole numbers, all low ends and then all high ends, the ends inside: consistent if they have a point in common.
            impl Key for [u32; $numbers] {
                const KERNEL: &'static str = $kernel;

                fn is_consistent(&self, query: &Self) -> bool {
                    const DIMENSIONS: usize = $numbers / 2;
                    (0..DIMENSIONS).all(|of| self[of] <= query[DIMENSIONS + of] && query[of] <= self[DIMENSIONS + of])
                }
            }
        )*
    };
}
windows!(2: "tree_windows_1", 4: "tree_windows_2", 6: "tree_windows_3", 8: "tree_windows_4");

/// The levels of a tree. Nodes are numbered over all levels; node 0 is the root.
#[derive(Debug, Clone, Copy)]
pub struct Levels<'a, K> {
    /// The first slot of each node and how many it has.
    pub nodes: &'a [[u32; 2]],
    /// The key of each slot.
    pub keys: &'a [K],
    /// The child of each slot: a node, or a record in the last level.
    pub children: &'a [u32],
    /// Levels: 1 if the root is a leaf.
    pub height: usize,
    /// Nodes from this one on are leaves.
    pub first_leaf: u32,
}

impl<K> Levels<'_, K> {
    /// The first fault of the slices, if there is one: a slot or a node that is named and not there.
    pub fn fault(&self) -> Option<String> {
        if self.keys.len() != self.children.len() {
            return Some(format!("{} keys for {} children", self.keys.len(), self.children.len()));
        }
        if self.height == 0 || self.nodes.is_empty() {
            return Some("a tree without a root".to_owned());
        }
        for (at, [first, count]) in self.nodes.iter().enumerate() {
            let slots = *first as usize..*first as usize + *count as usize;
            let Some(children) = self.children.get(slots.clone()) else {
                return Some(format!("node {at} has slots {slots:?} of {}", self.children.len()));
            };
            let is_leaf = at >= self.first_leaf as usize;
            if let Some(child) = children.iter().find(|child| !is_leaf && **child as usize >= self.nodes.len()) {
                return Some(format!("node {at} has the child {child} of {} nodes", self.nodes.len()));
            }
        }
        None
    }
}

/// An answer: the query's number above, the record below.
pub fn hit(query: u32, record: u32) -> u64 {
    u64::from(query) << 32 | u64::from(record)
}

/// Packs keys into the levels of a tree, `fanout` slots a node; `around` is the key of a node from those of its
/// slots. For benchmarks and tests: an index of the product has its own way to grow.
pub fn pack<K: Key>(keys: &[K], fanout: usize, around: impl Fn(&[K]) -> K) -> Packed<K> {
    let fanout = fanout.max(2);
    // Levels from the leaves up: keys, and the first slot and number of slots of each node, within the level.
    let mut levels: Vec<Vec<K>> = vec![keys.to_vec()];
    while levels.last().is_some_and(|level| level.len() > fanout) {
        let next = levels[levels.len() - 1].chunks(fanout).map(&around).collect();
        levels.push(next);
    }
    levels.reverse();
    let mut packed =
        Packed { nodes: Vec::new(), keys: Vec::new(), children: Vec::new(), height: levels.len(), first_leaf: 0 };
    for (depth, level) in levels.iter().enumerate() {
        packed.first_leaf = packed.nodes.len() as u32;
        let first_slot = packed.keys.len();
        let nodes = level.len().div_ceil(fanout).max(1);
        for node in 0..nodes {
            let slots = node * fanout..level.len().min((node + 1) * fanout);
            packed.nodes.push([(first_slot + slots.start) as u32, slots.len() as u32]);
        }
        // The children of a level are the nodes of the next one, in order; those of the leaves are records.
        let first_child = if depth + 1 == levels.len() { 0 } else { packed.nodes.len() as u32 };
        packed.keys.extend_from_slice(level);
        packed.children.extend((0..level.len() as u32).map(|at| first_child + at));
    }
    packed
}

/// A tree that [`pack`] has made.
#[derive(Debug)]
pub struct Packed<K> {
    nodes: Vec<[u32; 2]>,
    keys: Vec<K>,
    children: Vec<u32>,
    height: usize,
    first_leaf: u32,
}

impl<K> Packed<K> {
    /// Its levels.
    pub fn levels(&self) -> Levels<'_, K> {
        Levels {
            nodes: &self.nodes,
            keys: &self.keys,
            children: &self.children,
            height: self.height,
            first_leaf: self.first_leaf,
        }
    }
}
