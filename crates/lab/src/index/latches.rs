//! The cost of each latch, from no inserts to nothing but inserts: the shape of tsx-index's figures 3 to 6, 9 and
//! 10 (sections 2.1, 4.2, 4.3 and 5.3), as far as the machine has threads.
//!
//! As in the paper the index begins with even numbers; searches are for even numbers, inserts of odd ones, both at random. All
//! is told beside the spin latch without inserts, with as many threads; figures 3(a), 4(a) and 10 are the rows of one latch
//! for different numbers of threads.
//!
//! Without the processor's transactions an elided latch lets readers look optimistically and writers acquire. The paper's
//! bound without any latch is not here: inserts without a latch would be undefined behaviour, not a slower answer.
use index::{DeltaForm, DeltaIndex, NodeLatches, TreeLatch};
use latches::{Biased, Elided, QueueLatch};
use sync::{Latch, RwSpinLatch, SpinLatch, VersionLatch};

use super::{Bench, check, count_name, rate, threads_name};
use crate::LabError;
use crate::figures::{Figure, in_turns};
use crate::peers::{Contestant, delta_of, latched_by};
use crate::workload::{MixedOperations, Order, PickedKeys, side_by_side, value_of};

/// Shares of inserts.
const INSERT_PERCENTS: [u32; 5] = [0, 5, 20, 50, 100];

/// The name of an index under a latch, and what makes it. The first of a list is what all are told beside.
type Latched = (&'static str, fn() -> Box<dyn Contestant>);

const BPLUS: [Latched; 7] = [
    ("spin latch", latched_by::<TreeLatch<SpinLatch>>),
    ("queue latch", latched_by::<TreeLatch<QueueLatch>>),
    ("reader-writer latch", latched_by::<TreeLatch<RwSpinLatch>>),
    ("biased reader-writer latch", latched_by::<TreeLatch<Biased<RwSpinLatch>>>),
    ("elided spin latch", latched_by::<TreeLatch<Elided<SpinLatch>>>),
    ("version latch", latched_by::<TreeLatch<VersionLatch>>),
    ("version latch in each node", latched_by::<NodeLatches>),
];

const DELTA: [Latched; 8] = [
    ("original, spin latch", original::<SpinLatch>),
    ("original, reader-writer latch", original::<RwSpinLatch>),
    ("original, elided spin latch", original::<Elided<SpinLatch>>),
    ("original, version latch", original::<VersionLatch>),
    ("tuned, spin latch", tuned::<SpinLatch>),
    ("tuned, reader-writer latch", tuned::<RwSpinLatch>),
    ("tuned, elided spin latch", tuned::<Elided<SpinLatch>>),
    ("tuned, version latch", tuned::<VersionLatch>),
];

fn original<L: Latch + 'static>() -> Box<dyn Contestant> {
    delta_of(DeltaIndex::<u64, L>::new(DeltaForm::ORIGINAL))
}

fn tuned<L: Latch + 'static>() -> Box<dyn Contestant> {
    delta_of(DeltaIndex::<u64, L>::new(DeltaForm::tuned()))
}

/// The B+tree: figures 4 and 5.
pub(super) fn bplus(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    for_each_load(bench, "B+tree", &BPLUS)
}

/// The Delta Storage Index: figures 3, 6, 9 and 10.
pub(super) fn delta(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    for_each_load(bench, "delta index", &DELTA)
}

fn for_each_load(bench: &mut Bench<'_, '_>, what: &str, latched: &[Latched]) -> Result<(), LabError> {
    for &count in &bench.args.keys.clone() {
        for &threads in &bench.args.threads.clone() {
            one(bench, what, latched, count, threads as usize)?;
        }
    }
    Ok(())
}

fn one(bench: &mut Bench<'_, '_>, what: &str, latched: &[Latched], count: u32, threads: usize) -> Result<(), LabError> {
    let what = format!("{what}, {} keys, {}", count_name(count), threads_name(threads));
    let work = work(count, bench.args.operations_of_one(threads), threads);
    let measured = in_turns(bench.progress, bench.args.runs, &what, latched.len(), |at, _| {
        let (name, make) = latched[at];
        let mut contestant = make();
        let keys: Vec<u64> = (0..count).map(|number| 2 * u64::from(number)).collect();
        contestant.write_alone(&keys);
        let rate_of = |mixes: &Vec<MixedOperations>| {
            let (seconds, sums) = side_by_side(threads, |thread| contestant.mix(&mixes[thread].operations));
            check(name, mixes.iter().map(|mixed| mixed.sum), sums)?;
            Ok(rate(mixes.iter().map(|mixed| mixed.operations.len()).sum(), seconds))
        };
        work.iter().map(rate_of).collect::<Result<Vec<f64>, LabError>>()
    })?;
    for (at, percent) in INSERT_PERCENTS.into_iter().enumerate() {
        for ((name, _), values) in latched.iter().zip(&measured) {
            let case = format!("{what}, {percent} % inserts");
            let figure = Figure::rate(&case, name, "M/s", &values[at]);
            bench.report.push(figure.beside("spin latch, no inserts", &measured[0][0]))?;
        }
    }
    Ok(())
}

/// For each share of inserts the operations of each thread.
fn work(count: u32, operations: usize, threads: usize) -> Vec<Vec<MixedOperations>> {
    let even_only = |seed| {
        let mut picked = PickedKeys::new(Order::Dense, count, operations, seed);
        picked.keys.iter_mut().for_each(|key| *key *= 2);
        picked.sum = picked.keys.iter().fold(0, |sum: u64, key| sum.wrapping_add(value_of(*key)));
        picked
    };
    let odd = |random: &mut crate::workload::Random| 2 * u64::from(random.below(count)) + 1;
    let of_thread = |percent: u32, thread: usize| {
        let seed = u64::from(percent) << 8 | thread as u64;
        MixedOperations::new(&even_only(seed), percent, seed, odd)
    };
    let of_percent = |percent| (0..threads).map(|thread| of_thread(percent, thread)).collect();
    INSERT_PERCENTS.into_iter().map(of_percent).collect()
}
