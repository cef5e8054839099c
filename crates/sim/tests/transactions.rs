//! Hardware transactions: what aborts them, what nobody may see of them, and that they happen at once or not at all.

use latches::elision::AbortCause;
use proptest::prelude::*;
use sim::machine::CacheShape;
use sim::{Aborted, Address, MachineConfig, Memory, SimulatedThread, Simulation};
use std::cell::RefCell;

fn machine() -> MachineConfig {
    let mut config = MachineConfig::free(2, 2, 2);
    config.transactions.interrupt_period = 0;
    config.transactions.replacement_noise_ppm = 0;
    config.prefetches_pairs = false;
    config.slack = 0;
    config.transactions.read_eviction_aborts_ppm = 0;
    config
}

/// Reads and writes lines in a transaction and stays in it for a while; how it ended.
async fn transaction(
    thread: &SimulatedThread,
    reads: &[Address],
    writes: &[Address],
    cycles: u64,
) -> Result<(), Aborted> {
    thread.begin().await?;
    for &at in reads {
        thread.load(at).await?;
    }
    for &at in writes {
        thread.store(at, 7).await?;
    }
    thread.compute(cycles).await?;
    thread.commit().await
}

/// How a transaction of thread 0 ends when thread 1, on another core, does something in its middle.
fn disturbed(reads: &[u64], writes: &[u64], other: char, word: u64) -> (Result<(), Aborted>, u64) {
    let simulation = Simulation::new(machine(), 3);
    let first = simulation.allocate(64);
    let place = |words: &[u64]| words.iter().map(|word| first + word).collect::<Vec<_>>();
    let (reads, writes) = (place(reads), place(writes));
    let (ended, seen) = (RefCell::new(Ok(())), RefCell::new(0));
    simulation.run(&[0, 1], |thread| {
        let (reads, writes, ended, seen) = (&reads, &writes, &ended, &seen);
        async move {
            if thread.number() == 0 {
                *ended.borrow_mut() = transaction(&thread, reads, writes, 50_000).await;
                return Ok(());
            }
            thread.compute(20_000).await?;
            match other {
                'r' => *seen.borrow_mut() = thread.load(first + word).await?,
                _ => thread.store(first + word, 9).await?,
            }
            Ok(())
        }
    });
    (ended.into_inner(), seen.into_inner())
}

#[test]
fn the_requester_wins_every_conflict_on_a_line() {
    let conflict = Err(Aborted { cause: AbortCause::Conflict, may_retry: true });
    assert_eq!(disturbed(&[0], &[], 'w', 0), (conflict, 0), "a write to what was read");
    assert_eq!(disturbed(&[0], &[], 'w', 7), (conflict, 0), "also to another word of the line");
    assert_eq!(disturbed(&[], &[0], 'w', 0), (conflict, 0), "a write to what was written");
    assert_eq!(disturbed(&[], &[0], 'r', 0), (conflict, 0), "a read of what was written sees what was there before");
    assert_eq!(disturbed(&[0], &[], 'r', 0), (Ok(()), 0), "readers do not conflict");
    assert_eq!(disturbed(&[0], &[0], 'w', 8), (Ok(()), 0), "nor do other lines");
}

#[test]
fn a_write_set_that_does_not_fit_into_a_set_of_l1_aborts_and_a_read_set_does_not() {
    let mut config = machine();
    config.l1 = CacheShape { sets: 2, ways: 2 };
    let run = |reads: u64, writes: u64| {
        let simulation = Simulation::new(config, 3);
        let first = simulation.allocate(256);
        let ended = RefCell::new(Ok(()));
        simulation.run(&[0], |thread| {
            let ended = &ended;
            async move {
                let lines = |count: u64| (0..count).map(|line| first + line * 16).collect::<Vec<_>>();
                *ended.borrow_mut() = transaction(&thread, &lines(reads), &lines(writes), 0).await;
                Ok(())
            }
        });
        ended.into_inner()
    };
    assert_eq!(run(0, 2), Ok(()));
    assert_eq!(run(0, 3), Err(Aborted { cause: AbortCause::Overflow, may_retry: false }));
    assert_eq!(run(16, 0), Ok(()), "the secondary structure tracks them");
    let imprecise = |ppm| {
        let mut config = config;
        config.transactions.read_eviction_aborts_ppm = ppm;
        config
    };
    assert_eq!(imprecise(1_000_000).transactions.read_eviction_aborts_ppm, 1_000_000);
    let simulation = Simulation::new(imprecise(1_000_000), 3);
    let first = simulation.allocate(256);
    simulation.run(&[0], |thread| async move {
        let ended = transaction(&thread, &[first, first + 16, first + 32], &[], 0).await;
        assert_eq!(ended, Err(Aborted { cause: AbortCause::Overflow, may_retry: false }));
        Ok(())
    });
}

#[test]
fn a_line_that_was_read_and_written_aborts_its_transaction_once_when_it_leaves_l1() {
    let mut config = machine();
    config.l1 = CacheShape { sets: 1, ways: 2 };
    config.transactions.read_eviction_aborts_ppm = 1_000_000;
    let simulation = Simulation::new(config, 3);
    let first = simulation.allocate(64);
    simulation.run(&[0], |thread| async move {
        let ended = transaction(&thread, &[first], &[first, first + 8, first + 16], 0).await;
        assert_eq!(ended, Err(Aborted { cause: AbortCause::Overflow, may_retry: false }));
        Ok(())
    });
    let counters = simulation.counters();
    assert_eq!((counters.begins, counters.commits, counters.aborts_in_all()), (1, 0, 1));
}

#[test]
fn the_other_thread_of_a_core_takes_room_from_a_transaction() {
    let mut config = machine();
    config.l1 = CacheShape { sets: 2, ways: 4 };
    let overflows = |cores: [usize; 2]| {
        let simulation = Simulation::new(config, 3);
        let first = simulation.allocate(1_024);
        simulation.run(&cores, |thread| async move {
            let mine = first + 512 * thread.number() as u64;
            for _ in 0..50 {
                let lines: Vec<_> = (0..3).map(|line| mine + line * 16).collect();
                let _ = transaction(&thread, &[], &lines, 500).await;
            }
            Ok(())
        });
        simulation.counters().aborts[AbortCause::Overflow as usize]
    };
    assert_eq!(overflows([0, 1]), 0);
    assert!(overflows([0, 0]) > 10, "six lines for four ways");
}

#[test]
fn an_interrupt_ends_a_transaction_without_the_hint() {
    let mut config = machine();
    config.transactions.interrupt_period = 10_000;
    let simulation = Simulation::new(config, 3);
    let at = simulation.allocate(8);
    simulation.run(&[0], |thread| async move {
        let mut causes = Vec::new();
        for _ in 0..20 {
            if let Err(aborted) = transaction(&thread, &[], &[at], 9_000).await {
                assert!(!aborted.may_retry);
                causes.push(aborted.cause);
            }
        }
        assert!(!causes.is_empty() && causes.iter().all(|&cause| cause == AbortCause::Other), "{causes:?}");
        Ok(())
    });
}

#[test]
fn an_explicit_abort_undoes_the_writes() {
    let simulation = Simulation::new(machine(), 3);
    let at = simulation.allocate(16);
    simulation.run(&[0], |thread| async move {
        thread.store(at, 1).await?;
        thread.begin().await?;
        thread.store(at, 2).await?;
        thread.store(at, 3).await?;
        thread.store(at + 8, 4).await?;
        assert_eq!(thread.load(at).await, Ok(3), "a transaction sees what it wrote");
        let aborted = thread.abort(AbortCause::LatchBusy).await;
        assert_eq!(aborted, Err(Aborted { cause: AbortCause::LatchBusy, may_retry: true }));
        assert_eq!((thread.load(at).await?, thread.load(at + 8).await?), (1, 0));
        Ok(())
    });
}

/// Moves an amount from one account to another, transactions being tried until they commit.
async fn transfer(thread: &SimulatedThread, from: Address, to: Address, amount: u64) -> Result<(), Aborted> {
    thread.begin().await?;
    let (has, had) = (thread.load(from).await?, thread.load(to).await?);
    thread.store(from, has.wrapping_sub(amount)).await?;
    thread.compute(40).await?;
    thread.store(to, if from == to { has } else { had.wrapping_add(amount) }).await?;
    thread.commit().await
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn transactions_happen_at_once_or_not_at_all(seed in 0u64..10_000, accounts in 2u64..12) {
        let mut config = machine();
        config.transactions.interrupt_period = 5_000;
        let simulation = Simulation::new(config, seed);
        let first = simulation.allocate(accounts * 8);
        simulation.run(&[0, 0, 1, 2, 3], |thread| async move {
            let account = |number: u64| first + number * 8;
            for _ in 0..40 {
                let (from, to) = (account(thread.below(accounts)), account(thread.below(accounts)));
                if thread.number() == 4 {
                    // A reader sees no money made or lost.
                    let mut sum = 0u64;
                    let whole: Result<(), Aborted> = async {
                        thread.begin().await?;
                        for number in 0..accounts {
                            sum = sum.wrapping_add(thread.load(account(number)).await?);
                        }
                        thread.commit().await
                    }.await;
                    assert!(whole.is_err() || sum == 0, "{sum}");
                    continue;
                }
                let mut pause = 10;
                while transfer(&thread, from, to, 5).await.is_err() {
                    let jitter = thread.below(pause);
                    thread.compute(jitter).await?;
                    pause = (pause * 2).min(10_000);
                }
            }
            Ok(())
        });
        let machine = simulation.machine();
        let sum = (0..accounts).fold(0u64, |sum, number| sum.wrapping_add(machine.word(first + number * 8)));
        prop_assert_eq!(sum, 0);
        prop_assert!(machine.is_coherent());
        let counters = simulation.counters();
        prop_assert_eq!(counters.begins, counters.commits + counters.aborts_in_all());
    }
}
