//! Opening a database: replaying its log.
//!
//! The operations of a transaction are applied when its commit frame is read, in the order of commits; its data frames
//! come just before. Records go back to the Rids that the log names, so later operations find
//! them. Slots of transactions that did not commit become tombstones.
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use durability::{Device, Frame, FrameKind, FsDevice, Log, LogOptions};
use lineage::{Cell, Change, MemoryBudget, TableOptions};
use txn::TransactionTable;
use types::{Rid, Snapshot, Timestamp};

use crate::database::{Core, OpenOptions};
use crate::error::{Error, Result};
use crate::outcomes::Transactions;
use crate::redo::{self, Operation, TableId};
use crate::table::TableData;
use crate::wall_clock::WallClock;

/// Opens the log in `directory` and builds what it describes.
pub(crate) fn open(directory: &Path, options: &mut OpenOptions) -> Result<(Arc<Core>, Log)> {
    let unusable = |source| Error::Directory { path: directory.display().to_string(), source };
    if directory.is_file() {
        return Err(unusable(std::io::Error::new(ErrorKind::NotADirectory, "it is a file")));
    }
    let device = FsDevice::new(directory).map_err(unusable)?;
    open_on(Arc::new(device), options)
}

/// Opens the log on a device and builds what it describes.
pub(crate) fn open_on(device: Arc<dyn Device>, options: &mut OpenOptions) -> Result<(Arc<Core>, Log)> {
    let table_options = options.table_options();
    let mut replay = Replay {
        tables: HashMap::new(),
        earlier: Vec::new(),
        next_table: 1,
        table_options,
        transactions: Transactions(TransactionTable::default()),
        budget: Arc::default(),
        clock: WallClock::default(),
    };
    let mut progress = options.progress.take().unwrap_or_else(|| Box::new(|_, _| ()));
    let (log, recovered) = Log::open(device, LogOptions::default(), &mut |frame| replay.frame(frame), &mut *progress)?;
    let mut tables = BTreeMap::new();
    for table in replay.tables.into_values() {
        table.storage.finish_recovery();
        tables.insert(table.name.to_string(), table);
    }
    let newest = Timestamp(recovered.last_lsn);
    replay.clock.finish_recovery(newest);
    let core = Core::new(newest, tables, replay.next_table, table_options, replay.budget, replay.clock);
    Ok((core, log))
}

/// The database as far as the log was read.
struct Replay {
    tables: HashMap<TableId, Arc<TableData>>,
    /// the redo of a transaction whose commit is the next to be read
    earlier: Vec<u8>,
    next_table: TableId,
    table_options: TableOptions,
    /// No transaction runs during recovery; the storage asks all the same.
    transactions: Transactions,
    budget: Arc<MemoryBudget>,
    clock: WallClock,
}

impl Replay {
    fn frame(&mut self, frame: Frame<'_>) -> Result<()> {
        match frame.kind {
            FrameKind::Data => self.earlier.extend(frame.payload),
            FrameKind::Commit => {
                let at = Timestamp(frame.lsn);
                if self.earlier.is_empty() {
                    return redo::read(frame.payload, |operation| self.apply(operation, at));
                }
                let mut whole = std::mem::take(&mut self.earlier);
                whole.extend(frame.payload);
                for part in redo::held(&whole)? {
                    redo::read(part, |operation| self.apply(operation, at))?;
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, operation: Operation<'_>, at: Timestamp) -> Result<()> {
        match operation {
            Operation::Create { table, name, schema, settings } => {
                self.next_table = self.next_table.max(table + 1);
                let data = TableData::new(table, &name, schema, settings, self.table_options, &self.budget);
                self.tables.insert(table, Arc::new(data));
                Ok(())
            }
            Operation::Settings { table, settings } => {
                if let Some(table) = self.tables.get(&table) {
                    table.set_settings(settings);
                }
                Ok(())
            }
            Operation::Rename { table, name } => {
                self.tables.get(&table).into_iter().for_each(|table| table.name.set(&name));
                Ok(())
            }
            // Only transactions with earlier frames write it, and `held` has acted upon it.
            Operation::TakenBack { .. } => Ok(()),
            Operation::Clock { time } => {
                self.clock.recover(time, at);
                Ok(())
            }
            Operation::Drop { table } => {
                self.tables.remove(&table);
                Ok(())
            }
            // Work on a table that was dropped before the commit has nothing to go to.
            Operation::Insert { table, rid, cells } => {
                self.tables.get(&table).map_or(Ok(()), |table| insert(table, at, rid, &cells))
            }
            Operation::Update { table, rid, values } => self.change(table, at, rid, Change::Update(&values)),
            Operation::Delete { table, rid } => self.change(table, at, rid, Change::Delete),
        }
    }

    fn change(&self, table: TableId, at: Timestamp, rid: Rid, change: Change<'_>) -> Result<()> {
        let Some(table) = self.tables.get(&table) else { return Ok(()) };
        let view = self.transactions.view(Snapshot::at(at));
        table
            .storage
            .append(view, at.0, rid, change)
            .map_err(|error| Error::BadRedo(format!("record {rid:?} of \"{}\": {error:?}", table.name)))?;
        if let (Some(primary_key), Change::Update(values)) = (&table.primary_key, change)
            && values.iter().any(|(column, _)| primary_key.columns.contains(column))
        {
            table.note_changed_key();
            let key = table.storage.read(view, rid, &primary_key.columns, |cells| primary_key.key(cells));
            key.into_iter().for_each(|key| primary_key.insert(key, rid));
        }
        Ok(())
    }
}

fn insert(table: &TableData, at: Timestamp, rid: Rid, cells: &[Cell<'_>]) -> Result<()> {
    if cells.len() != table.schema.columns().len() {
        return Err(Error::BadRedo(format!("a row of \"{}\" has {} values", table.name, cells.len())));
    }
    let range_records = table.storage.range_records();
    if rid.slot() >= range_records {
        return Err(Error::RangesTooSmall { table: table.name.to_string(), range_records });
    }
    table.storage.insert_at(rid, cells, at.0);
    if let Some(primary_key) = &table.primary_key {
        primary_key.insert(primary_key.key_of_row(cells), rid);
    }
    Ok(())
}
