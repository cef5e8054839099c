//! try
use latches::throttle::Strategy;
use sim::sections::*;
use sim::structures::*;
use sim::workloads::*;
use sim::*;
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|x| x.parse().unwrap_or(0)).collect();
    let (range, percent) = (a[0], a[1]);
    let mut base = 0.0;
    for threads in [1, 4, 8, 12, 18, 36, 37, 42, 54, 72] {
        let mut line = format!("{threads:3}");
        for (i, way) in [
            Way::Elided(Elision::TLE_20),
            Way::Elided(Elision::SCM),
            Way::Elided(Elision::TLE_20),
            Way::Elided(Elision::TLE_20),
        ]
        .into_iter()
        .enumerate()
        {
            let mut w = SetWorkload::plain(MachineConfig::X5_2, range, percent, threads, way);
            if a.len() > 2 {
                w.measured_us = a[2];
            }
            if i >= 2 {
                w.throttling = Some(Throttling {
                    strategy: if i == 2 { Strategy::Starve } else { Strategy::Share },
                    mode_us: 40,
                    quantum_us: 100,
                });
            }
            let t = std::time::Instant::now();
            let o = w.run::<AvlTree>();
            let s = t.elapsed().as_secs_f64();
            if base == 0.0 {
                base = o.rate();
            }
            line += &format!(
                " | {:6.2} ab {:4.1}% fb {:5.2}% {:.1}M/s",
                o.rate() / base,
                o.abort_percent(),
                o.fall_back_percent(),
                o.counters.accesses as f64 / s / 1e6
            );
        }
        println!("{line}");
    }
}
