//! The ranges of a table side by side, for reads and writes by key: a range is found by one load.
use std::ptr;

use sync::atomic::{AtomicPtr, Ordering};
use sync::{EpochCell, Guard};
use types::Rid;

use crate::record::point::Point;
use crate::record::range::Range;
use crate::table::Table;

/// Where the ranges of a table are, by their numbers.
pub(super) struct Places(EpochCell<Box<[Place]>>);

/// Where a range is; null while it has its past not yet.
struct Place(AtomicPtr<Range>);

impl Places {
    pub(super) fn new() -> Places {
        Places(EpochCell::new(Box::default()))
    }

    /// Adds the next range of the table. One thread at a time changes places.
    ///
    /// # Safety
    /// The range stays where it is as long as the table.
    pub(super) unsafe fn add(&self, range: &Range) {
        let guard = sync::pin();
        let known = self.0.load(&guard).iter().map(|place| place.0.load(Ordering::Acquire));
        let places = known.chain([ptr::from_ref(range).cast_mut()]).map(|place| Place(AtomicPtr::new(place)));
        self.0.replace(places.collect(), &guard);
    }

    /// Takes a range away, whose past is put off.
    pub(super) fn hide(&self, index: usize) {
        self.put(index, ptr::null_mut());
    }

    /// Puts a range back that has its past now.
    ///
    /// # Safety
    /// As of [`add`](Self::add).
    pub(super) unsafe fn show(&self, index: usize, range: &Range) {
        self.put(index, ptr::from_ref(range).cast_mut());
    }

    fn put(&self, index: usize, place: *mut Range) {
        // A reader that sees the place sees what was written to the range before.
        self.0.load(&sync::pin())[index].0.store(place, Ordering::Release);
    }
}

/// The records of a table, for a caller that has pinned the epoch.
#[derive(Clone, Copy)]
pub struct Points<'g> {
    table: &'g Table,
    known: &'g [Place],
}

impl<'g> Points<'g> {
    /// Those of the ranges that there are now.
    #[inline]
    pub(super) fn of(table: &'g Table, guard: &'g Guard) -> Points<'g> {
        Points { table, known: table.places.0.load(guard) }
    }

    /// Where a record is.
    ///
    /// # Panics
    /// If the Rid is another table's.
    #[inline]
    pub fn at(self, rid: Rid) -> Point<'g> {
        let place = self.known.get(rid.range()).map_or(ptr::null_mut(), |place| place.0.load(Ordering::Acquire));
        // SAFETY: null, or `Places` was promised that the range stays as long as the table, which is borrowed.
        match unsafe { place.as_ref() } {
            Some(range) => Point::new(range, rid),
            None => Points::used_first(self.table, rid),
        }
    }

    /// A record of a range that was added after the others were looked at, or is brought its past by this.
    #[cold]
    fn used_first(table: &'g Table, rid: Rid) -> Point<'g> {
        Point::new(table.range(rid.range()), rid)
    }
}
