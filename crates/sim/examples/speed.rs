//! How many simulated accesses to memory a core of this computer does in a second of its time, by thread count and share of
//! updates.
//!
//! `cargo run --release -p lstore-sim --example speed`

use std::time::Instant;

use sim::MachineConfig;
use sim::sections::{Elision, Way};
use sim::structures::AvlTree;
use sim::workloads::SetWorkload;

/// The time that this thread has had a core, in seconds; where the system does not tell it, the time that has passed.
fn core_seconds(begun: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = told.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    ns.map_or_else(|| begun.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

fn main() {
    let begun = Instant::now();
    let runs = [(1, 0, 40_000), (36, 0, 4_000), (72, 0, 2_000), (36, 100, 4_000), (72, 100, 4_000)];
    for (threads, percent, measured_us) in runs {
        let way = Way::Elided(Elision::TLE_20);
        let mut workload = SetWorkload::plain(MachineConfig::X5_2, 2_048, percent, threads, way);
        workload.measured_us = measured_us;
        let before = core_seconds(begun);
        let outcome = workload.run::<AvlTree>();
        let rate = outcome.counters.accesses as f64 / (core_seconds(begun) - before) / 1e6;
        println!("{threads:3} threads, {percent:3}% updates: {rate:.1} M accesses a second");
    }
}
