//! Figures 3 to 8 of the thread-migration paper: the code of transactions in L1-I, and threads that migrate to it.

use super::figure::{Claim, Figure, Series};
use super::plan::{Entry, Scale};
use crate::instructions::{Migration, MissClasses, Mix, Policy, Replay, ReplayOutcome, Trace, classify, traces};

pub(super) const ENTRIES: &[Entry] = &[
    Entry { name: "migration-3", about: "Instruction misses by cause and size of L1-I", make: code_classes },
    Entry { name: "migration-4", about: "Data misses by cause and size of L1-D", make: data_classes },
    Entry { name: "migration-5", about: "Replacement policies of L1-I", make: policies },
    Entry { name: "migration-6", about: "When a cache is full, and how many tags must match", make: parameters },
    Entry { name: "migration-7", about: "Misses that a thread must have before it leaves", make: recent_misses },
    Entry { name: "migration-8", about: "Threads that stay, migrate in teams, and migrate blindly", make: migrations },
];

/// Types of the wholesaler are below this, those of the brokerage not.
const BROKERAGE: u8 = 16;

/// The transactions of both benchmarks, each with its name: recorded ones if there are any.
fn mixes(scale: &Scale) -> [(String, Vec<Trace>); 2] {
    let mixes = [("TPC-C-like", Mix::TpcC), ("TPC-E-like", Mix::TpcE)];
    mixes.map(|(name, mix)| match &scale.traces {
        Some(recorded) => {
            let is_of = |trace: &&Trace| (trace.kind < BROKERAGE) == (mix == Mix::TpcC);
            (format!("{name}, recorded"), recorded.iter().filter(is_of).cloned().collect())
        }
        None => (format!("{name}, generated"), traces(mix, if scale.is_small { 120 } else { 1_000 }, scale.seed)),
    })
}

/// Misses by cause, for caches with 8 ways.
fn classes(scale: &Scale, is_data: bool) -> Vec<Series> {
    let sizes: &[u32] = if scale.is_small { &[32, 256] } else { &[16, 32, 64, 128, 256, 512] };
    let mut series = Vec::new();
    for (name, mut traces) in mixes(scale) {
        traces.sort_by_key(|trace| trace.kind);
        let by_size: Vec<(f64, MissClasses)> =
            sizes.iter().map(|&kib| (f64::from(kib), classify(&traces, kib, 8, is_data))).collect();
        for (at, part) in ["compulsory", "capacity", "conflict"].iter().enumerate() {
            let of = |classes: &MissClasses| [classes.compulsory, classes.capacity, classes.conflict][at];
            let points = by_size.iter().map(|(kib, classes)| (*kib, of(classes))).collect();
            series.push(Series::of(format!("{name}, {part}"), points));
        }
    }
    series
}

fn code_classes(scale: &Scale) -> Figure {
    let series = classes(scale, false);
    let fits = |capacity: &Series| format!("{:.1} at 32 KB, {:.2} at 256 KB", capacity.at(32.0), capacity.at(256.0));
    let claims = vec![
        Claim::new(
            "TPC-C's code fits into 128 to 256 KB, not into 32",
            fits(&series[1]),
            series[1].at(256.0) < 0.05 * series[1].at(32.0),
        ),
        Claim::new(
            "so does TPC-E's, of a fully associative cache",
            fits(&series[4]),
            series[4].at(256.0) < 0.15 * series[4].at(32.0),
        ),
        Claim::new(
            "most misses at 32 KB are of capacity",
            format!("{:.1} of {:.1}", series[1].at(32.0), (0..3).map(|part| series[part].at(32.0)).sum::<f64>()),
            series[1].at(32.0) > 2.0 * (series[0].at(32.0) + series[2].at(32.0)),
        ),
    ];
    let title = "thread-migration, figure 3: misses of L1-I, 8 ways".to_owned();
    Figure { title, x: "KB", y: "misses for each thousand instructions", series, claims }
}

/// Why recorded data misses more beside recorded code than in the paper.
const SMALL_CODE: &str = "the code of the types is small beside their data, 64 to 167 KB of each";

fn data_classes(scale: &Scale) -> Figure {
    let (data, code) = (classes(scale, true), classes(scale, false));
    let ratio = code[1].at(32.0) / data[1].at(32.0);
    let compulsory = data[0].at(32.0) / code[0].at(32.0);
    let share = 100.0 * code[1].at(32.0) / (code[1].at(32.0) + data[1].at(32.0));
    let claims = vec![
        Claim::new(
            "instruction capacity misses are 9 to 12 times those of data",
            format!("{ratio:.1} times"),
            (4.5..24.0).contains(&ratio),
        )
        .or_because(SMALL_CODE),
        Claim::new("91% of the capacity misses are of instructions", format!("{share:.0}%"), share > 80.0)
            .or_because(SMALL_CODE),
        Claim::new(
            "compulsory misses of data are two orders of magnitude more than those of instructions",
            format!("{compulsory:.0} times"),
            compulsory > 50.0,
        )
        .or_because("all types together have more code than the paper's, and fewer instructions over which its first use is spread"),
    ];
    let title = "thread-migration, figure 4: misses of L1-D, 8 ways".to_owned();
    Figure { title, x: "KB", y: "misses for each thousand instructions", series: data, claims }
}

fn policies(scale: &Scale) -> Figure {
    let mut series = Vec::new();
    let mut best = f64::INFINITY;
    for (name, traces) in mixes(scale) {
        let of = |policy| Replay { policy, seed: scale.seed, ..Replay::default() }.run(&traces).i_mpki();
        let values = [Policy::Lru, Policy::Lip, Policy::Bip, Policy::Dip].map(of);
        best = best.min(values[3] / values[0]);
        let points = values.iter().enumerate().map(|(at, &value)| (at as f64, value)).collect();
        series.push(Series::of(name, points));
    }
    let gain = 100.0 - best * 100.0;
    let claims = vec![Claim::new(
        "DIP improves instruction misses by less than 6%",
        format!("by {gain:.1}% at best"),
        gain < 6.0,
    )];
    let title = "thread-migration, figure 5: policies of L1-I, 32 KB, 16 cores without migration".to_owned();
    Figure {
        title,
        x: "policy (0 LRU, 1 LIP, 2 BIP, 3 DIP)",
        y: "misses for each thousand instructions",
        series,
        claims,
    }
}

fn in_teams(scale: &Scale) -> Replay {
    Replay { migration: Migration::Teams, seed: scale.seed, ..Replay::default() }
}

fn parameters(scale: &Scale) -> Figure {
    let full: &[u32] = if scale.is_small { &[128, 512] } else { &[128, 256, 384, 512, 768, 1_024] };
    let mut series = Vec::new();
    for (name, traces) in mixes(scale) {
        let base = Replay { seed: scale.seed, ..Replay::default() }.run(&traces).i_mpki();
        for tags in [2, 4, 6] {
            let run = |full_misses| Replay { full_misses, tags, recent_misses: 0, ..in_teams(scale) }.run(&traces);
            let all: Vec<(f64, ReplayOutcome)> = full.iter().map(|&misses| (f64::from(misses), run(misses))).collect();
            let misses = all.iter().map(|(at, outcome)| (*at, outcome.i_mpki() / base)).collect();
            let kipm = all.iter().map(|(at, outcome)| (*at, outcome.kipm())).collect();
            series.push(Series::of(format!("{name}, TLS {tags}, relative I-MPKI"), misses));
            series.push(Series::of(format!("{name}, TLS {tags}, KIPM"), kipm));
        }
    }
    let first = f64::from(full[0]);
    let claims = vec![
        Claim::new(
            "low FMT and TLS reduce instruction misses by 70% (TPC-C) and 73% (TPC-E)",
            format!("by {:.0}% and {:.0}%", 100.0 - 100.0 * series[0].at(first), 100.0 - 100.0 * series[6].at(first)),
            (0.15..0.6).contains(&series[0].at(first)) && (0.13..0.54).contains(&series[6].at(first)),
        ),
        Claim::new(
            "with slightly less than 1000 instructions for each migration",
            format!("{:.2} and {:.2} thousand", series[1].at(first), series[7].at(first)),
            [1, 7].iter().all(|&line| (0.5..2.0).contains(&series[line].at(first))),
        ),
        Claim::new(
            "larger TLS means fewer migrations and more misses",
            format!("TLS 6: {:.2} thousand, {:.2} of the misses", series[5].at(first), series[4].at(first)),
            series[5].at(first) > series[1].at(first) && series[4].at(first) > series[0].at(first),
        ),
    ];
    let title = "thread-migration, figure 6: FMT and TLS of TMi-ST".to_owned();
    Figure { title, x: "FMT", y: "share of NO-MGRT's I-MPKI; thousand instructions a migration", series, claims }
}

fn recent_misses(scale: &Scale) -> Figure {
    let asked: &[u32] = if scale.is_small { &[1, 8, 12] } else { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] };
    let mut series = Vec::new();
    for (name, traces) in mixes(scale) {
        let base = Replay { seed: scale.seed, ..Replay::default() }.run(&traces).i_mpki();
        let run = |recent_misses| Replay { recent_misses, ..in_teams(scale) }.run(&traces);
        let all: Vec<(f64, ReplayOutcome)> = asked.iter().map(|&misses| (f64::from(misses), run(misses))).collect();
        series.push(Series::of(
            format!("{name}, relative I-MPKI"),
            all.iter().map(|(at, outcome)| (*at, outcome.i_mpki() / base)).collect(),
        ));
        series
            .push(Series::of(format!("{name}, KIPM"), all.iter().map(|(at, outcome)| (*at, outcome.kipm())).collect()));
    }
    let claims = vec![
        Claim::new(
            "AMT 8 leaves 41% (TPC-C) and 57% (TPC-E) of the instruction misses",
            format!("{:.0}% and {:.0}%", 100.0 * series[0].at(8.0), 100.0 * series[2].at(8.0)),
            (0.2..0.82).contains(&series[0].at(8.0)) && (0.28..1.0).contains(&series[2].at(8.0)),
        ),
        Claim::new(
            "at 2.4 and 2.6 thousand instructions a migration",
            format!("{:.1} and {:.1} thousand", series[1].at(8.0), series[3].at(8.0)),
            (1.2..4.8).contains(&series[1].at(8.0)) && (1.3..5.2).contains(&series[3].at(8.0)),
        ),
        Claim::new(
            "larger AMT means fewer migrations",
            format!("{:.1} thousand with 1, {:.1} with 12", series[1].at(1.0), series[1].at(12.0)),
            series[1].at(12.0) >= series[1].at(1.0),
        ),
    ];
    let title = "thread-migration, figure 7: AMT of TMi-ST, FMT 256, TLS 6".to_owned();
    Figure { title, x: "AMT", y: "share of NO-MGRT's I-MPKI; thousand instructions a migration", series, claims }
}

/// The ways of figure 8, and two relatives of TMi.
fn ways(scale: &Scale) -> [Replay; 5] {
    let of = |migration| Replay { migration, seed: scale.seed, ..Replay::default() };
    // The thresholds of the SLICC paper.
    let slicc = Replay { tags: 4, recent_misses: 10, ..of(Migration::Slicc) };
    [of(Migration::Never), of(Migration::Teams), of(Migration::Blind), of(Migration::Steps), slicc]
}

fn migrations(scale: &Scale) -> Figure {
    let names = ["I-MPKI", "D-MPKI, reads", "D-MPKI, writes", "DBST", "KIPM"];
    let mut series = Vec::new();
    let mut all = Vec::new();
    for (name, traces) in mixes(scale) {
        let outcomes = ways(scale).map(|way| way.run(&traces));
        let parts: [fn(&ReplayOutcome) -> f64; 5] = [
            ReplayOutcome::i_mpki,
            ReplayOutcome::read_mpki,
            ReplayOutcome::write_mpki,
            ReplayOutcome::dbst,
            ReplayOutcome::kipm,
        ];
        for (part, of) in names.iter().zip(parts) {
            let points = outcomes.iter().enumerate().map(|(at, outcome)| (at as f64, of(outcome))).collect();
            series.push(Series::of(format!("{name}, {part}"), points));
        }
        all.push(outcomes);
    }
    let claims = migration_claims(&all);
    let title = "thread-migration, figure 8: 16 cores, FMT 256, TLS 6, AMT 8; beside, its relatives".to_owned();
    let x = "way (0 NO-MGRT, 1 TMi-ST, 2 TMi-B, 3 STEPS-like, 4 SLICC-like)";
    Figure { title, x, y: "misses for each thousand instructions; turns; thousand instructions", series, claims }
}

fn migration_claims(all: &[[ReplayOutcome; 5]]) -> Vec<Claim> {
    let mean = |of: &dyn Fn(&[ReplayOutcome; 5]) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let saved = |which: usize| 100.0 - 100.0 * mean(&|outcomes| outcomes[which].i_mpki() / outcomes[0].i_mpki());
    let data = |which: usize| {
        let sum = |outcome: &ReplayOutcome| outcome.read_mpki() + outcome.write_mpki();
        mean(&|outcomes| sum(&outcomes[which]) / sum(&outcomes[0]))
    };
    let writes = mean(&|outcomes| outcomes[1].write_mpki() / outcomes[0].write_mpki());
    let reads = mean(&|outcomes| outcomes[1].read_mpki() / outcomes[0].read_mpki());
    let distances = (mean(&|outcomes| outcomes[1].dbst()), mean(&|outcomes| outcomes[2].dbst()));
    vec![
        Claim::new(
            "TMi-ST reduces instruction misses by 51% in the mean",
            format!("by {:.0}%", saved(1)),
            (26.0..75.0).contains(&saved(1)),
        ),
        Claim::new(
            "TMi-B by 31%, less than TMi-ST",
            format!("by {:.0}%", saved(2)),
            saved(2) < saved(1) && (15.0..62.0).contains(&saved(2)),
        )
        .or_because("types of one engine share nearly all of their code, and 16 caches hold all of it"),
        Claim::new(
            "TMi-ST has four times the data misses",
            format!("{:.1} times", data(1)),
            (2.0..8.0).contains(&data(1)),
        )
        .or_because("many reads miss without migration already, so that those which it adds are a smaller share"),
        Claim::new(
            "these are misses of writes more than of reads",
            format!("writes {writes:.1} times, reads {reads:.1}"),
            writes > reads,
        ),
        Claim::new(
            "similar threads are closer under TMi-ST (2.53) than under TMi-B (28.3)",
            format!("{:.1} and {:.1}", distances.0, distances.1),
            distances.0 < distances.1,
        ),
        Claim::new(
            "STEPS increases the reuse of instructions as well, on one core (section 5; no number)",
            format!("a STEPS-like way misses {:.0}% less, with {:.1} times the data misses", saved(3), data(3)),
            saved(3) > 0.0,
        ),
    ]
}
