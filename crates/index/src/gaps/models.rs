//! The protocol of gaps under shuttle: a writer that gives an entry a use again, a reader that notes a gap, one that steps over it.
use std::ops::Bound;

use sync::atomic::{AtomicU64, Ordering};
use types::Timestamp;

use super::Gaps;
use crate::explore::{explore, together};

/// The index has entries 1, 2 and 3, none of which is of use at first. A writer gives 2 a version, enters it and commits.
#[derive(Default)]
struct Model {
    gaps: Gaps<u32>,
    /// 0 for none, 1 for one that is not committed, more for the moment of its commit
    version: AtomicU64,
    /// the newest commit
    clock: AtomicU64,
}

impl Model {
    fn write(&self) {
        self.version.store(1, Ordering::Release);
        self.gaps.entered([2].into_iter());
        let at = self.clock.load(Ordering::Acquire) + 2;
        self.version.store(at, Ordering::Release);
        self.clock.store(at, Ordering::Release);
    }

    fn note(&self) {
        let Some(announcement) = self.gaps.announce((Bound::Unbounded, Bound::Included(3))) else { return };
        match self.version.load(Ordering::Acquire) {
            0 => drop(self.gaps.confirm(announcement, Timestamp(self.clock.load(Ordering::Acquire)))),
            _ => self.gaps.withdraw(announcement),
        }
    }

    fn read(&self) {
        let at = self.clock.load(Ordering::Acquire);
        let is_stepped_over = matches!(self.gaps.above(&Bound::Unbounded, Timestamp(at)), Ok(Some(Bound::Excluded(3))));
        let version = self.version.load(Ordering::Acquire);
        assert!(!(is_stepped_over && (2..=at).contains(&version)), "a reader at {at} misses the version of {version}");
    }
}

#[test]
fn no_reader_steps_over_a_version_that_it_sees() {
    explore(2_000, || {
        let parts: [fn(&Model); 3] = [Model::write, Model::note, |model| (0..3).for_each(|_| model.read())];
        let model = together(Model::default(), parts);
        model.read();
    });
}
