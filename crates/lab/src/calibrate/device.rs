//! What the device and memory take for a page: the four patterns of the cost model on a file, past the system's cache where that is
//! allowed, and the same pages in memory.
//!
//! ```text
//!              in order                      anywhere
//! write        page 0, 1, 2, ...             pages of a random order, each on its own
//! read         page 0, 1, 2, ...             pages of another random order
//! memory       sums of neighbouring pages    sums of pages in a random order; a chain of words, each at the place the last one says
//! ```
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use costs::{Coefficient, Coefficients, Random};
use foldhash::fast::FixedState;

/// Pages as the cost model has them.
const PAGE: usize = 8192;
/// What a direct access has to be aligned to, on any device.
const ALIGNMENT: usize = 4096;
/// A pattern is measured for so long at most.
const PATTERN_MAX: Duration = Duration::from_secs(3);
/// Entries of the table in which keys are looked up: more than the caches near a core keep.
const KEYS: u64 = 1 << 18;

/// What was measured, in microseconds a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// read in order
    pub sequential_read_us: f64,
    /// read anywhere
    pub random_read_us: f64,
    /// written in order
    pub sequential_write_us: f64,
    /// written anywhere
    pub random_write_us: f64,
    /// read in order in memory
    pub sequential_memory_us: f64,
    /// read anywhere in memory
    pub random_memory_us: f64,
    /// a word whose place the word before tells, in nanoseconds
    pub latency_ns: f64,
    /// a key looked up in a hash table, in nanoseconds
    pub lookup_ns: f64,
    /// whether the file was read and written past the system's cache
    pub is_direct: bool,
}

impl Device {
    /// The coefficients that follow: a page read in order costs 1. Of the processor's, one lookup is an operator, and the others are to
    /// it as they are by default.
    pub fn coefficients(&self) -> Coefficients {
        let (default, page) = (Coefficients::default(), self.sequential_read_us);
        let operator = self.lookup_ns / 1_000.0 / page;
        let scaled = |of| default.get(of) / default.get(Coefficient::Operator) * operator;
        default
            .with(Coefficient::SequentialRead, 1.0)
            .with(Coefficient::RandomRead, self.random_read_us / page)
            .with(Coefficient::SequentialWrite, self.sequential_write_us / page)
            .with(Coefficient::RandomWrite, self.random_write_us / page)
            .with(Coefficient::SequentialMemory, self.sequential_memory_us / page)
            .with(Coefficient::RandomMemory, self.random_memory_us / page)
            .with(Coefficient::Tuple, scaled(Coefficient::Tuple))
            .with(Coefficient::IndexTuple, scaled(Coefficient::IndexTuple))
            .with(Coefficient::Operator, operator)
    }

    /// Measures the device of a folder by a file of so many pages, and memory. The file has no name while it is in use, so that nothing
    /// is left of it, whatever ends the process.
    ///
    /// # Errors
    /// If the file can't be made, written or read.
    pub fn measure(folder: &Path, pages: usize, seed: u64) -> io::Result<Device> {
        let (file, is_direct) = open(folder)?;
        let mut random = Random::new(seed);
        let mut space = vec![0u8; PAGE + ALIGNMENT];
        let aligned = space.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let page = &mut space[aligned..aligned + PAGE];
        // A device may have a short way for zeros.
        page.iter_mut().for_each(|byte| *byte = random.next_u64().to_le_bytes()[0]);
        let in_order: Vec<usize> = (0..pages).collect();
        let mut anywhere = || shuffled(pages, &mut random);
        let write = |order: &[usize], page: &[u8]| {
            timed(order, |at| file.write_all_at(page, (at * PAGE) as u64), || file.sync_data())
        };
        let sequential_write_us = write(&in_order, page)?;
        let random_write_us = write(&anywhere(), page)?;
        let mut read = |order: &[usize]| timed(order, |at| file.read_exact_at(page, (at * PAGE) as u64), || Ok(()));
        let (random_order, memory_order) = (anywhere(), anywhere());
        let sequential_read_us = read(&in_order)?;
        let random_read_us = read(&random_order)?;
        let words: Vec<u64> = (0..pages * PAGE / 8).map(|at| at as u64).collect();
        let sum = |at: usize| {
            let first = at * PAGE / 8;
            black_box(words[first..first + PAGE / 8].iter().copied().fold(0, u64::wrapping_add));
            Ok(())
        };
        let sequential_memory_us = timed(&in_order, sum, || Ok(()))?;
        let random_memory_us = timed(&memory_order, sum, || Ok(()))?;
        Ok(Device {
            sequential_read_us,
            random_read_us,
            sequential_write_us,
            random_write_us,
            sequential_memory_us,
            random_memory_us,
            latency_ns: latency_ns(&mut random),
            lookup_ns: lookup_ns(&mut random),
            is_direct,
        })
    }
}

/// A new file without a name, past the system's cache, or through it where the file system does not allow that.
fn open(folder: &Path) -> io::Result<(File, bool)> {
    let path = folder.join(format!("lstore-calibrate-{}", std::process::id()));
    let made = |flags: i32| {
        match OpenOptions::new().read(true).write(true).create_new(true).custom_flags(flags).open(&path) {
            Ok(file) => fs::remove_file(&path).map(|()| file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            Err(error) => {
                // A file system that does not know the flag may have made the file before it says so.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    };
    match made(libc::O_DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(_) => Ok((made(0)?, false)),
    }
}

fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        order.swap(at, (random.next_u64() % (at as u64 + 1)) as usize);
    }
    order
}

/// Microseconds a page, until all are done or the time is over.
fn timed(
    order: &[usize],
    mut access: impl FnMut(usize) -> io::Result<()>,
    end: impl Fn() -> io::Result<()>,
) -> io::Result<f64> {
    let start = Instant::now();
    let mut count = 0usize;
    for at in order {
        access(*at)?;
        count += 1;
        if count.is_multiple_of(64) && start.elapsed() > PATTERN_MAX {
            break;
        }
    }
    end()?;
    // A clock that stands still has seen less than its step.
    Ok((start.elapsed().as_secs_f64() * 1e6 / count.max(1) as f64).max(1e-6))
}

fn latency_ns(random: &mut Random) -> f64 {
    let order = shuffled(1 << 20, random);
    let mut next = vec![0usize; order.len()];
    order.iter().zip(order.iter().cycle().skip(1)).for_each(|(from, to)| next[*from] = *to);
    let (start, steps, mut at) = (Instant::now(), 1 << 20, 0);
    for _ in 0..steps {
        at = next[at];
    }
    black_box(at);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(steps)
}

fn lookup_ns(random: &mut Random) -> f64 {
    let table: HashMap<u64, u64, FixedState> = (0..KEYS).map(|key| (key, key)).collect();
    let asked: Vec<u64> = (0..KEYS).map(|_| random.next_u64() % KEYS).collect();
    let start = Instant::now();
    black_box(asked.iter().filter_map(|key| table.get(key)).copied().fold(0, u64::wrapping_add));
    start.elapsed().as_secs_f64() * 1e9 / KEYS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_are_measured_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let device = Device::measure(folder.path(), 16, 1).unwrap();
        let coefficients = device.coefficients();
        assert!(Coefficient::ALL.into_iter().all(|of| coefficients.get(of) > 0.0), "{device:?}");
        assert_eq!(coefficients.get(Coefficient::SequentialRead), 1.0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Device::measure(&folder.path().join("none"), 16, 1).is_err());
    }

    #[test]
    fn the_file_has_no_name_while_it_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = open(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_random_order_has_each_page_once() {
        let mut order = shuffled(100, &mut Random::new(2));
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
