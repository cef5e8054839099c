//! Which way to run a batch: it learns run times, decides, and tells what its decisions have cost (the paper, section 4.1).
//!
//! Ways are numbered by the caller. Each has a model of its run times by queries, slots and results ([`super::learn`]). The first
//! runs of a way are calibration; after that the way with the least predicted time is taken. Now and then a batch is an *audit*: each
//! way gets a part of its queries, so that nothing is done twice and no way finds the caches as another has left them. That keeps the
//! models of those ways true that are seldom taken, and is what regret is measured by: the time a query of the way that would have been
//! taken, over that of the fastest.
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::learn::RunTimes;

/// Runs of each way before the models decide.
const CALIBRATION_RUNS: u64 = 8;

/// Every which batch is an audit.
const AUDIT_EVERY: u64 = 32;

/// How much the results of a batch count for the expected results of the next.
const SELECTIVITY_WEIGHT: f64 = 0.2;

/// The size of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchLoad {
    /// How many queries there are.
    pub queries: usize,
    /// How many entries the tree has.
    pub slots: usize,
    /// The share of the entries that a query finds, from 0 to 1.
    pub selectivity: f64,
}

impl BatchLoad {
    fn results(&self) -> f64 {
        self.queries as f64 * self.slots as f64 * self.selectivity
    }
}

/// What decisions have cost, over all audits since calibration.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Regret {
    /// How many audits there were.
    pub audits: u64,
    /// The time of the ways that were chosen, in seconds.
    pub chosen_s: f64,
    /// The time of the ways that were best, in seconds.
    pub best_s: f64,
}

impl Regret {
    /// How much longer the chosen ways took, as a share of the best: 0.1 is ten percent.
    pub fn share(&self) -> f64 {
        if self.best_s > 0.0 { self.chosen_s / self.best_s - 1.0 } else { 0.0 }
    }
}

/// What to do with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Run it this way.
    Take(usize),
    /// Divide it among the ways, beginning with this one. After calibration there is one that would have been taken.
    Audit {
        /// The way of the first part.
        first: usize,
        /// The way that would have been taken.
        chosen: Option<usize>,
    },
}

/// Learns and decides, for one tree and any number of callers.
#[derive(Debug)]
pub struct BatchScheduler {
    way_count: usize,
    learned: Mutex<Learned>,
}

/// What it knows.
#[derive(Debug)]
pub(super) struct Learned {
    ways: Vec<RunTimes>,
    selectivity: f64,
    batch_count: u64,
    regret: Regret,
}

impl BatchScheduler {
    /// A scheduler for so many ways, of which there has to be one at least: for
    /// [`Gist::search_scheduled`](super::Gist::search_scheduled), 0 is the descent of each query, the others are its devices in their
    /// order.
    pub fn new(way_count: usize) -> Self {
        let way_count = way_count.max(1);
        BatchScheduler { way_count, learned: Mutex::new(Learned::new(way_count)) }
    }

    /// How many ways there are.
    pub fn way_count(&self) -> usize {
        self.way_count
    }

    /// The share of the entries that a query is expected to find.
    pub fn selectivity(&self) -> f64 {
        self.learned().selectivity
    }

    /// The run time to expect of a way, in seconds; `None` before it has run.
    pub fn expected_s(&self, way: usize, load: &BatchLoad) -> Option<f64> {
        self.learned().expected_s(way, load)
    }

    /// What the decisions have cost so far.
    pub fn regret(&self) -> Regret {
        self.learned().regret
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs so many queries of a tree with so many entries: `run` is given a way and the places of its queries in the batch, and says how
    /// many entries they have found. Each query is run once.
    pub fn run(&self, queries: usize, slots: usize, mut run: impl FnMut(usize, Range<usize>) -> usize) {
        let expected = BatchLoad { queries, slots, selectivity: self.selectivity() };
        let mut timed = |way: usize, part: Range<usize>| {
            let (count, started) = (part.len(), Instant::now());
            let found = run(way, part);
            let seconds = started.elapsed().as_secs_f64();
            let selectivity = found as f64 / (count * slots).max(1) as f64;
            self.learned().learn(way, &BatchLoad { queries: count, slots, selectivity }, seconds);
            seconds
        };
        let decision = self.learned().decide(&expected);
        match decision {
            Decision::Take(way) => drop(timed(way, 0..queries)),
            Decision::Audit { first, chosen } => {
                let mut seconds = vec![0.0; self.way_count];
                let mut start = 0;
                for part in 0..self.way_count {
                    let end = queries * (part + 1) / self.way_count;
                    let way = (first + part) % self.way_count;
                    seconds[way] = timed(way, start..end) * queries as f64 / (end - start) as f64;
                    start = end;
                }
                self.learned().audit(chosen, &seconds);
            }
        }
    }
}

impl Learned {
    pub(super) fn new(way_count: usize) -> Self {
        Learned { ways: vec![RunTimes::new(); way_count], selectivity: 0.0, batch_count: 0, regret: Regret::default() }
    }

    pub(super) fn expected_s(&self, way: usize, load: &BatchLoad) -> Option<f64> {
        let times = self.ways.get(way).filter(|times| times.run_count() > 0)?;
        Some(times.predict_s(load.queries as f64, load.slots as f64, load.results()))
    }

    #[cfg(test)]
    pub(super) fn regret(&self) -> Regret {
        self.regret
    }

    /// What to do with the next batch.
    pub(super) fn decide(&mut self, load: &BatchLoad) -> Decision {
        self.batch_count += 1;
        let ways = 0..self.ways.len();
        let seldom = ways.clone().min_by_key(|way| self.ways[*way].run_count()).unwrap_or(0);
        let time = |way: &usize| self.expected_s(*way, load).unwrap_or(f64::INFINITY);
        let best = ways.min_by(|one, other| time(one).total_cmp(&time(other))).unwrap_or(0);
        let is_calibrated = self.ways[seldom].run_count() >= CALIBRATION_RUNS;
        if is_calibrated && (self.ways.len() == 1 || !self.batch_count.is_multiple_of(AUDIT_EVERY)) {
            return Decision::Take(best);
        }
        if load.queries < self.ways.len() {
            return Decision::Take(seldom);
        }
        let first = self.batch_count as usize % self.ways.len();
        Decision::Audit { first, chosen: is_calibrated.then_some(best) }
    }

    /// Takes into account that a way has run a batch, which had the selectivity that `load` says.
    pub(super) fn learn(&mut self, way: usize, load: &BatchLoad, seconds: f64) {
        self.ways[way].learn(load.queries as f64, load.slots as f64, load.results(), seconds);
        let is_first = self.selectivity == 0.0;
        let weight = if is_first { 1.0 } else { SELECTIVITY_WEIGHT };
        self.selectivity += weight * (load.selectivity - self.selectivity);
    }

    /// Takes into account what each way would have taken for all of an audited batch.
    pub(super) fn audit(&mut self, chosen: Option<usize>, seconds: &[f64]) {
        if let Some(chosen) = chosen {
            self.regret.audits += 1;
            self.regret.chosen_s += seconds[chosen];
            self.regret.best_s += seconds.iter().copied().fold(f64::INFINITY, f64::min);
        }
    }
}
