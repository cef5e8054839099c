//! The protocols of the storage under shuttle: the real code with a handful of records, two or three threads and a few
//! operations each, in thousands of orders drawn by chance and by priorities.
//!
//! `RUSTFLAGS="--cfg shuttle -C debug-assertions" cargo test -p lstore-lineage --release --lib shuttle_models`
//!
//! A [`World`] is a table with just enough of a transaction table (the steps of crate `txn`). What readers see is noted
//! together with their snapshot, and so is what was committed when. Once all threads have ended, every look is
//! held against the commits: it must have seen those at or before its snapshot, and nothing else. A failing order is
//! printed as a string that `shuttle::replay` accepts.
mod eviction;
mod flat;
mod forward;
mod history;
mod image;
mod merging;
mod points;
mod tail;
mod texts;
mod writing;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use sync::atomic::{AtomicU64, Ordering};
use sync::hint::SpinWait;
use types::{Column, DataType, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId};

use crate::image::tests::{Blobs, Shelf};
use crate::record::hold::Hold;
use crate::value::cell::Cell;
use crate::{
    AppendedRecords, Change, Kept, Layout, MemoryBudget, Outcome, Outcomes, PageReading, PointColumns, PointHint,
    Projection, Request, Table, TableOptions, Validation, View,
};

/// Orders drawn by chance for each model, and as many by priorities.
const RUNS: usize = 1_000;

const A: usize = 1;
const B: usize = 2;

const ACTIVE: u64 = 0;
const COMMITTING: u64 = 1;
const ABORTED: u64 = 2;
const RELEASED: u64 = 3;
const COMMITTED: u64 = 4;
const PREPARED: u64 = 1 << 62;
/// The announcement of a transaction that reads nothing.
const NO_SNAPSHOT: u64 = u64::MAX;
/// Transactions that a model may begin.
const TRANSACTIONS: usize = 12;

/// Runs `body` in many orders.
fn explore(body: impl Fn() + Send + Sync + Copy + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    shuttle::Runner::new(RandomScheduler::new(RUNS), config.clone()).run(body);
    shuttle::Runner::new(PctScheduler::new(3, RUNS), config).run(body);
}

/// Runs each of `parts` in a thread of its own with the same world, and then checks what was seen.
fn together(world: World, parts: Vec<fn(&World)>) {
    let world = Arc::new(world);
    let threads: Vec<_> = parts
        .into_iter()
        .map(|part| {
            let world = world.clone();
            shuttle::thread::spawn(move || part(&world))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let last = world.begin();
    last.look_around();
    drop(last);
    world.check();
}

/// The values of columns A and B, `None` where there is no record.
type Row = Option<[u64; 2]>;

/// What a transaction did to a record.
#[derive(Clone, Copy, Debug)]
enum Wrote {
    Inserted([u64; 2]),
    Updated(usize, u64),
    Deleted,
    /// Nothing, but nobody else could meanwhile.
    Locked,
}

/// What somebody saw.
#[derive(Debug)]
enum Seen {
    Row {
        at: Timestamp,
        rid: Rid,
        row: Row,
    },
    Changes {
        from: Timestamp,
        to: Timestamp,
        changes: Vec<(Timestamp, Rid)>,
    },
    /// It had locked the record while it ran, and committed last.
    Held {
        from: Timestamp,
        to: Timestamp,
        rid: Rid,
    },
    /// Whether others changed anything, and record 0.
    Validated {
        from: Timestamp,
        to: Timestamp,
        changed: [bool; 2],
    },
}

/// A table, its transactions, and what has happened.
struct World {
    table: Table,
    shelf: Arc<Shelf>,
    budget: Arc<MemoryBudget>,
    /// of the last checkpoint, while no other is taken
    blobs: Mutex<Option<Blobs>>,
    clock: AtomicU64,
    states: [AtomicU64; TRANSACTIONS],
    reads: [AtomicU64; TRANSACTIONS],
    begun: std::sync::atomic::AtomicUsize,
    commits: Mutex<Vec<(Timestamp, Rid, Wrote)>>,
    seen: Mutex<Vec<Seen>>,
}

impl Outcomes for World {
    fn outcome(&self, txn: TxnId) -> Outcome {
        let mut wait = SpinWait::new();
        loop {
            match self.states[txn.number() as usize].load(Ordering::Acquire) {
                ACTIVE => return Outcome::Active,
                COMMITTING => wait.pause(),
                ABORTED => return Outcome::Aborted,
                RELEASED => return Outcome::Stamped,
                prepared if prepared >= PREPARED => return Outcome::Prepared(Timestamp(prepared - PREPARED)),
                committed => return Outcome::Committed(Timestamp(committed - COMMITTED)),
            }
        }
    }

    /// Nobody depends on others here: all wait.
    fn speculate(&self, _: Snapshot, on: TxnId) -> bool {
        self.await_decision(on);
        false
    }

    fn await_decision(&self, on: TxnId) {
        let mut wait = SpinWait::new();
        while self.states[on.number() as usize].load(Ordering::Acquire) >= PREPARED {
            wait.pause();
        }
    }
}

impl World {
    /// Two records, inserted at time 1.
    fn new() -> World {
        World::with_layout(Layout::Column)
    }

    fn with_layout(layout: Layout) -> World {
        let columns = ["k", "a", "b"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
        let options = TableOptions {
            workers: 2,
            update_range_records: 16,
            merge_tail_records: 4,
            layout,
            ..TableOptions::with_range(16)
        };
        let (shelf, budget) = Shelf::with_budget();
        let world = World {
            table: Table::new(Schema::new(columns, &["k"]).unwrap(), options, budget.clone()),
            shelf,
            budget,
            blobs: Mutex::new(Some(Blobs::default())),
            clock: AtomicU64::new(0),
            states: std::array::from_fn(|_| AtomicU64::new(ACTIVE)),
            reads: std::array::from_fn(|_| AtomicU64::new(NO_SNAPSHOT)),
            begun: Default::default(),
            commits: Mutex::default(),
            seen: Mutex::default(),
        };
        let mut first = world.begin();
        (0..2).for_each(|slot| assert_eq!(first.insert([100 + slot, 200 + slot]), record(slot as usize)));
        first.commit();
        world
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.clock.load(Ordering::Acquire))
    }

    /// Begins a transaction; it announces what it reads before it takes its snapshot, until both are the same.
    fn begin(&self) -> Transaction<'_> {
        let number = self.begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut announced = self.now();
        loop {
            self.reads[number].swap(announced.0, Ordering::SeqCst);
            match self.now() {
                now if now == announced => break,
                now => announced = now,
            }
        }
        self.transaction(number, announced)
    }

    /// Begins to read an older snapshot, if the table still has it; it asks once it has announced it.
    fn begin_at(&self, at: Timestamp) -> Option<Transaction<'_>> {
        let number = self.begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.reads[number].swap(at.0, Ordering::SeqCst);
        let transaction = self.transaction(number, at);
        self.table.keeps(at).then_some(transaction)
    }

    fn transaction(&self, number: usize, at: Timestamp) -> Transaction<'_> {
        let snapshot = Snapshot::of_transaction(at, TxnId::new(number as u64));
        Transaction { world: self, number, snapshot, written: Vec::new(), own: BTreeMap::new() }
    }

    /// What a table without retention keeps, as the engine finds it.
    fn kept(&self) -> Kept {
        let in_use = || {
            let now = self.now();
            let reads = self.reads.iter().map(|reads| Timestamp(reads.load(Ordering::Acquire)));
            let mut in_use: Vec<Timestamp> = reads.filter(|at| *at < now).collect();
            in_use.push(now);
            in_use.sort_unstable();
            in_use
        };
        self.table.raise_horizon(Timestamp::MAX, in_use)
    }

    fn merge(&self) {
        self.table.merge_range(0, self, self.kept());
    }

    /// Merges and keeps all versions.
    fn merge_only(&self) {
        self.table.merge_range(0, self, Timestamp::ZERO);
    }

    fn archive(&self) {
        self.table.archive_range(0, self.kept(), true);
    }

    /// Holds what was seen against what was committed.
    fn check(&self) {
        let mut commits = self.commits.lock().unwrap().clone();
        commits.sort_by_key(|(at, ..)| *at);
        for seen in self.seen.lock().unwrap().iter() {
            match seen {
                Seen::Row { at, rid, row, .. } => {
                    let before = commits.iter().filter(|(commit, of, _)| commit <= at && of == rid);
                    let expected = before.fold(None, |row, (.., wrote)| apply(row, *wrote));
                    assert_eq!(*row, expected, "{seen:?} of {commits:?}");
                }
                Seen::Changes { from, to, changes } => {
                    let mut expected: Vec<(Timestamp, Rid)> = commits.iter().map(|(at, rid, _)| (*at, *rid)).collect();
                    expected.retain(|(at, _)| at > from && at <= to);
                    expected.sort_unstable();
                    expected.dedup();
                    assert_eq!(*changes, expected, "{seen:?}");
                }
                Seen::Held { from, to, rid } => {
                    let others = commits.iter().find(|(at, of, _)| of == rid && at > from && at <= to);
                    assert_eq!(others.map(|(at, ..)| *at), None, "{seen:?}");
                }
                Seen::Validated { from, to, changed } => {
                    let expected = [None, Some(record(0))].map(|rid| {
                        let is_asked = |of: Rid| rid.is_none_or(|rid| rid == of);
                        commits.iter().any(|(at, of, _)| at > from && at <= to && is_asked(*of))
                    });
                    assert_eq!(*changed, expected, "{seen:?} of {commits:?}");
                }
            }
        }
    }
}

fn apply(row: Row, wrote: Wrote) -> Row {
    match (wrote, row) {
        (Wrote::Inserted(row), None) => Some(row),
        (Wrote::Updated(A, value), Some([_, b])) => Some([value, b]),
        (Wrote::Updated(_, value), Some([a, _])) => Some([a, value]),
        (Wrote::Deleted, Some(_)) => None,
        _ => panic!("{wrote:?} upon {row:?}"),
    }
}

/// The record at `slot` of the first range.
fn record(slot: usize) -> Rid {
    Rid::base(0, slot)
}

/// A transaction, or a reader's snapshot. Dropped without a commit it rolls back.
struct Transaction<'w> {
    world: &'w World,
    number: usize,
    snapshot: Snapshot,
    written: Vec<(Rid, Option<AppendedRecords>, Wrote)>,
    /// what it must read itself
    own: BTreeMap<Rid, Row>,
}

impl Transaction<'_> {
    fn id(&self) -> TxnId {
        TxnId::new(self.number as u64)
    }

    fn view(&self) -> View<'_, World> {
        View { snapshot: self.snapshot, outcomes: self.world }
    }

    fn insert(&mut self, values: [u64; 2]) -> Rid {
        let cells = [Cell::Word(0), Cell::Word(values[0]), Cell::Word(values[1])];
        let rid = self.world.table.insert(&cells, self.id().word());
        self.written.push((rid, None, Wrote::Inserted(values)));
        rid
    }

    /// Returns whether it could.
    fn update(&mut self, rid: Rid, column: usize, value: u64) -> bool {
        self.append(rid, Change::Update(&[(column, Cell::Word(value))]), Wrote::Updated(column, value))
    }

    fn delete(&mut self, rid: Rid) -> bool {
        self.append(rid, Change::Delete, Wrote::Deleted)
    }

    fn append(&mut self, rid: Rid, change: Change<'_>, wrote: Wrote) -> bool {
        let before = self.row(rid);
        let Ok(appended) = self.world.table.append(self.view(), self.id().word(), rid, change) else { return false };
        self.written.push((rid, Some(appended), wrote));
        self.own.insert(rid, apply(before, wrote));
        assert_eq!(self.row(rid), self.own[&rid], "its own write");
        true
    }

    /// Takes back the last write, as a statement does that fails.
    fn take_back(&mut self) {
        let (rid, appended, _) = self.written.pop().expect("something was written");
        self.own.remove(&rid);
        self.stamp(rid, appended, StartTime::TOMBSTONE);
    }

    fn stamp(&self, rid: Rid, appended: Option<AppendedRecords>, stamp: u64) {
        match appended {
            Some(appended) => self.world.table.stamp_versions(&sync::pin(), rid, appended, self.id(), stamp),
            None => self.world.table.stamp_insert(&sync::pin(), rid, self.id(), stamp),
        }
    }

    fn prepare(&self) -> Timestamp {
        let state = &self.world.states[self.number];
        state.store(COMMITTING, Ordering::Release);
        let at = Timestamp(self.world.clock.fetch_add(1, Ordering::AcqRel) + 1);
        state.store(PREPARED + at.0, Ordering::Release);
        at
    }

    fn commit(mut self) -> Timestamp {
        let at = self.prepare();
        let changes = self.written.iter().filter(|(.., wrote)| !matches!(wrote, Wrote::Locked));
        self.world.commits.lock().unwrap().extend(changes.map(|(rid, _, wrote)| (at, *rid, *wrote)));
        self.world.states[self.number].store(COMMITTED + at.0, Ordering::Release);
        self.end(at.0);
        at
    }

    /// Gets its commit timestamp, and aborts then.
    fn fail(self) {
        self.prepare();
    }

    /// Returns whether it could.
    fn lock(&mut self, rid: Rid) -> bool {
        let locked = self.world.table.lock(self.view(), self.id().word(), rid, Hold::Whole);
        if let Ok(Some(lock)) = locked {
            self.written.push((rid, Some(lock), Wrote::Locked));
        }
        locked.is_ok()
    }

    /// Commits; nobody else may have changed the record, which is locked, since the snapshot.
    fn commit_holding(self, rid: Rid) {
        let (world, from) = (self.world, self.snapshot.at);
        let to = self.commit();
        world.seen.lock().unwrap().push(Seen::Held { from, to, rid });
    }

    /// Notes what was changed since the snapshot.
    fn validate(&self) {
        // A validating transaction holds both ends, as the engine does: what lies between is given up otherwise
        // once more has come after it.
        let held = self.world.begin();
        let (from, to, table) = (self.snapshot.at, held.snapshot.at, &self.world.table);
        let asked = Validation { from, to, own: self.id(), outcomes: self.world };
        let is_untouched = {
            let guard = sync::pin();
            table.points(&guard).at(record(0)).is_untouched_since(&guard, from)
        };
        let any = (0..table.range_count()).any(|range| table.range_changed_between(range, asked, &[], None).unwrap());
        let changed = [any, table.changed_between(record(0), asked).unwrap()];
        assert!(!(is_untouched && changed[1]), "a look missed a change between {from:?} and {to:?}");
        self.world.seen.lock().unwrap().push(Seen::Validated { from, to, changed });
    }

    fn end(&mut self, stamp: u64) {
        for (rid, appended, _) in std::mem::take(&mut self.written) {
            self.stamp(rid, appended, stamp);
        }
        self.world.reads[self.number].store(NO_SNAPSHOT, Ordering::Release);
        self.world.states[self.number].store(RELEASED, Ordering::Release);
    }

    fn row(&self, rid: Rid) -> Row {
        let read = self.world.table.read(self.view(), rid, &[A, B], |cells| {
            [0, 1].map(|i: usize| if let Cell::Word(word) = cells[i] { word } else { panic!("no value is null") })
        });
        read.unwrap()
    }

    /// Reads a record and notes what it saw.
    fn look(&self, rid: Rid) {
        let row = self.row(rid);
        self.world.seen.lock().unwrap().push(Seen::Row { at: self.snapshot.at, rid, row });
    }

    /// Scans the table and notes what it saw of every record that there is.
    fn scan(&self) {
        let columns = ["a", "b"].map(|name| Field::new(name, ArrowType::Int64, true));
        let fields: Vec<Field> = columns.into_iter().chain([Field::new("rid", ArrowType::UInt64, false)]).collect();
        let request = Request { columns: vec![A, B], tests: vec![] };
        let projection = Projection { request, with_rid: true, schema: Arc::new(ArrowSchema::new(fields)) };
        for range in 0..self.world.table.range_count() {
            let mut rows: BTreeMap<Rid, [u64; 2]> = BTreeMap::new();
            for batch in self.world.table.scan_range(range, self.view(), &projection).unwrap() {
                let rids = batch.column(2).as_primitive::<UInt64Type>();
                let value = |column, row| batch.column(column).as_primitive::<Int64Type>().value(row) as u64;
                for (row, rid) in rids.values().iter().enumerate() {
                    let twice = rows.insert(Rid::from_word(*rid), [value(0, row), value(1, row)]);
                    assert_eq!(twice, None, "a record comes once");
                }
            }
            let mut seen = self.world.seen.lock().unwrap();
            for slot in 0..16 {
                let rid = Rid::base(range, slot);
                let row = rows.get(&rid).copied();
                seen.push(Seen::Row { at: self.snapshot.at, rid, row });
            }
        }
    }

    /// Reads and scans all.
    fn look_around(&self) {
        self.look(record(0));
        self.scan();
        self.look(record(1));
    }

    /// Notes which records were changed after `from` up to the snapshot.
    fn changes_after(&self, from: Timestamp) {
        let to = self.snapshot.at;
        let changed = (0..self.world.table.range_count())
            .flat_map(|range| self.world.table.changed(range, from, to, self.world).unwrap())
            .map(|changed| (changed.at, changed.rid));
        let mut changes: Vec<(Timestamp, Rid)> = changed.collect();
        changes.sort_unstable();
        self.world.seen.lock().unwrap().push(Seen::Changes { from, to, changes });
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() || self.written.is_empty() {
            self.world.reads[self.number].store(NO_SNAPSHOT, Ordering::Release);
            return;
        }
        self.world.states[self.number].store(ABORTED, Ordering::Release);
        self.end(StartTime::TOMBSTONE);
    }
}
