//! Transactions of one statement in memory, as a session runs a prepared statement: the transaction begins, the table is found by its
//! name, the statement is done, the transaction commits.
//!
//! ```text
//! cargo run --release -p lstore-engine --example statements -- insert count=100000
//! valgrind --tool=callgrind --toggle-collect='statements::counted' .../statements insert count=1000 [rows=70000 range=65536 keys=100]
//! ```
//!
//! | name | statement |
//! |---|---|
//! | `insert` | a row of ten columns, one of them in a second index |
//! | `update` | four columns of a row by its key, one of them made of its own value |
//! | `upsert` | two columns of a row by its key, as where a new row meets one |
//! | `index` | two columns of ten rows by the second index |
//! | `range` | two columns of a hundred rows, or `keys=`, by their keys; of ten rows `moved=3` were deleted and put in again before |
use std::hint::black_box;
use std::time::{Duration, Instant};

use engine::{
    CellRows, Column, DataType, Database, Durability, IndexDefinition, Isolation, OpenOptions, Schema, SeenTables,
    Table, TransactionOptions, Value, WordsUpdate,
};

/// More rows than a range has, so that there are base pages: only those of the first range are read and changed.
const ROWS: i64 = 70_000;
const RANGE_ROWS: i64 = 1 << 16;
/// Rows that are changed; each is changed several times.
const ACTIVE_ROWS: i64 = 500;
const ACCOUNTS_OF_OWNER: i64 = 10;
/// Keys of a range, unless it is said.
const RANGE_KEYS: i64 = 100;

struct Fixture {
    db: Database,
    table: Table,
    seen: SeenTables,
    update: WordsUpdate,
    upsert: WordsUpdate,
    options: TransactionOptions,
    rows: i64,
    base_rows: i64,
    range_keys: i64,
}

fn account(id: i64) -> [Value; 10] {
    std::array::from_fn(|at| match at {
        0 => id,
        1 => id / ACCOUNTS_OF_OWNER,
        _ => ((id as u64 * 10 + at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i64,
    })
    .map(Value::from)
}

impl Fixture {
    /// So many rows, of which some of ten were deleted and put in again.
    fn new(rows: i64, base_rows: i64, moved_of_ten: i64) -> Fixture {
        let range_records = usize::try_from(base_rows).ok();
        let db = Database::in_memory_with(&OpenOptions { range_records, ..OpenOptions::default() });
        let columns = (0..10).map(|at| Column::new(format!("c{at}"), DataType::BigInt).not_null()).collect();
        let table = db.create_table("accounts", Schema::new(columns, &["c0"]).unwrap()).unwrap();
        db.create_index("accounts", IndexDefinition::new("accounts_owner", &[1])).unwrap();
        let mut transaction = db.begin().unwrap();
        for id in 0..rows {
            transaction.insert(&table, &account(id)).unwrap();
        }
        transaction.commit().unwrap();
        db.merge_now();
        let mut transaction = db.begin().unwrap();
        for id in (0..rows).filter(|id| random(*id) % 10 < moved_of_ten) {
            transaction.delete(&table, &[Value::from(id)]).unwrap();
            transaction.insert(&table, &account(id)).unwrap();
        }
        transaction.commit().unwrap();
        db.merge_now();
        let words = |reads: &[usize], sets: &[usize]| table.words_update(reads, sets).unwrap().unwrap();
        let (update, upsert) = (words(&[2], &[2, 3, 4, 5]), words(&[3], &[2, 3]));
        let options = TransactionOptions {
            durability: Durability::Async,
            lock_timeout: Some(Duration::ZERO),
            ..TransactionOptions::at(Isolation::ReadCommitted)
        };
        Fixture {
            db,
            table,
            seen: SeenTables::default(),
            update,
            upsert,
            options,
            rows,
            base_rows,
            range_keys: RANGE_KEYS,
        }
    }

    fn insert(&mut self, row: &[Value]) {
        let (db, seen) = (&self.db, &mut self.seen);
        let done = db.run_once(self.options, |transaction| {
            let table = transaction.seen_to_write(seen, "accounts").ok()?;
            let mut rows = CellRows::new(table);
            assert!(row.iter().all(|value| rows.push(value)));
            transaction.insert_rows(&rows).ok()?;
            transaction.end_statement().ok()
        });
        assert_eq!(done.unwrap(), Some(()));
    }

    fn change(&mut self, key: i64, is_upsert: bool) {
        let (db, seen) = (&self.db, &mut self.seen);
        let update = if is_upsert { &self.upsert } else { &self.update };
        let done = db.run_once(self.options, |transaction| {
            let table = transaction.seen_to_write(seen, "accounts").ok()?;
            let is_done = transaction.update_at_once(table, update, key, |read, new| {
                new[0] = read[0].wrapping_add(3);
                new[1..].fill(7);
                Some(())
            });
            transaction.end_statement().ok()?;
            is_done.ok()
        });
        assert_eq!(done.unwrap(), Some(true));
    }

    /// Reads two columns of the rows with a number from `low` on in a column.
    fn read(&self, column: usize, low: i64, (numbers, rows): (i64, i64)) {
        let view = self.db.read_view().unwrap();
        let range = (column, low, low + numbers - 1);
        let (arrays, count) = self.table.rows_between(&view, range, &[0, 2]).unwrap().unwrap();
        assert_eq!((black_box(arrays).len(), count), (2, rows as usize));
    }
}

fn random(number: i64) -> i64 {
    ((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as i64
}

#[inline(never)]
fn counted(fixture: &mut Fixture, name: &str, from: i64, count: i64) {
    for number in from..from + count {
        match name {
            "insert" => fixture.insert(&account(fixture.rows + number)),
            "update" | "upsert" => fixture.change(random(number) % ACTIVE_ROWS, name == "upsert"),
            "index" => {
                fixture.read(1, random(number) % (fixture.base_rows / ACCOUNTS_OF_OWNER), (1, ACCOUNTS_OF_OWNER))
            }
            "range" => {
                let keys = fixture.range_keys;
                fixture.read(0, random(number) % (fixture.base_rows - keys), (keys, keys));
            }
            other => panic!("no statement is called {other}"),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let name = arguments.get(1).map_or("insert", String::as_str);
    let number = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name)?.parse().ok());
    let count = number("count=").unwrap_or(1_000);
    let (rows, base_rows) = (number("rows=").unwrap_or(ROWS), number("range=").unwrap_or(RANGE_ROWS));
    let mut fixture = Fixture::new(rows, base_rows, number("moved=").unwrap_or(0));
    fixture.range_keys = number("keys=").unwrap_or(RANGE_KEYS);
    let started = Instant::now();
    counted(&mut fixture, name, 0, count);
    println!("{name}: {:.0} ns", started.elapsed().as_nanos() as f64 / count as f64);
}
