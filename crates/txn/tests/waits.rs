//! Waiting for other transactions: when each waiter goes on, time limits, interrupts, and deadlocks with one
//! victim.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use txn::{Handle, RowName, TransactionState, TransactionTable, WaitError};
use types::Timestamp;

const ROW: RowName = RowName { table: 7, rid: 70 };

fn begin(table: &TransactionTable) -> Handle {
    table.begin().unwrap().0
}

fn commit(table: &TransactionTable, handle: &Handle) -> Timestamp {
    table.start_commit(handle);
    let at = table.next_timestamp();
    table.finish_commit(handle, at);
    at
}

fn row(rid: u64) -> RowName {
    RowName { table: 1, rid }
}

/// Waits until so many transactions sleep.
fn until_asleep(table: &TransactionTable, count: usize) {
    let is_asleep = |running: &txn::RunningTransaction| running.waits.is_some();
    while table.list().iter().filter(|running| is_asleep(running)).count() < count {
        thread::yield_now();
    }
}

#[test]
fn a_waiter_goes_on_when_the_owner_has_ended_and_before_it_is_released() {
    for is_kept in [true, false] {
        let table = TransactionTable::default();
        let (owner, waiter) = (begin(&table), begin(&table));
        thread::scope(|scope| {
            let waits = scope.spawn(|| table.wait_for(&waiter, owner.id(), ROW, &|| true, None));
            until_asleep(&table, 1);
            if is_kept {
                commit(&table, &owner);
            } else {
                table.abort(&owner);
            }
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
        assert_eq!(table.wait_for(&waiter, owner.id(), ROW, &|| true, None), Ok(()), "it has ended");
        let id = owner.id();
        table.release(owner);
        assert_eq!(table.wait_for(&waiter, id, ROW, &|| true, None), Ok(()), "it is gone");
        assert_eq!((table.counts().waits, table.counts().sleeps), (1, 1));
    }
}

#[test]
fn one_that_is_released_without_an_end_lets_its_waiters_go() {
    let table = TransactionTable::default();
    let (owner, waiter) = (begin(&table), begin(&table));
    let id = owner.id();
    thread::scope(|scope| {
        let waits = scope.spawn(|| table.wait_for(&waiter, id, ROW, &|| true, None));
        until_asleep(&table, 1);
        table.release(owner);
        assert_eq!(waits.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_waiter_looks_again_when_the_owner_gives_rows_up_and_sleeps_on_if_it_was_another_row() {
    let table = TransactionTable::default();
    let (owner, first, second) = (begin(&table), begin(&table), begin(&table));
    let is_held = [AtomicBool::new(true), AtomicBool::new(true)];
    thread::scope(|scope| {
        let wait = |waiter, row: usize| {
            let (table, is_held, id) = (&table, &is_held[row], owner.id());
            move || table.wait_for(waiter, id, ROW, &|| is_held.load(Ordering::Acquire), None)
        };
        let (first, second) = (scope.spawn(wait(&first, 0)), scope.spawn(wait(&second, 1)));
        until_asleep(&table, 2);
        is_held[0].store(false, Ordering::Release);
        table.wake_waiters(&owner);
        assert_eq!(first.join().unwrap(), Ok(()));
        table.wake_waiters(&owner);
        until_asleep(&table, 1);
        assert!(!second.is_finished());
        commit(&table, &owner);
        assert_eq!(second.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let table = TransactionTable::default();
    let (owner, waiter) = (begin(&table), begin(&table));
    for limit in [Duration::ZERO, Duration::from_micros(1), Duration::from_millis(5)] {
        let deadline = Instant::now() + limit;
        let ended = table.wait_for(&waiter, owner.id(), ROW, &|| true, Some(deadline));
        assert_eq!(ended, Err(WaitError::TimedOut));
        assert!(Instant::now() >= deadline);
    }
    assert_eq!(table.counts().timed_out, 3);
    assert!(table.list().iter().all(|running| running.waits.is_none()), "nobody waits any more");
}

#[test]
fn an_interrupt_ends_this_wait_and_those_to_come_until_it_is_cleared() {
    let table = TransactionTable::default();
    let (owner, waiter) = (begin(&table), begin(&table));
    let wait = || table.wait_for(&waiter, owner.id(), ROW, &|| true, None);
    thread::scope(|scope| {
        let waits = scope.spawn(wait);
        until_asleep(&table, 1);
        table.interrupt(waiter.id());
        assert_eq!(waits.join().unwrap(), Err(WaitError::Interrupted));
    });
    assert_eq!(wait(), Err(WaitError::Interrupted));
    table.clear_interrupt(&waiter);
    assert!(!table.is_interrupted(waiter.id()));
    thread::scope(|scope| {
        let waits = scope.spawn(wait);
        until_asleep(&table, 1);
        table.interrupt(owner.id());
        commit(&table, &owner);
        assert_eq!(waits.join().unwrap(), Ok(()), "that was for another one");
    });
    assert_eq!(table.counts().interrupted, 2);
}

#[test]
fn an_interrupt_never_meets_the_next_transaction_of_the_slot() {
    let table = TransactionTable::default();
    let former = begin(&table);
    let id = former.id();
    table.interrupt(id);
    table.release(former);
    let next = begin(&table);
    table.interrupt(id);
    assert!(!table.is_interrupted(next.id()));
    table.interrupt(next.id());
    table.interrupt(id);
    assert!(table.is_interrupted(next.id()));
}

/// `count` transactions, each of which holds a row and then wants the row of the next. The victim rolls back, the
/// others commit. The oldest is no victim.
fn circle(count: usize) {
    let table = TransactionTable::default();
    let parties: Vec<Handle> = (0..count).map(|_| begin(&table)).collect();
    // Younger than all of them, it waits for one of the circle and is no part of it.
    let outside = begin(&table);
    let results: Vec<Result<(), WaitError>> = thread::scope(|scope| {
        let waits_outside = {
            let (table, outside, owner) = (&table, &outside, parties[0].id());
            scope.spawn(move || table.wait_for(outside, owner, row(0), &|| true, None))
        };
        until_asleep(&table, 1);
        let parties = parties.iter().enumerate().map(|(i, party)| {
            let (table, owner) = (&table, parties[(i + 1) % count].id());
            scope.spawn(move || {
                let result = table.wait_for(party, owner, row(i as u64), &|| true, None);
                match result {
                    Ok(()) => drop(commit(table, party)),
                    Err(_) => table.abort(party),
                }
                result
            })
        });
        let parties: Vec<_> = parties.collect();
        assert_eq!(waits_outside.join().unwrap(), Ok(()));
        parties.into_iter().map(|party| party.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| **result == Err(WaitError::Deadlock)).count(), 1, "{results:?}");
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), count - 1);
    assert_eq!(table.counts().deadlocks, 1);
    for party in parties {
        table.release(party);
    }
}

#[test]
fn a_deadlock_of_two_has_one_victim() {
    (0..50).for_each(|_| circle(2));
}

#[test]
fn a_deadlock_of_five_has_one_victim() {
    (0..50).for_each(|_| circle(5));
}

/// The slots and threads are such that the one that closes the circle is once the older and once the younger.
#[test]
fn the_victim_is_the_youngest_whoever_finds_the_circle() {
    for older_waits_first in [true, false] {
        let table = TransactionTable::default();
        let older = begin(&table);
        let between = begin(&table);
        commit(&table, &between);
        let younger = begin(&table);
        let (first, second) = if older_waits_first { (&older, &younger) } else { (&younger, &older) };
        thread::scope(|scope| {
            let wait = |waiter, owner: &Handle| {
                let (table, owner) = (&table, owner.id());
                scope.spawn(move || {
                    let result = table.wait_for(waiter, owner, ROW, &|| true, None);
                    table.abort(waiter);
                    result
                })
            };
            let waits_first = wait(first, second);
            until_asleep(&table, 1);
            let results = [wait(second, first).join().unwrap(), waits_first.join().unwrap()];
            let [of_younger, of_older] = if older_waits_first { results } else { [results[1], results[0]] };
            assert_eq!((of_younger, of_older), (Err(WaitError::Deadlock), Ok(())));
        });
    }
}

#[test]
fn who_waits_for_several_one_after_the_other_misses_no_deadlock() {
    let table = TransactionTable::default();
    let (shares, also_shares, wants) = (begin(&table), begin(&table), begin(&table));
    thread::scope(|scope| {
        // It holds what `also_shares` wants, and wants what both share.
        let waits = scope.spawn(|| {
            let all = [shares.id(), also_shares.id()];
            let result = all.iter().try_for_each(|owner| table.wait_for(&wants, *owner, row(1), &|| true, None));
            table.abort(&wants);
            result
        });
        until_asleep(&table, 1);
        let other = scope.spawn(|| table.wait_for(&also_shares, wants.id(), row(2), &|| true, None));
        until_asleep(&table, 2);
        commit(&table, &shares);
        let results = [waits.join().unwrap(), other.join().unwrap()];
        assert_eq!(results, [Err(WaitError::Deadlock), Ok(())], "the younger one is told");
    });
}

/// Threads lock rows in orders of their own. Everything ends, no row is ever held by two, and without a circle
/// (rows in ascending order) no deadlock is reported.
fn lock_at_random(is_ordered: bool, rounds: u64) -> u64 {
    const ROWS: u64 = 4;
    let table = TransactionTable::default();
    let rows: Vec<AtomicU64> = (0..ROWS).map(|_| AtomicU64::new(0)).collect();
    let lock = |handle: &Handle, index: u64| {
        let row_word = &rows[index as usize];
        let mut place = table.queue(handle, row(index));
        while let Err(holder) = row_word.compare_exchange(0, handle.id().word(), Ordering::AcqRel, Ordering::Acquire) {
            let types::StartTime::Pending(owner) = types::StartTime::from_word(holder) else { continue };
            place.wait(owner, &|| row_word.load(Ordering::Acquire) == holder, None)?;
        }
        Ok::<(), WaitError>(())
    };
    let work = |seed: u64| {
        let mut random = seed;
        let mut committed = 0;
        while committed < rounds {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (mut from, mut to) = (random >> 40 & 3, random >> 50 & 3);
            if is_ordered && from > to {
                (from, to) = (to, from);
            }
            let handle = begin(&table);
            let result = lock(&handle, from).and_then(|()| if to == from { Ok(()) } else { lock(&handle, to) });
            for row_word in &rows {
                let _ = row_word.compare_exchange(handle.id().word(), 0, Ordering::AcqRel, Ordering::Acquire);
            }
            match result {
                Ok(()) => drop(commit(&table, &handle)),
                Err(_) => table.abort(&handle),
            }
            committed += u64::from(result.is_ok());
            table.release(handle);
        }
    };
    thread::scope(|scope| (1..=6).for_each(|seed| drop(scope.spawn(move || work(seed)))));
    assert_eq!((table.running(), table.queued_rows()), (0, 0));
    table.counts().deadlocks
}

#[test]
fn random_locks_all_end_and_only_circles_have_victims() {
    lock_at_random(false, 400);
    assert_eq!(lock_at_random(true, 400), 0, "no circle, no victim");
}

/// Nothing can be missing from this test's own view: the channel orders the steps.
#[test]
fn those_in_a_queue_get_the_row_in_its_order() {
    let table = TransactionTable::default();
    let owner = begin(&table);
    let waiters: Vec<Handle> = (0..4).map(|_| begin(&table)).collect();
    let holder = AtomicU64::new(owner.id().word());
    let (sends, receives) = mpsc::channel();
    thread::scope(|scope| {
        for (i, waiter) in waiters.iter().enumerate() {
            let (table, holder, sends) = (&table, &holder, sends.clone());
            scope.spawn(move || {
                let mut place = table.queue(waiter, ROW);
                loop {
                    let word = holder.load(Ordering::Acquire);
                    let types::StartTime::Pending(owner) = types::StartTime::from_word(word) else { unreachable!() };
                    if table.state(owner) == TransactionState::Active {
                        place.wait(owner, &|| holder.load(Ordering::Acquire) == word, None).unwrap();
                    } else if holder
                        .compare_exchange(word, waiter.id().word(), Ordering::AcqRel, Ordering::Acquire)
                        .is_ok()
                    {
                        break;
                    }
                }
                drop(place);
                sends.send(i).unwrap();
                commit(table, waiter);
            });
            until_asleep(table, i + 1);
        }
        commit(&table, &owner);
    });
    drop(sends);
    assert_eq!(receives.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(table.queued_rows(), 0);
}

#[test]
fn who_leaves_a_queue_does_not_stop_those_behind() {
    let table = TransactionTable::default();
    let owner = begin(&table);
    let waiters: Vec<Handle> = (0..3).map(|_| begin(&table)).collect();
    thread::scope(|scope| {
        let waits = waiters.iter().enumerate().map(|(i, waiter)| {
            let (table, owner) = (&table, owner.id());
            let wait = scope.spawn(move || table.queue(waiter, ROW).wait(owner, &|| true, None));
            until_asleep(table, i + 1);
            wait
        });
        let waits: Vec<_> = waits.collect();
        let waits_for = |i: usize| {
            let id = waiters[i].id();
            let running = table.list();
            running.iter().find(|running| running.id == id).and_then(|running| running.waits).map(|waits| waits.owner)
        };
        assert_eq!([waits_for(0), waits_for(1)], [Some(owner.id()), Some(waiters[0].id())]);
        assert_eq!(waits_for(2), Some(waiters[1].id()));
        table.interrupt(waiters[1].id());
        while waits_for(2) != Some(waiters[0].id()) {
            thread::yield_now();
        }
        // The first gets its turn and does not want the row any more: the others look at it.
        commit(&table, &owner);
        let results: Vec<_> = waits.into_iter().map(|wait| wait.join().unwrap()).collect();
        assert_eq!(results, [Ok(()), Err(WaitError::Interrupted), Ok(())]);
    });
    assert!(
        waiters.iter().all(|waiter| table.state(waiter.id()) == TransactionState::Active),
        "none of them has ended"
    );
    assert_eq!(table.queued_rows(), 0);
}

#[test]
fn the_list_tells_what_runs_and_what_it_waits_for() {
    let table = TransactionTable::default();
    let (owner, at) = table.begin().unwrap();
    table.describe(&owner, 123, 0xabc);
    let waiter = table.begin_without_snapshot().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| table.wait_for(&waiter, owner.id(), ROW, &|| true, None));
        until_asleep(&table, 1);
        let running = table.list();
        let of = |id| *running.iter().find(|running| running.id == id).unwrap();
        let (first, second) = (of(owner.id()), of(waiter.id()));
        assert_eq!((first.begun, first.description, first.snapshot, first.waits), (123, 0xabc, Some(at), None));
        let waits = second.waits.unwrap();
        assert_eq!((second.snapshot, waits.owner, waits.row), (None, owner.id(), ROW));
        assert!(waits.since <= table.micros());
        commit(&table, &owner);
    });
    let states: Vec<TransactionState> = table.list().iter().map(|running| running.state).collect();
    assert!(states.contains(&TransactionState::Committed(Timestamp(1))) && states.contains(&TransactionState::Active));
    table.release(owner);
    table.release(waiter);
    assert_eq!(table.list(), []);
}
