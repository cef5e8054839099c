//! Updates a second while a snapshot is taken each second, beside a plain array of atomic words without snapshots.
//!
//! Updates are announced to snapshots one by one, or so many at a time (`Writer::batch`): a snapshot then waits for the end of a batch.
//!
//! Each mechanism runs in turns with the plain array, and the median of the shares counts: what else the machine does changes both.
//!
//! `cargo run --release -p lstore-snapshot --example beside -- [MIB [SECONDS [PERIOD_MS [THREADS [BATCH [TURNS]]]]]] [NAME]...`:
//! mechanisms and distributions whose names begin with one of those given, or all.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use snapshot::{Candidate, Case, Distribution, SnapshotArray, SnapshotError};

/// The updates that a thread has drawn, and goes round in.
const DRAWN: usize = 1 << 20;
/// The updates between two looks at whether it is over.
const BATCH: usize = 4_096;

const DISTRIBUTIONS: [Distribution; 4] =
    [Distribution::SelfSimilar, Distribution::HeavyHitter, Distribution::Zipf, Distribution::Uniform];

/// Runs `update` on every list of items for some time, in a thread each; `tick` each period. Gives the updates a second.
fn rate(
    items: &[Vec<usize>],
    (time, period): (Duration, Duration),
    update: &(dyn Fn(&[usize]) + Sync),
    tick: &mut dyn FnMut(),
) -> f64 {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let write = |items: &Vec<usize>| {
            let batches = items.chunks(BATCH).cycle().take_while(|_| !is_over.load(Ordering::Relaxed));
            batches.map(|batch| (update(batch), batch.len()).1).sum::<usize>()
        };
        let start = Instant::now();
        let writers: Vec<_> = items.iter().map(|items| threads.spawn(move || write(items))).collect();
        let mut ticks = 0;
        while start.elapsed() < time {
            tick();
            ticks += 1;
            std::thread::sleep((period * ticks).min(time).saturating_sub(start.elapsed()));
        }
        is_over.store(true, Ordering::Relaxed);
        let count: usize = writers.into_iter().filter_map(|writer| writer.join().ok()).sum();
        count as f64 / start.elapsed().as_secs_f64()
    })
}

/// The words of the command line.
fn names() -> Vec<String> {
    std::env::args().skip(1).filter(|argument| argument.parse::<u64>().is_err()).collect()
}

/// Whether `name`, one of `all`, begins with one of `names`; all do where none of the names is meant for their kind.
fn is_asked(names: &[String], all: &[String], name: &str) -> bool {
    let meant: Vec<_> = names.iter().filter(|asked| all.iter().any(|name| name.starts_with(asked.as_str()))).collect();
    meant.is_empty() || meant.iter().any(|asked| name.starts_with(asked.as_str()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// An array of ours, all of whose pages are memory.
fn filled(len: usize, candidate: Candidate) -> Result<SnapshotArray<u64>, SnapshotError> {
    let array = SnapshotArray::<u64>::new(len, &candidate.options())?;
    let mut writer = array.writer();
    (0..len).step_by(512).try_for_each(|index| writer.set(index, 1))?;
    drop(writer);
    Ok(array)
}

fn main() -> Result<(), SnapshotError> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let number = |at: usize, other| numbers.get(at).copied().unwrap_or(other);
    let (size_bytes, time) = ((number(0, 128) << 20) as usize, Duration::from_secs(number(1, 3)));
    let (period, threads) = (Duration::from_millis(number(2, 1_000)), number(3, 1));
    let (batch, turns) = (number(4, 1) as usize, number(5, 3));
    let len = size_bytes / size_of::<u64>();
    let plain: Vec<AtomicU64> = (0..len).map(|_| AtomicU64::new(1)).collect();
    let (asked, candidates) = (names(), Candidate::all());
    let mechanisms: Vec<String> = candidates.iter().map(Candidate::name).collect();
    let distributions = DISTRIBUTIONS.map(|distribution| distribution.name().to_owned());
    for distribution in DISTRIBUTIONS.into_iter().filter(|one| is_asked(&asked, &distributions, one.name())) {
        let case = Case { size_bytes, distribution, updates: 0 };
        let items: Vec<Vec<usize>> = (0..threads).map(|thread| case.updates(thread).take(DRAWN).collect()).collect();
        let update = |items: &[usize]| {
            for item in items {
                plain[*item].fetch_add(1, Ordering::Relaxed);
            }
        };
        let bound = || rate(&items, (time, period), &update, &mut || ());
        for candidate in candidates.iter().filter(|candidate| is_asked(&asked, &mechanisms, &candidate.name())) {
            let array = filled(len, *candidate)?;
            let update = |items: &[usize]| {
                let mut writer = array.writer();
                match batch {
                    0 | 1 => items.iter().for_each(|item| drop(writer.add(*item, 1))),
                    _ => items.chunks(batch).for_each(|items| {
                        writer.batch(|batch| items.iter().for_each(|item| drop(batch.add(*item, 1))));
                    }),
                }
            };
            let (mut last, mut refused) = (None, None);
            let mut tick = || {
                last = None;
                match array.snapshot() {
                    Ok(snapshot) => last = Some(snapshot),
                    Err(error) => refused = Some(error),
                }
            };
            let (mut plain, mut ours, mut shares) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..turns {
                plain.push(bound() / 1e6);
                ours.push(rate(&items, (time, period), &update, &mut tick) / 1e6);
                plain.push(bound() / 1e6);
                let beside = plain[plain.len() - 2..].iter().sum::<f64>() / 2.0;
                shares.push(ours[ours.len() - 1] / beside * 100.0);
            }
            let (plain, ours, share) = (median(plain), median(ours), median(shares));
            println!(
                "{:14} {:38} {ours:>6.1} M/s, {share:>5.1} % of the plain array's {plain:.1}",
                distribution.name(),
                candidate.name()
            );
            refused.map_or(Ok(()), Err)?;
        }
    }
    Ok(())
}
