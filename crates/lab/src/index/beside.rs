//! Our trees beside their peers: how fast each inserts, reads and does both, and what memory it takes.
use std::time::Instant;

use super::{Bench, check, count_name, rate, read_rate, threads_name};
use crate::LabError;
use crate::figures::{Better, Figure, in_turns};
use crate::peers::{Contestant, Peer};
use crate::workload::{GROUP, MixedOperations, Order, PickedKeys, resident_bytes, side_by_side};

/// Keys that one thread inserts before it leaves the next ones to another.
const BLOCK: u32 = 4_096;

/// Writes of new keys among the operations of a mix.
const WRITE_PERCENT: u32 = 20;

/// A key and a value by themselves.
const RAW_BYTES: f64 = 12.0;

/// The metrics of each contestant, in this order.
const METRICS: [(&str, &str, Better); 5] = [
    ("inserts", "M/s", Better::More),
    ("reads", "M/s", Better::More),
    ("batched reads", "M/s", Better::More),
    ("reads, 20 % inserts", "M/s", Better::More),
    ("memory", "bytes/key", Better::Less),
];

/// The KISS-Tree beside all other structures.
pub(super) fn kiss(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let peers = [
        Peer::BPlusTree,
        Peer::Congee,
        Peer::Rart,
        Peer::TreeIndex,
        Peer::SkipList,
        Peer::BTreeMap,
        Peer::Hashbrown,
        Peer::PrefetchedHash,
        Peer::Array,
    ];
    all(bench, &[Peer::Kiss, Peer::KissSmall], &peers)
}

/// The B+tree beside other trees.
pub(super) fn bplus(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let peers = [Peer::TreeIndex, Peer::BTreeMap, Peer::LatchedBTreeMap, Peer::SkipList, Peer::Congee, Peer::Array];
    all(bench, &[Peer::BPlusTree], &peers)
}

fn all(bench: &mut Bench<'_, '_>, ours: &[Peer], peers: &[Peer]) -> Result<(), LabError> {
    let args = bench.args;
    let (chosen, peers) = (args.chosen(ours), args.chosen(peers));
    let ours = if chosen.is_empty() { &ours[..1] } else { &chosen };
    for &count in &args.keys {
        for &order in &args.orders {
            for &threads in &args.threads {
                one(bench, ours, &peers, Load { order, count, threads: threads as usize })?;
            }
        }
    }
    Ok(())
}

/// The keys to insert, and the number of threads.
#[derive(Clone, Copy)]
struct Load {
    order: Order,
    count: u32,
    threads: usize,
}

/// The work of the threads once the keys are there.
struct Work {
    picks: Vec<PickedKeys>,
    mixes: Vec<MixedOperations>,
}

impl Work {
    fn new(load: Load, operations: usize) -> Work {
        let picks: Vec<PickedKeys> = (0..load.threads)
            .map(|thread| PickedKeys::new(load.order, load.count, operations, thread as u64))
            .collect();
        let mut next = load.count;
        let mut new_key = || {
            next += 1;
            load.order.key(next - 1)
        };
        let mixes = picks.iter().map(|picked| MixedOperations::new(picked, WRITE_PERCENT, 11, |_| new_key())).collect();
        Work { picks, mixes }
    }
}

fn one(bench: &mut Bench<'_, '_>, ours: &[Peer], peers: &[Peer], load: Load) -> Result<(), LabError> {
    let participants = [ours, peers].concat();
    let work = Work::new(load, bench.args.operations_of_one(load.threads));
    let Load { order, count, threads } = load;
    let what = format!("{} {} keys, {}", count_name(count), order.name(), threads_name(threads));
    let case = format!("{}, {what}", ours[0].name());
    let measured = in_turns(bench.progress, bench.args.runs, &case, participants.len(), |at, _| {
        let memory = if threads == 1 { bench.memory_of(participants[at], order, count)? } else { f64::NAN };
        measure(participants[at], load, &work, memory)
    })?;
    for (peer, own) in ours.iter().zip(&measured) {
        for (at, (metric, unit, better)) in METRICS.into_iter().enumerate() {
            let mut figure = Figure::new(&format!("{}, {what}", peer.name()), metric, unit, better, &own[at]);
            if own[at].iter().any(|value| value.is_nan()) {
                continue;
            }
            for (peer, theirs) in peers.iter().zip(&measured[ours.len()..]) {
                if theirs[at].iter().all(|value| !value.is_nan()) {
                    figure = figure.beside(peer.name(), &theirs[at]);
                }
            }
            if metric == "memory" {
                figure = figure.beside("raw data", &vec![RAW_BYTES; own[at].len()]);
            }
            bench.report.push(figure)?;
        }
    }
    Ok(())
}

/// The metrics of one contestant; not a number is what it can't do.
fn measure(peer: Peer, load: Load, work: &Work, memory: f64) -> Result<Vec<f64>, LabError> {
    let mut contestant = peer.make(load.order, load.count)?;
    let inserts = insert_rate(&mut *contestant, load);
    let contestant = &*contestant;
    let reads = read_rate(peer.name(), &work.picks, contestant, |contestant, keys| contestant.read(keys))?;
    let batched = if contestant.has_batches() {
        read_rate(peer.name(), &work.picks, contestant, |contestant, keys| contestant.read_batched(keys, GROUP))?
    } else {
        reads
    };
    let mixed = if contestant.has_shared_writes() { mix_rate(peer, contestant, work)? } else { f64::NAN };
    Ok(vec![inserts, reads, batched, mixed, memory])
}

/// How many bytes this process grows by while one thread fills a contestant.
pub(super) fn grown_bytes(peer: Peer, order: Order, count: u32) -> Result<u64, LabError> {
    let resident = || resident_bytes().ok_or_else(|| LabError::Failed("the system tells no memory".to_owned()));
    let before = resident()?;
    let mut contestant = peer.make(order, count)?;
    insert_rate(&mut *contestant, Load { order, count, threads: 1 });
    Ok(resident()?.saturating_sub(before))
}

/// Inserts all keys; million a second. A structure that can't share writes has no rate for several threads.
fn insert_rate(contestant: &mut dyn Contestant, load: Load) -> f64 {
    let Load { order, count, threads } = load;
    let keys_of = |block: u32, keys: &mut Vec<u64>| {
        keys.clear();
        keys.extend((block * BLOCK..count.min((block + 1) * BLOCK)).map(|number| order.key(number)));
    };
    let blocks = count.div_ceil(BLOCK);
    if threads > 1 && contestant.has_shared_writes() {
        let contestant: &dyn Contestant = contestant;
        let (seconds, _) = side_by_side(threads, |thread| {
            let mut keys = Vec::with_capacity(BLOCK as usize);
            for block in (thread as u32..blocks).step_by(threads) {
                keys_of(block, &mut keys);
                contestant.write(&keys);
            }
        });
        return rate(count as usize, seconds);
    }
    let (mut seconds, mut keys) = (0.0, Vec::with_capacity(BLOCK as usize));
    for block in 0..blocks {
        keys_of(block, &mut keys);
        let start = Instant::now();
        contestant.write_alone(&keys);
        seconds += start.elapsed().as_secs_f64();
    }
    let start = Instant::now();
    contestant.settle();
    let seconds = seconds + start.elapsed().as_secs_f64();
    if threads > 1 { f64::NAN } else { rate(count as usize, seconds) }
}

fn mix_rate(peer: Peer, contestant: &dyn Contestant, work: &Work) -> Result<f64, LabError> {
    let mixes = &work.mixes;
    let (seconds, sums) = side_by_side(mixes.len(), |thread| contestant.mix(&mixes[thread].operations));
    check(peer.name(), mixes.iter().map(|mixed| mixed.sum), sums)?;
    Ok(rate(mixes.iter().map(|mixed| mixed.operations.len()).sum(), seconds))
}
