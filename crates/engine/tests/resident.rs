//! What the process has resident stays near the memory limit, the allocator included, and pages make room for what else is in the
//! process. One test alone: the process is measured as a whole.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use engine::{Column, DataType, Database, OpenOptions, ScanOptions, Schema, Table, Value};

const LIMIT: u64 = 64 << 20;
/// What may be resident beyond the limit.
const BEYOND: u64 = 100 << 20;
/// Three times the limit.
const ROWS: i64 = 24_000;
const TEXT_BYTES: usize = 8_000;

fn open(path: &Path) -> Database {
    let options = OpenOptions {
        range_records: Some(4_096),
        memory_limit_bytes: Some(LIMIT),
        merge_threads: Some(1),
        ..OpenOptions::default()
    };
    Database::open_with(path, options).unwrap()
}

/// What texts are cut from: letters in no order.
fn letters() -> String {
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        char::from(b' ' + (state >> 58) as u8)
    };
    (0..1 << 20).map(letter).collect()
}

fn load(db: &Database, table: &Table, letters: &str, ids: std::ops::Range<i64>) {
    let mut transaction = db.begin().unwrap();
    for id in ids {
        let from = id as usize * 7_919 % (letters.len() - TEXT_BYTES);
        let row = [Value::from(id), Value::from(&letters[from..from + TEXT_BYTES])];
        transaction.insert(table, &row).unwrap_or_else(|error| panic!("{error} at {id}: {:?}", db.memory()));
    }
    transaction.commit().unwrap();
}

/// Reads all rows, and returns how many bytes their texts have.
fn scan(db: &Database, table: &Table) -> usize {
    let options = ScanOptions { columns: vec![1], ..ScanOptions::default() };
    let rows = table.scan(db.snapshot(), options).unwrap();
    let bytes = |batch: RecordBatch| batch.column(0).as_string_view().iter().flatten().map(str::len).sum::<usize>();
    rows.batches().map(|batch| bytes(batch.unwrap())).sum()
}

/// Waits until something is small, as it becomes where other programs have the processors as well.
fn settles(db: &Database, what: &str, bytes: impl Fn() -> u64, max: u64) {
    let end = Instant::now() + Duration::from_secs(30);
    while bytes() > max {
        let (resident, used) = (sync::process::resident_bytes(), db.memory_used_bytes());
        assert!(Instant::now() < end, "{what}: {resident:?} resident, {used} counted, {:?}", db.memory());
        thread::sleep(Duration::from_millis(5));
    }
}

fn resident() -> u64 {
    sync::process::resident_bytes().unwrap()
}

#[test]
fn what_is_resident_stays_near_the_limit_and_pages_make_room_for_what_else_there_is() {
    let (folder, letters) = (tempfile::tempdir().unwrap(), letters());
    let db = open(folder.path());
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("text", DataType::TEXT)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    for from in (0..ROWS).step_by(500) {
        load(&db, &table, &letters, from..from + 500);
        settles(&db, "loading", resident, LIMIT + BEYOND);
    }
    for _ in 0..2 {
        thread::scope(|scope| {
            (0..2).for_each(|_| {
                scope.spawn(|| assert!(scan(&db, &table) == ROWS as usize * TEXT_BYTES));
            });
        });
        settles(&db, "scanning", resident, LIMIT + BEYOND);
    }
    // What the process has of its own makes pages go, and statements go on.
    let ballast = vec![1_u8; 2 * LIMIT as usize];
    settles(&db, "beside a ballast", || db.memory_used_bytes(), LIMIT / 2);
    load(&db, &table, &letters, ROWS..ROWS + 500);
    settles(&db, "beside a ballast", resident, LIMIT + BEYOND + ballast.len() as u64);
    assert_eq!(scan(&db, &table), (ROWS as usize + 500) * TEXT_BYTES);
}
