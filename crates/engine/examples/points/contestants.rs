//! The contestants.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use engine::{
    Cell, Column, DataType, Database, Durability, Isolation, PointAccess, PointAction, PointStatement, ScanOptions,
    Schema, Sum, Table, Test, TransactionOptions, Value,
};
use foldhash::fast::FixedState;
use parking_lot::RwLock;
use tempfile::TempDir;

use crate::workload::{COLUMNS, Statement, Workload, loaded_row};

/// Runs a transaction and returns the sum of what it has read.
type Worker<'a> = Box<dyn FnMut(&Workload, &[Statement; 10]) -> i64 + 'a>;

/// A read of the whole table by its name.
pub type Scan<'a> = (&'static str, Box<dyn Fn() -> i64 + 'a>);

pub trait Contestant: Sync {
    fn name(&self) -> &'static str;
    fn worker(&self) -> Worker<'_>;
    /// The sum of a column.
    fn sum(&self) -> i64;
    /// Other reads of the whole table, with names.
    fn scans(&self) -> Vec<Scan<'_>> {
        Vec::new()
    }
    /// Waits for the background.
    fn settle(&self) {}
}

const STRIPES: usize = 64;

type Stripe = RwLock<HashMap<u64, [i64; COLUMNS], FixedState>>;

/// Rows in a hash map with latches, a latch a statement: no transactions, no versions.
pub struct Map(Vec<Stripe>);

impl Map {
    pub fn load(rows: u64) -> Map {
        let stripe = |_| Stripe::new(HashMap::with_hasher(FixedState::with_seed(1)));
        let map = Map((0..STRIPES).map(stripe).collect());
        for key in 0..rows {
            map.0[key as usize % STRIPES].write().insert(key, loaded_row(key));
        }
        map
    }
}

impl Contestant for Map {
    fn name(&self) -> &'static str {
        "map"
    }

    fn worker(&self) -> Worker<'_> {
        Box::new(|workload, statements| {
            let mut sum = 0_i64;
            for statement in statements {
                let stripe = &self.0[statement.key as usize % STRIPES];
                let columns = workload.columns(statement);
                if statement.is_update {
                    let mut rows = stripe.write();
                    let row = rows.get_mut(&statement.key).unwrap();
                    columns.iter().zip(&statement.values).for_each(|(column, value)| row[*column] = *value as i64);
                } else {
                    let rows = stripe.read();
                    let row = rows.get(&statement.key).unwrap();
                    sum = columns.iter().fold(sum, |sum, column| row[*column].wrapping_add(sum));
                }
            }
            sum
        })
    }

    fn sum(&self) -> i64 {
        self.0.iter().flat_map(|stripe| stripe.read().values().map(|row| row[1]).collect::<Vec<_>>()).sum()
    }
}

/// A database with the table.
struct Store {
    db: Database,
    table: Table,
    /// where its log is, if it has one
    _directory: Option<TempDir>,
}

impl Store {
    fn load(rows: u64) -> Store {
        Store::load_into(rows, Database::in_memory(), None)
    }

    /// With a log.
    fn load_logged(rows: u64) -> Store {
        let directory = tempfile::tempdir().unwrap();
        Store::load_into(rows, Database::open(directory.path()).unwrap(), Some(directory))
    }

    fn load_into(rows: u64, db: Database, directory: Option<TempDir>) -> Store {
        let names: Vec<String> = (0..COLUMNS).map(|column| format!("c{column}")).collect();
        let columns = names.iter().map(|name| Column::new(name, DataType::BigInt).not_null()).collect();
        let table = db.create_table("micro", Schema::new(columns, &["c0"]).unwrap()).unwrap();
        let fields: Vec<Field> = names.iter().map(|name| Field::new(name, ArrowType::Int64, false)).collect();
        let schema = Arc::new(ArrowSchema::new(fields));
        for first in (0..rows).step_by(8192) {
            let loaded: Vec<_> = (first..rows.min(first + 8192)).map(loaded_row).collect();
            let array =
                |at: usize| -> ArrayRef { Arc::new(loaded.iter().map(|row| Some(row[at])).collect::<Int64Array>()) };
            let batch = RecordBatch::try_new(schema.clone(), (0..COLUMNS).map(array).collect()).unwrap();
            db.run(options(), |transaction| transaction.insert_batch(&table, &batch)).unwrap();
        }
        Store { db, table, _directory: directory }
    }

    /// The sum of the rows that pass a test on another column, a fifth of them.
    fn filtered_sum(&self) -> i64 {
        let (view, fifth) = (self.db.read_view().unwrap(), (1_i64 << 31) / 5);
        let test = Test::Between(Value::BigInt(2 * fifth), Value::BigInt(3 * fifth - 1));
        match self.table.aggregate(&view, &[(2, test)], &[1]).unwrap().columns[0].sum {
            Sum::Integer(sum) => sum as i64,
            _ => unreachable!("a column of whole numbers"),
        }
    }

    /// The sum of a column by groups of another, from batches.
    fn grouped_sum(&self) -> i64 {
        let options = ScanOptions { columns: vec![1, 2], ..ScanOptions::default() };
        let scan = self.table.scan(&self.db.read_view().unwrap(), options).unwrap();
        let mut sums = [0_i64; 16];
        for batch in scan.batches() {
            let batch = batch.unwrap();
            let values = |at: usize| batch.column(at).as_primitive::<Int64Type>().values().clone();
            for (value, group) in values(0).iter().zip(&values(1)) {
                sums[(*group as u64 & 15) as usize] += value;
            }
        }
        sums.iter().enumerate().fold(0, |all, (group, sum)| all ^ sum.wrapping_mul(group as i64 + 1))
    }

    /// Added up anew, or kept running.
    fn sum(&self, anew: bool) -> i64 {
        let view = self.db.read_view().unwrap();
        let totals = if anew { self.table.aggregate(&view, &[], &[1]) } else { self.table.sums(&view, &[1]) };
        match totals.unwrap().columns[0].sum {
            Sum::Integer(sum) => sum as i64,
            _ => unreachable!("a column of whole numbers"),
        }
    }

    fn settle(&self) {
        let start = Instant::now();
        let bytes = || self.table.memory().tail_bytes + self.table.memory().history_bytes;
        let mut before = u64::MAX;
        while start.elapsed() < Duration::from_secs(10)
            && (self.db.merge_now() > 0 || self.table.stats().tail_records_unmerged > 0 || bytes() != before)
        {
            before = bytes();
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn options() -> TransactionOptions {
    TransactionOptions::at(Isolation::Snapshot)
}

/// A general call a statement.
pub struct Calls(Store);

impl Calls {
    pub fn load(rows: u64) -> Calls {
        Calls(Store::load(rows))
    }
}

impl Contestant for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn worker(&self) -> Worker<'_> {
        let Store { db, table, .. } = &self.0;
        let mut changes = Vec::new();
        Box::new(move |workload, statements| {
            let work = |transaction: &mut engine::Transaction| {
                let _pin = db.pin();
                let keys = statements.each_ref().map(|statement| [Value::BigInt(statement.key as i64)]);
                let rows = keys.iter().zip(statements);
                transaction.prefetch(table, rows.map(|(key, statement)| (&key[..], workload.columns(statement))));
                let mut sum = 0_i64;
                for (key, statement) in keys.iter().zip(statements) {
                    let columns = workload.columns(statement);
                    if statement.is_update {
                        changes.clear();
                        changes.extend(
                            columns.iter().copied().zip(statement.values.map(|word| Value::BigInt(word as i64))),
                        );
                        assert!(transaction.update_columns(table, key, &changes)?);
                        continue;
                    }
                    let add = |sum: i64, cell: &Cell<'_>| match cell {
                        Cell::Word(word) => sum.wrapping_add(*word as i64),
                        Cell::Null | Cell::Bytes(_) => sum,
                    };
                    let read = transaction.read(table, key, columns, |cells| cells.iter().fold(0, add))?;
                    sum = sum.wrapping_add(read.unwrap());
                }
                Ok::<i64, engine::Error>(sum)
            };
            db.run(options(), work).unwrap()
        })
    }

    fn sum(&self) -> i64 {
        self.0.sum(true)
    }

    fn settle(&self) {
        self.0.settle();
    }
}

/// Prepared access, a group a transaction.
pub struct Points {
    name: &'static str,
    options: TransactionOptions,
    /// whether the caller begins and commits transactions
    is_held: bool,
    /// a thread takes the next one, or all share one
    stores: Vec<Store>,
    workers: AtomicUsize,
}

impl Points {
    /// The contestants of these names, for so many threads.
    pub fn load(name: &str, rows: u64, threads: usize) -> Option<Points> {
        let logged = TransactionOptions { durability: Durability::Async, ..options() };
        let (name, options, stores) = match name {
            "points" => ("points", options(), vec![Store::load(rows)]),
            "held" => ("held", options(), vec![Store::load(rows)]),
            "serializable" => {
                ("serializable", TransactionOptions::at(Isolation::Serializable), vec![Store::load(rows)])
            }
            "committed" => ("committed", TransactionOptions::at(Isolation::ReadCommitted), vec![Store::load(rows)]),
            "logged" => ("logged", logged, vec![Store::load_logged(rows)]),
            "apart" => ("apart", options(), (0..threads).map(|_| Store::load(rows)).collect()),
            _ => return None,
        };
        Some(Points { name, options, is_held: name == "held", stores, workers: AtomicUsize::new(0) })
    }
}

impl Contestant for Points {
    fn name(&self) -> &'static str {
        self.name
    }

    fn worker(&self) -> Worker<'_> {
        let worker = self.workers.fetch_add(1, Ordering::Relaxed);
        let (Store { db, table, .. }, options) = (&self.stores[worker % self.stores.len()], self.options);
        let is_held = self.is_held;
        let mut prepared: Option<(Vec<PointAccess>, Vec<PointAccess>)> = None;
        Box::new(move |workload, statements| {
            let prepare = |sets: &[Vec<usize>]| -> Vec<PointAccess> {
                sets.iter().map(|set| table.point_access(set).unwrap().unwrap()).collect()
            };
            let (reads, updates) =
                prepared.get_or_insert_with(|| (prepare(&workload.read_sets), prepare(&workload.update_sets)));
            let mut read = [[0; 4]; 8];
            let mut outs = read.iter_mut();
            let mut group: [PointStatement<'_>; 10] = std::array::from_fn(|at| {
                let (statement, key) = (&statements[at], statements[at].key as i64);
                match outs.next() {
                    Some(out) => PointStatement::new(&reads[statement.set], key, PointAction::Read(out)),
                    None => PointStatement::new(&updates[statement.set], key, PointAction::Update(&statement.values)),
                }
            });
            match is_held {
                true => db.run(options, |transaction| transaction.run_points(&mut group)).unwrap(),
                false => drop(db.run_points(options, &mut group).unwrap()),
            }
            assert!(group.iter().all(|statement| statement.is_found));
            read.iter().flatten().fold(0, |sum, word| sum.wrapping_add(*word as i64))
        })
    }

    fn sum(&self) -> i64 {
        self.stores[0].sum(false)
    }

    fn scans(&self) -> Vec<Scan<'_>> {
        let store = &self.stores[0];
        vec![
            ("added anew", Box::new(|| store.sum(true))),
            ("filtered", Box::new(|| store.filtered_sum())),
            ("grouped", Box::new(|| store.grouped_sum())),
        ]
    }

    fn settle(&self) {
        self.stores.iter().for_each(Store::settle);
    }
}
