//! A transaction: one snapshot to read, and writes that become visible together.
//!
//! ```text
//! write     append to the storage, with the transaction's id as Start Time; enter the key; note what to stamp
//! commit    redo to the log and a commit timestamp (one step, in one order); stamp; wait until it is on disk
//! rollback  tombstones in place of everything written; keys out of the index
//! ```
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, UInt64Array};
use index::Holder;
use lineage::{ArrayCells, Cell, Change, WriteError, Writer};
use txn::Handle;
use types::{Rid, Snapshot, StartTime, Timestamp, TxnId, Value};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::primary_key::Key;
use crate::redo;
use crate::row::{Cells, Fitted, check_cells, check_width, shorten};
use crate::table::{ScanOptions, Table, TableData, TableScan};

/// Redo beyond this size goes to the log before the commit.
const REDO_BYTES_MAX: usize = 1 << 20;

/// A transaction: it reads one snapshot and its own writes. Dropped without a commit it rolls back.
///
/// After an [`Error`] other than [`Error::Conflict`] the transaction can go on as if the call had not been made,
/// but for the batch calls, which may have done a part: roll back then. After a conflict its snapshot is too old
/// for the record in question: roll back and start again.
pub struct Transaction {
    database: Database,
    /// `None` once it has ended.
    handle: Option<Handle>,
    snapshot: Snapshot,
    tables: Vec<Arc<TableData>>,
    /// The records to stamp, with the position of their table in `tables`.
    written: Vec<(u32, Rid)>,
    redo: Vec<u8>,
    /// Whether data frames of this transaction are in the log.
    is_in_log: bool,
}

impl Transaction {
    pub(crate) fn new(database: Database, handle: Handle) -> Transaction {
        let snapshot = Snapshot { at: database.shared.core.transactions.0.now(), own: Some(handle.id()) };
        Transaction {
            database,
            handle: Some(handle),
            snapshot,
            tables: Vec::new(),
            written: Vec::new(),
            redo: Vec::new(),
            is_in_log: false,
        }
    }

    /// What the transaction sees.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    fn id(&self) -> TxnId {
        self.handle.as_ref().expect("only `commit` and `rollback` end a transaction, and they consume it").id()
    }

    /// The row with this primary key.
    pub fn get(&self, table: &Table, key: &[Value]) -> Result<Option<Vec<Value>>> {
        let Some(rid) = self.find(table, key)? else { return Ok(None) };
        let columns: Vec<usize> = (0..table.schema().columns().len()).collect();
        let view = self.database.shared.core.transactions.view(self.snapshot);
        Ok(table.data.storage.read_values(view, rid, &columns))
    }

    fn find(&self, table: &Table, key: &[Value]) -> Result<Option<Rid>> {
        self.check_readable(table)?;
        let key = table.data.key_of_values(key)?;
        Ok(key.and_then(|key| table.data.find(&self.database, self.snapshot, &key)))
    }

    /// Refuses tables of another database: its storage would ask the wrong transaction table.
    fn check_readable(&self, table: &Table) -> Result<()> {
        let is_here = Arc::ptr_eq(&table.database.shared, &self.database.shared);
        if is_here { Ok(()) } else { Err(Error::NoSuchTable(table.data.name.clone())) }
    }

    /// Refuses tables that were dropped or replaced as well: what is written there nobody would find.
    fn check_writable(&self, table: &Table) -> Result<()> {
        self.check_readable(table)?;
        if table.data.is_gone() { Err(Error::NoSuchTable(table.data.name.clone())) } else { Ok(()) }
    }

    /// A scan of the columns named, over all rows that the transaction sees at this moment.
    pub fn scan(&self, table: &Table, columns: &[&str]) -> Result<TableScan> {
        self.check_readable(table)?;
        let columns = columns.iter().map(|column| table.data.position(column)).collect::<Result<_>>()?;
        Ok(table.scan(self.snapshot, ScanOptions { columns, with_rid: false }))
    }

    /// Inserts a row: one value for each column, in the table's order.
    pub fn insert(&mut self, table: &Table, row: &[Value]) -> Result<Rid> {
        self.check_writable(table)?;
        let data = &table.data;
        check_width(&data.name, data.schema.columns().len(), row.len())?;
        let mut fitted = Fitted::new(&data.name, &data.schema, row.iter().enumerate())?;
        let cells: Cells<'_> = fitted.cells().map(|(_, cell)| cell).collect();
        self.insert_cells(data, &cells)
    }

    /// Inserts rows given as Arrow arrays of exactly the table's types and order; returns how many.
    pub fn insert_batch(&mut self, table: &Table, rows: &RecordBatch) -> Result<u64> {
        self.check_writable(table)?;
        let data = &table.data;
        let columns = self.batch_columns(data, 0..data.schema.columns().len(), rows)?;
        let mut cells = Cells::with_capacity(columns.len());
        for row in 0..rows.num_rows() {
            cells.clear();
            cells.extend(columns.iter().map(|(_, array)| array.get(row)));
            check_cells(&data.name, &data.schema, cells.iter().enumerate())?;
            self.insert_cells(data, &cells)?;
        }
        Ok(rows.num_rows() as u64)
    }

    fn insert_cells(&mut self, data: &Arc<TableData>, cells: &[Cell<'_>]) -> Result<Rid> {
        let rid = data.storage.insert(cells, self.id().word());
        if let Some(primary_key) = &data.primary_key
            && let Err(error) = self.claim_key(data, primary_key.key_of_row(cells), rid)
        {
            data.storage.stamp(rid, self.id(), StartTime::TOMBSTONE);
            return Err(error);
        }
        if self.database.shared.log.is_some() {
            redo::put_insert(&mut self.redo, data.id, rid, cells);
        }
        self.note(data, [rid])?;
        Ok(rid)
    }

    /// Enters `rid` under its key, unless another record has the key.
    fn claim_key(&self, data: &TableData, key: Key, rid: Rid) -> Result<()> {
        let Some(primary_key) = &data.primary_key else { return Ok(()) };
        let transactions = &self.database.shared.core.transactions;
        let newest = transactions.newest(Some(self.id()));
        let seen = transactions.view(self.snapshot);
        let mut is_locked = false;
        let taken = primary_key.insert_unique(key.clone(), rid, |other| {
            let has_key = |cells: &[Cell<'_>]| primary_key.key(cells) == key;
            match data.storage.newest_writer(newest, other) {
                // Whether it keeps the key is known once that transaction ends.
                Writer::Running(_) => {
                    is_locked = true;
                    Holder::Present
                }
                Writer::Tombstone => Holder::Void,
                Writer::Settled => match data.storage.read(newest, other, &primary_key.columns, has_key) {
                    Some(true) => {
                        is_locked = false;
                        Holder::Present
                    }
                    // It gave the key up after this transaction's snapshot, which would have the key twice.
                    _ if data.storage.read(seen, other, &primary_key.columns, has_key) == Some(true) => {
                        is_locked = true;
                        Holder::Present
                    }
                    // Deleted with the key that it was inserted with.
                    None if !data.storage.was_updated(newest, other, &primary_key.columns) => Holder::Former,
                    Some(false) | None => Holder::Past,
                },
            }
        });
        match taken {
            Ok(()) => Ok(()),
            Err(_) if is_locked => Err(Error::Conflict),
            Err(other) => Err(self.duplicate_key(data, other)),
        }
    }

    fn duplicate_key(&self, data: &TableData, other: Rid) -> Error {
        let newest = self.database.shared.core.transactions.newest(Some(self.id()));
        let columns = data.schema.primary_key();
        let names: Vec<&str> = columns.iter().map(|column| data.schema.columns()[*column].name.as_str()).collect();
        let values = data.storage.read_values(newest, other, columns).unwrap_or_default();
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        let key = shorten(format!("({})=({})", names.join(", "), values.join(", ")));
        Error::DuplicateKey { table: data.name.clone(), key }
    }

    /// Sets columns of the row with this primary key; returns whether there is one.
    pub fn update(&mut self, table: &Table, key: &[Value], changes: &[(&str, Value)]) -> Result<bool> {
        self.check_writable(table)?;
        let data = &table.data;
        let mut named: Vec<(usize, &Value)> = Vec::with_capacity(changes.len());
        for (name, value) in changes {
            let at = data.position(name)?;
            if named.iter().any(|(earlier, _)| *earlier == at) {
                return Err(Error::ColumnTwice { table: data.name.clone(), column: (*name).into() });
            }
            named.push((at, value));
        }
        let mut fitted = Fitted::new(&data.name, &data.schema, named.into_iter())?;
        let values: Vec<(usize, Cell<'_>)> = fitted.cells().collect();
        let Some(rid) = self.find(table, key)? else { return Ok(false) };
        self.change(data, rid, Change::Update(&values))
    }

    /// Sets `columns` of the rows named by `rids` to the columns of `values` (same order, same length); returns how
    /// many rows there were.
    pub fn update_batch(
        &mut self,
        table: &Table,
        rids: &UInt64Array,
        columns: &[usize],
        values: &RecordBatch,
    ) -> Result<u64> {
        self.check_writable(table)?;
        let data = &table.data;
        let arrays = self.batch_columns(data, columns.iter().copied(), values)?;
        let mut updated = 0;
        for (row, rid) in rids.values().iter().enumerate() {
            let cells: Vec<(usize, Cell<'_>)> = arrays.iter().map(|(at, array)| (*at, array.get(row))).collect();
            check_cells(&data.name, &data.schema, cells.iter().map(|(at, cell)| (*at, cell)))?;
            updated += u64::from(self.change(data, Rid::from_word(*rid), Change::Update(&cells))?);
        }
        Ok(updated)
    }

    /// Deletes the row with this primary key; returns whether there was one.
    pub fn delete(&mut self, table: &Table, key: &[Value]) -> Result<bool> {
        self.check_writable(table)?;
        let Some(rid) = self.find(table, key)? else { return Ok(false) };
        self.change(&table.data, rid, Change::Delete)
    }

    /// Deletes the rows named by `rids`; returns how many there were.
    pub fn delete_batch(&mut self, table: &Table, rids: &UInt64Array) -> Result<u64> {
        self.check_writable(table)?;
        let mut deleted = 0;
        for rid in rids.values() {
            deleted += u64::from(self.change(&table.data, Rid::from_word(*rid), Change::Delete)?);
        }
        Ok(deleted)
    }

    /// Appends a version to a record, and enters its key if that changes; false if the record is gone.
    fn change(&mut self, data: &Arc<TableData>, rid: Rid, change: Change<'_>) -> Result<bool> {
        let id = self.id();
        let view = self.database.shared.core.transactions.view(self.snapshot);
        if !data.storage.contains(rid) {
            return Ok(false);
        }
        let appended = match data.storage.append(view, id.word(), rid, change) {
            Ok(appended) => appended,
            Err(WriteError::NotVisible) => return Ok(false),
            Err(WriteError::Locked(_) | WriteError::Changed(_)) => return Err(Error::Conflict),
        };
        let tail = (appended.first..=appended.last).map(|sequence| Rid::tail(rid.range(), sequence));
        if let (Some(primary_key), Change::Update(values)) = (&data.primary_key, change)
            && values.iter().any(|(column, _)| primary_key.columns.contains(column))
        {
            let key = data.storage.read(view, rid, &primary_key.columns, |cells| primary_key.key(cells));
            let claimed = key.map_or(Ok(()), |key| self.claim_key(data, key, rid));
            if let Err(error) = claimed {
                tail.for_each(|tail| data.storage.stamp(tail, id, StartTime::TOMBSTONE));
                return Err(error);
            }
        }
        match change {
            _ if self.database.shared.log.is_none() => {}
            Change::Update(values) => redo::put_update(&mut self.redo, data.id, rid, values),
            Change::Delete => redo::put_delete(&mut self.redo, data.id, rid),
        }
        self.note(data, tail)?;
        if data.storage.reached_merge_bound(rid) {
            self.database.shared.merger.wake();
        }
        Ok(true)
    }

    /// Remembers what to stamp, and passes redo on to the log before there is too much of it.
    fn note(&mut self, data: &Arc<TableData>, rids: impl IntoIterator<Item = Rid>) -> Result<()> {
        let table = match self.tables.iter().rposition(|known| Arc::ptr_eq(known, data)) {
            Some(at) => at,
            None => {
                self.tables.push(data.clone());
                self.tables.len() - 1
            }
        };
        self.written.extend(rids.into_iter().map(|rid| (table as u32, rid)));
        if let Some(log) = &self.database.shared.log
            && self.redo.len() >= REDO_BYTES_MAX
        {
            self.is_in_log = true;
            log.append_data(self.id().number(), &self.redo)?;
            self.redo.clear();
        }
        Ok(())
    }

    /// The arrays of a batch as cells of the table's columns.
    fn batch_columns<'a>(
        &self,
        data: &TableData,
        columns: impl ExactSizeIterator<Item = usize>,
        batch: &'a RecordBatch,
    ) -> Result<Vec<(usize, ArrayCells<'a>)>> {
        check_width(&data.name, columns.len(), batch.num_columns())?;
        let pair = |(at, array): (usize, &'a Arc<dyn Array>)| {
            let column = &data.schema.columns()[at];
            if *array.data_type() != column.data_type.to_arrow() {
                return Err(Error::BadValue {
                    table: data.name.clone(),
                    column: column.name.clone(),
                    data_type: column.data_type,
                    value: format!("of Arrow type {}", array.data_type()),
                });
            }
            Ok((at, ArrayCells::new(array.as_ref(), column.data_type)))
        };
        columns.zip(batch.columns()).map(pair).collect()
    }

    /// Commits. Returns the commit timestamp once the commit is durable, or at once for a database in memory or a
    /// transaction that wrote nothing.
    ///
    /// # Errors
    /// [`Error::Log`] if the log failed; whether the commit survives is known when the database is opened again.
    pub fn commit(mut self) -> Result<Timestamp> {
        if self.written.is_empty() {
            return Ok(self.snapshot.at);
        }
        let redo = std::mem::take(&mut self.redo);
        let Some(handle) = self.handle.take() else { return Ok(self.snapshot.at) };
        let shared = self.database.shared.clone();
        match shared.commit_to_log(&handle, &redo) {
            Ok(at) => {
                self.stamp(handle.id(), at.0);
                shared.core.transactions.0.release(handle);
                shared.wait_stable(at)?;
                Ok(at)
            }
            Err(error) => {
                self.handle = Some(handle);
                Err(error)
            }
        }
    }

    /// Rolls back everything that the transaction wrote.
    pub fn rollback(self) {
        drop(self);
    }

    fn stamp(&mut self, id: TxnId, stamp: u64) {
        for (table, rid) in self.written.drain(..) {
            self.tables[table as usize].storage.stamp(rid, id, stamp);
        }
    }

    /// Takes the keys of inserted records out of the index; they were never anybody else's to see.
    fn forget_keys(&self) {
        let own = self.database.shared.core.transactions.newest(Some(self.id()));
        for (table, rid) in self.written.iter().filter(|(_, rid)| !rid.is_tail()) {
            let data = &self.tables[*table as usize];
            if let Some(primary_key) = &data.primary_key
                && let Some(key) = data.storage.read(own, *rid, &primary_key.columns, |cells| primary_key.key(cells))
            {
                primary_key.remove(&key, *rid);
            }
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.handle.is_none() {
            return;
        }
        self.forget_keys();
        let Some(handle) = self.handle.take() else { return };
        let shared = self.database.shared.clone();
        shared.core.transactions.0.abort(&handle);
        self.stamp(handle.id(), StartTime::TOMBSTONE);
        if let Some(log) = shared.log.as_ref().filter(|_| self.is_in_log) {
            // If the log fails here, recovery finds no commit of this transaction, which says the same.
            let _ = log.append_abort(handle.id().number());
        }
        shared.core.transactions.0.release(handle);
    }
}
