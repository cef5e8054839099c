//! The model beside this computer: programs run on both, after the model's latencies were set to what this computer shows.
//!
//! ```text
//! size        how large the runs are
//! programs    what runs on either memory: chains of loads, atomic additions, two threads in turn, sets and sections
//! points      sets under one and two threads: nanoseconds of an operation, here and on the model
//!
//! chain of lines in L1, L2, L3, memory -> l2, l3, memory      additions to a line -> atomic
//! two threads that write in turn -> transfer                  sets within L1 -> l1, with the instructions around a load
//! ```
//!
//! The points are not what was calibrated: they are of larger sets, of other structures, with updates, and with two threads. A time
//! on this computer is the best of several short runs, as other programs disturb it.

mod points;
mod programs;
mod size;

use std::fmt::{self, Display, Formatter};

use crate::machine::{CacheShape, MachineConfig};
use points::{Measured, Model};
use programs::{additions, chain, in_turn};
use size::CYCLES_PER_NS;

pub use size::CalibrationSize;

/// Beyond this a point does not agree, in percent.
pub const DEVIATION_MAX: f64 = 25.0;

/// A time on this computer and on the model, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationPoint {
    /// What was run.
    pub name: String,
    /// Here.
    pub native_ns: f64,
    /// On the model.
    pub simulated_ns: f64,
}

impl CalibrationPoint {
    /// By how much the model's time is off, in percent of this computer's.
    pub fn deviation(&self) -> f64 {
        100.0 * (self.simulated_ns / self.native_ns - 1.0)
    }
}

/// A model of this computer, and how well it foretells.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The model.
    pub config: MachineConfig,
    /// Whether the two hardware threads that were used share a core.
    pub is_core_shared: bool,
    /// The points.
    pub points: Vec<CalibrationPoint>,
}

fn cycles(ns: f64) -> u64 {
    (ns * CYCLES_PER_NS as f64).round() as u64
}

/// The model before its latencies are known: one socket with a core for each of two threads.
fn uncalibrated() -> MachineConfig {
    let mut config = MachineConfig::free(1, 2, 1);
    config.name = "this computer";
    config.mhz = 1_000 * CYCLES_PER_NS;
    config.l1 = CacheShape::kib(32, 8);
    config.l2 = CacheShape::kib(1_024, 16);
    config.l3 = CacheShape::kib(32_768, 16);
    config.latencies.issue = 0;
    config.latencies.hop = 0;
    config.transactions.interrupt_period = 0;
    config.transactions.replacement_noise_ppm = 0;
    config
}

/// Lines that lie in L2 and in L3 of the model and of any computer of today.
const L2_LINES: u64 = 1 << 12;
const L3_LINES: u64 = 1 << 16;

/// Sets the latencies of a model to those of this computer, and runs the points on both. Takes seconds.
pub fn calibrate(size: &CalibrationSize, seed: u64) -> Calibration {
    let mut model = Model { config: uncalibrated(), is_core_shared: false };
    let points = points::chosen(size);
    let (mut chains, mut times) = ([f64::INFINITY; 3], vec![f64::INFINITY; points.len()]);
    // Other programs disturb for longer than a run takes: the best of several rounds through all counts.
    for _ in 0..size.rounds {
        for (best, lines) in chains.iter_mut().zip([L2_LINES, L3_LINES, size.memory_lines]) {
            *best = best.min(chain(lines.min(size.memory_lines), size, seed));
        }
        for (best, point) in times.iter_mut().zip(&points) {
            *best = best.min(point.natively(size, seed));
        }
    }
    let latencies = &mut model.config.latencies;
    latencies.l2 = cycles(chains[0]);
    latencies.l3 = cycles(chains[1]).max(latencies.l2);
    latencies.memory = cycles(chains[2]).max(latencies.l3);
    model.config.latencies.l1 = fitted_l1(&mut model, size, seed);
    let latencies = &mut model.config.latencies;
    latencies.atomic = cycles(additions(1, size, seed)).saturating_sub(latencies.l1);
    // Cores that share nothing below L3 take a line from each other; hardware threads of one core do not.
    model.is_core_shared = cycles(additions(2, size, seed)) < latencies.l3;
    // A turn is a read of the owner's line and a write to a shared one.
    latencies.transfer = (cycles(in_turn(size, seed)) / 2).max(latencies.l3);
    if model.is_core_shared {
        let [alone, together] = Measured::ALONE_AND_TOGETHER.map(|point| point.natively(size, seed));
        model.config.shared_core_percent = (100.0 * together / alone).max(100.0) as u64;
    }
    let beside = |(point, native_ns): (&Measured, f64)| {
        let simulated_ns = point.simulated(&model, size, seed);
        CalibrationPoint { name: point.name(), native_ns, simulated_ns }
    };
    let points = points.iter().zip(times).map(beside).collect();
    Calibration { config: model.config, is_core_shared: model.is_core_shared, points }
}

/// What an access to L1 costs with the instructions around it, guessed branches among them: the mean over sets that L1 holds.
fn fitted_l1(model: &mut Model, size: &CalibrationSize, seed: u64) -> u64 {
    let mut within = |set: &Measured, l1: u64| {
        model.config.latencies.l1 = l1;
        set.simulated(model, size, seed)
    };
    let fit = |set: &Measured| {
        let (without, with) = (within(set, 0), within(set, 100));
        100.0 * (set.natively(size, seed) - without) / (with - without).max(f64::MIN_POSITIVE)
    };
    let mean = Measured::WITHIN_L1.iter().map(fit).sum::<f64>() / Measured::WITHIN_L1.len() as f64;
    mean.round().max(1.0) as u64
}

impl Display for Calibration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let latencies = &self.config.latencies;
        let ns = |cycles: u64| cycles as f64 / CYCLES_PER_NS as f64;
        writeln!(f, "latencies of this computer, in nanoseconds")?;
        let named = [
            ("L1, with its instructions", latencies.l1),
            ("L2", latencies.l2),
            ("L3", latencies.l3),
            ("memory", latencies.memory),
            ("from another core", latencies.transfer),
            ("an atomic instruction, more", latencies.atomic),
        ];
        for (name, cycles) in named {
            writeln!(f, "  {name:28} {:8.2}", ns(cycles))?;
        }
        let cores = if self.is_core_shared { "share a core" } else { "have a core each" };
        writeln!(f, "two threads {cores}")?;
        writeln!(f, "\n{:66} {:>10} {:>10} {:>9}", "nanoseconds of an operation", "here", "model", "deviation")?;
        for point in &self.points {
            let CalibrationPoint { name, native_ns, simulated_ns } = point;
            writeln!(f, "{name:66} {native_ns:10.1} {simulated_ns:10.1} {:8.1}%", point.deviation())?;
        }
        let near = self.points.iter().filter(|point| point.deviation().abs() <= DEVIATION_MAX).count();
        writeln!(f, "\n{near} of {} points are within {DEVIATION_MAX}%.", self.points.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_time_here_and_on_the_model() {
        let calibration = calibrate(&CalibrationSize::SMALL, 1);
        assert!(calibration.points.len() > 4);
        for point in &calibration.points {
            assert!(point.native_ns > 0.0 && point.simulated_ns > 0.0, "{point:?}");
        }
        let latencies = calibration.config.latencies;
        assert!(latencies.l2 <= latencies.l3 && latencies.l3 <= latencies.memory, "{latencies:?}");
        assert!(calibration.to_string().contains("points are within 25%"), "{calibration}");
    }

    #[test]
    fn a_deviation_is_a_share_of_the_time_here() {
        let point = CalibrationPoint { name: String::new(), native_ns: 80.0, simulated_ns: 100.0 };
        assert!((point.deviation() - 25.0).abs() < 1e-9);
    }
}
