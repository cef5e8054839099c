//! Entries with extents, in a generalized search tree of boxes of one to four dimensions.
//!
//! A search waits for nothing. An insert looks whether its entry is there, and a removal asks whether the entry may go, so that these two
//! exclude each other.
use std::ops::ControlFlow;

use index::{Bounds, BoundsQuery, Cpu, Gist, RTree};
use parking_lot::RwLock;
use types::Rid;

use super::extents::Ends;

/// A tree of a number of dimensions that is not known before the index is.
pub(super) trait BoxEntries: Send + Sync {
    fn dimensions(&self) -> usize;

    /// Adds an entry, if it is not there.
    fn insert(&self, ends: (&[f64], &[f64]), rid: Rid);

    /// Takes an entry out, if `may_go` says so, which is asked while no other thread can insert it.
    fn remove_if<'f>(&self, ends: (&[f64], &[f64]), rid: Rid, may_go: Box<dyn FnOnce() -> bool + 'f>);

    /// The entries that overlap a box, each once, in the order of their records.
    fn overlapping(&self, ends: (&[f64], &[f64])) -> Vec<(Ends, Ends, Rid)>;

    /// Gives the records that overlap each of some boxes to `take`, with the box's place: all boxes go through the tree together.
    fn overlapping_batch(&self, boxes: &[(&[f64], &[f64])], take: &mut dyn FnMut(usize, Rid));

    /// The entries that are at least so far from a point, the nearest first, with their distances: `count`, if there are as many. A
    /// dimension in which the point has NaN does not count.
    fn nearest(&self, point: &[f64], from: f64, count: usize) -> Vec<(f64, (Ends, Ends, Rid))>;

    /// The records of the entries that have this box.
    fn equal(&self, ends: (&[f64], &[f64])) -> Vec<Rid>;

    /// How many entries overlap a box, `limit` at most.
    fn count(&self, ends: (&[f64], &[f64]), limit: usize) -> usize;

    fn bytes(&self) -> usize;
}

struct Boxes<const D: usize> {
    tree: Gist<RTree<f64, D>>,
    /// exclusive while an entry is taken out
    entering: RwLock<()>,
}

/// Entries of so many dimensions.
pub(super) fn boxes(dimensions: usize) -> Box<dyn BoxEntries> {
    fn of<const D: usize>() -> Box<dyn BoxEntries> {
        Box::new(Boxes::<D> { tree: Gist::new(), entering: RwLock::new(()) })
    }
    debug_assert!((1..=super::extents::DIMENSIONS_MAX).contains(&dimensions), "the definition was checked");
    match dimensions {
        1 => of::<1>(),
        2 => of::<2>(),
        3 => of::<3>(),
        _ => of::<4>(),
    }
}

fn bounds<const D: usize>((low, high): (&[f64], &[f64])) -> Bounds<f64, D> {
    Bounds::from_slices(low, high).expect("extents have two numbers in order for each dimension")
}

impl<const D: usize> BoxEntries for Boxes<D> {
    fn dimensions(&self) -> usize {
        D
    }

    fn insert(&self, ends: (&[f64], &[f64]), rid: Rid) {
        let (at, _entering) = (bounds(ends), self.entering.read());
        let is_it = |found: Rid| if found == rid { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        if self.tree.search(&BoundsQuery::equals(at), is_it).is_continue() {
            self.tree.insert(&at, rid);
        }
    }

    fn remove_if<'f>(&self, ends: (&[f64], &[f64]), rid: Rid, may_go: Box<dyn FnOnce() -> bool + 'f>) {
        let (at, _alone) = (bounds(ends), self.entering.write());
        if may_go() {
            // Two threads that insert it at the same time may both have done so.
            while self.tree.remove(&at, rid) {}
        }
    }

    fn overlapping(&self, ends: (&[f64], &[f64])) -> Vec<(Ends, Ends, Rid)> {
        let mut found = self.tree.entries(&BoundsQuery::overlaps(bounds(ends)));
        found.sort_unstable_by(|one, other| {
            let ends = |found: &(Bounds<f64, D>, Rid)| found.0.low().into_iter().chain(found.0.high());
            let compare = |(one, other): (f64, f64)| one.total_cmp(&other);
            let of_ends = ends(one).zip(ends(other)).map(compare).find(|order| order.is_ne());
            one.1.word().cmp(&other.1.word()).then(of_ends.unwrap_or(std::cmp::Ordering::Equal))
        });
        found.dedup();
        let ends = |at: [f64; D]| Ends::from_slice(&at);
        found.into_iter().map(|(at, rid)| (ends(at.low()), ends(at.high()), rid)).collect()
    }

    fn overlapping_batch(&self, boxes: &[(&[f64], &[f64])], take: &mut dyn FnMut(usize, Rid)) {
        let queries: Vec<_> = boxes.iter().map(|ends| BoundsQuery::overlaps(bounds(*ends))).collect();
        self.tree.search_batch_each(&queries, &Cpu::default(), take);
    }

    fn nearest(&self, point: &[f64], from: f64, count: usize) -> Vec<(f64, (Ends, Ends, Rid))> {
        let origin: [f64; D] = point.try_into().expect("a point has a number for each dimension");
        let (guard, mut found) = (sync::pin(), Vec::with_capacity(count));
        let mut entries = self.tree.by_distance(&origin, &guard);
        while found.len() < count
            && let Some((distance, at, rid)) = entries.next_entry()
        {
            if distance >= from {
                found.push((distance, (Ends::from_slice(&at.low()), Ends::from_slice(&at.high()), rid)));
            }
        }
        found
    }

    fn equal(&self, ends: (&[f64], &[f64])) -> Vec<Rid> {
        let mut rids = self.tree.rids(&BoundsQuery::equals(bounds(ends)));
        rids.sort_unstable();
        rids.dedup();
        rids
    }

    fn count(&self, ends: (&[f64], &[f64]), limit: usize) -> usize {
        let mut count = 0;
        let _end = self.tree.search(&BoundsQuery::overlaps(bounds(ends)), |_| {
            count += 1;
            if count < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        count.min(limit)
    }

    fn bytes(&self) -> usize {
        self.tree.memory().0
    }
}
