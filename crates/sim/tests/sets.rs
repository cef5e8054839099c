//! Structures and sections: against a model, under every way to synchronize, and on the memory of this computer.

use latches::elision::{AbortCause, RetryPolicy};
use proptest::prelude::*;
use sim::delegation::Mailboxes;
use sim::sections::{Elision, Latch, SectionCounts, Way};
use sim::structures::{AvlTree, LeafTree, Pool, Set, SkipList};
use sim::{MachineConfig, Memory, NativeMemory, Random, Simulation, complete};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ELIDED: [Elision; 5] = [
    Elision::TLE_20,
    Elision::SCM,
    Elision::HLE,
    Elision::LEMMING,
    Elision::with(RetryPolicy::TLE_5_FALL_BACK_ON_OVERFLOW),
];

fn ways() -> Vec<Way> {
    [Way::Spin, Way::ReadWrite].into_iter().chain(ELIDED.map(Way::Elided)).collect()
}

/// One thread's changes, in their order: what the set answers must be what a model answers.
fn agrees_with_a_model<S: Set>(changes: &[(u8, u64)]) {
    let simulation = Simulation::new(MachineConfig::I7_4770, 1);
    let set = S::at(simulation.allocate(S::WORDS));
    let pool = Pool::of(&simulation, S::NODE_WORDS);
    let memory = simulation.unclocked();
    let mut model = BTreeSet::new();
    for &(change, key) in changes {
        let (found, expected) = match change {
            0 => (complete(set.contains(&memory, key)), model.contains(&key)),
            1 => (complete(set.remove(&memory, key, &pool)), model.remove(&key)),
            2 => (complete(set.search_and_replace(&memory, key)).map(|()| true), true),
            _ => (complete(set.insert(&memory, key, &pool)), model.insert(key)),
        };
        assert_eq!(found, Ok(expected));
        pool.settle();
    }
    let mut keys = complete(set.keys(&memory)).unwrap_or_default();
    keys.sort_unstable();
    assert_eq!(keys, model.into_iter().collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_set_answers_as_its_model(changes in prop::collection::vec((0u8..5, 0u64..60), 1..250)) {
        agrees_with_a_model::<AvlTree>(&changes);
        agrees_with_a_model::<LeafTree>(&changes);
        agrees_with_a_model::<SkipList>(&changes);
    }
}

/// The changes of one thread: keys that no other thread has, so that the end does not depend on the order among threads.
fn change_of(random: &mut Random, thread: u64) -> (bool, u64) {
    (random.below(3) > 0, random.below(40) * 8 + thread)
}

/// What a set holds after threads have worked on it.
fn after<S: Set>(way: Way, threads: usize, changes: u64, seed: u64) -> (Vec<u64>, u64) {
    let simulation = Simulation::new(MachineConfig::free(2, 4, 1), seed);
    let latch = Latch::at(simulation.allocate(Latch::WORDS));
    let set = S::at(simulation.allocate(S::WORDS));
    let fall_backs = RefCell::new(0);
    let cores: Vec<usize> = (0..threads).collect();
    simulation.run(&cores, |thread| {
        let (set, latch, fall_backs) = (&set, &latch, &fall_backs);
        let pool = Pool::of(&simulation, S::NODE_WORDS);
        async move {
            let (mut random, counts) = (Random::of(9, thread.number() as u64), SectionCounts::default());
            for _ in 0..changes {
                let (adds, key) = change_of(&mut random, thread.number() as u64);
                let body = async || match adds {
                    true => set.insert(&thread, key, &pool).await,
                    false => set.remove(&thread, key, &pool).await,
                };
                way.run(&thread, latch, true, &counts, body).await?;
                pool.settle();
            }
            *fall_backs.borrow_mut() += counts.fall_backs();
            Ok(())
        }
    });
    assert!(simulation.machine().is_coherent());
    let mut keys = complete(set.keys(&simulation.unclocked())).unwrap_or_default();
    keys.sort_unstable();
    let fall_backs = *fall_backs.borrow();
    (keys, fall_backs)
}

/// What a set of this computer's memory holds after the same work by threads of the system.
fn natively<S: Set + Send + Sync>(threads: usize, changes: u64) -> Vec<u64> {
    let memory = NativeMemory::new(1 << 18);
    let (latch, set) = (Latch::at(64), S::at(128));
    let next = Arc::new(AtomicU64::new(256));
    std::thread::scope(|scope| {
        for number in 0..threads {
            let (memory, latch, set, next) = (&memory, &latch, &set, next.clone());
            scope.spawn(move || {
                let thread = memory.thread(number, 9);
                let pool = Pool::new(S::NODE_WORDS, move |words| next.fetch_add(words, Ordering::Relaxed));
                let (mut random, counts) = (Random::of(9, number as u64), SectionCounts::default());
                for _ in 0..changes {
                    let (adds, key) = change_of(&mut random, number as u64);
                    let body = async || match adds {
                        true => set.insert(&thread, key, &pool).await,
                        false => set.remove(&thread, key, &pool).await,
                    };
                    assert!(complete(Way::Elided(Elision::TLE_20).run(&thread, latch, true, &counts, body)).is_ok());
                    pool.settle();
                }
            });
        }
    });
    let mut keys = complete(set.keys(&memory.thread(0, 0))).unwrap_or_default();
    keys.sort_unstable();
    keys
}

#[test]
fn threads_leave_the_same_set_on_the_machine_and_on_this_computer() {
    let natively = [natively::<AvlTree>(4, 150), natively::<LeafTree>(4, 150), natively::<SkipList>(4, 150)];
    for way in ways() {
        assert_eq!(after::<AvlTree>(way, 4, 150, 1).0, natively[0], "{way:?}");
        assert_eq!(after::<LeafTree>(way, 4, 150, 2).0, natively[1], "{way:?}");
        assert_eq!(after::<SkipList>(way, 4, 150, 3).0, natively[2], "{way:?}");
    }
    assert!(natively[0] == natively[1] && natively[1] == natively[2] && natively[0].len() > 20);
}

/// Threads that count up a word, and where sections overlap lose additions.
fn lost_additions(way: Way) -> u64 {
    let simulation = Simulation::new(MachineConfig::free(1, 4, 1), 4);
    let latch = Latch::at(simulation.allocate(Latch::WORDS));
    let at = simulation.allocate(8);
    simulation.run(&[0, 1, 2, 3], |thread| {
        let latch = &latch;
        async move {
            let counts = SectionCounts::default();
            for _ in 0..100 {
                let body = async || {
                    let value = thread.load(at).await?;
                    thread.compute(50).await?;
                    thread.store(at, value + 1).await
                };
                way.run(&thread, latch, true, &counts, body).await?;
            }
            Ok(())
        }
    });
    400 - simulation.machine().word(at)
}

#[test]
fn sections_exclude_each_other_in_every_way_but_the_one_without_a_latch() {
    for way in ways() {
        assert_eq!(lost_additions(way), 0, "{way:?}");
    }
    assert!(lost_additions(Way::Unsynchronized) > 100);
}

/// The share of sections that take the latch when one thread's sections sometimes must.
fn fall_backs(elision: Elision) -> f64 {
    let simulation = Simulation::new(MachineConfig::free(1, 8, 1), 4);
    let latch = Latch::at(simulation.allocate(Latch::WORDS));
    let own = simulation.allocate(64);
    let sums = SectionCounts::default();
    simulation.run(&[0, 1, 2, 3, 4, 5, 6, 7], |thread| {
        let (latch, sums) = (&latch, &sums);
        async move {
            let counts = SectionCounts::default();
            let number = thread.number() as u64;
            for section in 0..200 {
                let is_held_now = |at: u64| at != 0;
                let body = async || {
                    // Every so often a section does what no transaction can.
                    let is_held = is_held_now(thread.load(latch.word).await?);
                    if number == 0 && section % 20 == 0 && !is_held {
                        thread.abort(AbortCause::Other).await?;
                    }
                    thread.store(own + number * 8, section).await?;
                    thread.compute(2_000).await
                };
                Way::Elided(elision).run(&thread, latch, true, &counts, body).await?;
            }
            sums.add(&counts);
            Ok(())
        }
    });
    sums.fall_backs() as f64 / sums.sections() as f64
}

#[test]
fn threads_that_do_not_wait_for_a_free_latch_follow_the_one_that_took_it() {
    let (with_cure, without) = (fall_backs(Elision::with(RetryPolicy::TLE_5)), fall_backs(Elision::LEMMING));
    assert!(with_cure < 0.02, "ten sections of 1,600 had to: {with_cure}");
    assert!(without > 0.3, "the lemming effect: {without}");
}

#[test]
fn the_auxiliary_latch_spares_the_latch_where_all_sections_conflict() {
    let run = |elision| after::<LeafTree>(Way::Elided(elision), 8, 200, 5).1;
    let (plain, ordered) = (
        run(Elision::with(RetryPolicy::TLE_5)),
        run(Elision { has_auxiliary: true, ..Elision::with(RetryPolicy::TLE_5) }),
    );
    assert!(ordered * 2 <= plain, "{ordered} and {plain}");
}

#[test]
fn servers_answer_each_request_of_each_client_once() {
    let (servers, clients) = (2, 5);
    let simulation = Simulation::new(MachineConfig::free(2, 4, 1), 3);
    let boxes = Mailboxes::at(simulation.allocate(Mailboxes::words(servers, clients)), clients);
    let sums = simulation.allocate(16);
    simulation.run(&[0, 4, 1, 2, 5, 6, 7], |thread| async move {
        let number = thread.number() as u64;
        if number < servers {
            let sum = sums + 8 * number;
            let add = async |request| {
                let before = thread.load(sum).await?;
                thread.store(sum, before + request).await?;
                Ok(request * 2)
            };
            return boxes.serve(&thread, number, add).await;
        }
        for request in 1..=100 {
            let answer = boxes.ask(&thread, request % servers, number - servers, request).await?;
            assert_eq!(answer, request * 2);
        }
        boxes.end(&thread, servers).await
    });
    let sum = |server: u64| simulation.machine().word(sums + 8 * server);
    assert_eq!((sum(0), sum(1)), (5 * 2_550, 5 * 2_500));
}
