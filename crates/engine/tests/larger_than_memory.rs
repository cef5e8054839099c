//! Tables larger than the memory limit: they are loaded, updated, scanned, read by key and as of the past, merged,
//! checkpointed and opened again, and every answer is what it would be in memory; what is in use stays under the limit.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::{
    Column, Comparison, DataType, Database, Error, LayoutSetting, OpenOptions, ScanOptions, Schema, Snapshot, Sum,
    Table, TableSettings, Test, Timestamp, Value,
};

const ROWS: i64 = 16_000;
const LIMIT: u64 = 2 << 20;
/// The memory that may be beyond the limit: the pages of some 200 KB that each thread has in hand, and as a quarter
/// of the limit those that were evicted while a thread may have had them in hand.
const SLACK: u64 = 2 << 20;

fn options() -> OpenOptions {
    OpenOptions {
        range_records: Some(512),
        memory_limit_bytes: Some(LIMIT),
        merge_threads: Some(1),
        ..OpenOptions::default()
    }
}

fn open(path: &Path) -> Database {
    Database::open_with(path, options()).unwrap()
}

fn create(db: &Database, layout: LayoutSetting) -> Table {
    let columns = vec![
        Column::new("id", DataType::BigInt),
        Column::new("noise", DataType::BigInt),
        Column::new("version", DataType::BigInt),
        Column::new("text", DataType::TEXT),
    ];
    let settings = TableSettings { layout, ..TableSettings::default() };
    db.create_table_with("t", Schema::new(columns, &["id", "noise"]).unwrap(), settings).unwrap()
}

fn noise(id: i64) -> i64 {
    id.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ id << 17
}

fn key(id: i64) -> [Value; 2] {
    [id, noise(id)].map(Value::from)
}

/// A row that no encoding makes much shorter: some 400 bytes.
fn row(id: i64, version: i64) -> Vec<Value> {
    let text: String = (0..24).map(|part| format!("{:016x}", noise(id * 31 + part) as u64)).collect();
    vec![Value::from(id), Value::from(noise(id)), Value::from(version), Value::from(text)]
}

fn load(db: &Database, table: &Table, ids: std::ops::Range<i64>) {
    let mut id = ids.start;
    while id < ids.end {
        let mut transaction = db.begin().unwrap();
        for id in id..(id + 500).min(ids.end) {
            let inserted = transaction.insert(table, &row(id, 0));
            inserted.unwrap_or_else(|error| panic!("{error} at {id}: {:?}, {:?}", db.memory(), db.evictions()));
        }
        transaction.commit().unwrap();
        id += 500;
        check_memory(db);
    }
}

fn check_memory(db: &Database) {
    check_within(db, LIMIT + SLACK);
}

/// Evicted pages go once their readers have gone on, which takes its time where other programs have the processors.
fn check_within(db: &Database, bytes: u64) {
    let end = Instant::now() + Duration::from_secs(20);
    while db.memory_used_bytes() > bytes {
        assert!(Instant::now() < end, "{} bytes: {:?}, {:?}", db.memory_used_bytes(), db.memory(), db.evictions());
        thread::sleep(Duration::from_millis(1));
    }
}

fn update(db: &Database, table: &Table, id: i64, version: i64) {
    let mut transaction = db.begin().unwrap();
    let updated = transaction.update(table, &key(id), &[("version", Value::from(version))]);
    assert!(updated.unwrap_or_else(|error| panic!("{error}: {:?}, {:?}", db.memory(), db.evictions())));
    transaction.commit().unwrap();
}

fn update_every(db: &Database, table: &Table, ids: std::ops::Range<i64>, step: usize, version: i64) {
    let ids: Vec<i64> = ids.step_by(step).collect();
    for ids in ids.chunks(50) {
        let mut transaction = db.begin().unwrap();
        for id in ids {
            let updated = transaction.update(table, &key(*id), &[("version", Value::from(version))]);
            assert!(updated.unwrap_or_else(|error| panic!("{error}: {:?}, {:?}", db.memory(), db.evictions())));
        }
        transaction.commit().unwrap();
        check_memory(db);
    }
}

fn get(table: &Table, at: Timestamp, id: i64) -> Option<(i64, String)> {
    let options = ScanOptions { columns: vec![1, 2, 3], ..ScanOptions::default() };
    let found = table.lookup(Snapshot::at(at), &key(id), &options).unwrap();
    let int = |column: usize| found.column(column).as_primitive::<Int64Type>().value(0);
    (found.num_rows() == 1).then(|| {
        assert_eq!(int(0), noise(id));
        (int(1), found.column(2).as_string_view().value(0).to_string())
    })
}

/// Every path at one time, where the row `id` has the version `version(id)`.
fn check(db: &Database, table: &Table, at: Timestamp, rows: i64, version: impl Fn(i64) -> i64) {
    let expected = |id: i64| row(id, version(id));
    let mut seen = 0;
    let options = ScanOptions { columns: vec![0, 2, 3], ..ScanOptions::default() };
    for batch in table.scan(Snapshot::at(at), options).unwrap().batches().map(Result::unwrap) {
        let (ids, versions) =
            (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        let texts = batch.column(2).as_string_view();
        for (i, id) in ids.values().iter().enumerate() {
            let expected = expected(*id);
            assert_eq!(
                (Value::from(versions.value(i)), Value::from(texts.value(i))),
                (expected[2].clone(), expected[3].clone())
            );
        }
        seen += batch.num_rows() as i64;
        check_memory(db);
    }
    assert_eq!(seen, rows);
    let totals = table.aggregate(Snapshot::at(at), &[], &[0, 2]).unwrap();
    let sum = |of: &dyn Fn(i64) -> i64| Sum::Integer((0..rows).map(|id| i128::from(of(id))).sum());
    assert_eq!((totals.rows as i64, totals.columns[0].sum), (rows, sum(&|id| id)));
    assert_eq!(totals.columns[1].sum, sum(&version));
    let few = (0, Test::Compare(Comparison::Less, Value::from(100i64)));
    assert_eq!(table.aggregate(Snapshot::at(at), &[few], &[1]).unwrap().rows, 100);
    for id in (0..rows).step_by(997) {
        let expected = expected(id);
        let (version, text) = get(table, at, id).expect("the row is there");
        assert_eq!((Value::from(version), Value::from(text)), (expected[2].clone(), expected[3].clone()), "row {id}");
        check_memory(db);
    }
    assert_eq!(get(table, at, rows), None);
}

#[test]
fn a_table_several_times_larger_than_memory_answers_as_one_in_memory() {
    for layout in [LayoutSetting::Column, LayoutSetting::Row] {
        let directory = tempfile::tempdir().unwrap();
        let db = open(directory.path());
        let table = create(&db, layout);
        load(&db, &table, 0..ROWS);
        let loaded = db.snapshot().at;
        check(&db, &table, loaded, ROWS, |_| 0);
        update_every(&db, &table, 0..ROWS, 7, 1);
        let between = db.snapshot().at;
        update_every(&db, &table, 0..ROWS, 11, 2);
        let first = |id: i64| i64::from(id % 7 == 0);
        let version = |id: i64| if id % 11 == 0 { 2 } else { first(id) };
        check(&db, &table, db.snapshot().at, ROWS, version);
        db.merge_now();
        db.checkpoint().unwrap();
        check(&db, &table, db.snapshot().at, ROWS, version);
        let memory = table.memory();
        assert!(memory.evicted_bytes > LIMIT, "{memory:?}");
        drop((table, db));
        let db = open(directory.path());
        check_memory(&db);
        let table = db.table("t").unwrap();
        for (at, version) in [(db.snapshot().at, &version as &dyn Fn(i64) -> i64), (between, &first), (loaded, &|_| 0)]
        {
            check(&db, &table, at, ROWS, version);
        }
        let stats = db.evictions();
        assert!(stats.evictions > 10 && stats.read_backs > 10 && stats.failures == 0, "{stats:?}");
        update(&db, &table, 3, 9);
        load(&db, &table, ROWS..ROWS + 1_000);
        assert_eq!(get(&table, db.snapshot().at, 3).map(|(version, _)| version), Some(9));
    }
}

/// Ends the other threads too when a thread panics.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Threads that read by key, scan and write, with several times as much data as memory.
#[test]
fn readers_and_writers_go_on_while_pages_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let table = create(&db, LayoutSetting::Column);
    load(&db, &table, 0..ROWS);
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _done = SetAtEnd(&done);
            for round in 1..=300 {
                update(&db, &table, round * 131 % ROWS, round);
                written.store(round as u64, Ordering::Release);
            }
        });
        let version_of =
            |id: i64, last: u64| (1..=last as i64).rev().find(|round| round * 131 % ROWS == id).unwrap_or(0);
        for thread in 0..2 {
            let (db, table, done, written) = (&db, &table, &done, &written);
            scope.spawn(move || {
                let mut id = thread * 17;
                while !done.load(Ordering::Acquire) {
                    id = (id + 7_919) % ROWS;
                    let before = written.load(Ordering::Acquire);
                    let (version, _) = get(table, db.snapshot().at, id).expect("the row is there");
                    assert!(version >= version_of(id, before), "row {id} has version {version}");
                    // All of it would take more; each thread has pages in hand, and may be kept waiting with them.
                    check_within(db, 3 * LIMIT);
                }
            });
        }
        while !done.load(Ordering::Acquire) {
            assert_eq!(table.aggregate(&db.read_view().unwrap(), &[], &[1]).unwrap().rows, ROWS as u64);
        }
    });
    assert!(db.memory().iter().any(|memory| memory.evicted_bytes > LIMIT), "{:?}", db.memory());
}

/// Insert pages stay in memory until their range is full, which is when they take much of the limit.
#[test]
fn a_range_that_would_be_larger_than_the_limit_is_filled() {
    let directory = tempfile::tempdir().unwrap();
    let options = || OpenOptions { range_records: Some(1 << 14), ..options() };
    let db = Database::open_with(directory.path(), options()).unwrap();
    let table = create(&db, LayoutSetting::Column);
    load(&db, &table, 0..ROWS);
    assert!(table.stats().ranges > 4, "{:?}", table.stats());
    check(&db, &table, db.snapshot().at, ROWS, |_| 0);
    drop((table, db));
    let db = Database::open_with(directory.path(), options()).unwrap();
    let table = db.table("t").unwrap();
    load(&db, &table, ROWS..ROWS + 2_000);
    check(&db, &table, db.snapshot().at, ROWS + 2_000, |_| 0);
}

/// Under a limit `verify` sees what it sees without one: every row, its old versions, its keys, and what is damaged.
#[test]
fn a_database_is_verified_in_less_memory_than_it_takes() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let table = create(&db, LayoutSetting::Column);
    load(&db, &table, 0..ROWS / 2);
    update_every(&db, &table, 0..ROWS / 2, 5, 1);
    db.checkpoint().unwrap();
    db.checkpoint().unwrap();
    drop((table, db));
    let within = Database::verify_within(directory.path(), Some(LIMIT), |_, _| ()).unwrap();
    let without = Database::verify(directory.path(), |_, _| ()).unwrap();
    assert_eq!((within.faults.as_slice(), without.faults.as_slice()), ([].as_slice(), [].as_slice()));
    let count = |found: &engine::Verification| (found.tables, found.rows, found.versions, found.index_entries);
    assert_eq!(count(&within), (1, ROWS as u64 / 2, ROWS as u64 * 6 / 10, ROWS as u64 / 2));
    assert_eq!((count(&within), within.checkpoint_bytes), (count(&without), without.checkpoint_bytes));
}

/// What a merge has replaced comes back once its readers have gone on: the system may run them late.
#[test]
fn a_statement_that_needs_memory_waits_for_readers_that_take_their_time() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let table = create(&db, LayoutSetting::Column);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let _reads = sync::pin();
                thread::sleep(Duration::from_millis(300));
            }
        });
        let _done = SetAtEnd(&done);
        for first in (0..12_000).step_by(500) {
            let mut transaction = db.begin().unwrap();
            for id in first..first + 500 {
                // Merged it takes next to nothing, so that there is next to nothing to evict.
                let row = [Value::from(id), Value::from(id), Value::from(0i64), Value::from("x".repeat(400))];
                let inserted = transaction.insert(&table, &row);
                inserted.unwrap_or_else(|error| panic!("{error} at {id}: {:?}, {:?}", db.memory(), db.evictions()));
            }
            transaction.commit().unwrap();
        }
    });
    assert_eq!(table.aggregate(&db.read_view().unwrap(), &[], &[0]).unwrap().rows, 12_000);
}

/// At the limit statements fail as before where nothing is left to evict: indexes and Indirection stay in memory.
#[test]
fn a_statement_fails_when_evicting_does_not_help() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let table = create(&db, LayoutSetting::Column);
    load(&db, &table, 0..5_000);
    db.set_memory_limit_bytes(Some(1_000));
    let mut transaction = db.begin().unwrap();
    let refused = transaction.insert(&table, &row(9_999, 0)).unwrap_err();
    assert!(matches!(refused, Error::OutOfMemory { limit: 1_000, .. }), "{refused}");
    transaction.rollback();
    let totals = table.aggregate(&db.read_view().unwrap(), &[], &[0]).unwrap();
    assert_eq!(totals.rows, 5_000, "a reader is not refused");
    assert_eq!(get(&table, db.snapshot().at, 4_999).map(|(version, _)| version), Some(0));
    db.set_memory_limit_bytes(Some(LIMIT));
    load(&db, &table, 5_000..6_000);
}

/// A blob that is damaged is an error of the statements that need its page, names the file, and harms no other.
#[test]
fn a_damaged_page_is_an_error_and_other_pages_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open_with(directory.path(), OpenOptions { memory_limit_bytes: None, ..options() }).unwrap();
    let table = create(&db, LayoutSetting::Column);
    load_without_limit(&db, &table, 4_500);
    // Merges that run in the background are waited for: their pages would be in no checkpoint.
    db.reclaim_now();
    db.checkpoint().unwrap();
    db.evict_now(u64::MAX);
    let at = db.snapshot().at;
    assert_eq!(get(&table, at, 4_000).map(|(version, _)| version), Some(0), "its range is in memory again");
    for file in std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap) {
        if file.file_name().to_string_lossy().ends_with(".blobs") {
            let bytes = vec![0x55; file.metadata().unwrap().len() as usize];
            std::fs::write(file.path(), bytes).unwrap();
        }
    }
    let options = ScanOptions { columns: vec![1], ..ScanOptions::default() };
    let error = table.lookup(Snapshot::at(at), &key(5), &options).unwrap_err();
    assert!(matches!(error, Error::Page(_)) && error.sqlstate() == "XX001", "{error}");
    assert!(error.to_string().contains(".blobs") && error.to_string().contains("byte"), "{error}");
    let scan = table.scan(Snapshot::at(at), options.clone()).unwrap();
    let (whole, failed): (Vec<_>, Vec<_>) = scan.partition(Result::is_ok);
    assert_eq!((whole.len(), failed.len()), (1, 8), "each range for itself");
    let mut transaction = db.begin().unwrap();
    assert!(transaction.update(&table, &key(5), &[("version", Value::from(1i64))]).is_err());
    assert!(transaction.update(&table, &key(4_000), &[("version", Value::from(1i64))]).unwrap());
    transaction.commit().unwrap();
    assert_eq!(get(&table, db.snapshot().at, 4_000).map(|(version, _)| version), Some(1));
    assert!(db.evictions().failures >= 4, "{:?}", db.evictions());
}

fn load_without_limit(db: &Database, table: &Table, rows: i64) {
    let mut transaction = db.begin().unwrap();
    for id in 0..rows {
        transaction.insert(table, &row(id, 0)).unwrap();
    }
    transaction.commit().unwrap();
}

/// Files that checkpoints have emptied or left behind stay as long as an evicted page is in them.
#[test]
fn evicted_pages_are_read_after_checkpoints_have_moved_or_forgotten_their_blobs() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open_with(directory.path(), OpenOptions { memory_limit_bytes: None, ..options() }).unwrap();
    let (table, other) = (create(&db, LayoutSetting::Column), "other");
    load_without_limit(&db, &table, 4_500);
    db.merge_now();
    db.checkpoint().unwrap();
    db.evict_now(u64::MAX);
    let view = db.read_view().unwrap();
    db.drop_table("t").unwrap();
    let columns = vec![Column::new("id", DataType::BigInt)];
    db.create_table(other, Schema::new(columns, &["id"]).unwrap()).unwrap();
    for id in 0..4i64 {
        let mut transaction = db.begin().unwrap();
        transaction.insert(&db.table(other).unwrap(), &[Value::from(id)]).unwrap();
        transaction.commit().unwrap();
        db.checkpoint().unwrap();
    }
    let totals = table.aggregate(&view, &[], &[3]).unwrap();
    assert_eq!((totals.rows, totals.columns[0].count), (4_500, 4_500), "a reader of a dropped table");
}
