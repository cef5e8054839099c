//! R-tree: boxes of one to four dimensions (Guttman, 1984), split as in the R*-tree (Beckmann and others, 1990).
use std::cmp::Ordering;
use std::marker::PhantomData;

use super::bounds::{Bounds, BoundsQuery, Coordinate, Window};
use super::extension::{Extension, SLOTS_MAX, Slots};
use super::kernels::{self, Ends};
use crate::vectors::Vectors;

/// The kind of keys that are boxes of `D` dimensions with coordinates `T`.
#[derive(Debug, Clone, Copy)]
pub struct RTree<T, const D: usize>(PhantomData<T>);

/// The boxes of a node, dimension by dimension.
#[derive(Debug, Clone)]
pub struct BoundsSlots<T, const D: usize> {
    low: [Ends<T>; D],
    high: [Ends<T>; D],
}

impl<T: Coordinate, const D: usize> Slots for BoundsSlots<T, D> {
    type Key = Bounds<T, D>;

    fn new() -> Self {
        BoundsSlots { low: [[T::HIGHEST; SLOTS_MAX]; D], high: [[T::LOWEST; SLOTS_MAX]; D] }
    }

    #[inline]
    fn key(&self, slot: usize) -> Bounds<T, D> {
        Bounds {
            low: std::array::from_fn(|dimension| self.low[dimension][slot]),
            high: std::array::from_fn(|dimension| self.high[dimension][slot]),
        }
    }

    #[inline]
    fn set(&mut self, slot: usize, key: &Bounds<T, D>) {
        for dimension in 0..D {
            self.low[dimension][slot] = key.low[dimension];
            self.high[dimension][slot] = key.high[dimension];
        }
    }

    fn truncate(&mut self, _count: usize) {}
}

/// The lowest `count` bits.
#[inline]
fn lowest(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

impl<T: Coordinate, const D: usize> RTree<T, D> {
    /// Held at compile time wherever a tree is used.
    const HAS_DIMENSIONS: () = assert!(D >= 1 && D <= 4, "a box has one to four dimensions");
}

impl<T: Coordinate, const D: usize> Extension for RTree<T, D> {
    type Value = Bounds<T, D>;
    type Key = Bounds<T, D>;
    type Query = BoundsQuery<T, D>;
    type Origin = [T; D];
    type Slots = BoundsSlots<T, D>;

    const DIMENSIONS: usize = D;

    #[inline]
    fn compress(value: &Bounds<T, D>) -> Bounds<T, D> {
        let () = Self::HAS_DIMENSIONS;
        *value
    }

    fn decompress(key: &Bounds<T, D>) -> Bounds<T, D> {
        *key
    }

    fn consistent(key: &Bounds<T, D>, query: &BoundsQuery<T, D>, is_leaf: bool) -> bool {
        !query.is_never && if is_leaf { &query.leaf } else { &query.inner }.passes(key)
    }

    fn union(left: &Bounds<T, D>, right: &Bounds<T, D>) -> Bounds<T, D> {
        left.union(right)
    }

    #[inline]
    fn covers(outer: &Bounds<T, D>, inner: &Bounds<T, D>) -> bool {
        outer.covers(inner)
    }

    /// How much the volume grows; among equals, as between points, how much the sides do, and then the volume itself.
    fn penalty(key: &Bounds<T, D>, new: &Bounds<T, D>) -> (f64, f64) {
        let ((volume, margin), (volume_after, margin_after)) = (key.size(), key.union(new).size());
        let growth = |after: f64, before: f64| if after > before { after - before } else { 0.0 };
        let sides = growth(margin_after, margin);
        (growth(volume_after, volume), if sides > 0.0 { sides } else { -1.0 / (1.0 + volume) })
    }

    fn pick_split(keys: &[Bounds<T, D>]) -> u64 {
        split(keys)
    }

    fn distance(key: &Bounds<T, D>, origin: &[T; D]) -> f64 {
        let apart = |d: usize| {
            let (low, at, high) = (key.low[d].to_f64(), origin[d].to_f64(), key.high[d].to_f64());
            (low - at).max(at - high).max(0.0)
        };
        (0..D).map(|d| apart(d) * apart(d)).sum::<f64>().sqrt()
    }

    #[inline]
    fn compare(dimension: usize, left: &Bounds<T, D>, right: &Bounds<T, D>) -> Ordering {
        let middle = |key: &Bounds<T, D>| T::middle(key.low[dimension], key.high[dimension]);
        middle(left).order(middle(right))
    }

    #[inline]
    fn matches(slots: &BoundsSlots<T, D>, count: usize, query: &BoundsQuery<T, D>, is_leaf: bool) -> u64 {
        if query.is_never {
            return 0;
        }
        let passed = match is_leaf {
            false => kernels::reaching(Vectors::best(), &slots.low, &slots.high, &query.inner),
            true if query.is_plain => kernels::reaching(Vectors::best(), &slots.low, &slots.high, &query.leaf),
            true => kernels::passing(Vectors::best(), &slots.low, &slots.high, &query.leaf),
        };
        passed & lowest(count)
    }

    fn covering(slots: &BoundsSlots<T, D>, count: usize, inner: &Bounds<T, D>) -> u64 {
        let open = ([T::LOWEST; D], [T::HIGHEST; D]);
        let window = Window { low: (open.0, inner.low), high: (inner.high, open.1) };
        kernels::reaching(Vectors::best(), &slots.low, &slots.high, &window) & lowest(count)
    }

    fn choose(slots: &BoundsSlots<T, D>, count: usize, new: &Bounds<T, D>) -> usize {
        let mut growth = [0.0; SLOTS_MAX];
        kernels::enlargements(Vectors::best(), &slots.low, &slots.high, (&new.low, &new.high), &mut growth);
        let growth = &growth[..count];
        let least = growth.iter().copied().fold(f64::INFINITY, f64::min);
        let is_clear = least > 0.0 && growth.iter().filter(|of_slot| **of_slot <= least).count() == 1;
        if is_clear {
            return growth.iter().position(|of_slot| *of_slot == least).expect("the least is one of them");
        }
        // Points, lines or infinite boxes: one by one, with what decides among equals.
        let penalty = |slot: &usize| Self::penalty(&slots.key(*slot), new);
        (0..count).min_by(|one, other| penalty(one).partial_cmp(&penalty(other)).expect("not NaN")).unwrap_or(0)
    }

    fn distances(slots: &BoundsSlots<T, D>, _count: usize, origin: &[T; D], distances: &mut [f64; SLOTS_MAX]) {
        kernels::distances(Vectors::best(), &slots.low, &slots.high, origin, distances);
    }
}

/// The R*-tree's split: the dimension in which the sides of all possible halves are shortest in sum, and there the halves that
/// overlap least, the smaller ones among equals. Each half gets two fifths of the keys at least.
fn split<T: Coordinate, const D: usize>(keys: &[Bounds<T, D>]) -> u64 {
    let count = keys.len();
    let least = (count * 2 / 5).max(1);
    let mut best = (f64::INFINITY, 0);
    for dimension in 0..D {
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_unstable_by(|one, other| {
            let ends = |slot: &usize| (keys[*slot].low[dimension], keys[*slot].high[dimension]);
            let ((low, high), (other_low, other_high)) = (ends(one), ends(other));
            low.order(other_low).then(high.order(other_high))
        });
        let covers = |order: &mut dyn Iterator<Item = usize>| -> Vec<Bounds<T, D>> {
            let mut cover: Option<Bounds<T, D>> = None;
            order
                .map(|slot| {
                    let next = cover.map_or(keys[slot], |cover| cover.union(&keys[slot]));
                    *cover.insert(next)
                })
                .collect()
        };
        let from_low = covers(&mut order.iter().copied());
        let from_high = covers(&mut order.iter().rev().copied());
        let halves = |at: usize| (from_low[at - 1], from_high[count - at - 1]);
        let margins: f64 = (least..=count - least).map(|at| halves(at).0.size().1 + halves(at).1.size().1).sum();
        if margins >= best.0 && best.1 != 0 {
            continue;
        }
        let cost = |at: &usize| {
            let (left, right) = halves(*at);
            (left.overlap(&right), left.size().0 + right.size().0)
        };
        let at = (least..=count - least)
            .min_by(|one, other| {
                let ((overlap, size), (other_overlap, other_size)) = (cost(one), cost(other));
                overlap.total_cmp(&other_overlap).then(size.total_cmp(&other_size))
            })
            .expect("a full node has several keys");
        best = (margins, order[at..].iter().fold(0, |moved, slot| moved | 1 << slot));
    }
    best.1
}
