//! The transaction table under loom: every order of two or three threads, and every value that the memory model lets a
//! load return.
//!
//! `RUSTFLAGS="--cfg loom -C debug-assertions" cargo test -p txn --release --test loom_table`
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use sync::atomic::{AtomicU64, Ordering};
use txn::{Handle, State, TransactionTable};
use types::Timestamp;

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

/// Who wants a snapshot of the past announces it and then looks at the horizon; who raises the horizon looks at the
/// announcements afterwards. One of the two notices the other.
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
            State::Active => assert!(at > snapshot, "active at {snapshot:?}"),
            State::Committed(committed) => assert_eq!(committed, at),
            State::Released => {}
            State::Aborted => panic!("it has committed"),
        }
    });
}

/// The slot goes to another transaction; who asks for the former one is never told of the other. Who was told that it is
/// over finds its stamp.
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
            State::Active => {}
            State::Committed(at) => assert_eq!(at, Timestamp(1)),
            State::Released => assert_eq!(start.load(Ordering::Relaxed), 1, "it was stamped before"),
            State::Aborted => panic!("that was another one"),
        }
        writer.join().unwrap();
    });
}
