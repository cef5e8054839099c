//! A race of candidates: they run cycles of one workload in turns, and those that fall behind leave it, the nearer the later.
//!
//! What counts is how a candidate's shortest cycle of a round compares with the shortest of all in that round, in the median of the rounds:
//! what else runs on the machine lengthens the cycles of a round alike, and a round in which it let one candidate alone is one of many.
//! Where an array falls in the caches, and whether the system has large pages for it, is luck: each candidate has several arrays.
use std::time::{Duration, Instant};

use crate::choosing::cost::Candidate;
use crate::choosing::cycle::{Cycles, LONG_CYCLE, middle};
use crate::error::SnapshotError;

/// After so many rounds a candidate leaves whose shortest cycle is so many times the shortest of all: what is nearer is told apart by more
/// rounds, for which there is more time then.
const BEHIND: [(usize, f64); 4] = [(2, 2.5), (5, 1.5), (12, 1.2), (24, 1.08)];
/// Rounds, at most.
const ROUNDS_MOST: usize = 200;
/// The cycles of a turn where they are short: one that follows another candidate's finds the caches full of that one's array.
const SHORT_CYCLES: usize = 4;

/// Arrays of up to so many bytes are made three times, larger ones twice.
const LUCK_BYTES: usize = 64 << 20;

/// How long a race is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// Rounds after which it may end: with fewer, what else runs on the machine decides between neighbours.
    pub(super) rounds: usize,
    /// After this time it ends, once it has had enough rounds.
    pub(super) time: Duration,
}

struct Runner {
    candidate: Candidate,
    arrays: Vec<Cycles>,
    /// the shortest cycle of the last round
    last: Duration,
    /// of each round, how many times the shortest of all that is
    times: Vec<f64>,
}

impl Runner {
    fn new(candidate: Candidate, size_bytes: usize) -> Result<Runner, SnapshotError> {
        let count = if size_bytes <= LUCK_BYTES { 3 } else { 2 };
        let arrays = (0..count).map(|_| Cycles::new(size_bytes, &candidate.options())).collect::<Result<_, _>>()?;
        Ok(Runner { candidate, arrays, last: Duration::ZERO, times: Vec::new() })
    }

    /// Takes its turn of a round.
    fn run(&mut self, items: &[&[usize]]) -> Result<(), SnapshotError> {
        let cycles = if self.last >= LONG_CYCLE { 1 } else { SHORT_CYCLES };
        let mut shortest = Duration::MAX;
        for array in &mut self.arrays {
            for items in items.iter().take(cycles) {
                shortest = shortest.min(array.run(items)?.total());
            }
        }
        self.last = shortest;
        Ok(())
    }

    /// How many times the shortest cycle its own is.
    fn score(&self) -> f64 {
        middle(self.times.clone())
    }
}

/// Runs a race on arrays of a size; each round has the updates that `draw` puts into its lists, one for each cycle of a turn. The
/// candidate `stays` is not let go. Gives the time of a cycle in rising order, of those that have finished and of those that left.
///
/// # Errors
/// Where the system refuses an array or a snapshot, or an item lies outside of the array.
pub(super) fn race(
    candidates: impl IntoIterator<Item = Candidate>,
    size_bytes: usize,
    length: Length,
    stays: Option<Candidate>,
    mut draw: impl FnMut(&mut Vec<usize>),
) -> Result<Vec<(Candidate, Duration)>, SnapshotError> {
    let runner = |candidate| Runner::new(candidate, size_bytes);
    let mut running = candidates.into_iter().map(runner).collect::<Result<Vec<_>, SnapshotError>>()?;
    let (mut left, mut shortest) = (Vec::new(), Vec::new());
    let mut lists = [const { Vec::new() }; SHORT_CYCLES];
    let start = Instant::now();
    for round in 0..=ROUNDS_MOST {
        let is_over = round > length.rounds && start.elapsed() > length.time;
        if is_over || (running.len() < 2 && round > 1) {
            break;
        }
        lists.iter_mut().for_each(|list| {
            list.clear();
            draw(list);
        });
        let items = lists.each_ref().map(Vec::as_slice);
        running.iter_mut().try_for_each(|runner| runner.run(&items))?;
        // The first round has memory to get.
        let Some(least) = running.iter().map(|runner| runner.last).min().filter(|_| round > 0) else { continue };
        shortest.push(least.as_secs_f64());
        for runner in &mut running {
            runner.times.push(runner.last.as_secs_f64() / least.as_secs_f64().max(f64::MIN_POSITIVE));
        }
        let Some((_, times)) = BEHIND.iter().rev().find(|(rounds, _)| round >= *rounds) else { continue };
        let best = running.iter().map(Runner::score).fold(f64::MAX, f64::min);
        left.extend(running.extract_if(.., |of| stays != Some(of.candidate) && of.score() > best * times));
    }
    let shortest = Duration::from_secs_f64(middle(shortest));
    let mut times: Vec<(Candidate, Duration)> =
        running.iter().chain(&left).map(|of| (of.candidate, shortest.mul_f64(of.score()))).collect();
    times.sort_by_key(|(_, time)| *time);
    Ok(times)
}
