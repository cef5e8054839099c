//! Measures what snapshots cost on this machine, and how far choices are from the best: the paper's Table 1, learned anew.
use std::time::{Duration, Instant};

use crate::array::SnapshotArray;
use crate::choosing::cost::{Calibration, Candidate, Choice, Costs, Curve};
use crate::choosing::cycle::{Case, filled, middle, page_items};
use crate::choosing::distribution::{Distribution, Updates};
use crate::choosing::race::{Length, race};
use crate::choosing::skew::Skew;
use crate::error::SnapshotError;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The sizes of arrays.
    pub sizes_bytes: Vec<usize>,
    /// How often each time is taken.
    pub rounds: usize,
    /// The most granules that are updated for the first time in a round.
    pub granules: usize,
    /// The updates of a round.
    pub updates: usize,
}

impl Default for Effort {
    /// Sizes from 256 KiB to 128 MiB, 7 rounds: some seconds.
    fn default() -> Effort {
        let sizes_bytes = vec![256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 128 << 20];
        Effort { sizes_bytes, rounds: 7, granules: 4_096, updates: 200_000 }
    }
}

/// The times of one candidate at one size, in nanoseconds.
struct Point {
    begin: f64,
    update: f64,
    first: f64,
    end: f64,
}

impl Calibration {
    /// Measures all candidates. Those that do not run here are listed with the reason.
    pub fn measure(effort: &Effort) -> Calibration {
        let mut calibration = Calibration { costs: Vec::new(), refused: Vec::new() };
        for candidate in Candidate::all() {
            match measure(candidate, effort) {
                Ok(costs) => calibration.costs.push(costs),
                Err(reason) => calibration.refused.push((candidate, reason.to_string())),
            }
        }
        calibration
    }

    /// Chooses for a case as a user would, by a sample of its updates.
    pub fn choose_for(&self, case: &Case, sample: usize) -> Option<Choice> {
        let mut skew = Skew::new(case.size_bytes, self.costs.iter().map(|costs| costs.candidate.granule_bytes));
        case.updates(2).take(sample).for_each(|item| skew.note(item * size_of::<u64>()));
        self.choose(case.size_bytes, case.updates, &skew)
    }

    /// Chooses for a case, by estimates and then by a trial of the best of them ([`Calibration::try_out`]); runs it by every candidate,
    /// in a race of `cycles` rounds and more where cycles are short, which the chosen one does not leave, and compares that with the
    /// fastest. The updates
    /// are others than those of the sample and of the trial. Nothing where no candidate runs.
    ///
    /// # Errors
    /// Where the system refuses what it allowed during the calibration.
    pub fn regret(&self, case: &Case, cycles: usize) -> Result<Option<Regret>, SnapshotError> {
        let Some(estimated) = self.choose_for(case, case.updates.clamp(1, SAMPLE_MOST)) else { return Ok(None) };
        let tried = (TRIED_UPDATES / case.updates.max(1)).max(TRIED_CYCLES);
        let recorded: Vec<usize> = case.updates(2).take(case.updates.saturating_mul(tried)).collect();
        let choice = self.try_out(case.size_bytes, case.updates, &recorded, &estimated)?;
        let of_use = self.costs.iter().map(|costs| costs.candidate).filter(|of| of.is_of_use(case.size_bytes));
        let mut updates = case.updates(1);
        let draw = |items: &mut Vec<usize>| items.extend(updates.by_ref().take(case.updates));
        let length = Length { rounds: cycles, time: REGRET_TIME };
        let measured = race(of_use, case.size_bytes, length, Some(choice.candidate), draw)?;
        Ok(Some(Regret { case: *case, estimated, choice, measured }))
    }
}

/// The updates that a choice looks at, at most.
const SAMPLE_MOST: usize = 1 << 16;

/// The different cycles of a trial, at least; of short ones so many that they have this number of updates, as cycles that come again find
/// their pages in the caches, and as a snapshot before has left them.
const TRIED_CYCLES: usize = 3;
const TRIED_UPDATES: usize = 1 << 16;

/// The time for which the candidates run at least.
const REGRET_TIME: Duration = Duration::from_millis(1_500);

/// A choice beside what every candidate took.
#[derive(Clone, Debug)]
pub struct Regret {
    /// The workload.
    pub case: Case,
    /// What was chosen from estimates alone.
    pub estimated: Choice,
    /// What was chosen from estimates and a trial.
    pub choice: Choice,
    /// The time of a cycle by each candidate, in rising order.
    pub measured: Vec<(Candidate, Duration)>,
}

impl Regret {
    /// How much longer than the best the chosen one took: 0.1 is a tenth.
    pub fn share(&self) -> f64 {
        self.share_of(self.choice.candidate)
    }

    /// How much longer than the best a candidate took.
    pub fn share_of(&self, candidate: Candidate) -> f64 {
        let best = self.measured[0].1.as_secs_f64();
        self.of(candidate).map_or(0.0, |time| time.as_secs_f64() / best - 1.0)
    }

    /// The time of a candidate.
    pub fn of(&self, candidate: Candidate) -> Option<Duration> {
        self.measured.iter().find(|(other, _)| *other == candidate).map(|(_, time)| *time)
    }
}

fn measure(candidate: Candidate, effort: &Effort) -> Result<Costs, SnapshotError> {
    let mut points = Vec::new();
    for size_bytes in &effort.sizes_bytes {
        points.push((*size_bytes, point(candidate, *size_bytes, effort)?));
    }
    let curve = |part: fn(&Point) -> f64| Curve::new(points.iter().map(|(size, point)| (*size, part(point))).collect());
    Ok(Costs {
        candidate,
        begin_ns: curve(|point| point.begin),
        update_ns: curve(|point| point.update),
        first_ns: curve(|point| point.first),
        end_ns: curve(|point| point.end),
    })
}

fn point(candidate: Candidate, size_bytes: usize, effort: &Effort) -> Result<Point, SnapshotError> {
    let array = filled(size_bytes, &candidate.options())?;
    drop(array.snapshot()?);
    let plain = update_all(&array, effort.updates)?;
    let granule_items = candidate.granule_bytes / size_of::<u64>();
    let granules = spread(array.len() / granule_items, effort.granules);
    let firsts: Vec<usize> = granules.iter().map(|granule| granule * granule_items).collect();
    let (mut times, mut first) = ([const { Vec::new() }; 3], Vec::new());
    for round in 0..=effort.rounds {
        let start = Instant::now();
        let empty = array.snapshot()?;
        let begin = start.elapsed();
        let start = Instant::now();
        drop(empty);
        let end_empty = start.elapsed();
        let snapshot = array.snapshot()?;
        let chunks = update_in_chunks(&array, &firsts, FIRST_CHUNK)?;
        let start = Instant::now();
        drop(snapshot);
        let end = start.elapsed();
        // The first round has memory to get.
        if round > 0 {
            times.iter_mut().zip([begin, end_empty, end]).for_each(|(times, time)| times.push(time));
            first.extend(chunks);
        }
    }
    let [begin, end_empty, end] = times.map(|times| quickest(times).as_nanos() as f64);
    let end = (end - end_empty).max(0.0) / firsts.len().max(1) as f64;
    Ok(Point { begin: begin + end_empty, update: plain, first: (middle(first) - plain).max(0.0), end })
}

/// The updates between two looks at the clock: well under a time slice, so that a chunk in which the thread was interrupted is one of many.
const UPDATE_CHUNK: usize = 4_096;

/// Likewise of first updates, of which each takes microseconds.
const FIRST_CHUNK: usize = 64;

/// The time of an update of an array that no snapshot shares, in nanoseconds.
fn update_all(array: &SnapshotArray<u64>, updates: usize) -> Result<f64, SnapshotError> {
    let pages = array.len() / page_items();
    let items: Vec<usize> = Updates::new(Distribution::Uniform, pages, page_items(), 5).take(updates).collect();
    Ok(middle(update_in_chunks(array, &items, UPDATE_CHUNK)?))
}

/// Updates items, some at a time; gives the time of an update in each chunk, in nanoseconds.
fn update_in_chunks(array: &SnapshotArray<u64>, items: &[usize], chunk: usize) -> Result<Vec<f64>, SnapshotError> {
    let mut writer = array.writer();
    let mut times = Vec::new();
    for items in items.chunks(chunk) {
        let start = Instant::now();
        for item in items {
            writer.add(*item, 1)?;
        }
        times.push(start.elapsed().as_nanos() as f64 / items.len() as f64);
    }
    Ok(times)
}

/// The shortest of some durations, which others on the machine have disturbed least; zero of none.
fn quickest(times: impl IntoIterator<Item = Duration>) -> Duration {
    times.into_iter().min().unwrap_or_default()
}

/// At most `most` of `count` granules, in an order that jumps.
fn spread(count: usize, most: usize) -> Vec<usize> {
    let mut granules: Vec<usize> = (0..count).collect();
    let mut jumps = Updates::new(Distribution::Uniform, count, 1, 9);
    for last in (1..count).rev() {
        let other = jumps.next().unwrap_or_default() % (last + 1);
        granules.swap(last, other);
    }
    granules.truncate(most);
    granules
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::kind::Mechanism;

    #[test]
    fn a_calibration_has_costs_of_all_that_runs_and_reports_the_regret_of_its_choices() {
        let effort = Effort { sizes_bytes: vec![64 << 10, 512 << 10], rounds: 1, granules: 8, updates: 1_000 };
        let calibration = Calibration::measure(&effort);
        let has = |mechanism| calibration.costs.iter().any(|costs| costs.candidate.mechanism == mechanism);
        assert!(has(Mechanism::Physical), "{:?}", calibration.refused);
        assert_eq!(calibration.costs.len() + calibration.refused.len(), Candidate::all().len());
        for costs in &calibration.costs {
            assert!(
                costs.begin_ns.points().len() == 2 && costs.begin_ns.at(1 << 18) > 0.0 && costs.update_ns.at(1) > 0.0
            );
        }
        let case = Case { size_bytes: 256 << 10, distribution: Distribution::Zipf, updates: 500 };
        let regret = calibration.regret(&case, 2).unwrap().unwrap();
        let of_use = calibration.costs.iter().filter(|costs| costs.candidate.is_of_use(case.size_bytes));
        assert_eq!(regret.measured.len(), of_use.count(), "no large pages for an array that is smaller than one");
        assert!(regret.measured.is_sorted_by_key(|(_, time)| *time));
        let chosen = regret.of(regret.choice.candidate).unwrap();
        assert!(regret.share() >= 0.0 && chosen >= regret.measured[0].1);
        assert!(regret.estimated.estimates.is_sorted_by(|one, other| one.1 <= other.1));
    }

    #[test]
    fn granules_are_spread_without_repetition() {
        let mut granules = spread(1_000, 300);
        assert!(!granules.is_sorted());
        granules.sort_unstable();
        granules.dedup();
        assert!(granules.len() == 300 && granules.iter().all(|granule| *granule < 1_000));
        assert_eq!(spread(1, 5), [0]);
    }
}
