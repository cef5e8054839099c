//! What snapshots cost on a machine, by mechanism and size, and the choice that follows.
//!
//! The time of a cycle, from the beginning of one snapshot to that of the next (section 3.2 of the paper), is
//!
//! ```text
//! begin(size) + updates * update(reach) + touched granules * (first(size) + end(size))
//! ```
//!
//! where *reach* is the size of the touched granules, of which caches hold more where it is small; *first* is what the first update of a
//! shared granule costs beyond an ordinary one, and *end* what the end of the snapshot costs for each granule that it has copied; the
//! rest of the end is counted with the beginning. Sizes between those that were measured are read off on logarithmic scales, and
//! beyond the largest a cost grows as it did last. The bend where an array outgrows the last-level cache is in the curves.
use crate::choosing::skew::Skew;
use crate::kind::{Mechanism, Stop};
use crate::machine;
use crate::options::{Options, Pages};

/// A mechanism with its pages and granule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Candidate {
    /// How snapshots are kept.
    pub mechanism: Mechanism,
    /// With what pages the array's memory is backed.
    pub pages: Pages,
    /// What is copied at the first update of a granule, in bytes.
    pub granule_bytes: usize,
    /// How updates are stopped while a snapshot begins.
    pub stop: Stop,
}

impl Candidate {
    /// Those among which a choice is made.
    pub fn all() -> Vec<Candidate> {
        let page_bytes = machine::page_bytes();
        let all = [
            (Mechanism::Physical, Pages::Small, 1, Stop::Announced),
            (Mechanism::Physical, Pages::Huge, 1, Stop::Announced),
            (Mechanism::Physical, Pages::Small, 1, Stop::Protected),
            (Mechanism::Physical, Pages::Huge, 1, Stop::Protected),
            (Mechanism::Fork, Pages::Small, 1, Stop::Announced),
            (Mechanism::Fork, Pages::Huge, 1, Stop::Announced),
            (Mechanism::Rewire, Pages::Small, 1, Stop::Announced),
            (Mechanism::Rewire, Pages::Huge, 1, Stop::Announced),
            (Mechanism::Rewire, Pages::Huge, 16, Stop::Announced),
            (Mechanism::Protect, Pages::Small, 1, Stop::Protected),
            (Mechanism::Protect, Pages::Small, 16, Stop::Protected),
        ];
        let candidate = |(mechanism, pages, granule, stop)| Candidate {
            mechanism,
            pages,
            granule_bytes: granule * page_bytes,
            stop,
        };
        all.map(candidate).to_vec()
    }

    /// Whether it is something of its own for an array of `size_bytes`: one smaller than a large page has none.
    pub(crate) fn is_of_use(&self, size_bytes: usize) -> bool {
        let is_small = self.pages == Pages::Small || self.granule_bytes > machine::page_bytes();
        is_small || size_bytes >= machine::HUGE_PAGE_BYTES
    }

    /// The options of an array of this kind. One thread copies: a second one has to be waited for where other work keeps it from its
    /// processor, and a choice is to hold then, too.
    pub fn options(&self) -> Options {
        let Candidate { pages, granule_bytes, stop, .. } = *self;
        Options { pages, granule_bytes, stop, copy_threads: 1, ..Options::of(self.mechanism) }
    }

    /// The mechanism, with what is not usual about it.
    pub fn name(&self) -> String {
        let pages = if self.pages == Pages::Huge { ", huge pages" } else { "" };
        let granule = match self.granule_bytes >> 10 {
            0..=4 => String::new(),
            kib => format!(", {kib} KiB"),
        };
        let is_stopped = self.mechanism == Mechanism::Physical && self.stop == Stop::Protected;
        let stop = if is_stopped { ", by protection" } else { "" };
        format!("{}{pages}{granule}{stop}", self.mechanism)
    }
}

/// A cost by size, measured at some sizes in rising order.
#[derive(Clone, Default, Debug)]
pub struct Curve(Vec<(usize, f64)>);

impl Curve {
    /// A curve through points of size and cost. Sizes rise and are above 0.
    pub fn new(mut points: Vec<(usize, f64)>) -> Curve {
        points.retain(|(size, _)| *size > 0);
        points.sort_by_key(|(size, _)| *size);
        Curve(points)
    }

    /// The cost at a size; 0 of a curve without points.
    pub fn at(&self, size: usize) -> f64 {
        let points = &self.0;
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return 0.0 };
        if size <= first.0 || points.len() == 1 {
            return first.1;
        }
        let upper = points.iter().position(|point| point.0 >= size).unwrap_or(points.len() - 1);
        let (low, high) = (points[upper - 1], points[upper]);
        if low.1 <= 0.0 || high.1 <= 0.0 {
            // Without logarithms: a cost of nothing stays one.
            let share = (size.min(last.0) - low.0) as f64 / (high.0 - low.0) as f64;
            return low.1 + (high.1 - low.1) * share;
        }
        let share = (size as f64 / low.0 as f64).ln() / (high.0 as f64 / low.0 as f64).ln();
        // A cost that fell at last does not fall on.
        let share = if high.1 < low.1 { share.min(1.0) } else { share };
        low.1 * (high.1 / low.1).powf(share)
    }

    /// The points.
    pub fn points(&self) -> &[(usize, f64)] {
        &self.0
    }
}

/// The costs of one candidate by the size of the array, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Costs {
    /// Whose costs they are.
    pub candidate: Candidate,
    /// The beginning of a snapshot, and the end of one that has copied nothing.
    pub begin_ns: Curve,
    /// An update of a granule that is not shared.
    pub update_ns: Curve,
    /// What the first update of a shared granule costs beyond that.
    pub first_ns: Curve,
    /// What the end of a snapshot costs for each granule that was copied.
    pub end_ns: Curve,
}

impl Costs {
    /// The estimated time of a cycle, in nanoseconds.
    pub fn cycle_ns(&self, size_bytes: usize, updates: usize, skew: &Skew) -> f64 {
        let touched = skew.touched(self.candidate.granule_bytes, updates);
        let reach_bytes = (touched * self.candidate.granule_bytes as f64) as usize;
        self.begin_ns.at(size_bytes)
            + updates as f64 * self.update_ns.at(reach_bytes.min(size_bytes))
            + touched * (self.first_ns.at(size_bytes) + self.end_ns.at(size_bytes))
    }
}

/// What a machine was found to cost.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// One for each candidate that runs here.
    pub costs: Vec<Costs>,
    /// The candidates that were refused, with the reason.
    pub refused: Vec<(Candidate, String)>,
}

/// A candidate and the estimates of all.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The one with the shortest cycle.
    pub candidate: Candidate,
    /// All, with the estimated time of a cycle in nanoseconds, the shortest first.
    pub estimates: Vec<(Candidate, f64)>,
}

impl Calibration {
    /// The candidate with the shortest cycle of `updates` updates, spread as `skew` has seen, on an array of `size_bytes`. For snapshots by
    /// time, `updates` is the rate of updates times the period. Nothing where no candidate runs here.
    pub fn choose(&self, size_bytes: usize, updates: usize, skew: &Skew) -> Option<Choice> {
        let estimate = |costs: &Costs| (costs.candidate, costs.cycle_ns(size_bytes, updates, skew));
        let of_use = self.costs.iter().filter(|costs| costs.candidate.is_of_use(size_bytes));
        let mut estimates: Vec<(Candidate, f64)> = of_use.map(estimate).collect();
        estimates.sort_by(|one, other| one.1.total_cmp(&other.1));
        let candidate = estimates.first()?.0;
        Some(Choice { candidate, estimates })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_curve_passes_through_its_points_and_grows_on_behind_them() {
        let curve = Curve::new(vec![(1 << 20, 400.0), (1 << 18, 100.0), (1 << 22, 1_600.0)]);
        let at = |size: usize| curve.at(size).round();
        assert_eq!((at(1), at(1 << 18), at(1 << 19), at(1 << 20), at(1 << 24)), (100.0, 100.0, 200.0, 400.0, 6_400.0));
        assert_eq!(Curve::default().at(9), 0.0);
        assert_eq!(Curve::new(vec![(1, 0.0), (3, 4.0)]).at(2), 2.0);
        assert_eq!(Curve::new(vec![(1, 8.0), (2, 4.0)]).at(100), 4.0, "a falling cost does not fall on");
    }

    /// Costs of this shape: copying by size, or by touched pages.
    fn calibration() -> Calibration {
        let flat = |cost| Curve::new(vec![(1 << 20, cost)]);
        let all = Candidate::all();
        let by_mechanism = |mechanism| *all.iter().find(|candidate| candidate.mechanism == mechanism).unwrap();
        let physical = Costs {
            candidate: by_mechanism(Mechanism::Physical),
            begin_ns: Curve::new(vec![(1 << 20, 1e5), (1 << 27, 128e5)]),
            update_ns: flat(5.0),
            first_ns: flat(0.0),
            end_ns: flat(0.0),
        };
        let rewire = Costs {
            candidate: by_mechanism(Mechanism::Rewire),
            begin_ns: flat(2e4),
            update_ns: flat(6.0),
            first_ns: flat(3_000.0),
            end_ns: flat(200.0),
        };
        Calibration { costs: vec![physical, rewire], refused: Vec::new() }
    }

    #[test]
    fn uniform_updates_ask_for_copies_and_skewed_ones_for_pages() {
        let choose = |pages: &[usize], updates| {
            let mut skew = Skew::new(128 << 20, [4_096]);
            (0..1 << 14).for_each(|step| skew.note(pages[step % pages.len()] * 4_096));
            calibration().choose(128 << 20, updates, &skew).unwrap().candidate.mechanism
        };
        let everywhere: Vec<usize> = (0..1 << 14).collect();
        assert_eq!(choose(&everywhere, 1 << 17), Mechanism::Physical);
        assert_eq!(choose(&[1, 2, 3], 1 << 17), Mechanism::Rewire);
        assert_eq!(choose(&everywhere, 10), Mechanism::Rewire, "few updates touch few pages");
    }
}
