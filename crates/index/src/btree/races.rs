//! Several threads: histories of single keys have an order (linearizability), scans see what they must and nothing else,
//! one of many gets a unique key. Meanwhile other keys come and go, so that the nodes in question are split, merged and
//! evened out all the time.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use latches::Elided;
use sync::{RwSpinLatch, SpinLatch};
use types::Rid;

use super::*;
use crate::{Holder, KeyBytes};

/// Keys from numbers, for the kinds that the races run with.
trait Numbered: Key {
    fn key(number: u64) -> Self::Owned;
}

impl Numbered for u64 {
    fn key(number: u64) -> u64 {
        number
    }
}

impl Numbered for Bytes {
    /// Some short, some long, with beginnings in common.
    fn key(number: u64) -> KeyBytes {
        let long = if number.is_multiple_of(3) { "-and-a-long-end" } else { "" };
        format!("{:03}/{:04}{long}", number / 50, number).into_bytes().into()
    }
}

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Get,
    Insert(u64),
    Upsert(u64),
    Remove,
}

impl Call {
    /// Changes the value of the key; returns the value before.
    fn apply(self, before: Option<u64>) -> Option<u64> {
        match self {
            Call::Get => before,
            Call::Insert(value) => before.or(Some(value)),
            Call::Upsert(value) => Some(value),
            Call::Remove => None,
        }
    }
}

/// A call with the value that it returned, when it began and when it had ended.
#[derive(Debug, Clone, Copy)]
struct Event {
    call: Call,
    returned: Option<u64>,
    span: (u64, u64),
}

/// Whether the events of a key, by thread and in order, could have happened one after another, each at some moment of
/// its span. `done` says how many of each thread are placed already.
fn has_order(threads: &[Vec<Event>]) -> bool {
    let mut visited = HashSet::new();
    let mut open = vec![(vec![0; threads.len()], None)];
    while let Some((done, value)) = open.pop() {
        let next: Vec<Option<&Event>> = done.iter().zip(threads).map(|(done, events)| events.get(*done)).collect();
        let Some(first_end) = next.iter().flatten().map(|event| event.span.1).min() else { return true };
        for (thread, event) in next.iter().enumerate() {
            let Some(event) = event.filter(|event| event.span.0 <= first_end && event.returned == value) else {
                continue;
            };
            let mut done = done.clone();
            done[thread] += 1;
            let state = (done, event.call.apply(value));
            if visited.insert(state.clone()) {
                open.push(state);
            }
        }
    }
    false
}

const HOT: [u64; 6] = [100, 101, 110, 500, 501, 800];
const NUMBERS: u64 = 1_000;

/// Adds and removes runs of keys other than the hot ones, until told to end; counts them.
fn churn<K: Numbered, L: Latching>(tree: &BPlusTree<K, u64, L>, rounds: &AtomicU64, is_done: &AtomicBool) {
    let mut numbers = Numbers(77);
    while !is_done.load(Ordering::Relaxed) {
        let (first, count) = (numbers.below(NUMBERS), numbers.below(60));
        let run = (first..first + count).filter(|number| !HOT.contains(number));
        for number in run.clone() {
            assert_eq!(tree.insert(K::of(&K::key(number)), number), None);
        }
        for number in run {
            assert_eq!(tree.remove(K::of(&K::key(number))), Some(number));
        }
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

/// Other threads may be slow to begin; without them a race proves nothing.
fn wait_for(count: &AtomicU64, least: u64) {
    while count.load(Ordering::Relaxed) < least {
        thread::yield_now();
    }
}

fn race_calls<K: Numbered, L: Latching>(rounds: u64) {
    let (tree, clock, is_done) = (BPlusTree::<K, u64, L>::new(), AtomicU64::new(0), AtomicBool::new(false));
    let (now, churned) = (|| clock.fetch_add(1, Ordering::SeqCst), AtomicU64::new(0));
    let work = |thread: u64| {
        let (mut events, mut numbers) = (HashMap::<u64, Vec<Event>>::new(), Numbers(0x5eed + thread));
        for round in 0..rounds {
            let (hot, value) = (HOT[numbers.below(HOT.len() as u64) as usize], round << 8 | thread);
            let key = K::key(hot);
            let call = [Call::Get, Call::Insert(value), Call::Upsert(value), Call::Remove][numbers.below(4) as usize];
            let (start, key) = (now(), K::of(&key));
            let returned = match call {
                Call::Get => tree.get(key),
                Call::Insert(value) => tree.insert(key, value),
                Call::Upsert(value) => tree.upsert(key, value),
                Call::Remove => tree.remove(key),
            };
            events.entry(hot).or_default().push(Event { call, returned, span: (start, now()) });
        }
        events
    };
    let histories: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| churn(&tree, &churned, &is_done));
        wait_for(&churned, 1);
        let workers: Vec<_> = (0..3).map(|thread| scope.spawn(move || work(thread))).collect();
        let histories = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        is_done.store(true, Ordering::Relaxed);
        histories
    });
    for hot in HOT {
        let events: Vec<_> =
            histories.iter().map(|events: &HashMap<_, _>| events.get(&hot).cloned().unwrap()).collect();
        assert!(has_order(&events), "key {hot}");
    }
}

#[test]
fn calls_on_a_key_have_one_order_that_agrees_with_the_clock() {
    race_calls::<u64, NodeLatches>(1_500);
    race_calls::<Bytes, NodeLatches>(800);
    race_calls::<u64, TreeLatch<SpinLatch>>(300);
    race_calls::<u64, TreeLatch<RwSpinLatch>>(300);
    race_calls::<u64, TreeLatch<Elided<SpinLatch>>>(300);
    race_calls::<Bytes, TreeLatch<Elided<RwSpinLatch>>>(300);
}

#[test]
fn the_checker_refuses_a_history_without_an_order() {
    let event = |call, returned, span| Event { call, returned, span };
    let insert = event(Call::Insert(1), None, (0, 3));
    assert!(has_order(&[vec![insert], vec![event(Call::Get, None, (1, 2)), event(Call::Get, Some(1), (4, 5))]]));
    assert!(!has_order(&[vec![insert], vec![event(Call::Get, None, (4, 5))]]));
    assert!(!has_order(&[vec![insert], vec![event(Call::Get, Some(1), (1, 2)), event(Call::Remove, None, (3, 4))]]));
    let lost = [vec![event(Call::Upsert(1), None, (0, 1))], vec![event(Call::Upsert(2), None, (0, 1))]];
    assert!(!has_order(&lost));
}

/// From when until when an entry was there: began and ended to be inserted, began and ended to be removed.
#[derive(Debug, Clone, Copy)]
struct Stay {
    inserted: (u64, u64),
    removed: (u64, u64),
}

/// Inserts and removes numbers of its own, odd ones of its half, and notes when.
fn come_and_go<K: Numbered, L: Latching>(
    tree: &BPlusTree<K, u64, L>,
    seed: u64,
    (clock, written): (&AtomicU64, &AtomicU64),
    is_done: &AtomicBool,
) -> BTreeMap<u64, Vec<Stay>> {
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    let (mut numbers, mut stays) = (Numbers(seed), BTreeMap::<u64, Vec<Stay>>::new());
    while !is_done.load(Ordering::Relaxed) {
        let first = numbers.below(NUMBERS) & !3;
        let run: Vec<u64> = (first..first + 160).skip(1 + 2 * (seed as usize % 2)).step_by(4).collect();
        let insert = |number: &u64| {
            let start = now();
            assert_eq!(tree.insert(K::of(&K::key(*number)), *number), None);
            (*number, (start, now()))
        };
        let inserted: Vec<_> = run.iter().map(insert).collect();
        for (number, inserted) in inserted {
            let start = now();
            assert_eq!(tree.remove(K::of(&K::key(number))), Some(number));
            stays.entry(number).or_default().push(Stay { inserted, removed: (start, now()) });
            written.fetch_add(1, Ordering::Relaxed);
        }
    }
    stays
}

/// Scans in one of four ways: up, down, from both ends, and up between bounds.
fn scan<K: Numbered, L: Latching>(tree: &BPlusTree<K, u64, L>, round: u64) -> (std::ops::Range<u64>, Vec<u64>) {
    let (all, some) = (0..NUMBERS + 200, 130..770);
    let values = |entries: Vec<(K::Owned, u64)>| {
        assert!(entries.iter().all(|(key, value)| *key == K::key(*value)));
        entries.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    match round % 4 {
        0 => (all, values(tree.range(..).collect())),
        1 => {
            let mut down: Vec<_> = tree.range(..).rev().collect();
            down.reverse();
            (all, values(down))
        }
        2 => {
            let mut range = tree.range(..);
            let mut entries: Vec<_> = range.by_ref().take(300).collect();
            let mut back: Vec<_> = range.rev().collect();
            back.reverse();
            entries.extend(back);
            (all, values(entries))
        }
        _ => {
            let (low, high) = (K::key(some.start), K::key(some.end));
            (some, values(tree.range(K::of(&low)..K::of(&high)).collect()))
        }
    }
}

fn race_scans<K: Numbered, L: Latching>(rounds: u64) {
    let (tree, clock, is_done) = (BPlusTree::<K, u64, L>::new(), AtomicU64::new(0), AtomicBool::new(false));
    for number in (0..NUMBERS).step_by(2) {
        assert_eq!(tree.insert(K::of(&K::key(number)), number), None);
    }
    let (mut scans, written) = (vec![], AtomicU64::new(0));
    let stays: Vec<_> = thread::scope(|scope| {
        let (tree, clocks, is_done) = (&tree, (&clock, &written), &is_done);
        let writers: Vec<_> = [6, 7].map(|seed| scope.spawn(move || come_and_go(tree, seed, clocks, is_done))).into();
        for round in 0..rounds {
            // Each scan finds something new.
            wait_for(&written, 4 * round);
            let start = clock.fetch_add(1, Ordering::SeqCst);
            let (range, seen) = scan(tree, round);
            scans.push((range, seen, (start, clock.fetch_add(1, Ordering::SeqCst))));
        }
        is_done.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let stays: BTreeMap<_, _> = stays.into_iter().flatten().collect();
    for (range, seen, (start, end)) in scans {
        assert!(seen.is_sorted_by(|left, right| left < right), "in order, each once");
        assert!(seen.iter().all(|number| range.contains(number)));
        let seen: HashSet<u64> = seen.into_iter().collect();
        for number in range.clone().step_by(2).filter(|number| *number < NUMBERS) {
            assert!(seen.contains(&number), "{number} was always there");
        }
        for (number, stays) in stays.iter().filter(|(number, _)| range.contains(number)) {
            let was_there_throughout = |stay: &Stay| stay.inserted.1 < start && stay.removed.0 > end;
            let was_there = |stay: &Stay| stay.inserted.0 < end && stay.removed.1 > start;
            let is_seen = seen.contains(number);
            assert!(is_seen || !stays.iter().any(was_there_throughout), "{number} is missing");
            assert!(!is_seen || stays.iter().any(was_there), "{number} was not there");
        }
    }
}

#[test]
fn a_scan_sees_what_is_there_throughout_and_nothing_that_is_not_there() {
    race_scans::<u64, NodeLatches>(60);
    race_scans::<Bytes, NodeLatches>(40);
    race_scans::<u64, TreeLatch<SpinLatch>>(16);
    race_scans::<u64, TreeLatch<Elided<RwSpinLatch>>>(16);
}

#[test]
fn writers_in_separate_keys_leave_exactly_what_they_left() {
    let tree: BPlusTree<u64, u64> = BPlusTree::new();
    thread::scope(|scope| {
        for thread in 0..4u64 {
            let tree = &tree;
            scope.spawn(move || {
                let keys = || (0..2_000).map(|index| index * 4 + thread);
                keys().for_each(|key| assert_eq!(tree.insert(key, key), None));
                keys().filter(|key| key / 4 % 8 != 0).for_each(|key| assert_eq!(tree.remove(key), Some(key)));
            });
        }
    });
    let left: Vec<_> = (0..8_000u64).filter(|key| key / 4 % 8 == 0).map(|key| (key, key)).collect();
    assert_eq!(tree.range(..).collect::<Vec<_>>(), left);
    assert_eq!(tree.len(), left.len());
}

#[test]
fn one_of_many_gets_each_unique_key() {
    let (index, wins) = (UniqueTree::<Bytes>::new(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (index, wins) = (&index, &wins);
            scope.spawn(move || {
                for number in 0..1_500 {
                    let key = Bytes::key(number);
                    match index.insert_unique(&key, Rid::base(thread, 0), |_| Holder::Present) {
                        Ok(()) => {
                            wins.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(other) => {
                            let found = index.find(&sync::pin(), &key, Some);
                            assert_eq!(found, Some(other), "the winner is there");
                        }
                    }
                }
            });
        }
    });
    assert_eq!((wins.into_inner(), index.len()), (1_500, 1_500));
}
