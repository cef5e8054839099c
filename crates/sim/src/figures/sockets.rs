//! Figures 1 to 8 of tle-multisocket: what a second socket does to lock elision, and why.

use latches::elision::{AbortCause, RetryPolicy};

use super::figure::{Claim, Figure, Series};
use super::plan::{Algorithm, Entry, Line, Scale, Structure, run, speedups};
use crate::machine::MachineConfig;
use crate::sections::{Elision, Way};
use crate::structures::AvlTree;
use crate::workloads::{Operations, Outcome};

pub(super) const ENTRIES: &[Entry] = &[
    Entry { name: "tle-1", about: "An AVL tree under TLE on a large and a small machine", make: large_and_small },
    Entry { name: "tle-2", about: "Retry policies on a large tree", make: policies },
    Entry { name: "tle-3", about: "Attempts until a transaction commits", make: attempts },
    Entry { name: "tle-4", about: "Lookups alone, and with 2% updates", make: few_updates },
    Entry { name: "tle-5", about: "Search and replace, with TLE and without synchronization", make: replace },
    Entry { name: "tle-6", about: "Aborts by thread count", make: aborts },
    Entry { name: "tle-7", about: "Aborts by the length of a transaction, on one socket", make: delays },
    Entry { name: "tle-8", about: "An AVL tree beside a leaf-oriented tree", make: leaf_oriented },
];

fn named(name: &str, line: Line) -> (String, Line) {
    (name.to_owned(), line)
}

fn large_and_small(scale: &Scale) -> Figure {
    let mut series = speedups(scale, scale.threads(), &[named("X5-2", Line::avl(2_048, 100))]);
    let mut small = Series::new("i7-4770");
    for threads in [1, 2, 4, 8] {
        let mut workload = Line::avl(2_048, 100).workload(scale, 1);
        workload.config = MachineConfig::I7_4770;
        workload.groups[0].cores = (0..threads).map(|thread| thread % 4).collect();
        small.points.push((threads as f64, workload.run::<AvlTree>().rate()));
    }
    let alone = small.at(1.0);
    small.points.iter_mut().for_each(|point| point.1 /= alone);
    let large = &series[0];
    let (full, one_more, all) = (large.at(36.0), large.at(37.0), large.at(72.0));
    let claims = vec![
        Claim::new(
            "one thread on the second socket cuts performance in half",
            format!("{full:.1} at 36 threads, {one_more:.1} at 37, {:.0}% less", 100.0 - one_more * 100.0 / full),
            one_more < 0.75 * full,
        )
        .or_because(
            "the thread there ends a sixth of the others' sections, and a section waits for a hop 0.3 times, too seldom to double its time",
        ),
        Claim::new("72 threads are barely better than one", format!("{all:.1}"), (0.5..2.5).contains(&all)),
        Claim::new(
            "the small machine improves up to all its threads",
            format!("{:.1} at 4 threads, {:.1} at 8", small.at(4.0), small.at(8.0)),
            small.at(8.0) > small.at(4.0) && small.at(4.0) > small.at(2.0),
        ),
    ];
    series.push(small);
    let title = "tle-multisocket, figure 1: AVL tree, 100% updates, keys below 2048, TLE-20".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread", series, claims }
}

fn policies(scale: &Scale) -> Figure {
    let policies = [
        ("TLE-5 fallback on overflow", RetryPolicy::TLE_5_FALL_BACK_ON_OVERFLOW),
        ("TLE-20 fallback on overflow", RetryPolicy::TLE_20_FALL_BACK_ON_OVERFLOW),
        ("TLE-5", RetryPolicy::TLE_5),
        ("TLE-20", RetryPolicy::TLE_20),
    ];
    let mut series: Vec<Series> = Vec::new();
    let mut alone = 1.0;
    for (name, policy) in policies {
        let mut line = Series::new(name);
        for &threads in scale.threads() {
            let mut workload = Line::avl(131_072, 100).workload(scale, threads);
            workload.way = Way::Elided(Elision::with(policy));
            let rate = workload.run::<AvlTree>().rate();
            if series.is_empty() && threads == 1 {
                alone = rate;
            }
            line.points.push((threads as f64, rate / alone));
        }
        series.push(line);
    }
    let at = |line: usize, threads: f64| series[line].at(threads);
    let claims = vec![
        Claim::new(
            "at 36 threads TLE-20 has more than twice the performance of TLE-20 with fallback on overflow",
            format!("{:.1} and {:.1}", at(3, 36.0), at(1, 36.0)),
            at(3, 36.0) > 1.9 * at(1, 36.0),
        ),
        Claim::new(
            "20 attempts are better than 5, to a lesser extent",
            format!("{:.1} and {:.1} at 36 threads", at(3, 36.0), at(2, 36.0)),
            at(3, 36.0) >= 0.97 * at(2, 36.0) && at(2, 36.0) > at(0, 36.0),
        ),
        Claim::new(
            "performance does not significantly decrease on two sockets",
            format!("{:.1} at 36 threads, {:.1} at 72", at(3, 36.0), at(3, 72.0)),
            at(3, 72.0) > 0.8 * at(3, 36.0),
        ),
    ];
    let title = "tle-multisocket, figure 2: AVL tree, 100% updates, keys below 131072".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread", series, claims }
}

fn attempts(scale: &Scale) -> Figure {
    let outcome = run(Structure::Avl, &Line::avl(131_072, 100).workload(scale, 36));
    let counts = outcome.sections.by_attempts();
    let points = counts.iter().enumerate().map(|(at, &count)| (at as f64 + 1.0, count as f64)).collect();
    let fall_backs = outcome.sections.fall_backs() as f64;
    let all = counts.iter().sum::<u64>() as f64 + fall_backs;
    let first = counts[0] as f64 * 100.0 / all;
    let tail = (counts[1] as f64, counts[4] as f64);
    let claims = vec![
        Claim::new("most operations succeed at the first attempt", format!("{first:.1}%"), first > 60.0),
        Claim::new(
            "counts fall with the number of attempts",
            format!("{} at 2, {} at 5", tail.0, tail.1),
            tail.0 > 2.0 * tail.1,
        ),
        Claim::new(
            "a small fraction takes the lock after 20",
            format!("{:.3}%", fall_backs * 100.0 / all),
            fall_backs < 0.02 * all,
        ),
    ];
    let series = vec![Series::of("operations", points), Series::of("lock", vec![(21.0, fall_backs)])];
    let title =
        "tle-multisocket, figure 3: attempts until a commit, AVL tree, 100% updates, keys below 131072, 36 threads";
    Figure { title: title.to_owned(), x: "attempts", y: "operations", series, claims }
}

fn few_updates(scale: &Scale) -> Figure {
    let lines = [named("0% updates", Line::avl(2_048, 0)), named("2% updates", Line::avl(2_048, 2))];
    let series = speedups(scale, scale.threads(), &lines);
    let (read, few) = (&series[0], &series[1]);
    let claims = vec![
        Claim::new(
            "lookups alone scale to 72 threads",
            format!("{:.1} at 36 threads, {:.1} at 72", read.at(36.0), read.at(72.0)),
            read.at(72.0) > 1.6 * read.at(36.0),
        ),
        Claim::new(
            "2% updates flatten the curve after 36 threads",
            format!("{:.1} at 36 threads, {:.1} at 72", few.at(36.0), few.at(72.0)),
            few.at(72.0) < 1.3 * few.at(36.0),
        ),
    ];
    let title = "tle-multisocket, figure 4: AVL tree, keys below 2048, TLE-20".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread", series, claims }
}

/// Search and replace on an AVL tree of a key range.
fn replacing(scale: &Scale, key_range: u64, threads: usize, way: Way) -> Outcome {
    let mut workload = Line::avl(key_range, 100).workload(scale, threads);
    workload.way = way;
    workload.groups[0].operations = Operations::SearchAndReplace;
    workload.run::<AvlTree>()
}

fn replace(scale: &Scale) -> Figure {
    let ways = [("TLE", Way::Elided(Elision::TLE_20)), ("no synchronization", Way::Unsynchronized)];
    let mut series = Vec::new();
    for (name, way) in ways {
        let alone = replacing(scale, 4_096, 1, way).rate();
        let of = |&threads: &usize| (threads as f64, replacing(scale, 4_096, threads, way).rate() / alone);
        series.push(Series::of(name, scale.threads().iter().map(of).collect()));
    }
    let drop = |line: &Series| 100.0 - line.at(72.0) * 100.0 / line.at(36.0);
    let (elided, free) = (drop(&series[0]), drop(&series[1]));
    let speeds = |line: &Series| format!("{:.1} at 36 threads, {:.1} at 72", line.at(36.0), line.at(72.0));
    let claims = vec![
        Claim::new(
            "TLE falls from 6.4 at 36 threads to 1.6 at 72, by 75%",
            speeds(&series[0]),
            (60.0..90.0).contains(&elided),
        ),
        Claim::new(
            "without synchronization from 12.1 to 8.9, by 26%",
            speeds(&series[1]),
            (13.0..52.0).contains(&free),
        )
        .or_because("each of its 2 to 3 misses costs the machine 80 cycles more at 36 threads and 270 at 72, by caches under load"),
        Claim::new(
            "TLE suffers much more than the code without synchronization",
            format!("{elided:.0}% and {free:.0}%"),
            elided > free + 20.0,
        ),
    ];
    let title = "tle-multisocket, figure 5: search and replace, AVL tree, keys below 4096".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread", series, claims }
}

fn aborts(scale: &Scale) -> Figure {
    let threads: &[usize] =
        if scale.is_small { &[36, 42, 72] } else { &[1, 8, 18, 36, 37, 38, 40, 42, 48, 54, 63, 72] };
    let (mut all, mut conflicts) = (Series::new("aborted"), Series::new("of these by conflict"));
    for &threads in threads {
        let outcome = replacing(scale, 4_096, threads, Way::Elided(Elision::TLE_20));
        all.points.push((threads as f64, outcome.abort_percent()));
        conflicts.points.push((threads as f64, outcome.cause_percent(AbortCause::Conflict)));
    }
    let (one, two) = (all.at(36.0), all.at(42.0));
    let claims = vec![
        Claim::new(
            "aborts rise from 10% at 36 threads to 33% at only 42",
            format!("{one:.0}% and {two:.0}%"),
            two > 2.0 * one,
        ),
        Claim::new(
            "beyond 36 threads the vast majority are conflicts",
            format!("{:.0}% at 42 threads, {:.0}% at 72", conflicts.at(42.0), conflicts.at(72.0)),
            conflicts.at(42.0) > 70.0 && conflicts.at(72.0) > 70.0,
        ),
    ];
    let title = "tle-multisocket, figure 6: aborts of TLE-20, search and replace, AVL tree, keys below 4096".to_owned();
    Figure { title, x: "threads", y: "percent", series: vec![all, conflicts], claims }
}

fn delays(scale: &Scale) -> Figure {
    let delays: &[u64] =
        if scale.is_small { &[0, 3_000, 30_000] } else { &[0, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000] };
    let (mut all, mut conflicts) = (Series::new("aborted"), Series::new("of these by conflict"));
    for &delay in delays {
        let mut workload = Line::avl(131_072, 100).workload(scale, 36);
        workload.section_delay = delay;
        // The longest section takes 43 microseconds.
        workload.measured_us = scale.measured_us.max(delay / 50);
        let outcome = workload.run::<AvlTree>();
        all.points.push((delay as f64, outcome.abort_percent()));
        conflicts.points.push((delay as f64, outcome.cause_percent(AbortCause::Conflict)));
    }
    let ends = |line: &Series| (line.points[0].1, line.points[line.points.len() - 1].1);
    let (aborted, by_conflict) = (ends(&all), ends(&conflicts));
    let claims = vec![
        Claim::new(
            "the abort rate jumps with the delay",
            format!("{:.0}% without, {:.0}% with the longest", aborted.0, aborted.1),
            aborted.1 > 2.0 * aborted.0,
        ),
        Claim::new(
            "once it does most aborts are conflicts",
            format!("{:.0}% without, {:.0}% with the longest", by_conflict.0, by_conflict.1),
            by_conflict.1 > 60.0,
        ),
    ];
    let title =
        "tle-multisocket, figure 7: a delay before each commit, 36 threads on one socket, AVL tree, keys below 131072";
    Figure { title: title.to_owned(), x: "cycles of delay", y: "percent", series: vec![all, conflicts], claims }
}

fn leaf_oriented(scale: &Scale) -> Figure {
    let avl = Line::avl(2_048, 20);
    let leaf = Line { structure: Structure::LeafTree, algorithm: Algorithm::Tle, ..avl };
    let mut series = speedups(scale, scale.threads(), &[named("AVL tree", avl)]);
    series.extend(speedups(scale, scale.threads(), &[named("leaf-oriented tree", leaf)]));
    let (balanced, leafy) = (&series[0], &series[1]);
    let claims = vec![Claim::new(
        "the leaf-oriented tree scales much better",
        format!("{:.1} and {:.1} at 72 threads", leafy.at(72.0), balanced.at(72.0)),
        leafy.at(72.0) > 1.5 * balanced.at(72.0),
    )];
    let title =
        "tle-multisocket, figure 8: AVL and leaf-oriented tree, 20% updates, keys below 2048, TLE-20".to_owned();
    Figure { title, x: "threads", y: "speedup over one thread", series, claims }
}
