//! The sizes of runs, and the speedups of workloads by thread count.

use std::sync::Arc;

use latches::throttle::Strategy;

use super::figure::{Figure, Series};
use crate::instructions::Trace;
use crate::machine::{MachineConfig, Pinning};
use crate::sections::{Elision, Way};
use crate::structures::{AvlTree, LeafTree, SkipList};
use crate::workloads::{Outcome, SetWorkload, Throttling};

/// How large the runs of a figure are.
#[derive(Debug, Clone)]
pub struct Scale {
    /// Where all chance comes from.
    pub seed: u64,
    /// The simulated time of a point, in microseconds.
    pub measured_us: u64,
    /// Few points, for tests.
    pub is_small: bool,
    /// Recorded transactions, those of a wholesaler below type 16 and those of a brokerage above; without them generated ones are
    /// replayed.
    pub traces: Option<Arc<[Trace]>>,
}

impl Default for Scale {
    fn default() -> Self {
        Scale { seed: 1, measured_us: 300, is_small: false, traces: None }
    }
}

impl Scale {
    /// A scale for tests: few points, short runs.
    pub const SMALL: Self = Scale { seed: 1, measured_us: 60, is_small: true, traces: None };

    /// The thread counts of the large machine.
    pub(super) fn threads(&self) -> &'static [usize] {
        if self.is_small { &[1, 18, 36, 37, 72] } else { &[1, 4, 8, 12, 18, 24, 36, 37, 42, 54, 72] }
    }
}

/// A figure that can be made.
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// Makes it.
    pub make: fn(&Scale) -> Figure,
}

/// How sections are synchronized in the second half of tle-multisocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Tle,
    Starve,
    Share,
    Scm,
    ShareScm,
}

impl Algorithm {
    /// All of them, or in tests those without the auxiliary latch.
    pub fn some(scale: &Scale) -> &'static [Self] {
        if scale.is_small { &Self::ALL[..3] } else { &Self::ALL }
    }

    const ALL: [Self; 5] = [Self::Tle, Self::Starve, Self::Share, Self::Scm, Self::ShareScm];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tle => "TLE",
            Self::Starve => "TLEStarve",
            Self::Share => "TLEShare",
            Self::Scm => "TLESCM",
            Self::ShareScm => "TLEShareSCM",
        }
    }

    fn way(self) -> Way {
        let has_auxiliary = matches!(self, Self::Scm | Self::ShareScm);
        Way::Elided(if has_auxiliary { Elision::SCM } else { Elision::TLE_20 })
    }

    fn strategy(self) -> Option<Strategy> {
        match self {
            Self::Tle | Self::Scm => None,
            Self::Starve => Some(Strategy::Starve),
            Self::Share | Self::ShareScm => Some(Strategy::Share),
        }
    }
}

/// The structures of tle-multisocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Structure {
    Avl,
    LeafTree,
    SkipList,
}

pub(super) fn run(structure: Structure, workload: &SetWorkload) -> Outcome {
    match structure {
        Structure::Avl => workload.run::<AvlTree>(),
        Structure::LeafTree => workload.run::<LeafTree>(),
        Structure::SkipList => workload.run::<SkipList>(),
    }
}

/// One line of a figure: a workload on the large machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub structure: Structure,
    pub key_range: u64,
    pub update_percent: u64,
    pub algorithm: Algorithm,
    pub pinning: Pinning,
}

impl Line {
    /// TLE-20 on an AVL tree, sockets being filled one after the other.
    pub fn avl(key_range: u64, update_percent: u64) -> Self {
        let (structure, algorithm) = (Structure::Avl, Algorithm::Tle);
        Line { structure, key_range, update_percent, algorithm, pinning: Pinning::FillSocket }
    }

    /// The workload with so many threads.
    pub fn workload(&self, scale: &Scale, threads: usize) -> SetWorkload {
        let config = MachineConfig::X5_2;
        let way = self.algorithm.way();
        let mut workload = SetWorkload::plain(config, self.key_range, self.update_percent, threads, way);
        workload.groups[0].cores = self.pinning.cores(&config, threads);
        prepare(&mut workload, scale, self.algorithm);
        workload
    }
}

/// Gives a workload its times, and the throttling of an algorithm: the paper's 30 and 100 milliseconds are in proportion to
/// trials of ten seconds, ours to the time of a point. Few threads need longer to bring lines back from the other socket.
pub(super) fn prepare(workload: &mut SetWorkload, scale: &Scale, algorithm: Algorithm) {
    let threads: usize = workload.groups.iter().map(|group| group.cores.len()).sum();
    let longer = (16 / threads.max(1)).max(1) as u64;
    workload.way = algorithm.way();
    workload.seed = scale.seed;
    // A whole quantum is measured.
    let measured_us = if algorithm.strategy().is_some() { scale.measured_us.max(150) } else { scale.measured_us };
    workload.measured_us = measured_us * longer;
    workload.warm_up_us = (scale.measured_us / 5).max(20) * longer;
    workload.throttling = algorithm.strategy().map(|strategy| Throttling {
        strategy,
        mode_us: (scale.measured_us / 3).max(60) * longer,
        quantum_us: measured_us * longer,
    });
}

/// Million operations a second by thread count, over those of one thread without throttling.
pub(super) fn speedups(scale: &Scale, threads: &[usize], lines: &[(String, Line)]) -> Vec<Series> {
    let Some((_, first)) = lines.first() else { return Vec::new() };
    let alone = Line { algorithm: Algorithm::Tle, ..*first };
    let base = run(alone.structure, &alone.workload(scale, 1)).rate();
    let of = |line: &Line, threads: usize| {
        (threads as f64, run(line.structure, &line.workload(scale, threads)).rate() / base)
    };
    lines
        .iter()
        .map(|(name, line)| Series::of(name.as_str(), threads.iter().map(|&threads| of(line, threads)).collect()))
        .collect()
}
