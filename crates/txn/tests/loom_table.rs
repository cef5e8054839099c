//! The transaction table under loom: every order of two or three threads, and every value that the memory model lets a
//! load return.
//!
//! `RUSTFLAGS="--cfg loom -C debug-assertions" cargo test -p lstore-txn --release --test loom_table`
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use sync::atomic::{AtomicU64, Ordering};
use txn::{Doomed, Handle, RowName, TransactionState, TransactionTable, WaitError};
use types::{StartTime, Timestamp, TxnId};

/// Checks `body` in every order with at most `preemptions` switches away from a thread that could go on.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}

fn commit(table: &TransactionTable, handle: &Handle) -> Timestamp {
    table.start_commit(handle);
    let at = table.next_timestamp();
    table.finish_commit(handle, at);
    at
}

#[test]
fn no_snapshot_is_older_than_the_oldest_that_anybody_was_told() {
    model(3, || {
        let table = Arc::new(TransactionTable::default());
        let looks = {
            let table = table.clone();
            thread::spawn(move || {
                let (handle, _) = table.begin().unwrap();
                commit(&table, &handle);
                table.release(handle);
                table.oldest_snapshot()
            })
        };
        let (_handle, at) = table.begin().unwrap();
        let oldest = looks.join().unwrap();
        assert!(oldest <= at, "{oldest:?} is after {at:?}");
        assert!(table.oldest_snapshot() <= at);
    });
}

/// A reader announces a snapshot of the past and then looks at the horizon; a thread that raises the horizon looks
/// at the announcements afterwards. One of the two notices the other.
#[test]
fn a_snapshot_of_the_past_is_kept_or_refused() {
    model(3, || {
        let table = Arc::new(TransactionTable::starting_at(Timestamp(9)));
        let horizon = Arc::new(AtomicU64::new(0));
        let gives_up = {
            let (table, horizon) = (table.clone(), horizon.clone());
            thread::spawn(move || {
                horizon.fetch_max(7, Ordering::SeqCst);
                table.oldest_snapshot().min(Timestamp(7))
            })
        };
        let _handle = table.begin_at(Timestamp(5)).unwrap();
        let is_refused = horizon.load(Ordering::SeqCst) > 5;
        let given_up = gives_up.join().unwrap();
        assert!(is_refused || given_up <= Timestamp(5), "given up to {given_up:?}");
    });
}

/// A writer notes a table and then looks at the table's lock; a transaction that locks the table looks at the notes
/// afterwards. One of the two notices the other.
#[test]
fn a_user_of_a_table_sees_its_lock_or_is_seen() {
    model(3, || {
        let table = Arc::new(TransactionTable::default());
        let lock = Arc::new(AtomicU64::new(0));
        let user = {
            let (table, lock) = (table.clone(), lock.clone());
            let (mut handle, _) = table.begin().unwrap();
            thread::spawn(move || {
                table.enter_table(&mut handle, 7);
                (lock.load(Ordering::SeqCst) != 0, handle)
            })
        };
        let (own, _) = table.begin().unwrap();
        lock.swap(1, Ordering::SeqCst);
        let is_seen = table.other_user(&own, 7).is_some();
        let (sees, handle) = user.join().unwrap();
        assert!(sees || is_seen);
        assert_eq!(table.other_user(&own, 7), Some(handle.id()));
    });
}

#[test]
fn active_means_after_my_snapshot() {
    model(3, || {
        let table = Arc::new(TransactionTable::default());
        let (handle, _) = table.begin().unwrap();
        let id = handle.id();
        let writer = {
            let table = table.clone();
            thread::spawn(move || {
                let at = commit(&table, &handle);
                table.release(handle);
                at
            })
        };
        let snapshot = table.now();
        let state = table.state(id);
        let at = writer.join().unwrap();
        match state {
            TransactionState::Active => assert!(at > snapshot, "active at {snapshot:?}"),
            TransactionState::Committed(committed) => assert_eq!(committed, at),
            TransactionState::Released => {}
            TransactionState::Aborted | TransactionState::Prepared(_) => panic!("it has committed"),
        }
    });
}

/// The slot goes to another transaction. A caller that asks for the former one is never told of the other, and once
/// told that the former one is over, it finds its stamp.
#[test]
fn a_slot_that_is_reused_deceives_nobody() {
    model(3, || {
        let table = Arc::new(TransactionTable::default());
        let start = Arc::new(AtomicU64::new(0));
        let (handle, _) = table.begin().unwrap();
        let id = handle.id();
        start.store(id.word(), Ordering::Relaxed);
        let writer = {
            let (table, start) = (table.clone(), start.clone());
            thread::spawn(move || {
                let at = commit(&table, &handle);
                start.store(at.0, Ordering::Release);
                table.release(handle);
                let (next, _) = table.begin().unwrap();
                assert_ne!(next.id(), id);
                table.abort(&next);
                table.release(next);
            })
        };
        match table.state(id) {
            TransactionState::Active => {}
            TransactionState::Committed(at) => assert_eq!(at, Timestamp(1)),
            TransactionState::Released => assert_eq!(start.load(Ordering::Relaxed), 1, "it was stamped before"),
            TransactionState::Aborted | TransactionState::Prepared(_) => panic!("that was another one"),
        }
        writer.join().unwrap();
    });
}

const ROW: RowName = RowName { table: 1, rid: 1 };

/// The owner sets its state and then looks for waiters; the waiter makes itself known and then looks at the state.
/// If both could miss each other, the waiter would sleep for ever.
#[test]
fn no_waiter_sleeps_through_the_end_of_the_owner() {
    model(3, || {
        let table = Arc::new(TransactionTable::default());
        let (owner, _) = table.begin().unwrap();
        let (waiter, _) = table.begin().unwrap();
        let id = owner.id();
        let ends = {
            let table = table.clone();
            thread::spawn(move || {
                table.abort(&owner);
                table.release(owner);
            })
        };
        assert_eq!(table.wait_for(&waiter, id, ROW, &|| true, None), Ok(()));
        ends.join().unwrap();
    });
}

/// As above with a row in place of the state: the owner gives the row up and runs on.
#[test]
fn no_waiter_sleeps_through_a_row_that_is_given_up() {
    model(2, || {
        let table = Arc::new(TransactionTable::default());
        let is_held = Arc::new(AtomicU64::new(1));
        let (owner, _) = table.begin().unwrap();
        let (waiter, _) = table.begin().unwrap();
        let id = owner.id();
        let gives_up = {
            let (table, is_held) = (table.clone(), is_held.clone());
            thread::spawn(move || {
                is_held.store(0, Ordering::Release);
                table.wake_waiters(&owner);
            })
        };
        assert_eq!(table.wait_for(&waiter, id, ROW, &|| is_held.load(Ordering::Acquire) != 0, None), Ok(()));
        assert_eq!(table.state(id), TransactionState::Active);
        gives_up.join().unwrap();
    });
}

/// A ring for another row comes in between, and the waiter sleeps on: it has to be heard of once more.
#[test]
fn no_waiter_sleeps_through_the_end_after_a_row_that_was_not_its_own() {
    model(2, || {
        let table = Arc::new(TransactionTable::default());
        let (owner, _) = table.begin().unwrap();
        let (waiter, _) = table.begin().unwrap();
        let id = owner.id();
        let ends = {
            let table = table.clone();
            thread::spawn(move || {
                table.wake_waiters(&owner);
                table.abort(&owner);
            })
        };
        // It fails, and leaves the watch flag up: the owner rings whether or not the waiter is there already.
        assert!(!table.depend(waiter.id(), id));
        assert_eq!(table.wait_for(&waiter, id, ROW, &|| true, None), Ok(()));
        ends.join().unwrap();
    });
}

#[test]
fn no_reader_sleeps_through_a_decision() {
    model(3, || {
        let table = Arc::new(TransactionTable::default());
        let (writer, _) = table.begin().unwrap();
        let (id, at) = (writer.id(), prepare(&table, &writer));
        let decides = {
            let table = table.clone();
            thread::spawn(move || {
                table.finish_commit(&writer, at);
                table.release(writer);
            })
        };
        let state = table.await_decision(id);
        assert!(state == TransactionState::Committed(at) || state == TransactionState::Released, "{state:?}");
        decides.join().unwrap();
    });
}

#[test]
fn no_waiter_sleeps_through_an_interrupt() {
    model(3, || {
        let table = Arc::new(TransactionTable::default());
        let (owner, _) = table.begin().unwrap();
        let (waiter, _) = table.begin().unwrap();
        let id = waiter.id();
        let interrupts = {
            let table = table.clone();
            thread::spawn(move || table.interrupt(id))
        };
        assert_eq!(table.wait_for(&waiter, owner.id(), ROW, &|| true, None), Err(WaitError::Interrupted));
        interrupts.join().unwrap();
    });
}

/// Both wait for each other; in no order do both sleep, and in no order are both told.
#[test]
fn of_two_that_wait_for_each_other_one_is_told() {
    model(2, || {
        let table = Arc::new(TransactionTable::default());
        let (first, _) = table.begin().unwrap();
        let (second, _) = table.begin().unwrap();
        let wait = |table: &TransactionTable, waiter: &Handle, owner: TxnId| {
            let result = table.wait_for(waiter, owner, ROW, &|| true, None);
            table.abort(waiter);
            result
        };
        let (id_of_first, id_of_second) = (first.id(), second.id());
        let other = {
            let table = table.clone();
            thread::spawn(move || wait(&table, &first, id_of_second))
        };
        let of_second = wait(&table, &second, id_of_first);
        let of_first = other.join().unwrap();
        let is_told = |result| result == Err(WaitError::Deadlock);
        assert!(is_told(of_first) != is_told(of_second), "{of_first:?} {of_second:?}");
    });
}

fn prepare(table: &TransactionTable, handle: &Handle) -> Timestamp {
    table.start_commit(handle);
    let at = table.next_timestamp();
    table.prepare(handle, at);
    at
}

fn decide(table: &TransactionTable, handle: &Handle, at: Timestamp, is_kept: bool) {
    if is_kept {
        table.finish_commit(handle, at);
    } else {
        table.abort(handle);
    }
}

/// A reader that finds a commit prepared depends on it and hears how it ends, or finds that it has ended: never does it
/// sleep for ever, and never commit with one that has rolled back.
fn depend_while_it_is_decided(is_kept: bool) {
    model(3, move || {
        let table = Arc::new(TransactionTable::default());
        let (writer, _) = table.begin().unwrap();
        let (reader, _) = table.begin().unwrap();
        let (id, at) = (writer.id(), prepare(&table, &writer));
        let decides = {
            let table = table.clone();
            thread::spawn(move || {
                decide(&table, &writer, at, is_kept);
                table.release(writer);
            })
        };
        if table.depend(reader.id(), id) {
            assert_eq!(table.await_dependencies(&reader), if is_kept { Ok(()) } else { Err(Doomed) });
        } else {
            let state = table.state(id);
            let decided = if is_kept { TransactionState::Committed(at) } else { TransactionState::Aborted };
            assert!(state == decided || state == TransactionState::Released, "{state:?}");
            assert_eq!(table.await_dependencies(&reader), Ok(()), "it depends on nobody");
        }
        decides.join().unwrap();
    });
}

#[test]
fn who_depends_on_a_commit_goes_on_with_it() {
    depend_while_it_is_decided(true);
}

#[test]
fn who_depends_on_a_rollback_is_doomed() {
    depend_while_it_is_decided(false);
}

/// The dependent rolls back by itself, and its slot goes to another transaction, while it is being told.
#[test]
fn the_next_transaction_of_a_dependents_slot_is_not_told() {
    model(3, || {
        let table = Arc::new(TransactionTable::default());
        let (writer, _) = table.begin().unwrap();
        let (reader, _) = table.begin().unwrap();
        prepare(&table, &writer);
        assert!(table.depend(reader.id(), writer.id()));
        let decides = {
            let table = table.clone();
            thread::spawn(move || table.abort(&writer))
        };
        table.abort(&reader);
        table.release(reader);
        let (next, _) = table.begin().unwrap();
        let (undecided, _) = table.begin().unwrap();
        let at = prepare(&table, &undecided);
        assert!(table.depend(next.id(), undecided.id()));
        table.finish_commit(&undecided, at);
        assert_eq!(table.await_dependencies(&next), Ok(()));
        decides.join().unwrap();
        assert!(!table.is_doomed(&next));
    });
}

/// A version and its stamp, while its writer prepares, is decided, stamps and lets its slot go. The reader decides by the
/// rules what it sees; what it sees without depending on it is committed, what it does not see is too new or rolled back.
fn read_while_it_is_decided(is_kept: bool) {
    model(3, move || {
        let table = Arc::new(TransactionTable::default());
        let start = Arc::new(AtomicU64::new(0));
        let (writer, _) = table.begin().unwrap();
        start.store(writer.id().word(), Ordering::Relaxed);
        let writes = {
            let (table, start) = (table.clone(), start.clone());
            thread::spawn(move || {
                let at = prepare(&table, &writer);
                decide(&table, &writer, at, is_kept);
                start.store(if is_kept { at.0 } else { StartTime::TOMBSTONE }, Ordering::Release);
                table.release(writer);
            })
        };
        let (reader, snapshot) = table.begin().unwrap();
        let (is_visible, depends) = look(&table, &start, &reader, snapshot);
        let outcome = table.await_dependencies(&reader);
        writes.join().unwrap();
        let is_in_snapshot = snapshot >= Timestamp(1);
        match outcome {
            Ok(()) => assert_eq!(is_visible, is_kept && is_in_snapshot, "depends: {depends}"),
            Err(Doomed) => assert!(depends && !is_kept),
        }
    });
}

/// Whether the reader sees the version, and whether it then depends on the writer.
fn look(table: &TransactionTable, start: &AtomicU64, reader: &Handle, snapshot: Timestamp) -> (bool, bool) {
    loop {
        let writer = match StartTime::from_word(start.load(Ordering::Acquire)) {
            StartTime::Pending(writer) => writer,
            StartTime::Committed(at) => return (at <= snapshot, false),
            StartTime::Tombstone | StartTime::Unwritten => return (false, false),
        };
        match table.state(writer) {
            TransactionState::Active | TransactionState::Aborted => return (false, false),
            TransactionState::Committed(at) => return (at <= snapshot, false),
            TransactionState::Prepared(at) if at > snapshot => return (false, false),
            TransactionState::Prepared(_) if table.depend(reader.id(), writer) => return (true, true),
            TransactionState::Prepared(_) | TransactionState::Released => {}
        }
    }
}

#[test]
fn what_a_reader_sees_of_a_commit_that_may_fail_commits_or_dooms_it() {
    read_while_it_is_decided(true);
    read_while_it_is_decided(false);
}

#[test]
fn a_list_of_the_snapshots_in_use_misses_none() {
    model(3, || {
        let table = Arc::new(TransactionTable::default());
        let lists = {
            let table = table.clone();
            thread::spawn(move || {
                table.next_timestamp();
                let at = table.next_timestamp();
                (at, table.snapshots_in_use())
            })
        };
        let handle = table.begin_without_snapshot().unwrap();
        let at = table.renew_snapshot(&handle);
        let (newest, list) = lists.join().unwrap();
        assert_eq!(list.last(), Some(&newest));
        assert!(list.contains(&at) || at >= newest, "{at:?} is not in {list:?}");
    });
}
