//! Structures and sections: against a model, under every way to synchronize, and on the memory of this computer.

use latches::elision::{AbortCause, RetryPolicy};
use proptest::prelude::*;
use sim::delegation::Mailboxes;
use sim::sections::{Elision, Latch, SectionCounts, Way};
use sim::structures::{AvlTree, IndexKind, IndexTree, LeafTree, Pool, Set, SkipList};
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

/// Keys that a thread adds to an index, and those that it looks for at the end.
const ADDED: u64 = 200;
const LOOKED_FOR: u64 = 3_000;

/// What an index answers about all keys after four threads have added some on the machine.
fn index_after(kind: IndexKind, way: Way) -> Vec<bool> {
    let simulation = Simulation::new(MachineConfig::free(2, 4, 1), 1);
    let latch = Latch::at(simulation.allocate(Latch::WORDS));
    let index = IndexTree::new(kind, LOOKED_FOR, simulation.allocator());
    let pool = Pool::of(&simulation, IndexTree::NODE_WORDS);
    let memory = simulation.unclocked();
    assert_eq!(complete(index.prepare(&memory, &pool)), Ok(()));
    pool.settle();
    simulation.run(&[0, 1, 4, 5], |thread| {
        let (latch, pool) = (&latch, Pool::of(&simulation, IndexTree::NODE_WORDS));
        async move {
            let (mut random, counts) = (Random::of(7, thread.number() as u64), SectionCounts::default());
            for _ in 0..ADDED {
                let key = random.below(LOOKED_FOR);
                let body = async || index.insert(&thread, key, &pool).await;
                way.run(&thread, latch, true, &counts, body).await?;
                pool.settle();
            }
            Ok(())
        }
    });
    (0..LOOKED_FOR).map(|key| complete(index.contains(&memory, key)).unwrap_or(false)).collect()
}

/// What it answers after the same work by threads of the system on this computer's memory.
fn index_natively(kind: IndexKind) -> Vec<bool> {
    let memory = NativeMemory::new(1 << 21);
    let next = Arc::new(AtomicU64::new(1_024));
    let allocator = || {
        let next = next.clone();
        move |words: u64| next.fetch_add(words.next_multiple_of(8), Ordering::Relaxed)
    };
    let (latch, index) = (Latch::at(64), IndexTree::new(kind, LOOKED_FOR, allocator()));
    let first = memory.thread(0, 1);
    let pool = Pool::new(IndexTree::NODE_WORDS, allocator());
    assert_eq!(complete(index.prepare(&first, &pool)), Ok(()));
    pool.settle();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (thread, allocate) = (memory.thread(number, 1), allocator());
            scope.spawn(move || {
                let pool = Pool::new(IndexTree::NODE_WORDS, allocate);
                let (mut random, counts) = (Random::of(7, number as u64), SectionCounts::default());
                for _ in 0..ADDED {
                    let key = random.below(LOOKED_FOR);
                    let body = async || index.insert(&thread, key, &pool).await;
                    assert!(complete(Way::Elided(Elision::TLE_20).run(&thread, &latch, true, &counts, body)).is_ok());
                    pool.settle();
                }
            });
        }
    });
    (0..LOOKED_FOR).map(|key| complete(index.contains(&first, key)).unwrap_or(false)).collect()
}

#[test]
fn threads_leave_the_same_index_on_the_machine_and_on_this_computer() {
    let mut keys = BTreeSet::new();
    for thread in 0..4 {
        let mut random = Random::of(7, thread);
        keys.extend((0..ADDED).map(|_| random.below(LOOKED_FOR)));
    }
    let expected: Vec<bool> = (0..LOOKED_FOR).map(|key| keys.contains(&key)).collect();
    for kind in [IndexKind::BPlus, IndexKind::Delta, IndexKind::TunedDelta] {
        assert!(index_natively(kind) == expected, "{kind:?}");
        for way in [Way::Spin, Way::Elided(Elision::TLE_20), Way::Elided(Elision::HLE)] {
            assert!(index_after(kind, way) == expected, "{kind:?} {way:?}");
        }
    }
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

/// How often the body of a section runs whose transactions all abort for a cause: the last time under the latch.
fn runs_of(elision: Elision, cause: AbortCause) -> u32 {
    let simulation = Simulation::new(MachineConfig::free(1, 1, 1), 4);
    let latch = Latch::at(simulation.allocate(Latch::WORDS));
    let runs = RefCell::new(0);
    simulation.run(&[0], |thread| {
        let (latch, runs) = (&latch, &runs);
        async move {
            let counts = SectionCounts::default();
            let body = async || {
                *runs.borrow_mut() += 1;
                if thread.load(latch.word).await? == 0 { thread.abort(cause).await } else { Ok(()) }
            };
            Way::Elided(elision).run(&thread, latch, true, &counts, body).await?;
            assert_eq!(counts.fall_backs(), 1);
            Ok(())
        }
    });
    runs.into_inner()
}

#[test]
fn every_policy_takes_the_latch_after_as_many_attempts_as_it_allows_and_hle_after_one() {
    use AbortCause::{Conflict, Explicit, Other, Overflow};
    let of = |policy| Elision::with(policy);
    for cause in [Conflict, Explicit, Other, Overflow] {
        assert_eq!(runs_of(Elision::HLE, cause), 2, "{cause:?}");
        assert_eq!(runs_of(of(RetryPolicy::TLE_5), cause), 6, "{cause:?}");
        assert_eq!(runs_of(Elision::LEMMING, cause), 6, "{cause:?}");
        assert_eq!(runs_of(Elision::TLE_20, cause), 21, "{cause:?}");
        assert_eq!(runs_of(Elision::SCM, cause), 21, "{cause:?}");
        let [five, twenty] = if cause == Overflow { [2, 2] } else { [6, 21] };
        assert_eq!(runs_of(of(RetryPolicy::TLE_5_FALL_BACK_ON_OVERFLOW), cause), five, "{cause:?}");
        assert_eq!(runs_of(of(RetryPolicy::TLE_20_FALL_BACK_ON_OVERFLOW), cause), twenty, "{cause:?}");
    }
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
