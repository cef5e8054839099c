//! What dictionaries of text cost and save in insert and tail pages: the same rows with them and without, in turns.
//!
//! ```text
//! cargo run --release -p engine --example text_dictionary -- [ROUNDS] [ROWS]
//! ```
//!
//! Rows have a key and a text of 12 to 30 bytes, by chance one of 10, 1,000, 4,000 or 20,000 values, or one of its own. In
//! each turn a new database in memory takes the rows (fewer than a range has room for, so that nothing is merged yet), is asked
//! for them by key in another order, is merged, and then takes new texts for some of the rows and new numbers for the same (in
//! tail records that repeat the texts), which are merged again.
//! Printed are medians.
use std::time::Instant;

use engine::{Column, DataType, Database, OpenOptions, Schema, Table, TransactionOptions, Value};

/// Rows in a transaction.
const BATCH: i64 = 500;
/// Of the text, and as many of another column. Each is two tail records, the old value and the new one; together they are fewer
/// than are merged in the background.
const UPDATES: i64 = 2_000;
const DISTINCT: [u64; 5] = [10, 1_000, 4_000, 20_000, u64::MAX];
const METRICS: [&str; 10] = [
    "insert, rows/ms",
    "insert pages, KB",
    "read, rows/ms",
    "merge, ms",
    "base pages, KB",
    "update text, rows/ms",
    "update other, rows/ms",
    "tail pages, KB",
    "read newest, rows/ms",
    "second merge, ms",
];

fn mixed(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Text of 12 to 30 bytes.
fn text(number: u64, distinct: u64) -> String {
    let number = if distinct == u64::MAX { mixed(number) } else { mixed(mixed(number) % distinct) };
    format!("{:012}{}", number % 1_000_000_000_000, &"abcdefghijklmnopqr"[..(number % 19) as usize])
}

fn in_transactions(db: &Database, rows: i64, mut action: impl FnMut(&mut engine::Transaction, i64)) -> f64 {
    let begun = Instant::now();
    for first in (0..rows).step_by(BATCH as usize) {
        let each = |transaction: &mut engine::Transaction| {
            (first..rows.min(first + BATCH)).for_each(|row| action(transaction, row));
            Ok::<(), engine::Error>(())
        };
        db.run(TransactionOptions::default(), each).unwrap();
    }
    begun.elapsed().as_secs_f64() * 1e3
}

/// Milliseconds that reading rows takes, in an order by chance.
fn read(db: &Database, table: &Table, texts: &[String], rows: i64, first: u64) -> f64 {
    let mut length = 0;
    let took = in_transactions(db, rows, |transaction, row| {
        let key = (mixed(first + row as u64) % rows as u64) as i64;
        let expected = texts[key as usize].len();
        let is_right =
            |cells: &[engine::Cell<'_>]| matches!(cells[0], engine::Cell::Bytes(text) if text.len() == expected);
        length += usize::from(transaction.read(table, &[Value::from(key)], &[2], is_right).unwrap().unwrap());
    });
    assert_eq!(length as i64, rows, "every text has its length");
    took
}

/// One turn, all metrics.
fn turn(text_dictionaries: bool, distinct: u64, rows: i64) -> Vec<f64> {
    let options = OpenOptions { text_dictionaries: Some(text_dictionaries), ..OpenOptions::default() };
    let db = Database::in_memory_with(&options);
    let columns = ["id", "n"].map(|name| Column::new(name, DataType::BigInt));
    let columns = columns.into_iter().chain([Column::new("name", DataType::TEXT)]).collect();
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let mut texts: Vec<String> = (0..rows as u64).map(|row| text(row, distinct)).collect();
    let values: Vec<Value> = texts.iter().map(|text| Value::from(text.as_str())).collect();
    let inserted = in_transactions(&db, rows, |transaction, row| {
        transaction.insert(&table, &[Value::from(row), Value::from(row), values[row as usize].clone()]).unwrap();
    });
    let insert_bytes = table.memory().insert_bytes;
    let read_inserted = read(&db, &table, &texts, rows, 1);
    let merge = || {
        let begun = Instant::now();
        assert_eq!(db.merge_now(), 1);
        begun.elapsed().as_secs_f64() * 1e3
    };
    let base_before = table.memory().base_bytes;
    let merged = merge();
    let base_bytes = table.memory().base_bytes - base_before;
    let updates = UPDATES.min(rows);
    (0..updates as usize).for_each(|row| texts[row] = text((rows as usize + row) as u64, distinct));
    let values: Vec<Value> = texts[..updates as usize].iter().map(|text| Value::from(text.as_str())).collect();
    let updated = in_transactions(&db, updates, |transaction, row| {
        transaction.update_columns(&table, &[Value::from(row)], &[(2, values[row as usize].clone())]).unwrap();
    });
    let updated_other = in_transactions(&db, updates, |transaction, row| {
        transaction.update_columns(&table, &[Value::from(row)], &[(1, Value::from(-row))]).unwrap();
    });
    let tail_bytes = table.memory().tail_bytes;
    let read_newest = read(&db, &table, &texts, updates, 2);
    let merged_again = merge();
    let rate = |rows: i64, took: f64| rows as f64 / took;
    let kilobytes = |bytes: u64| bytes as f64 / 1024.0;
    vec![
        rate(rows, inserted),
        kilobytes(insert_bytes),
        rate(rows, read_inserted),
        merged,
        kilobytes(base_bytes),
        rate(updates, updated),
        rate(updates, updated_other),
        kilobytes(tail_bytes),
        rate(updates, read_newest),
        merged_again,
    ]
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<i64> = std::env::args().skip(1).map(|number| number.parse().unwrap()).collect();
    let number = |at: usize, other: i64| arguments.get(at).copied().unwrap_or(other);
    let (rounds, rows) = (number(0, 9), number(1, 60_000));
    for distinct in DISTINCT {
        let mut measured = [vec![Vec::new(); METRICS.len()], vec![Vec::new(); METRICS.len()]];
        for round in 0..2 * rounds.max(1) {
            // Each goes first every other time.
            let is_with = (round % 4 == 0) || (round % 4 == 3);
            for (metric, value) in turn(is_with, distinct, rows).into_iter().enumerate() {
                measured[usize::from(is_with)][metric].push(value);
            }
        }
        println!("{} values", if distinct == u64::MAX { "all different".into() } else { distinct.to_string() });
        for (metric, name) in METRICS.iter().enumerate() {
            let [without, with] = [0, 1].map(|at: usize| median(&mut measured[at][metric]));
            println!("  {name:22} without {without:9.1}   with {with:9.1}   {:.3}", with / without);
        }
    }
}
