//! A trial of the candidates that estimates leave: the workload itself decides between what is near.
//!
//! Estimates tell candidates apart that differ by a factor. They do not tell apart those that differ by a tenth: what a cycle costs beyond
//! its parts (caches that a copy has emptied, pages that are neighbours, the allocator of the system) is not in the costs. So a few
//! recorded cycles of updates are run by each candidate whose estimate is within [`SHORTLIST`] times the best, in turns. Those that fall
//! behind leave the race; the one with the shortest cycle is chosen.
use std::time::Duration;

use crate::choosing::cost::{Calibration, Candidate, Choice};
use crate::choosing::race::{Length, race};
use crate::error::SnapshotError;

/// Candidates whose estimates are so many times the best one are not tried.
const SHORTLIST: f64 = 4.0;
/// How long the trial is.
const LENGTH: Length = Length { rounds: 12, time: Duration::from_millis(1_000) };

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
        let parts: Vec<&[usize]> = match updates {
            0 => Vec::new(),
            _ => recorded.chunks_exact(updates.min(recorded.len().max(1))).collect(),
        };
        let mut parts = parts.into_iter().cycle();
        let draw = |items: &mut Vec<usize>| items.extend_from_slice(parts.next().unwrap_or_default());
        let tried = race(near.map(|(candidate, _)| *candidate), size_bytes, LENGTH, None, draw)?;
        let candidate = tried.first().map_or(estimated.candidate, |(candidate, _)| *candidate);
        let mut estimates: Vec<(Candidate, f64)> =
            tried.into_iter().map(|(candidate, time)| (candidate, time.as_nanos() as f64)).collect();
        let is_tried = |candidate: Candidate| estimates.iter().any(|(known, _)| *known == candidate);
        let others: Vec<_> =
            estimated.estimates.iter().filter(|(candidate, _)| !is_tried(*candidate)).copied().collect();
        estimates.extend(others);
        Ok(Choice { candidate, estimates })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::choosing::cost::{Costs, Curve};
    use crate::choosing::cycle::Cycles;
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
