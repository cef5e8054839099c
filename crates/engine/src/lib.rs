//! The engine: where storage, indexes, transactions and the log meet.
#![allow(missing_docs, unused_variables)]
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
pub use types::{Column, DataType, Decimal, Rid, Schema, SchemaError, Snapshot, Timestamp, TxnId, Value};

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("table \"{0}\" does not exist")]
    NoSuchTable(String),
    #[error("table \"{0}\" already exists")]
    TableExists(String),
    #[error("column \"{column}\" of table \"{table}\" does not exist")]
    NoSuchColumn { table: String, column: String },
    #[error("{0}")]
    BadSchema(#[from] SchemaError),
    #[error("duplicate key value violates unique constraint \"{table}_pkey\": key {key} already exists")]
    DuplicateKey { table: String, key: String },
    #[error("null value in column \"{column}\" of table \"{table}\" violates not-null constraint")]
    NullInColumn { table: String, column: String },
    #[error("value {value} does not fit column \"{column}\" of table \"{table}\", which is {data_type}")]
    BadValue { table: String, column: String, data_type: DataType, value: String },
    #[error("could not serialize access due to concurrent update")]
    Conflict,
    #[error("table \"{0}\" has no primary key")]
    NoPrimaryKey(String),
}

impl Error {
    /// The five-character SQLSTATE that PostgreSQL gives this kind of error.
    pub fn sqlstate(&self) -> &'static str {
        unreachable!()
    }
}

#[derive(Clone)]
pub struct Database {}

/// How a database is opened.
#[derive(Default)]
pub struct OpenOptions {
    /// Told (bytes done, bytes in all) while the log is replayed.
    pub progress: Option<Box<dyn FnMut(u64, u64)>>,
}

impl Database {
    /// A database that lives as long as its handles.
    pub fn in_memory() -> Database {
        unreachable!()
    }
    /// Opens the database in a directory, which is made if it is missing.
    pub fn open(dir: impl AsRef<Path>) -> Result<Database> {
        unreachable!()
    }
    pub fn open_with(dir: impl AsRef<Path>, options: OpenOptions) -> Result<Database> {
        unreachable!()
    }
    pub fn create_table(&self, name: &str, schema: Schema) -> Result<Table> {
        unreachable!()
    }
    pub fn drop_table(&self, name: &str) -> Result<()> {
        unreachable!()
    }
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        unreachable!()
    }
    pub fn table(&self, name: &str) -> Result<Table> {
        unreachable!()
    }
    /// The names of all tables, sorted.
    pub fn table_names(&self) -> Vec<String> {
        unreachable!()
    }
    /// Starts a transaction that reads the newest snapshot.
    pub fn begin(&self) -> Result<Transaction> {
        unreachable!()
    }
    /// The newest snapshot, for reads outside a transaction.
    pub fn snapshot(&self) -> Snapshot {
        unreachable!()
    }
}

/// A handle to one table; cheap to clone.
#[derive(Clone)]
pub struct Table {}

/// What a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// base records with their tombstones and deleted records, an upper bound of the rows
    pub records: u64,
    /// update ranges
    pub ranges: u64,
    /// merges that ran to their end
    pub merges: u64,
    /// tail records appended since the table was made
    pub tail_records: u64,
    /// tail records that no merge has taken in yet
    pub tail_records_unmerged: u64,
}

/// What a scan reads.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// positions of the columns to read, in output order
    pub columns: Vec<usize>,
    /// whether to add a last column `__rid` (uint64) holding each row's Rid word
    pub with_rid: bool,
}

impl Table {
    pub fn name(&self) -> &str {
        unreachable!()
    }
    pub fn schema(&self) -> &Arc<Schema> {
        unreachable!()
    }
    pub fn stats(&self) -> TableStats {
        unreachable!()
    }
    /// A scan of what the snapshot sees.
    pub fn scan(&self, snapshot: Snapshot, options: ScanOptions) -> TableScan {
        unreachable!()
    }
    /// The visible row with this primary key as one batch of zero or one row, shaped as a scan's batches are.
    pub fn lookup(&self, snapshot: Snapshot, key: &[Value], options: &ScanOptions) -> Result<RecordBatch> {
        unreachable!()
    }
}

/// A scan in progress. Several threads may pull from one scan; each range goes to one of them.
pub struct TableScan {}

impl TableScan {
    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        unreachable!()
    }
    /// How many ranges the scan has, the most threads that it can keep busy.
    pub fn range_count(&self) -> usize {
        unreachable!()
    }
    /// The batches (at most 8,192 rows each) of the next range that nobody has taken, `None` when all are taken.
    pub fn next_range(&self) -> Option<Vec<RecordBatch>> {
        unreachable!()
    }
}

/// A transaction: reads one snapshot and its own writes; dropped without commit it rolls back.
pub struct Transaction {}

impl Transaction {
    pub fn snapshot(&self) -> Snapshot {
        unreachable!()
    }
    /// The row with this primary key.
    pub fn get(&self, table: &Table, key: &[Value]) -> Result<Option<Vec<Value>>> {
        unreachable!()
    }
    pub fn insert(&mut self, table: &Table, row: &[Value]) -> Result<Rid> {
        unreachable!()
    }
    /// Whether there was such a row.
    pub fn update(&mut self, table: &Table, key: &[Value], changes: &[(&str, Value)]) -> Result<bool> {
        unreachable!()
    }
    pub fn delete(&mut self, table: &Table, key: &[Value]) -> Result<bool> {
        unreachable!()
    }
    pub fn scan(&self, table: &Table, columns: &[&str]) -> Result<TableScan> {
        unreachable!()
    }
    /// Inserts rows given as Arrow arrays of exactly the table's types and order.
    pub fn insert_batch(&mut self, table: &Table, rows: &RecordBatch) -> Result<u64> {
        unreachable!()
    }
    /// Sets `columns` of the rows named by `rids` to the columns of `values` (same order, same length).
    pub fn update_batch(
        &mut self,
        table: &Table,
        rids: &UInt64Array,
        columns: &[usize],
        values: &RecordBatch,
    ) -> Result<u64> {
        unreachable!()
    }
    pub fn delete_batch(&mut self, table: &Table, rids: &UInt64Array) -> Result<u64> {
        unreachable!()
    }
    /// Commits; returns the commit timestamp once the commit is durable (or at once for a database in memory).
    pub fn commit(self) -> Result<Timestamp> {
        unreachable!()
    }
    pub fn rollback(self) {
        unreachable!()
    }
}
