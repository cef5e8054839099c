//! Indexes under threads: rows that come, move and go while indexes are made, read and dropped; and many threads that
//! want the same keys of a unique index. Some indexes are of an expression, or of a part of the table, which rows enter and leave.
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::{
    Column, DataType, Database, Direction, Error, Extent, Index, IndexDefinition, IndexMethod, IndexPart, IndexRange,
    IndexWindow, Isolation, OpenOptions, ReadView, Retention, ScanOptions, Schema, Table, TableSettings, Transaction,
    TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

mod expressions;

/// An index of `k`, and what a row of that `k` is entered under.
type Case = (IndexDefinition, fn(i64) -> Option<i64>);

fn cases() -> Vec<Case> {
    let known = |text: &str| expressions::expression(text, 1, 1);
    let plain = |method| -> Case { (IndexDefinition::new("t_k", &[1]).using(method), |k| Some(k)) };
    let of_numbers = IndexMethod::ALL.into_iter().filter(|method| method.is_kept() && *method != IndexMethod::Gin);
    let half = IndexDefinition::of("t_k", vec![IndexPart::Expression(known("(a / 2)"))]);
    let odd = |method| IndexDefinition::new("t_k", &[1]).using(method).only_where(known("(a % 2 = 1)"));
    let is_odd: fn(i64) -> Option<i64> = |k| (k % 2 == 1).then_some(k);
    let computed: [Case; 3] =
        [(half, |k| Some(k / 2)), (odd(IndexMethod::Kiss), is_odd), (odd(IndexMethod::Hash), is_odd)];
    of_numbers.map(plain).chain(computed).collect()
}

/// Those that may be unique.
fn unique_cases() -> Vec<Case> {
    cases().into_iter().filter(|(definition, _)| definition.method.may_be_unique()).collect()
}

/// The rows of those that an index is of.
fn entered(rows: Vec<(i64, i64)>, key_of: fn(i64) -> Option<i64>) -> Vec<(i64, i64)> {
    rows.into_iter().filter(|(k, _)| key_of(*k).is_some()).collect()
}
const LEVELS: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
/// Commits of one writer.
const COMMITS_MAX: u64 = 20_000;

fn make(retention: Retention) -> (Database, Table) {
    let options = OpenOptions {
        range_records: Some(256),
        update_range_records: Some(64),
        merge_tail_records: Some(32),
        expressions: expressions::compiler(),
        ..OpenOptions::default()
    };
    let db = Database::in_memory_with(&options);
    let columns = ["id", "k"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
    let settings = TableSettings { retention, ..TableSettings::default() };
    let table = db.create_table_with("t", Schema::new(columns, &["id"]).unwrap(), settings).unwrap();
    (db, table)
}

/// The rows that a scan finds, and those that an index finds: keys with ids.
fn rows(batches: impl Iterator<Item = arrow_array::RecordBatch>) -> Vec<(i64, i64)> {
    let mut rows = Vec::new();
    for batch in batches {
        let [ids, keys] = [0, 1].map(|column| batch.column(column).as_primitive::<Int64Type>().values().to_vec());
        rows.extend(keys.into_iter().zip(ids));
    }
    rows.sort_unstable();
    rows
}

fn options() -> ScanOptions {
    ScanOptions { columns: vec![0, 1], ..ScanOptions::default() }
}

fn by_scan(table: &Table, view: &ReadView) -> Vec<(i64, i64)> {
    rows(table.scan(view, options()).unwrap().batches().map(Result::unwrap))
}

/// Through an index: all at once, or key by key where it has no order.
fn by_index(table: &Table, view: &ReadView, index: &Index, keys: i64) -> Result<Vec<(i64, i64)>, Error> {
    let scan = |range: &IndexRange| table.index_scan(view, index, range, Direction::Upward, options());
    if index.is_ordered() {
        return Ok(rows(scan(&IndexRange::all())?.map(Result::unwrap)));
    }
    if index.definition().method.is_spatial() {
        let window = match index.definition().method {
            IndexMethod::Gist => {
                let extent = Extent { dimensions: 1, low: [0.0; 4], high: [keys as f64; 4] };
                IndexWindow::Overlapping { extents: vec![Some(extent)], takes_others: false }
            }
            _ => IndexWindow::Between(vec![(Bound::Included(Value::from(0i64)), Bound::Excluded(Value::from(keys)))]),
        };
        return Ok(rows(scan(&IndexRange::within(window))?.map(Result::unwrap)));
    }
    let mut all = Vec::new();
    for key in 0..keys {
        all.extend(rows(scan(&IndexRange::equal(vec![Value::from(key)]))?.map(Result::unwrap)));
    }
    Ok(all)
}

/// One random change.
fn change(transaction: &mut Transaction, table: &Table, random: &mut StdRng, ids: i64, keys: i64) -> Result<(), Error> {
    let [id, key] = [ids, keys].map(|below| Value::from(random.random_range(0..below)));
    match random.random_range(0..6) {
        0 => drop(transaction.delete(table, &[id])?),
        1..=3 => drop(transaction.update(table, &[id], &[("k", key)])?),
        _ => match transaction.insert(table, &[id, key]) {
            Err(Error::DuplicateKey { constraint, .. }) if constraint == "t_pkey" => {}
            inserted => drop(inserted?),
        },
    }
    Ok(())
}

/// Ends the writers, also where an assertion fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Changes rows until it is over, or there is more history than a test needs; returns how many transactions committed and how
/// many were refused a key.
fn write(db: &Database, table: &Table, seed: u64, (ids, keys): (i64, i64), is_over: &AtomicBool) -> (u64, u64) {
    let (mut random, mut committed, mut refused) = (StdRng::seed_from_u64(seed), 0, 0);
    while !is_over.load(Ordering::Relaxed) && committed < COMMITS_MAX {
        let level = LEVELS[random.random_range(0..LEVELS.len())];
        let mut transaction = db.begin_with(TransactionOptions::at(level)).unwrap();
        let changes = random.random_range(1..4);
        let done = (0..changes).try_for_each(|_| {
            let savepoint = transaction.savepoint();
            change(&mut transaction, table, &mut random, ids, keys)?;
            if random.random_ratio(1, 5) { transaction.rollback_to(savepoint) } else { Ok(()) }
        });
        let is_kept = random.random_ratio(4, 5);
        let done = done.and_then(|()| if is_kept { transaction.commit().map(drop) } else { Ok(()) });
        match done {
            Ok(()) => committed += 1,
            Err(Error::DuplicateKey { .. }) => refused += 1,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
    (committed, refused)
}

/// Returns when there have been commits, so that what follows happens while writers are at work, or when one has ended.
fn await_commits<R>(db: &Database, writer: &ScopedJoinHandle<'_, R>) {
    let first = db.newest_commit().0;
    while db.newest_commit().0 < first + 200 && !writer.is_finished() {
        thread::yield_now();
    }
}

#[test]
fn an_index_that_is_made_while_others_write_has_every_row_of_every_snapshot() {
    for retention in [Retention::None, Retention::Forever] {
        let ((db, table), is_over) = (make(retention), &AtomicBool::new(false));
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|seed| {
                    let (db, table) = (&db, &table);
                    scope.spawn(move || write(db, table, seed, (400, 40), is_over))
                })
                .collect();
            let merging = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    db.merge_now();
                    db.reclaim_now();
                }
            });
            let ending = Ending(is_over);
            await_commits(&db, &writers[0]);
            for (definition, key_of) in cases() {
                // A snapshot from before the index was made.
                let early = db.read_view().unwrap();
                let index = db.create_index("t", definition.clone()).unwrap();
                for _ in 0..3 {
                    let view = db.read_view().unwrap();
                    let expected = entered(by_scan(&table, &view), key_of);
                    assert_eq!(by_index(&table, &view, &index, 40).unwrap(), expected, "{definition:?}");
                }
                match by_index(&table, &early, &index, 40) {
                    Ok(found) => assert_eq!(found, entered(by_scan(&table, &early), key_of), "{definition:?}"),
                    // All that the table kept was given up but for this view.
                    Err(error) => assert!(matches!(error, Error::NoSuchIndex(_)) && retention == Retention::None),
                }
                db.drop_index("t_k").unwrap();
            }
            drop(ending);
            let committed: u64 = writers.into_iter().map(|writer| writer.join().unwrap().0).sum();
            merging.join().unwrap();
            assert!(committed > 100, "{committed} commits");
        });
    }
}

#[test]
fn an_index_that_was_dropped_serves_what_was_seen_before_and_refuses_what_came_later() {
    let ((db, table), is_over) = (make(Retention::Forever), &AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&db, &table, 1, (50, 10), is_over));
        let ending = Ending(is_over);
        await_commits(&db, &writer);
        for _ in 0..20 {
            let index = db.create_index("t", IndexDefinition::new("t_k", &[1])).unwrap();
            let (is_dropped, checked) = (AtomicBool::new(false), AtomicU64::new(0));
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_dropped.load(Ordering::Relaxed) || checked.load(Ordering::Relaxed) == 0 {
                        let view = db.read_view().unwrap();
                        match by_index(&table, &view, &index, 10) {
                            Ok(found) => assert_eq!(found, by_scan(&table, &view)),
                            Err(Error::NoSuchIndex(_)) => {}
                            Err(error) => panic!("{error}"),
                        }
                        checked.fetch_add(1, Ordering::Relaxed);
                    }
                });
                db.drop_index("t_k").unwrap();
                is_dropped.store(true, Ordering::Relaxed);
            });
        }
        drop(ending);
        assert!(writer.join().unwrap().0 > 0);
    });
}

/// Fails unless no key comes twice.
fn check_unique(rows: &[(i64, i64)], key_of: fn(i64) -> Option<i64>) {
    let mut of_key = BTreeMap::new();
    for (k, id) in rows {
        if let Some(key) = key_of(*k) {
            assert_eq!(of_key.insert(key, id), None, "key {key} has two rows");
        }
    }
}

#[test]
fn of_many_who_want_a_key_one_has_it_in_every_snapshot() {
    for (definition, key_of) in unique_cases() {
        let ((db, table), is_over) = (make(Retention::None), &AtomicBool::new(false));
        let index = db.create_index("t", definition.clone().unique()).unwrap();
        thread::scope(|scope| {
            let (db, table) = (&db, &table);
            let writers: Vec<_> =
                (0..4).map(|seed| scope.spawn(move || write(db, table, seed, (12, 8), is_over))).collect();
            let (ending, mut checked) = (Ending(is_over), 0);
            while checked < 100 || db.newest_commit().0 < 1_000 {
                let view = db.read_view().unwrap();
                let found = by_scan(table, &view);
                check_unique(&found, key_of);
                let expected = entered(found, key_of);
                assert_eq!(by_index(table, &view, &index, 8).unwrap(), expected, "{definition:?}");
                checked += 1;
                if checked % 16 == 0 {
                    db.reclaim_now();
                }
            }
            drop(ending);
            let outcomes: Vec<(u64, u64)> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            let (committed, refused) = outcomes.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            assert!(committed > 100 && refused > 10, "{committed} commits, {refused} refused");
        });
    }
}

/// Makes unique indexes of keys while two threads write; returns what came of it: whether there was one.
fn outcomes_under_writers(keys: i64, seed: u64) -> Vec<bool> {
    let ((db, table), is_over) = (make(Retention::None), &AtomicBool::new(false));
    thread::scope(|scope| {
        let (db, table) = (&db, &table);
        let writers: Vec<_> =
            (0..2).map(|writer| scope.spawn(move || write(db, table, seed + writer, (8, keys), is_over))).collect();
        let (ending, cases, mut outcomes) = (Ending(is_over), unique_cases(), Vec::new());
        while outcomes.len() < 24 && !writers.iter().all(|writer| writer.is_finished()) {
            let (definition, key_of) = &cases[outcomes.len() % cases.len()];
            match db.create_index("t", definition.clone().unique()) {
                Err(Error::KeysNotUnique { .. }) => outcomes.push(false),
                Err(error) => assert!(error.is_retryable(), "{error}"),
                Ok(_) => {
                    for _ in 0..5 {
                        check_unique(&by_scan(table, &db.read_view().unwrap()), *key_of);
                    }
                    outcomes.push(true);
                    db.drop_index("t_k").unwrap();
                }
            }
        }
        drop(ending);
        for writer in writers {
            writer.join().unwrap();
        }
        outcomes
    })
}

#[test]
fn a_unique_index_is_made_only_of_keys_that_stay_unique() {
    // So few rows that mostly no two of them have one of many keys, and mostly some have one of a few.
    for (keys, wanted) in [(1_000, true), (9, false)] {
        let mut rounds = (0..50).map(|round| outcomes_under_writers(keys, 10 * round));
        assert!(rounds.any(|outcomes| outcomes.contains(&wanted)), "no attempt of many ended with {wanted}");
    }
}
