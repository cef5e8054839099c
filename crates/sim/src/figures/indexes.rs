//! Table 1 and figures 3 to 7, 9 and 10 of tsx-index: elided latches of a B+tree and of the Delta Storage Index.

use latches::elision::{AbortCause, RetryPolicy};

use super::figure::{Claim, Figure, Series};
use super::plan::{Entry, Scale};
use crate::machine::{Core, MachineConfig, Pinning};
use crate::random::Random;
use crate::sections::{Elision, Way};
use crate::structures::IndexKind;
use crate::workloads::{FilledIndex, IndexWorkload, Outcome};

pub(super) const ENTRIES: &[Entry] = &[
    Entry { name: "tsx-table-1", about: "How likely two operations on an index conflict", make: conflicts },
    Entry { name: "tsx-3", about: "The Delta Storage Index under a reader-writer latch", make: delta_latches },
    Entry { name: "tsx-4", about: "The B+tree under a reader-writer latch", make: bplus_latches },
    Entry { name: "tsx-5", about: "The B+tree with elision", make: bplus_elided },
    Entry { name: "tsx-6", about: "The Delta Storage Index with elision", make: delta_elided },
    Entry { name: "tsx-7", about: "How likely a cache overflows", make: overflows },
    Entry { name: "tsx-9", about: "The Delta Storage Index, tuned for elision", make: tuned },
    Entry { name: "tsx-10", about: "The tuned index by thread count", make: tuned_by_threads },
];

/// Several attempts before the latch is taken; the paper does not say how many. With three, as many lookups of the original index take
/// it as the paper counted (section 4.3: 2.5%).
const TSX_R: Way = Way::Elided(Elision::with(RetryPolicy::attempts_of(3)));
const TSX_H: Way = Way::Elided(Elision::HLE);

fn filled(kind: IndexKind, scale: &Scale) -> FilledIndex {
    FilledIndex::new(kind, if scale.is_small { 100_000 } else { 2_000_000 }, scale.seed)
}

/// A run with so many threads; on the machine with transactions every core gets one before any gets two.
fn run(
    filled: &FilledIndex,
    config: MachineConfig,
    threads: usize,
    insert_percent: u64,
    way: Way,
    scale: &Scale,
) -> Outcome {
    let cores: Vec<Core> = Pinning::FillSocket.cores(&config, threads);
    run_on(filled, config, cores, (insert_percent, way), scale)
}

fn run_on(
    filled: &FilledIndex,
    config: MachineConfig,
    cores: Vec<Core>,
    (insert_percent, way): (u64, Way),
    scale: &Scale,
) -> Outcome {
    let workload =
        IndexWorkload { config, cores, insert_percent, way, measured_us: scale.measured_us, seed: scale.seed };
    workload.run(filled)
}

fn conflicts(_: &Scale) -> Figure {
    // The root of the average tree has 16 children, all other nodes between 15 and 31, and a node is filled by 69%.
    const PAPER: [f64; 5] = [5.14e-6, 5.52e-6, 5.94e-6, 6.39e-6, 4.78e-6];
    let access = |level: i32| if level == 4 { 1.0 } else { 1.0 / (16.0 * 23f64.powi(3 - level)) };
    let split = |level: i32| 1.0 / (0.69 * 31.0f64).powi(level);
    let line = |name: &str, of: &dyn Fn(i32) -> f64| {
        Series::of(name, (0..5).map(|level| (f64::from(level), of(level))).collect())
    };
    let both = line("P_C", &|level| access(level) * split(level));
    let error = both.points.iter().zip(PAPER).map(|(point, paper)| (point.1 / paper - 1.0).abs()).fold(0.0, f64::max);
    let claims = vec![
        Claim::new(
            "P_C of all five levels as published",
            format!("off by {:.1}% at most", error * 100.0),
            error < 0.01,
        ),
        Claim::new("at most 6.39e-6", format!("{:.2e}", both.max()), (both.max() / 6.39e-6 - 1.0).abs() < 0.01),
    ];
    let title = "tsx-index, table 1: conflicts of an insert with a read, branching 31, height 5".to_owned();
    let series = vec![line("P_ACCESS", &access), line("P_S", &split), both];
    Figure { title, x: "level", y: "probability", series, claims }
}

/// Figures 3 and 4: a reader-writer latch by thread count and inserts on one socket, and readers on two.
fn under_latches(kind: IndexKind, title: &str, scale: &Scale) -> Figure {
    let index = filled(kind, scale);
    let config = MachineConfig::TWO_E5_2680;
    let alone = run(&index, config, 1, 0, Way::ReadWrite, scale).rate();
    let rate =
        |threads: usize, percent: u64, way: Way| run(&index, config, threads, percent, way, scale).rate() / alone;
    let mut series = Vec::new();
    let some: &[usize] = if scale.is_small { &[1, 8] } else { &[1, 2, 4, 8] };
    for percent in [0, 5, 20, 100] {
        let points = some.iter().map(|&threads| (threads as f64, rate(threads, percent, Way::ReadWrite))).collect();
        series.push(Series::of(format!("a: RW latch, {percent}% inserts"), points));
    }
    let percents: &[u64] = if scale.is_small { &[0, 100] } else { &[0, 5, 20, 50, 100] };
    for (name, way) in
        [("b: RW latch by % inserts, 8 threads", Way::ReadWrite), ("b: spin latch by % inserts, 8 threads", Way::Spin)]
    {
        series
            .push(Series::of(name, percents.iter().map(|&percent| (percent as f64, rate(8, percent, way))).collect()));
    }
    let many: &[usize] = if scale.is_small { &[1, 8, 16] } else { &[1, 2, 4, 8, 16, 32] };
    for (name, way) in [("c: RW latch, reads", Way::ReadWrite), ("c: spin latch, reads", Way::Spin)] {
        let cores = |threads: usize| -> Vec<Core> {
            // Sixteen threads have a core each; only then come second threads of cores.
            (0..threads).map(|thread| thread % 16).collect()
        };
        let of =
            |&threads: &usize| (threads as f64, run_on(&index, config, cores(threads), (0, way), scale).rate() / alone);
        series.push(Series::of(name, many.iter().map(of).collect()));
    }
    let claims = latch_claims(&series);
    Figure { title: title.to_owned(), x: "threads or % inserts", y: "speedup over one reader", series, claims }
}

fn latch_claims(series: &[Series]) -> Vec<Claim> {
    let reads = &series[6];
    let (eight, sixteen) = (reads.at(8.0), reads.at(16.0));
    vec![
        Claim::new(
            "readers scale on one socket",
            format!("{:.1} at 8 threads", series[0].at(8.0)),
            series[0].at(8.0) > 3.5,
        ),
        Claim::new(
            "already 5% inserts degrade performance",
            format!("{:.1} instead of {:.1} at 8 threads", series[1].at(8.0), series[0].at(8.0)),
            series[1].at(8.0) < 0.8 * series[0].at(8.0),
        ),
        Claim::new(
            "with inserts alone the latch is as slow as a spin latch",
            format!("{:.1} and {:.1}", series[4].at(100.0), series[5].at(100.0)),
            series[4].at(100.0) < 1.5 * series[5].at(100.0),
        ),
        Claim::new(
            "from 8 threads on one socket to 16 on two readers no longer scale",
            format!("{eight:.1} and {sixteen:.1}"),
            sixteen < 1.5 * eight,
        ),
    ]
}

fn delta_latches(scale: &Scale) -> Figure {
    under_latches(IndexKind::Delta, "tsx-index, figure 3: Delta Storage Index, 2 x E5-2680", scale)
}

fn bplus_latches(scale: &Scale) -> Figure {
    under_latches(IndexKind::BPlus, "tsx-index, figure 4: B+tree, 2 x E5-2680", scale)
}

/// Performance over that of the spin latch with lookups, by the share of inserts, for 4 and 8 threads; the outcomes beside.
struct Elisions {
    series: Vec<Series>,
    outcomes: Vec<(String, u64, Outcome)>,
}

impl Elisions {
    fn measure(kind: IndexKind, scale: &Scale, ways: &[(&str, Way)]) -> Self {
        let index = filled(kind, scale);
        let config = MachineConfig::I7_4770;
        let percents: &[u64] = if scale.is_small { &[0, 100] } else { &[0, 2, 5, 20, 50, 100] };
        let mut all = Elisions { series: Vec::new(), outcomes: Vec::new() };
        for threads in [4, 8] {
            let base = run(&index, config, threads, 0, Way::Spin, scale).rate();
            for &(name, way) in ways {
                let name = format!("{threads} threads, {name}");
                let mut line = Series::new(name.as_str());
                for &percent in percents {
                    let outcome = run(&index, config, threads, percent, way, scale);
                    line.points.push((percent as f64, outcome.rate() / base));
                    all.outcomes.push((name.clone(), percent, outcome));
                }
                all.series.push(line);
            }
        }
        all
    }

    fn at(&self, name: &str, percent: u64) -> f64 {
        let line = self.series.iter().find(|line| line.name == name);
        line.map_or(f64::NAN, |line| line.at(percent as f64))
    }

    fn outcome(&self, name: &str, percent: u64) -> &Outcome {
        let found = self.outcomes.iter().find(|(line, at, _)| line == name && *at == percent);
        &found.unwrap_or(&self.outcomes[0]).2
    }

    /// The share of sections that took the latch, in percent.
    fn fall_backs(&self, name: &str, percent: u64) -> f64 {
        self.outcome(name, percent).fall_back_percent()
    }
}

const WAYS: [(&str, Way); 5] = [
    ("spin latch", Way::Spin),
    ("RW latch", Way::ReadWrite),
    ("TSX-H", TSX_H),
    ("TSX-R", TSX_R),
    ("no concurrency control", Way::Unsynchronized),
];

fn bplus_elided(scale: &Scale) -> Figure {
    let all = Elisions::measure(IndexKind::BPlus, scale, &WAYS);
    let four = |name: &str, percent| all.at(&format!("4 threads, {name}"), percent);
    let eight = |name: &str, percent| all.at(&format!("8 threads, {name}"), percent);
    let claims = vec![
        Claim::new(
            "elision is better than the RW latch over the whole range",
            format!(
                "TSX-R {:.1} and RW {:.1} with inserts alone, {:.1} and {:.1} with lookups",
                eight("TSX-R", 100),
                eight("RW latch", 100),
                eight("TSX-R", 0),
                eight("RW latch", 0)
            ),
            eight("TSX-R", 100) > eight("RW latch", 100)
                && eight("TSX-R", 0) > 0.95 * eight("RW latch", 0)
                && four("TSX-R", 100) > four("RW latch", 100),
        ),
        Claim::new(
            "it is close to no concurrency control",
            format!(
                "{:.0}% of it with 4 threads, {:.0}% with 8, inserts alone",
                100.0 * four("TSX-R", 100) / four("no concurrency control", 100),
                100.0 * eight("TSX-R", 100) / eight("no concurrency control", 100)
            ),
            four("TSX-R", 100) > 0.7 * four("no concurrency control", 100),
        ),
        Claim::new(
            "TSX-H is noticeably slower than TSX-R with 8 threads",
            format!("{:.1} and {:.1} with inserts alone", eight("TSX-H", 100), eight("TSX-R", 100)),
            eight("TSX-H", 100) < 0.95 * eight("TSX-R", 100),
        ),
    ];
    let title = "tsx-index, figure 5: B+tree with elision, i7-4770".to_owned();
    Figure { title, x: "% inserts", y: "performance over the spin latch with lookups", series: all.series, claims }
}

fn delta_elided(scale: &Scale) -> Figure {
    let all = Elisions::measure(IndexKind::Delta, scale, &WAYS);
    let eight = |name: &str, percent| all.at(&format!("8 threads, {name}"), percent);
    let (reads, inserts) = (all.fall_backs("8 threads, TSX-R", 0), all.fall_backs("8 threads, TSX-R", 100));
    let overflows = all.outcome("8 threads, TSX-R", 0).cause_percent(AbortCause::Overflow);
    let claims = vec![
        Claim::new(
            "with lookups alone 2.5% of the traversals take the latch, by capacity",
            format!("{reads:.1}%; {overflows:.0}% of the aborts are overflows"),
            (1.2..5.0).contains(&reads) && overflows > 50.0,
        ),
        Claim::new(
            "so TSX-R loses to the RW latch there",
            format!("{:.2} and {:.2}", eight("TSX-R", 0), eight("RW latch", 0)),
            eight("TSX-R", 0) < eight("RW latch", 0),
        ),
        Claim::new("with inserts alone 75% take the latch", format!("{inserts:.0}%"), inserts > 35.0),
        Claim::new(
            "TSX-H, which does not retry, suffers most",
            format!("{:.2} and TSX-R {:.2} with lookups", eight("TSX-H", 0), eight("TSX-R", 0)),
            eight("TSX-H", 0) < 0.8 * eight("TSX-R", 0),
        ),
        Claim::new(
            "the gap to no concurrency control is large",
            format!(
                "{:.0}% of it with inserts alone",
                100.0 * eight("TSX-R", 100) / eight("no concurrency control", 100)
            ),
            eight("TSX-R", 100) < 0.6 * eight("no concurrency control", 100),
        ),
    ];
    let title = "tsx-index, figure 6: Delta Storage Index with elision, i7-4770".to_owned();
    Figure { title, x: "% inserts", y: "performance over the spin latch with lookups", series: all.series, claims }
}

fn overflows(scale: &Scale) -> Figure {
    let trials = if scale.is_small { 500 } else { 5_000 };
    let mut random = Random::new(scale.seed);
    let mut probability = |ways: u32, lines: u64| {
        let overflows = (0..trials).filter(|_| {
            let mut sets = [0u32; 64];
            (0..lines).any(|_| {
                let set = &mut sets[random.below(64) as usize];
                *set += 1;
                *set > ways
            })
        });
        overflows.count() as f64 / f64::from(trials)
    };
    let counts = [10, 20, 40, 47, 53, 80, 93, 120, 160, 186, 213, 260, 320, 426, 512];
    let mut line = |name: &str, ways| {
        Series::of(name, counts.iter().map(|&lines| (lines as f64, probability(ways, lines))).collect())
    };
    let (whole, half) = (line("8 ways", 8), line("4 ways", 4));
    let claims = vec![
        Claim::new("93 lines: small for 8 ways", format!("{:.2}", whole.at(93.0)), whole.at(93.0) < 0.1),
        Claim::new(
            "93 lines: about 60% for 4 ways",
            format!("{:.2}", half.at(93.0)),
            (0.45..0.75).contains(&half.at(93.0)),
        ),
        Claim::new(
            "213 lines: significant for both",
            format!("{:.2} and {:.2}", whole.at(213.0), half.at(213.0)),
            whole.at(213.0) > 0.2,
        ),
        Claim::new("47 lines: less than 10% for 4 ways", format!("{:.2}", half.at(47.0)), half.at(47.0) < 0.1),
    ];
    let title = "tsx-index, figure 7: overflow of a cache of 64 sets by random lines".to_owned();
    Figure { title, x: "lines", y: "probability", series: vec![whole, half], claims }
}

fn tuned(scale: &Scale) -> Figure {
    let before = Elisions::measure(IndexKind::Delta, scale, &[("RW latch", Way::ReadWrite), ("TSX-R", TSX_R)]);
    let after = Elisions::measure(
        IndexKind::TunedDelta,
        scale,
        &[("tuned TSX-R", TSX_R), ("tuned, no concurrency control", Way::Unsynchronized)],
    );
    // Both are over the spin latch of their own index: bring the tuned ones to that of the original.
    let base = |all: &Elisions, name: &str| all.outcome(name, 0).rate() / all.at(name, 0);
    let mut tuned_series = after.series.clone();
    for line in &mut tuned_series {
        let factor = base(&after, &line.name) / base(&before, &format!("{}RW latch", &line.name[..11]));
        line.points.iter_mut().for_each(|point| point.1 *= factor);
    }
    let at = |name: &str, percent: f64| {
        tuned_series.iter().find(|line| line.name == name).map_or(f64::NAN, |line| line.at(percent))
    };
    let (speed, best) = (at("8 threads, tuned TSX-R", 100.0), before.at("8 threads, RW latch", 100));
    let (reads, reads_before) = (at("8 threads, tuned TSX-R", 0.0), before.at("8 threads, TSX-R", 0));
    let (fall_backs, fall_backs_before) =
        (after.fall_backs("8 threads, tuned TSX-R", 100), before.fall_backs("8 threads, TSX-R", 100));
    let bound = at("8 threads, tuned, no concurrency control", 100.0);
    let overflow = |all: &Elisions, name: &str| {
        let outcome = all.outcome(name, 0);
        outcome.counters.aborts[AbortCause::Overflow as usize] as f64 * 100.0 / outcome.counters.begins as f64
    };
    let (lost, lost_before) = (overflow(&after, "8 threads, tuned TSX-R"), overflow(&before, "8 threads, TSX-R"));
    let (took, took_before) = (after.fall_backs("8 threads, tuned TSX-R", 0), before.fall_backs("8 threads, TSX-R", 0));
    let claims = vec![
        Claim::new(
            "4.6 times the RW latch with inserts alone, 8 threads",
            format!("{:.1} times", speed / best),
            (2.3..9.2).contains(&(speed / best)),
        ),
        Claim::new(
            "1.3% take the latch with inserts alone, instead of 75%",
            format!("{fall_backs:.1}% instead of {fall_backs_before:.0}%"),
            fall_backs < 0.2 * fall_backs_before,
        ),
        Claim::new(
            "capacity aborts under the shared L1 are gone: lookups hardly take the latch, instead of 2.5%",
            format!(
                "{took:.2}% instead of {took_before:.1}%; {lost:.0}% of the transactions overflow instead of {lost_before:.0}%"
            ),
            took < 0.2 * took_before && lost < 0.5 * lost_before,
        ),
        Claim::new(
            "it is better with lookups alone too",
            format!("{reads:.1} and {reads_before:.1}"),
            reads > reads_before,
        )
        .or_because("a search by halves waits for 16 misses one after the other, the one from the left has its 36 on their way together"),
        Claim::new(
            "close to no concurrency control",
            format!("{:.0}% of it", 100.0 * speed / bound),
            speed > 0.6 * bound,
        ),
    ];
    let mut series = before.series;
    series.extend(tuned_series);
    let title = "tsx-index, figure 9: Delta Storage Index tuned for elision, i7-4770".to_owned();
    Figure { title, x: "% inserts", y: "performance over the spin latch with lookups", series, claims }
}

fn tuned_by_threads(scale: &Scale) -> Figure {
    let (plain, tuned) = (filled(IndexKind::Delta, scale), filled(IndexKind::TunedDelta, scale));
    let config = MachineConfig::I7_4770;
    let mut series = Vec::new();
    for percent in [0, 100] {
        let alone = run(&plain, config, 1, percent, Way::ReadWrite, scale).rate();
        for (name, index, way) in [("RW latch", &plain, Way::ReadWrite), ("TSX-R, tuned", &tuned, TSX_R)] {
            let of = |threads: usize| (threads as f64, run(index, config, threads, percent, way, scale).rate() / alone);
            series.push(Series::of(format!("{name}, {percent}% inserts"), [1, 2, 4, 8].map(of).to_vec()));
        }
    }
    let claims = vec![
        Claim::new(
            "with inserts alone TSX-R scales and the RW latch does not",
            format!("{:.1} and {:.1} at 8 threads", series[3].at(8.0), series[2].at(8.0)),
            series[3].at(8.0) > 3.0 * series[2].at(8.0),
        ),
        Claim::new(
            "TSX-R scales from 4 threads to 8 on the same cores",
            format!("{:.1} and {:.1}", series[3].at(4.0), series[3].at(8.0)),
            series[3].at(8.0) > 1.1 * series[3].at(4.0),
        ),
    ];
    let title = "tsx-index, figure 10: tuned Delta Storage Index by thread count, i7-4770".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread under the RW latch", series, claims }
}
