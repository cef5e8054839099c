//! Writers that never stop, and snapshots of their array: each shows one instant, also while it is read.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use snapshot::{Mechanism, Options, Pages, SnapshotArray, Stop};

const ITEMS: usize = 40_000;

/// The mechanisms that run here, and both ways in which a physical snapshot stops writers.
fn all_options() -> Vec<Options> {
    let mut all = Mechanism::ALL.map(Options::of).to_vec();
    for pages in [Pages::Small, Pages::Huge] {
        all.push(Options { pages, stop: Stop::Protected, ..Options::of(Mechanism::Physical) });
    }
    all.retain(|options| SnapshotArray::<u8>::new(1, options).and_then(|array| array.snapshot().map(drop)).is_ok());
    all
}

/// Tells writers that it is over, also where a check has failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Steps through the items in an order that jumps from page to page.
fn place(step: usize) -> usize {
    step.wrapping_mul(7_919) % ITEMS
}

/// Each writer owns a half of the items and sets them in a fixed order to 1, then to 2 and so on. At one instant the items of a half are
/// a number and, from some place of the order on, the number before.
fn write_rounds(array: &SnapshotArray<i64>, half: usize, is_over: &AtomicBool) {
    let mut writer = array.writer();
    let mut round = 0;
    while !is_over.load(Ordering::Relaxed) {
        round += 1;
        for step in (0..ITEMS).filter(|step| place(*step) % 2 == half) {
            writer.set(place(step), round).unwrap();
        }
    }
}

fn check_half(items: &[i64], half: usize) {
    let order = (0..ITEMS).filter(|step| place(*step) % 2 == half).map(|step| items[place(step)]);
    let values: Vec<i64> = order.collect();
    assert!(values.is_sorted_by(|one, other| one >= other), "a later item is newer than an earlier one");
    assert!(values[0] - values[values.len() - 1] <= 1, "{} and {}", values[0], values[values.len() - 1]);
}

#[test]
fn a_snapshot_beside_writers_is_one_instant_and_does_not_change() {
    for options in all_options() {
        let array = SnapshotArray::<i64>::new(ITEMS, &options).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            let over = Over(&is_over);
            for half in 0..2 {
                let (array, is_over) = (&array, &is_over);
                threads.spawn(move || write_rounds(array, half, is_over));
            }
            let mut kept = Vec::new();
            for round in 0..24 {
                let snapshot = array.snapshot().unwrap();
                let items = snapshot.to_vec(..).unwrap();
                check_half(&items, 0);
                check_half(&items, 1);
                kept.push((snapshot, items));
                if kept.len() > 3 {
                    let (snapshot, items) = kept.remove(round % kept.len());
                    assert!(snapshot.to_vec(..).unwrap() == items, "a snapshot has changed: {options:?}");
                }
            }
            drop(over);
            for (snapshot, items) in kept {
                assert!(snapshot.to_vec(..).unwrap() == items, "a snapshot has changed: {options:?}");
            }
        });
    }
}

#[test]
fn a_batch_is_in_a_snapshot_as_a_whole_or_not_at_all() {
    for options in all_options() {
        let array = SnapshotArray::<i64>::new(ITEMS, &options).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            let over = Over(&is_over);
            for seed in 0..2usize {
                let (array, is_over) = (&array, &is_over);
                threads.spawn(move || {
                    let mut writer = array.writer();
                    let mut step = seed;
                    while !is_over.load(Ordering::Relaxed) {
                        step += 2;
                        // A transfer: the sum of all items stays.
                        writer.batch(|batch| {
                            batch.add(place(step), -5).unwrap();
                            batch.add(place(step + 1), 5).unwrap();
                        });
                    }
                });
            }
            for _ in 0..40 {
                assert_eq!(array.snapshot().unwrap().sum(..).unwrap(), 0, "{options:?}");
            }
            drop(over);
        });
    }
}

#[test]
fn many_threads_take_and_read_snapshots_at_the_same_time() {
    for options in all_options() {
        let array = SnapshotArray::<u32>::new(ITEMS, &options).unwrap();
        thread::scope(|threads| {
            for part in 0..4usize {
                let (array, options) = (&array, &options);
                threads.spawn(move || {
                    let mut writer = array.writer();
                    for round in 1..=10 {
                        (part..ITEMS).step_by(400).for_each(|index| writer.set(index, round).unwrap());
                        let snapshot = array.snapshot().unwrap();
                        (part..ITEMS).step_by(400).for_each(|index| writer.set(index, 0).unwrap());
                        // Nobody else writes these items.
                        let seen = snapshot.to_vec(..).unwrap();
                        assert!((part..ITEMS).step_by(400).all(|index| seen[index] == round), "{options:?}");
                    }
                });
            }
        });
    }
}

/// Each thread carries the number that the one before has written on to its own item: at one instant no item is ahead of the one that it
/// was read from.
#[test]
fn what_came_before_an_update_of_a_snapshot_is_in_it_also_across_threads() {
    // So many that a copy takes longer than it takes a stopped writer to wake up.
    const LEN: usize = 1 << 20;
    const APART: usize = LEN / 4;
    for options in all_options() {
        let array = SnapshotArray::<i64>::new(LEN, &options).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            let over = Over(&is_over);
            // In both directions, as pages are protected and copied in one.
            for (from, to) in [(0, 3), (3, 1), (1, 2)] {
                let (array, is_over) = (&array, &is_over);
                threads.spawn(move || {
                    let mut writer = array.writer();
                    while !is_over.load(Ordering::Relaxed) {
                        let seen = array.get(from * APART).unwrap();
                        writer.set(to * APART, seen).unwrap();
                        if from == 0 {
                            writer.add(0, 1).unwrap();
                        }
                    }
                });
            }
            for _ in 0..60 {
                let snapshot = array.snapshot().unwrap();
                let chain = [0, 3, 1, 2].map(|part| snapshot.get(part * APART).unwrap());
                assert!(chain.is_sorted_by(|one, other| one >= other), "{chain:?}: {options:?}");
            }
            drop(over);
        });
    }
}
