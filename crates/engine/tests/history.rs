//! The engine against a simple model of versions: random transactions by several threads, merges at random points,
//! every past timestamp read again. Checks invariants 3 (no committed version is lost) and 4 (a reader at t sees
//! exactly what was committed at or before t) of ARCHITECTURE.md, and through the storage's assertions 1 and 2.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use engine::{
    Column, Comparison, DataType, Database, Error, LayoutSetting, OpenOptions, Schema, Snapshot, Sum, Table,
    TableSettings, Test, Timestamp, Transaction, Value,
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

/// What one committed transaction did, in order.
struct Commit {
    at: Timestamp,
    changes: Vec<(i64, Option<Row>)>,
}

/// What somebody saw: at a timestamp, with changes of its own on top, the whole table.
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

fn scan_at(table: &Table, at: Timestamp) -> State {
    let options = engine::ScanOptions { columns: vec![0, 1, 2, 3], ..Default::default() };
    rows_of(table.scan(Snapshot::at(at), options).unwrap().flatten())
}

/// A scan and an aggregate with predicates agree with the model.
fn check_tests(table: &Table, at: Timestamp, state: &State) {
    let bound = (at.0 * 37 % 1_000) as i64;
    let tests = vec![(2, Test::Compare(Comparison::Less, Value::BigInt(bound))), (1, Test::IsNotNull)];
    let passing = state.iter().filter(|(_, (a, b, _))| a.is_some() && *b < bound);
    let passing: State = passing.map(|(key, row)| (*key, row.clone())).collect();
    let options = engine::ScanOptions { columns: vec![0, 1, 2, 3], tests: tests.clone(), ..Default::default() };
    let found = rows_of(table.scan(Snapshot::at(at), options).unwrap().flatten());
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
    let at = transaction.snapshot().at;
    let mut changes = Vec::new();
    for _ in 0..rng.random_range(1..6) {
        match random_change(&mut transaction, table, rng) {
            Ok(change) => changes.extend(change),
            Err(Error::Conflict) => return transaction.rollback(),
            Err(error) => panic!("{error}"),
        }
    }
    if rng.random_bool(0.3) {
        let state = rows_of(transaction.scan(table, &COLUMNS).unwrap().flatten());
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

fn run_threads(db: &Database, table: &Table, seed: u64, threads: u64, transactions: usize) -> Journal {
    let journal = Journal::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| {
            let mut rng = StdRng::seed_from_u64(seed ^ 0xfeed);
            while !done.load(Ordering::Relaxed) {
                if rng.random_bool(0.3) {
                    db.merge_now();
                }
                std::thread::yield_now();
            }
        });
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let journal = &journal;
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(seed.wrapping_mul(31) + thread);
                    for _ in 0..transactions {
                        random_transaction(db, table, &mut rng, journal);
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

fn check(table: &Table, journal: &Journal, first: Timestamp) {
    let states = states(journal, first);
    for (at, state) in &states {
        assert_eq!(&scan_at(table, *at), state, "scan at {at:?}");
        check_tests(table, *at, state);
        for key in 0..KEYS {
            let options = engine::ScanOptions { columns: vec![0, 1, 2, 3], ..Default::default() };
            let found = table.lookup(Snapshot::at(*at), &[Value::from(key)], &options).unwrap();
            let found = rows_of(std::iter::once(found)).remove(&key);
            assert_eq!(found.as_ref(), state.get(&key), "key {key} at {at:?}");
        }
    }
    for sight in journal.sights.lock().unwrap().iter() {
        let (_, state) = states.range(..=sight.at).next_back().expect("the first state is always there");
        let mut expected = state.clone();
        apply(&mut expected, &sight.own);
        assert_eq!(sight.state, expected, "seen in a transaction at {:?}", sight.at);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_past_timestamp_reads_as_the_model_says(seed in any::<u64>(), threads in 1u64..4) {
        let db = Database::in_memory_with(&small_ranges());
        let table = make_table(&db, seed);
        let first = db.snapshot().at;
        let journal = run_threads(&db, &table, seed, threads, 60);
        check(&table, &journal, first);
        db.merge_now();
        check(&table, &journal, first);
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
        check(&table, &journal, first);
        let again = run_threads(&db, &table, seed ^ 1, 1, 5);
        journal.commits.lock().unwrap().append(&mut again.commits.lock().unwrap());
        check(&table, &journal, first);
    }
}
