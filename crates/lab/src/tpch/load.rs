//! Loads the tables: work is cut into parts of about a range each, which a few threads take in turn.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use engine::{Database, Error, Result};
use parking_lot::Mutex;

use super::rows::{self, Rows};
use super::tables::{TABLES, create_tables, scaled};
use crate::Progress;

/// How many rows one transaction loads, about: ranges that it fills are encoded once, for the log and for good.
const TRANSACTION_ROWS: u64 = 1 << 20;
/// Rows that are not committed stay in memory: a part for this many bytes of its limit, but one of a range at least.
const LIMIT_BYTES_A_ROW: u64 = 8 << 10;
const ROWS_MIN: u64 = 1 << 16;
/// More threads than this meet in the generator's memory bandwidth.
const THREADS_MAX: usize = 8;

/// One part of one table.
struct Job {
    table: &'static str,
    part: i32,
    parts: i32,
}

/// About how many rows a table has. Of `lineitem` it is the average: an order has 1 to 7 lines.
pub(super) fn rows_expected(table: &str, sf: f64) -> u64 {
    match table {
        "region" => 5,
        "nation" => 25,
        "supplier" => scaled(10_000, sf),
        "customer" => scaled(150_000, sf),
        "part" => scaled(200_000, sf),
        "partsupp" => 4 * scaled(200_000, sf),
        "orders" => scaled(1_500_000, sf),
        "lineitem" => 4 * scaled(1_500_000, sf),
        other => panic!("TPC-H has no table {other}"),
    }
}

/// Makes the eight tables and loads the data of this scale factor; returns how many rows there are. `region` is
/// committed last, when all else is: a load that was cut off is known by its absence.
///
/// # Errors
/// As [`create_tables`]; what [`Transaction::insert_batch`](engine::Transaction::insert_batch) and
/// [`Transaction::commit`](engine::Transaction::commit) fail with, for example at the memory limit or on a full disk.
/// The parts that were committed by then stay.
pub fn load(db: &Database, sf: f64, progress: &dyn Progress) -> Result<u64> {
    create_tables(db)?;
    let total = TABLES.iter().map(|table| rows_expected(table, sf)).sum();
    progress.start(&format!("loading TPC-H, scale factor {sf}"), total);
    let limited_rows = db.memory_limit_bytes().map_or(u64::MAX, |limit| limit / LIMIT_BYTES_A_ROW);
    let transaction_rows = limited_rows.clamp(ROWS_MIN, TRANSACTION_ROWS);
    let (jobs, texts) = (jobs(sf, transaction_rows), rows::text_pool());
    let rows = Rows::with_texts(sf, &texts);
    let next = AtomicUsize::new(0);
    let loaded = Mutex::new(Ok(0));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = load_part(db, job, rows, progress);
                    let mut loaded = loaded.lock();
                    match (done, loaded.as_mut()) {
                        (Ok(count), Ok(sum)) => *sum += count,
                        (Err(error), Ok(_)) => *loaded = Err(error),
                        (_, Err(_)) => return,
                    }
                }
            });
        }
    });
    let loaded = loaded.into_inner()?;
    let last = load_part(db, &Job { table: "region", part: 1, parts: 1 }, rows, progress)?;
    Ok(loaded + last)
}

/// The parts of all tables but `region`, the large ones first.
fn jobs(sf: f64, transaction_rows: u64) -> Vec<Job> {
    let tables = TABLES.iter().rev().filter(|table| **table != "region");
    let parts = |table: &&'static str| {
        let table = *table;
        let count = rows_expected(table, sf).div_ceil(transaction_rows).max(1);
        let parts = i32::try_from(count).expect("a scale factor has an upper bound");
        (1..=parts).map(move |part| Job { table, part, parts })
    };
    tables.flat_map(parts).collect()
}

/// Loads a part in one transaction.
fn load_part(db: &Database, job: &Job, rows: Rows<'_>, progress: &dyn Progress) -> Result<u64> {
    let table = db.table(job.table)?;
    let mut transaction = db.begin()?;
    let mut count = 0;
    for batch in rows.batches(job.table, job.part, job.parts) {
        let inserted = transaction.insert_batch(&table, &batch)?;
        progress.advance(inserted);
        count += inserted;
    }
    match transaction.commit() {
        Ok(_) => Ok(count),
        Err(Error::Conflict) => unreachable!("no two parts hold the same key"),
        Err(error) => Err(error),
    }
}
