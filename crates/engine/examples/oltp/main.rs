//! Transactions of a wholesaler (TPC-C's five types) and of a brokerage (six that are like TPC-E's), one after the other, for tools
//! that watch a program run: crate `sim` has their instructions and data recorded by valgrind.
//!
//! ```text
//! cargo run --release -p lstore-sim --example record                    records them: builds this program and runs it under valgrind
//! cargo run --release -p lstore-engine --example oltp -- [COUNT]        runs COUNT of each type (12) and tells what they did
//! ```
//!
//! ```text
//! output:  marks at ADDRESS      where the words of `MARKS` are; then a line of input is awaited
//! word 0 is written when a transaction has ended, word 1 + type when one of a type begins
//! ```
//!
//! The database is in memory and small: the code is the same as over a large one, and recording it takes minutes, as lackey
//! writes a line for each instruction and access.
mod brokerage;
mod wholesaler;

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{Column, DataType, Database, OpenOptions, Result, Schema, Table, Transaction, Value};

/// Small ranges: filling and merging large ones would take most of the time of a recording.
const RANGE_RECORDS: usize = 1_024;

/// Types are below this.
const TYPES: usize = 32;
/// Types of the brokerage begin here.
const BROKERAGE: usize = 16;

static MARKS: [AtomicU64; TYPES + 1] = [const { AtomicU64::new(0) }; TYPES + 1];

/// Numbers by chance (splitmix).
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(word ^ (word >> 31)) * end as u128) >> 64) as i64
    }

    /// A number below `end`, small ones more often: as the papers' benchmarks choose customers and items.
    fn skewed(&mut self, end: i64) -> i64 {
        let width = self.below(end) + 1;
        self.below(width)
    }
}

/// A table of bigint columns, of which the first `keys` are the primary key, and a text.
fn table(db: &Database, name: &str, keys: usize, numbers: usize) -> Result<Table> {
    let names: Vec<String> = (0..numbers).map(|column| format!("n{column}")).collect();
    let mut columns: Vec<Column> =
        names.iter().map(|column| Column::new(column.as_str(), DataType::BigInt).not_null()).collect();
    columns.push(Column::new("note", DataType::TEXT));
    let key: Vec<&str> = names[..keys].iter().map(String::as_str).collect();
    db.create_table(name, Schema::new(columns, &key).map_err(engine::Error::from)?)
}

/// Numbers as values of a row or key.
fn values(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().map(|&number| Value::BigInt(number)).collect()
}

/// A row: numbers, and a note of some length.
fn row(numbers: &[i64], note: usize) -> Vec<Value> {
    let mut row = values(numbers);
    row.push(Value::from("a note on this row, as long as it must be"[..note.min(40)].to_owned()));
    row
}

fn number(row: &[Value], at: usize) -> i64 {
    if let Some(&Value::BigInt(number)) = row.get(at) { number } else { 0 }
}

/// The numbers of a row that is there.
fn get(transaction: &Transaction, table: &Table, key: &[i64]) -> Result<Vec<Value>> {
    Ok(transaction.get(table, &values(key))?.unwrap_or_default())
}

/// Adds to a number of a row; what it is now.
fn add(transaction: &mut Transaction, table: &Table, key: &[i64], column: usize, by: i64) -> Result<i64> {
    let now = number(&get(transaction, table, key)?, column) + by;
    transaction.update_columns(table, &values(key), &[(column, Value::BigInt(now))])?;
    Ok(now)
}

/// Runs one transaction.
type Run<'a> = &'a mut dyn FnMut(&mut Random) -> Result<()>;

/// Runs `count` transactions of each type, the types in turn by chance; how many of each committed.
fn run_all(count: usize, types: &mut [(usize, Run<'_>)]) -> Result<Vec<u64>> {
    let mut random = Random(7);
    let mut left: Vec<usize> = (0..types.len()).flat_map(|at| std::iter::repeat_n(at, count)).collect();
    let mut committed = vec![0; types.len()];
    while !left.is_empty() {
        let at = left.swap_remove(random.below(left.len() as i64) as usize);
        let (kind, run) = &mut types[at];
        MARKS[1 + *kind].store(1, Ordering::SeqCst);
        let outcome = run(&mut random);
        MARKS[0].store(1, Ordering::SeqCst);
        outcome?;
        committed[at] += 1;
    }
    Ok(committed)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map_or(Ok(12), |text| text.parse())?;
    println!("marks at {:#x}", MARKS.as_ptr() as usize);
    std::io::stdout().flush()?;
    std::io::stdin().read_line(&mut String::new())?;
    let db = Database::in_memory_with(&OpenOptions { range_records: Some(RANGE_RECORDS), ..OpenOptions::default() });
    let wholesaler = wholesaler::Wholesaler::load(&db)?;
    let brokerage = brokerage::Brokerage::load(&db)?;
    while db.merge_now() > 0 {}
    for (name, committed) in wholesaler::NAMES.iter().zip(wholesaler.run(&db, count)?) {
        println!("{name}: {committed} committed");
    }
    for (name, committed) in brokerage::NAMES.iter().zip(brokerage.run(&db, count)?) {
        println!("{name}: {committed} committed");
    }
    Ok(())
}
