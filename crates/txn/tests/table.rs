//! The transaction table under threads of the system: states, ids, snapshots.
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use txn::{Handle, TransactionState, TransactionTable};
use types::{StartTime, Timestamp, TxnId};

fn commit(table: &TransactionTable, handle: &Handle) -> Timestamp {
    table.start_commit(handle);
    let at = table.next_timestamp();
    table.finish_commit(handle, at);
    at
}

#[test]
fn a_transaction_goes_from_active_to_committed_to_released() {
    let table = TransactionTable::default();
    let (handle, _) = table.begin().unwrap();
    let id = handle.id();
    assert_eq!(table.state(id), TransactionState::Active);
    assert_eq!(commit(&table, &handle), Timestamp(1));
    assert_eq!(table.state(id), TransactionState::Committed(Timestamp(1)));
    table.release(handle);
    assert_eq!(table.state(id), TransactionState::Released);
    let (next, _) = table.begin().unwrap();
    assert_eq!((table.state(id), table.state(next.id())), (TransactionState::Released, TransactionState::Active));
    table.abort(&next);
    assert_eq!(table.state(next.id()), TransactionState::Aborted);
    table.release(next);
    assert_eq!((table.running(), table.now()), (0, Timestamp(1)));
}

#[test]
fn a_full_table_says_so() {
    let table = TransactionTable::default();
    let mut handles = Vec::new();
    let refused = loop {
        match table.begin() {
            Ok((handle, _)) => handles.push(handle),
            Err(refused) => break refused,
        }
    };
    assert_eq!((refused.limit, table.running()), (handles.len(), handles.len()));
    handles.into_iter().for_each(|handle| table.release(handle));
    table.begin().unwrap();
}

#[test]
fn no_snapshot_in_use_is_older_than_the_oldest() {
    let table = TransactionTable::default();
    let (done, horizon) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20_000 {
                let (handle, _) = table.begin().unwrap();
                commit(&table, &handle);
                table.release(handle);
            }
            done.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                horizon.fetch_max(table.oldest_snapshot().0, Ordering::SeqCst);
            }
        });
        while !done.load(Ordering::Relaxed) {
            let (handle, at) = table.begin().unwrap();
            let oldest = table.oldest_snapshot();
            assert!(oldest <= at, "{oldest:?} is after {at:?}");
            std::thread::yield_now();
            assert!(horizon.load(Ordering::SeqCst) <= at.0);
            table.release(handle);
        }
    });
    let (old, at) = table.begin().unwrap();
    let (next, _) = table.begin().unwrap();
    commit(&table, &next);
    table.release(next);
    assert_eq!(table.oldest_snapshot(), at);
    let past = table.begin_at(Timestamp(7)).unwrap();
    assert_eq!(table.oldest_snapshot(), Timestamp(7));
    table.release(past);
    table.release(old);
    assert_eq!(table.oldest_snapshot(), table.now());
}

#[test]
fn ids_never_return() {
    let table = TransactionTable::default();
    let seen = Mutex::new(HashSet::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let (handle, _) = table.begin().unwrap();
                    assert!(seen.lock().unwrap().insert(handle.id()), "id used twice");
                    table.release(handle);
                }
            });
        }
    });
}

/// Between the first and the third step no caller is told that the transaction is active: its timestamp may be
/// older than the caller's snapshot.
#[test]
fn who_asks_during_a_commit_waits_for_its_timestamp() {
    let table = TransactionTable::default();
    let (handle, _) = table.begin().unwrap();
    table.start_commit(&handle);
    let at = table.next_timestamp();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| table.state(handle.id()));
        std::thread::sleep(std::time::Duration::from_millis(20));
        table.finish_commit(&handle, at);
        assert_eq!(asking.join().unwrap(), TransactionState::Committed(at));
    });
}

fn id_of(word: u64) -> TxnId {
    match StartTime::from_word(word) {
        StartTime::Pending(id) => id,
        other => panic!("{other:?} is no transaction"),
    }
}

/// A reader that finds a transaction active must not have a snapshot that includes its commit.
#[test]
fn active_means_after_my_snapshot() {
    let table = TransactionTable::default();
    let newest = AtomicU64::new(0);
    let commits = Mutex::new(Vec::new());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen_active = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        let word = newest.load(Ordering::Acquire);
                        let at = table.now();
                        if word != 0 && table.state(id_of(word)) == TransactionState::Active {
                            seen_active.push((word, at));
                        }
                    }
                    seen_active
                })
            })
            .collect();
        for _ in 0..20_000 {
            let (handle, _) = table.begin().unwrap();
            newest.store(handle.id().word(), Ordering::Release);
            let at = commit(&table, &handle);
            commits.lock().unwrap().push((handle.id().word(), at));
            table.release(handle);
        }
        done.store(true, Ordering::Relaxed);
        let commits: std::collections::HashMap<u64, Timestamp> = commits.lock().unwrap().iter().copied().collect();
        for (word, snapshot) in readers.into_iter().flat_map(|reader| reader.join().unwrap()) {
            assert!(commits[&word] > snapshot, "active at {snapshot:?}, committed at {:?}", commits[&word]);
        }
    });
}

/// A list of snapshots misses none, whenever it was made: one that is not in it is at or after its end.
#[test]
fn no_snapshot_is_missing_between_those_in_use() {
    let table = TransactionTable::default();
    let newest = Mutex::new(table.snapshots_in_use());
    let done = AtomicBool::new(false);
    let check = |at: Timestamp| {
        let list = newest.lock().unwrap();
        assert!(list.contains(&at) || *list.last().unwrap() <= at, "{at:?} is not in {list:?}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20_000 {
                let (handle, _) = table.begin().unwrap();
                commit(&table, &handle);
                table.release(handle);
            }
            done.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let list = table.snapshots_in_use();
                assert!(list.is_sorted_by(|a, b| a < b));
                *newest.lock().unwrap() = list;
            }
        });
        let handle = table.begin_without_snapshot().unwrap();
        while !done.load(Ordering::Relaxed) {
            let at = table.renew_snapshot(&handle);
            check(at);
            std::thread::yield_now();
            check(at);
        }
        table.release(handle);
    });
}

#[test]
fn between_statements_a_transaction_holds_no_snapshot() {
    let table = TransactionTable::starting_at(Timestamp(5));
    let (statements, at) = table.begin().unwrap();
    let past = table.begin_at(Timestamp(3)).unwrap();
    let (writer, _) = table.begin().unwrap();
    commit(&table, &writer);
    table.release(writer);
    assert_eq!((at, table.snapshots_in_use()), (Timestamp(5), [3, 5, 6].map(Timestamp).to_vec()));
    table.drop_snapshot(&statements);
    assert_eq!(table.snapshots_in_use(), [3, 6].map(Timestamp));
    assert_eq!(table.renew_snapshot(&statements), Timestamp(6));
    table.release(past);
    assert_eq!((table.snapshots_in_use(), table.oldest_snapshot()), (vec![Timestamp(6)], Timestamp(6)));
}

#[test]
fn tables_are_told_of_those_who_use_them_until_they_leave_or_end() {
    let table = TransactionTable::default();
    let [mut first, mut second, own] = [0; 3].map(|_| table.begin().unwrap().0);
    assert_eq!(table.other_user(&own, 7), None);
    table.enter_table(&mut first, 7);
    table.enter_table(&mut first, 8);
    table.enter_table(&mut second, 8);
    assert_eq!(table.other_user(&own, 7), Some(first.id()));
    assert_eq!(table.other_user(&first, 7), None, "not itself");
    assert_eq!(table.other_user(&first, 8), Some(second.id()));
    table.leave_table(&mut first, 7);
    assert!(table.uses_table(first.id(), 7), "only the newest note is taken back");
    table.leave_table(&mut first, 8);
    assert!(!table.uses_table(first.id(), 8) && table.uses_table(first.id(), 7));
    table.abort(&first);
    assert!(!table.uses_table(first.id(), 7) && table.other_user(&own, 7).is_none(), "it has ended");
    let former = first.id();
    table.release(first);
    let (next, _) = table.begin().unwrap();
    assert_eq!(former.number() % 4096, next.id().number() % 4096, "the slot is used again");
    assert!(!table.uses_table(next.id(), 7) && !table.uses_table(former, 7));
    assert_eq!(table.other_user(&next, 8), Some(second.id()));
}

#[test]
fn who_uses_more_tables_than_can_be_told_is_taken_to_use_any() {
    let table = TransactionTable::default();
    let [mut handle, own] = [0; 2].map(|_| table.begin().unwrap().0);
    for number in 1..=8 {
        assert!(!table.uses_table(handle.id(), number));
        table.enter_table(&mut handle, number);
    }
    assert!((1..=8).all(|number| table.uses_table(handle.id(), number)) && !table.uses_table(handle.id(), 9));
    table.enter_table(&mut handle, 9);
    table.leave_table(&mut handle, 9);
    assert!([1, 8, 9, 1000].iter().all(|number| table.other_user(&own, *number) == Some(handle.id())));
    table.release(handle);
    assert_eq!(table.other_user(&own, 1), None);
}
