//! Short rounds of one or two threads on this computer, of which those count in which no thread lost its processor.
//!
//! ```text
//! meet -> read how often each has been given a processor -> meet -> run for `round_us` -> read again
//!         the numbers differ for a thread: it did not run all the time, and the round is none
//! ```
//!
//! So the threads of a round have run at once from its beginning to its end, each on a processor of its own, without being pinned.
//! A round that another program cut into is no slow one, but none: two threads under one latch that take turns on one processor
//! would be a fast one. Where the system does not tell how often a thread began to run, all rounds count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use latches::pin_thread;

use super::size::CalibrationSize;

/// Nanoseconds of an operation of a thread, one number for each round.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Times {
    counted: Vec<f64>,
    /// Rounds that do not count, which stand in where none counts.
    disturbed: Vec<f64>,
}

impl Times {
    fn note(&mut self, ns: f64, counts: bool) {
        let list = if counts { &mut self.counted } else { &mut self.disturbed };
        list.push(ns);
    }

    /// Adds the rounds of another pass.
    pub fn add(&mut self, others: Times) {
        self.counted.extend(others.counted);
        self.disturbed.extend(others.disturbed);
        self.counted.sort_by(f64::total_cmp);
        self.disturbed.sort_by(f64::total_cmp);
    }

    /// How many rounds counted.
    pub fn count(&self) -> usize {
        self.counted.len()
    }

    /// The time that a share of the rounds does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let list = if self.counted.is_empty() { &self.disturbed } else { &self.counted };
        let last = list.len().saturating_sub(1);
        list.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }

    /// The time of the round in the middle.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// How often the system has given this thread a processor.
fn starts() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split_whitespace().nth(2)?.parse().ok()
}

/// Waits until so many have come.
fn meet(arrived: &AtomicU64, all: u64) {
    arrived.fetch_add(1, Ordering::AcqRel);
    let mut looks = 0u32;
    while arrived.load(Ordering::Acquire) < all {
        looks += 1;
        if looks.is_multiple_of(10_000) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// What a thread has done in a round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    pub operations: u64,
    /// How long that took, if not the whole round.
    pub took: Option<Duration>,
}

impl Work {
    /// Operations that took the whole round.
    pub fn of(operations: u64) -> Self {
        Work { operations, took: None }
    }
}

/// What a thread did in a round: operations for each nanosecond, and whether it ran all the time.
type Rate = (f64, bool);

/// Runs the rounds of a pass on some threads at once. `start` makes what a thread runs: it works until a moment or for
/// as long as it likes, and answers what it did. The first rounds warm up.
pub(super) fn rounds<R: FnMut(Instant) -> Work>(
    threads: usize,
    size: &CalibrationSize,
    start: impl Fn(usize) -> R + Sync,
) -> Times {
    let arrived = AtomicU64::new(0);
    let warm_up = size.rounds / 8 + 1;
    let length = Duration::from_micros(size.round_us);
    let all = |number: usize| {
        pin_thread(number);
        let mut run = start(number);
        let round = |round: u32| -> Rate {
            meet(&arrived, u64::from(2 * round + 1) * threads as u64);
            let before = starts();
            meet(&arrived, u64::from(2 * round + 2) * threads as u64);
            let begun = Instant::now();
            let Work { operations, took } = run(begun + length);
            let ns = took.unwrap_or_else(|| begun.elapsed()).as_nanos() as f64;
            (operations as f64 / ns, starts() == before)
        };
        (0..warm_up + size.rounds).map(round).collect::<Vec<Rate>>()
    };
    let rates: Vec<Vec<Rate>> = std::thread::scope(|scope| {
        let all = &all;
        let others: Vec<_> = (0..threads).map(|number| scope.spawn(move || all(number))).collect();
        others.into_iter().map(|other| other.join().unwrap_or_default()).collect()
    });
    let mut times = Times::default();
    for round in warm_up as usize..(warm_up + size.rounds) as usize {
        let parts = || rates.iter().filter_map(|rates| rates.get(round));
        let rate: f64 = parts().map(|part| part.0).sum();
        if rate > 0.0 {
            times.note(threads as f64 / rate, parts().all(|part| part.1));
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_do_not_count_stand_in_only_where_none_counts() {
        let mut times = Times::default();
        times.note(900.0, false);
        assert_eq!((times.median(), times.count()), (900.0, 0));
        [30.0, 10.0, 20.0].into_iter().for_each(|ns| times.note(ns, true));
        times.add(Times::default());
        assert_eq!((times.quantile(0.0), times.median(), times.quantile(1.0), times.count()), (10.0, 20.0, 30.0, 3));
    }

    #[test]
    fn a_thread_that_gives_its_processor_away_has_been_given_one_again() {
        if let Some(before) = starts() {
            std::thread::sleep(Duration::from_millis(1));
            assert!(starts() > Some(before), "it was away");
        }
    }
}
