//! Cycles of a workload, timed: the beginning of a snapshot, the updates until the next one, and its end just before that. Between cycles
//! there is no snapshot, so that arrays of several candidates do not take mappings and memory from each other.
use std::time::{Duration, Instant};

use crate::array::SnapshotArray;
use crate::choosing::distribution::{Distribution, Updates};
use crate::error::SnapshotError;
use crate::options::Options;

/// A workload of the paper with snapshots by the number of updates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    /// The size of the array, of 64-bit items.
    pub size_bytes: usize,
    /// How updates are spread.
    pub distribution: Distribution,
    /// The updates between two snapshots: F_s.
    pub updates: usize,
}

/// The times of a cycle.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cycle {
    /// The beginning of the snapshot.
    pub begin: Duration,
    /// All updates.
    pub updates: Duration,
    /// The end of the snapshot.
    pub end: Duration,
}

impl Cycle {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.begin + self.updates + self.end
    }
}

/// From here on a cycle fills the caches itself.
pub(super) const LONG_CYCLE: Duration = Duration::from_millis(4);

/// The median; zero of none.
pub(super) fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The items of a small page.
pub(crate) fn page_items() -> usize {
    crate::machine::page_bytes() / size_of::<u64>()
}

/// An array all of whose pages are memory.
///
/// # Errors
/// Where the system refuses the array.
pub(crate) fn filled(size_bytes: usize, options: &Options) -> Result<SnapshotArray<u64>, SnapshotError> {
    let array = SnapshotArray::new(size_bytes / size_of::<u64>(), options)?;
    let mut writer = array.writer();
    for index in (0..array.len()).step_by(page_items()) {
        writer.set(index, 1)?;
    }
    drop(writer);
    Ok(array)
}

impl Case {
    /// The updates of this case.
    pub fn updates(&self, seed: u64) -> Updates {
        let page_count = self.size_bytes / crate::machine::page_bytes();
        Updates::new(self.distribution, page_count, page_items(), seed)
    }

    /// An array of this case, made with `options`, whose cycles are to be run.
    ///
    /// # Errors
    /// Where the system refuses the array.
    pub fn start(&self, options: &Options) -> Result<Running, SnapshotError> {
        let (cycles, items) = (Cycles::new(self.size_bytes, options)?, Vec::with_capacity(self.updates));
        Ok(Running { cycles, updates: self.updates(1), items, count: self.updates })
    }
}

/// A case under way, with one writer.
#[derive(Debug)]
pub struct Running {
    cycles: Cycles,
    updates: Updates,
    /// The updates of a cycle, drawn before its clock starts.
    items: Vec<usize>,
    count: usize,
}

/// An array whose cycles are run.
#[derive(Debug)]
pub(crate) struct Cycles {
    array: SnapshotArray<u64>,
}

impl Running {
    /// Runs the next cycle. The first has memory to get.
    ///
    /// # Errors
    /// Where the system refuses a snapshot, or a page could not be kept.
    pub fn cycle(&mut self) -> Result<Cycle, SnapshotError> {
        self.items.clear();
        self.items.extend(self.updates.by_ref().take(self.count));
        self.cycles.run(&self.items)
    }
}

impl Cycles {
    /// An array all of whose pages are memory, without a snapshot.
    pub(crate) fn new(size_bytes: usize, options: &Options) -> Result<Cycles, SnapshotError> {
        Ok(Cycles { array: filled(size_bytes, options)? })
    }

    /// Runs a cycle with updates of these items, which lie in the array.
    pub(crate) fn run(&mut self, items: &[usize]) -> Result<Cycle, SnapshotError> {
        let mut writer = self.array.writer();
        let (mut cycle, start) = (Cycle::default(), Instant::now());
        let snapshot = self.array.snapshot()?;
        cycle.begin = start.elapsed();
        let start = Instant::now();
        for item in items {
            writer.add(*item, 1)?;
        }
        cycle.updates = start.elapsed();
        let start = Instant::now();
        drop(snapshot);
        cycle.end = start.elapsed();
        Ok(cycle)
    }
}
