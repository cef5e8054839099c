//! A trial of the candidates that estimates leave: the workload itself decides between what is near.
//!
//! Estimates tell candidates apart that differ by a factor. They do not tell apart those that differ by a tenth: what a cycle costs beyond
//! its parts (caches that a copy has emptied, pages that are neighbours, the allocator of the system) is not in the costs. So a few
//! recorded cycles of updates are run by each candidate whose estimate is within [`SHORTLIST`] times the best, in turns. Those that fall
//! behind leave the race; the one with the shortest cycle is chosen.
use std::time::{Duration, Instant};

use crate::choosing::cost::{Calibration, Candidate, Choice};
use crate::choosing::cycle::{Cycles, in_a_turn};
use crate::error::SnapshotError;

/// Candidates whose estimates are so many times the best one are not tried.
const SHORTLIST: f64 = 4.0;
/// Rounds after which a candidate may leave.
const ROUNDS_LEAST: usize = 5;
/// Rounds after which a race may end: with fewer, what else runs on the machine decides between neighbours.
const ROUNDS_ENOUGH: usize = 12;
/// Rounds, at most.
const ROUNDS_MOST: usize = 100;
/// The time of a race after which it ends, once it has had enough rounds.
const RACE_TIME: Duration = Duration::from_millis(400);
/// A candidate leaves whose shortest cycle is so many times the shortest of all.
const BEHIND: f64 = 1.5;

/// A candidate in the race.
struct Runner {
    candidate: Candidate,
    cycles: Cycles,
    shortest: Duration,
}

impl Calibration {
    /// Chooses by running cycles of `updates` updates of `recorded` items on arrays of `size_bytes` in 64-bit items. Its estimates begin
    /// with the measured ones. The arrays of all that are tried, and snapshots of them, are there at the same time.
    ///
    /// # Errors
    /// Where the system refuses what it allowed during the calibration, or an item lies outside of the array.
    pub fn try_out(
        &self,
        size_bytes: usize,
        updates: usize,
        recorded: &[usize],
        estimated: &Choice,
    ) -> Result<Choice, SnapshotError> {
        let best = estimated.estimates.first().map_or(0.0, |(_, estimate)| *estimate);
        let is_near = |(_, estimate): &&(Candidate, f64)| *estimate <= best * SHORTLIST;
        let near = estimated.estimates.iter().filter(is_near);
        let runner = |(candidate, _): &(Candidate, f64)| {
            let cycles = Cycles::new(size_bytes, &candidate.options())?;
            Ok(Runner { candidate: *candidate, cycles, shortest: Duration::MAX })
        };
        let mut race = near.map(runner).collect::<Result<Vec<_>, SnapshotError>>()?;
        let parts: Vec<&[usize]> = match updates {
            0 => vec![&[]],
            _ => recorded.chunks_exact(updates.min(recorded.len().max(1))).collect(),
        };
        let mut left = Vec::new();
        let start = Instant::now();
        for round in 0..=ROUNDS_MOST {
            let is_long = round > ROUNDS_ENOUGH && start.elapsed() > RACE_TIME;
            if is_long || (race.len() < 2 && round > 0) {
                break;
            }
            let part = parts.get(round % parts.len().max(1)).copied().unwrap_or_default();
            for runner in &mut race {
                let last = Some(runner.shortest).filter(|shortest| *shortest < Duration::MAX);
                for _ in 0..in_a_turn(last) {
                    let time = runner.cycles.run(part)?.total();
                    // The first round has memory to get.
                    if round > 0 {
                        runner.shortest = runner.shortest.min(time);
                    }
                }
            }
            if round >= ROUNDS_LEAST {
                let shortest = race.iter().map(|runner| runner.shortest).min().unwrap_or_default();
                let (ahead, behind) = race.into_iter().partition(|runner| runner.shortest <= shortest.mul_f64(BEHIND));
                race = ahead;
                left.extend::<Vec<Runner>>(behind);
            }
        }
        race.sort_by_key(|runner| runner.shortest);
        let tried = race.iter().chain(&left).filter(|runner| runner.shortest < Duration::MAX);
        let mut estimates: Vec<(Candidate, f64)> =
            tried.map(|runner| (runner.candidate, runner.shortest.as_nanos() as f64)).collect();
        let is_tried = |candidate: Candidate| estimates.iter().any(|(known, _)| *known == candidate);
        let others: Vec<_> =
            estimated.estimates.iter().filter(|(candidate, _)| !is_tried(*candidate)).copied().collect();
        estimates.extend(others);
        let candidate = race.first().map_or(estimated.candidate, |runner| runner.candidate);
        Ok(Choice { candidate, estimates })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::choosing::cost::{Costs, Curve};
    use crate::kind::Mechanism;

    /// Costs that make every candidate look alike, but for those that look a hundred times as bad.
    fn calibration(bad: Mechanism) -> Calibration {
        let costs = Candidate::all().into_iter().map(|candidate| {
            let begin = if candidate.mechanism == bad { 1e8 } else { 1e6 };
            let [flat, none] = [begin, 0.0].map(|cost| Curve::new(vec![(1, cost)]));
            Costs { candidate, begin_ns: flat, update_ns: none.clone(), first_ns: none.clone(), end_ns: none }
        });
        Calibration { costs: costs.filter(|costs| runs(costs.candidate)).collect(), refused: Vec::new() }
    }

    fn runs(candidate: Candidate) -> bool {
        Cycles::new(1 << 16, &candidate.options()).and_then(|mut cycles| cycles.run(&[])).is_ok()
    }

    #[test]
    fn a_trial_finds_what_the_estimates_do_not_tell_and_passes_over_what_is_far_behind() {
        let calibration = calibration(Mechanism::Fork);
        let skew = crate::choosing::skew::Skew::new(8 << 20, [4_096]);
        let estimated = calibration.choose(8 << 20, 4, &skew).unwrap();
        let choice = calibration.try_out(8 << 20, 4, &[1, 2, 3, 4, 9, 8, 7, 6], &estimated).unwrap();
        assert_eq!(choice.candidate.mechanism, Mechanism::Rewire, "few updates of much memory: {choice:?}");
        assert_eq!(choice.estimates.len(), estimated.estimates.len());
        let fork = choice.estimates.iter().filter(|(candidate, _)| candidate.mechanism == Mechanism::Fork);
        assert!(fork.clone().count() == 0 || fork.into_iter().all(|(_, estimate)| *estimate >= 1e8), "not tried");
        assert!(calibration.try_out(1 << 16, 1, &[1 << 30], &estimated).is_err(), "no item of the array");
    }
}
