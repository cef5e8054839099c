//! The ranges of a table side by side, for reads and writes by key: a range is found by one load.
use std::ptr::NonNull;

use sync::{EpochCell, Guard};
use types::Rid;

use crate::record::point::Point;
use crate::record::range::Range;

/// Where the ranges of a table are, by their numbers.
pub(super) struct Places(EpochCell<Box<[RangePointer]>>);

#[derive(Clone, Copy)]
struct RangePointer(NonNull<Range>);

// SAFETY: it is no more than a shared reference to a range, which threads share.
unsafe impl Send for RangePointer {}
// SAFETY: as above.
unsafe impl Sync for RangePointer {}

impl Places {
    pub(super) fn new() -> Places {
        Places(EpochCell::new(Box::default()))
    }

    /// Adds the next range of the table, one thread at a time.
    ///
    /// # Safety
    /// The range stays where it is as long as the table.
    pub(super) unsafe fn add(&self, range: &Range) {
        let guard = sync::pin();
        let known = self.0.load(&guard);
        let places = known.iter().copied().chain([RangePointer(NonNull::from(range))]).collect();
        self.0.replace(places, &guard);
    }
}

/// The records of a table, for a caller that has pinned the epoch.
#[derive(Clone, Copy)]
pub struct Points<'g> {
    all: &'g Places,
    guard: &'g Guard,
    known: &'g [RangePointer],
}

impl<'g> Points<'g> {
    /// Those of the ranges that there are now.
    #[inline]
    pub(super) fn of(all: &'g Places, guard: &'g Guard) -> Points<'g> {
        Points { all, guard, known: all.0.load(guard) }
    }

    /// Where a record is.
    ///
    /// # Panics
    /// If the Rid is another table's.
    #[inline]
    pub fn at(self, rid: Rid) -> Point<'g> {
        let place = match self.known.get(rid.range()) {
            Some(place) => place,
            None => Points::added_since(self.all, self.guard, rid),
        };
        // SAFETY: `Places::add` was promised that the range stays as long as the table, of which `all` was borrowed.
        Point::new(unsafe { place.0.as_ref() }, rid)
    }

    /// The place of a range that was added after the others were looked at; a Rid is known only once its range is here.
    #[cold]
    fn added_since(all: &'g Places, guard: &'g Guard, rid: Rid) -> &'g RangePointer {
        all.0.load(guard).get(rid.range()).expect("a Rid names a range of its table")
    }
}
