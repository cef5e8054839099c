//! The transaction table under shuttle: some threads that begin, commit, roll back and ask, in orders drawn by chance and
//! by priorities.
//!
//! `RUSTFLAGS="--cfg shuttle -C debug-assertions" cargo test -p txn --release --test shuttle_table`
//!
//! A failing order is printed as a string that `shuttle::replay` accepts.
#![cfg(shuttle)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use shuttle::thread;
use sync::atomic::{AtomicU64, Ordering};
use txn::{State, TransactionTable};
use types::{StartTime, Timestamp, TxnId};

const RUNS: usize = 3_000;

fn explore(body: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(body, RUNS);
    shuttle::check_pct(body, RUNS, 3);
}

fn id_of(word: u64) -> TxnId {
    match StartTime::from_word(word) {
        StartTime::Pending(id) => id,
        other => panic!("{other:?} is no transaction"),
    }
}

/// A table, the id that the newest version carries, and what has happened.
#[derive(Default)]
struct World {
    table: TransactionTable,
    newest: AtomicU64,
    ended: Mutex<BTreeMap<u64, Option<Timestamp>>>,
    /// who was asked for with which snapshot, and the answer
    asked: Mutex<Vec<(u64, Timestamp, State)>>,
    horizon: AtomicU64,
}

impl World {
    fn write(&self, is_kept: bool) {
        let (handle, _) = self.table.begin().unwrap();
        let word = handle.id().word();
        self.newest.store(word, Ordering::Release);
        let end = if is_kept {
            self.table.start_commit(&handle);
            let at = self.table.next_timestamp();
            self.table.finish_commit(&handle, at);
            Some(at)
        } else {
            self.table.abort(&handle);
            None
        };
        assert!(self.ended.lock().unwrap().insert(word, end).is_none(), "an id came twice");
        self.table.release(handle);
    }

    fn ask(&self) {
        let word = self.newest.load(Ordering::Acquire);
        let at = self.table.now();
        if word != 0 {
            let state = self.table.state(id_of(word));
            self.asked.lock().unwrap().push((word, at, state));
        }
    }

    fn read(&self) {
        let (handle, at) = self.table.begin().unwrap();
        self.horizon.fetch_max(self.table.oldest_snapshot().0, Ordering::SeqCst);
        assert!(self.horizon.load(Ordering::SeqCst) <= at.0);
        self.ask();
        assert!(self.horizon.load(Ordering::SeqCst) <= at.0);
        self.table.release(handle);
    }

    fn check(&self) {
        let ended = self.ended.lock().unwrap();
        for (word, snapshot, state) in self.asked.lock().unwrap().iter() {
            let end = ended[word];
            match state {
                State::Active => assert!(end.is_none_or(|at| at > *snapshot), "active at {snapshot:?}, ended {end:?}"),
                State::Committed(at) => assert_eq!(Some(*at), end),
                State::Aborted => assert_eq!(None, end),
                State::Released => {}
            }
        }
        let commits: BTreeSet<Timestamp> = ended.values().copied().flatten().collect();
        assert_eq!(commits.last().copied().unwrap_or_default(), self.table.now());
        assert_eq!((self.table.running(), self.table.oldest_snapshot()), (0, self.table.now()));
    }
}

fn together(parts: [fn(&World); 3]) {
    let world = Arc::new(World::default());
    let threads = parts.map(|part| {
        let world = world.clone();
        thread::spawn(move || part(&world))
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    world.check();
}

#[test]
fn who_asks_is_told_what_agrees_with_the_snapshot() {
    let writes = |world: &World| [true, false, true].into_iter().for_each(|is_kept| world.write(is_kept));
    let asks = |world: &World| (0..4).for_each(|_| world.ask());
    explore(move || together([writes, writes, asks]));
}

#[test]
fn no_snapshot_in_use_is_older_than_the_oldest() {
    let writes = |world: &World| (0..2).for_each(|_| world.write(true));
    let reads = |world: &World| (0..2).for_each(|_| world.read());
    explore(move || together([writes, reads, reads]));
}
