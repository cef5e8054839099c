//! How many simulated accesses to memory a core of this computer does in a second, by thread count and share of updates.
//!
//! `cargo run --release -p lstore-sim --example speed`

use std::time::Instant;

use sim::MachineConfig;
use sim::sections::{Elision, Way};
use sim::structures::AvlTree;
use sim::workloads::SetWorkload;

fn main() {
    for (threads, percent, measured_us) in
        [(1, 0, 40_000), (36, 0, 4_000), (72, 0, 2_000), (36, 100, 4_000), (72, 100, 4_000)]
    {
        let way = Way::Elided(Elision::TLE_20);
        let mut workload = SetWorkload::plain(MachineConfig::X5_2, 2_048, percent, threads, way);
        workload.measured_us = measured_us;
        let start = Instant::now();
        let outcome = workload.run::<AvlTree>();
        let rate = outcome.counters.accesses as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!("{threads:3} threads, {percent:3}% updates: {rate:.1} M accesses a second");
    }
}
