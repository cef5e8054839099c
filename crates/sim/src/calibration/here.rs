//! All that is measured on this computer, in passes through all of it: what disturbs this computer for a while (other programs, other
//! guests of its host) disturbs all alike, and is gone in other passes.

use super::points::Measured;
use super::programs::{Chain, Passed, addition, in_turn, passed};
use super::rounds::Times;
use super::shapes::Shapes;
use super::size::CalibrationSize;

/// Lines that lie in L3 of any computer of today, and not in L2.
const L3_LINES: u64 = 1 << 16;

/// The times of this computer.
pub(super) struct Here {
    /// A load from L2, L3 and memory.
    pub loads: [Times; 3],
    /// An atomic addition to a line of its own.
    pub addition: Times,
    /// A load of a line that another core has changed.
    pub passed_load: Times,
    /// An atomic addition to such a line after that load.
    pub passed_addition: Times,
    /// A turn of two threads.
    pub turn: Times,
    sets: Vec<(Measured, Times)>,
}

impl Here {
    /// Measures everything that the points need.
    pub fn measure(points: &[Measured], shapes: Shapes, size: &CalibrationSize, seed: u64) -> Self {
        let l2_lines = shapes.l2.lines() as u64 / 2;
        let chains = [l2_lines, L3_LINES, size.memory_lines].map(|lines| Chain::of(lines.min(size.memory_lines), seed));
        let mut here = Here {
            loads: Default::default(),
            addition: Times::default(),
            passed_load: Times::default(),
            passed_addition: Times::default(),
            turn: Times::default(),
            sets: vec![],
        };
        for set in points.iter().chain(&Measured::WITHIN_L1).chain(&Measured::ALONE_AND_TOGETHER) {
            for set in [*set, set.apart()] {
                if !here.sets.iter().any(|(other, _)| *other == set) {
                    here.sets.push((set, Times::default()));
                }
            }
        }
        for _ in 0..size.passes {
            here.turn.add(in_turn(size, seed));
            for (times, chain) in here.loads.iter_mut().zip(&chains) {
                times.add(chain.load(size, seed));
            }
            here.addition.add(addition(size, seed));
            here.passed_load.add(passed(Passed::Load, size, seed));
            here.passed_addition.add(passed(Passed::AdditionAfterLoad, size, seed));
            for (set, times) in &mut here.sets {
                times.add(set.natively(size, seed));
            }
        }
        here
    }

    /// The times of an operation on a set.
    ///
    /// # Panics
    /// If it was not among the points.
    pub fn of(&self, set: &Measured) -> &Times {
        let found = self.sets.iter().find(|(other, _)| other == set);
        &found.expect("every set that the model needs is measured").1
    }
}
