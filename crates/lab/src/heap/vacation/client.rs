//! The transactions of a client. Random choices are drawn before the transaction, so that it makes the same ones
//! when it is begun again.

use durability::CommitMode;
use heap::{CommittedTransaction, Heap, HeapResult};

use super::agency::{Agency, KINDS, price};
use crate::heap::Random;

/// Places that are added or taken away at once.
const PLACES: u64 = 100;

/// A thing to look at, and what may be done to it.
#[derive(Clone, Copy)]
struct Task {
    kind: usize,
    number: u64,
    /// To be added with this price, or taken away.
    price: Option<u64>,
}

fn tasks(random: &mut Random, things: u64, numbers: u64) -> Vec<Task> {
    let count = random.below(things.max(1)) + 1;
    let task = |_| Task {
        kind: random.below(KINDS as u64) as usize,
        number: random.below(numbers) + 1,
        price: (random.below(2) == 0).then(|| price(random)),
    };
    (0..count).map(task).collect()
}

/// Looks at things and reserves the dearest of each kind that is free.
pub(super) fn reserve(
    agency: &Agency,
    heap: &Heap,
    random: &mut Random,
    things: u64,
    numbers: u64,
    mode: CommitMode,
) -> HeapResult<CommittedTransaction> {
    let tasks = tasks(random, things, numbers);
    let customer = random.below(numbers) + 1;
    let work = heap.atomically_split_phase(mode, |tx| {
        let mut dearest = [None; KINDS];
        for task in &tasks {
            let price = agency.price_if_free(tx, task.kind, task.number)?;
            let best = &mut dearest[task.kind];
            if price.is_some() && price > best.map(|(price, _)| price) {
                *best = price.map(|price| (price, task.number));
            }
        }
        if dearest.iter().any(Option::is_some) {
            agency.add_customer(tx, customer)?;
        }
        for (kind, best) in dearest.into_iter().enumerate() {
            if let Some((_, number)) = best {
                agency.reserve(tx, customer, kind, number)?;
            }
        }
        HeapResult::Ok(())
    });
    work.map(|(_, committed)| committed)
}

/// Deletes a customer, if there is one of the number drawn.
pub(super) fn delete_customer(
    agency: &Agency,
    heap: &Heap,
    random: &mut Random,
    numbers: u64,
    mode: CommitMode,
) -> HeapResult<CommittedTransaction> {
    let customer = random.below(numbers) + 1;
    let work = heap.atomically_split_phase(mode, |tx| agency.delete_customer(tx, customer));
    work.map(|(_, committed)| committed)
}

/// Adds places to some things, takes them away from others.
pub(super) fn update_tables(
    agency: &Agency,
    heap: &Heap,
    random: &mut Random,
    things: u64,
    numbers: u64,
    mode: CommitMode,
) -> HeapResult<CommittedTransaction> {
    let tasks = tasks(random, things, numbers);
    let work = heap.atomically_split_phase(mode, |tx| {
        tasks.iter().try_for_each(|task| match task.price {
            Some(price) => agency.add_places(tx, task.kind, task.number, PLACES, price),
            None => agency.take_places(tx, task.kind, task.number, PLACES),
        })
    });
    work.map(|(_, committed)| committed)
}
