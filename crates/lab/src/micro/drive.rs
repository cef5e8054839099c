//! Driving a contestant: threads that run transactions, and beside them one that sums up a column, for a while.
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::median;

use super::contestant::Contestant;
use super::workload::{SUMMED, Workload};
use crate::LabError;

/// Transactions between two looks at the clock.
const BATCH: u32 = 16;

/// The work that is run, and for how long.
#[derive(Clone, Copy)]
pub(super) struct Drive<'a> {
    pub(super) workload: &'a Workload,
    /// how many threads run transactions
    pub(super) threads: u32,
    pub(super) time: Duration,
    /// the same one leads to the same transactions
    pub(super) seed: u64,
    /// told how many transactions are done, as they are
    pub(super) done: Option<&'a AtomicU64>,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct DriveResult {
    /// transactions a second, all threads together
    pub(super) rate: f64,
    /// the median of the scan thread's times; 0 without one
    pub(super) sum_ms: f64,
    /// how many transactions started again
    pub(super) conflicts: u64,
    /// how often one waited for another
    pub(super) waits: u64,
    pub(super) transactions: u64,
}

impl Drive<'_> {
    /// Runs the transactions and nothing else.
    pub(super) fn alone(&self, contestant: &dyn Contestant) -> Result<DriveResult, LabError> {
        self.run(contestant, false)
    }

    /// Runs the transactions, and a thread that sums up a column over and over.
    pub(super) fn beside_scan(&self, contestant: &dyn Contestant) -> Result<DriveResult, LabError> {
        self.run(contestant, true)
    }

    fn run(&self, contestant: &dyn Contestant, has_scan: bool) -> Result<DriveResult, LabError> {
        let start = Barrier::new(self.threads as usize + usize::from(has_scan));
        let (conflicts_before, waits_before) = (contestant.conflicts(), contestant.waits());
        let mut driven = thread::scope(|scope| {
            let updater = |thread: u32| {
                let start = &start;
                scope.spawn(move || self.transact(contestant, self.seed * 1000 + u64::from(thread), start))
            };
            let updaters: Vec<_> = (0..self.threads).map(updater).collect();
            let scan = has_scan.then(|| scope.spawn(|| sum_over_and_over(contestant, self.time, &start)));
            let mut driven = DriveResult::default();
            for updater in updaters {
                let (transactions, seconds) = joined(updater)?;
                driven.transactions += transactions;
                driven.rate += transactions as f64 / seconds;
            }
            if let Some(scan) = scan {
                driven.sum_ms = median(&joined(scan)?);
            }
            Ok::<_, LabError>(driven)
        })?;
        driven.conflicts = contestant.conflicts() - conflicts_before;
        driven.waits = contestant.waits() - waits_before;
        Ok(driven)
    }

    /// One thread's transactions: how many in how many seconds.
    fn transact(&self, contestant: &dyn Contestant, seed: u64, start: &Barrier) -> Result<(u64, f64), LabError> {
        let mut worker = contestant.worker();
        let mut transactions = self.workload.transactions(seed);
        let mut count = 0;
        start.wait();
        let begin = Instant::now();
        loop {
            for _ in 0..BATCH {
                worker.transact(transactions.next())?;
            }
            count += u64::from(BATCH);
            if let Some(done) = self.done {
                done.fetch_add(u64::from(BATCH), Ordering::Relaxed);
            }
            let elapsed = begin.elapsed();
            if elapsed >= self.time {
                return Ok((count, elapsed.as_secs_f64()));
            }
        }
    }
}

/// The value that a thread returned; its panic goes on here.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The times of all sums that ended while the others ran, or of the one that did not.
fn sum_over_and_over(contestant: &dyn Contestant, time: Duration, start: &Barrier) -> Result<Vec<f64>, LabError> {
    start.wait();
    let begin = Instant::now();
    let mut times = Vec::new();
    loop {
        let ms = sum_ms(contestant)?;
        let is_over = begin.elapsed() >= time;
        if !is_over || times.is_empty() {
            times.push(ms);
        }
        if is_over {
            return Ok(times);
        }
    }
}

/// The milliseconds that summing up takes, once.
pub(super) fn sum_ms(contestant: &dyn Contestant) -> Result<f64, LabError> {
    let start = Instant::now();
    std::hint::black_box(contestant.sum(SUMMED)?);
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}

/// The median time of summing up for so long.
pub(super) fn sum_idle_ms(contestant: &dyn Contestant, time: Duration) -> Result<f64, LabError> {
    let begin = Instant::now();
    let mut times = vec![sum_ms(contestant)?];
    while begin.elapsed() < time {
        times.push(sum_ms(contestant)?);
    }
    Ok(median(&times))
}

#[cfg(test)]
mod tests {
    use super::super::contestant::Worker;
    use super::super::workload::Statement;
    use super::*;

    /// Counts what it is told to do, and refuses the 1000th transaction.
    #[derive(Default)]
    struct Counter {
        transactions: AtomicU64,
        sums: AtomicU64,
    }

    impl Contestant for Counter {
        fn worker(&self) -> Box<dyn Worker + '_> {
            Box::new(self)
        }

        fn sum(&self, column: usize) -> Result<i64, LabError> {
            assert_eq!(column, SUMMED);
            self.sums.fetch_add(1, Ordering::Relaxed);
            Ok(0)
        }
    }

    impl Worker for &Counter {
        fn transact(&mut self, _statements: &[Statement<'_>]) -> Result<i64, LabError> {
            match self.transactions.fetch_add(1, Ordering::Relaxed) {
                1000.. => Err(LabError::Failed("enough".to_owned())),
                _ => Ok(0),
            }
        }
    }

    #[test]
    fn every_transaction_counts_and_sums_run_only_when_asked_for() {
        let workload = Workload::new(10, 1, 0, 1);
        let drive = Drive { workload: &workload, threads: 2, time: Duration::ZERO, seed: 1, done: None };
        let counter = Counter::default();
        let driven = drive.alone(&counter).unwrap();
        assert_eq!((driven.transactions, driven.sum_ms), (2 * u64::from(BATCH), 0.0));
        assert_eq!(counter.transactions.load(Ordering::Relaxed), driven.transactions);
        assert_eq!(counter.sums.load(Ordering::Relaxed), 0);
        assert!(drive.beside_scan(&counter).unwrap().sum_ms > 0.0);
        assert_eq!(counter.sums.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_error_on_a_thread_ends_the_run() {
        let workload = Workload::new(10, 1, 0, 1);
        let drive = Drive { workload: &workload, threads: 2, time: Duration::from_secs(3600), seed: 1, done: None };
        let Err(LabError::Failed(why)) = drive.alone(&Counter::default()) else { panic!() };
        assert_eq!(why, "enough");
    }
}
