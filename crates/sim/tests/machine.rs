//! The machine against cases whose answer is known by hand, and against a model of memory.

use proptest::prelude::*;
use sim::machine::{CacheShape, Core};
use sim::{Aborted, Address, MachineConfig, Memory, SimulatedThread, Simulation};
use std::cell::RefCell;

/// Two sockets with two cores of two threads, small caches, and costs that are easy to tell apart.
fn small() -> MachineConfig {
    let mut config = MachineConfig::free(2, 2, 2);
    config.l1 = CacheShape { sets: 2, ways: 2 };
    config.l2 = CacheShape { sets: 2, ways: 4 };
    config.l3 = CacheShape { sets: 4, ways: 8 };
    config.latencies.issue = 0;
    config.latencies.l1 = 1;
    config.latencies.l2 = 10;
    config.latencies.l3 = 100;
    config.latencies.transfer = 200;
    config.latencies.hop = 1_000;
    config.latencies.link = 0;
    config.prefetches_pairs = false;
    config.latencies.memory = 10_000;
    config.latencies.atomic = 0;
    config.transactions.interrupt_period = 0;
    config.transactions.replacement_noise_ppm = 0;
    config.slack = 0;
    config
}

/// What each of some accesses by one thread costs: reads, atomic additions (`a`), which wait for their line, and stores.
fn costs(simulation: &Simulation, core: Core, accesses: &[(char, Address)]) -> Vec<u64> {
    let costs = RefCell::new(Vec::new());
    simulation.run(&[core], |thread| {
        let costs = &costs;
        async move {
            for &(kind, at) in accesses {
                let before = thread.now();
                match kind {
                    'r' => thread.load(at).await.map(drop)?,
                    'w' => thread.store(at, 1).await?,
                    _ => thread.fetch_add(at, 1).await.map(drop)?,
                }
                costs.borrow_mut().push(thread.now() - before);
            }
            Ok(())
        }
    });
    assert!(simulation.machine().is_coherent());
    costs.into_inner()
}

#[test]
fn each_level_costs_what_it_should() {
    let simulation = Simulation::new(small(), 1);
    let at = simulation.allocate(8);
    assert_eq!(
        costs(&simulation, 0, &[('r', at), ('r', at), ('a', at + 7)]),
        [10_000, 1, 1],
        "memory, then exclusive in L1"
    );
    assert_eq!(costs(&simulation, 1, &[('r', at), ('r', at)]), [200, 1], "from the owner, then from L1");
    assert_eq!(costs(&simulation, 0, &[('r', at)]), [1], "the owner of before shares it");
    assert_eq!(costs(&simulation, 0, &[('a', at)]), [200], "the copy beside goes");
    assert_eq!(costs(&simulation, 2, &[('r', at)]), [1_100], "from an owner on the other socket");
    assert_eq!(costs(&simulation, 1, &[('r', at)]), [100], "from L3");
    assert_eq!(costs(&simulation, 3, &[('a', at)]), [1_200], "the copies beside and on the other socket go");
}

#[test]
fn a_line_that_only_the_other_socket_has_costs_a_hop() {
    let simulation = Simulation::new(small(), 1);
    let at = simulation.allocate(8);
    costs(&simulation, 0, &[('r', at)]);
    costs(&simulation, 1, &[('r', at)]);
    assert_eq!(costs(&simulation, 2, &[('r', at), ('r', at)]), [1_100, 1]);
    assert_eq!(costs(&simulation, 0, &[('a', at)]), [1_200], "as the other socket has a copy");
}

#[test]
fn memory_of_the_other_socket_costs_a_hop() {
    let simulation = Simulation::new(small(), 1);
    let first = simulation.allocate(128 * 8);
    // 64 lines are a page, and pages lie on the sockets in turn.
    let here = first + (64 * 8 - first % (64 * 8)) + 64 * 8;
    assert_eq!(costs(&simulation, 0, &[('r', here)]), [10_000]);
    assert_eq!(costs(&simulation, 0, &[('r', here - 64 * 8)]), [11_000]);
}

#[test]
fn what_does_not_fit_into_l1_comes_from_l2_and_then_from_l3() {
    let simulation = Simulation::new(small(), 1);
    let first = simulation.allocate(12 * 8);
    let line = |number: u64| ('r', first + number * 8);
    let touch = |numbers: &[u64]| numbers.iter().map(|&number| line(number)).collect::<Vec<_>>();
    // One set of L1 has two lines; lines with even numbers share it.
    costs(&simulation, 0, &touch(&[0, 2, 4]));
    assert_eq!(costs(&simulation, 0, &touch(&[0, 4])), [10, 1]);
    // One set of L2 has four lines.
    costs(&simulation, 0, &touch(&[0, 2, 4, 6, 8, 10]));
    assert_eq!(costs(&simulation, 0, &touch(&[0, 10])), [100, 1]);
}

#[test]
fn a_line_that_two_sockets_write_in_turn_costs_a_transfer_and_a_hop_each_time() {
    let simulation = Simulation::new(small(), 1);
    let at = simulation.allocate(8);
    let cycles = simulation.run(&[0, 2], |thread| async move {
        let me = thread.number() as u64;
        for _ in 0..100 {
            thread.wait_while(at, 1 - me).await?;
            thread.store(at, 1 - me).await?;
        }
        Ok(())
    });
    // Each turn reads the line from its owner, wins it from the reader's socket, and wakes the other.
    let turn = cycles as f64 / 200.0;
    assert!((2_300.0..3_600.0).contains(&turn), "{turn}");
    let same_socket = Simulation::new(small(), 1);
    let at = same_socket.allocate(8);
    let near = same_socket.run(&[0, 1], |thread| async move {
        let me = thread.number() as u64;
        for _ in 0..100 {
            thread.wait_while(at, 1 - me).await?;
            thread.store(at, 1 - me).await?;
        }
        Ok(())
    });
    assert!(cycles > 5 * near, "{cycles} and {near}");
}

/// What a program of one thread takes.
fn cycles<F: Future<Output = Result<(), Aborted>>>(
    simulation: &Simulation,
    program: impl Fn(SimulatedThread) -> F,
) -> u64 {
    let before = simulation.run(&[0], |thread| async move { thread.compute(1).await });
    simulation.run(&[0], program) - before
}

#[test]
fn stores_own_their_lines_together_and_an_atomic_instruction_waits_for_all_of_them() {
    let simulation = Simulation::new(small(), 1);
    let first = simulation.allocate(64);
    let stored = cycles(&simulation, |thread| async move {
        for line in 0..4 {
            thread.store(first + line * 8, 1).await?;
        }
        Ok(())
    });
    assert!(stored < 100, "the thread goes on: {stored}");
    let other = simulation.allocate(64);
    let waited = cycles(&simulation, |thread| async move {
        for line in 0..4 {
            thread.store(other + line * 8, 1).await?;
        }
        thread.fetch_add(other, 1).await.map(drop)
    });
    assert!((10_000..12_000).contains(&waited), "four lines of memory at once: {waited}");
}

#[test]
fn loads_that_need_no_value_are_on_their_way_together_and_the_next_one_waits_for_them() {
    let simulation = Simulation::new(small(), 1);
    let first = simulation.allocate(8 * 16);
    let ahead = cycles(&simulation, |thread| async move {
        for line in 0..10 {
            thread.load_ahead(first + line * 8).await?;
        }
        thread.load(first).await.map(drop)
    });
    assert!((19_000..24_000).contains(&ahead), "one latency, and a tenth for each: {ahead}");
    let other = simulation.allocate(8 * 16);
    let after = cycles(&simulation, |thread| async move {
        for line in 0..10 {
            thread.load(other + line * 8).await?;
        }
        Ok(())
    });
    assert!(after >= 90_000, "one after the other: {after}");
}

#[test]
fn lines_cross_between_sockets_one_after_the_other() {
    let run = |link: u64| {
        let mut config = small();
        config.latencies.link = link;
        let simulation = Simulation::new(config, 1);
        let first = simulation.allocate(8 * 64);
        costs(&simulation, 0, &(0..16).map(|line| ('r', first + line * 8)).collect::<Vec<_>>());
        simulation.run(&[2, 3], |thread| async move {
            let mine = thread.number() as u64 * 8;
            for line in mine..mine + 8 {
                thread.load_ahead(first + line * 8).await?;
            }
            Ok(())
        })
    };
    assert!(run(500) > run(0) + 2_000, "{} and {}", run(500), run(0));
}

#[test]
fn a_line_from_outside_brings_the_other_of_its_pair_along_and_aborts_a_transaction_that_wrote_it() {
    let mut config = small();
    config.prefetches_pairs = true;
    let simulation = Simulation::new(config, 1);
    let first = simulation.allocate(32);
    let pair = first + 8 * (first / 8 % 2);
    assert_eq!(costs(&simulation, 0, &[('r', pair), ('r', pair + 8)]), [10_000, 10], "the second is in L2");
    let ended = RefCell::new(Ok(()));
    simulation.run(&[0, 1], |thread| {
        let ended = &ended;
        async move {
            if thread.number() == 1 {
                thread.compute(20_000).await?;
                return thread.load(pair).await.map(drop);
            }
            let transaction = async {
                thread.begin().await?;
                thread.store(pair + 8, 1).await?;
                thread.compute(60_000).await?;
                thread.commit().await
            };
            *ended.borrow_mut() = transaction.await;
            Ok(())
        }
    });
    assert!(ended.into_inner().is_err(), "the line that was written went to the other core");
}

#[test]
fn a_line_that_another_core_has_changed_is_shared_by_a_reader_or_goes_over_to_it_where_lines_migrate() {
    let run = |lines_migrate: bool| {
        let simulation = Simulation::new(MachineConfig { lines_migrate, ..small() }, 1);
        let at = simulation.allocate(16);
        costs(&simulation, 0, &[('a', at), ('r', at + 8)]);
        let there = costs(&simulation, 1, &[('r', at), ('a', at), ('r', at + 8), ('a', at + 8)]);
        (there, costs(&simulation, 0, &[('r', at)]))
    };
    assert_eq!(run(false), (vec![200, 200, 200, 200], vec![200]), "an addition takes the other copy away");
    assert_eq!(run(true), (vec![200, 1, 200, 200], vec![200]), "what was only read is shared as ever");
}

#[test]
fn a_request_that_waits_for_a_line_on_its_way_gets_it_after_the_next_step_of_the_core_that_it_goes_to() {
    let mut config = MachineConfig { lines_migrate: true, ..small() };
    config.latencies.queued = 150;
    let simulation = Simulation::new(config, 1);
    let at = simulation.allocate(8);
    costs(&simulation, 2, &[('a', at)]);
    let moments = RefCell::new(vec![(0, 0); 2]);
    simulation.run(&[0, 1], |thread| {
        let moments = &moments;
        async move {
            // Thread 0 asks the other socket at 1,000, thread 1 at 1,500, while the line is on its way.
            let number = thread.number();
            thread.compute(1_000 + 500 * number as u64 - thread.now()).await?;
            thread.load(at).await?;
            let before = thread.fetch_add(at, 1).await?;
            moments.borrow_mut()[number] = (thread.now(), before);
            Ok(())
        }
    });
    // 100 of L3 and a hop; the addition is a hit; then 150, and the second addition is a hit as well.
    assert_eq!(moments.into_inner(), [(1_000 + 1_100 + 1, 1), (2_100 + 1 + 150 + 1, 2)]);
}

async fn add(thread: SimulatedThread, at: Address, count: u64) -> Result<(), Aborted> {
    for _ in 0..count {
        thread.fetch_add(at, 1).await?;
    }
    Ok(())
}

#[test]
fn words_of_one_line_cost_as_if_they_were_one_word_and_lines_of_their_own_nothing() {
    let run = |distance: u64| {
        let simulation = Simulation::new(small(), 1);
        let at = simulation.allocate(64);
        simulation.run(&[0, 1], |thread| {
            let word = at + distance * thread.number() as u64;
            add(thread, word, 1_000)
        })
    };
    let (one_word, one_line, own_lines) = (run(0), run(1), run(8));
    assert_eq!(one_word, one_line, "false sharing");
    assert!(one_line > 30 * own_lines, "{one_line} and {own_lines}");
}

#[test]
fn atomic_instructions_on_one_line_come_one_after_the_other() {
    let simulation = Simulation::new(small(), 1);
    let at = simulation.allocate(8);
    let cycles = simulation.run(&[0, 1], |thread| add(thread, at, 500));
    assert_eq!(simulation.machine().word(at), 1_000);
    assert!(cycles >= 999 * 200, "each goes from cache to cache: {cycles}");
}

#[test]
fn a_core_that_two_threads_share_is_slower_for_each() {
    let simulation = Simulation::new(small(), 1);
    let compute = |cores: &[Core]| {
        simulation.run(cores, |thread| async move {
            for _ in 0..100 {
                thread.compute(100).await?;
            }
            Ok(())
        })
    };
    let (alone, shared) = (compute(&[0, 1]), compute(&[0, 0]));
    assert!((10_000..10_100).contains(&alone) && (14_000..14_100).contains(&shared), "{alone} and {shared}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_a_different_run() {
    let run = |seed| {
        let simulation = Simulation::new(MachineConfig::X5_2, seed);
        let first = simulation.allocate(512);
        let cycles = simulation.run(&[0, 1, 20, 21], |thread| async move {
            for _ in 0..500 {
                thread.fetch_add(first + thread.below(512), 1).await?;
            }
            Ok(())
        });
        (cycles, simulation.counters())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

/// An access by one of four threads: thread, word, what is done.
fn access() -> impl Strategy<Value = (usize, u64, u8)> {
    (0usize..4, 0u64..320, 0u8..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_threads_do_the_directory_is_exact_and_additions_are_not_lost(
        accesses in prop::collection::vec(access(), 1..300), seed in 0u64..1_000,
    ) {
        let simulation = Simulation::new(small(), seed);
        let first = simulation.allocate(320);
        simulation.run(&[0, 0, 1, 3], |thread| {
            let mine: Vec<_> = accesses.iter().filter(|access| access.0 == thread.number()).copied().collect();
            async move {
                for (_, word, kind) in mine {
                    if kind == 0 {
                        thread.fetch_add(first + word, 1).await?;
                    } else {
                        thread.load(first + word).await?;
                    }
                }
                Ok(())
            }
        });
        let machine = simulation.machine();
        prop_assert!(machine.is_coherent());
        for word in 0..320 {
            let added = accesses.iter().filter(|access| access.1 == word && access.2 == 0).count() as u64;
            prop_assert_eq!(machine.word(first + word), added);
        }
    }
}
