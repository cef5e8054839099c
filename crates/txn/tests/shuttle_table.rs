//! The transaction table under shuttle: some threads that begin, commit, roll back and ask, in orders drawn by chance and
//! by priorities.
//!
//! `RUSTFLAGS="--cfg shuttle -C debug-assertions" cargo test -p lstore-txn --release --test shuttle_table`
//!
//! A failing order is printed as a string that `shuttle::replay` accepts.
#![cfg(shuttle)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use shuttle::thread;
use sync::atomic::{AtomicU64, Ordering};
use txn::{Handle, RowName, TransactionState, TransactionTable, WaitError};
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
    /// the transaction asked for, the snapshot, and the answer
    asked: Mutex<Vec<(u64, Timestamp, TransactionState)>>,
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
                TransactionState::Active => {
                    assert!(end.is_none_or(|at| at > *snapshot), "active at {snapshot:?}, ended {end:?}")
                }
                TransactionState::Committed(at) => assert_eq!(Some(*at), end),
                TransactionState::Aborted => assert_eq!(None, end),
                TransactionState::Prepared(_) => panic!("nobody prepares here"),
                TransactionState::Released => {}
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

/// Rows that transactions lock one after the other, each the id of its holder.
#[derive(Default)]
struct Locks {
    table: TransactionTable,
    rows: [AtomicU64; 3],
    victims: AtomicU64,
}

impl Locks {
    fn lock(&self, handle: &Handle, index: usize) -> Result<(), WaitError> {
        let row = &self.rows[index];
        let mut place = self.table.queue(handle, RowName { table: 1, rid: index as u64 });
        while let Err(holder) = row.compare_exchange(0, handle.id().word(), Ordering::AcqRel, Ordering::Acquire) {
            place.wait(id_of(holder), &|| row.load(Ordering::Acquire) == holder, None)?;
        }
        Ok(())
    }

    /// Locks two rows in this order; a victim gives up.
    fn lock_both(&self, first: usize, second: usize) {
        let (handle, _) = self.table.begin().unwrap();
        let result = self.lock(&handle, first).and_then(|()| self.lock(&handle, second));
        for row in &self.rows {
            let _ = row.compare_exchange(handle.id().word(), 0, Ordering::AcqRel, Ordering::Acquire);
        }
        if result == Err(WaitError::Deadlock) {
            self.victims.fetch_add(1, Ordering::Relaxed);
        }
        self.table.abort(&handle);
        self.table.release(handle);
    }

    fn together(orders: &'static [&'static [(usize, usize)]]) -> u64 {
        let locks = Arc::new(Locks::default());
        let spawn = |order: &'static [(usize, usize)]| {
            let locks = locks.clone();
            thread::spawn(move || order.iter().for_each(|(first, second)| locks.lock_both(*first, *second)))
        };
        let threads: Vec<_> = orders.iter().map(|order| spawn(order)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((locks.table.running(), locks.table.queued_rows()), (0, 0));
        locks.victims.load(Ordering::Relaxed)
    }
}

/// A waiter that slept for ever would stop the model.
#[test]
fn a_row_that_many_want_goes_round_without_a_deadlock() {
    explore(|| assert_eq!(Locks::together(&[&[(0, 1), (0, 1)], &[(0, 1), (1, 2)], &[(0, 2)]]), 0));
}

#[test]
fn a_circle_of_three_has_one_victim_at_most() {
    explore(|| assert!(Locks::together(&[&[(0, 1)], &[(1, 2)], &[(2, 0)]]) <= 1));
}

#[test]
fn circles_that_form_and_dissolve_leave_nobody_behind() {
    explore(|| assert!(Locks::together(&[&[(0, 1), (1, 0)], &[(1, 0), (0, 2)], &[(2, 0), (1, 2)]]) < 6));
}

/// Each waits for a row of the next; the last gives its row up before it waits for a row of the first. At no time is
/// there a circle, though one can be put together of edges that never stood together.
fn circle_that_never_was(count: usize) {
    let table = Arc::new(TransactionTable::default());
    let handles: Vec<Handle> = (0..count).map(|_| table.begin().unwrap().0).collect();
    let ids: Vec<TxnId> = handles.iter().map(Handle::id).collect();
    let is_held = Arc::new(AtomicU64::new(1));
    let spawn = |(i, handle): (usize, Handle)| {
        let (table, is_held, owner) = (table.clone(), is_held.clone(), ids[(i + 1) % count]);
        thread::spawn(move || {
            if i + 1 == count {
                is_held.store(0, Ordering::Release);
                table.wake_waiters(&handle);
            }
            // The one before the last wants what the last gives up.
            let needs = || i + 2 != count || is_held.load(Ordering::Acquire) != 0;
            let result = table.wait_for(&handle, owner, RowName { table: 1, rid: i as u64 }, &needs, None);
            assert_eq!(result, Ok(()), "there is no circle");
            table.abort(&handle);
            table.release(handle);
        })
    };
    let threads: Vec<_> = handles.into_iter().enumerate().map(spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_circle_that_never_was_has_no_victim() {
    explore(|| circle_that_never_was(2));
    explore(|| circle_that_never_was(3));
}

/// A row that transactions share or have alone, as `engine` does it: the sharers stand on a list, and a transaction
/// that finds another in its way gives way before it waits.
#[derive(Default)]
struct SharedRow {
    table: TransactionTable,
    /// The one that has a version on top.
    holder: AtomicU64,
    sharers: Mutex<BTreeSet<u64>>,
    /// The one that was told that it has the row.
    alone: AtomicU64,
    victims: AtomicU64,
}

const SHARED: RowName = RowName { table: 1, rid: 9 };

impl SharedRow {
    fn is_shared_by(&self, txn: u64) -> bool {
        self.sharers.lock().unwrap().contains(&txn)
    }

    fn share(&self, handle: &Handle) -> Result<(), WaitError> {
        let own = handle.id().word();
        let mut place = self.table.queue(handle, SHARED);
        loop {
            self.sharers.lock().unwrap().insert(own);
            let holder = self.holder.load(Ordering::SeqCst);
            if holder == 0 {
                return Ok(());
            }
            self.sharers.lock().unwrap().remove(&own);
            self.table.wake_waiters(handle);
            place.wait(id_of(holder), &|| self.holder.load(Ordering::SeqCst) == holder, None)?;
        }
    }

    fn have(&self, handle: &Handle) -> Result<(), WaitError> {
        let own = handle.id().word();
        let mut place = self.table.queue(handle, SHARED);
        loop {
            let taken = self.holder.compare_exchange(0, own, Ordering::SeqCst, Ordering::SeqCst);
            if let Err(holder) = taken {
                let is_held = || self.holder.load(Ordering::SeqCst) == holder;
                match self.is_shared_by(own) {
                    true => self.table.wait_for(handle, id_of(holder), SHARED, &is_held, None)?,
                    false => place.wait(id_of(holder), &is_held, None)?,
                }
                continue;
            }
            let other = self.sharers.lock().unwrap().iter().copied().find(|sharer| *sharer != own);
            let Some(other) = other else { return Ok(()) };
            self.holder.store(0, Ordering::SeqCst);
            self.table.wake_waiters(handle);
            self.table.wait_for(handle, id_of(other), SHARED, &|| self.is_shared_by(other), None)?;
        }
    }

    /// Checks that no other transaction has or shares the row, and ends.
    fn end(&self, handle: Handle, result: Result<(), WaitError>, is_alone: bool) {
        let own = handle.id().word();
        match result {
            Ok(()) if is_alone => {
                assert_eq!(self.alone.swap(own, Ordering::SeqCst), 0);
                assert_eq!(self.alone.swap(0, Ordering::SeqCst), own);
            }
            Ok(()) => assert_eq!(self.alone.load(Ordering::SeqCst), 0, "others share it"),
            Err(error) => {
                assert_eq!(error, WaitError::Deadlock);
                self.victims.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.sharers.lock().unwrap().remove(&own);
        let _ = self.holder.compare_exchange(own, 0, Ordering::SeqCst, Ordering::SeqCst);
        self.table.abort(&handle);
        self.table.release(handle);
    }

    /// Some transactions share the row from the start and then want it alone; others want it alone, or to share it.
    /// Returns how many were told of a deadlock.
    fn together(upgrades: usize, others: &'static [bool]) -> u64 {
        let row = Arc::new(SharedRow::default());
        let begin = || row.table.begin().unwrap().0;
        let mut parts: Vec<(Handle, bool)> = (0..upgrades).map(|_| (begin(), true)).collect();
        parts.iter().for_each(|(handle, _)| row.share(handle).unwrap());
        parts.extend(others.iter().map(|is_alone| (begin(), *is_alone)));
        let spawn = |(handle, is_alone): (Handle, bool)| {
            let row = row.clone();
            thread::spawn(move || {
                let result = if is_alone { row.have(&handle) } else { row.share(&handle) };
                row.end(handle, result, is_alone);
            })
        };
        let threads: Vec<_> = parts.into_iter().map(spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((row.table.running(), row.table.queued_rows()), (0, 0));
        row.victims.load(Ordering::Relaxed)
    }
}

#[test]
fn who_shares_a_row_gets_it_alone_beside_those_who_wait_for_that() {
    explore(|| assert_eq!(SharedRow::together(1, &[true, false]), 0));
    explore(|| assert_eq!(SharedRow::together(1, &[true, true]), 0));
}

#[test]
fn of_those_who_share_a_row_and_want_it_alone_all_but_one_are_told() {
    explore(|| assert_eq!(SharedRow::together(2, &[]), 1));
    explore(|| assert_eq!(SharedRow::together(2, &[true]), 1));
}

/// One register, as in `dependencies.rs`: a transaction that reads a prepared version depends on its writer.
#[derive(Default)]
struct Register {
    table: TransactionTable,
    newest: AtomicU64,
    ends: Mutex<BTreeMap<TxnId, bool>>,
    depended: Mutex<Vec<(TxnId, TxnId)>>,
}

impl Register {
    fn read_and_write(&self, is_kept: bool) {
        let table = &self.table;
        let (handle, snapshot) = table.begin().unwrap();
        let newest = self.newest.load(Ordering::Acquire);
        while newest != 0
            && let TransactionState::Prepared(at) = table.state(id_of(newest))
            && at <= snapshot
        {
            if table.depend(handle.id(), id_of(newest)) {
                self.depended.lock().unwrap().push((handle.id(), id_of(newest)));
                break;
            }
        }
        self.newest.store(handle.id().word(), Ordering::Release);
        table.start_commit(&handle);
        let at = table.next_timestamp();
        table.prepare(&handle, at);
        let is_kept = table.await_dependencies(&handle).is_ok() && is_kept;
        self.ends.lock().unwrap().insert(handle.id(), is_kept);
        if is_kept {
            table.finish_commit(&handle, at)
        } else {
            table.abort(&handle)
        }
        table.release(handle);
    }

    /// One that is no transaction waits for the decision.
    fn wait(&self) {
        let newest = self.newest.load(Ordering::Acquire);
        if newest != 0 {
            let state = self.table.await_decision(id_of(newest));
            assert!(!matches!(state, TransactionState::Prepared(_)));
        }
    }
}

#[test]
fn nobody_commits_that_depends_on_one_that_has_not() {
    explore(|| {
        let register = Arc::new(Register::default());
        let run = |part: fn(&Register)| {
            let register = register.clone();
            thread::spawn(move || part(&register))
        };
        let threads = [
            run(|register| [true, false].into_iter().for_each(|is_kept| register.read_and_write(is_kept))),
            run(|register| [false, true].into_iter().for_each(|is_kept| register.read_and_write(is_kept))),
            run(|register| {
                register.wait();
                register.read_and_write(true);
            }),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let ends = register.ends.lock().unwrap();
        for (reader, on) in register.depended.lock().unwrap().iter() {
            assert!(!ends[reader] || ends[on], "{reader:?} has committed, {on:?} has not");
        }
    });
}

/// Rows as in [`Locks`], and one lock of which the table knows nothing, as those of sessions: a transaction that waits for
/// it looks for circles itself.
#[derive(Default)]
struct Foreign {
    locks: Locks,
    /// The holder of the foreign lock. A victim is told under this latch.
    foreign: sync::blocking::Mutex<Option<TxnId>>,
}

impl Foreign {
    /// Takes the foreign lock, and gives up if it waits in a circle.
    fn lock(&self, own: TxnId) -> Result<(), WaitError> {
        loop {
            let mut foreign = self.foreign.lock().unwrap();
            let Some(holder) = *foreign else {
                *foreign = Some(own);
                return Ok(());
            };
            let edges = self.locks.table.edges();
            let next = |txn: TxnId| edges.iter().find(|(waits, _)| *waits == txn).map(|(_, owner)| *owner);
            if std::iter::successors(Some(holder), |txn| next(*txn)).take(4).any(|txn| txn == own) {
                return Err(WaitError::Deadlock);
            }
            drop(foreign);
            thread::yield_now();
        }
    }

    fn unlock(&self, own: TxnId) {
        let mut foreign = self.foreign.lock().unwrap();
        if *foreign == Some(own) {
            *foreign = None;
        }
    }

    /// Takes rows, and the foreign lock where none is named, in this order; then gives the row `given_up` up and takes another.
    fn take(&self, order: &[Option<usize>], given_up: Option<(usize, Option<usize>)>) {
        let table = &self.locks.table;
        let (handle, _) = table.begin().unwrap();
        let take = |wanted: &Option<usize>| match wanted {
            Some(row) => self.locks.lock(&handle, *row),
            None => self.lock(handle.id()),
        };
        let free = |row: usize| {
            let word = handle.id().word();
            let _ = self.locks.rows[row].compare_exchange(word, 0, Ordering::AcqRel, Ordering::Acquire);
        };
        let mut done = order.iter().try_for_each(take);
        if let (Ok(()), Some((row, next))) = (done, given_up) {
            free(row);
            table.wake_waiters(&handle);
            done = take(&next);
        }
        self.unlock(handle.id());
        (0..3).for_each(free);
        if done.is_err() {
            self.locks.victims.fetch_add(1, Ordering::Relaxed);
        }
        table.abort(&handle);
        table.release(handle);
    }
}

type Part = (&'static [Option<usize>], Option<(usize, Option<usize>)>);

fn foreign_together(parts: &'static [Part]) -> u64 {
    let world = Arc::new(Foreign::default());
    let spawn = |part: &'static Part| {
        let world = world.clone();
        thread::spawn(move || world.take(part.0, part.1))
    };
    let threads: Vec<_> = parts.iter().map(spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((world.locks.table.running(), world.locks.table.queued_rows()), (0, 0));
    world.locks.victims.load(Ordering::Relaxed)
}

#[test]
fn a_circle_through_a_foreign_lock_ends_with_one_victim() {
    explore(|| assert!(foreign_together(&[(&[Some(0), None], None), (&[None, Some(0)], None)]) <= 1));
    explore(|| {
        let parts: &[Part] = &[(&[Some(0), None], None), (&[None, Some(1)], None), (&[Some(1), Some(0)], None)];
        assert!(foreign_together(parts) <= 1);
    });
}

/// One has row 0, gives it up and then wants the foreign lock, while the other has that and wants row 0: there is no circle at any
/// time, though the other's edge may still stand.
#[test]
fn a_circle_through_a_foreign_lock_that_never_was_has_no_victim() {
    explore(|| {
        let parts: &[Part] = &[(&[Some(0)], Some((0, None))), (&[None, Some(0)], None)];
        assert_eq!(foreign_together(parts), 0);
    });
    explore(|| {
        let parts: &[Part] = &[(&[Some(0)], Some((0, None))), (&[None, Some(1)], None), (&[Some(1), Some(0)], None)];
        assert_eq!(foreign_together(parts), 0);
    });
}
