//! What a checkpoint copies in memory, beside what a snapshot of that memory would have to keep: base pages and history are written from
//! where they lie, as nobody changes them in place.
//!
//! Rows are loaded and merged; then one thread updates rows anywhere in the table while a checkpoint is taken. A physical snapshot would
//! copy all pages. A virtual one would copy each page that the writer changes in place meanwhile.
//!
//! `cargo run --release -p lstore-engine --example checkpoint_copies -- [ROWS]`
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use engine::{Column, DataType, Database, Schema, Table, TransactionOptions, Value};

/// The rows of a transaction that loads.
const LOADED: i64 = 10_000;

/// The memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or_default() << 10
}

fn load(db: &Database, rows: i64) -> Result<Table, Box<dyn Error>> {
    let columns = ["id", "a", "b", "c"].map(|name| Column::new(name, DataType::BigInt));
    let table = db.create_table("t", Schema::new(columns.to_vec(), &["id"])?)?;
    for first in (0..rows).step_by(LOADED as usize) {
        db.run(TransactionOptions::default(), |transaction| {
            (first..rows.min(first + LOADED)).try_for_each(|id| {
                let row = [id, id.wrapping_mul(0x5851_F42D), id ^ 0x2545_F491, id * id];
                transaction.insert(&table, &row.map(Value::from)).map(drop)
            })
        })?;
    }
    db.merge_now();
    Ok(table)
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows: i64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let directory = tempfile::tempdir()?;
    let db = Database::open(directory.path())?;
    let table = load(&db, rows)?;
    let [is_over, updates, most] = [const { AtomicU64::new(0) }; 3];
    let is_writing = AtomicBool::new(false);
    let report = std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut id = 7;
            while is_over.load(Ordering::Relaxed) == 0 {
                id = (id * 48_271 + 11) % rows;
                let set = [("a", Value::from(id))];
                let updated = db.run(TransactionOptions::default(), |t| t.update(&table, &[Value::from(id)], &set));
                updates.fetch_add(u64::from(updated.is_ok()), Ordering::Relaxed);
                is_writing.store(true, Ordering::Relaxed);
            }
        });
        while !is_writing.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let (resident, used, done) = (resident_bytes(), db.memory_used_bytes(), updates.load(Ordering::Relaxed));
        threads.spawn(|| {
            while is_over.load(Ordering::Relaxed) == 0 {
                most.fetch_max(resident_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let report = db.checkpoint();
        is_over.store(1, Ordering::Relaxed);
        let grown = most.load(Ordering::Relaxed).saturating_sub(resident);
        let new_versions = db.memory_used_bytes().saturating_sub(used);
        report.map(|report| (report, grown, new_versions, updates.load(Ordering::Relaxed) - done))
    });
    let (report, grown, new_versions, done) = report?;
    let (memory, kib) = (table.memory(), |bytes: u64| bytes >> 10);
    println!("{rows} rows, {done} updates while a checkpoint took {} ms", report.time.as_millis());
    println!("pages that are written once and never changed  {:>9} KiB", kib(memory.base_bytes + memory.history_bytes));
    println!("pages that grow at their end                   {:>9} KiB", kib(memory.insert_bytes + memory.tail_bytes));
    println!("the checkpoint wrote                           {:>9} KiB", kib(report.written_bytes));
    println!("memory grew by at most                         {:>9} KiB", kib(grown));
    println!("  of that, new versions                        {:>9} KiB", kib(new_versions));
    Ok(())
}
