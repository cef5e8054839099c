//! The cost and gain of dictionaries of text in insert and tail pages: the same rows with them and without, in
//! turns.
//!
//! ```text
//! cargo run --release -p lstore-engine --example text_dictionary -- [ROUNDS] [ROWS] [DISTINCT ...]
//! ```
//!
//! Rows have a key and a text of 12 to 30 bytes, by chance one of 10, 1,000, 4,000 or 20,000 values, or one of its own. In
//! each turn a new database in memory takes the rows (fewer than a range has room for, so that nothing is merged yet), is asked
//! for them by key in another order, is merged, and then takes new texts for some of the rows and new numbers for the same (in
//! tail records that repeat the texts), which are merged again.
//! Printed are medians, of times those that the thread spent on a processor: others may be busy on this one.
use engine::{Column, DataType, Database, OpenOptions, Schema, Table, TextDictionaries, TransactionOptions, Value};

/// Rows in a transaction.
const BATCH: i64 = 500;
/// Of the text, and as many of another column. Each is two tail records, the old value and the new one; together they are fewer
/// than are merged in the background.
const UPDATES: i64 = 2_000;
const WHERE: [TextDictionaries; 3] =
    [TextDictionaries::Nowhere, TextDictionaries::InsertPages, TextDictionaries::AllPages];
const DISTINCT: [u64; 5] = [10, 1_000, 4_000, 20_000, u64::MAX];
const METRICS: [&str; 11] = [
    "insert, rows/ms",
    "insert pages, KB",
    "read, rows/ms",
    "merge, ms",
    "insert and merge, ms",
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

/// Milliseconds that this thread has run.
fn time_ms() -> f64 {
    // The system updates a thread's run time when it chooses the next thread to run.
    std::thread::yield_now();
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    spent.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

fn in_transactions(db: &Database, rows: i64, mut action: impl FnMut(&mut engine::Transaction, i64)) -> f64 {
    let begun = time_ms();
    for first in (0..rows).step_by(BATCH as usize) {
        let each = |transaction: &mut engine::Transaction| {
            (first..rows.min(first + BATCH)).for_each(|row| action(transaction, row));
            Ok::<(), engine::Error>(())
        };
        db.run(TransactionOptions::default(), each).unwrap();
    }
    time_ms() - begun
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
fn turn(text_dictionaries: TextDictionaries, distinct: u64, rows: i64) -> Vec<f64> {
    let options = OpenOptions { text_dictionaries, ..OpenOptions::default() };
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
        let begun = time_ms();
        assert_eq!(db.merge_now(), 1);
        time_ms() - begun
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
        inserted + merged,
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
    let cases: Vec<u64> = arguments.iter().skip(2).map(|distinct| *distinct as u64).collect();
    for distinct in if cases.is_empty() { DISTINCT.to_vec() } else { cases } {
        let mut measured = vec![vec![Vec::new(); METRICS.len()]; WHERE.len()];
        for round in 0..rounds.max(1) as usize {
            for turn_of in 0..WHERE.len() {
                // No setting always follows the same one.
                let at = (round + if round % 2 == 0 { turn_of } else { WHERE.len() - turn_of }) % WHERE.len();
                for (metric, value) in turn(WHERE[at], distinct, rows).into_iter().enumerate() {
                    measured[at][metric].push(value);
                }
            }
        }
        println!("{} values", if distinct == u64::MAX { "all different".into() } else { distinct.to_string() });
        for (metric, name) in METRICS.iter().enumerate() {
            let [nowhere, inserts, all] = [0, 1, 2].map(|at: usize| median(&mut measured[at][metric]));
            println!(
                "  {name:22} nowhere {nowhere:8.1}   insert pages {inserts:8.1} {:6.3}   all pages {all:8.1} {:6.3}",
                inserts / nowhere,
                all / nowhere
            );
        }
    }
}
