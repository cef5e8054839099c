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
use lineage::{Appended, ArrayCells, Cell, Change, View, WriteError, Writer, value_of_cell, word_of_value};
use smallvec::SmallVec;
use txn::Handle;
use types::{Rid, Snapshot, StartTime, Timestamp, TxnId, Value};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::merger;
use crate::outcomes::Transactions;
use crate::primary_key::Key;
use crate::redo;
use crate::row::{Cells, Fitted, check_cells, check_width, shorten};
use crate::table::{ScanOptions, Table, TableData, TableScan};

/// Rows that are prefetched at once; more would not fit the processor's buffers for what it waits for.
const ROWS_AT_ONCE: usize = 16;

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
    tables: SmallVec<[Arc<TableData>; 2]>,
    /// What to stamp.
    written: SmallVec<[Written; 8]>,
    redo: Vec<u8>,
    /// A range, with the position of its table, that the merge can't keep up with.
    crowded: Option<(u32, usize)>,
    /// Whether data frames of this transaction are in the log.
    is_in_log: bool,
}

/// Records that a transaction wrote, `table` being the position of their table in its list.
enum Written {
    /// `count` records inserted in neighbouring slots from `first` on.
    Inserts { table: u32, first: Rid, count: u32 },
    /// Versions appended to one record.
    Versions { table: u32, rid: Rid, appended: Appended },
}

impl Transaction {
    pub(crate) fn new(database: Database, handle: Handle, at: Timestamp) -> Transaction {
        let snapshot = Snapshot::of_transaction(at, handle.id());
        Transaction {
            database,
            handle: Some(handle),
            snapshot,
            tables: SmallVec::new(),
            written: SmallVec::new(),
            redo: Vec::new(),
            crowded: None,
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

    fn view(&self) -> View<'_, Transactions> {
        self.database.shared.core.transactions.view(self.snapshot)
    }

    /// The row with this primary key.
    pub fn get(&self, table: &Table, key: &[Value]) -> Result<Option<Vec<Value>>> {
        let columns = table.schema().columns();
        let all: SmallVec<[usize; 16]> = (0..columns.len()).collect();
        self.read(table, key, &all, |cells| {
            cells.iter().zip(columns).map(|(cell, column)| value_of_cell(*cell, column.data_type)).collect()
        })
    }

    /// Passes the values of `columns` (positions in the table) of the row with this primary key to `take`, in the form in
    /// which they are stored; `None` if there is no such row. The cheapest way to look at a row.
    pub fn read<R>(
        &self,
        table: &Table,
        key: &[Value],
        columns: &[usize],
        take: impl FnOnce(&[Cell<'_>]) -> R,
    ) -> Result<Option<R>> {
        self.check_readable(table)?;
        check_positions(&table.data, columns.iter().copied())?;
        let Some(key) = table.data.key_of_values(key)? else { return Ok(None) };
        Ok(table.data.read(self.view(), &key, columns, |_, cells| take(cells)))
    }

    /// Asks for the memory of the rows with these keys, each with the columns that will be read, so that the reads and
    /// updates that follow wait for it together instead of one after the other. Pays when rows are spread over much more
    /// memory than the processor's cache; changes nothing else, and looks at the first sixteen rows only.
    pub fn prefetch<'k>(&self, table: &Table, rows: impl Iterator<Item = (&'k [Value], &'k [usize])>) {
        let (data, guard) = (&table.data, &sync::pin());
        let Some(primary_key) = data.primary_key.as_ref().filter(|_| self.check_readable(table).is_ok()) else {
            return;
        };
        let mut keys = SmallVec::<[(Key, &[usize]); ROWS_AT_ONCE]>::new();
        for (key, columns) in rows.take(ROWS_AT_ONCE) {
            let key = primary_key.key_of_words(&data.schema, key);
            let Some(key) = key.filter(|_| check_positions(data, columns.iter().copied()).is_ok()) else { continue };
            primary_key.prefetch(guard, &key);
            keys.push((key, columns));
        }
        let mut found = SmallVec::<[(Rid, &[usize]); ROWS_AT_ONCE]>::new();
        for (key, columns) in &keys {
            if let Some(rid) = primary_key.find(guard, key, Some) {
                data.storage.prefetch_base(guard, rid, columns);
                found.push((rid, columns));
            }
        }
        found.iter().for_each(|(rid, _)| data.storage.prefetch_newest(guard, *rid));
        found.iter().for_each(|(rid, columns)| data.storage.prefetch_values(guard, *rid, columns));
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
        table.scan(self.snapshot, ScanOptions { columns, ..ScanOptions::default() })
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
        self.database.shared.check_memory()?;
        let rid = data.storage.insert(cells, self.id().word());
        if let Some(primary_key) = &data.primary_key
            && let Err(error) = self.claim_key(data, primary_key.key_of_row(cells), rid)
        {
            data.storage.stamp_insert(rid, self.id(), StartTime::TOMBSTONE);
            return Err(error);
        }
        if self.database.shared.log.is_some() {
            redo::put_insert(&mut self.redo, data.id, rid, cells);
        }
        let table = self.position(data);
        match self.written.last_mut() {
            Some(Written::Inserts { table: same, first, count })
                if *same == table && first.range() == rid.range() && first.slot() + *count as usize == rid.slot() =>
            {
                *count += 1;
            }
            _ => self.written.push(Written::Inserts { table, first: rid, count: 1 }),
        }
        self.pass_redo_on()?;
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
                    // Deleted with the key that it was inserted with. Once keys have been changed in this table that is no
                    // longer certain: a merge forgets an update that was rolled back, and the index has its entry.
                    None if !data.has_changed_keys() => Holder::Former,
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
        let position = |(name, value): &'_ (&str, Value)| Ok((table.data.position(name)?, value.clone()));
        let changes = changes.iter().map(position).collect::<Result<SmallVec<[(usize, Value); 4]>>>()?;
        self.update_columns(table, key, &changes)
    }

    /// The same with columns named by their positions.
    pub fn update_columns(&mut self, table: &Table, key: &[Value], changes: &[(usize, Value)]) -> Result<bool> {
        self.check_writable(table)?;
        let data = &table.data;
        check_positions(data, changes.iter().map(|(at, _)| *at))?;
        for (i, (at, _)) in changes.iter().enumerate() {
            if changes[..i].iter().any(|(earlier, _)| earlier == at) {
                let column = data.schema.columns()[*at].name.clone();
                return Err(Error::ColumnTwice { table: data.name.clone(), column });
            }
        }
        let mut words = SmallVec::<[(usize, Cell<'_>); 8]>::new();
        for (at, value) in changes {
            if let Some(word) = word_of_value(value, data.schema.columns()[*at].data_type) {
                words.push((*at, Cell::Word(word)));
            }
        }
        if words.len() == changes.len() {
            return self.change_key(data, key, Change::Update(&words));
        }
        let mut fitted = Fitted::new(&data.name, &data.schema, changes.iter().map(|(at, value)| (*at, value)))?;
        let values: Vec<(usize, Cell<'_>)> = fitted.cells().collect();
        self.change_key(data, key, Change::Update(&values))
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
        self.change_key(&table.data, key, Change::Delete)
    }

    /// Appends a version to the record with this key; false if there is none.
    fn change_key(&mut self, data: &Arc<TableData>, key: &[Value], change: Change<'_>) -> Result<bool> {
        let Some(key) = data.key_of_values(key)? else { return Ok(false) };
        if let Some(primary_key) = &data.primary_key
            && !data.has_changed_keys()
            && let Some(newest) = primary_key.find(&sync::pin(), &key, Some)
            && self.change(data, newest, change)?
        {
            return Ok(true);
        }
        // There is no record, or an older one has the key in this snapshot.
        match data.find(self.view(), &key) {
            Some(rid) => self.change(data, rid, change),
            None => Ok(false),
        }
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
        // A delete may always go ahead: it is how room is made.
        if let Change::Update(_) = change {
            self.database.shared.check_memory()?;
        }
        let view = self.database.shared.core.transactions.view(self.snapshot);
        if !data.storage.contains(rid) {
            return Ok(false);
        }
        let new_key = match (&data.primary_key, change) {
            (Some(primary_key), Change::Update(values)) => {
                Some(primary_key).filter(|key| values.iter().any(|(column, _)| key.columns.contains(column)))
            }
            _ => None,
        };
        if new_key.is_some() {
            data.note_changed_key();
        }
        let appended = match data.storage.append(view, id.word(), rid, change) {
            Ok(appended) => appended,
            Err(WriteError::NotVisible) => return Ok(false),
            Err(WriteError::Locked(_) | WriteError::Changed(_)) => return Err(Error::Conflict),
        };
        if let Some(primary_key) = new_key {
            let key = data.storage.read(view, rid, &primary_key.columns, |cells| primary_key.key(cells));
            let claimed = key.map_or(Ok(()), |key| self.claim_key(data, key, rid));
            if let Err(error) = claimed {
                data.storage.stamp_versions(rid, appended, id, StartTime::TOMBSTONE);
                return Err(error);
            }
        }
        match change {
            _ if self.database.shared.log.is_none() => {}
            Change::Update(values) => redo::put_update(&mut self.redo, data.id, rid, values),
            Change::Delete => redo::put_delete(&mut self.redo, data.id, rid),
        }
        let table = self.position(data);
        self.written.push(Written::Versions { table, rid, appended });
        self.pass_redo_on()?;
        // Looking costs a little, so it is done once for each block of numbers: by whoever begins it, as blocks are not
        // always used to their end.
        if appended.first % 16 == 1 && self.database.shared.merges.is_crowded(data, rid.range()) {
            self.crowded = Some((table, rid.range()));
        }
        Ok(true)
    }

    /// The position of a table in the transaction's list.
    fn position(&mut self, data: &Arc<TableData>) -> u32 {
        let known = self.tables.iter().rposition(|known| Arc::ptr_eq(known, data));
        known.unwrap_or_else(|| {
            self.tables.push(data.clone());
            self.tables.len() - 1
        }) as u32
    }

    /// Passes redo on to the log before there is too much of it.
    fn pass_redo_on(&mut self) -> Result<()> {
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
        if self.database.shared.log.is_some()
            && let Some(time) = self.database.shared.core.clock.mark_for_log()
        {
            redo::put_clock(&mut self.redo, time);
        }
        let Some(handle) = &self.handle else { return Ok(self.snapshot.at) };
        let (at, id) = (self.database.shared.commit_to_log(handle, &self.redo)?, handle.id());
        self.stamp(id, at.0);
        let shared = &self.database.shared;
        self.handle.take().into_iter().for_each(|handle| shared.core.transactions.0.release(handle));
        if let Some((table, range)) = self.crowded {
            merger::merge_and_archive(&shared.core, &self.tables[table as usize], range);
        }
        shared.wait_stable(at)?;
        Ok(at)
    }

    /// Rolls back everything that the transaction wrote.
    pub fn rollback(self) {
        drop(self);
    }

    fn stamp(&mut self, id: TxnId, stamp: u64) {
        for written in self.written.drain(..) {
            match written {
                Written::Inserts { table, first, count } => {
                    let storage = &self.tables[table as usize].storage;
                    neighbours(first, count).for_each(|rid| storage.stamp_insert(rid, id, stamp));
                }
                Written::Versions { table, rid, appended } => {
                    self.tables[table as usize].storage.stamp_versions(rid, appended, id, stamp);
                }
            }
        }
    }

    /// Takes the keys of inserted records out of the index; they were never anybody else's to see.
    fn forget_keys(&self) {
        let own = self.database.shared.core.transactions.newest(Some(self.id()));
        for written in &self.written {
            let Written::Inserts { table, first, count } = written else { continue };
            let data = &self.tables[*table as usize];
            let Some(primary_key) = &data.primary_key else { continue };
            for rid in neighbours(*first, *count) {
                if let Some(key) = data.storage.read(own, rid, &primary_key.columns, |cells| primary_key.key(cells)) {
                    primary_key.remove(&key, rid);
                }
            }
        }
    }
}

/// Refuses positions that are no column's.
fn check_positions(data: &TableData, columns: impl Iterator<Item = usize>) -> Result<()> {
    let (len, mut columns) = (data.schema.columns().len(), columns);
    match columns.find(|column| *column >= len) {
        Some(column) => Err(Error::NoSuchColumn { table: data.name.clone(), column: format!("number {column}") }),
        None => Ok(()),
    }
}

fn neighbours(first: Rid, count: u32) -> impl Iterator<Item = Rid> {
    (0..count as usize).map(move |i| Rid::base(first.range(), first.slot() + i))
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.handle.is_none() {
            return;
        }
        self.forget_keys();
        let Some(handle) = self.handle.take() else { return };
        self.database.shared.core.transactions.0.abort(&handle);
        self.stamp(handle.id(), StartTime::TOMBSTONE);
        let shared = &self.database.shared;
        if let Some(log) = shared.log.as_ref().filter(|_| self.is_in_log) {
            // If the log fails here, recovery finds no commit of this transaction, which says the same.
            let _ = log.append_abort(handle.id().number());
        }
        shared.core.transactions.0.release(handle);
    }
}
