//! Opening a database: its newest checkpoint, and replaying its log from there.
//!
//! Where the newest checkpoint is damaged the one before it serves as well: the log is kept for both.
//!
//! The operations of a transaction are applied when its commit frame is read, in the order of commits; its data
//! frames come just before. The former meanings of names are kept, by the commits that changed them. Records go
//! back to the Rids that the log names, so later operations find them. Slots of transactions that did not commit
//! become tombstones. Indexes are compiled at the end, and filled when they are first used.
//!
//! Pages of the checkpoint are read when they are first used, during the replay or later. If the replay needs one that is damaged,
//! everything is begun anew with all pages read at once, so that the checkpoint before can serve.
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use durability::{Checkpoints, Device, Frame, FrameKind, Log, Manifest, lock_directory, lock_to_read};
use lineage::{Cell, Change, MemoryBudget, PageReading, TableOptions, WriteError, WrittenRows};
use txn::TransactionTable;
use types::{EnumDefinition, Rid, Snapshot, Timestamp};

use crate::disk::checkpoint::{Base, restore};
use crate::disk::copy;
use crate::disk::directory;
use crate::disk::page_source::budget_of;
use crate::disk::redo::{self, Operation, WrittenLeaf};
use crate::error::{Error, Result};
use crate::keys::data::IndexData;
use crate::state::array::data::KEY_MAX;
use crate::state::array::leaf::{LEAF_KEYS, Overlay, slots};
use crate::state::catalog::{Meanings, NamedSince, set_former};
use crate::state::core::Core;
use crate::state::options::OpenOptions;
use crate::state::table_data::TableData;
use crate::terms::former::{Former, NameMeaning};
use crate::terms::outcomes::Transactions;
use crate::terms::table_name::TableId;
use crate::terms::wall_clock::WallClock;

/// Opens the database in the directory `path`.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> Result<RecoveredDatabase> {
    open_on(Arc::new(directory::made(path)?), options)
}

/// A database as it was found.
pub(crate) struct RecoveredDatabase {
    pub(crate) core: Arc<Core>,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) log: Log,
    pub(crate) checkpoints: Arc<Checkpoints>,
    /// Bytes of the log that were replayed.
    pub(crate) replayed_bytes: u64,
}

/// Builds what the newest checkpoint on a device and the log after it describe.
pub(crate) fn open_on(device: Arc<dyn Device>, options: &mut OpenOptions) -> Result<RecoveredDatabase> {
    if options.reads_pages_at_once {
        return build(device, options, PageReading::AtOnce);
    }
    match build(device.clone(), options, PageReading::WhenUsed) {
        Err(Error::Page(_)) => build(device, options, PageReading::AtOnce),
        built => built,
    }
}

fn build(device: Arc<dyn Device>, options: &mut OpenOptions, reading: PageReading) -> Result<RecoveredDatabase> {
    copy::check_finished(&*device)?;
    let locked = if options.read_only { lock_to_read(&*device)? } else { lock_directory(&*device)? };
    let (checkpoints, found) = Checkpoints::open(device.clone(), locked.1)?;
    let checkpoints = Arc::new(checkpoints);
    let table_options = options.table_options();
    let mut unheard = |_, _| ();
    let mut receiver = options.progress.take();
    let progress: &mut dyn FnMut(u64, u64) = receiver.as_deref_mut().map_or(&mut unheard, |progress| progress);
    let mut damaged: Vec<Error> = found.damaged.into_iter().map(Error::Checkpoint).collect();
    let (mut base, budget) = best_base(&found.manifests, &checkpoints, (options, reading), progress, &mut damaged);
    let mut replay = Replay {
        earlier: Vec::new(),
        table_options,
        transactions: Transactions(TransactionTable::default()),
        budget,
        checkpoints: checkpoints.clone(),
        reading,
        clock: WallClock::default(),
        next_table: base.next_table.max(1),
        // Taken, so that a table which the log drops is freed.
        tables: std::mem::take(&mut base.tables),
        names: Names::of(&mut base),
        base,
        bytes: 0,
    };
    replay.clock.restore(std::mem::take(&mut replay.base.clock));
    // What the checkpoint has need not be read, but by a caller that wants to hear of all damage.
    let held = if reading == PageReading::AtOnce { 0 } else { replay.base.low.0 };
    let opened =
        Log::open_locked(device.clone(), locked, held, options.log, &mut |frame| replay.frame(frame), progress);
    options.progress = receiver;
    let (log, recovered) = opened?;
    // The commits between the checkpoint and the log are gone.
    if recovered.trimmed_below > replay.base.low.0 + 1 {
        let from = recovered.trimmed_below;
        return Err(Error::NoCheckpoint { from, damaged: damaged.iter().map(Error::to_string).collect() });
    }
    // What can't be removed is removed another time.
    let _left = checkpoints.forget_unnamed();
    let tables: Vec<Arc<TableData>> = replay.tables.values().cloned().collect();
    debug_assert!(replay.tables.keys().all(|id| *id < replay.next_table), "a new table would get another one's number");
    let meanings = replay.names.meanings(replay.tables);
    // Expressions name labels as they are now, and types by their names.
    let labels = |named: &NamedSince| named.table.labels().into_iter().for_each(EnumDefinition::publish);
    meanings.newest.values().for_each(labels);
    for table in &tables {
        table.storage.finish_recovery();
        let compile = |index: &Arc<IndexData>| index.compile(table.schema(), options.expressions.as_deref());
        table.indexes.all().iter().try_for_each(compile)?;
        table.put_off_indexes();
    }
    drop(tables);
    let newest = Timestamp(recovered.last_lsn.max(replay.base.low.0));
    debug_assert!(newest >= replay.base.catalog_at, "invariant 8: the catalog is of a commit after {newest:?}");
    replay.clock.finish_recovery(newest);
    let core = Core::new(newest, meanings, replay.next_table, table_options, replay.budget, replay.clock);
    Ok(RecoveredDatabase { core, device, log, checkpoints, replayed_bytes: replay.bytes })
}

/// The contents of the newest checkpoint that can be restored, or nothing. Faults of newer ones are added to
/// `damaged`.
fn best_base(
    manifests: &[Manifest],
    checkpoints: &Arc<Checkpoints>,
    (options, reading): (&OpenOptions, PageReading),
    progress: &mut dyn FnMut(u64, u64),
    damaged: &mut Vec<Error>,
) -> (Base, Arc<MemoryBudget>) {
    // While it is filled pages go already, so that it may be larger than memory.
    let budget = || budget_of(checkpoints, options.memory_limit_bytes);
    for manifest in manifests {
        let budget = budget();
        match restore(manifest, checkpoints, options.table_options(), &budget, reading, progress) {
            Ok(base) => return (base, budget),
            Err(error) => {
                // The one before it is the one to keep now.
                checkpoints.distrust(manifest.number);
                damaged.push(error);
            }
        }
    }
    (Base::default(), budget())
}

/// The meanings of names now and before, as far as the log was read.
struct Names {
    /// since when
    newest: HashMap<TableId, (String, Timestamp)>,
    former: Former<Arc<TableData>>,
}

impl Names {
    fn of(base: &mut Base) -> Names {
        let former = std::mem::take(&mut base.former);
        let newest = std::mem::take(&mut base.names);
        let mut gone: HashMap<TableId, &NameMeaning<Arc<TableData>>> = HashMap::new();
        for (_, meaning) in former.iter().filter(|(_, meaning)| !newest.contains_key(&meaning.table.id)) {
            let last = gone.entry(meaning.table.id).or_insert(meaning);
            if last.to < meaning.to {
                *last = meaning;
            }
        }
        // The transactions that ended them are over; no snapshot from before is in use.
        gone.values().for_each(|last| last.table.lock.retire(last.to));
        Names { newest, former: Former::new(former, std::mem::take(&mut base.given_up)) }
    }

    fn begin(&mut self, table: TableId, name: String, at: Timestamp) {
        let other = self.newest.insert(table, (name, at));
        debug_assert!(other.is_none(), "invariant 4: table {table} has two names, one of them {other:?}");
    }

    fn end(&mut self, table: &Arc<TableData>, at: Timestamp) {
        if let Some((name, from)) = self.newest.remove(&table.id) {
            self.former.add(&name, NameMeaning { table: table.clone(), from, to: at });
        }
    }

    /// Has the tables that are gone and had a table's name keep their past as this one does.
    fn set_former(&self, table: &TableData) {
        let name = self.newest.get(&table.id).map(|(name, _)| name);
        name.into_iter().for_each(|name| set_former(&self.former, name, table));
    }

    /// Gives up what is not kept up to a commit; returns the tables that no name leads to any more.
    fn give_up(&mut self, at: Timestamp, clock: &WallClock) -> Vec<TableId> {
        let gone = self.former.give_up(at, |table| table.retention().kept_from(clock));
        let has_name =
            |id: &TableId| self.newest.contains_key(id) || self.former.all().any(|(_, known)| known.table.id == *id);
        gone.into_iter().map(|(_, meaning)| meaning.table.id).filter(|id| !has_name(id)).collect()
    }

    fn meanings(self, tables: HashMap<TableId, Arc<TableData>>) -> Meanings {
        debug_assert!(
            self.newest.keys().all(|id| tables.contains_key(id)),
            "invariant 3: a name means a table that was given up"
        );
        let named = |(id, (name, from))| Some((name, NamedSince { table: tables.get(&id).cloned()?, from }));
        let newest = self.newest.into_iter().filter_map(named).collect();
        let former = self.former.all().map(|(name, meaning)| (name.to_owned(), meaning.clone())).collect();
        Meanings { newest, former, given_up: self.former.given_up().clone() }
    }
}

/// The database as far as the log was read.
struct Replay {
    /// the state it began with
    base: Base,
    /// those that are gone and kept included
    tables: HashMap<TableId, Arc<TableData>>,
    names: Names,
    /// the redo of a transaction that has its commit read next
    earlier: Vec<u8>,
    next_table: TableId,
    table_options: TableOptions,
    /// No transaction runs during recovery; the storage asks all the same.
    transactions: Transactions,
    budget: Arc<MemoryBudget>,
    /// that have the files of loads which it names
    checkpoints: Arc<Checkpoints>,
    reading: PageReading,
    clock: WallClock,
    /// replayed
    bytes: u64,
}

impl Replay {
    fn frame(&mut self, frame: Frame<'_>) -> Result<()> {
        match frame.kind {
            FrameKind::Data => self.earlier.extend(frame.payload),
            FrameKind::Commit if frame.lsn <= self.base.low.0 => self.earlier.clear(),
            FrameKind::Commit => {
                let at = Timestamp(frame.lsn);
                self.budget.evict_to_reserve();
                self.bytes += (frame.payload.len() + self.earlier.len()) as u64;
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
            // Work on a table that was dropped before the commit has nothing to go to.
            Operation::Insert { table, rid, cells } => match self.tables.get(&table) {
                Some(data) if !self.base.has(table, rid, at) => insert(data, at, rid, &cells),
                _ => Ok(()),
            },
            Operation::InsertRows { table, first, rows } => self.insert_rows(table, at, first, rows),
            Operation::InsertColumns { table, last, columns } => self.insert_columns(table, at, last, columns),
            Operation::InsertBlobs { table, last, file, salt, columns } => {
                // Also where the table is gone, or the checkpoint has the rows: the one before may be needed next time.
                self.checkpoints.adopt(file, salt, at.0)?;
                self.insert_blobs(table, at, last, columns)
            }
            Operation::Update { table, rid, values } => self.change(table, at, rid, Change::Update(&values)),
            Operation::Delete { table, rid } => self.change(table, at, rid, Change::Delete),
            Operation::ArrayRows { table, number, leaf } => self.write_array(table, at, number, &leaf),
            // Only transactions with earlier frames write it, and `held` has acted upon it.
            Operation::TakenBack { .. } => Ok(()),
            catalog if at > self.base.catalog_at => self.apply_to_catalog(catalog, at),
            _ => Ok(()),
        }
    }

    fn apply_to_catalog(&mut self, operation: Operation<'_>, at: Timestamp) -> Result<()> {
        match operation {
            Operation::Create { table, name, schema, settings } => {
                self.next_table = self.next_table.max(table + 1);
                let data = TableData::new(table, &name, schema, settings, self.table_options, &self.budget)?;
                self.tables.insert(table, Arc::new(data));
                self.names.begin(table, name, at);
            }
            Operation::Settings { table, settings } => {
                if let Some(table) = self.tables.get(&table) {
                    table.set_settings(settings);
                    self.names.set_former(table);
                }
            }
            Operation::Rename { table, name } => {
                if let Some(data) = self.tables.get(&table) {
                    data.name.set(&name);
                    self.names.end(data, at);
                    self.names.begin(table, name, at);
                }
            }
            Operation::CreateIndex { table, index } => {
                if let Some(table) = self.tables.get(&table) {
                    table.add_known_index(index)?;
                }
            }
            Operation::DropIndex { table, name } => {
                let of_name = |table: &Arc<TableData>| table.indexes.which(|index| index.definition.name == name);
                let table = self.tables.get(&table);
                table.into_iter().for_each(|table| of_name(table).iter().for_each(|index| table.indexes.remove(index)));
            }
            Operation::Clock { time } => self.clock.recover(time, at),
            Operation::Drop { table } => self.drop_table(table, at),
            Operation::Insert { .. } | Operation::InsertRows { .. } => {}
            Operation::InsertColumns { .. } | Operation::InsertBlobs { .. } => {}
            Operation::Update { .. } | Operation::Delete { .. } => {}
            Operation::ArrayRows { .. } | Operation::TakenBack { .. } => {}
        }
        Ok(())
    }

    /// A table that is gone stays as long as its past is kept.
    fn drop_table(&mut self, table: TableId, at: Timestamp) {
        if let Some(data) = self.tables.get(&table) {
            data.lock.retire(at);
            self.names.end(data, at);
            debug_assert!(!self.names.newest.contains_key(&table), "invariant 4: a table that is gone has a name");
            for gone in self.names.give_up(at, &self.clock) {
                self.tables.remove(&gone);
            }
        }
    }

    fn insert_rows(&self, table: TableId, at: Timestamp, first: Rid, rows: &[u8]) -> Result<()> {
        let Some(data) = self.tables.get(&table) else { return Ok(()) };
        let types: Vec<_> = data.schema.columns().iter().map(|column| column.data_type).collect();
        let damaged = |what| Error::BadRedo(format!("rows of \"{}\" from {first:?} on: {what}", data.name));
        let rows = WrittenRows::read(rows, &types).map_err(damaged)?;
        rows.each(|place, cells| {
            let rid = Rid::base(first.range(), first.slot() + place);
            if self.base.has(table, rid, at) { Ok(()) } else { insert(data, at, rid, cells) }
        })
    }

    fn insert_columns(&self, table: TableId, at: Timestamp, last: Rid, columns: &[u8]) -> Result<()> {
        let data = self.tables.get(&table).filter(|_| !self.base.has(table, last, at));
        let Some(data) = data else { return Ok(()) };
        check_slot(data, last)?;
        let restored = data.storage.restore_columns(last.range(), columns, at);
        restored.map_err(|what| bad_range(data, last, &what))?;
        note_inserted(data, last);
        Ok(())
    }

    fn insert_blobs(&self, table: TableId, at: Timestamp, last: Rid, columns: &[u8]) -> Result<()> {
        let data = self.tables.get(&table).filter(|_| !self.base.has(table, last, at));
        let Some(data) = data else { return Ok(()) };
        check_slot(data, last)?;
        let restored = data.storage.restore_blobs(last.range(), columns, at, (self.reading, &data.name.to_string()));
        restored.map_err(|what| bad_range(data, last, &what))?;
        note_inserted(data, last);
        Ok(())
    }

    fn write_array(&self, table: TableId, at: Timestamp, number: u64, written: &WrittenLeaf) -> Result<()> {
        let Some(data) = self.tables.get(&table).filter(|_| !self.base.has_array(table, at)) else { return Ok(()) };
        let overlay = overlay_of(data, number, written).ok_or_else(|| {
            Error::BadRedo(format!("rows from {number} of \"{}\" are no rows of an array", data.name))
        })?;
        let array = data.array();
        array.grow_to(&data.name, overlay.leaf_count())?;
        let written = array.apply(&mut array.latch(), &overlay, at);
        written.map_err(|source| Error::ArrayMemory { table: data.name.to_string(), source })
    }

    fn change(&self, table: TableId, at: Timestamp, rid: Rid, change: Change<'_>) -> Result<()> {
        let Some(table) = self.tables.get(&table).filter(|data| !self.base.has(data.id, rid, at)) else {
            return Ok(());
        };
        let view = self.transactions.view(Snapshot::at(at));
        table.storage.append(view, at.0, rid, change).map_err(|error| match error {
            WriteError::Page(error) => Error::Page(error),
            error => Error::BadRedo(format!("record {rid:?} of \"{}\": {error:?}", table.name)),
        })?;
        if let Change::Update(values) = change {
            let changed = table.indexes.which(|index| index.is_among(values.iter().map(|(column, _)| *column)));
            changed.iter().for_each(|index| {
                index.note_changed_key();
                index.imaged.note(rid.range());
            });
        }
        if let (Some(primary_key), Change::Update(values)) = (&table.primary_key, change)
            && primary_key.is_among(values.iter().map(|(column, _)| *column))
        {
            table.note_changed_key();
            primary_key.index.imaged.note(rid.range());
            debug_assert!(table.has_changed_keys(), "invariant 7: lookups would trust the keys of inserts");
        }
        Ok(())
    }
}

/// What the log says of 64 keys of an array table, as it was written.
fn overlay_of(data: &TableData, number: u64, written: &WrittenLeaf) -> Option<Overlay> {
    let (array, rows) = (data.array.as_ref()?, written.present.count_ones() as usize);
    let (width, number) = (array.shape.width(), usize::try_from(number).ok()?);
    let is_whole = number < (KEY_MAX / LEAF_KEYS as u64) as usize
        && written.present & !written.touched == 0
        && written.words.len() == rows * width;
    if !is_whole {
        return None;
    }
    let mut overlay = Overlay::default();
    let leaf = overlay.leaf_mut(number, width, &array.budget);
    slots(written.touched & !written.present).for_each(|slot| leaf.delete(slot));
    for (row, slot) in slots(written.present).enumerate() {
        leaf.set(slot, &written.words[row * width..][..width]);
    }
    debug_assert_eq!((leaf.touched, leaf.present), (written.touched, written.present), "all that the log says");
    Some(overlay)
}

fn insert(table: &TableData, at: Timestamp, rid: Rid, cells: &[Cell<'_>]) -> Result<()> {
    if cells.len() != table.schema.columns().len() {
        return Err(Error::BadRedo(format!("a row of \"{}\" has {} values", table.name, cells.len())));
    }
    check_slot(table, rid)?;
    table.storage.insert_at(rid, cells, at.0);
    note_inserted(table, rid);
    Ok(())
}

fn bad_range(table: &TableData, last: Rid, what: &str) -> Error {
    Error::BadRedo(format!("range {} of \"{}\": {what}", last.range(), table.name))
}

/// Refuses a record that its table has no slot for.
fn check_slot(table: &TableData, rid: Rid) -> Result<()> {
    let range_records = table.storage.range_records();
    if rid.slot() >= range_records {
        return Err(Error::RangesTooSmall { table: table.name.to_string(), range_records });
    }
    Ok(())
}

/// Notes a record that was replayed, and those of its range: they have no entries yet, and an image of an index in the checkpoint does
/// not know of them.
fn note_inserted(table: &TableData, rid: Rid) {
    table.primary_key.iter().for_each(|primary_key| primary_key.index.imaged.note(rid.range()));
    table.indexes.each(|index| index.imaged.note(rid.range()));
    debug_assert!(table.storage.contains(rid), "invariant 8: {rid:?} was replayed and is not there");
}
