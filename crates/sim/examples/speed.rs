//! t
use sim::sections::*;
use sim::structures::*;
use sim::workloads::*;
use sim::*;
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|x| x.parse().unwrap_or(0)).collect();
    let mut w = SetWorkload::plain(MachineConfig::X5_2, a[0], a[1], a[2] as usize, Way::Elided(Elision::TLE_20));
    w.measured_us = a[3];
    if a.len() > 4 {
        w.config.slack = a[4];
    }
    let o = w.run::<AvlTree>();
    println!(
        "{} M accesses, {} M ops, abort {:.1}% fb {:.2}%",
        o.counters.accesses as f64 / 1e6,
        o.operations[0] as f64 / 1e6,
        o.abort_percent(),
        o.fall_back_percent()
    );
}
