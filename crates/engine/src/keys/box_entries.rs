//! Entries with extents, in a generalized search tree of boxes of one to four dimensions.
//!
//! A search waits for nothing. An insert looks whether its entry is there, and a removal asks whether the entry may go, so that these two
//! exclude each other.
//!
//! ```text
//!  what a table has ──collect──▶ list ──settle──▶ a tree packed from the list ─┐
//!  writers meanwhile ──insert──▶ tree ──────────────what only it has───────────┴─▶ the tree
//! ```
//!
//! What a table has when its index is filled is collected, and packed into a tree at once: that takes a tenth of the time of inserts,
//! and leaves nodes that are full. Writers enter their keys meanwhile, and wait only while these are brought into the packed tree.
use std::cmp::Ordering;
use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::thread;

use index::{BatchScheduler, Bounds, BoundsQuery, Cpu, Gist, NoAnswer, RTree, SLOTS_MAX, SearchDevice};
use parking_lot::{Mutex, RwLock};
use sync::EpochCell;
use types::Rid;

use super::box_image::{BATCHES, Beside, DESCENTS, WAYS};
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

    /// Gives the records that overlap each of some boxes to `take`, with the box's place: all boxes go through the tree together, on a
    /// device if there is one and it is the fastest way; then records that are only near may come, too.
    fn overlapping_batch(
        &self,
        boxes: &[(&[f64], &[f64])],
        device: Option<&dyn SearchDevice>,
        take: &mut dyn FnMut(usize, Rid),
    );

    /// The entries that are at least so far from a point, the nearest first, with their distances: `count`, if there are as many. A
    /// dimension in which the point has NaN does not count.
    fn nearest(&self, point: &[f64], from: f64, count: usize) -> Vec<(f64, (Ends, Ends, Rid))>;

    /// The records of the entries that have this box.
    fn equal(&self, ends: (&[f64], &[f64])) -> Vec<Rid>;

    /// How many entries overlap a box, `limit` at most.
    fn count(&self, ends: (&[f64], &[f64]), limit: usize) -> usize;

    /// Notes entries that searches find once [`settle`](Self::settle) has run. Until then no caller may take them out.
    fn collect(&self, entries: &[(Ends, Ends, Rid)]);

    /// Brings what was collected into the tree, while others read and write.
    fn settle(&self);

    fn bytes(&self) -> usize;
}

pub(super) type Tree<const D: usize> = Gist<RTree<f64, D>>;

/// How full the nodes of a packed tree are: there is room for entries that come later.
const FILL_PERCENT: usize = 90;

pub(super) struct Boxes<const D: usize> {
    pub(super) tree: EpochCell<Tree<D>>,
    /// exclusive while an entry is taken out, or another tree takes the place of this one; with what came since an image was begun
    pub(super) entering: RwLock<Option<Arc<Beside<D>>>>,
    /// between descents, the processor's batches, and a device
    scheduler: BatchScheduler,
    /// what is to be brought into the tree
    collected: Mutex<Vec<(Bounds<f64, D>, Rid)>>,
}

/// Entries of so many dimensions.
pub(super) fn boxes(dimensions: usize) -> Box<dyn BoxEntries> {
    fn of<const D: usize>() -> Box<dyn BoxEntries> {
        Box::new(Boxes::<D> {
            tree: EpochCell::new(Gist::new()),
            entering: RwLock::new(None),
            scheduler: BatchScheduler::new(WAYS),
            collected: Mutex::new(Vec::new()),
        })
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

/// The order of entries: by their records, and of one record by their ends.
fn compare<const D: usize>(one: &(Bounds<f64, D>, Rid), other: &(Bounds<f64, D>, Rid)) -> Ordering {
    let ends = |entry: &(Bounds<f64, D>, Rid)| entry.0.low().into_iter().chain(entry.0.high());
    let of_ends = ends(one).zip(ends(other)).map(|(one, other)| one.total_cmp(&other)).find(|order| order.is_ne());
    one.1.word().cmp(&other.1.word()).then(of_ends.unwrap_or(Ordering::Equal))
}

impl<const D: usize> Boxes<D> {
    /// Adds an entry, if it is not there. The caller holds `entering`, whose value `beside` is.
    fn enter(&self, beside: Option<&Beside<D>>, at: Bounds<f64, D>, rid: Rid) {
        // First here: a writer that finds it in the tree has it here as well.
        if let Some(beside) = beside {
            add(&beside.entries, at, rid);
        }
        add(self.tree.load(&sync::pin()), at, rid);
    }

    /// The processor's batch.
    fn batch(&self, queries: &[BoundsQuery<f64, D>], mut take: impl FnMut(usize, Rid)) {
        self.tree.load(&sync::pin()).search_batch_each(queries, &Cpu::default(), &mut take);
    }
}

/// Adds an entry to a tree that no thread takes entries out of, if it is not there.
fn add<const D: usize>(tree: &Tree<D>, at: Bounds<f64, D>, rid: Rid) {
    let is_it = |found: Rid| if found == rid { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    if tree.search(&BoundsQuery::equals(at), is_it).is_continue() {
        tree.insert(&at, rid);
    }
}

impl<const D: usize> BoxEntries for Boxes<D> {
    fn dimensions(&self) -> usize {
        D
    }

    fn insert(&self, ends: (&[f64], &[f64]), rid: Rid) {
        let beside = self.entering.read();
        self.enter(beside.as_deref(), bounds(ends), rid);
    }

    fn collect(&self, entries: &[(Ends, Ends, Rid)]) {
        self.collected.lock().extend(entries.iter().map(|(low, high, rid)| (bounds((low, high)), *rid)));
    }

    fn settle(&self) {
        let mut collected = std::mem::take(&mut *self.collected.lock());
        // A record has an entry for each of its versions' keys, of which some are equal.
        collected.sort_unstable_by(compare);
        collected.dedup();
        if collected.len() <= self.tree.load(&sync::pin()).len() {
            for (at, rid) in collected {
                let beside = self.entering.read();
                self.enter(beside.as_deref(), at, rid);
            }
            return;
        }
        let threads = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let packed = Tree::<D>::load(collected, SLOTS_MAX, FILL_PERCENT, threads);
        let (mut alone, guard) = (self.entering.write(), sync::pin());
        let all = BoundsQuery::overlaps(Bounds::new([f64::NEG_INFINITY; D], [f64::INFINITY; D]).expect("in order"));
        self.tree.load(&guard).entries(&all).into_iter().for_each(|(at, rid)| add(&packed, at, rid));
        debug_assert!(packed.len() >= self.tree.load(&guard).len(), "invariant 7: a writer's entry is lost");
        self.tree.replace(packed, &guard);
        // No image has what was packed.
        *alone = None;
    }

    fn remove_if<'f>(&self, ends: (&[f64], &[f64]), rid: Rid, may_go: Box<dyn FnOnce() -> bool + 'f>) {
        let (at, alone) = (bounds(ends), self.entering.write());
        if may_go() {
            let guard = sync::pin();
            // An image keeps it, whose readers ask the record.
            if let Some(beside) = &*alone {
                while beside.entries.remove(&at, rid) {}
            }
            // Two threads that insert it at the same time may both have done so.
            while self.tree.load(&guard).remove(&at, rid) {}
        }
    }

    fn overlapping(&self, ends: (&[f64], &[f64])) -> Vec<(Ends, Ends, Rid)> {
        let mut found = self.tree.load(&sync::pin()).entries(&BoundsQuery::overlaps(bounds(ends)));
        found.sort_unstable_by(compare);
        found.dedup();
        let ends = |at: [f64; D]| Ends::from_slice(&at);
        found.into_iter().map(|(at, rid)| (ends(at.low()), ends(at.high()), rid)).collect()
    }

    fn overlapping_batch(
        &self,
        boxes: &[(&[f64], &[f64])],
        device: Option<&dyn SearchDevice>,
        take: &mut dyn FnMut(usize, Rid),
    ) {
        let windows: Vec<Bounds<f64, D>> = boxes.iter().map(|ends| bounds(*ends)).collect();
        let queries: Vec<_> = windows.iter().map(|window| BoundsQuery::overlaps(*window)).collect();
        let there = device.and_then(|device| Some((device, self.there(device, windows.len())?)));
        let Some((device, (beside, search))) = there else { return self.batch(&queries, take) };
        let on_device = |part: Range<usize>, take: &mut dyn FnMut(usize, Rid)| {
            let start = part.start;
            let found = beside.search(&windows[part.clone()], &queries[part.clone()], &*search);
            match found {
                Ok(found) => found.into_iter().for_each(|(query, rid)| take(start + query as usize, rid)),
                Err(NoAnswer) => self.batch(&queries[part], |query, rid| take(start + query, rid)),
            }
        };
        if device.is_forced() {
            return on_device(0..windows.len(), take);
        }
        self.scheduler.run(windows.len(), self.tree.load(&sync::pin()).len(), |way, part| {
            let (start, mut found) = (part.start, 0);
            let mut take = |query: usize, rid: Rid| {
                found += 1;
                take(query, rid);
            };
            match way {
                DESCENTS => {
                    let guard = sync::pin();
                    self.tree.load(&guard).descend(&queries[part], |query, rid| take(start + query, rid));
                }
                BATCHES => self.batch(&queries[part], |query, rid| take(start + query, rid)),
                _ => on_device(part, &mut take),
            }
            found
        });
    }

    fn nearest(&self, point: &[f64], from: f64, count: usize) -> Vec<(f64, (Ends, Ends, Rid))> {
        let origin: [f64; D] = point.try_into().expect("a point has a number for each dimension");
        let (guard, mut found) = (sync::pin(), Vec::with_capacity(count));
        let mut entries = self.tree.load(&guard).by_distance(&origin, &guard);
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
        let mut rids = self.tree.load(&sync::pin()).rids(&BoundsQuery::equals(bounds(ends)));
        rids.sort_unstable();
        rids.dedup();
        rids
    }

    fn count(&self, ends: (&[f64], &[f64]), limit: usize) -> usize {
        let mut count = 0;
        let _end = self.tree.load(&sync::pin()).search(&BoundsQuery::overlaps(bounds(ends)), |_| {
            count += 1;
            if count < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        count.min(limit)
    }

    fn bytes(&self) -> usize {
        self.tree.load(&sync::pin()).memory().0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A point of the plane for each number, many of them on one place, and an interval beside it.
    fn ends(number: usize) -> (Ends, Ends) {
        let at = [number * 37 % 61, number * 53 % 59, number % 7].map(|at| at as f64);
        (Ends::from_slice(&at), Ends::from_slice(&[at[0] + 2.0, at[1], at[2] + 1.0]))
    }

    fn rid(number: usize) -> Rid {
        Rid::base(0, number)
    }

    fn entries(numbers: impl IntoIterator<Item = usize>) -> Vec<(Ends, Ends, Rid)> {
        let entry = |number| (ends(number).0, ends(number).1, rid(number));
        numbers.into_iter().map(entry).collect()
    }

    fn insert(boxes: &dyn BoxEntries, number: usize) {
        let (low, high) = ends(number);
        boxes.insert((&low, &high), rid(number));
    }

    fn all(boxes: &dyn BoxEntries) -> Vec<usize> {
        let found = boxes.overlapping((&[f64::NEG_INFINITY; 3], &[f64::INFINITY; 3]));
        found.into_iter().map(|(_, _, rid)| rid.slot()).collect()
    }

    #[test]
    fn what_is_packed_is_found_as_what_is_inserted_and_takes_less() {
        let (packed, inserted) = (boxes(3), boxes(3));
        (0..3_000).for_each(|number| insert(&*inserted, number));
        (0..3).for_each(|part| packed.collect(&entries((0..3_000).filter(|number| number % 3 == part))));
        packed.collect(&entries(0..100));
        assert!(all(&*packed).is_empty(), "nothing is found before it is in the tree");
        packed.settle();
        for number in (0..3_000).step_by(97) {
            let (low, high) = ends(number);
            assert_eq!(packed.overlapping((&low, &high)), inserted.overlapping((&low, &high)));
            assert_eq!(packed.equal((&low, &high)), inserted.equal((&low, &high)));
            let nearest = |boxes: &dyn BoxEntries| {
                boxes.nearest(&low, 0.0, 9).into_iter().map(|(distance, _)| distance).collect::<Vec<_>>()
            };
            assert_eq!(nearest(&*packed), nearest(&*inserted));
        }
        assert_eq!(packed.count((&[f64::NEG_INFINITY; 3], &[f64::INFINITY; 3]), usize::MAX), 3_000);
        assert!(packed.bytes() * 5 < inserted.bytes() * 4, "{} and {} bytes", packed.bytes(), inserted.bytes());
    }

    #[test]
    fn writers_lose_nothing_while_what_was_collected_comes_into_the_tree() {
        const COLLECTED: usize = 6_000;
        let boxes = boxes(3);
        let mut expected: BTreeSet<usize> = (0..COLLECTED).collect();
        thread::scope(|scope| {
            for thread in 0..3 {
                let boxes = &*boxes;
                scope.spawn(move || {
                    for number in (0..900).map(|step| COLLECTED + step * 3 + thread) {
                        insert(boxes, number);
                        if number % 5 == 0 {
                            let (low, high) = ends(number);
                            boxes.remove_if((&low, &high), rid(number), Box::new(|| true));
                        }
                        // Entered by a writer, too.
                        insert(boxes, number - COLLECTED);
                    }
                });
            }
            scope.spawn(|| {
                // Twice as others do, and once where the tree has more than what comes.
                boxes.collect(&entries(0..COLLECTED));
                boxes.settle();
                boxes.collect(&entries(0..40));
                boxes.settle();
            });
        });
        expected.extend((COLLECTED..COLLECTED + 2_700).filter(|number| number % 5 != 0));
        assert_eq!(all(&*boxes), expected.into_iter().collect::<Vec<_>>());
    }
}
