//! What tests nodes: a processor's vectors here, a coprocessor elsewhere (the paper, sections 3.1 and 3.3).
//!
//! A scan is a matrix of tests, the queries in a node's queue by the node's slots. Its result is a word for each query, with a bit
//! for each slot: the results of a matrix row next to each other, compacted already. Scans of one call are independent of each
//! other, so a device may run them in any order and at the same time.
use std::num::NonZero;
use std::thread;

use super::extension::Extension;

/// One node to test, and the queries that wait there.
pub struct NodeScan<'a, E: Extension> {
    /// The node's keys; the first `count` are in use.
    pub slots: &'a E::Slots,
    /// How many slots are in use.
    pub count: usize,
    /// Whether the keys are those of entries.
    pub is_leaf: bool,
    /// The queries, by their place in the batch.
    pub queue: &'a [u32],
}

/// Tests nodes in batches.
pub trait Device<E: Extension>: Send + Sync {
    /// A name for reports.
    fn name(&self) -> &str;

    /// Tests every query of each scan's queue against the slots of its node. Sets one word of `found` for each query of each
    /// queue, in their order; there are as many of them.
    fn scan(&self, scans: &[NodeScan<'_, E>], queries: &[E::Query], found: &mut [u64]);
}

/// The processor, with so many threads.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    threads: NonZero<usize>,
}

/// The fewest tests of a node that are worth a thread, which takes some twenty microseconds to begin.
const TESTS_PER_THREAD: usize = 1 << 12;

impl Cpu {
    /// A device of so many threads.
    pub fn new(threads: NonZero<usize>) -> Self {
        Cpu { threads }
    }

    /// How many threads it has.
    pub fn threads(&self) -> NonZero<usize> {
        self.threads
    }
}

impl Default for Cpu {
    /// The caller's thread alone.
    fn default() -> Self {
        Cpu { threads: NonZero::<usize>::MIN }
    }
}

impl<E: Extension> Device<E> for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn scan(&self, scans: &[NodeScan<'_, E>], queries: &[E::Query], found: &mut [u64]) {
        let of_thread = found.len().div_ceil(self.threads.get()).max(TESTS_PER_THREAD);
        if found.len() <= of_thread {
            return scan_all(scans, queries, found);
        }
        thread::scope(|scope| {
            let (mut scans, mut found) = (scans, found);
            while !scans.is_empty() {
                let (mut taken, mut tests) = (0, 0);
                while taken < scans.len() && tests < of_thread {
                    tests += scans[taken].queue.len();
                    taken += 1;
                }
                let (mine, others) = scans.split_at(taken);
                let (words, later) = found.split_at_mut(tests);
                (scans, found) = (others, later);
                if scans.is_empty() {
                    scan_all(mine, queries, words);
                } else {
                    scope.spawn(move || scan_all(mine, queries, words));
                }
            }
        });
    }
}

fn scan_all<E: Extension>(scans: &[NodeScan<'_, E>], queries: &[E::Query], found: &mut [u64]) {
    let mut found = found.iter_mut();
    for scan in scans {
        for (query, word) in scan.queue.iter().zip(&mut found) {
            *word = E::matches(scan.slots, scan.count, &queries[*query as usize], scan.is_leaf);
        }
    }
}
