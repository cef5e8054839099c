//! The join on the CPU: what answers without a device, and what the kernels are held against.
//!
//! A hash join without partitions (Blanas et al., as the paper's section 3 has it): one table of chains that
//! all threads build and probe together. A chain takes any number of equal keys in one step each. The
//! probe goes in groups of rows: first the chain's head of each is fetched ahead, then all are followed, so
//! that the misses of a group overlap.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::join::{Groups, Keys, pair};

/// No row.
const NONE: u32 = u32::MAX;

/// Rows that have their heads fetched ahead together.
const GROUP: usize = 16;

/// Below this many rows a second thread costs more than it saves.
const ROWS_PER_THREAD: usize = 1 << 15;

/// Matching pairs, in the order of the probe table.
pub fn join(build: &Keys<'_>, probe: &Keys<'_>) -> Vec<u64> {
    let chains = Chains::of(build);
    let parts = in_parallel(probe.len(), |from, to| {
        let mut pairs = Vec::new();
        chains.probe(probe, from, to, |build_row, _, _, row| pairs.push(pair(build_row, row)));
        pairs
    });
    parts.concat()
}

/// Counts and sums a group of what matches; sums wrap around.
pub fn join_grouped(build: &Keys<'_>, probe: &Keys<'_>, groups: &Groups<'_>) -> (Vec<u64>, Vec<i64>) {
    let chains = Chains::of(build);
    let parts = in_parallel(probe.len(), |from, to| {
        let mut counts = vec![0u64; groups.count as usize];
        let mut sums = vec![0i64; groups.count as usize];
        chains.probe(probe, from, to, |_, build_at, probe_at, _| {
            let group = groups.codes.map_or(0, |codes| codes[build_at]) as usize;
            counts[group] += 1;
            let value = groups.values.map_or(0, |values| values[probe_at]);
            sums[group] = sums[group].wrapping_add(value);
        });
        (counts, sums)
    });
    let mut counts = vec![0u64; groups.count as usize];
    let mut sums = vec![0i64; groups.count as usize];
    for (part_counts, part_sums) in parts {
        counts.iter_mut().zip(part_counts).for_each(|(all, part)| *all += part);
        sums.iter_mut().zip(part_sums).for_each(|(all, part)| *all = all.wrapping_add(part));
    }
    (counts, sums)
}

/// Splits `0..count` among the cores; the parts' answers in order.
fn in_parallel<T: Send>(count: usize, work: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(count / ROWS_PER_THREAD).max(1);
    let share = count.div_ceil(threads);
    if threads == 1 {
        return vec![work(0, count)];
    }
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads)
            .map(|at| scope.spawn(move || work((at * share).min(count), ((at + 1) * share).min(count))))
            .collect();
        running.into_iter().map(|thread| thread.join().expect("a part of a join does not panic")).collect()
    })
}

/// The table: the first row of each chain, and the next row of each row.
struct Chains<'a, 'k> {
    build: &'a Keys<'k>,
    heads: Vec<AtomicU32>,
    next: Vec<AtomicU32>,
    shift: u32,
}

impl<'a, 'k> Chains<'a, 'k> {
    fn of(build: &'a Keys<'k>) -> Self {
        assert!(build.len() < NONE as usize, "a join on the CPU builds on at most 2^32 - 2 rows");
        let heads = build.len().next_power_of_two().max(2);
        let chains = Self {
            build,
            heads: (0..heads).map(|_| AtomicU32::new(NONE)).collect(),
            next: (0..build.len()).map(|_| AtomicU32::new(NONE)).collect(),
            shift: 64 - heads.trailing_zeros(),
        };
        in_parallel(build.len(), |from, to| {
            for at in from..to {
                if let Some((key, _)) = build.row(at) {
                    // The threads that build are joined before any row is read through a chain.
                    let old = chains.heads[chains.home(key)].swap(at as u32, Ordering::Relaxed);
                    chains.next[at].store(old, Ordering::Relaxed);
                }
            }
        });
        chains
    }

    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Gives each match of the rows `from..to` to `take`: the number and the place of the build row, the
    /// place and the number of the probe row.
    fn probe(&self, probe: &Keys<'_>, from: usize, to: usize, mut take: impl FnMut(u32, usize, usize, u32)) {
        for first in (from..to).step_by(GROUP) {
            let group = first..to.min(first + GROUP);
            for at in group.clone() {
                if let Some((key, _)) = probe.row(at) {
                    fetch_ahead(&self.heads[self.home(key)]);
                }
            }
            for at in group {
                let Some((key, number)) = probe.row(at) else { continue };
                let mut found = self.heads[self.home(key)].load(Ordering::Relaxed);
                while found != NONE {
                    let (build_key, build_number) =
                        self.build.row(found as usize).expect("only valid rows are in a chain");
                    if build_key == key {
                        take(build_number, found as usize, at, number);
                    }
                    found = self.next[found as usize].load(Ordering::Relaxed);
                }
            }
        }
    }
}

#[inline]
fn fetch_ahead(place: &AtomicU32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but on caches, and every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::Bits;

    fn nested_loops(build: &Keys<'_>, probe: &Keys<'_>) -> Vec<u64> {
        let mut pairs = Vec::new();
        for probe_at in 0..probe.len() {
            for build_at in 0..build.len() {
                if let (Some((key, build_row)), Some((other, probe_row))) = (build.row(build_at), probe.row(probe_at))
                    && key == other
                {
                    pairs.push(pair(build_row, probe_row));
                }
            }
        }
        pairs.sort_unstable();
        pairs
    }

    fn sorted(mut pairs: Vec<u64>) -> Vec<u64> {
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn the_twin_finds_what_nested_loops_find() {
        let build: Vec<u32> = (0..300u32).map(|at| at * 7 % 100).collect();
        let probe: Vec<u32> = (0..200u32).map(|at| at * 3 % 150).collect();
        let bits: Vec<u8> = (0..40).map(|at| 0x5a ^ at).collect();
        let valid = Some(Bits { bytes: &bits, first_bit: 5 });
        for (build, probe) in [
            (Keys::Column32(&build, None), Keys::Column32(&probe, None)),
            (Keys::Column32(&build, valid), Keys::Column32(&probe, valid)),
            (Keys::Column32(&[], None), Keys::Column32(&probe, None)),
            (Keys::Column64(&[u64::MAX, 0, 1], None), Keys::Column64(&[1, u64::MAX, u64::MAX], None)),
            (Keys::Tuples(&[7 | 3 << 32, 7 | 4 << 32]), Keys::Tuples(&[7 | 9 << 32, 8])),
        ] {
            assert_eq!(sorted(join(&build, &probe)), nested_loops(&build, &probe));
        }
    }

    #[test]
    fn many_threads_find_what_one_finds() {
        let count = 4 * ROWS_PER_THREAD;
        let build: Vec<u64> = (0..count as u64).collect();
        let probe: Vec<u64> = (0..count as u64).map(|at| at * 2).collect();
        let pairs = join(&Keys::Column64(&build, None), &Keys::Column64(&probe, None));
        let expected: Vec<u64> = (0..count as u32 / 2).map(|at| pair(at * 2, at)).collect();
        assert_eq!(pairs, expected);
    }
}
