//! The database among the contestants: a table in memory, by the typed API.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use engine::{
    BareStatements, Cell, Column, DataType, Database, Durability, Isolation, LayoutSetting, OpenOptions, PointAccess,
    PointAction, PointStatement, Schema, Sum, Table, TableSettings, TableStats, Transaction, TransactionOptions, Value,
};
use smallvec::SmallVec;

use super::args::{Access, Layout, Retention, SumMethod};
use super::contestant::{Contestant, Worker};
use super::workload::{COLUMNS, Statement, loaded_row};
use crate::LabError;

/// Rows that one transaction loads.
const LOAD_ROWS: u64 = 65_536;
/// Rows in a batch handed over while loading.
const BATCH_ROWS: u64 = 8_192;
/// Records in a range, if nothing else is said; an eighth as many tail records make it due for a merge.
const RANGE_RECORDS: usize = 1 << 16;
/// Merges that are not at rest after this long are measured as part of what comes next.
const SETTLE_MAX: Duration = Duration::from_secs(10);
/// Longer than the background rests between two pieces of work.
const BETWEEN_LOOKS: Duration = Duration::from_millis(30);

/// How the table is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreOptions {
    /// Records in a range.
    pub(super) range_records: Option<usize>,
    /// Records in an update range.
    pub(super) update_range_records: Option<usize>,
    /// Unmerged tail records at which a range is merged.
    pub(super) merge_tail_records: Option<u64>,
    /// Threads that merge.
    pub(super) merge_threads: Option<usize>,
    /// How pages are laid out.
    pub(super) layout: Layout,
    /// How long old versions are kept.
    pub(super) retention: Retention,
    /// The isolation of transactions, or that there are none.
    pub(super) access: Access,
    /// How a column is summed.
    pub(super) sum: SumMethod,
    /// Whether the rows of a transaction are asked for before its first statement.
    pub(super) has_prefetch: bool,
    /// Whether each statement is a general call, not one of a group by prepared access.
    pub(super) has_calls: bool,
    /// The directory of the database, if it has a log: transactions do not wait for it.
    pub(super) directory: Option<PathBuf>,
}

impl StoreOptions {
    /// The tail records of the first rows of the table when all their ranges are due for a merge.
    pub(super) fn tail_records_due(&self, rows: u64) -> u64 {
        let range_records = self.range_records.unwrap_or(RANGE_RECORDS).next_power_of_two() as u64;
        let merge_tail_records = self.merge_tail_records.unwrap_or(range_records / 8);
        rows.div_ceil(range_records) * merge_tail_records
    }
}

/// The table in an lstore database.
pub(super) struct Lstore {
    database: Database,
    table: Table,
    names: Vec<String>,
    access: Access,
    sum: SumMethod,
    has_prefetch: bool,
    has_calls: bool,
    conflicts: AtomicU64,
}

impl Lstore {
    /// Makes the table and loads it.
    pub(super) fn load(rows: u64, options: &StoreOptions) -> Result<Lstore, LabError> {
        let StoreOptions { range_records, update_range_records, merge_tail_records, merge_threads, .. } = *options;
        let open = OpenOptions {
            range_records,
            update_range_records,
            merge_tail_records,
            merge_threads,
            ..OpenOptions::default()
        };
        let database = match &options.directory {
            None => Database::in_memory_with(&open),
            Some(directory) => Database::open_with(directory, open)?,
        };
        let names: Vec<String> = (0..COLUMNS).map(|column| format!("c{column}")).collect();
        let columns = names.iter().map(|name| Column::new(name, DataType::BigInt).not_null()).collect();
        let schema = Schema::new(columns, &["c0"]).map_err(|error| LabError::Failed(error.to_string()))?;
        let layout = match options.layout {
            Layout::Column => LayoutSetting::Column,
            Layout::Row => LayoutSetting::Row,
        };
        let retention = match options.retention {
            Retention::Forever => engine::Retention::Forever,
            Retention::None => engine::Retention::None,
        };
        let settings = TableSettings { layout, retention, ..TableSettings::default() };
        let table = database.create_table_with("micro", schema, settings)?;
        let fields: Vec<Field> = names.iter().map(|name| Field::new(name, ArrowType::Int64, false)).collect();
        let arrow_schema = Arc::new(ArrowSchema::new(fields));
        for first in (0..rows).step_by(LOAD_ROWS as usize) {
            let mut transaction = database.begin()?;
            let end = rows.min(first + LOAD_ROWS);
            for start in (first..end).step_by(BATCH_ROWS as usize) {
                let arrays = loaded_arrays(start, end.min(start + BATCH_ROWS));
                let batch = RecordBatch::try_new(arrow_schema.clone(), arrays)
                    .map_err(|error| LabError::Failed(error.to_string()))?;
                transaction.insert_batch(&table, &batch)?;
            }
            transaction.commit()?;
        }
        let StoreOptions { access, sum, has_prefetch, has_calls, .. } = *options;
        Ok(Lstore { database, table, names, access, sum, has_prefetch, has_calls, conflicts: AtomicU64::new(0) })
    }

    /// The statistics of the table now.
    pub(super) fn stats(&self) -> TableStats {
        self.table.stats()
    }

    /// Bytes of its tail and history pages.
    pub(super) fn version_bytes(&self) -> u64 {
        let memory = self.table.memory();
        memory.tail_bytes + memory.history_bytes
    }

    fn sum_in_storage(&self, column: usize) -> Result<i64, LabError> {
        let view = self.database.read_view()?;
        let totals = match self.sum {
            SumMethod::Running => self.table.sums(&view, &[column])?,
            SumMethod::Encoded | SumMethod::Batches => self.table.aggregate(&view, &[], &[column])?,
        };
        match totals.columns[0].sum {
            Sum::Integer(sum) => Ok(sum as i64),
            Sum::None | Sum::Float(_) => Err(LabError::Failed("a bigint column has no sum".to_owned())),
        }
    }

    fn sum_batches(&self, column: usize) -> Result<i64, LabError> {
        let transaction = self.database.begin()?;
        let mut sum = 0_i64;
        for batch in transaction.scan(&self.table, &[&self.names[column]])?.batches() {
            let batch = batch?;
            let array = batch.column(0).as_any().downcast_ref::<Int64Array>();
            let array = array.ok_or_else(|| LabError::Failed("a bigint column is no array of int64".to_owned()))?;
            sum = array.values().iter().fold(sum, |sum, value| sum.wrapping_add(*value));
        }
        Ok(sum)
    }
}

/// The columns of the rows with these keys.
fn loaded_arrays(start: u64, end: u64) -> Vec<ArrayRef> {
    let mut columns: [Vec<i64>; COLUMNS] = std::array::from_fn(|_| Vec::with_capacity((end - start) as usize));
    for key in start..end {
        columns.iter_mut().zip(loaded_row(key)).for_each(|(column, value)| column.push(value));
    }
    columns.into_iter().map(|column| Arc::new(Int64Array::from(column)) as ArrayRef).collect()
}

impl Contestant for Lstore {
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(LstoreWorker {
            store: self,
            changes: Vec::with_capacity(COLUMNS),
            keys: Vec::new(),
            accesses: Vec::new(),
            words: Vec::new(),
        })
    }

    fn sum(&self, column: usize) -> Result<i64, LabError> {
        match self.sum {
            SumMethod::Running | SumMethod::Encoded => self.sum_in_storage(column),
            SumMethod::Batches => self.sum_batches(column),
        }
    }

    fn settle(&self) {
        let start = Instant::now();
        // A range that the background merge is at work on is left to it: hence the rounds.
        while (self.database.merge_now() > 0 || self.pending() > 0) && start.elapsed() < SETTLE_MAX {
            thread::sleep(Duration::from_millis(1));
        }
        // History is made after the merges, and would disturb the contestant that is measured next.
        let mut before = self.version_bytes() + 1;
        while before != self.version_bytes() && start.elapsed() < SETTLE_MAX {
            before = self.version_bytes();
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn pending(&self) -> u64 {
        self.stats().tail_records_unmerged
    }

    fn conflicts(&self) -> u64 {
        self.conflicts.load(Ordering::Relaxed)
    }

    fn waits(&self) -> u64 {
        self.database.wait_counts().waits
    }
}

/// One thread's way to the table.
struct LstoreWorker<'s> {
    store: &'s Lstore,
    /// The changes of one update; here so that their room is kept.
    changes: Vec<(usize, Value)>,
    /// The keys of one transaction, likewise.
    keys: Vec<[Value; 1]>,
    /// The accesses prepared so far, by the numbers of their sets of columns.
    accesses: Vec<Option<PointAccess>>,
    /// The values that the statements of one transaction read and write.
    words: Vec<[u64; COLUMNS]>,
}

/// Takes the statements of one transaction: in a transaction of lstore, or without any.
trait Statements {
    fn prefetch<'k>(&self, rows: impl Iterator<Item = (&'k [Value], &'k [usize])>);
    fn read(&self, key: &[Value], columns: &[usize]) -> engine::Result<Option<i64>>;
    fn update(&mut self, key: &[Value], changes: &[(usize, Value)]) -> engine::Result<bool>;
}

impl Statements for BareStatements<'_> {
    fn prefetch<'k>(&self, rows: impl Iterator<Item = (&'k [Value], &'k [usize])>) {
        BareStatements::prefetch(self, rows);
    }

    fn read(&self, key: &[Value], columns: &[usize]) -> engine::Result<Option<i64>> {
        BareStatements::read(self, key, columns, sum_of_cells)
    }

    fn update(&mut self, key: &[Value], changes: &[(usize, Value)]) -> engine::Result<bool> {
        self.update_columns(key, changes)
    }
}

/// A transaction and its table.
struct Within<'t>(&'t mut Transaction, &'t Table);

impl Statements for Within<'_> {
    fn prefetch<'k>(&self, rows: impl Iterator<Item = (&'k [Value], &'k [usize])>) {
        self.0.prefetch(self.1, rows);
    }

    fn read(&self, key: &[Value], columns: &[usize]) -> engine::Result<Option<i64>> {
        self.0.read(self.1, key, columns, sum_of_cells)
    }

    fn update(&mut self, key: &[Value], changes: &[(usize, Value)]) -> engine::Result<bool> {
        self.0.update_columns(self.1, key, changes)
    }
}

impl LstoreWorker<'_> {
    /// The sum of the values read; `None` if a row was missing.
    fn run(&mut self, mut on: impl Statements, statements: &[Statement<'_>]) -> engine::Result<Option<i64>> {
        if self.store.has_prefetch {
            self.keys.clear();
            self.keys.extend(statements.iter().map(|statement| [Value::BigInt(statement.key as i64)]));
            let rows = self.keys.iter().zip(statements).map(|(key, statement)| (&key[..], statement.columns));
            on.prefetch(rows);
        }
        let mut sum = 0_i64;
        for statement in statements {
            let key = [Value::BigInt(statement.key as i64)];
            let is_found = match statement.new_values() {
                None => {
                    let read = on.read(&key, statement.columns)?;
                    sum = sum.wrapping_add(read.unwrap_or(0));
                    read.is_some()
                }
                Some(values) => {
                    self.changes.clear();
                    let values = values.iter().copied().map(Value::BigInt);
                    self.changes.extend(statement.columns.iter().copied().zip(values));
                    on.update(&key, &self.changes)?
                }
            };
            if !is_found {
                return Ok(None);
            }
        }
        Ok(Some(sum))
    }
}

impl LstoreWorker<'_> {
    /// Runs and commits the statements as one group by prepared access. Returns how often it was started again, and the sum of
    /// the values read; `None` if a row was missing.
    fn run_group(
        &mut self,
        options: TransactionOptions,
        statements: &[Statement<'_>],
    ) -> engine::Result<(u64, Option<i64>)> {
        self.words.resize(statements.len(), [0; COLUMNS]);
        for statement in statements {
            if self.accesses.len() <= statement.set {
                self.accesses.resize(statement.set + 1, None);
            }
            let access = &mut self.accesses[statement.set];
            if access.is_none() {
                *access = self.store.table.point_access(statement.columns)?;
            }
        }
        let mut group = Group::new();
        for (statement, words) in statements.iter().zip(&mut self.words) {
            let Some(access) = &self.accesses[statement.set] else { return Ok((0, None)) };
            let words = &mut words[..statement.columns.len()];
            let action = match statement.new_values() {
                None => PointAction::Read(words),
                Some(values) => {
                    words.iter_mut().zip(values).for_each(|(word, value)| *word = *value as u64);
                    PointAction::Update(words)
                }
            };
            group.push(PointStatement::new(access, statement.key as i64, action));
        }
        let again = self.store.database.run_points(options, &mut group)?;
        let has_all = group.iter().all(|statement| statement.is_found);
        drop(group);
        if !has_all {
            return Ok((again, None));
        }
        let reads = statements.iter().zip(&self.words).filter(|(statement, _)| statement.new_values().is_none());
        let words = reads.flat_map(|(statement, words)| &words[..statement.columns.len()]);
        Ok((again, Some(words.fold(0, |sum, word| sum.wrapping_add(*word as i64)))))
    }
}

/// The statements of a transaction; as many as they are by default need no memory of their own.
type Group<'s> = SmallVec<[PointStatement<'s>; 10]>;

/// The sum of the bigints of a row, wrapped.
fn sum_of_cells(cells: &[Cell<'_>]) -> i64 {
    cells.iter().fold(0, |sum, cell| match cell {
        Cell::Word(word) => sum.wrapping_add(*word as i64),
        Cell::Null | Cell::Bytes(_) => sum,
    })
}

impl LstoreWorker<'_> {
    /// Runs the statements as general calls of a transaction, as [`run_group`](Self::run_group).
    fn run_calls(
        &mut self,
        options: TransactionOptions,
        statements: &[Statement<'_>],
    ) -> engine::Result<(u64, Option<i64>)> {
        let Lstore { database, table, .. } = self.store;
        let mut tries = 0;
        let sum = database.run(options, |transaction| {
            tries += 1;
            // Under READ COMMITTED it may wait for others, which no pinned thread should.
            let _pin = (options.isolation != Isolation::ReadCommitted).then(|| database.pin());
            self.run(Within(transaction, table), statements)
        })?;
        Ok((tries - 1, sum))
    }
}

impl Worker for LstoreWorker<'_> {
    fn transact(&mut self, statements: &[Statement<'_>]) -> Result<i64, LabError> {
        let Lstore { database, table, access, has_calls, conflicts, .. } = self.store;
        let (again, sum) = match access.isolation() {
            None => {
                let _pin = database.pin();
                (0, self.run(table.bare().begin(), statements)?)
            }
            Some(isolation) => {
                let options = TransactionOptions { durability: Durability::Async, ..TransactionOptions::at(isolation) };
                match has_calls {
                    true => self.run_calls(options, statements)?,
                    false => self.run_group(options, statements)?,
                }
            }
        };
        if again > 0 {
            conflicts.fetch_add(again, Ordering::Relaxed);
        }
        sum.ok_or_else(|| LabError::Failed("lstore lost a row".to_owned()))
    }
}
