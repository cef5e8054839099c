//! The entries of an index that is asked for parts of space.
//!
//! | method | keys | structure |
//! |---|---|---|
//! | `bwd` | one or two whole numbers | columns distributed by bits, and beside them what is newer |
//! | `gist` | the extents of one or several parts | a search tree of boxes |
//!
//! Keys that have no place in space, as they have a NULL or an empty range, stand in a tree of their own, in their order.
use index::{BPlusTree, BitwiseError, BitwiseIndex, Bounds, Bytes, Change, KeyBytes, SearchDevice};
use types::Rid;

use super::box_entries::{BoxEntries, boxes};
use super::definition::{IndexDefinition, IndexMethod};
use super::extents::{Ends, key_of_ends};
use super::order::{IndexKey, KeyShape};
use super::space::{Coordinates, Window, beside_space, coordinates, ends_of, key_of};

/// An entry.
type Entry = (IndexKey, Rid);

/// What is searched first in an index of distributed columns takes so many bytes, where nothing else is said.
const BUDGET_BYTES: u64 = 64 << 20;

enum Placed {
    Line(BitwiseIndex<1>),
    Plane(BitwiseIndex<2>),
    Boxes(Box<dyn BoxEntries>),
}

/// Where a key stands.
enum Place {
    Point(Coordinates),
    Box(Ends, Ends),
    Beside,
}

/// See the module.
pub(crate) struct SpaceEntries {
    placed: Placed,
    others: BPlusTree<(Bytes, Rid), ()>,
}

/// The bytes of a key that has no place in space.
fn bytes_of(key: &IndexKey) -> &[u8] {
    match key {
        IndexKey::Bytes(bytes) => bytes,
        IndexKey::Null => &[],
        IndexKey::Word(_) => unreachable!("{key:?} has a place in space"),
    }
}

fn key_of_bytes(bytes: KeyBytes) -> IndexKey {
    if bytes.is_empty() { IndexKey::Null } else { IndexKey::Bytes(bytes) }
}

/// The window of one point.
fn at_point<const D: usize>(at: [i64; D]) -> Bounds<i64, D> {
    Bounds::point(at).expect("whole numbers are numbers")
}

fn corners<const D: usize>(low: &Coordinates, high: &Coordinates) -> Bounds<i64, D> {
    Bounds::from_slices(low, high).expect("a window has two ends in order for each column")
}

/// Passes on the keys of points with their records.
fn by_key<const D: usize>(mut points: Vec<([i64; D], Rid)>, visit: &mut dyn FnMut(&IndexKey, &[Rid])) {
    points.sort_unstable_by_key(|(at, rid)| (*at, rid.word()));
    for listed in points.chunk_by(|left, right| left.0 == right.0) {
        visit(&key_of(&listed[0].0), &listed.iter().map(|(_, rid)| *rid).collect::<Vec<_>>());
    }
}

fn key_of_box(low: &Ends, high: &Ends) -> IndexKey {
    IndexKey::Bytes(key_of_ends(low, high))
}

/// Passes on the keys of boxes with their records.
fn by_box(boxes: &dyn BoxEntries, visit: &mut dyn FnMut(&IndexKey, &[Rid])) {
    let whole = |end: f64| Ends::from_elem(end, boxes.dimensions());
    let all = boxes.overlapping((&whole(f64::NEG_INFINITY), &whole(f64::INFINITY)));
    let mut all: Vec<Entry> = all.into_iter().map(|(low, high, rid)| (key_of_box(&low, &high), rid)).collect();
    all.sort_unstable();
    for listed in all.chunk_by(|left, right| left.0 == right.0) {
        visit(&listed[0].0, &listed.iter().map(|(_, rid)| *rid).collect::<Vec<_>>());
    }
}

fn keyed<const D: usize>(points: Vec<([i64; D], Rid)>) -> impl Iterator<Item = Entry> {
    points.into_iter().map(|(at, rid)| (key_of(&at), rid))
}

/// Appends what windows find among points, each with the number of its window.
fn points_batch<const D: usize>(
    points: &BitwiseIndex<D>,
    windows: &[(u32, Window)],
    device: Option<&dyn SearchDevice>,
    out: &mut Vec<(u32, Rid)>,
) {
    let corners = windows.iter().filter_map(|(at, window)| match window {
        Window::Points { low, high, .. } => Some((*at, corners::<D>(low, high))),
        Window::Extents { .. } => None,
    });
    let (places, corners): (Vec<u32>, Vec<_>) = corners.unzip();
    points.search_batch(&corners, device, |query, rid| out.push((places[query], rid)));
}

impl SpaceEntries {
    pub(super) fn new(definition: &IndexDefinition, shape: &KeyShape) -> SpaceEntries {
        let budget_bytes = usize::try_from(definition.budget_bytes.unwrap_or(BUDGET_BYTES)).unwrap_or(usize::MAX);
        let placed = match definition.parts.len() {
            _ if definition.method == IndexMethod::Gist => Placed::Boxes(boxes(shape.dimensions())),
            1 => Placed::Line(BitwiseIndex::new(budget_bytes)),
            _ => Placed::Plane(BitwiseIndex::new(budget_bytes)),
        };
        SpaceEntries { placed, others: BPlusTree::new() }
    }

    fn place(&self, key: &IndexKey) -> Place {
        match &self.placed {
            Placed::Boxes(boxes) => {
                ends_of(key, boxes.dimensions()).map_or(Place::Beside, |(low, high)| Place::Box(low, high))
            }
            Placed::Line(_) | Placed::Plane(_) => coordinates(key).map_or(Place::Beside, Place::Point),
        }
    }

    pub(super) fn insert(&self, key: &IndexKey, rid: Rid) {
        match (&self.placed, self.place(key)) {
            (Placed::Line(line), Place::Point(at)) => line.insert([at[0]], rid),
            (Placed::Plane(plane), Place::Point(at)) => plane.insert([at[0], at[1]], rid),
            (Placed::Boxes(boxes), Place::Box(low, high)) => boxes.insert((&low, &high), rid),
            _ => drop(self.others.insert((bytes_of(key), rid), ())),
        }
    }

    pub(super) fn remove_if(&self, key: &IndexKey, rid: Rid, may_go: impl FnOnce() -> bool) {
        match (&self.placed, self.place(key)) {
            (Placed::Line(line), Place::Point(at)) => line.remove_if([at[0]], rid, may_go),
            (Placed::Plane(plane), Place::Point(at)) => plane.remove_if([at[0], at[1]], rid, may_go),
            (Placed::Boxes(boxes), Place::Box(low, high)) => boxes.remove_if((&low, &high), rid, Box::new(may_go)),
            _ => {
                let decide = |found: Option<()>| match found {
                    Some(()) if may_go() => Change::Remove,
                    _ => Change::Keep,
                };
                let _entry = self.others.change((bytes_of(key), rid), decide);
            }
        }
    }

    /// The records that are known under a key.
    pub(super) fn rids(&self, key: &IndexKey) -> Vec<Rid> {
        fn rids<const D: usize>(points: Vec<([i64; D], Rid)>) -> Vec<Rid> {
            points.into_iter().map(|(_, rid)| rid).collect()
        }
        match (&self.placed, self.place(key)) {
            (Placed::Line(line), Place::Point(at)) => rids(line.search(&at_point([at[0]]))),
            (Placed::Plane(plane), Place::Point(at)) => rids(plane.search(&at_point([at[0], at[1]]))),
            (Placed::Boxes(boxes), Place::Box(low, high)) => boxes.equal((&low, &high)),
            _ => {
                let mut rids = Vec::new();
                let _: Option<()> = self.others.find(bytes_of(key), |rid| {
                    rids.push(rid);
                    None
                });
                rids
            }
        }
    }

    /// Passes on every key with its records, while nobody writes.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&IndexKey, &[Rid])) {
        match &self.placed {
            Placed::Line(line) => by_key(line.all(), visit),
            Placed::Plane(plane) => by_key(plane.all(), visit),
            Placed::Boxes(boxes) => by_box(&**boxes, visit),
        }
        let others: Vec<(KeyBytes, Rid)> = self.others.range(..).map(|(other, ())| other).collect();
        for listed in others.chunk_by(|left, right| left.0 == right.0) {
            let rids: Vec<Rid> = listed.iter().map(|(_, rid)| *rid).collect();
            visit(&key_of_bytes(listed[0].0.clone()), &rids);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.others.bytes()
            + match &self.placed {
                Placed::Line(line) => line.bytes(),
                Placed::Plane(plane) => plane.bytes(),
                Placed::Boxes(boxes) => boxes.bytes(),
            }
    }

    /// Appends the entries in a window.
    pub(crate) fn search(&self, window: &Window, out: &mut Vec<Entry>) {
        let start = out.len();
        match (&self.placed, window) {
            (Placed::Line(line), Window::Points { low, high, .. }) => {
                out.extend(keyed(line.search(&corners(low, high))));
            }
            (Placed::Plane(plane), Window::Points { low, high, .. }) => {
                out.extend(keyed(plane.search(&corners(low, high))));
            }
            (Placed::Boxes(boxes), Window::Extents { low, high, .. }) => {
                let found = boxes.overlapping((low, high)).into_iter();
                out.extend(found.map(|(low, high, rid)| (key_of_box(&low, &high), rid)));
            }
            _ => debug_assert!(false, "{window:?} is for an index of another method"),
        }
        self.others_in(window, usize::MAX, |other| out.push(other));
        debug_assert!(
            out[start..].iter().all(|(key, _)| window.contains(key)),
            "invariant 7: an entry is outside of {window:?}"
        );
    }

    /// Appends the records of entries in some windows, each with the number of its window; a record that has changed may come several
    /// times, or be outside of its window by now, or on a device have been.
    pub(crate) fn search_batch(
        &self,
        windows: &[(u32, Window)],
        device: Option<&dyn SearchDevice>,
        out: &mut Vec<(u32, Rid)>,
    ) {
        match &self.placed {
            Placed::Line(line) => points_batch(line, windows, device, out),
            Placed::Plane(plane) => points_batch(plane, windows, device, out),
            Placed::Boxes(boxes) => {
                let ends = windows.iter().filter_map(|(at, window)| match window {
                    Window::Extents { low, high, .. } => Some((*at, (&low[..], &high[..]))),
                    Window::Points { .. } => None,
                });
                let (places, ends): (Vec<u32>, Vec<_>) = ends.unzip();
                boxes.overlapping_batch(&ends, device, &mut |query, rid| out.push((places[query], rid)));
            }
        }
        for (at, window) in windows {
            self.others_in(window, usize::MAX, |(_, rid)| out.push((*at, rid)));
        }
    }

    /// The entries with extents that are at least so far from a point, the nearest first, with their distances: `count`, if there are as
    /// many. Only an index of boxes has any.
    pub(crate) fn nearest(&self, point: &[f64], from: f64, count: usize) -> Vec<(f64, Entry)> {
        let Placed::Boxes(boxes) = &self.placed else { return Vec::new() };
        let found = boxes.nearest(point, from, count).into_iter();
        found.map(|(distance, (low, high, rid))| (distance, (key_of_box(&low, &high), rid))).collect()
    }

    /// The entries of keys that have no place in space.
    pub(crate) fn without_place(&self) -> Vec<Entry> {
        self.others.range(..).map(|((bytes, rid), ())| (key_of_bytes(bytes), rid)).collect()
    }

    /// About how many entries are in a window, `limit` at most.
    pub(crate) fn estimate(&self, window: &Window, limit: usize) -> usize {
        let mut count = match (&self.placed, window) {
            (Placed::Line(line), Window::Points { low, high, .. }) => line.estimate(&corners(low, high), limit),
            (Placed::Plane(plane), Window::Points { low, high, .. }) => plane.estimate(&corners(low, high), limit),
            (Placed::Boxes(boxes), Window::Extents { low, high, .. }) => boxes.count((low, high), limit),
            _ => limit,
        };
        self.others_in(window, limit - count, |_| count += 1);
        count
    }

    /// Passes on the entries in a window whose keys have a NULL, `limit` at most.
    fn others_in(&self, window: &Window, limit: usize, take: impl FnMut(Entry)) {
        let (first, last) = (Rid::from_word(0), Rid::from_word(u64::MAX));
        let places = beside_space(window);
        let within = places.iter().flat_map(|(low, high)| self.others.range((&low[..], first)..=(&high[..], last)));
        within.take(limit).map(|((bytes, rid), ())| (key_of_bytes(bytes), rid)).for_each(take);
    }

    /// Adds many entries of versions that are kept until [`settle`](Self::settle) has run: some are not found before. What is
    /// distributed by bits is found at once, and costs searches less once [`bring_forward`](Self::bring_forward) has run.
    pub(crate) fn load(&self, entries: &[Entry]) {
        let (mut points, mut boxes) = (Vec::<(Coordinates, Rid)>::new(), Vec::new());
        for (key, rid) in entries {
            match self.place(key) {
                Place::Point(at) => points.push((at, *rid)),
                Place::Box(low, high) => boxes.push((low, high, *rid)),
                Place::Beside => self.insert(key, *rid),
            }
        }
        debug_assert!(points.is_empty() || boxes.is_empty(), "invariant 7: entries of two kinds are in one index");
        match &self.placed {
            Placed::Line(line) => line.load(points.into_iter().map(|(at, rid)| ([at[0]], rid)).collect()),
            Placed::Plane(plane) => plane.load(points.into_iter().map(|(at, rid)| ([at[0], at[1]], rid)).collect()),
            Placed::Boxes(tree) => tree.collect(&boxes),
        }
    }

    /// Has all that was loaded found, while others read and write.
    pub(crate) fn settle(&self) {
        match &self.placed {
            Placed::Boxes(boxes) => boxes.settle(),
            Placed::Line(_) | Placed::Plane(_) => {}
        }
    }

    /// Whether so much is newer than the image that [`bring_forward`](Self::bring_forward) pays.
    pub(crate) fn is_behind(&self) -> bool {
        match &self.placed {
            Placed::Line(line) => line.is_due(),
            Placed::Plane(plane) => plane.is_due(),
            Placed::Boxes(_) => false,
        }
    }

    /// Takes what is newer than the image of distributed columns into a new one, while others read and write. Where the budget
    /// has no room for it, it takes the least that it can, if `may_exceed` says so.
    ///
    /// # Errors
    /// Why there can be no image of the entries: all is as it was, and found.
    pub(crate) fn bring_forward(&self, may_exceed: bool) -> Result<(), BitwiseError> {
        match &self.placed {
            Placed::Line(line) => line.build(may_exceed),
            Placed::Plane(plane) => plane.build(may_exceed),
            Placed::Boxes(_) => Ok(()),
        }
    }
}
