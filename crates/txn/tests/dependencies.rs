//! Commits that may still fail: each dependent is told once, and no other transaction is.
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use txn::{Doomed, Handle, TransactionState, TransactionTable};
use types::{StartTime, Timestamp, TxnId};

fn begin(table: &TransactionTable) -> Handle {
    table.begin().unwrap().0
}

fn prepare(table: &TransactionTable, handle: &Handle) -> Timestamp {
    table.start_commit(handle);
    let at = table.next_timestamp();
    table.prepare(handle, at);
    at
}

#[test]
fn a_prepared_transaction_says_so_and_its_decision_reaches_who_depends_on_it() {
    for is_kept in [true, false] {
        let table = TransactionTable::default();
        let (writer, reader) = (begin(&table), begin(&table));
        let at = prepare(&table, &writer);
        assert_eq!(table.state(writer.id()), TransactionState::Prepared(at));
        assert!(table.depend(reader.id(), writer.id()) && table.depend(reader.id(), writer.id()));
        assert_eq!(table.counts().dependencies, 1, "asked twice, it depends once");
        thread::scope(|scope| {
            let awaits = scope.spawn(|| table.await_dependencies(&reader));
            assert!(!awaits.is_finished());
            if is_kept {
                table.finish_commit(&writer, at);
            } else {
                table.abort(&writer);
            }
            assert_eq!(awaits.join().unwrap(), if is_kept { Ok(()) } else { Err(Doomed) });
        });
        assert_eq!(table.is_doomed(&reader), !is_kept);
        let decided = if is_kept { TransactionState::Committed(at) } else { TransactionState::Aborted };
        assert_eq!((table.state(writer.id()), table.await_decision(writer.id())), (decided, decided));
    }
}

#[test]
fn nobody_depends_on_what_is_decided_nor_does_one_that_is_over() {
    let table = TransactionTable::default();
    let (writer, reader) = (begin(&table), begin(&table));
    assert!(!table.depend(reader.id(), writer.id()), "it is active");
    let at = prepare(&table, &writer);
    let gone = begin(&table);
    let id = gone.id();
    table.release(gone);
    assert!(!table.depend(id, writer.id()), "the reader runs no more");
    table.finish_commit(&writer, at);
    assert!(!table.depend(reader.id(), writer.id()), "it is committed");
    let id = writer.id();
    table.release(writer);
    assert!(!table.depend(reader.id(), id), "it is gone");
    assert_eq!((table.await_dependencies(&reader), table.counts().dependencies), (Ok(()), 0));
}

#[test]
fn the_next_transaction_of_the_slot_is_not_told() {
    let table = TransactionTable::default();
    let writer = begin(&table);
    prepare(&table, &writer);
    let reader = begin(&table);
    assert!(table.depend(reader.id(), writer.id()));
    let (id, slot_of) = (reader.id(), |id: TxnId| id.number() % 4096);
    table.abort(&reader);
    table.release(reader);
    let next = begin(&table);
    assert_eq!(slot_of(next.id()), slot_of(id), "it has the slot of the reader");
    let other = begin(&table);
    let at = prepare(&table, &other);
    assert!(table.depend(next.id(), other.id()), "it has a dependency of its own");
    table.abort(&writer);
    assert!(!table.is_doomed(&next));
    table.finish_commit(&other, at);
    assert_eq!(table.await_dependencies(&next), Ok(()));
}

#[test]
fn rolling_back_cascades_as_far_as_the_dependencies_go() {
    let table = TransactionTable::default();
    let [first, second, third, other] = [(); 4].map(|()| begin(&table));
    prepare(&table, &first);
    assert!(table.depend(second.id(), first.id()));
    prepare(&table, &second);
    assert!(table.depend(third.id(), second.id()));
    let at = prepare(&table, &other);
    assert!(table.depend(third.id(), other.id()));
    table.abort(&first);
    assert_eq!(table.await_dependencies(&second), Err(Doomed));
    table.abort(&second);
    assert_eq!(table.await_dependencies(&third), Err(Doomed), "at once, though another one is undecided");
    table.abort(&third);
    table.finish_commit(&other, at);
    assert_eq!(table.counts().cascades, 2);
}

#[test]
fn many_readers_wait_for_the_decision() {
    let table = TransactionTable::default();
    let writer = begin(&table);
    let at = prepare(&table, &writer);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(|| table.await_decision(writer.id()))).collect();
        thread::sleep(std::time::Duration::from_millis(2));
        assert!(readers.iter().all(|reader| !reader.is_finished()));
        table.finish_commit(&writer, at);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() == TransactionState::Committed(at)));
    });
}

/// A register of one version: a reader that finds the version prepared within its snapshot depends on its writer.
struct Register {
    table: TransactionTable,
    /// the id of the transaction that wrote last
    newest: AtomicU64,
    ends: Mutex<HashMap<TxnId, bool>>,
    depended: Mutex<Vec<(TxnId, TxnId)>>,
}

impl Register {
    /// One transaction that reads, writes, and commits or rolls back.
    fn run(&self, is_kept: bool) {
        let table = &self.table;
        let (handle, snapshot) = table.begin().unwrap();
        if let StartTime::Pending(on) = StartTime::from_word(self.newest.load(Ordering::Acquire)) {
            self.read(&handle, snapshot, on);
        }
        self.newest.store(handle.id().word(), Ordering::Release);
        let at = prepare(table, &handle);
        thread::yield_now();
        let is_kept = table.await_dependencies(&handle).is_ok() && is_kept;
        self.ends.lock().unwrap().insert(handle.id(), is_kept);
        if is_kept {
            table.finish_commit(&handle, at);
        } else {
            table.abort(&handle);
        }
        table.release(handle);
    }

    fn read(&self, handle: &Handle, snapshot: Timestamp, on: TxnId) {
        while let TransactionState::Prepared(at) = self.table.state(on) {
            if at > snapshot {
                return;
            }
            if self.table.depend(handle.id(), on) {
                self.depended.lock().unwrap().push((handle.id(), on));
                return;
            }
        }
    }
}

#[test]
fn nobody_commits_that_depends_on_one_that_has_not() {
    let register = Register {
        table: TransactionTable::default(),
        newest: AtomicU64::new(0),
        ends: Mutex::default(),
        depended: Mutex::default(),
    };
    thread::scope(|scope| {
        for seed in 0..4 {
            let register = &register;
            scope.spawn(move || (0..2_000).for_each(|i| register.run((i * 7 + seed) % 5 != 0)));
        }
    });
    let ends = register.ends.into_inner().unwrap();
    let depended = register.depended.into_inner().unwrap();
    for (reader, on) in &depended {
        assert!(!ends[reader] || ends[on], "{reader:?} has committed, {on:?} has not");
    }
    assert_eq!(depended.len() as u64, register.table.counts().dependencies);
    assert_eq!((register.table.running(), ends.len()), (0, 8_000));
}
