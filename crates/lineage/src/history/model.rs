//! History against a model: records are written, merged, moved into history and expired in any order, and every
//! snapshot that is kept, from the horizon on and before it, reads what the plain list of all versions says.
//!
//! The model knows nothing of snapshot records, cumulation or pages: a row is the inserted row with the changes of
//! every committed update until then. The reader under test sees the tail records after `through`, the history, and
//! base pages merged up to some number at or after `through`.
use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use types::{DataType, Timestamp};

use super::{HistoryPage, NewVersion, Version};
use crate::page::history::History;
use crate::value::cell::Cell;
use crate::value::kept::Kept;
use crate::value::kind::Kind;

const COLUMNS: usize = 4;
const TYPES: [DataType; COLUMNS] = [DataType::BigInt, DataType::TEXT, DataType::Integer, DataType::Bytea];
const SLOTS: [usize; 4] = [0, 3, 77, 65_535];
/// The values of a column; the first is NULL.
const BYTES: [&[u8]; 4] = [b"", b"", b"b", b"a text that is longer than the others"];

/// A value by its number, 0 = NULL.
type Row = [usize; COLUMNS];

fn cell_of(column: usize, value: usize) -> Cell<'static> {
    match (value, column % 2) {
        (0, _) => Cell::Null,
        (_, 0) => Cell::Word((value as i64 * 1_000_003 - 2_000_000) as u64),
        _ => Cell::Bytes(BYTES[value]),
    }
}

fn value_of(column: usize, cell: Cell<'_>) -> usize {
    (0..BYTES.len()).find(|value| cell_of(column, *value) == cell).expect("a value that was written")
}

/// One update of a record: which columns it changes to what, and which others it does not repeat.
#[derive(Clone, Debug)]
struct Change {
    columns: usize,
    values: Row,
    reset: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Commit,
    DeleteAndCommit,
    Rollback,
}

#[derive(Clone, Debug)]
enum Step {
    /// A transaction writes one record, some times over.
    Write { slot: usize, changes: Vec<Change>, end: End },
    /// Base pages take in part of what is left, in hundredths.
    Merge(u64),
    /// History takes in part of what is merged.
    Append(u64),
    /// The horizon moves part of the way to now, and some older snapshots are in use.
    Raise { horizon: u64, in_use: Vec<u64> },
    /// Versions that are no longer needed are given up.
    Expire,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = [0..4_usize, 0..4_usize, 0..4_usize, 0..4_usize];
    let change = (1..16_usize, row, 0..16_usize).prop_map(|(columns, values, reset)| Change { columns, values, reset });
    let end = prop_oneof![12 => Just(End::Commit), 1 => Just(End::DeleteAndCommit), 2 => Just(End::Rollback)];
    let write = (0..SLOTS.len(), prop::collection::vec(change, 0..4), end).prop_map(|(at, changes, end)| Step::Write {
        slot: SLOTS[at],
        changes,
        end,
    });
    let part = || prop_oneof![1 => Just(100), 2 => 0..100_u64];
    let step = prop_oneof![
        9 => write,
        2 => part().prop_map(Step::Merge),
        2 => part().prop_map(Step::Append),
        1 => (part(), prop::collection::vec(0..100_u64, 0..3)).prop_map(|(horizon, in_use)| Step::Raise { horizon, in_use }),
        1 => Just(Step::Expire),
    ];
    prop::collection::vec(step, 1..100)
}

/// Kind, start and values of a version.
type Walked = (Kind, u64, Vec<(usize, usize)>);

/// A committed tail record.
#[derive(Clone, Debug)]
struct Record {
    slot: usize,
    sequence: u64,
    kind: Kind,
    start: u64,
    values: Vec<(usize, usize)>,
}

#[derive(Debug)]
struct World {
    now: u64,
    allocated: u64,
    merged: u64,
    inserted: BTreeMap<usize, (u64, Row)>,
    records: Vec<Record>,
    history: History,
    kept: Kept,
}

impl World {
    fn new() -> World {
        let insert = |(i, slot)| (slot, (1 + i as u64, std::array::from_fn(|column| (i + column) % 4)));
        World {
            now: SLOTS.len() as u64,
            allocated: 0,
            merged: 0,
            inserted: SLOTS.into_iter().enumerate().map(insert).collect(),
            records: Vec::new(),
            history: History::empty(Arc::from(TYPES), Arc::default()),
            kept: Kept::default(),
        }
    }

    /// The model: the row that those of the first `through` tail records make which started at or before `at`.
    fn row(&self, slot: usize, at: u64, through: u64) -> Option<Row> {
        let (start, mut row) = self.inserted[&slot];
        let mut exists = start <= at;
        let is_seen = |record: &&Record| {
            record.slot == slot && record.kind != Kind::Snapshot && record.start <= at && record.sequence <= through
        };
        for record in self.records.iter().filter(is_seen) {
            exists = record.kind == Kind::Update;
            record.values.iter().for_each(|(column, value)| row[*column] = *value);
        }
        exists.then_some(row)
    }

    /// The base page's values of a record, and when the newest version in it started.
    fn base(&self, slot: usize) -> (Row, bool, u64) {
        let is_merged =
            |record: &&Record| record.slot == slot && record.kind != Kind::Snapshot && record.sequence <= self.merged;
        let newest = self.records.iter().rfind(is_merged);
        let (_, mut row) = self.inserted[&slot];
        for record in self.records.iter().filter(is_merged) {
            record.values.iter().for_each(|(column, value)| row[*column] = *value);
        }
        (row, newest.is_none_or(|record| record.kind == Kind::Update), newest.map_or(0, |record| record.start))
    }

    /// A record's versions, newest first: those of the tail, then those of history.
    fn chain(&self, slot: usize) -> Vec<Walked> {
        let in_tail = |record: &&Record| record.slot == slot && record.sequence > self.history.through();
        let tail = self.records.iter().rev().filter(in_tail);
        let tail = tail.map(|record| (record.kind, record.start, record.values.clone()));
        let guard = &sync::pin();
        let history = self.history.versions(guard, slot).map(|version: Version<'_>| {
            let explicit = version.explicit();
            let values = explicit.iter().map(|column| (column, value_of(column, version.cell(column)))).collect();
            (version.kind(), version.start(), values)
        });
        tail.chain(history).collect()
    }

    /// The reader under test.
    fn read(&self, slot: usize, chain: &[Walked], at: u64) -> Option<Row> {
        let mut exists = None;
        let mut row = [None; COLUMNS];
        for (kind, start, values) in chain {
            if *kind != Kind::Snapshot && *start > at {
                continue;
            }
            for (column, value) in values {
                row[*column].get_or_insert(*value);
            }
            if *kind != Kind::Snapshot {
                exists.get_or_insert(*kind == Kind::Update);
            }
        }
        let (base, base_exists, last_updated) = self.base(slot);
        let by_base = || self.inserted[&slot].0 <= at && (base_exists || last_updated > at);
        let row = std::array::from_fn(|column| row[column].unwrap_or(base[column]));
        exists.unwrap_or_else(by_base).then_some(row)
    }

    fn push(&mut self, slot: usize, kind: Kind, start: u64, values: Vec<(usize, usize)>) {
        self.allocated += 1;
        self.records.push(Record { slot, sequence: self.allocated, kind, start, values });
    }

    /// Appends a version by the rules of `write.rs`; only snapshot records stay of a transaction that rolls back.
    fn write(&mut self, slot: usize, changes: &[Change], end: End) {
        self.now += 1;
        let Some(mut row) = self.row(slot, u64::MAX, u64::MAX) else { return };
        let mut ever = [false; COLUMNS];
        self.chain(slot).iter().flat_map(|(_, _, values)| values).for_each(|(column, _)| ever[*column] = true);
        for change in changes {
            let is_changed = |column: usize| change.columns >> column & 1 == 1;
            let (base, ..) = self.base(slot);
            let first = (0..COLUMNS).filter(|column| is_changed(*column) && !ever[*column]);
            let originals: Vec<_> = first.map(|column| (column, base[column])).collect();
            let repeated = |column: usize| ever[column] && change.reset >> column & 1 == 0;
            for column in (0..COLUMNS).filter(|column| is_changed(*column)) {
                row[column] = change.values[column];
            }
            let explicit = (0..COLUMNS).filter(|column| is_changed(*column) || repeated(*column));
            let values = explicit.map(|column| (column, row[column])).collect();
            originals.iter().for_each(|(column, _)| ever[*column] = true);
            if !originals.is_empty() {
                self.push(slot, Kind::Snapshot, self.inserted[&slot].0, originals);
            }
            match end {
                End::Rollback => self.allocated += 1,
                _ => self.push(slot, Kind::Update, self.now, values),
            }
        }
        if end == End::DeleteAndCommit {
            self.push(slot, Kind::Delete, self.now, Vec::new());
        }
    }

    fn append(&mut self, through: u64) {
        let is_taken = |record: &&Record| record.sequence > self.history.through() && record.sequence <= through;
        let mut taken: Vec<&Record> = self.records.iter().filter(is_taken).collect();
        taken.sort_by_key(|record| (record.slot, std::cmp::Reverse(record.sequence)));
        let cells = |record: &&Record| {
            record.values.iter().map(|(column, value)| (*column, cell_of(*column, *value))).collect::<Vec<_>>()
        };
        let values: Vec<_> = taken.iter().map(cells).collect();
        let versions = taken.iter().zip(&values).map(|(record, values)| NewVersion {
            slot: record.slot,
            sequence: record.sequence,
            kind: record.kind,
            start: record.start,
            values: values[..].into(),
        });
        let page = HistoryPage::build(&TYPES, &self.kept, versions);
        self.history = self.history.append(&sync::pin(), page, through, &self.kept).unwrap();
    }

    fn expire(&mut self) {
        let through = self.history.through();
        let in_tail = |slot| self.records.iter().any(|record| record.slot == slot && record.sequence > through);
        // Pages that were joined may show more: two snapshot records that a transaction's versions stood between.
        while let Some(expired) = self.history.expired(&self.kept, in_tail) {
            assert!(expired.len() < self.history.len(), "each change gives up a version");
            assert_eq!(expired.through(), through);
            self.history = expired;
        }
        self.check_expired();
    }

    /// Between two snapshots that are kept, a page has one version of a record.
    fn check_expired(&self) {
        let guard = &sync::pin();
        for slot in SLOTS {
            for page in self.history.pages() {
                let page = page.here(guard).unwrap();
                let versions = page.versions(slot).filter(|version| version.kind() != Kind::Snapshot);
                let seen_first: Vec<u64> = versions.map(|version| self.kept.first_to_see(version.start())).collect();
                assert!(seen_first.is_sorted_by(|newer, older| newer > older), "{seen_first:?}");
            }
        }
    }

    /// The snapshots up to a time that are kept.
    fn kept(&self, until: u64) -> impl Iterator<Item = u64> {
        (0..=until).filter(|at| self.kept.contains(Timestamp(*at)))
    }

    fn take(&mut self, step: &Step) {
        let part = |from: u64, to: u64, hundredths: u64| from + (to - from) * hundredths / 100;
        match step {
            Step::Write { slot, changes, end } => self.write(*slot, changes, *end),
            Step::Merge(hundredths) => self.merged = part(self.merged, self.allocated, *hundredths),
            Step::Append(hundredths) => self.append(part(self.history.through(), self.merged, *hundredths)),
            Step::Raise { horizon, in_use } => {
                let horizon = part(self.kept.horizon().0, self.now, *horizon);
                let oldest = self.kept.oldest().0;
                let mut in_use: Vec<_> = in_use.iter().map(|at| Timestamp(part(oldest, self.now, *at))).collect();
                in_use.sort_unstable();
                self.kept = self.kept.raised(Timestamp(horizon), &in_use);
            }
            Step::Expire => self.expire(),
        }
    }

    fn check_reads(&self) {
        let guard = &sync::pin();
        for slot in SLOTS {
            let chain = self.chain(slot);
            for at in self.kept(self.now + 1) {
                let is_seen = |version: &Version<'_>| version.kind() == Kind::Snapshot || version.start() <= at;
                let seen = self.history.versions(guard, slot).filter(is_seen).map(|version| version.sequence());
                let pages = self.history.pages_of(slot).map(|page| page.here(guard).unwrap());
                let found = pages.flat_map(|page| page.versions_seen(slot, at));
                assert!(found.map(|version| version.sequence()).eq(seen));
                assert_eq!(self.read(slot, &chain, at), self.row(slot, at, u64::MAX), "slot {slot} at {at}");
            }
        }
    }

    fn check_shape(&self) {
        let guard = &sync::pin();
        for slot in SLOTS {
            assert!(
                self.history.versions(guard, slot).is_sorted_by(|newer, older| newer.sequence() > older.sequence())
            );
            for page in self.history.pages() {
                let page = page.here(guard).unwrap();
                let versions: Vec<_> = page.versions(slot).filter(|version| version.kind() != Kind::Snapshot).collect();
                assert!(versions.is_sorted_by(|newer, older| newer.start() > older.start()), "one a transaction");
            }
        }
        let mut newer = 0;
        for page in self.history.pages() {
            assert!(31 * page.outline.versions > newer, "pages grow, so there are few");
            newer += page.outline.versions;
        }
    }

    /// A change feed names the changes after the horizon, each with what its transaction did last.
    fn check_changes(&self) {
        let (from, to) = (self.kept.horizon().0, self.now - self.now / 4);
        let in_time = |record: &&Record| {
            record.kind != Kind::Snapshot
                && record.start > from
                && record.start <= to
                && record.sequence <= self.history.through()
        };
        let expected: BTreeMap<_, _> =
            self.records.iter().filter(in_time).map(|record| ((record.slot, record.start), record.kind)).collect();
        let mut found = BTreeMap::new();
        let guard = &sync::pin();
        let pages = self.history.pages().iter().map(|page| page.here(guard).unwrap());
        for (slot, start, kind) in pages.flat_map(|page| page.changes(from, to)) {
            found.entry((slot, start)).or_insert(kind);
        }
        assert_eq!(found, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_snapshot_that_is_kept_reads_what_was_written(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            if !matches!(step, Step::Write { .. }) {
                world.check_reads();
                world.check_shape();
                world.check_changes();
            }
        }
        world.check_reads();
    }
}
