//! A transaction: what it reads, and writes that become visible together.
//!
//! ```text
//! write     append to the storage, with the transaction's id as Start Time; enter the key; note what to stamp
//! commit    a commit timestamp and redo to the log (one step, in one order); stamp; wait until it is on disk
//! rollback  tombstones in place of everything written; keys out of the index
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `write` | rows one by one, as values: insert, update, delete |
//! | `insert`, `change` | what becomes of the cells of a new row, of a new version |
//! | `references` | foreign keys: what refers to rows, and what becomes of it |
//! | `rules` | the constraints of a table, applied to what is written |
//! | `keys`, `claim` | the keys that they enter; those that only one record may have |
//! | `batch`, `columns` | rows by the batch; a column after the other |
//! | `filling`, `put_off` | ranges that it fills, and their redo |
//! | `arrays` | array tables, which are written in place |
//! | `point` | rows by key, several together, as words |
//! | `tables` | the tables that it writes to, and those that it has for itself |
//! | `catalog` | making, dropping and changing tables |
//! | `indexes` | making and dropping indexes, reading through them |
//! | `sequences`, `sequence` | making, changing and dropping sequences; numbers that are given out once |
//! | `remembered` | what a database remembers from one opening to the next |
//! | `running` | the transactions that run, for people to look at |
//! | `locks` | waiting for other transactions, and locking rows without a change |
//! | `savepoint` | taking back a part |
//! | `stamp` | the Start Times of what it writes |
//! | `commit`, `taken_number` | the commit, step by step, and the rollback; its number as long as it may fail |
//! | `undo` | taking back all |
//! | `depend`, `seen` | what a partition commit depends on |
//! | `noted_reads`, `reads` | what a serializable transaction has read |
//! | `notes`, `noting` | what it notes of its work |
//!
//! Imports tables, the handle of the database and what is below them; the methods of the handle (`api`) import it.
use std::cell::{Cell as Shell, OnceCell};
use std::sync::Arc;
use std::time::Duration;

use lineage::{Cell, View, value_of_cell};
use smallvec::SmallVec;
use txn::{Handle, Part};
use types::{Command, Rid, Snapshot, Timestamp, TxnId, Value};

use crate::database::handle::Anchor;
use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::keys::order::IndexKey;
use crate::state::array::leaf::Overlays;
use crate::state::table_data::{ScanOptions, TableData};
use crate::table::read_view::ReadView;
use crate::table::{Table, TableScan};
use crate::terms::isolation::{Durability, Isolation, LockStrength, TransactionOptions};
use crate::terms::outcomes::Transactions;
use crate::transaction::filling::Filling;
use crate::transaction::running::description;

mod arrays;
mod batch;
mod catalog;
mod change;
mod claim;
mod columns;
mod commit;
mod depend;
mod exclude;
mod filling;
mod indexes;
mod insert;
mod keys;
mod locks;
mod noted_reads;
mod notes;
mod noting;
mod point;
mod put_off;
mod reads;
mod references;
pub(crate) mod remembered;
mod rules;
pub(crate) mod running;
mod savepoint;
mod seen;
pub(crate) mod sequence;
mod sequences;
mod stamp;
mod table_modes;
mod tables;
mod taken_number;
mod undo;
mod views;
mod write;

pub use locks::Interrupter;
use noted_reads::Reads;
pub(crate) use notes::Lost;
pub use notes::Savepoint;
use notes::{CatalogStep, Changes, LockedRow, Marks, WrittenRecords};
pub(crate) use point::run_at_once;
pub use point::{PointAction, PointStatement};
use references::noted::References;
use seen::SeenCommits;

/// A transaction: it sees what its [`Isolation`] promises, and its own writes. Dropped without a commit it rolls back.
///
/// A call that fails leaves nothing behind, and the transaction can go on. After an error that
/// [may be tried again](Error::is_retryable) its snapshot is too old for the record in question: roll back and start
/// again, or let [`Database::run`](crate::Database::run) do so.
///
/// Each method names its errors. Three groups of them come from many methods:
/// - **Of a wait** for another transaction: [`Error::Deadlock`] if transactions wait for each other in a circle and this one
///   is to break it, [`Error::LockTimeout`] if it took too long ([`set_lock_timeout`](Self::set_lock_timeout)),
///   [`Error::Interrupted`] if another thread ended it ([`Interrupter`]).
/// - **Of a write**: [`Error::ReadOnlyTransaction`]; [`Error::SequenceWritten`] if the table is a sequence,
///   [`Error::ViewWritten`] if it is a view; [`Error::NoSuchTable`] if it was dropped or is another database's,
///   [`Error::TableChanged`] if it was dropped after the transaction's snapshot; [`Error::OutOfMemory`] at the
///   memory limit; [`Error::TooManyCommands`] if views stayed open over too many writes; [`Error::Log`] if the redo
///   of a large transaction cannot be passed to the log; those of a read.
/// - **Of a read**: [`Error::NoSuchTable`] if the table is another database's; [`Error::Page`] if an evicted page cannot be
///   read back.
pub struct Transaction {
    anchor: Anchor,
    /// Which database it belongs to; see [`TableData::home`].
    home: usize,
    /// `None` once it has ended.
    handle: Option<Handle>,
    options: TransactionOptions,
    /// The commits that it sees; those before each statement under READ COMMITTED.
    at: Timestamp,
    /// The command that writes now.
    command: Command,
    /// Counts the views that must not see what is written next. Being a cell, it also keeps a transaction to one thread at
    /// a time: its statements follow one another.
    open: OnceCell<Arc<()>>,
    /// What it has read, if it is serializable.
    reads: Option<Reads>,
    /// What a partition commit depends on.
    seen: Option<Box<SeenCommits>>,
    tables: SmallVec<[Arc<TableData>; 2]>,
    /// The table that it wrote to last: where it is, as it stays there while it is in the list.
    writable: usize,
    /// What it did to the catalog.
    catalog: Option<Box<Changes>>,
    /// What to stamp.
    written: SmallVec<[WrittenRecords; 8]>,
    /// Rows locked for update, by versions that say nothing and are taken back at the end.
    locked: Vec<LockedRow>,
    /// Rows locked for share, with the positions of their tables and how.
    shared: Vec<(u32, Rid, LockStrength)>,
    /// Rows that may have broken a foreign key.
    references: Option<Box<References>>,
    /// What it has written to array tables.
    arrays: Option<Arc<Overlays>>,
    /// Ranges that it fills, whose rows are not in its redo yet.
    filling: Option<Box<Filling>>,
    savepoints: Vec<(Savepoint, Marks)>,
    savepoints_made: u64,
    redo: Vec<u8>,
    /// Bytes of redo that the log has already.
    redo_in_log: u64,
    /// The partition of the log that has it.
    log_partition: Option<usize>,
    /// A range, with the position of its table, that the merge can't keep up with.
    crowded: Option<(u32, usize)>,
    /// Set after a transient failure (a conflict, a deadlock): the transaction may succeed if it is run again from
    /// the start.
    has_lost: Shell<bool>,
    /// The transaction that it lost a row to.
    lost: Option<Lost>,
    /// The part of a wait for a table that the next wait for one is.
    part: Part,
}

/// A place in the transaction table, not yet a transaction.
pub(crate) struct Begun {
    anchor: Anchor,
    handle: Handle,
    at: Timestamp,
}

impl Begun {
    #[inline]
    pub(crate) fn new(anchor: Anchor, options: &TransactionOptions) -> Result<Begun> {
        let transactions = &anchor.core.transactions.0;
        let begun = match options.isolation {
            Isolation::ReadCommitted => {
                transactions.begin_without_snapshot().map(|handle| (handle, transactions.now()))
            }
            Isolation::Snapshot | Isolation::Serializable => transactions.begin(),
        };
        let (handle, at) = begun.map_err(|error| Error::TooManyTransactions(error.limit))?;
        transactions.describe(&handle, transactions.coarse_micros(), description(options));
        Ok(Begun { anchor, handle, at })
    }
}

/// The snapshot of one read, given up with it.
struct Glance<'t> {
    transaction: &'t Transaction,
    snapshot: Snapshot,
}

impl Drop for Glance<'_> {
    fn drop(&mut self) {
        if self.transaction.options.isolation == Isolation::ReadCommitted
            && let Some(handle) = &self.transaction.handle
        {
            self.transaction.transactions().0.drop_snapshot(handle);
        }
    }
}

impl Transaction {
    pub(crate) fn begin(anchor: Anchor, options: TransactionOptions) -> Result<Transaction> {
        Ok(Transaction::of(Begun::new(anchor, &options)?, options))
    }

    /// A transaction that has begun. Inlined, so that it is built where it stays: it is not small.
    #[inline(always)]
    pub(crate) fn of(begun: Begun, options: TransactionOptions) -> Transaction {
        let Begun { anchor, handle, at } = begun;
        Transaction {
            home: anchor.core.home(),
            seen: SeenCommits::wanted(anchor.log.as_ref(), &options),
            anchor,
            handle: Some(handle),
            reads: (options.isolation == Isolation::Serializable).then(Reads::default),
            options,
            at,
            command: Command::FIRST,
            open: OnceCell::new(),
            tables: SmallVec::new(),
            writable: 0,
            catalog: None,
            written: SmallVec::new(),
            locked: Vec::new(),
            shared: Vec::new(),
            references: None,
            arrays: None,
            filling: None,
            savepoints: Vec::new(),
            savepoints_made: 0,
            redo: Vec::new(),
            redo_in_log: 0,
            log_partition: None,
            crowded: None,
            has_lost: Shell::new(false),
            lost: None,
            part: Part::default(),
        }
    }

    /// What it promises.
    pub fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// Whether it refuses to write.
    pub fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    /// Sets how long it waits for a row that another transaction has locked; for ever if `None`.
    pub fn set_lock_timeout(&mut self, timeout: Option<Duration>) {
        self.options.lock_timeout = timeout;
    }

    /// Sets whether what it changes from now on looks at no foreign keys.
    pub fn set_ignores_references(&mut self, ignores: bool) {
        self.options.ignores_references = ignores;
    }

    /// Has its next wait for a table be a part of one, of this length.
    pub(crate) fn wait_in_part(&mut self, part: Part, length: Duration) {
        (self.part, self.options.lock_timeout) = (part, Some(length));
    }

    /// Sets when its commit is acknowledged.
    pub fn set_durability(&mut self, durability: Durability) {
        self.options.durability = durability;
        self.begin_to_note();
    }

    /// Its id.
    pub fn id(&self) -> TxnId {
        self.handle().id()
    }

    /// Whether it is one of this database.
    pub fn is_of(&self, database: &Database) -> bool {
        self.anchor.is_of(&database.shared)
    }

    fn handle(&self) -> &Handle {
        self.handle.as_ref().expect("only `commit` and `rollback` end a transaction, and they consume it")
    }

    fn transactions(&self) -> &Transactions {
        &self.anchor.core.transactions
    }

    /// What a statement that begins now reads. Under READ COMMITTED that is everything committed so far, else the
    /// transaction's snapshot; with what the transaction has written so far, and nothing that it writes from here on.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`] under READ COMMITTED if as many transactions run, or views are held, as there
    /// may be.
    pub fn view(&self) -> Result<ReadView> {
        let (open, before) = (self.open.get_or_init(Arc::default).clone(), Command(self.command.0 + 1));
        let view = match self.options.isolation {
            Isolation::ReadCommitted => ReadView::now(self.anchor.clone())?,
            _ => ReadView::of_transaction(Snapshot::at(self.at)),
        };
        debug_assert!(view.at() >= self.at, "invariant 4: a later view sees less, {:?} after {:?}", view.at(), self.at);
        self.saw_up_to(view.at());
        let snapshot = Snapshot { before, ..Snapshot::of_transaction(view.at(), self.id()) };
        let view = view.with_arrays(self.arrays.clone(), self.reads_arrays_strictly());
        Ok(view.within(snapshot, open, self.reads().cloned()))
    }

    /// What a statement reads that looks again at what others have changed since `earlier`: a [`view`](Self::view) that sees no more
    /// of what the transaction itself has written than `earlier` does.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn later_view(&self, earlier: &ReadView) -> Result<ReadView> {
        let view = self.view()?;
        debug_assert!(view.at() >= earlier.at(), "invariant 4: {:?} is no later than {:?}", view.at(), earlier.at());
        Ok(view.with_own_of(earlier))
    }

    /// What a change of a whole table reads that nobody else can write to, and what rules are held against: everything committed so
    /// far, whatever the isolation level, with what the transaction has written so far.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn newest_view(&self) -> Result<ReadView> {
        let (open, before) = (self.open.get_or_init(Arc::default).clone(), Command(self.command.0 + 1));
        let view = ReadView::now(self.anchor.clone())?;
        debug_assert!(view.at() >= self.at, "invariant 4: a later view sees less, {:?} after {:?}", view.at(), self.at);
        self.saw_up_to(view.at());
        let snapshot = Snapshot { before, ..Snapshot::of_transaction(view.at(), self.id()) };
        Ok(view.with_arrays(self.arrays.clone(), false).within(snapshot, open, None))
    }

    /// What a read at this moment sees.
    fn glance(&self) -> Glance<'_> {
        let at = match self.options.isolation {
            Isolation::ReadCommitted => self.transactions().0.renew_snapshot(self.handle()),
            _ => self.at,
        };
        debug_assert!(at >= self.at, "invariant 4: a later read sees less, {at:?} after {:?}", self.at);
        Glance { transaction: self, snapshot: Snapshot::of_transaction(at, self.id()) }
    }

    /// The storage as this transaction sees it with all commits.
    fn newest(&self) -> View<'_, Transactions> {
        self.transactions().newest(Some(self.id()))
    }

    /// The row with this primary key.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn get(&self, table: &Table, key: &[Value]) -> Result<Option<Vec<Value>>> {
        let all: SmallVec<[usize; 16]> = (0..table.schema().columns().len()).collect();
        self.get_columns(table, key, &all)
    }

    /// The values of `columns` (positions in the table) of the row with this primary key, in this order.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn get_columns(&self, table: &Table, key: &[Value], columns: &[usize]) -> Result<Option<Vec<Value>>> {
        let known = table.schema().columns();
        self.read(table, key, columns, |cells| {
            debug_assert_eq!(cells.len(), columns.len(), "a cell for each column that is asked for");
            let cells = cells.iter().zip(columns);
            cells.map(|(cell, column)| value_of_cell(*cell, known[*column].data_type)).collect()
        })
    }

    /// Passes the values of `columns` (positions in the table) of the row with this primary key to `take`, in the form in
    /// which they are stored; `None` if there is no such row. The cheapest way to look at a row.
    ///
    /// # Errors
    /// - [`Error::NoSuchTable`] if the table is another database's; [`Error::NoSuchColumn`] if it has fewer columns.
    /// - [`Error::NoPrimaryKey`], [`Error::WrongWidth`] or [`Error::BadValue`] if it has no such key.
    /// - [`Error::Page`] if an evicted page cannot be read back.
    #[inline]
    pub fn read<R>(
        &self,
        table: &Table,
        key: &[Value],
        columns: &[usize],
        take: impl FnOnce(&[Cell<'_>]) -> R,
    ) -> Result<Option<R>> {
        self.check_readable(table)?;
        let data = &table.data;
        data.check_positions(columns.iter().copied())?;
        if data.array.is_some() {
            return self.read_array(data, key, columns, take);
        }
        let Some(key) = data.key_of_values(key)? else { return Ok(None) };
        self.read_key(data, key, columns, take)
    }

    #[inline]
    fn read_key<R>(
        &self,
        data: &Arc<TableData>,
        key: IndexKey,
        columns: &[usize],
        take: impl FnOnce(&[Cell<'_>]) -> R,
    ) -> Result<Option<R>> {
        if self.options.isolation != Isolation::Snapshot || self.seen.is_some() {
            return self.read_otherwise(data, key, columns, take);
        }
        let view = self.transactions().view(Snapshot::of_transaction(self.at, self.id()));
        data.read(view, &key, columns, |_, cells| take(cells))
    }

    /// Reads a row for transactions that take a snapshot for each read, or note what they read or see.
    #[inline(never)]
    fn read_otherwise<R>(
        &self,
        data: &Arc<TableData>,
        key: IndexKey,
        columns: &[usize],
        take: impl FnOnce(&[Cell<'_>]) -> R,
    ) -> Result<Option<R>> {
        let glance = self.glance();
        let view = self.transactions().view(glance.snapshot);
        if self.reads.is_none() && self.seen.is_none() {
            return data.read(view, &key, columns, |_, cells| take(cells));
        }
        let found = data.read(view, &key, columns, |rid, cells| (rid, take(cells)))?;
        self.saw_row(data, found.as_ref().map(|(rid, _)| *rid), glance.snapshot.at);
        if let Some(reads) = self.reads() {
            reads.note_key(data, key, found.as_ref().map(|(rid, _)| *rid));
        }
        Ok(found.map(|(_, taken)| taken))
    }

    /// Notes what it saw at `at` where it looked for a row.
    fn saw_row(&self, data: &TableData, found: Option<Rid>, at: Timestamp) {
        match found {
            Some(rid) => self.saw_version(data, rid, at),
            None => self.saw_anything(),
        }
    }

    /// Asks for the memory of the rows with these keys, each with the columns that will be read, so that the reads and
    /// updates that follow wait for it together instead of one after the other. Pays when rows are spread over much more
    /// memory than the processor's cache; changes nothing else, and looks at the first sixteen rows only.
    pub fn prefetch<'k>(&self, table: &Table, rows: impl Iterator<Item = (&'k [Value], &'k [usize])>) {
        if self.check_readable(table).is_ok() {
            table.data.prefetch(rows);
        }
    }

    /// A scan of the columns named, over all rows that the transaction sees at this moment. What it writes while the scan
    /// goes on is not seen.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if the table is another database's; [`Error::NoSuchColumn`] if it has no such column;
    /// [`Error::TooManyTransactions`] as [`view`](Self::view). A page that cannot be read back is told by the scan.
    pub fn scan(&self, table: &Table, columns: &[&str]) -> Result<TableScan> {
        self.check_readable(table)?;
        let columns = columns.iter().map(|column| table.data.position(column)).collect::<Result<_>>()?;
        table.scan(&self.view()?, ScanOptions { columns, ..ScanOptions::default() })
    }

    /// Refuses tables of another database: its storage would ask the wrong transaction table.
    #[inline]
    fn check_readable(&self, table: &Table) -> Result<()> {
        if table.data.home == self.home { Ok(()) } else { Err(Error::NoSuchTable(table.data.name.to_string())) }
    }

    /// Refuses tables that were dropped or replaced as well: what is written there would be lost. Waits for a
    /// transaction that has the table for itself.
    #[inline]
    fn check_writable(&mut self, table: &Table) -> Result<()> {
        if self.writable == Arc::as_ptr(&table.data).addr() {
            debug_assert!(self.has_entered(&table.data), "the table could go while it is written to");
            return Ok(());
        }
        self.begin_to_write(table)
    }

    /// The position of a table in the transaction's list.
    fn position(&mut self, data: &Arc<TableData>) -> u32 {
        let known = self.tables.iter().rposition(|known| Arc::ptr_eq(known, data));
        known.unwrap_or_else(|| {
            self.tables.push(data.clone());
            self.tables.len() - 1
        }) as u32
    }
}
