//! Threads that run a workload for a while, in one of the ways to commit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use durability::CommitMode;
use heap::{CommittedTransaction, Heap, HeapResult};

use crate::heap::{Random, Workload};

/// How a thread commits, and when it waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Waits for each commit, as the mode says.
    Each(CommitMode),
    /// Split-phase: it commits on and on and waits, each time this has passed, for its last commit.
    Split(CommitMode, Duration),
}

impl Pace {
    fn mode(self) -> CommitMode {
        match self {
            Pace::Each(mode) | Pace::Split(mode, _) => mode,
        }
    }
}

/// The work that the threads have done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drive {
    /// Transactions of all threads.
    pub transactions: u64,
    /// Transactions a second.
    pub per_s: f64,
    /// Conflicts for each transaction.
    pub conflicts: f64,
}

/// Runs a workload on `threads` threads for a while.
///
/// # Errors
/// The first error of a thread: of a step of the workload, or of the wait for the disk.
///
/// # Panics
/// If a thread of the workload panics.
pub fn drive(
    heap: &Heap,
    workload: &dyn Workload,
    threads: usize,
    time: Duration,
    pace: Pace,
    seed: u64,
) -> HeapResult<Drive> {
    let is_over = AtomicBool::new(false);
    let conflicts = heap.stats().conflicts;
    let start = Instant::now();
    let transactions: u64 = std::thread::scope(|scope| {
        let thread = |thread| {
            let is_over = &is_over;
            scope.spawn(move || run(heap, workload, &mut Random::new(seed << 8 | thread), pace, is_over))
        };
        let threads: Vec<_> = (0..threads as u64).map(thread).collect();
        std::thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("a thread of the workload")).sum::<HeapResult<u64>>()
    })?;
    let conflicts = heap.stats().conflicts - conflicts;
    Ok(Drive {
        transactions,
        per_s: transactions as f64 / start.elapsed().as_secs_f64(),
        conflicts: conflicts as f64 / transactions.max(1) as f64,
    })
}

fn run(heap: &Heap, workload: &dyn Workload, random: &mut Random, pace: Pace, is_over: &AtomicBool) -> HeapResult<u64> {
    let (mut transactions, mut waited) = (0, Instant::now());
    let mut last: Option<CommittedTransaction> = None;
    while !is_over.load(Ordering::Relaxed) {
        let committed = workload.step(heap, random, pace.mode())?;
        transactions += 1;
        match pace {
            Pace::Each(_) => heap.wait(&committed)?,
            Pace::Split(_, interval) => {
                last = Some(committed).filter(CommittedTransaction::has_written).or(last);
                if waited.elapsed() >= interval {
                    if let Some(last) = last.take() {
                        wait_for(heap, &last)?;
                    }
                    waited = Instant::now();
                }
            }
        }
    }
    last.map_or(Ok(()), |last| wait_for(heap, &last))?;
    Ok(transactions)
}

/// Waits until a commit, and those before it as far as its mode goes, survive a crash.
fn wait_for(heap: &Heap, committed: &CommittedTransaction) -> HeapResult<()> {
    match committed.mode {
        CommitMode::Partition => heap.wait(committed),
        CommitMode::Sync | CommitMode::Async => heap.is_stable(committed.lsn, true).map(drop),
    }
}
