//! The parts of gpu-contention that need no device: Table 1, and Figures 3, 4 and 9, on the CPU.

use std::fs;
use std::sync::OnceLock;
use std::time::Instant;

use super::Size;
use super::data::zipf;
use super::report::Line;
use crate::contention::{Optimizer, Settings, Use, conflicts};

const BENCH: &str = "gpu.contention";

/// The paper's Table 1: skew, distinct banks, write rounds, read rounds.
const TABLE_1: [(f64, f64, f64, f64); 5] = [
    (0.0, 20.42, 3.54, 3.44),
    (0.25, 20.41, 3.53, 3.42),
    (0.5, 20.36, 3.57, 3.38),
    (0.75, 19.94, 3.81, 3.18),
    (1.0, 18.24, 5.33, 2.77),
];

/// The values of the paper's columns.
pub const VALUES: usize = 1024;

/// The paper's lenient budget: just under 12 places a value.
const LENIENT_PERCENT: usize = 1199;

/// All tables and figures.
pub fn measure(size: Size) -> Vec<Line> {
    let mut lines = table_1(size);
    lines.extend(figure_3(size));
    lines.extend(figure_4(size));
    lines.extend(figure_9(size));
    lines
}

fn table_1(size: Size) -> Vec<Line> {
    let mut lines = Vec::new();
    for (theta, banks, writes, reads) in TABLE_1 {
        let counted = conflicts(&zipf(size.of(1 << 15, 1 << 24), VALUES, theta, 1));
        for (metric, ours, theirs) in [
            ("distinct banks", counted.banks, banks),
            ("write rounds", counted.write_rounds, writes),
            ("read rounds", counted.read_rounds, reads),
        ] {
            let line = Line::counted(BENCH, format!("table 1, theta {theta}"), metric, "", ours);
            lines.push(line.beside(&format!("the paper's {theirs}"), Some(theirs)));
        }
    }
    lines
}

struct Optimized {
    optimizer: Optimizer,
    seconds: f64,
    rounds: (f64, f64),
}

fn optimize(codes: &[u32], values: usize, settings: Settings) -> Optimized {
    let mut optimizer = Optimizer::new(values, settings);
    let mut places = codes.to_vec();
    let begun_s = cpu_seconds();
    optimizer.rewrite(&mut places);
    let seconds = cpu_seconds() - begun_s;
    let (before, after) = (conflicts(codes), conflicts(&places));
    let rounds = match settings.purpose {
        Use::Reads => (before.read_rounds, after.read_rounds),
        Use::Writes | Use::ValuesOnly => (before.write_rounds, after.write_rounds),
    };
    Optimized { optimizer, seconds, rounds }
}

/// The processor time of this thread, so that other programs do not count. Linux reports it; elsewhere it is the
/// clock on the wall.
fn cpu_seconds() -> f64 {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let schedule = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = schedule.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGUN.get_or_init(Instant::now).elapsed().as_secs_f64(), |spent| spent / 1e9)
}

/// Copies a value, for tables of several sizes, uses, windows and skews.
fn figure_3(size: Size) -> Vec<Line> {
    let mut lines = Vec::new();
    for millions in [1, size.of(1, 10), size.of(1, 50)] {
        for theta in [0.0, 0.5, 1.0, 1.5, 2.0] {
            let codes = zipf(millions * size.of(1 << 10, 1_000_000), VALUES, theta, 1);
            for (what, purpose, window) in
                [("reads", Use::Reads, 0), ("writes", Use::Writes, 0), ("writes, window 16", Use::Writes, 16)]
            {
                let settings = Settings { purpose, window, budget_percent: LENIENT_PERCENT };
                let done = optimize(&codes, VALUES, settings);
                let case = format!("figure 3, {what}, {millions} M rows, theta {theta}");
                let copies = done.optimizer.copies_per_value();
                lines.push(Line::counted(BENCH, case.clone(), "copies a value", "", copies));
                lines
                    .push(Line::counted(BENCH, case, "rounds", "", done.rounds.1).beside("plain", Some(done.rounds.0)));
            }
        }
    }
    lines
}

/// Copies a value and values that have any, for columns of several cardinalities.
fn figure_4(size: Size) -> Vec<Line> {
    let mut lines = Vec::new();
    for values in [64, 256, 1024, 4096] {
        let codes = zipf(size.of(1 << 12, 10_000_000), values, 0.0, 1);
        for (what, purpose, window) in
            [("reads", Use::Reads, 0), ("writes", Use::Writes, 0), ("writes, window 16", Use::Writes, 16)]
        {
            let done = optimize(&codes, values, Settings { purpose, window, budget_percent: LENIENT_PERCENT });
            let case = format!("figure 4, {what}, {values} values");
            let optimizer = done.optimizer;
            lines.push(Line::counted(BENCH, case.clone(), "copies a value", "", optimizer.copies_per_value()));
            let replicated = optimizer.replicated_count() as f64;
            lines.push(Line::counted(BENCH, case, "replicated values", "", replicated));
        }
    }
    lines
}

/// The time of the optimization, by window and skew, on one thread (the paper has 16).
fn figure_9(size: Size) -> Vec<Line> {
    let mut lines = Vec::new();
    for theta in [0.0, 1.0, 2.0] {
        let codes = zipf(size.of(1 << 12, 10_000_000), VALUES, theta, 1);
        for window in [0, 4, 16, 64] {
            let settings = Settings { purpose: Use::Writes, window, budget_percent: LENIENT_PERCENT };
            let seconds = optimize(&codes, VALUES, settings).seconds;
            let case = format!("figure 9, window {window}, theta {theta}");
            let rate = codes.len() as f64 / seconds / 1e6;
            let line = Line::counted(BENCH, case, "rate", "M rows a CPU second", rate);
            // A small column is over before the clock has moved.
            lines.push(if size == Size::Small { line.without_times() } else { line });
        }
    }
    lines
}
