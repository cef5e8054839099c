//! Counters that many threads raise and few read: each thread adds on a cache line of its own, and a reader sums up.
//!
//! ```text
//! line 0 (threads 0, n, 2n ...): | counter 0 | counter 1 | ... |     one line or more, never shared by two lines'
//! line 1 (threads 1, n+1, ...):  | counter 0 | counter 1 | ... |     threads; n = twice the cores, a power of two
//! ```
use crate::CachePadded;
use crate::atomic::{AtomicU64, Ordering};

/// `N` counters that belong together. Adding touches the thread's own line only; a sum may miss what is being added
/// at the same moment, and counts everything that happened before it.
pub struct Counters<const N: usize> {
    lines: Box<[CachePadded<[AtomicU64; N]>]>,
}

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Self::with_lines(line_count())
    }
}

impl<const N: usize> Counters<N> {
    /// Zeros, with a line for each of `lines` threads (rounded up to a power of two); further threads share.
    pub fn with_lines(lines: usize) -> Self {
        let line = |_| CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        Counters { lines: (0..lines.next_power_of_two()).map(line).collect() }
    }

    /// Adds to one of the counters.
    #[inline]
    pub fn add(&self, counter: usize, count: u64) {
        let line = crate::thread::number() & (self.lines.len() - 1);
        self.lines[line][counter].fetch_add(count, Ordering::Relaxed);
    }

    /// The sum that all threads have added to one of the counters.
    pub fn sum(&self, counter: usize) -> u64 {
        self.lines.iter().map(|line| line[counter].load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }
}

/// One counter; see [`Counters`].
#[derive(Default)]
pub struct Counter(Counters<1>);

impl Counter {
    /// A counter at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds on the line of this thread.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.add(0, count);
    }

    /// The sum that all threads have added.
    pub fn sum(&self) -> u64 {
        self.0.sum(0)
    }
}

/// How many lines a structure has that gives each thread one: twice the cores, rounded up to a power of two, so that threads
/// beside the workers seldom share a line.
#[cfg(not(any(loom, shuttle)))]
pub fn line_count() -> usize {
    static CORES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let cores = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(8, usize::from));
    (2 * cores).clamp(4, 256).next_power_of_two()
}

/// How many lines a structure has that gives each thread one. A model has few threads, and every line costs it time.
#[cfg(any(loom, shuttle))]
pub fn line_count() -> usize {
    2
}
