//! The paper's workloads, small: what they leave is consistent, in memory and after the heap was opened again, whichever
//! way they commit; and the figures come with their baselines.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use durability::{CommitMode, Device, LogOptions};
use heap::{Heap, HeapOptions, HeapRef};
use lab::heap::{
    Figure, FigureOptions, Pace, Random, Table, Vacation, VacationOptions, Words, Workload, commit_modes, drive,
    durability_costs,
};
use testkit::FaultyDevice;

const SMALL: VacationOptions =
    VacationOptions { things: 4, queried_percent: 60, reserving_percent: 80, rows: 60, transactions: 600 };

fn options() -> HeapOptions {
    let log = LogOptions { partitions: 2, flush_interval: Some(Duration::from_millis(1)), ..LogOptions::default() };
    HeapOptions { words: 1 << 18, chunk_words: 1 << 10, checkpoint_interval: None, log, ..HeapOptions::default() }
}

/// All kinds of transactions from several threads, some in each mode, and checkpoints beside them.
fn book(heap: &Heap, vacation: &Vacation, threads: u64) {
    let modes = [CommitMode::Async, CommitMode::Sync, CommitMode::Async];
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut random = Random::new(thread);
                let mut actions = BTreeSet::new();
                for number in 0..SMALL.transactions {
                    let action = vacation.choose(&mut random);
                    actions.insert(action as u8);
                    let mode = modes[(number % 16 / 7) as usize];
                    let committed = vacation.run(heap, &mut random, action, mode).unwrap();
                    heap.wait(&committed).unwrap();
                }
                assert_eq!(actions.len(), 3, "clients do all there is to do");
            });
        }
        for _ in 0..4 {
            heap.checkpoint().unwrap();
        }
    });
}

#[test]
fn every_used_place_of_vacation_has_its_reservation_in_the_end() {
    let heap = Heap::volatile(options());
    let vacation = Vacation::create(&heap, SMALL).unwrap();
    vacation.check(&heap).unwrap().unwrap();
    // Once is enough, but where threads have run one after the other on one core.
    for _ in 0..20 {
        book(&heap, &vacation, 4);
        vacation.check(&heap).unwrap().unwrap();
        if heap.stats().conflicts > 0 {
            return;
        }
    }
    panic!("no two clients have met in 20 rounds");
}

#[test]
fn vacation_goes_on_after_crashes() {
    let mut device = FaultyDevice::new(0);
    let (heap, _) = Heap::open(Arc::new(device.clone()), options()).unwrap();
    let vacation = Vacation::create(&heap, SMALL).unwrap();
    heap.atomically(CommitMode::Sync, |tx| tx.set_root(7, vacation.place())).unwrap();
    let mut heap = heap;
    for life in 0..4 {
        book(&heap, &vacation, 2);
        let image = device.after_power_loss(life);
        drop(heap);
        (heap, device) = (Heap::open(Arc::new(image.clone()), options()).unwrap().0, image);
        let place = heap.atomically(CommitMode::Async, |tx| tx.root(7)).unwrap();
        Vacation::at(place, SMALL).check(&heap).unwrap().unwrap();
    }
}

#[test]
fn the_words_sum_up_to_nothing_and_the_table_holds_whole_entries() {
    let device = FaultyDevice::new(0);
    let (heap, _) = Heap::open(Arc::new(device), options()).unwrap();
    let words = Words::create(&heap, 500).unwrap();
    let table = Table::create(&heap, 400).unwrap();
    let time = Duration::from_millis(60);
    let paces = [
        Pace::Each(CommitMode::Async),
        Pace::Each(CommitMode::Sync),
        Pace::Each(CommitMode::Partition),
        Pace::Split(CommitMode::Async, Duration::from_millis(1)),
        Pace::Split(CommitMode::Partition, Duration::from_millis(1)),
    ];
    for (seed, pace) in paces.into_iter().enumerate() {
        for workload in [&words as &dyn Workload, &table] {
            let done = drive(&heap, workload, 3, time, pace, seed as u64).unwrap();
            assert!(done.transactions > 0 && done.per_s > 0.0);
            workload.check(&heap).unwrap().unwrap();
        }
    }
    heap.atomically(CommitMode::Async, |tx| tx.write(HeapRef::from_word(66), 1)).unwrap();
    assert!(words.check(&heap).unwrap().is_err());
}

#[test]
fn figures_stand_beside_their_baselines() {
    let options = FigureOptions {
        threads: vec![2],
        time: Duration::from_millis(10),
        rounds: 2,
        words: 1 << 10,
        keys: 1 << 8,
        vacation: SMALL,
        intervals: vec![Duration::from_millis(1)],
    };
    let mut make = || Ok(Arc::new(FaultyDevice::new(0)) as Arc<dyn Device>);
    let mut figures: Vec<Figure> = Vec::new();
    durability_costs(&options, &mut make, &mut |figure| figures.push(figure.clone())).unwrap();
    assert_eq!(figures.len(), 3 * 4);
    commit_modes(&options, &mut make, &mut |figure| figures.push(figure.clone())).unwrap();
    assert_eq!(figures.len(), 12 + 5);
    for figure in &figures {
        assert!(figure.per_s_min <= figure.per_s_median && figure.per_s_median <= figure.per_s_max);
        assert_eq!((figure.rounds, figure.baseline.is_some()), (2, figure.ratio.is_some()));
    }
    assert!(figures[3].case.contains("partitioned log") && figures[3].baseline == Some("single log"));
}
