//! The model beside this computer: programs run on both, after the model's latencies were set to what this computer shows.
//!
//! ```text
//! size        how large the runs are
//! rounds      short rounds on this computer, of which those count in which no thread lost its processor
//! programs    what runs here alone: chains of loads, atomic additions, lines that two threads pass to each other
//! points      sets under one and two threads: nanoseconds of an operation, here and on the model
//! shapes      the caches of this computer
//! here        all times of this computer, in passes
//!
//! chain of lines in L2, L3, memory -> l2, l3, memory        additions to a line -> atomic
//! loads of what the other thread changed -> transfer        two threads that write in turn -> queued
//! additions after such loads -> lines_migrate               sets within L1 -> l1, with the instructions around a load
//! ```
//!
//! The points are not what was calibrated: they are of larger sets, of other structures, with updates, and with two threads. A time on
//! this computer is the median of many short rounds, and beside it stands how far they lie from each other.

mod here;
mod points;
mod programs;
mod rounds;
mod shapes;
mod size;

use std::fmt::{self, Display, Formatter};

use crate::machine::{CacheShape, MachineConfig};
use here::Here;
use points::{Measured, Model};
use shapes::Shapes;
use size::CYCLES_PER_NS;

pub use size::CalibrationSize;

/// Beyond this a point does not agree, in percent.
pub const DEVIATION_MAX: f64 = 25.0;

/// By how much more than the fastest tenth of the rounds nine tenths of them may take here, in percent. A point whose rounds differ more
/// is told, but says nothing: other programs use what it needs.
pub const SPREAD_MAX: f64 = 30.0;

/// A time on this computer and on the model, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationPoint {
    /// What was run.
    pub name: String,
    /// Here: the median of the rounds.
    pub native_ns: f64,
    /// What a tenth of the rounds does not exceed.
    pub low: f64,
    /// What nine tenths do not exceed.
    pub high: f64,
    /// How many rounds counted.
    pub rounds: usize,
    /// On the model.
    pub simulated_ns: f64,
}

impl CalibrationPoint {
    /// By how much the model's time is off, in percent of this computer's.
    pub fn deviation(&self) -> f64 {
        100.0 * (self.simulated_ns / self.native_ns - 1.0)
    }

    /// Whether its rounds here differ too much to say what its time is, or none of them counted.
    pub fn varies(&self) -> bool {
        self.rounds == 0 || self.high > self.low * (1.0 + SPREAD_MAX / 100.0)
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
fn uncalibrated(shapes: Shapes) -> MachineConfig {
    let mut config = MachineConfig::free(1, 2, 1);
    config.name = "this computer";
    config.mhz = 1_000 * CYCLES_PER_NS;
    config.l1 = shapes.l1;
    config.l2 = shapes.l2;
    config.l3 = CacheShape::kib(32_768, 16);
    config.latencies.issue = 0;
    config.slack = 0;
    config.latencies.hop = 0;
    config.transactions.interrupt_period = 0;
    config.transactions.replacement_noise_ppm = 0;
    config
}

/// Two threads whose sets lie in L1 disturb each other so much if they share a core, and hardly if not.
const SHARED_CORE: f64 = 1.15;

/// Sets the latencies of a model to those of this computer, and runs the points on both. Takes seconds.
pub fn calibrate(size: &CalibrationSize, seed: u64) -> Calibration {
    let points = points::chosen(size);
    let shapes = Shapes::here();
    let here = Here::measure(&points, shapes, size, seed);
    let mut model = Model { config: uncalibrated(shapes), is_core_shared: false };
    let latencies = &mut model.config.latencies;
    let [l2, l3, memory] = here.loads.each_ref().map(|times| cycles(times.median()));
    latencies.l2 = l2;
    latencies.l3 = l3.max(latencies.l2);
    latencies.memory = memory.max(latencies.l3);
    model.config.latencies.l1 = fitted_l1(&mut model, &here, size, seed);
    let latencies = &mut model.config.latencies;
    latencies.atomic = cycles(here.addition.median()).saturating_sub(latencies.l1);
    latencies.transfer = cycles(here.passed_load.median());
    latencies.queued = cycles(here.turn.median()).min(latencies.transfer);
    model.config.lines_migrate = here.passed_addition.median() < 2.0 * here.addition.median();
    let [alone, together] = Measured::ALONE_AND_TOGETHER.map(|point| here.of(&point).median());
    model.is_core_shared = together > SHARED_CORE * alone;
    if model.is_core_shared {
        model.config.shared_core_percent = (100.0 * together / alone) as u64;
    }
    let beside = |point: &Measured| {
        let times = here.of(point);
        let simulated_ns = point.simulated(&model, here.of(&point.apart()).median(), size, seed);
        let [low, high] = [0.1, 0.9].map(|share| times.quantile(share));
        CalibrationPoint {
            name: point.name(),
            native_ns: times.median(),
            low,
            high,
            rounds: times.count(),
            simulated_ns,
        }
    };
    let points = points.iter().map(beside).collect();
    Calibration { config: model.config, is_core_shared: model.is_core_shared, points }
}

/// What an access to L1 costs with the instructions around it, guessed branches among them: the mean over sets that L1 holds.
fn fitted_l1(model: &mut Model, here: &Here, size: &CalibrationSize, seed: u64) -> u64 {
    let mut within = |set: &Measured, l1: u64| {
        model.config.latencies.l1 = l1;
        set.simulated(model, here.of(&set.apart()).median(), size, seed)
    };
    let fit = |set: &Measured| {
        let (without, with) = (within(set, 0), within(set, 100));
        100.0 * (here.of(set).median() - without) / (with - without).max(f64::MIN_POSITIVE)
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
            ("the same, asked for before", latencies.queued),
            ("an atomic instruction, more", latencies.atomic),
        ];
        for (name, cycles) in named {
            writeln!(f, "  {name:28} {:8.2}", ns(cycles))?;
        }
        let cores = if self.is_core_shared { "share a core" } else { "have a core each" };
        let lines = if self.config.lines_migrate { "takes it over" } else { "shares it" };
        writeln!(f, "two threads {cores}; a core that reads what another has changed {lines}")?;
        let [here, rounds, model] = ["here", "8 of 10 rounds", "model"];
        writeln!(f, "\n{:66} {here:>8} {rounds:>16} {model:>8} {:>9}", "nanoseconds of an operation", "deviation")?;
        for point in &self.points {
            let CalibrationPoint { name, native_ns, low, high, simulated_ns, .. } = point;
            let spread = format!("{low:.0} to {high:.0}");
            let varies = if point.varies() { "  varies here" } else { "" };
            writeln!(
                f,
                "{name:66} {native_ns:8.1} {spread:>16} {simulated_ns:8.1} {:8.1}%{varies}",
                point.deviation()
            )?;
        }
        let stable: Vec<&CalibrationPoint> = self.points.iter().filter(|point| !point.varies()).collect();
        let near = stable.iter().filter(|point| point.deviation().abs() <= DEVIATION_MAX).count();
        let (count, varying) = (stable.len(), self.points.len() - stable.len());
        write!(f, "\n{near} of {count} points are within {DEVIATION_MAX}%")?;
        let why = "as their rounds differ by more than";
        match varying {
            0 => writeln!(f, "."),
            _ => writeln!(f, "; {varying} more say nothing now, {why} {SPREAD_MAX}% among themselves."),
        }
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
    fn a_point_whose_rounds_differ_by_more_than_allowed_says_nothing() {
        let point = |high: f64, rounds: usize| {
            let (low, native_ns, simulated_ns) = (100.0, 105.0, 100.0);
            CalibrationPoint { name: String::new(), native_ns, low, high, rounds, simulated_ns }
        };
        assert!(!point(129.0, 9).varies() && point(131.0, 9).varies() && point(129.0, 0).varies());
        let points = vec![point(129.0, 9), point(131.0, 9)];
        let told = Calibration { config: MachineConfig::I7_4770, is_core_shared: false, points }.to_string();
        assert!(told.contains("1 of 1 points are within 25%; 1 more say nothing"), "{told}");
    }

    #[test]
    fn a_deviation_is_a_share_of_the_time_here() {
        let point = CalibrationPoint {
            name: String::new(),
            native_ns: 80.0,
            simulated_ns: 100.0,
            low: 0.0,
            high: 0.0,
            rounds: 0,
        };
        assert!((point.deviation() - 25.0).abs() < 1e-9);
    }
}
