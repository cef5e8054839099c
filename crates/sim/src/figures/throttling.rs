//! Figures 10 to 13, 16 and 17 of tle-multisocket: throttling by socket, for all structures, placements and mixtures.
//! Figure 9 is its code, which `latches::throttle` has.

use super::figure::{Claim, Figure, Series};
use super::plan::{Algorithm, Entry, Line, Scale, Structure, prepare, run, speedups};
use crate::machine::{Core, MachineConfig, Pinning};
use crate::structures::AvlTree;
use crate::workloads::{Group, Operations, Outcome, SetWorkload, Throttling};
use latches::throttle::Strategy;

pub(super) const ENTRIES: &[Entry] = &[
    Entry { name: "tle-10", about: "What the length of a quantum costs TLEShare", make: quanta },
    Entry { name: "tle-11", about: "AVL trees under all algorithms", make: avl_trees },
    Entry { name: "tle-12", about: "Threads placed in turn, and not pinned", make: placements },
    Entry { name: "tle-13", about: "Two trees at once", make: two_trees },
    Entry { name: "tle-16", about: "Leaf-oriented trees under all algorithms", make: leaf_trees },
    Entry { name: "tle-17", about: "Skip lists under all algorithms", make: skip_lists },
];

/// Key ranges and shares of updates of figures 10, 11, 16 and 17.
const WORKLOADS: [(u64, u64); 6] = [(2_048, 0), (2_048, 20), (2_048, 100), (131_072, 0), (131_072, 20), (131_072, 100)];

fn workload_name((range, percent): (u64, u64)) -> String {
    format!("{}K keys, {percent}% updates", range / 1_024)
}

fn quanta(scale: &Scale) -> Figure {
    let quanta: &[u64] = if scale.is_small { &[20, 200] } else { &[20, 50, 100, 200, 400] };
    let workloads: &[(u64, u64)] = if scale.is_small { &[(2_048, 100)] } else { &WORKLOADS };
    let mut series = Vec::new();
    for &(range, percent) in workloads {
        let line = Line::avl(range, percent);
        let starve = Line { algorithm: Algorithm::Starve, ..line };
        let mut starved = starve.workload(scale, 72);
        starved.measured_us = 400;
        let best = run(Structure::Avl, &starved).rate();
        let of = |&quantum_us: &u64| {
            let mut workload = starved.clone();
            let mode_us = workload.throttling.map_or(50, |throttling| throttling.mode_us);
            workload.throttling = Some(Throttling { strategy: Strategy::Share, mode_us, quantum_us });
            (quantum_us as f64, run(Structure::Avl, &workload).rate() / best)
        };
        series.push(Series::of(workload_name((range, percent)), quanta.iter().map(of).collect()));
    }
    let contended = series.iter().find(|line| line.name.starts_with("2K keys, 100%")).cloned();
    let contended = contended.unwrap_or_else(|| Series::new(""));
    let ends = (contended.points[0].1, contended.points[contended.points.len() - 1].1);
    let claims = vec![
        Claim::new(
            "there is little overhead with long quanta",
            format!("{:.2} of TLEStarve under contention with the longest", ends.1),
            ends.1 > 0.75,
        ),
        Claim::new(
            "short quanta cost more under high contention",
            format!("{:.2} with the shortest", ends.0),
            ends.0 < ends.1,
        ),
    ];
    let title = "tle-multisocket, figure 10: TLEShare over TLEStarve by quantum (the paper's are 100 times as long), 72 threads";
    Figure { title: title.to_owned(), x: "microseconds of a quantum", y: "relative performance", series, claims }
}

/// All algorithms on all workloads of a structure.
fn all_algorithms(scale: &Scale, structure: Structure, workloads: &[(u64, u64)]) -> Vec<Series> {
    let threads: &[usize] = if scale.is_small { &[36, 72] } else { &[1, 8, 18, 36, 37, 54, 72] };
    let mut series = Vec::new();
    for &(range, percent) in workloads {
        let line = |algorithm: Algorithm| {
            let name = format!("{}, {}", workload_name((range, percent)), algorithm.name());
            (name, Line { structure, algorithm, ..Line::avl(range, percent) })
        };
        let lines: Vec<(String, Line)> = Algorithm::some(scale).iter().map(|&algorithm| line(algorithm)).collect();
        series.extend(speedups(scale, threads, &lines));
    }
    series
}

/// What a line has at 36 and at 72 threads.
fn ends(series: &[Series], workload: (u64, u64), algorithm: Algorithm) -> (f64, f64) {
    let name = format!("{}, {}", workload_name(workload), algorithm.name());
    let line = series.iter().find(|line| line.name == name);
    line.map_or((f64::NAN, f64::NAN), |line| (line.at(36.0), line.at(72.0)))
}

fn told((one, two): (f64, f64)) -> String {
    format!("{one:.1} at 36 threads, {two:.1} at 72")
}

/// What the paper says of every structure under contention.
fn contention_claims(series: &[Series]) -> Vec<Claim> {
    let workload = (2_048, 100);
    let (plain, share) = (ends(series, workload, Algorithm::Tle), ends(series, workload, Algorithm::Share));
    let starve = ends(series, workload, Algorithm::Starve);
    vec![
        Claim::new("TLE falls on two sockets in the small set with updates only", told(plain), plain.1 < 0.7 * plain.0),
        Claim::new("TLEShare has little or no degradation", told(share), share.1 > 0.7 * share.0),
        Claim::new("TLEStarve neither", told(starve), starve.1 > 0.7 * starve.0),
    ]
}

fn avl_trees(scale: &Scale) -> Figure {
    let workloads: &[(u64, u64)] = if scale.is_small { &[(2_048, 0), (2_048, 100)] } else { &WORKLOADS };
    let series = all_algorithms(scale, Structure::Avl, workloads);
    let mut claims = contention_claims(&series);
    let reads: Vec<(f64, f64)> =
        Algorithm::some(scale).iter().map(|&algorithm| ends(&series, (2_048, 0), algorithm)).collect();
    let slowest = reads.iter().map(|ends| ends.1 / ends.0).fold(f64::INFINITY, f64::min);
    claims.push(Claim::new(
        "lookups alone scale under all algorithms",
        format!("72 threads have {slowest:.1} times the performance of 36 at least"),
        slowest > 1.5,
    ));
    if !scale.is_small {
        let few = ends(&series, (2_048, 20), Algorithm::Tle);
        claims.push(Claim::new("TLE fails to scale in the small tree with 20% updates", told(few), few.1 < few.0));
        let large = ends(&series, (131_072, 20), Algorithm::Tle);
        claims.push(Claim::new("scaling is better in the large tree", told(large), large.1 / large.0 > few.1 / few.0));
    }
    let title = "tle-multisocket, figure 11: AVL trees".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread", series, claims }
}

fn leaf_trees(scale: &Scale) -> Figure {
    let workloads: &[(u64, u64)] = if scale.is_small { &[(2_048, 100)] } else { &WORKLOADS };
    let series = all_algorithms(scale, Structure::LeafTree, workloads);
    let (plain, share) = (ends(&series, (2_048, 100), Algorithm::Tle), ends(&series, (2_048, 100), Algorithm::Share));
    let claims = vec![
        Claim::new(
            "with updates only TLE is twice worse at 72 threads than at 36",
            told(plain),
            plain.1 < 0.75 * plain.0,
        ),
        Claim::new("TLEShare is similar at both", told(share), share.1 > 0.75 * share.0),
    ];
    let title = "tle-multisocket, figure 16: unbalanced leaf-oriented trees".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread", series, claims }
}

fn skip_lists(scale: &Scale) -> Figure {
    let workloads: &[(u64, u64)] = if scale.is_small { &[(2_048, 100)] } else { &WORKLOADS };
    let series = all_algorithms(scale, Structure::SkipList, workloads);
    let claims = contention_claims(&series);
    let title = "tle-multisocket, figure 17: skip lists".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread", series, claims }
}

fn placements(scale: &Scale) -> Figure {
    let threads: &[usize] = if scale.is_small { &[1, 2, 36] } else { &[1, 2, 4, 8, 18, 36, 54, 72] };
    let mut series = Vec::new();
    for (name, pinning) in [("alternating", Pinning::Alternate), ("not pinned", Pinning::Free { seed: scale.seed })] {
        let line = |algorithm: Algorithm| {
            (format!("{name}, {}", algorithm.name()), Line { pinning, algorithm, ..Line::avl(2_048, 100) })
        };
        series.extend(speedups(scale, threads, &[Algorithm::Tle, Algorithm::Starve, Algorithm::Share].map(line)));
    }
    let at = |line: usize, threads: f64| series[line].at(threads);
    let claims = vec![
        Claim::new(
            "the benefit of TLEStarve and TLEShare is evident from two threads on",
            format!("at 2 threads TLE {:.2}, TLEStarve {:.2}, TLEShare {:.2}", at(0, 2.0), at(1, 2.0), at(2, 2.0)),
            at(1, 2.0) > 1.2 * at(0, 2.0) && at(2, 2.0) > 1.2 * at(0, 2.0),
        ),
        Claim::new(
            "and is large with many",
            format!("at 36 threads TLE {:.1}, TLEStarve {:.1}, TLEShare {:.1}", at(0, 36.0), at(1, 36.0), at(2, 36.0)),
            at(1, 36.0) > 1.3 * at(0, 36.0) && at(2, 36.0) > 1.2 * at(0, 36.0),
        ),
        Claim::new(
            "both placements give similar graphs",
            format!("TLE has {:.1} and {:.1} at 36 threads", at(0, 36.0), at(3, 36.0)),
            (0.5..2.0).contains(&(at(0, 36.0) / at(3, 36.0))),
        ),
    ];
    let title =
        "tle-multisocket, figure 12: other placements of threads, AVL tree, 100% updates, keys below 2048".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread", series, claims }
}

/// Half of the threads work on the "dumb" tree from both sockets; a quarter works on each half of the "smart" tree, from a
/// socket of its own.
fn smart_and_dumb(scale: &Scale, threads: usize, algorithm: Algorithm) -> Outcome {
    let config = MachineConfig::X5_2;
    let place = |socket: usize, at: usize| -> Core { socket * config.cores_per_socket + at % config.cores_per_socket };
    let quarter = threads / 4;
    let updates = Operations::Updates { percent: 100 };
    let on_both: Vec<Core> = (0..quarter).flat_map(|at| [place(0, at), place(1, at)]).collect();
    let on_one = |socket: usize| (0..quarter).map(|at| place(socket, quarter + at)).collect::<Vec<Core>>();
    let group = |set, keys, cores| Group { set, keys, operations: updates, cores };
    let groups = vec![group(0, 0..2_048, on_both), group(1, 0..1_024, on_one(0)), group(1, 1_024..2_048, on_one(1))];
    let mut workload = SetWorkload {
        groups,
        key_ranges: vec![2_048; 2],
        ..SetWorkload::plain(config, 2_048, 100, 1, Line::avl(2, 0).workload(scale, 1).way)
    };
    prepare(&mut workload, scale, algorithm);
    workload.run::<AvlTree>()
}

/// Half of the threads update a small tree, half look keys of a large tree up; the first 36 run on one socket.
fn updates_and_searches(scale: &Scale, threads: usize, algorithm: Algorithm) -> Outcome {
    let config = MachineConfig::X5_2;
    let cores = Pinning::FillSocket.cores(&config, threads);
    let of = |parity: usize| cores.iter().skip(parity).step_by(2).copied().collect::<Vec<Core>>();
    let group =
        |set, range, percent, cores| Group { set, keys: 0..range, operations: Operations::Updates { percent }, cores };
    let groups = vec![group(0, 2_048, 100, of(0)), group(1, 131_072, 0, of(1))];
    let mut workload = SetWorkload {
        groups,
        key_ranges: vec![2_048, 131_072],
        ..SetWorkload::plain(config, 2_048, 100, 1, Line::avl(2, 0).workload(scale, 1).way)
    };
    prepare(&mut workload, scale, algorithm);
    workload.run::<AvlTree>()
}

fn two_trees(scale: &Scale) -> Figure {
    let threads: &[usize] = if scale.is_small { &[36, 72] } else { &[4, 8, 16, 36, 40, 56, 72] };
    let algorithms = [Algorithm::Tle, Algorithm::Starve, Algorithm::Share];
    let mut series = Vec::new();
    for algorithm in algorithms {
        let mut parts = ["dumb tree", "smart tree", "small updates", "big searches"]
            .map(|part| Series::new(format!("{part}, {}", algorithm.name())));
        for &count in threads {
            let both = smart_and_dumb(scale, count, algorithm);
            parts[0].points.push((count as f64, both.rate_of(0)));
            parts[1].points.push((count as f64, both.rate_of(1) + both.rate_of(2)));
            let mixed = updates_and_searches(scale, count, algorithm);
            parts[2].points.push((count as f64, mixed.rate_of(0)));
            parts[3].points.push((count as f64, mixed.rate_of(1)));
        }
        series.extend(parts);
    }
    let sum = |algorithm: usize, part: usize| {
        let at = |line: usize| series[algorithm * 4 + line].at(72.0);
        at(part) + at(part + 1)
    };
    let compare = |part: usize| {
        let values = (sum(0, part), sum(1, part), sum(2, part));
        let found =
            format!("at 72 threads TLE {:.0}, TLEStarve {:.0}, TLEShare {:.0} M/s", values.0, values.1, values.2);
        (found, values.1 > values.0 && values.2 > values.0)
    };
    let (smart, mixed) = (compare(0), compare(2));
    let (searches, searches_shared) = (series[3].at(72.0), series[11].at(72.0));
    let claims = vec![
        Claim::new("smart and dumb tree: both outperform TLE", smart.0, smart.1),
        Claim::new("small updates and big searches: likewise", mixed.0, mixed.1),
        Claim::new(
            "the searches scale whatever happens to the small tree",
            format!("{searches:.0} M/s with TLE, {searches_shared:.0} with TLEShare at 72 threads"),
            searches_shared > 0.7 * searches,
        ),
    ];
    let title = "tle-multisocket, figure 13: two AVL trees at once".to_owned();
    Figure { title, x: "threads", y: "million operations a second", series, claims }
}
