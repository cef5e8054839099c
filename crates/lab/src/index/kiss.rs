//! The KISS-Tree's own figures, beside PT-4 (KISS-Tree, section 6 and appendix A). The paper's third contestant, CTrie, is not
//! among them; in its figures 5 and 7(a) it comes last.
//!
//! | figure | shows | case |
//! |---|---|---|
//! | 5 | reads and updates of dense and uniform keys, by the size of the tree | `sizes` |
//! | 6 | throughput by the share of updates | `updates` |
//! | 7 | memory by the size of the tree | `sizes` |
//! | 9, 10 | what batches gain, by the size of the tree | `sizes` |
//! | 11 | reads by the size of the batch | `batches` |
use super::{Bench, check, count_name, rate, read_rate, threads_name};
use crate::LabError;
use crate::figures::{Better, Figure, in_turns};
use crate::peers::{Contestant, Peer};
use crate::workload::{GROUP, MixedOperations, Order, PickedKeys, side_by_side};

/// The structures measured; the figures are of the first.
const PEERS: [Peer; 3] = [Peer::Kiss, Peer::KissInPlace, Peer::Pt4];

/// Bytes of a key of 32 bits and a value of 64.
const RAW_BYTES: f64 = 12.0;

fn loaded(peer: Peer, order: Order, count: u32) -> Result<Box<dyn Contestant>, LabError> {
    let mut contestant = peer.make(order, count)?;
    let keys: Vec<u64> = (0..count).map(|number| order.key(number)).collect();
    contestant.write_alone(&keys);
    contestant.settle();
    Ok(contestant)
}

fn picks(bench: &Bench<'_, '_>, order: Order, count: u32, threads: usize) -> Vec<PickedKeys> {
    let operations = bench.args.operations_of_one(threads);
    (0..threads).map(|thread| PickedKeys::new(order, count, operations, thread as u64)).collect()
}

/// Figures 5, 7, 9 and 10.
pub(super) fn sizes(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let threads = bench.args.threads_max();
    for &order in &bench.args.orders.clone() {
        for &count in &bench.args.keys.clone() {
            let picks = picks(bench, order, count, threads);
            let case = format!("{}, {} keys, {}", order.name(), count_name(count), threads_name(threads));
            let stage = format!("figures 5, 7, 9 and 10, {case}");
            let measured = in_turns(bench.progress, bench.args.runs, &stage, PEERS.len(), |at, _| {
                let contestant = loaded(PEERS[at], order, count)?;
                let name = PEERS[at].name();
                let single = read_rate(name, &picks, &*contestant, |contestant, keys| contestant.read(keys))?;
                let batched =
                    read_rate(name, &picks, &*contestant, |contestant, keys| contestant.read_batched(keys, GROUP))?;
                let bytes = || contestant.bytes().unwrap_or_default() as f64 / f64::from(count);
                let bytes_before = bytes();
                let (seconds, _) = side_by_side(threads, |thread| contestant.write(&picks[thread].keys));
                let updates = rate(picks.iter().map(|picked| picked.keys.len()).sum(), seconds);
                Ok::<_, LabError>(vec![single, batched, updates, bytes_before, bytes()])
            })?;
            push_sizes(bench, &case, order, &measured)?;
        }
    }
    Ok(())
}

fn push_sizes(bench: &mut Bench<'_, '_>, case: &str, order: Order, measured: &[Vec<Vec<f64>>]) -> Result<(), LabError> {
    let beside_others = |mut figure: Figure, metric: usize| {
        for (peer, values) in PEERS.iter().zip(measured).skip(1) {
            figure = figure.beside(peer.name(), &values[metric]);
        }
        figure
    };
    let own = &measured[0];
    let (reads, updates, gain) = if order == Order::Uniform { ("5(b)", "5(d)", "10") } else { ("5(a)", "5(c)", "9") };
    let name = |figure: &str| format!("KISS figure {figure}: {case}");
    let figure = Figure::rate(&name(reads), "batched reads", "M/s", &own[1]);
    bench.report.push(beside_others(figure, 1))?;
    bench.report.push(beside_others(Figure::rate(&name(updates), "updates", "M/s", &own[2]), 2))?;
    for (metric, at) in [("memory", 3), ("memory after the updates", 4)] {
        let memory = Figure::amount(&name("7"), metric, "bytes/key", &own[at]);
        bench.report.push(beside_others(memory, at).beside("raw data", &vec![RAW_BYTES; own[at].len()]))?;
    }
    let gain = Figure::rate(&name(gain), "batched reads", "M/s", &own[1]);
    Ok(bench.report.push(gain.beside("single reads", &own[0]))?)
}

/// Shares of updates in figure 6.
const UPDATE_PERCENTS: [(u32, &str); 6] =
    [(0, "no updates"), (20, "20 % updates"), (40, "40 %"), (60, "60 %"), (80, "80 %"), (100, "updates only")];

/// Figure 6. Reads are batched, updates are not.
pub(super) fn updates(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let threads = bench.args.threads_max();
    for &count in &bench.args.keys.clone() {
        for order in [Order::Dense, Order::Odd, Order::Uniform] {
            let picks = picks(bench, order, count, threads);
            let what = format!("{}, {} keys, {}", order.name(), count_name(count), threads_name(threads));
            let case = format!("KISS figure 6: {what}");
            let measured = in_turns(bench.progress, bench.args.runs, &case, PEERS.len(), |at, run| {
                let contestant = loaded(PEERS[at], order, count)?;
                let of_percent = |(percent, _): (u32, _)| mix_rate(PEERS[at], &*contestant, &picks, percent, run);
                UPDATE_PERCENTS.into_iter().map(of_percent).collect::<Result<Vec<f64>, LabError>>()
            })?;
            for (at, (_, metric)) in UPDATE_PERCENTS.into_iter().enumerate() {
                let mut figure = Figure::new(&case, metric, "M/s", Better::More, &measured[0][at]);
                for (peer, values) in PEERS.iter().zip(&measured).skip(1) {
                    figure = figure.beside(peer.name(), &values[at]);
                }
                bench.report.push(figure)?;
            }
        }
    }
    Ok(())
}

/// Reads of what was picked, a part of them turned into updates.
fn mix_rate(
    peer: Peer,
    contestant: &dyn Contestant,
    picks: &[PickedKeys],
    percent: u32,
    seed: u64,
) -> Result<f64, LabError> {
    let mix = |picked: &PickedKeys| {
        let keys = &picked.keys;
        let updated = |random: &mut crate::workload::Random| keys[random.below(keys.len() as u32) as usize];
        MixedOperations::new(picked, percent, seed, updated).in_batches()
    };
    let mixes: Vec<MixedOperations> = picks.iter().map(mix).collect();
    let (seconds, sums) = side_by_side(mixes.len(), |thread| contestant.mix_batched(&mixes[thread].operations));
    check(peer.name(), mixes.iter().map(|mixed| mixed.sum), sums)?;
    Ok(rate(mixes.iter().map(|mixed| mixed.operations.len()).sum(), seconds))
}

/// Sizes of batches in figure 11.
const BATCHES: [(usize, &str); 10] = [
    (1, "batches of 1"),
    (2, "batches of 2"),
    (4, "batches of 4"),
    (8, "batches of 8"),
    (16, "batches of 16"),
    (32, "batches of 32"),
    (64, "batches of 64"),
    (128, "batches of 128"),
    (512, "batches of 512"),
    (4_096, "batches of 4096"),
];

/// Figure 11. A batch is what the caller hands over at once.
pub(super) fn batches(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let threads = bench.args.threads_max();
    for &count in &bench.args.keys.clone() {
        for &order in &bench.args.orders.clone() {
            let picks = picks(bench, order, count, threads);
            let what = format!("{}, {} keys, {}", order.name(), count_name(count), threads_name(threads));
            let case = format!("KISS figure 11: {what}");
            let contestant = loaded(Peer::Kiss, order, count)?;
            let measured = in_turns(bench.progress, bench.args.runs, &case, BATCHES.len(), |at, _| {
                let read = |contestant: &dyn Contestant, keys: &[u64]| contestant.read_batched(keys, BATCHES[at].0);
                Ok::<_, LabError>(vec![read_rate(Peer::Kiss.name(), &picks, &*contestant, read)?])
            })?;
            for ((_, metric), values) in BATCHES.into_iter().zip(&measured) {
                let figure = Figure::rate(&case, metric, "M/s", &values[0]);
                bench.report.push(figure.beside(BATCHES[0].1, &measured[0][0]))?;
            }
        }
    }
    Ok(())
}
