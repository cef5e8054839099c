//! Bitwise-distributed columns that take changes: an image, and beside it what came since and what has gone.
//!
//! ```text
//!  insert ---> fresh (a search tree of points) --seal--> sealed --+
//!  load -------------------------------------------------^        +--build--> the next image
//!                                    image, without what is gone -+
//!  remove ---> out of fresh; a mark where it may be in the image or sealed
//!
//!  search:     image and sealed, without what is marked,  and  fresh
//! ```
//!
//! The image never changes. It is replaced by one of all entries once there are enough others beside it, which a thread of the
//! background decides ([`BitwiseIndex::is_due`], [`BitwiseIndex::build`]). Searches, inserts and removals go on meanwhile: the
//! entries that the build takes in are *sealed*, which means that they stay where they are until the new image has them.
//!
//! | an entry is found because | and is found once because |
//! |---|---|
//! | it is in the image, sealed or fresh, and goes from one to the next in one step | what is found is sorted, repeats are left out |
//! | a mark is taken off before its entry comes again | |
//!
//! Marks of one build are apart from those before it: the build leaves out what was marked when it began, and what is marked
//! later is in the new image and stays marked.
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};

#[cfg(all(shuttle, test))]
use shuttle::sync::RwLock;
#[cfg(not(all(shuttle, test)))]
use std::sync::RwLock;
use types::Rid;

use super::columns::{BitwiseColumns, BitwiseError};
use crate::beside::SearchDevice;
use crate::{BatchScheduler, Bounds, BoundsQuery, Cpu, Gist, Matches, RTree};

/// An entry: the coordinates of a record, and the record.
type Point<const D: usize> = ([i64; D], Rid);

type Tree<const D: usize> = Gist<RTree<i64, D>>;

/// Entries that the next image takes in.
enum Sealed<const D: usize> {
    Tree(Tree<D>),
    List(Vec<Point<D>>),
}

/// Entries that were taken out of what does not change.
type Gone<const D: usize> = HashSet<([i64; D], u64)>;

struct Parts<const D: usize> {
    image: Option<Arc<BitwiseColumns<D>>>,
    sealed: Vec<Arc<Sealed<D>>>,
    fresh: Tree<D>,
    gone: Arc<Gone<D>>,
    /// `Some` while an image is built: what has gone since that began.
    gone_since: Option<Gone<D>>,
}

/// One or two columns of integers in bits, with changes. All operations take `&self`, from any number of threads.
///
/// ```
/// use index::{BitwiseIndex, Bounds};
/// use types::Rid;
///
/// let index: BitwiseIndex<2> = BitwiseIndex::new(1 << 16);
/// index.load((0..100).map(|slot| ([slot as i64, 7], Rid::base(0, slot))).collect());
/// index.build(false)?;
/// index.insert([5, 8], Rid::base(0, 100));
/// index.remove_if([5, 7], Rid::base(0, 5), || true);
/// let window = Bounds::new([5, 0], [6, 9]).expect("low ends below high ends");
/// assert_eq!(index.search(&window), [([6, 7], Rid::base(0, 6)), ([5, 8], Rid::base(0, 100))]);
/// # Ok::<(), index::BitwiseError>(())
/// ```
pub struct BitwiseIndex<const D: usize> {
    parts: RwLock<Parts<D>>,
    budget_bytes: usize,
    /// Between the processor, 0, and a device, 1.
    scheduler: BatchScheduler,
}

/// An image with fewer points is not worth a device.
const POINTS_MIN: usize = 16_384;
/// Fewer windows are not worth one.
const WINDOWS_MIN: usize = 16;

/// So few entries beside the image are searched one by one for good.
const BESIDE_MIN: usize = 4_096;
/// An image is due once this part of its entries stands beside it.
const BESIDE_SHARE: usize = 8;

fn point<const D: usize>(at: [i64; D]) -> Bounds<i64, D> {
    Bounds::point(at).expect("integers are numbers")
}

fn whole<const D: usize>() -> Bounds<i64, D> {
    Bounds::new([i64::MIN; D], [i64::MAX; D]).expect("the lowest is below the highest")
}

impl<const D: usize> Parts<D> {
    fn is_gone(&self, at: [i64; D], rid: Rid) -> bool {
        let entry = &(at, rid.word());
        self.gone.contains(entry) || self.gone_since.as_ref().is_some_and(|gone| gone.contains(entry))
    }

    fn has_gone(&self) -> bool {
        !self.gone.is_empty() || self.gone_since.as_ref().is_some_and(|gone| !gone.is_empty())
    }

    /// Adds an entry, if it is not fresh.
    fn add(&self, at: [i64; D], rid: Rid) {
        let query = BoundsQuery::equals(point(at));
        let is_it = |found: Rid| if found == rid { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        if self.fresh.search(&query, is_it).is_continue() {
            self.fresh.insert(&point(at), rid);
        }
    }

    /// Adds an entry that may be marked as gone. The image that is being built may leave it out: the fresh one stays whatever that
    /// does.
    fn enter(&mut self, at: [i64; D], rid: Rid) {
        let entry = &(at, rid.word());
        Arc::make_mut(&mut self.gone).remove(entry);
        if let Some(gone) = &mut self.gone_since {
            gone.remove(entry);
        }
        self.add(at, rid);
    }

    fn mark_count(&self) -> usize {
        self.gone.len() + self.gone_since.as_ref().map_or(0, HashSet::len)
    }
}

/// Gives the records of a tree in each of some windows to `take`.
fn batch<const D: usize>(tree: &Tree<D>, windows: &[Bounds<i64, D>], take: &mut impl FnMut(usize, Rid)) {
    let queries: Vec<_> = windows.iter().map(|window| BoundsQuery::within(*window)).collect();
    tree.search_batch_each(&queries, &Cpu::default(), take);
}

impl<const D: usize> Sealed<D> {
    fn search_batch(&self, windows: &[Bounds<i64, D>], take: &mut impl FnMut(usize, Rid)) {
        if let Sealed::Tree(tree) = self {
            return batch(tree, windows, take);
        }
        let mut found = Vec::new();
        for (place, window) in windows.iter().enumerate() {
            found.clear();
            self.collect(window, &mut found);
            found.iter().for_each(|(_, rid)| take(place, *rid));
        }
    }

    fn collect(&self, window: &Bounds<i64, D>, out: &mut Vec<Point<D>>) {
        match self {
            Sealed::Tree(tree) => collect(tree, window, out),
            Sealed::List(points) => {
                let is_within = |at: &[i64; D]| {
                    (0..D).all(|column| (window.low()[column]..=window.high()[column]).contains(&at[column]))
                };
                out.extend(points.iter().filter(|(at, _)| is_within(at)));
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Sealed::Tree(tree) => tree.len(),
            Sealed::List(points) => points.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Sealed::Tree(tree) => tree.memory().0,
            Sealed::List(points) => size_of_val(&**points),
        }
    }
}

fn collect<const D: usize>(tree: &Tree<D>, window: &Bounds<i64, D>, out: &mut Vec<Point<D>>) {
    out.extend(tree.entries(&BoundsQuery::within(*window)).into_iter().map(|(bounds, rid)| (bounds.low(), rid)));
}

/// In the order of records, so that they are read in the order of their pages; each entry once.
fn sort<const D: usize>(points: &mut Vec<Point<D>>) {
    points.sort_unstable_by_key(|(at, rid)| (rid.word(), *at));
    points.dedup();
}

impl<const D: usize> BitwiseIndex<D> {
    /// An index without entries, whose image is to take so many bytes where searches look first.
    pub fn new(budget_bytes: usize) -> Self {
        let parts =
            Parts { image: None, sealed: Vec::new(), fresh: Tree::new(), gone: Arc::default(), gone_since: None };
        BitwiseIndex { parts: RwLock::new(parts), budget_bytes, scheduler: BatchScheduler::new(2) }
    }

    fn shared<R>(&self, body: impl FnOnce(&Parts<D>) -> R) -> R {
        body(&self.parts.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn exclusive<R>(&self, body: impl FnOnce(&mut Parts<D>) -> R) -> R {
        body(&mut self.parts.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds an entry, if it is not there.
    pub fn insert(&self, at: [i64; D], rid: Rid) {
        let is_added = self.shared(|parts| {
            let is_marked = parts.has_gone() && parts.is_gone(at, rid);
            if !is_marked {
                parts.add(at, rid);
            }
            !is_marked
        });
        if !is_added {
            self.exclusive(|parts| parts.enter(at, rid));
        }
    }

    /// Adds many entries, which are found like others, but one by one until the next image is built.
    pub fn load(&self, points: Vec<([i64; D], Rid)>) {
        self.exclusive(|parts| {
            let is_marked = parts.has_gone() && points.iter().any(|(at, rid)| parts.is_gone(*at, *rid));
            // What a build takes in is decided when it begins, and what is marked is hidden there.
            match is_marked || parts.gone_since.is_some() {
                true => points.iter().for_each(|(at, rid)| parts.enter(*at, *rid)),
                false => parts.sealed.push(Arc::new(Sealed::List(points))),
            }
        });
    }

    /// Takes an entry out, if `may_go` says so, which is asked while no other thread can insert it.
    pub fn remove_if(&self, at: [i64; D], rid: Rid, may_go: impl FnOnce() -> bool) {
        self.exclusive(|parts| {
            if !may_go() {
                return;
            }
            while parts.fresh.remove(&point(at), rid) {}
            if parts.image.is_some() || !parts.sealed.is_empty() {
                match &mut parts.gone_since {
                    Some(gone) => gone.insert((at, rid.word())),
                    None => Arc::make_mut(&mut parts.gone).insert((at, rid.word())),
                };
            }
        });
    }

    /// The entries in a window, edges included, each once, in the order of their records. An entry that is there during the whole
    /// search is found; one that comes or goes meanwhile may be.
    pub fn search(&self, window: &Bounds<i64, D>) -> Vec<([i64; D], Rid)> {
        self.shared(|parts| {
            let mut found = Vec::new();
            parts.image.iter().for_each(|image| image.collect(window, &mut found));
            parts.sealed.iter().for_each(|sealed| sealed.collect(window, &mut found));
            if parts.has_gone() {
                found.retain(|(at, rid)| !parts.is_gone(*at, *rid));
            }
            collect(&parts.fresh, window, &mut found);
            sort(&mut found);
            found
        })
    }

    /// What windows find in the image that there is now, which may be on a device; `None` if it is better looked for elsewhere. Nothing
    /// is locked meanwhile.
    fn search_image(
        &self,
        windows: &[Bounds<i64, D>],
        device: &dyn SearchDevice,
    ) -> Option<(Arc<BitwiseColumns<D>>, Matches)> {
        let image = self.shared(|parts| parts.image.clone())?;
        let is_large = image.len() >= POINTS_MIN && windows.len() >= WINDOWS_MIN;
        if !device.is_forced() && !is_large || image.is_empty() {
            return None;
        }
        let there = device.bring_points(&image.for_device()).ok()?;
        if device.is_forced() {
            let matches = image.search_beside(windows, &*there).ok()?;
            return Some((image, matches));
        }
        let mut pairs = Vec::new();
        self.scheduler.run(windows.len(), image.len(), |way, part| {
            let (windows, start) = (&windows[part.clone()], part.start);
            let found = if way == 1 { image.search_beside(windows, &*there).ok() } else { None };
            let found = found.unwrap_or_else(|| image.search_batch(windows, &Cpu::default()));
            for window in 0..windows.len() {
                pairs.extend(found.of_query(window).iter().map(|rid| ((start + window) as u32, *rid)));
            }
            found.len()
        });
        let matches = Matches::of(windows.len(), &pairs);
        Some((image, matches))
    }

    /// Gives the records in each of some windows, edges included, to `take`, with the window's place: all windows go through the image
    /// together, on a device if there is one and it is the faster way. A record may come several times.
    pub fn search_batch(
        &self,
        windows: &[Bounds<i64, D>],
        device: Option<&dyn SearchDevice>,
        mut take: impl FnMut(usize, Rid),
    ) {
        let there = device.and_then(|device| self.search_image(windows, device));
        self.shared(|parts| {
            let marks = parts.gone.iter().chain(parts.gone_since.iter().flatten());
            let marked: HashSet<u64> = marks.map(|(_, rid)| *rid).collect();
            // Of a record that is marked, it depends on the place whether the mark is meant.
            let mut unsure = vec![false; windows.len()];
            let mut take_unmarked = |window: usize, rid: Rid| match marked.contains(&rid.word()) {
                true => unsure[window] = true,
                false => take(window, rid),
            };
            if let Some(image) = &parts.image {
                // Another one may have taken the place of that which was searched.
                let found = match there {
                    Some((of, found)) if Arc::ptr_eq(&of, image) => found,
                    _ => image.search_batch(windows, &Cpu::default()),
                };
                for window in 0..windows.len() {
                    found.of_query(window).iter().for_each(|rid| take_unmarked(window, *rid));
                }
            }
            for sealed in &parts.sealed {
                sealed.search_batch(windows, &mut take_unmarked);
            }
            batch(&parts.fresh, windows, &mut take);
            for (place, window) in windows.iter().enumerate().filter(|(place, _)| unsure[*place]) {
                let mut found = Vec::new();
                parts.image.iter().for_each(|image| image.collect(window, &mut found));
                parts.sealed.iter().for_each(|sealed| sealed.collect(window, &mut found));
                found.retain(|(at, rid)| marked.contains(&rid.word()) && !parts.is_gone(*at, *rid));
                found.into_iter().for_each(|(_, rid)| take(place, rid));
            }
        });
    }

    /// About how many entries are in a window, `limit` at most: those that the bits in the budget do not tell apart are counted as
    /// in it.
    pub fn estimate(&self, window: &Bounds<i64, D>, limit: usize) -> usize {
        self.shared(|parts| {
            let mut count = parts.image.as_ref().map_or(0, |image| image.count_at_most(window));
            let mut found = Vec::new();
            parts.sealed.iter().for_each(|sealed| sealed.collect(window, &mut found));
            count += found.len();
            if count >= limit {
                return limit;
            }
            let _end = parts.fresh.search(&BoundsQuery::within(*window), |_| {
                count += 1;
                if count < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            count.min(limit)
        })
    }

    /// Whether so much stands beside the image that a new one pays.
    pub fn is_due(&self) -> bool {
        self.shared(|parts| {
            let beside =
                parts.fresh.len() + parts.mark_count() + parts.sealed.iter().map(|sealed| sealed.len()).sum::<usize>();
            let imaged = parts.image.as_ref().map_or(0, |image| image.len());
            parts.gone_since.is_none() && beside > BESIDE_MIN.max(imaged / BESIDE_SHARE)
        })
    }

    /// Builds an image of all entries that are there now, while other threads go on; nothing happens where one is being built, or
    /// where nothing stands beside the image. If the budget has no room for it, the image takes the least that it can where
    /// `may_exceed` says so.
    ///
    /// # Errors
    /// [`BitwiseError`] if the budget is too small, or there are too many entries: all is as it was, and found.
    pub fn build(&self, may_exceed: bool) -> Result<(), BitwiseError> {
        let begun = self.exclusive(|parts| {
            let is_whole = parts.sealed.is_empty() && parts.gone.is_empty() && parts.fresh.is_empty();
            if parts.gone_since.is_some() || is_whole && parts.image.is_some() {
                return None;
            }
            if !parts.fresh.is_empty() {
                let fresh = std::mem::take(&mut parts.fresh);
                parts.sealed.push(Arc::new(Sealed::Tree(fresh)));
            }
            parts.gone_since = Some(HashSet::new());
            Some((parts.image.clone(), parts.sealed.clone(), parts.gone.clone()))
        });
        let Some((image, sealed, gone)) = begun else { return Ok(()) };
        let whole = whole();
        let mut points = Vec::with_capacity(image.as_ref().map_or(0, |image| image.len()));
        image.iter().for_each(|image| image.collect(&whole, &mut points));
        sealed.iter().for_each(|sealed| sealed.collect(&whole, &mut points));
        if !gone.is_empty() {
            points.retain(|(at, rid)| !gone.contains(&(*at, rid.word())));
        }
        sort(&mut points);
        let built = self.distribute(&points, may_exceed);
        self.exclusive(|parts| {
            let since = parts.gone_since.take().unwrap_or_default();
            match built {
                Ok(image) => {
                    parts.image = Some(Arc::new(image));
                    parts.sealed.clear();
                    parts.gone = Arc::new(since);
                    Ok(())
                }
                Err(error) => {
                    Arc::make_mut(&mut parts.gone).extend(since);
                    Err(error)
                }
            }
        })
    }

    fn distribute(&self, points: &[Point<D>], may_exceed: bool) -> Result<BitwiseColumns<D>, BitwiseError> {
        let columns: [Vec<i64>; D] = std::array::from_fn(|column| points.iter().map(|(at, _)| at[column]).collect());
        let columns = columns.each_ref().map(|column| column.as_slice());
        let rids: Vec<Rid> = points.iter().map(|(_, rid)| *rid).collect();
        match BitwiseColumns::new(columns, &rids, self.budget_bytes) {
            Err(BitwiseError::Budget { least_bytes, .. }) if may_exceed => {
                BitwiseColumns::new(columns, &rids, usize::try_from(least_bytes).unwrap_or(usize::MAX))
            }
            other => other,
        }
    }

    /// All entries, each once, in the order of their records.
    pub fn all(&self) -> Vec<([i64; D], Rid)> {
        self.search(&whole())
    }

    /// How many entries the image has, those that are marked as gone included.
    pub fn imaged(&self) -> usize {
        self.shared(|parts| parts.image.as_ref().map_or(0, |image| image.len()))
    }

    /// The memory of all parts, in bytes.
    pub fn bytes(&self) -> usize {
        self.shared(|parts| {
            let image = parts.image.as_ref().map_or(0, |image| image.image().memory() + image.memory_apart());
            let sealed: usize = parts.sealed.iter().map(|sealed| sealed.bytes()).sum();
            image + sealed + parts.fresh.memory().0 + parts.mark_count() * size_of::<([i64; D], u64)>() * 2
        })
    }
}
