//! Boxes at random in a square, windows over them, and what holds them.
use std::num::NonZero;
use std::ops::ControlFlow;

use index::{BPlusTree, Bounds, BoundsQuery, Gist, RTree};
use types::Rid;

use super::SEED;
use crate::LabError;
use crate::peers::r_star_tree::{NumberedBox, numbered_box};
use crate::workload::Random;

const SQUARE: f64 = 1e6;
const SIDE_MAX: f64 = 500.0;
const WINDOW_SIDE_MAX: f64 = 10_000.0;

/// The tree that is measured.
pub(super) type Tree = Gist<RTree<f64, 2>>;

/// The input: boxes, each with the number of its place, and windows.
pub(super) struct Boxes {
    pub(super) entries: Vec<(Bounds<f64, 2>, Rid)>,
    pub(super) windows: Vec<Bounds<f64, 2>>,
    /// The questions for what overlaps the windows.
    pub(super) queries: Vec<BoundsQuery<f64, 2>>,
}

impl Boxes {
    pub(super) fn new(box_count: usize, query_count: usize) -> Boxes {
        let mut random = Random::new(SEED);
        let entries = (0..box_count).map(|at| (at_random(&mut random, SIDE_MAX), Rid::base(0, at))).collect();
        let windows: Vec<_> = (0..query_count).map(|_| at_random(&mut random, WINDOW_SIDE_MAX)).collect();
        let queries = windows.iter().map(|window| BoundsQuery::overlaps(*window)).collect();
        Boxes { entries, windows, queries }
    }

    /// A tree of all boxes, loaded at once.
    pub(super) fn load(&self, slots: usize, threads: NonZero<usize>) -> Tree {
        Tree::load(self.entries.iter().copied(), slots, 100, threads)
    }

    /// The first boxes as rstar has them.
    pub(super) fn numbered(&self, count: usize) -> Vec<NumberedBox> {
        let first = self.entries[..count].iter();
        first.map(|(bounds, rid)| numbered_box(bounds.low(), bounds.high(), rid.slot())).collect()
    }
}

/// A box with sides up to `side_max`.
fn at_random(random: &mut Random, side_max: f64) -> Bounds<f64, 2> {
    let low = [0; 2].map(|_| random.fraction() * SQUARE);
    let high = low.map(|low| low + random.fraction() * side_max);
    Bounds::new(low, high).expect("no side is below 0")
}

/// A B+tree on the low ends of x.
pub(super) struct LowEnds(BPlusTree<(u64, Rid), ()>);

/// A number that sorts as a coordinate does, which is not below 0.
fn sortable(coordinate: f64) -> u64 {
    coordinate.max(0.0).to_bits()
}

impl LowEnds {
    pub(super) fn new(data: &Boxes) -> Result<LowEnds, LabError> {
        let mut keys: Vec<(u64, Rid)> =
            data.entries.iter().map(|(bounds, rid)| (sortable(bounds.low()[0]), *rid)).collect();
        keys.sort_unstable();
        let tree = BPlusTree::from_sorted(keys.into_iter().map(|key| (key, ())), 100);
        tree.map(LowEnds).map_err(|error| LabError::Failed(error.to_string()))
    }

    /// Calls `each` with the place of every box that overlaps the window: of those that begin where one may, which is up to
    /// the longest side before it.
    pub(super) fn scan(&self, data: &Boxes, window: &Bounds<f64, 2>, mut each: impl FnMut(usize)) {
        let (low, high) = (window.low(), window.high());
        for ((_, rid), ()) in self.0.entries(sortable(low[0] - SIDE_MAX)..=sortable(high[0])) {
            let found = data.entries[rid.slot()].0;
            let ends = found.low().into_iter().zip(found.high()).zip(low.into_iter().zip(high));
            if ends.into_iter().all(|((box_low, box_high), (low, high))| box_low <= high && low <= box_high) {
                each(rid.slot());
            }
        }
    }
}

/// How many boxes were found, and the sum of their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    pub(super) count: usize,
    sum: usize,
}

impl Found {
    pub(super) fn add(&mut self, place: usize) {
        self.count += 1;
        self.sum += place;
    }

    /// What the tree finds, by a descent for each query.
    pub(super) fn by_descents(tree: &Tree, queries: &[BoundsQuery<f64, 2>]) -> Found {
        let mut found = Found::default();
        for query in queries {
            let _: ControlFlow<()> = tree.search(query, |rid| {
                found.add(rid.slot());
                ControlFlow::Continue(())
            });
        }
        found
    }
}
