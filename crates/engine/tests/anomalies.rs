//! Random transactions on several threads, and a checker that looks for what their isolation level forbids.
//!
//! Transactions append to lists and read them (`testkit::history`, after Elle). A list is stored in one of three
//! ways: as a text that is read and written back, so that appends meet at a row; or as a row for each element, so
//! that appends are inserts and a read is a predicate, with phantoms; or so through an index, where some rows come
//! by an update. Merges of small ranges, rollbacks, savepoints that take back a part, conflicts and deadlocks go on
//! all the time. Appends that were rolled back are reported to the checker as aborted: they must never be seen.
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::{
    Column, Comparison, DataType, Database, Direction, Error, IndexDefinition, IndexMethod, IndexRange, IndexWindow,
    Isolation, OpenOptions, ScanOptions, Schema, Table, Test, Transaction, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::history::{self, History, Kind, Level, Recorder, SessionRecorder, Strictness, TransactionRecorder};

const THREADS: u64 = 4;
const TRANSACTIONS: u64 = 400;
/// Lists in use at the same time.
const LISTS: u64 = 6;
/// After so many transactions of a thread it goes on with other lists.
const TRANSACTIONS_A_LIST: u64 = 40;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Storage {
    Texts,
    Rows,
    Index(IndexMethod),
}

struct Lists {
    db: Database,
    table: Table,
    storage: Storage,
    isolation: Isolation,
}

fn key(list: u64) -> [Value; 1] {
    [Value::from(list as i64)]
}

impl Lists {
    fn new(storage: Storage, isolation: Isolation) -> Lists {
        let small = OpenOptions {
            range_records: Some(64),
            update_range_records: Some(16),
            merge_tail_records: Some(16),
            ..OpenOptions::default()
        };
        let db = Database::in_memory_with(&small);
        let columns = match storage {
            Storage::Texts => vec![Column::new("list", DataType::BigInt), Column::new("elements", DataType::TEXT)],
            Storage::Rows | Storage::Index(_) => {
                ["element", "list"].map(|name| Column::new(name, DataType::BigInt)).to_vec()
            }
        };
        let schema = Schema::new(columns.clone(), &[&columns[0].name]).unwrap();
        let table = db.create_table("lists", schema).unwrap();
        if let Storage::Index(method) = storage {
            db.create_index("lists", IndexDefinition::new("lists_list", &[1]).using(method)).unwrap();
        }
        Lists { db, table, storage, isolation }
    }

    /// The elements of a list: of a text by its key or by a scan, of rows by a scan.
    fn read(&self, transaction: &Transaction, list: u64, by_scan: bool) -> Result<Vec<u64>, Error> {
        if self.storage == Storage::Texts && !by_scan {
            return Ok(elements_of(transaction.get(&self.table, &key(list))?.map(|mut row| row.remove(1))));
        }
        if let Storage::Index(_) = self.storage {
            let at = Value::from(list as i64);
            let range = match self.table.indexes()[0].definition().method {
                IndexMethod::Bwd => {
                    IndexRange::within(IndexWindow::Between(vec![(Bound::Included(at.clone()), Bound::Included(at))]))
                }
                IndexMethod::Gist => {
                    let extents = vec![self.table.indexes()[0].extent_of(0, &at)];
                    IndexRange::within(IndexWindow::Overlapping { extents, takes_others: false })
                }
                _ => IndexRange::equal(vec![at]),
            };
            let rows = transaction.index_scan(&self.table, &self.table.indexes()[0], &range, Direction::Upward)?;
            let rows = rows.map(Result::unwrap);
            return Ok(rows.flat_map(|(_, mut row)| elements_of_row(row.swap_remove(0))).collect());
        }
        let is_list = |column| vec![(column, Test::Compare(Comparison::Eq, Value::from(list as i64)))];
        let (columns, tests) = match self.storage {
            Storage::Texts => (vec![1], is_list(0)),
            Storage::Rows | Storage::Index(_) => (vec![0], is_list(1)),
        };
        let scan = self.table.scan(&transaction.view()?, ScanOptions { columns, tests, with_rid: false })?;
        let mut elements = Vec::new();
        for batch in scan.batches().map(Result::unwrap) {
            match self.storage {
                Storage::Texts => {
                    let texts = batch.column(0).as_string_view();
                    elements.extend(texts.iter().flatten().flat_map(|text| elements_of(Some(Value::from(text)))));
                }
                Storage::Rows | Storage::Index(_) => {
                    let values = batch.column(0).as_primitive::<Int64Type>().values();
                    elements.extend(values.iter().map(|element| *element as u64));
                }
            }
        }
        Ok(elements)
    }

    fn append(&self, transaction: &mut Transaction, list: u64, element: u64) -> Result<(), Error> {
        if matches!(self.storage, Storage::Index(_)) && element.is_multiple_of(2) {
            transaction.insert(&self.table, &[Value::from(element as i64), Value::from(-1i64)])?;
            let moved = transaction.update(&self.table, &key(element), &[("list", Value::from(list as i64))])?;
            assert!(moved, "a transaction sees what it has inserted");
            return Ok(());
        }
        if self.storage != Storage::Texts {
            return transaction.insert(&self.table, &[Value::from(element as i64), Value::from(list as i64)]).map(drop);
        }
        let row = match self.isolation {
            // Nothing else keeps others from writing between the read and the write.
            Isolation::ReadCommitted => transaction.get_for_update(&self.table, &key(list))?,
            Isolation::Snapshot | Isolation::Serializable => transaction.get(&self.table, &key(list))?,
        };
        match row.map(|mut row| row.remove(1)) {
            None => {
                let text = Value::from(element.to_string().as_str());
                transaction.insert(&self.table, &[Value::from(list as i64), text]).map(drop)
            }
            Some(Value::Text(text)) => {
                let text = Value::from(format!("{text} {element}").as_str());
                transaction.update(&self.table, &key(list), &[("elements", text)]).map(drop)
            }
            Some(other) => panic!("{other:?}"),
        }
    }
}

fn elements_of_row(element: Value) -> Option<u64> {
    match element {
        Value::BigInt(element) => Some(element as u64),
        other => panic!("{other:?}"),
    }
}

fn elements_of(text: Option<Value>) -> Vec<u64> {
    match text {
        None => Vec::new(),
        Some(Value::Text(text)) => text.split(' ').map(|element| element.parse().unwrap()).collect(),
        Some(other) => panic!("{other:?}"),
    }
}

/// One thread's transactions, recorded.
struct Session<'a> {
    lists: &'a Lists,
    recorder: SessionRecorder,
    /// for what savepoints took back
    taken_back: SessionRecorder,
    random: StdRng,
}

impl Session<'_> {
    fn transact(&mut self, number: u64) {
        let Session { lists, recorder, taken_back, random } = self;
        let mut record = recorder.begin();
        let mut transaction = lists.db.begin_with(TransactionOptions::at(lists.isolation)).unwrap();
        if lists.isolation != Isolation::ReadCommitted {
            record.snapshot(transaction.view().unwrap().at().0);
        }
        let (first, mut has_appended) = (number / TRANSACTIONS_A_LIST * LISTS, false);
        for _ in 0..random.random_range(1..6) {
            let list = first + random.random_range(0..LISTS);
            match step(lists, &mut transaction, &mut record, taken_back, random, list) {
                Ok(appended) => has_appended |= appended,
                Err(error) => {
                    assert!(error.is_retryable() || error.sqlstate() == "23505", "{error}");
                    transaction.rollback();
                    return record.abort();
                }
            }
            if random.random_ratio(1, 4) {
                thread::yield_now();
            }
        }
        if random.random_ratio(1, 8) {
            transaction.rollback();
            return record.abort();
        }
        match transaction.commit() {
            Ok(at) => record.commit(has_appended.then_some(at.0)),
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                record.abort();
            }
        }
    }
}

/// A read, an append, or an append that is taken back; whether there is an append to stay.
fn step(
    lists: &Lists,
    transaction: &mut Transaction,
    record: &mut TransactionRecorder<'_>,
    taken_back: &mut SessionRecorder,
    random: &mut StdRng,
    list: u64,
) -> Result<bool, Error> {
    let what = random.random_range(0..8);
    match what {
        0..=3 => {
            let elements = lists.read(transaction, list, random.random_ratio(1, 2))?;
            match lists.storage {
                Storage::Texts => record.read(list, elements),
                Storage::Rows | Storage::Index(_) => record.read_set(list, elements),
            }
        }
        4..=6 => {
            let element = record.fresh_element();
            lists.append(transaction, list, element)?;
            record.append(list, element);
        }
        _ => {
            let savepoint = transaction.savepoint();
            let mut lost = taken_back.begin();
            let element = lost.fresh_element();
            let appended = lists.append(transaction, list, element);
            if appended.is_ok() {
                lost.append(list, element);
            }
            lost.abort();
            transaction.rollback_to(savepoint)?;
            appended?;
        }
    }
    Ok((4..=6).contains(&what))
}

fn record(storage: Storage, isolation: Isolation, seed: u64) -> History {
    let lists = &Lists::new(storage, isolation);
    let (recorder, is_over) = (Recorder::new(), &AtomicBool::new(false));
    thread::scope(|scope| {
        let merging = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                lists.db.merge_now();
                lists.db.reclaim_now();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let sessions: Vec<_> = (0..THREADS)
            .map(|thread| {
                let random = StdRng::seed_from_u64(seed * THREADS + thread);
                let (recorder, taken_back) = (recorder.session(), recorder.session());
                let mut session = Session { lists, recorder, taken_back, random };
                scope.spawn(move || (0..TRANSACTIONS).for_each(|number| session.transact(number)))
            })
            .collect();
        sessions.into_iter().for_each(|session| session.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        merging.join().unwrap();
    });
    read_everything(lists, &mut recorder.session());
    recorder.into_history()
}

/// Reads all lists: an append that was never read tells little.
fn read_everything(lists: &Lists, recorder: &mut SessionRecorder) {
    let mut record = recorder.begin();
    let transaction = lists.db.begin_with(TransactionOptions::at(Isolation::Snapshot)).unwrap();
    for list in 0..TRANSACTIONS.div_ceil(TRANSACTIONS_A_LIST) * LISTS {
        let elements = lists.read(&transaction, list, false).unwrap();
        match lists.storage {
            Storage::Texts => record.read(list, elements),
            Storage::Rows | Storage::Index(_) => record.read_set(list, elements),
        }
    }
    transaction.commit().unwrap();
    record.commit(None);
}

fn level(isolation: Isolation) -> Level {
    Level::strict(match isolation {
        Isolation::ReadCommitted => history::Isolation::ReadCommitted,
        Isolation::Snapshot => history::Isolation::Snapshot,
        Isolation::Serializable => history::Isolation::Serializable,
    })
}

/// Checks some histories of a level; returns the kinds of anomalies that it permits and that were there.
fn check(isolation: Isolation) -> Vec<Kind> {
    let mut permitted = Vec::new();
    let of_numbers = IndexMethod::ALL.into_iter().filter(|method| method.is_kept() && *method != IndexMethod::Gin);
    let through_indexes = of_numbers.map(Storage::Index);
    let with_seeds = [Storage::Texts, Storage::Rows].into_iter().flat_map(|storage| [(storage, 0), (storage, 1)]);
    for (storage, seed) in with_seeds.chain(through_indexes.zip(2..)) {
        let history = record(storage, isolation, seed);
        let report = history::check(&history, level(isolation))
            .unwrap_or_else(|violation| panic!("{isolation}, {storage:?}, seed {seed}: {violation}"));
        assert!(report.transactions > 500 && report.reads > 1000 && report.appends > 500, "{report:?}");
        permitted.extend(report.kinds());
    }
    permitted
}

#[test]
fn read_committed_keeps_what_it_promises_and_snapshot_would_see_the_difference() {
    let permitted = check(Isolation::ReadCommitted);
    assert!(permitted.iter().any(|kind| level(Isolation::Snapshot).forbids(*kind)), "{permitted:?}");
}

/// Serializable differs from it by its validation alone: without that, the checker finds write skew.
#[test]
fn snapshot_keeps_what_it_promises_and_has_write_skew() {
    let permitted = check(Isolation::Snapshot);
    assert!(permitted.contains(&Kind::WriteSkew(Strictness::Plain)), "{permitted:?}");
}

#[test]
fn serializable_keeps_what_it_promises() {
    assert_eq!(check(Isolation::Serializable), []);
}
