//! The profile of a throttled latch (figure 14): acquisitions by thread and mode, and the modes to run in.
//!
//! ```text
//! thread 0: | pass | mode 0 | mode 1 | ... | padded to whole lines |
//! thread 1: | pass | mode 0 | mode 1 | ... |
//! ```
//!
//! The pass is the answer of `getMode` and `getSocket` that a thread keeps for a number of acquisitions (section 4, "as an
//! optimization"). Threads beyond the records share one: they may then lose a count or use up a pass of the wrong
//! socket, which affects decisions only.
use sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use sync::{CachePadded, line_count};

const LINE_WORDS: usize = 16;

type Line = CachePadded<[AtomicU64; LINE_WORDS]>;

/// The answer to "which mode, and on which socket am I" with the number of acquisitions that it is still good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    pub mode: usize,
    pub socket: usize,
    pub left: u32,
}

impl Pass {
    fn to_word(self) -> u64 {
        u64::from(self.left) << 32 | (self.mode as u64) << 16 | self.socket as u64
    }

    fn from_word(word: u64) -> Self {
        let part = |shift: u32| (word >> shift) as usize & 0xffff;
        Pass { mode: part(16), socket: part(0), left: (word >> 32) as u32 }
    }
}

/// The data of one latch.
pub(super) struct Profile {
    mode_count: usize,
    thread_count: usize,
    lines_per_thread: usize,
    lines: Box<[Line]>,
    fastest_mode: AtomicUsize,
    /// How the quantum is divided: each mode with the moment of the quantum up to which it runs.
    slices: Box<[Slice]>,
}

/// A part of the quantum.
struct Slice {
    mode: AtomicUsize,
    end_ns: AtomicU64,
}

impl Profile {
    /// The profile of a latch that was never acquired, and that all may acquire.
    pub fn new(mode_count: usize) -> Self {
        let lines_per_thread = (1 + mode_count).div_ceil(LINE_WORDS);
        let line = |_| CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let all = mode_count - 1;
        let slice = |_| Slice { mode: AtomicUsize::new(all), end_ns: AtomicU64::new(u64::MAX) };
        let thread_count = line_count();
        Profile {
            mode_count,
            thread_count,
            lines_per_thread,
            lines: (0..lines_per_thread * thread_count).map(line).collect(),
            fastest_mode: AtomicUsize::new(all),
            slices: (0..mode_count).map(slice).collect(),
        }
    }

    #[inline]
    pub fn record_of_this_thread(&self) -> Record<'_> {
        // The number of lines is a power of two.
        self.record(sync::thread::number() & (self.thread_count - 1))
    }

    #[inline]
    fn record(&self, thread: usize) -> Record<'_> {
        let first = thread * self.lines_per_thread;
        Record { lines: &self.lines[first..first + self.lines_per_thread] }
    }

    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        (0..self.thread_count).map(|thread| self.record(thread))
    }

    /// Forgets all acquisitions, at the beginning of a profiling session. Not at one moment: acquisitions on the way
    /// may count, which affects decisions a little and correctness not at all (the paper's footnote 2).
    pub fn reset(&self) {
        for record in self.records() {
            (0..self.mode_count).for_each(|mode| record.mode(mode).store(0, Ordering::Relaxed));
        }
    }

    /// The acquisitions of all threads, by mode.
    pub fn acquisitions(&self) -> Vec<u64> {
        let sum = |mode| self.records().map(|record| record.mode(mode).load(Ordering::Relaxed)).sum();
        (0..self.mode_count).map(sum).collect()
    }

    pub fn fastest_mode(&self) -> usize {
        self.fastest_mode.load(Ordering::Relaxed)
    }

    /// Runs in `fastest`, and within each quantum in the modes of `slices`, up to their ends. The time after the
    /// last one belongs to the fastest mode.
    pub fn decide(&self, fastest: usize, slices: &[(usize, u64)]) {
        for (at, slice) in self.slices.iter().enumerate() {
            let (mode, end_ns) = slices.get(at).copied().unwrap_or((fastest, u64::MAX));
            slice.mode.store(mode, Ordering::Relaxed);
            slice.end_ns.store(end_ns, Ordering::Relaxed);
        }
        self.fastest_mode.store(fastest, Ordering::Relaxed);
    }

    /// The mode at a moment of the quantum: figure 15 changes to the next one when more than the slice has passed.
    pub fn mode_at(&self, quantum_elapsed_ns: u64) -> usize {
        let current = self.slices.iter().find(|slice| quantum_elapsed_ns <= slice.end_ns.load(Ordering::Relaxed));
        current.map_or_else(|| self.fastest_mode(), |slice| slice.mode.load(Ordering::Relaxed))
    }
}

/// The part of a profile that belongs to one thread.
pub(super) struct Record<'a> {
    lines: &'a [Line],
}

impl Record<'_> {
    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.lines[at / LINE_WORDS][at % LINE_WORDS]
    }

    #[inline]
    fn mode(&self, mode: usize) -> &AtomicU64 {
        self.word(1 + mode)
    }

    /// The pass that the thread still has.
    #[inline]
    pub fn pass(&self) -> Option<Pass> {
        let pass = Pass::from_word(self.word(0).load(Ordering::Relaxed));
        (pass.left > 0).then_some(pass)
    }

    #[inline]
    pub fn set_pass(&self, pass: Pass) {
        self.word(0).store(pass.to_word(), Ordering::Relaxed);
    }

    /// Counts an acquisition. Two threads that share the record may lose one, which costs less than an atomic addition
    /// at each.
    #[inline]
    pub fn count(&self, mode: usize) {
        let count = self.mode(mode);
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_fits_into_its_word() {
        for pass in [Pass { mode: 0, socket: 0, left: 1 }, Pass { mode: 65_535, socket: 65_534, left: u32::MAX }] {
            assert_eq!(Pass::from_word(pass.to_word()), pass);
        }
    }
}
