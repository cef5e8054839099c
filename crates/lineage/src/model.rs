//! The storage of a table against a model: inserts, updates and deletes, committed, rolled back or left open, merges of
//! all columns or some, history written and given up, in any order; then every snapshot from the horizon on, by every
//! path. One thread, so that a failure shrinks to the few steps that make it.
//!
//! The model knows neither pages nor chains: a record is the list of its committed versions.
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::{Field, Schema as ArrowSchema};
use proptest::prelude::*;
use proptest::sample::Index;
use types::{Column, DataType, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId, Value};

use crate::cell::{ArrayCells, Cell, value_of_cell};
use crate::view::{Outcome, Outcomes, View};
use crate::write::{Appended, Change, WriteError};
use crate::{Comparison, Layout, Projection, Request, Sum, Table, TableOptions, Test};

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
    Check,
}

#[derive(Clone, Debug)]
enum What {
    Insert(Row),
    Update { record: Index, columns: usize, row: Row },
    Delete { record: Index },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = || [1..5_usize, 0..5_usize, 0..5_usize];
    let update = (any::<Index>(), 1..8_usize, row());
    let what = prop_oneof![
        4 => row().prop_map(What::Insert),
        12 => update.prop_map(|(record, columns, row)| What::Update { record, columns, row }),
        1 => any::<Index>().prop_map(|record| What::Delete { record }),
    ];
    let write = (prop::bool::weighted(0.3), what, prop::bool::weighted(0.85), any::<bool>());
    let merge = (any::<Index>(), prop_oneof![2 => Just(7), 1 => 1..7_usize]);
    let step = prop_oneof![
        18 => write.prop_map(|(by_open, what, commits, stamps)| Step::Write { by_open, what, commits, stamps }),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(commits, stamps)| Step::EndOpen { commits, stamps }),
        4 => merge.prop_map(|(range, columns)| Step::Merge { range, columns }),
        2 => (any::<Index>(), any::<bool>()).prop_map(|(range, all)| Step::Archive { range, all }),
        1 => (0..11_u64, any::<bool>()).prop_map(|(tenths, is_used)| Step::Horizon { tenths, is_used }),
        1 => Just(Step::Check),
    ];
    prop::collection::vec(step, 1..80)
}

/// What became of the transactions that have not stamped what they wrote.
#[derive(Default)]
struct Known(RefCell<HashMap<u64, Outcome>>);

impl Outcomes for Known {
    fn outcome(&self, txn: TxnId) -> Outcome {
        self.0.borrow().get(&txn.number()).copied().unwrap_or(Outcome::Stamped)
    }
}

struct Record {
    rid: Rid,
    /// committed versions, oldest first; `None` = deleted
    versions: Vec<(Timestamp, Option<Row>)>,
    /// what the open transaction sees instead, `None` inside = deleted
    own: Option<Option<Row>>,
}

impl Record {
    fn at(&self, at: Timestamp) -> Option<Row> {
        self.versions.iter().rev().find(|(from, _)| *from <= at).and_then(|(_, row)| *row)
    }
}

enum Written {
    Insert(Rid),
    Versions(Rid, Appended),
}

/// A running transaction.
struct Open {
    id: TxnId,
    at: Timestamp,
    written: Vec<Written>,
}

struct World {
    table: Table,
    outcomes: Known,
    now: u64,
    ids: u64,
    horizon: Timestamp,
    is_horizon_used: bool,
    records: Vec<Record>,
    open: Option<Open>,
}

impl World {
    fn new(layout: Layout, range_records: usize, update_range_records: usize) -> World {
        let names = ["a", "b", "c"].into_iter().zip(TYPES);
        let columns = names.map(|(name, data_type)| Column::new(name, data_type)).collect();
        let options = TableOptions { range_records, update_range_records, merge_tail_records: 8, workers: 1, layout };
        World {
            table: Table::new(Schema::new(columns, &[]).unwrap(), options, Arc::default()),
            outcomes: Known::default(),
            now: 1,
            ids: 0,
            horizon: Timestamp::ZERO,
            is_horizon_used: true,
            records: Vec::new(),
            open: None,
        }
    }

    fn begin(&mut self) -> Open {
        self.ids += 1;
        self.outcomes.0.borrow_mut().insert(self.ids, Outcome::Active);
        Open { id: TxnId::new(self.ids), at: Timestamp(self.now), written: Vec::new() }
    }

    fn view(&self, snapshot: Snapshot) -> View<'_, Known> {
        View { snapshot, outcomes: &self.outcomes }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Write { by_open: true, what, .. } => {
                let mut open = self.open.take().unwrap_or_else(|| self.begin());
                self.write(&mut open, what);
                self.open = Some(open);
            }
            Step::Write { what, commits, stamps, .. } => {
                let hidden: Vec<_> = self.records.iter_mut().map(|record| record.own.take()).collect();
                let mut own = self.begin();
                self.write(&mut own, what);
                self.end(own, *commits, *stamps);
                self.records.iter_mut().zip(hidden).for_each(|(record, own)| record.own = own);
            }
            Step::EndOpen { commits, stamps } => {
                if let Some(open) = self.open.take() {
                    self.end(open, *commits, *stamps);
                }
            }
            Step::Merge { range, columns } => self.merge(range, *columns),
            Step::Archive { range, all } => {
                if self.table.range_count() > 0 {
                    let range = range.index(self.table.range_count());
                    self.table.archive_range(range, self.horizon_to_use(), *all);
                }
            }
            Step::Horizon { tenths, is_used } => {
                let held = self.open.as_ref().map_or(self.now, |open| open.at.0);
                let horizon = self.horizon.0 + held.saturating_sub(self.horizon.0) * tenths / 10;
                self.horizon = Timestamp(horizon);
                self.is_horizon_used = *is_used;
                assert_eq!(self.table.raise_horizon(self.horizon, || Timestamp(held)), self.horizon);
            }
            Step::Check => self.check(),
        }
    }

    /// A merge may always be given an older horizon than it could be.
    fn horizon_to_use(&self) -> Timestamp {
        if self.is_horizon_used { self.horizon } else { Timestamp(self.horizon.0 / 2) }
    }

    fn merge(&self, range: &Index, columns: usize) {
        if self.table.range_count() > 0 {
            let range = range.index(self.table.range_count());
            let some: Vec<usize> = ALL.into_iter().filter(|column| columns >> column & 1 != 0).collect();
            match some.len() {
                3 => self.table.merge_range(range, &self.outcomes, self.horizon_to_use()),
                _ => self.table.merge_columns(range, &some, &self.outcomes, self.horizon_to_use()),
            };
        }
    }

    fn write(&mut self, by: &mut Open, what: &What) {
        let view = View { snapshot: Snapshot::of_transaction(by.at, by.id), outcomes: &self.outcomes };
        match what {
            What::Insert(row) => {
                let cells: Vec<Cell<'_>> = ALL.iter().map(|column| cell(*column, row[*column])).collect();
                let rid = self.table.insert(&cells, by.id.word());
                self.records.push(Record { rid, versions: Vec::new(), own: Some(Some(*row)) });
                by.written.push(Written::Insert(rid));
            }
            What::Update { .. } | What::Delete { .. } if self.records.is_empty() => {}
            What::Update { record, columns, row } => {
                let record = record.index(self.records.len());
                let some = ALL.into_iter().filter(|column| columns >> column & 1 != 0);
                let cells: Vec<_> = some.map(|column| (column, cell(column, row[column]))).collect();
                let rid = self.records[record].rid;
                let appended = self.table.append(view, by.id.word(), rid, Change::Update(&cells));
                self.note(by, record, appended, |old| {
                    Some(std::array::from_fn(|i| if columns >> i & 1 != 0 { row[i] } else { old[i] }))
                });
            }
            What::Delete { record } => {
                let record = record.index(self.records.len());
                let appended = self.table.append(view, by.id.word(), self.records[record].rid, Change::Delete);
                self.note(by, record, appended, |_| None);
            }
        }
    }

    /// Checks the outcome of a write and notes what it did.
    fn note(
        &mut self,
        by: &mut Open,
        record: usize,
        appended: Result<Appended, WriteError>,
        change: impl Fn(Row) -> Option<Row>,
    ) {
        let expected = self.allowed(by, record);
        assert_eq!(appended.map(|_| ()), expected.map(|_| ()), "write to record {record}");
        if let (Ok(appended), Ok(old)) = (appended, expected) {
            let record = &mut self.records[record];
            record.own = Some(change(old));
            by.written.push(Written::Versions(record.rid, appended));
        }
    }

    /// The row that a transaction may change, or why it may not.
    fn allowed(&self, by: &Open, record: usize) -> Result<Row, WriteError> {
        let record = &self.records[record];
        if let Some(own) = record.own {
            return own.ok_or(WriteError::NotVisible);
        }
        if let Some(open) = &self.open
            && let Some(is_insert) = open.has_only_inserted(record.rid)
        {
            return Err(if is_insert { WriteError::NotVisible } else { WriteError::Locked(open.id) });
        }
        match record.versions.last() {
            None => Err(WriteError::NotVisible),
            Some((at, _)) if *at > by.at && record.versions.len() > 1 => Err(WriteError::Changed(*at)),
            Some((at, _)) if *at > by.at => Err(WriteError::NotVisible),
            Some((_, row)) => row.ok_or(WriteError::NotVisible),
        }
    }

    fn end(&mut self, open: Open, commits: bool, stamps: bool) {
        let (outcome, stamp) = if commits && !open.written.is_empty() {
            self.now += 1;
            (Outcome::Committed(Timestamp(self.now)), self.now)
        } else {
            (Outcome::Aborted, StartTime::TOMBSTONE)
        };
        self.outcomes.0.borrow_mut().insert(open.id.number(), outcome);
        if stamps {
            for written in &open.written {
                match written {
                    Written::Insert(rid) => self.table.stamp_insert(*rid, open.id, stamp),
                    Written::Versions(rid, appended) => self.table.stamp_versions(*rid, *appended, open.id, stamp),
                }
            }
            self.outcomes.0.borrow_mut().remove(&open.id.number());
        }
        for record in &mut self.records {
            if let Some(own) = record.own.take()
                && let Outcome::Committed(at) = outcome
                // Inserted and deleted by one transaction: as if it had never been.
                && (own.is_some() || !record.versions.is_empty())
            {
                record.versions.push((at, own));
            }
        }
    }
}

impl Open {
    /// Whether all that it has written of the record is its insert, `None` if it has not written it at all.
    fn has_only_inserted(&self, rid: Rid) -> Option<bool> {
        let written = self.written.iter().filter_map(|written| match written {
            Written::Insert(other) => (*other == rid).then_some(true),
            Written::Versions(other, _) => (*other == rid).then_some(false),
        });
        written.reduce(|_, later| later)
    }
}

impl World {
    fn check(&self) {
        for at in self.horizon.0..=self.now {
            let seen = |record: &Record| record.at(Timestamp(at));
            self.check_snapshot(Snapshot::at(Timestamp(at)), seen);
        }
        if let Some(open) = &self.open {
            let snapshot = Snapshot::of_transaction(open.at, open.id);
            self.check_snapshot(snapshot, |record| record.own.unwrap_or_else(|| record.at(open.at)));
        }
        self.check_times();
    }

    fn check_snapshot(&self, snapshot: Snapshot, seen: impl Fn(&Record) -> Option<Row>) {
        let view = self.view(snapshot);
        let mut rows = BTreeMap::new();
        for record in &self.records {
            let row = seen(record);
            let expected = row.map(values);
            assert_eq!(self.table.read_values(view, record.rid, &ALL), expected, "{:?} at {snapshot:?}", record.rid);
            let one = record.rid.slot() % 3;
            let expected = row.map(|row| vec![value(one, row[one])]);
            assert_eq!(self.table.read_values(view, record.rid, &[one]), expected, "column {one} at {snapshot:?}");
            rows.extend(row.map(|row| (record.rid.word(), row)));
        }
        let bound = 3 + (snapshot.at.0 % 3) as usize;
        let test = (1, Test::Compare(Comparison::Less, value(1, bound)));
        let passing: BTreeMap<u64, Row> =
            rows.iter().filter(|(_, row)| (1..bound).contains(&row[1])).map(|(rid, row)| (*rid, *row)).collect();
        for (tests, rows) in [(vec![], &rows), (vec![test], &passing)] {
            self.check_scan(view, tests.clone(), rows);
            self.check_totals(view, tests, rows);
        }
    }

    fn check_scan(&self, view: View<'_, Known>, tests: Vec<(usize, Test)>, rows: &BTreeMap<u64, Row>) {
        let field = |column: usize| Field::new(format!("{column}"), TYPES[column].to_arrow(), true);
        let mut fields: Vec<Field> = ALL.map(field).to_vec();
        fields.push(Field::new("__rid", arrow_schema::DataType::UInt64, false));
        let schema = Arc::new(ArrowSchema::new(fields));
        let projection = Projection { request: Request { columns: ALL.to_vec(), tests }, with_rid: true, schema };
        let mut found = BTreeMap::new();
        for range in 0..self.table.range_count() {
            for batch in self.table.scan_range(range, view, &projection) {
                let rids: &ArrayRef = batch.column(3);
                let rids = rids.as_primitive::<arrow_array::types::UInt64Type>();
                let cells: Vec<_> = ALL.iter().map(|i| ArrayCells::new(batch.column(*i), TYPES[*i])).collect();
                for at in 0..rids.len() {
                    let row: Vec<Value> = ALL.iter().map(|i| value_of_cell(cells[*i].get(at), TYPES[*i])).collect();
                    assert_eq!(found.insert(rids.value(at), row), None, "a record is scanned once");
                }
            }
        }
        let expected: BTreeMap<u64, Vec<Value>> = rows.iter().map(|(rid, row)| (*rid, values(*row))).collect();
        assert_eq!(found, expected, "scan at {:?} where {:?}", view.snapshot, projection.request.tests);
    }

    fn check_totals(&self, view: View<'_, Known>, tests: Vec<(usize, Test)>, rows: &BTreeMap<u64, Row>) {
        let request = Request { columns: vec![0, 1, 2], tests };
        let mut totals = crate::Totals::new(TYPES.into_iter());
        for range in 0..self.table.range_count() {
            totals.merge(&self.table.aggregate_range(range, view, &request));
        }
        assert_eq!(totals.rows, rows.len() as u64, "rows at {:?}", view.snapshot);
        for (column, total) in totals.columns.iter().enumerate() {
            let mut found: Vec<Value> =
                rows.values().filter(|row| row[column] > 0).map(|row| value(column, row[column])).collect();
            assert_eq!(total.count, found.len() as u64, "count of {column} at {:?}", view.snapshot);
            found.sort_by(|left, right| match (left, right) {
                (Value::BigInt(left), Value::BigInt(right)) => left.cmp(right),
                (Value::Text(left), Value::Text(right)) => left.cmp(right),
                _ => unreachable!("no others are here"),
            });
            let extremes = (found.first().cloned(), found.last().cloned());
            assert_eq!((total.min.clone(), total.max.clone()), extremes, "column {column} at {:?}", view.snapshot);
            let sum =
                found.iter().filter_map(|value| if let Value::BigInt(value) = value { Some(*value) } else { None });
            if column < 2 {
                assert_eq!(
                    total.sum,
                    Sum::Integer(sum.map(i128::from).sum()),
                    "column {column} at {:?}",
                    view.snapshot
                );
            }
        }
    }

    /// When records changed, from the horizon on.
    fn check_times(&self) {
        let horizon = self.horizon;
        for record in &self.records {
            let mut times = self.table.version_times(record.rid, &self.outcomes);
            times.retain(|at| *at > horizon);
            let expected: Vec<Timestamp> =
                record.versions.iter().map(|(at, _)| *at).filter(|at| *at > horizon).collect();
            if !record.versions.is_empty() {
                assert_eq!(times, expected, "versions of {:?}", record.rid);
            }
        }
        let to = Timestamp((horizon.0 + self.now).div_ceil(2));
        for range in 0..self.table.range_count() {
            let changed = self.table.changed(range, horizon, to, &self.outcomes);
            let records = self.records.iter().filter(|record| record.rid.range() == range);
            let mut expected: Vec<(Timestamp, Rid)> = records
                .flat_map(|record| record.versions.iter().map(|(at, _)| (*at, record.rid)))
                .filter(|(at, _)| *at > horizon && *at <= to)
                .collect();
            expected.sort_unstable();
            let is_known =
                |rid: Rid| self.records.iter().any(|record| record.rid == rid && !record.versions.is_empty());
            let changed = changed.into_iter().map(|changed| (changed.at, changed.rid));
            assert_eq!(changed.filter(|(_, rid)| is_known(*rid)).collect::<Vec<_>>(), expected, "changes of {range}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_snapshot_from_the_horizon_on_reads_as_the_model_says(
        steps in steps(),
        is_row in prop::bool::weighted(0.3),
        size in 0..3_usize,
    ) {
        let layout = if is_row { Layout::Row } else { Layout::Column };
        // One tail record a page, or, in the last case, four: then merged records wait in the tail.
        let (range_records, update_range_records) = [(16, 4), (16, 16), (64, 64)][size];
        let mut world = World::new(layout, range_records, update_range_records);
        for step in &steps {
            world.step(step);
        }
        world.check();
        (0..world.table.range_count()).for_each(|range| {
            world.table.merge_range(range, &world.outcomes, world.horizon);
        });
        world.check();
        (0..world.table.range_count()).for_each(|range| {
            world.table.archive_range(range, world.horizon, true);
        });
        world.check();
    }
}
