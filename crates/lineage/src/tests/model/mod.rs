//! The storage of a table against a model: inserts, updates and deletes, committed, rolled back or left open, merges of
//! all columns or some, snapshots held and let go, history written and given up, pages evicted, in any order; savepoints, locks
//! and prepared transactions; then every snapshot that is kept and those of the commands of the running transaction, by every
//! path, while all other snapshots are refused. One thread, so that a failure shrinks to the few steps that make it.
//!
//! The model knows neither pages nor chains: a record is the list of its committed versions.
mod check;
mod image;
mod transaction;
mod validation;

use std::cell::{Cell as StdCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use types::{BlobRef, Column, Command, DataType, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId, Value};

use crate::image::tests::{Blobs, Shelf};
use crate::page::text::simple;
use crate::record::append::AppendedRecords;
use crate::record::hold::Hold;
use crate::record::view::{Outcome, Outcomes, View};
use crate::record::write::{Change, WriteError, Writer};
use crate::tests::model::image::Redo;
use crate::tests::model::transaction::{Open, Write, Wrote};
use crate::value::cell::Cell;
use crate::value::kept::Kept;
use crate::{Layout, MemoryBudget, PointColumns, Table, TableOptions, TailValues};

const TYPES: [DataType; 3] = [DataType::BigInt, DataType::BigInt, DataType::TEXT];
const TEXTS: [&str; 4] = ["", "b", "a text of more than twelve bytes", "another text of more than twelve"];
const ALL: [usize; 3] = [0, 1, 2];

/// A row by the numbers of its values; 0 is NULL.
type Row = [usize; 3];

fn value(column: usize, number: usize) -> Value {
    match (number, column) {
        (0, _) => Value::Null,
        (_, 2) => Value::from(TEXTS[number % TEXTS.len()]),
        _ => Value::BigInt(number as i64 * 100 - 250),
    }
}

fn cell(column: usize, number: usize) -> Cell<'static> {
    match (number, column) {
        (0, _) => Cell::Null,
        (_, 2) => Cell::Bytes(TEXTS[number % TEXTS.len()].as_bytes()),
        _ => Cell::Word((number as i64 * 100 - 250) as u64),
    }
}

fn values(row: Row) -> Vec<Value> {
    ALL.iter().map(|column| value(*column, row[*column])).collect()
}

/// The columns that have their bits set.
fn some_of(columns: usize) -> Vec<usize> {
    ALL.into_iter().filter(|column| columns >> column & 1 != 0).collect()
}

#[derive(Clone, Debug)]
enum Step {
    /// By the open transaction or by one of its own that then commits, or not; stamped at once, or not.
    Write {
        by_open: bool,
        what: What,
        commits: bool,
        stamps: bool,
    },
    EndOpen {
        commits: bool,
        stamps: bool,
    },
    /// The open transaction gets its commit timestamp and does not end yet.
    Prepare {
        will_commit: bool,
    },
    /// Somebody asks what others changed after a moment between the horizon and now, in tenths.
    Validate {
        by_open: bool,
        tenths: u64,
        columns: usize,
    },
    Savepoint,
    /// What was written since the last savepoint is taken back.
    RollBack {
        is_released: bool,
    },
    NextCommand,
    Merge {
        range: Index,
        columns: usize,
    },
    Archive {
        range: Index,
        all: bool,
    },
    /// The horizon moves part of the way to now, in tenths.
    Horizon {
        tenths: u64,
        is_used: bool,
    },
    /// Somebody wants a snapshot, in tenths of the time until now.
    Hold(u64),
    LetGo(Index),
    /// A checkpoint of one range, which may come to nothing; blobs that it keeps may move.
    Image {
        range: Index,
        is_published: bool,
        moves: bool,
    },
    /// Pages go, in tenths of the memory in use; from then on there is room for what scans read back, or not.
    Evict {
        tenths: u64,
        has_room: bool,
    },
    /// The database ends, however it is, and begins again from images and log.
    Restart,
    Check,
}

#[derive(Clone, Debug)]
enum What {
    Insert(Row),
    Update { record: Index, columns: usize, row: Row, as_words: bool },
    Delete { record: Index },
    Lock { record: Index, whole: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = || [1..5_usize, 0..5_usize, 0..5_usize];
    let update = (any::<Index>(), 1..8_usize, row(), any::<bool>());
    let what = prop_oneof![
        4 => row().prop_map(What::Insert),
        12 => update.prop_map(|(record, columns, row, as_words)| What::Update { record, columns, row, as_words }),
        1 => any::<Index>().prop_map(|record| What::Delete { record }),
        2 => any::<(Index, bool)>().prop_map(|(record, whole)| What::Lock { record, whole }),
    ];
    let write = (prop::bool::weighted(0.4), what, prop::bool::weighted(0.85), any::<bool>());
    let merge = (any::<Index>(), prop_oneof![2 => Just(7), 1 => 1..7_usize]);
    let step = prop_oneof![
        18 => write.prop_map(|(by_open, what, commits, stamps)| Step::Write { by_open, what, commits, stamps }),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(commits, stamps)| Step::EndOpen { commits, stamps }),
        1 => any::<bool>().prop_map(|will_commit| Step::Prepare { will_commit }),
        3 => (any::<bool>(), 0..11_u64, 0..8_usize)
            .prop_map(|(by_open, tenths, columns)| Step::Validate { by_open, tenths, columns }),
        2 => Just(Step::Savepoint),
        2 => any::<bool>().prop_map(|is_released| Step::RollBack { is_released }),
        3 => Just(Step::NextCommand),
        4 => merge.prop_map(|(range, columns)| Step::Merge { range, columns }),
        2 => (any::<Index>(), any::<bool>()).prop_map(|(range, all)| Step::Archive { range, all }),
        2 => (0..11_u64, any::<bool>()).prop_map(|(tenths, is_used)| Step::Horizon { tenths, is_used }),
        2 => (0..11_u64).prop_map(Step::Hold),
        1 => any::<Index>().prop_map(Step::LetGo),
        3 => (any::<Index>(), prop::bool::weighted(0.8), any::<bool>())
            .prop_map(|(range, is_published, moves)| Step::Image { range, is_published, moves }),
        4 => (1..11_u64, any::<bool>()).prop_map(|(tenths, has_room)| Step::Evict { tenths, has_room }),
        2 => Just(Step::Restart),
        1 => Just(Step::Check),
    ];
    prop::collection::vec(step, 1..80)
}

/// What became of the transactions that have not stamped what they wrote.
#[derive(Default)]
struct Known {
    outcomes: RefCell<HashMap<u64, Outcome>>,
    /// whether the last reader that asked was told to ask again
    has_sent_back: StdCell<bool>,
    /// what a prepared transaction that is waited for decides
    will_commit: StdCell<bool>,
}

impl Outcomes for Known {
    fn outcome(&self, txn: TxnId) -> Outcome {
        self.outcomes.borrow().get(&txn.number()).copied().unwrap_or(Outcome::Stamped)
    }

    fn speculate(&self, reader: Snapshot, on: TxnId) -> bool {
        assert!(matches!(self.outcome(on), Outcome::Prepared(at) if at <= reader.at && reader.own != Some(on)));
        self.has_sent_back.set(!self.has_sent_back.get());
        !self.has_sent_back.get()
    }

    fn await_decision(&self, on: TxnId) {
        let Outcome::Prepared(at) = self.outcome(on) else { panic!("{on:?} is not prepared") };
        let outcome = if self.will_commit.get() { Outcome::Committed(at) } else { Outcome::Aborted };
        self.outcomes.borrow_mut().insert(on.number(), outcome);
    }
}

struct Record {
    rid: Rid,
    /// committed versions, oldest first; `None` = deleted
    versions: Vec<(Timestamp, Option<Row>)>,
    /// whether its insert was committed, be it that it was deleted with it
    is_inserted: bool,
}

impl Record {
    fn at(&self, at: Timestamp) -> Option<Row> {
        self.versions.iter().rev().find(|(from, _)| *from <= at).and_then(|(_, row)| *row)
    }
}

struct World {
    table: Table,
    outcomes: Known,
    now: u64,
    ids: u64,
    horizon: Timestamp,
    /// snapshots before the horizon that may still be asked for
    old: BTreeSet<Timestamp>,
    held: Vec<Timestamp>,
    /// what merges are told to keep
    kept: Kept,
    records: Vec<Record>,
    open: Option<Open>,
    /// blobs, the image of each range with its time, and what was committed
    disk: Blobs,
    shelf: Arc<Shelf>,
    budget: Arc<MemoryBudget>,
    images: BTreeMap<usize, (BlobRef, Timestamp)>,
    log: Vec<Redo>,
}

impl World {
    fn new(layout: Layout, tail_values: TailValues, range_records: usize, update_range_records: usize) -> World {
        let names = ["a", "b", "c"].into_iter().zip(TYPES);
        let columns = names.map(|(name, data_type)| Column::new(name, data_type)).collect();
        let options = TableOptions { tail_values, ..simple::options(layout, range_records, update_range_records) };
        let (shelf, budget) = Shelf::with_budget();
        World {
            table: Table::new(Schema::new(columns, &[]).unwrap(), options, budget.clone()),
            outcomes: Known::default(),
            now: 1,
            ids: 0,
            horizon: Timestamp::ZERO,
            old: BTreeSet::new(),
            held: Vec::new(),
            kept: Kept::default(),
            records: Vec::new(),
            open: None,
            disk: Blobs::default(),
            shelf,
            budget,
            images: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    fn begin(&mut self) -> Open {
        self.ids += 1;
        self.outcomes.outcomes.borrow_mut().insert(self.ids, Outcome::Active);
        let (at, command, prepared) = (Timestamp(self.now), Command::FIRST, None);
        Open { id: TxnId::new(self.ids), at, command, prepared, writes: Vec::new(), savepoints: Vec::new() }
    }

    fn view(&self, snapshot: Snapshot) -> View<'_, Known> {
        View { snapshot, outcomes: &self.outcomes }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Write { by_open: true, what, .. } => {
                let mut open = self.open.take().unwrap_or_else(|| self.begin());
                if open.prepared.is_none() {
                    self.write(&mut open, what);
                }
                self.open = Some(open);
            }
            Step::Write { what, commits, stamps, .. } => {
                let mut own = self.begin();
                self.write(&mut own, what);
                self.end(own, *commits, *stamps);
            }
            Step::EndOpen { commits, stamps } => {
                if let Some(open) = self.open.take() {
                    self.end(open, *commits, *stamps);
                }
            }
            Step::Validate { by_open, tenths, columns } => self.validate(*by_open, *tenths, &some_of(*columns)),
            Step::Prepare { .. } | Step::Savepoint | Step::RollBack { .. } | Step::NextCommand => {
                self.step_of_open(step)
            }
            Step::Merge { range, columns } => self.merge(range, *columns),
            Step::Archive { range, all } => {
                if self.table.range_count() > 0 {
                    let range = range.index(self.table.range_count());
                    self.table.archive_range(range, self.kept.clone(), *all);
                }
            }
            Step::Horizon { tenths, is_used } => self.raise_horizon(*tenths, *is_used),
            Step::Hold(tenths) => {
                let at = Timestamp(self.now * tenths / 10);
                if self.table.keeps(at) {
                    self.held.push(at);
                }
            }
            Step::LetGo(index) => {
                if !self.held.is_empty() {
                    self.held.swap_remove(index.index(self.held.len()));
                }
            }
            Step::Image { range, is_published, moves } => self.image(range, *is_published, *moves),
            Step::Evict { tenths, has_room } => self.evict(*tenths, *has_room),
            Step::Restart => self.restart(),
            Step::Check => self.check(),
        }
    }

    fn step_of_open(&mut self, step: &Step) {
        let Some(open) = self.open.as_mut().filter(|open| open.prepared.is_none()) else { return };
        match step {
            Step::Prepare { will_commit } if !open.writes.is_empty() => {
                self.outcomes.will_commit.set(*will_commit);
                self.now += 1;
                let at = Timestamp(self.now);
                open.prepared = Some(at);
                self.outcomes.outcomes.borrow_mut().insert(open.id.number(), Outcome::Prepared(at));
            }
            Step::Savepoint => open.savepoints.push(open.writes.len()),
            Step::RollBack { is_released } => open.roll_back(&self.table, *is_released),
            Step::NextCommand => open.command.0 += 1,
            _ => {}
        }
    }

    /// Merges may always be told of an older decision than the newest.
    fn raise_horizon(&mut self, tenths: u64, is_used: bool) {
        let now = Timestamp(self.now);
        let mut in_use: Vec<_> = self.held.iter().copied().chain(self.open.as_ref().map(|open| open.at)).collect();
        in_use.push(now);
        in_use.sort_unstable();
        let horizon = Timestamp(self.horizon.0 + (self.now - self.horizon.0) * tenths / 10);
        let is_kept = |at: &Timestamp| *at < horizon && (*at >= self.horizon || self.old.contains(at));
        self.old = in_use.iter().copied().filter(is_kept).collect();
        self.horizon = horizon;
        let kept = self.table.raise_horizon(horizon, || in_use);
        assert_eq!((kept.horizon(), self.table.horizon()), (horizon, horizon));
        if is_used {
            self.kept = kept;
        }
    }

    fn merge(&self, range: &Index, columns: usize) {
        if self.table.range_count() > 0 {
            let range = range.index(self.table.range_count());
            let some = some_of(columns);
            match some.len() {
                3 => self.table.merge_range(range, &self.outcomes, self.kept.clone()),
                _ => self.table.merge_columns(range, &some, &self.outcomes, self.kept.clone()),
            };
        }
    }

    fn write(&mut self, by: &mut Open, what: &What) {
        let snapshot = Snapshot { before: by.command, ..Snapshot::of_transaction(by.at, by.id) };
        let (view, start) = (View { snapshot, outcomes: &self.outcomes }, by.id.word_of(by.command));
        match what {
            What::Insert(row) => {
                let cells: Vec<Cell<'_>> = ALL.iter().map(|column| cell(*column, row[*column])).collect();
                let rid = self.table.insert(&cells, start);
                self.records.push(Record { rid, versions: Vec::new(), is_inserted: false });
                self.note(by, self.records.len() - 1, None, Wrote::Row(Some(*row)));
            }
            What::Update { .. } | What::Delete { .. } | What::Lock { .. } if self.records.is_empty() => {}
            What::Update { record, columns, row, as_words } => {
                let record = record.index(self.records.len());
                let cells: Vec<_> =
                    some_of(*columns).into_iter().map(|column| (column, cell(column, row[column]))).collect();
                let rid = self.records[record].rid;
                let words = if *as_words { self.append_words(view, start, rid, &cells) } else { None };
                let appended = match words {
                    Some(appended) => Ok(appended),
                    None => self.table.append(view, start, rid, Change::Update(&cells)),
                };
                self.note_appended(by, record, appended, |old| {
                    Some(std::array::from_fn(|i| if columns >> i & 1 != 0 { row[i] } else { old[i] }))
                });
            }
            What::Delete { record } => {
                let record = record.index(self.records.len());
                let appended = self.table.append(view, start, self.records[record].rid, Change::Delete);
                self.note_appended(by, record, appended, |_| None);
            }
            What::Lock { record, whole } => {
                let (record, hold) =
                    (record.index(self.records.len()), if *whole { Hold::Whole } else { Hold::Values });
                self.check_writer(by, record);
                let locked = self.table.lock(view, start, self.records[record].rid, hold);
                assert_eq!(
                    locked.as_ref().map(|_| ()),
                    self.allowed(by, record).as_ref().map(|_| ()),
                    "lock of record {record}"
                );
                if let Ok(appended) = locked {
                    let has_as_much = by.hold(record).is_some_and(|held| held >= hold);
                    assert_eq!(appended.is_none(), has_as_much, "what is its own needs no lock");
                    appended.iter().for_each(|appended| self.note(by, record, Some(*appended), Wrote::Lock(hold)));
                }
            }
        }
    }

    /// Appends a version by the path of words, if that takes it.
    fn append_words(
        &self,
        view: View<'_, Known>,
        start: u64,
        rid: Rid,
        cells: &[(usize, Cell<'_>)],
    ) -> Option<AppendedRecords> {
        let positions: Vec<usize> = cells.iter().map(|(column, _)| *column).collect();
        let words = cells.iter().map(|(_, cell)| if let Cell::Word(word) = cell { Some(*word) } else { None });
        let (words, columns) =
            (words.collect::<Option<Vec<u64>>>()?, PointColumns::new(self.table.schema(), &positions)?);
        let guard = &sync::pin();
        self.table.point(rid).prefetch().look(guard, &columns, true);
        self.table.point(rid).prefetch().append(guard, view, start, &columns, &words)
    }

    /// Checks the writer of the newest version, asked in both ways.
    fn check_writer(&self, by: &Open, record: usize) {
        let (view, rid) = (self.view(Snapshot::of_transaction(by.at, by.id)), self.records[record].rid);
        let expected = match &self.open {
            Some(open) if open.has(record) => Writer::Running(open.id),
            _ if by.has(record) || self.records[record].is_inserted => Writer::Settled,
            _ => Writer::Tombstone,
        };
        for txn in self.open.iter().chain([by]).filter(|txn| txn.has(record)) {
            let held = self.table.hold(self.view(Snapshot::at(by.at)), rid, txn.id);
            assert_eq!(held.ok(), txn.hold(record));
        }
        assert_eq!(self.table.newest_writer(view, rid), Ok(expected));
        assert_eq!(self.table.newest_writer_latched(view, rid), Ok(expected));
    }

    fn note(&self, by: &mut Open, record: usize, appended: Option<AppendedRecords>, wrote: Wrote) {
        let rid = self.records[record].rid;
        by.writes.push(Write { command: by.command, record, rid, appended, wrote });
    }

    /// Checks the outcome of a write and notes what it did.
    fn note_appended(
        &self,
        by: &mut Open,
        record: usize,
        appended: Result<AppendedRecords, WriteError>,
        change: impl Fn(Row) -> Option<Row>,
    ) {
        let expected = self.allowed(by, record);
        assert_eq!(appended.as_ref().map(|_| ()), expected.as_ref().map(|_| ()), "write to record {record}");
        if let (Ok(appended), Ok(old)) = (appended, expected) {
            self.note(by, record, Some(appended), Wrote::Row(change(old)));
        }
    }

    /// The row that a transaction may change, or why it may not.
    fn allowed(&self, by: &Open, number: usize) -> Result<Row, WriteError> {
        let record = &self.records[number];
        if let Some(own) = by.own(number, Command::LAST) {
            return own.ok_or(WriteError::NotVisible);
        }
        if let Some(open) = self.open.as_ref().filter(|open| open.has(number)) {
            // An insert is not there for others before it is prepared.
            let is_hidden = open.has_only_inserted(number) && open.prepared.is_none_or(|at| at > by.at);
            return Err(if is_hidden { WriteError::NotVisible } else { WriteError::Locked(open.id) });
        }
        match record.versions.last() {
            None => Err(WriteError::NotVisible),
            Some((at, _)) if *at > by.at && record.versions.len() > 1 => Err(WriteError::Changed(*at)),
            Some((at, _)) if *at > by.at => Err(WriteError::NotVisible),
            Some((_, row)) => row.ok_or(WriteError::NotVisible),
        }
    }

    fn end(&mut self, open: Open, commits: bool, stamps: bool) {
        let (outcome, stamp) = if commits && !open.writes.is_empty() {
            self.now += u64::from(open.prepared.is_none());
            let at = open.prepared.unwrap_or(Timestamp(self.now));
            (Outcome::Committed(at), at.0)
        } else {
            (Outcome::Aborted, StartTime::TOMBSTONE)
        };
        self.outcomes.outcomes.borrow_mut().insert(open.id.number(), outcome);
        if let Outcome::Committed(at) = outcome {
            self.log.extend(Redo::of(&open, at));
        }
        if stamps {
            open.stamp(&self.table, 0, stamp);
            self.outcomes.outcomes.borrow_mut().remove(&open.id.number());
        }
        for (i, record) in self.records.iter_mut().enumerate() {
            if let Some(own) = open.own(i, Command::LAST)
                && let Outcome::Committed(at) = outcome
            {
                record.is_inserted = true;
                // Inserted and deleted by one transaction: as if it had never been.
                if own.is_some() || !record.versions.is_empty() {
                    record.versions.push((at, own));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_snapshot_that_is_kept_reads_as_the_model_says(
        steps in steps(),
        is_row in prop::bool::weighted(0.3),
        in_columns in prop::bool::weighted(0.3),
        size in 0..3_usize,
    ) {
        let layout = if is_row { Layout::Row } else { Layout::Column };
        let tail_values = if in_columns { TailValues::InColumns } else { TailValues::InRecords };
        // One tail record a page, or, in the last case, four: then merged records wait in the tail.
        let (range_records, update_range_records) = [(16, 4), (16, 16), (64, 64)][size];
        let mut world = World::new(layout, tail_values, range_records, update_range_records);
        for step in &steps {
            world.step(step);
        }
        world.check();
        world.image_all_and_restart();
        world.check();
        (0..world.table.range_count()).for_each(|range| {
            world.table.merge_range(range, &world.outcomes, world.table.kept());
        });
        world.check();
        world.image_all();
        world.evict(10, is_row);
        world.check();
        (0..world.table.range_count()).for_each(|range| {
            world.table.archive_range(range, world.table.kept(), true);
        });
        world.check();
        world.image_all_and_restart();
        world.evict(10, !is_row);
        world.check();
    }
}
