//! The engine against a simple model of versions: random transactions by several threads, merges of all columns or some
//! at random points, pages evicted in between, every past timestamp read again on every path. Checks invariants 3 (no
//! committed version is lost) and 4 (a reader at t sees exactly what was committed at or before t) of ARCHITECTURE.md, and
//! through the storage's assertions 1 and 2.
//!
//! By its seed each table has another layout, other update ranges, and keeps its past for ever, for a short time or
//! not at all. Reads of a past that is given up are refused, never answered wrongly, and a past that is held is not
//! given up.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use engine::{
    Column, Comparison, DataType, Database, Error, LayoutSetting, OpenOptions, ReadView, Retention, RowChange, Schema,
    Snapshot, Sum, Table, TableSettings, Test, Timestamp, Transaction, Value,
};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const KEYS: i64 = 40;
const COLUMNS: [&str; 4] = ["k", "a", "b", "t"];

/// A row but for its key.
type Row = (Option<i64>, i64, Option<String>);
type State = BTreeMap<i64, Row>;

/// The changes of one committed transaction, in order.
struct Commit {
    at: Timestamp,
    changes: Vec<(i64, Option<Row>)>,
}

/// The view of a reader: at a timestamp, with changes of its own on top, the whole table.
struct Sight {
    at: Timestamp,
    own: Vec<(i64, Option<Row>)>,
    state: State,
}

#[derive(Default)]
struct Journal {
    commits: Mutex<Vec<Commit>>,
    sights: Mutex<Vec<Sight>>,
}

fn small_ranges() -> OpenOptions {
    OpenOptions { range_records: Some(64), merge_tail_records: Some(20), ..OpenOptions::default() }
}

/// How long the past is kept.
fn retention(seed: u64) -> Retention {
    match seed / 9 % 4 {
        0 | 1 => Retention::Forever,
        2 => Retention::None,
        _ => Retention::For(Duration::from_millis(seed % 3 * 30)),
    }
}

/// Tables in either layout, with one update range for each range or several.
fn make_table(db: &Database, seed: u64) -> Table {
    let columns = vec![
        Column::new("k", DataType::BigInt),
        Column::new("a", DataType::BigInt),
        Column::new("b", DataType::BigInt).not_null(),
        Column::new("t", DataType::TEXT),
    ];
    let settings = TableSettings {
        layout: if seed.is_multiple_of(3) { LayoutSetting::Row } else { LayoutSetting::Column },
        update_range_records: Some([64, 16, 4][(seed / 3 % 3) as usize]),
        retention: retention(seed),
        ..TableSettings::default()
    };
    db.create_table_with("t", Schema::new(columns, &["k"]).unwrap(), settings).unwrap()
}

fn values((a, b, t): &Row) -> [Value; 3] {
    [Value::from(*a), Value::from(*b), Value::from(t.clone())]
}

fn random_row(rng: &mut StdRng) -> Row {
    let text = "a text of some length, more than twelve bytes";
    let a = rng.random_bool(0.8).then(|| rng.random_range(0..1_000));
    let t = rng.random_bool(0.8).then(|| text[..rng.random_range(0..text.len())].to_string());
    (a, rng.random_range(0..1_000), t)
}

fn rows_of(batches: impl Iterator<Item = RecordBatch>) -> State {
    let mut state = State::new();
    for batch in batches {
        let int = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        let text = batch.column(3).as_string_view();
        for row in 0..batch.num_rows() {
            let a = (!int(1).is_null(row)).then(|| int(1).value(row));
            let t = (!text.is_null(row)).then(|| text.value(row).to_string());
            let earlier = state.insert(int(0).value(row), (a, int(2).value(row), t));
            assert_eq!(earlier, None, "a scan gives each key once");
        }
    }
    state
}

/// The whole table, or `None` where its past does not reach back so far.
fn scan_at(table: &Table, at: Timestamp) -> Option<State> {
    let options = engine::ScanOptions { columns: vec![0, 1, 2, 3], ..Default::default() };
    match table.scan(Snapshot::at(at), options) {
        Ok(scan) => Some(rows_of(scan.batches().map(Result::unwrap))),
        Err(error) => {
            assert!(is_too_old(&error, at), "{error}");
            None
        }
    }
}

fn is_too_old(error: &Error, asked: Timestamp) -> bool {
    matches!(error, Error::SnapshotTooOld { at, oldest, .. } if *at == asked.0 && oldest > at)
}

/// A scan and an aggregate with predicates agree with the model.
fn check_tests(table: &Table, at: Timestamp, state: &State) {
    let bound = (at.0 * 37 % 1_000) as i64;
    let tests = vec![(2, Test::Compare(Comparison::Less, Value::BigInt(bound))), (1, Test::IsNotNull)];
    let passing = state.iter().filter(|(_, (a, b, _))| a.is_some() && *b < bound);
    let passing: State = passing.map(|(key, row)| (*key, row.clone())).collect();
    let options = engine::ScanOptions { columns: vec![0, 1, 2, 3], tests: tests.clone(), ..Default::default() };
    let found = rows_of(table.scan(Snapshot::at(at), options).unwrap().batches().map(Result::unwrap));
    assert_eq!(found, passing, "filtered scan at {at:?}");
    for (tests, rows) in [(&tests[..], &passing), (&[], state)] {
        let totals = table.aggregate(Snapshot::at(at), tests, &[2]).unwrap();
        let sum = rows.values().map(|(_, b, _)| i128::from(*b)).sum();
        let least = rows.values().map(|(_, b, _)| *b).min().map(Value::BigInt);
        assert_eq!((totals.rows, totals.columns[0].sum), (rows.len() as u64, Sum::Integer(sum)), "at {at:?}");
        assert_eq!(totals.columns[0].min, least, "at {at:?}");
    }
}

fn row_of(values: Vec<Value>) -> Row {
    let int = |value: &Value| match value {
        Value::BigInt(value) => Some(*value),
        _ => None,
    };
    let text = match &values[3] {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    (int(&values[1]), int(&values[2]).expect("not null"), text)
}

/// One random change; `Ok(None)` where there was nothing to change.
fn random_change(
    transaction: &mut Transaction,
    table: &Table,
    rng: &mut StdRng,
) -> Result<Option<(i64, Option<Row>)>, Error> {
    let key = rng.random_range(0..KEYS);
    let seen = transaction.get(table, &[Value::from(key)])?;
    let Some(seen) = seen.map(row_of) else {
        let row = random_row(rng);
        let [a, b, t] = values(&row);
        return match transaction.insert(table, &[Value::from(key), a, b, t]) {
            Ok(_) => Ok(Some((key, Some(row)))),
            // Inserted by another since this snapshot.
            Err(Error::DuplicateKey { .. }) => Ok(None),
            Err(error) => Err(error),
        };
    };
    if rng.random_bool(0.15) {
        assert!(transaction.delete(table, &[Value::from(key)])?, "a row that is seen can be deleted");
        return Ok(Some((key, None)));
    }
    let (fresh, mut row) = (random_row(rng), seen);
    let [a, b, t] = values(&fresh);
    let all = [("a", a), ("b", b), ("t", t)];
    let count = rng.random_range(1..=3);
    let picked: Vec<(&str, Value)> = all.sample(rng, count).cloned().collect();
    for (name, _) in &picked {
        match *name {
            "a" => row.0 = fresh.0,
            "b" => row.1 = fresh.1,
            _ => row.2 = fresh.2.clone(),
        }
    }
    assert!(transaction.update(table, &[Value::from(key)], &picked)?, "a row that is seen can be updated");
    Ok(Some((key, Some(row))))
}

fn random_transaction(db: &Database, table: &Table, rng: &mut StdRng, journal: &Journal) {
    let mut transaction = db.begin().unwrap();
    let at = transaction.view().unwrap().at();
    let mut changes = Vec::new();
    for _ in 0..rng.random_range(1..6) {
        match random_change(&mut transaction, table, rng) {
            Ok(change) => changes.extend(change),
            Err(Error::Conflict) => return transaction.rollback(),
            Err(error) => panic!("{error}"),
        }
    }
    if rng.random_bool(0.3) {
        let state = rows_of(transaction.scan(table, &COLUMNS).unwrap().batches().map(Result::unwrap));
        for key in 0..KEYS {
            let read = transaction.get(table, &[Value::from(key)]).unwrap().map(row_of);
            assert_eq!(read.as_ref(), state.get(&key), "a transaction reads by key what it scans");
        }
        journal.sights.lock().unwrap().push(Sight { at, own: changes.clone(), state });
    }
    if rng.random_bool(0.15) {
        return transaction.rollback();
    }
    let is_read_only = changes.is_empty();
    let at = transaction.commit().unwrap();
    if !is_read_only {
        journal.commits.lock().unwrap().push(Commit { at, changes });
    }
}

/// Snapshots that a thread holds, with what they showed at first.
#[derive(Default)]
struct Held(Vec<(ReadView, State)>);

impl Held {
    /// Begins to hold a snapshot, the newest or a past one, or looks again at those that are held, or lets one go.
    fn step(&mut self, db: &Database, table: &Table, rng: &mut StdRng, journal: &Journal) {
        match rng.random_range(0..4) {
            0 => {
                let view = db.read_view().unwrap();
                let state = scan_at(table, view.at()).expect("what is held as the newest stays");
                self.hold(view, state, journal);
            }
            1 => {
                let now = db.snapshot().at.0;
                let view = db.read_view_at(Timestamp(rng.random_range(now.saturating_sub(50).max(1)..=now))).unwrap();
                if let Some(state) = scan_at(table, view.at()) {
                    self.hold(view, state, journal);
                }
            }
            2 => {
                for (view, state) in &self.0 {
                    assert_eq!(scan_at(table, view.at()).as_ref(), Some(state), "held at {:?}", view.at());
                }
            }
            _ if self.0.is_empty() => {}
            _ => drop(self.0.swap_remove(rng.random_range(0..self.0.len()))),
        }
    }

    fn hold(&mut self, view: ReadView, state: State, journal: &Journal) {
        journal.sights.lock().unwrap().push(Sight { at: view.at(), own: Vec::new(), state: state.clone() });
        self.0.push((view, state));
    }
}

/// Merges of all kinds, and on disk checkpoints and evictions, until it is done.
fn merge_until(db: &Database, seed: u64, done: &AtomicBool) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0xfeed);
    while !done.load(Ordering::Relaxed) {
        match rng.random_range(0..20) {
            8 => drop(db.evict_now(1 << rng.random_range(6..20))),
            9 if rng.random_bool(0.1) => drop(db.checkpoint()),
            0..=3 => drop(db.merge_now()),
            4..=6 => {
                let columns: Vec<usize> = (0..COLUMNS.len()).filter(|_| rng.random_bool(0.5)).collect();
                db.merge_columns_now("t", &columns).unwrap();
            }
            7 => db.reclaim_now(),
            _ => std::thread::yield_now(),
        }
    }
}

fn run_threads(db: &Database, table: &Table, seed: u64, threads: u64, transactions: usize) -> Journal {
    let journal = Journal::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| merge_until(db, seed, &done));
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let journal = &journal;
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(seed.wrapping_mul(31) + thread);
                    let mut held = Held::default();
                    for _ in 0..transactions {
                        random_transaction(db, table, &mut rng, journal);
                        if rng.random_bool(0.2) {
                            held.step(db, table, &mut rng, journal);
                        }
                    }
                })
            })
            .collect();
        let panicked = workers.into_iter().filter_map(|worker| worker.join().err()).count();
        done.store(true, Ordering::Relaxed);
        merging.join().unwrap();
        assert_eq!(panicked, 0, "seed {seed}");
    });
    journal
}

fn apply(state: &mut State, changes: &[(i64, Option<Row>)]) {
    for (key, row) in changes {
        match row {
            Some(row) => state.insert(*key, row.clone()),
            None => state.remove(key),
        };
    }
}

/// The table's state after each commit, by its timestamp, starting with the empty one.
fn states(journal: &Journal, first: Timestamp) -> BTreeMap<Timestamp, State> {
    let mut commits = journal.commits.lock().unwrap();
    commits.sort_by_key(|commit| commit.at);
    let mut states = BTreeMap::from([(first, State::new())]);
    let mut state = State::new();
    for commit in commits.iter() {
        apply(&mut state, &commit.changes);
        let earlier = states.insert(commit.at, state.clone());
        assert!(earlier.is_none(), "two commits at {:?}", commit.at);
    }
    states
}

/// Reads the past again on every path.
fn check(db: &Database, table: &Table, journal: &Journal, first: Timestamp) {
    let states = states(journal, first);
    let newest = *states.keys().next_back().expect("the first state is always there");
    for (at, state) in &states {
        let held = db.read_view_at(*at).unwrap();
        let Some(scanned) = scan_at(table, *at) else {
            assert!(*at < newest && table.settings().retention != Retention::Forever, "{at:?} is refused");
            check_refused(table, *at, newest);
            continue;
        };
        assert_eq!(&scanned, state, "scan at {at:?}");
        check_tests(table, *at, state);
        for key in (0..KEYS).filter(|key| (key + at.0 as i64) % 4 == 0) {
            let options = engine::ScanOptions { columns: vec![0, 1, 2, 3], ..Default::default() };
            let found = table.lookup(Snapshot::at(*at), &[Value::from(key)], &options).unwrap();
            let found = rows_of(std::iter::once(found)).remove(&key);
            assert_eq!(found.as_ref(), state.get(&key), "key {key} at {at:?}");
        }
        drop(held);
    }
    for sight in journal.sights.lock().unwrap().iter() {
        let (_, state) = states.range(..=sight.at).next_back().expect("the first state is always there");
        let mut expected = state.clone();
        apply(&mut expected, &sight.own);
        assert_eq!(sight.state, expected, "seen at {:?}", sight.at);
    }
    (0..KEYS).for_each(|key| check_versions(table, key, &states));
    for (from, to) in [(first, newest), (Timestamp(first.0.midpoint(newest.0)), newest)] {
        match table.changes(from, to) {
            Ok(changes) => check_changes(changes, journal, &states, from),
            Err(error) => assert!(is_too_old(&error, from), "{error}"),
        }
    }
}

/// A past that one path refuses is refused by all.
fn check_refused(table: &Table, at: Timestamp, newest: Timestamp) {
    let snapshot = Snapshot::at(at);
    let refusals = [
        table.aggregate(snapshot, &[], &[2]).err(),
        table.lookup(snapshot, &[Value::from(1i64)], &engine::ScanOptions::default()).err(),
        table.changes(at, newest).err(),
    ];
    for refusal in refusals {
        assert!(refusal.is_some_and(|error| is_too_old(&error, at)), "at {at:?}");
    }
}

/// The versions of a row, as far back as they go.
fn check_versions(table: &Table, key: i64, states: &BTreeMap<Timestamp, State>) {
    let versions = table.record_history(&[Value::from(key)]).unwrap();
    let ends: Vec<_> = versions.iter().skip(1).map(|version| Some(version.from)).chain([None]).collect();
    for (version, end) in versions.iter().zip(&ends) {
        let row = version.row.clone().map(row_of);
        assert_eq!(&version.to, end, "versions of {key} follow each other");
        let (_, before) = states.range(..=version.from).next_back().expect("the first state is always there");
        assert_eq!(before.get(&key), row.as_ref(), "key {key} from {:?}", version.from);
        let during = states.range(version.from..).take_while(|(at, _)| version.to.is_none_or(|to| **at < to));
        for (at, state) in during {
            assert_eq!(state.get(&key), row.as_ref(), "key {key} at {at:?}, since {:?}", version.from);
        }
    }
    if table.settings().retention == Retention::Forever {
        let first = states.iter().find(|(_, state)| state.contains_key(&key)).map(|(at, _)| *at);
        assert_eq!(versions.first().map(|version| version.from), first, "the versions of {key} are all there");
    }
}

/// The changes of commits after `from`, row by row; a key may go from one record to another within a commit.
fn check_changes(changes: Vec<RowChange>, journal: &Journal, states: &BTreeMap<Timestamp, State>, from: Timestamp) {
    type Pair = (Option<Row>, Option<Row>);
    assert!(changes.is_sorted_by_key(|change| change.at), "in the order of commits");
    let mut found: BTreeMap<(Timestamp, i64), Pair> = BTreeMap::new();
    for change in changes {
        let row = change.old.as_ref().or(change.new.as_ref()).expect("a change has a row");
        let Value::BigInt(key) = row[0] else { panic!("keys are numbers") };
        let pair = found.entry((change.at, key)).or_default();
        pair.0 = pair.0.take().or(change.old.map(row_of));
        pair.1 = pair.1.take().or(change.new.map(row_of));
    }
    let mut expected = BTreeMap::new();
    for commit in journal.commits.lock().unwrap().iter().filter(|commit| commit.at > from) {
        let (_, before) = states.range(..commit.at).next_back().expect("the first state is always there");
        for (key, _) in &commit.changes {
            let pair: Pair = (before.get(key).cloned(), states[&commit.at].get(key).cloned());
            if pair != (None, None) {
                expected.insert((commit.at, *key), pair);
            }
        }
    }
    assert_eq!(found, expected, "changes after {from:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn every_past_timestamp_reads_as_the_model_says(seed in any::<u64>(), threads in 1u64..4) {
        let db = Database::in_memory_with(&small_ranges());
        let table = make_table(&db, seed);
        let first = db.snapshot().at;
        let journal = run_threads(&db, &table, seed, threads, 60);
        check(&db, &table, &journal, first);
        db.merge_now();
        check(&db, &table, &journal, first);
        db.reclaim_now();
        check(&db, &table, &journal, first);
    }

    #[test]
    fn a_reopened_database_holds_what_was_committed(seed in any::<u64>()) {
        let directory = tempfile::tempdir().unwrap();
        let open = || Database::open_with(directory.path(), small_ranges()).unwrap();
        let db = open();
        let table = make_table(&db, seed);
        let first = db.snapshot().at;
        let journal = run_threads(&db, &table, seed, 2, 15);
        let abandoned = db.begin().unwrap();
        drop((table, db, abandoned));
        let db = open();
        let table = db.table("t").unwrap();
        check(&db, &table, &journal, first);
        let again = run_threads(&db, &table, seed ^ 1, 1, 5);
        journal.commits.lock().unwrap().append(&mut again.commits.lock().unwrap());
        check(&db, &table, &journal, first);
        db.merge_now();
        db.checkpoint().unwrap();
        db.evict_now(u64::MAX);
        check(&db, &table, &journal, first);
    }
}
