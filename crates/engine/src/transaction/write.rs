//! Rows one by one: insert, update, delete, and the keys that they enter.
use std::sync::Arc;

use index::Holder;
use lineage::{Appended, Cell, Change, PageError, WriteError, Writer, word_of_value};
use smallvec::SmallVec;
use types::{Command, Rid, Snapshot, StartTime, Timestamp, TxnId, Value};

use super::locks::Tried;
use super::{Transaction, Written};
use crate::error::{Error, Result};
use crate::isolation::Isolation;
use crate::primary_key::Key;
use crate::redo;
use crate::row::{Cells, Fitted, check_width, shorten};
use crate::table::{Table, TableData};

/// Redo beyond this size goes to the log before the commit.
const REDO_BYTES_MAX: usize = 1 << 20;

/// Why a record does not get a key.
enum Taken {
    /// Another record has it.
    By(Rid),
    /// Whether another record keeps it is known once its writer has ended; `None` if it has ended, too late for this
    /// transaction's snapshot.
    Undecided(Rid, Option<TxnId>),
    /// It can't be told, as a page can't be read back.
    Unknown(PageError),
}

/// What became of a change of one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    Changed,
    /// Its newest version is newer than the transaction has seen, which READ COMMITTED takes as it is.
    Stale,
    /// There is no such record.
    Gone,
}

impl Transaction {
    /// Inserts a row: one value for each column, in the table's order.
    pub fn insert(&mut self, table: &Table, row: &[Value]) -> Result<Rid> {
        self.check_writable(table)?;
        let data = &table.data;
        check_width(&data.name, data.schema.columns().len(), row.len())?;
        let mut fitted = Fitted::new(&data.name, &data.schema, row.iter().enumerate())?;
        let cells: Cells<'_> = fitted.cells().map(|(_, cell)| cell).collect();
        self.insert_cells(data, &cells)
    }

    pub(super) fn insert_cells(&mut self, data: &Arc<TableData>, cells: &[Cell<'_>]) -> Result<Rid> {
        self.anchor.check_memory()?;
        let rid = data.storage.insert(cells, self.start()?);
        if let Some(primary_key) = &data.primary_key
            && let Err(error) = self.enter_key(data, &primary_key.key_of_row(cells), rid)
        {
            data.storage.stamp_insert(&sync::pin(), rid, self.id(), StartTime::TOMBSTONE);
            return Err(error);
        }
        if self.anchor.log.is_some() {
            redo::put_insert(&mut self.redo, data.id, rid, cells);
        }
        let table = self.position(data);
        let is_next =
            |first: Rid, count: u32| first.range() == rid.range() && first.slot() + count as usize == rid.slot();
        let may_grow = self.written.len() > self.last_mark();
        match self.written.last_mut() {
            Some(Written::Inserts { table: same, first, count })
                if may_grow && *same == table && is_next(*first, *count) =>
            {
                *count += 1;
            }
            _ => self.written.push(Written::Inserts { table, first: rid, count: 1 }),
        }
        self.pass_redo_on()?;
        Ok(rid)
    }

    /// The Start Time of what is written now. What views that are still open see must not change, so a new command begins
    /// where there are any.
    pub(super) fn start(&mut self) -> Result<u64> {
        if self.open.get().is_some_and(|open| Arc::strong_count(open) > 1) {
            let next = Command(self.command.0 + 1);
            if next == Command::LAST {
                return Err(Error::TooManyCommands);
            }
            (self.command, self.open) = (next, Default::default());
        }
        Ok(self.id().word_of(self.command))
    }

    /// Enters `rid` under its key, unless another record has the key. Waits for who may give it up where the isolation level
    /// says so.
    fn enter_key(&mut self, data: &Arc<TableData>, key: &Key, rid: Rid) -> Result<()> {
        self.when_free(data, |transaction| match transaction.claim_key(data, key.clone(), rid) {
            Ok(()) => Ok(Tried::Done(())),
            Err(Taken::By(other)) => {
                transaction.reads.iter().for_each(|reads| reads.note_record(data, other));
                Err(transaction.duplicate_key(data, other))
            }
            Err(Taken::Undecided(other, Some(owner))) => transaction.wait_or_lose(data, other, owner),
            Err(Taken::Undecided(_, None)) => Err(transaction.lose(Error::Conflict)),
            Err(Taken::Unknown(error)) => Err(error.into()),
        })
    }

    fn claim_key(&self, data: &TableData, key: Key, rid: Rid) -> Result<(), Taken> {
        let Some(primary_key) = &data.primary_key else { return Ok(()) };
        let newest = self.newest();
        let seen = self.transactions().view(Snapshot::of_transaction(self.newest_allowed(), self.id()));
        let mut taken = None;
        let claimed = primary_key.insert_unique(key.clone(), rid, |other| {
            let has_key = |cells: &[Cell<'_>]| primary_key.key(cells) == key;
            let look = || {
                match data.storage.newest_writer(newest, other)? {
                    Writer::Running(owner) => return Ok((Holder::Present, Some(Taken::Undecided(other, Some(owner))))),
                    Writer::Tombstone => return Ok((Holder::Void, None)),
                    Writer::Settled => {}
                }
                let has_now = data.storage.read(newest, other, &primary_key.columns, has_key)?;
                if has_now == Some(true) {
                    return Ok((Holder::Present, None));
                }
                // It gave the key up after this transaction's snapshot, which would have the key twice.
                if data.storage.read(seen, other, &primary_key.columns, has_key)? == Some(true) {
                    return Ok((Holder::Present, Some(Taken::Undecided(other, None))));
                }
                // Deleted with the key that it was inserted with. Once keys have been changed in this table that is no
                // longer certain: a merge forgets an update that was rolled back, and the index has its entry.
                let is_former = has_now.is_none() && !data.has_changed_keys();
                Ok((if is_former { Holder::Former } else { Holder::Past }, None))
            };
            let (holder, why) = look().unwrap_or_else(|error| (Holder::Present, Some(Taken::Unknown(error))));
            if holder == Holder::Present {
                taken = why;
            }
            holder
        });
        claimed.map_err(|other| taken.unwrap_or(Taken::By(other)))
    }

    /// The newest commit whose rows this transaction may write to: under READ COMMITTED all of them.
    pub(super) fn newest_allowed(&self) -> Timestamp {
        match self.options.isolation {
            Isolation::ReadCommitted => Timestamp::MAX,
            Isolation::Snapshot | Isolation::Serializable => self.at,
        }
    }

    fn duplicate_key(&self, data: &TableData, other: Rid) -> Error {
        let columns = data.schema.primary_key();
        let names: Vec<&str> = columns.iter().map(|column| data.schema.columns()[*column].name.as_str()).collect();
        let values = match data.storage.read_values(self.newest(), other, columns) {
            Ok(values) => values.unwrap_or_default(),
            Err(error) => return error.into(),
        };
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        let key = shorten(format!("({})=({})", names.join(", "), values.join(", ")));
        Error::DuplicateKey { table: data.name.to_string(), key }
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
        let columns = data.schema.columns();
        let (mut seen, mut words) = (0_u64, SmallVec::<[(usize, Cell<'_>); 8]>::new());
        for (i, (at, value)) in changes.iter().enumerate() {
            let Some(column) = columns.get(*at) else { return Err(data.no_such_position(*at)) };
            // Columns beyond the bits of the word share some, and are looked for one by one.
            let bit = 1 << (at % 64);
            if seen & bit != 0 && changes[..i].iter().any(|(earlier, _)| earlier == at) {
                return Err(Error::ColumnTwice { table: data.name.to_string(), column: column.name.clone() });
            }
            seen |= bit;
            if let Some(word) = word_of_value(value, column.data_type) {
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

    /// Deletes the row with this primary key; returns whether there was one.
    pub fn delete(&mut self, table: &Table, key: &[Value]) -> Result<bool> {
        self.check_writable(table)?;
        self.change_key(&table.data, key, Change::Delete)
    }

    /// Appends a version to the record with this key; false if there is none.
    fn change_key(&mut self, data: &Arc<TableData>, key: &[Value], change: Change<'_>) -> Result<bool> {
        let Some(key) = data.key_of_values(key)? else { return Ok(false) };
        let at = self.newest_allowed();
        if let Some(primary_key) = &data.primary_key
            && !data.has_changed_keys()
        {
            // Nothing is pinned while the change waits for memory: what others give up would not come back.
            let newest = primary_key.find(&sync::pin(), &key, Some);
            if let Some(newest) = newest
                && self.change(data, newest, at, change)? == Done::Changed
            {
                return Ok(true);
            }
        }
        // There is no record, or an older one has the key in this snapshot.
        let found = self.find(data, &key)?;
        if let Some(reads) = &self.reads {
            reads.note_key(data, key.clone(), found);
        }
        let Some(rid) = found else { return Ok(false) };
        // While it waits for others, they may give the record another key.
        if at == Timestamp::MAX && data.has_changed_keys() && !self.lock_with_key(data, rid, &key)? {
            return Ok(false);
        }
        Ok(self.change(data, rid, at, change)? == Done::Changed)
    }

    /// The record that has the key now.
    pub(super) fn find(&self, data: &TableData, key: &Key) -> Result<Option<Rid>> {
        let glance = self.glance();
        data.find(self.transactions().view(glance.snapshot), key)
    }

    /// Appends a version to a record of the table whose newest version was committed at or before `at`, and enters its key if that
    /// changes.
    pub(super) fn change(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        at: Timestamp,
        change: Change<'_>,
    ) -> Result<Done> {
        // A delete may always go ahead: it is how room is made.
        if let Change::Update(_) = change {
            self.anchor.check_memory()?;
        }
        let changes_key = match (&data.primary_key, change) {
            (Some(key), Change::Update(values)) => key.is_among(values.iter().map(|(column, _)| *column)),
            _ => false,
        };
        if changes_key {
            data.note_changed_key();
        }
        let start = self.start()?;
        let view = self.transactions().view(Snapshot::of_transaction(at, self.id()));
        let appended = match data.storage.append(view, start, rid, change) {
            Ok(appended) => appended,
            Err(_) => match self.append_when_free(data, rid, at, start, change)? {
                Ok(appended) => appended,
                Err(without) => return Ok(without),
            },
        };
        if (changes_key || data.share_locks.are_any())
            && let Err(error) = self.settle(data, rid, changes_key)
        {
            data.storage.stamp_versions(&sync::pin(), rid, appended, self.id(), StartTime::TOMBSTONE);
            self.wake_waiters();
            return Err(error);
        }
        self.note_change(data, rid, appended, change)?;
        Ok(Done::Changed)
    }

    /// Appends a version, once no other transaction holds the record.
    #[cold]
    fn append_when_free(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        at: Timestamp,
        start: u64,
        change: Change<'_>,
    ) -> Result<Result<Appended, Done>> {
        self.when_free(data, |transaction| {
            let view = transaction.transactions().view(Snapshot::of_transaction(at, transaction.id()));
            match data.storage.append(view, start, rid, change) {
                Ok(appended) => Ok(Tried::Done(Ok(appended))),
                Err(WriteError::NotVisible) => Ok(Tried::Done(Err(Done::Gone))),
                Err(WriteError::Locked(owner)) => transaction.wait_or_lose(data, rid, owner),
                Err(WriteError::Changed(_)) if transaction.options.isolation == Isolation::ReadCommitted => {
                    Ok(Tried::Done(Err(Done::Stale)))
                }
                Err(WriteError::Changed(_)) => Err(transaction.lose(Error::Conflict)),
                Err(WriteError::Page(error)) => Err(error.into()),
            }
        })
    }

    /// What is left to do once a version is appended: those who share a lock on the row are waited for, and the key is
    /// entered.
    fn settle(&mut self, data: &Arc<TableData>, rid: Rid, changes_key: bool) -> Result<()> {
        if data.share_locks.are_any() {
            self.wait_for_sharers(data, rid, crate::isolation::LockWait::Block)?;
        }
        let Some(primary_key) = data.primary_key.as_ref().filter(|_| changes_key) else { return Ok(()) };
        let key = data.storage.read(self.newest(), rid, &primary_key.columns, |cells| primary_key.key(cells))?;
        key.map_or(Ok(()), |key| self.enter_key(data, &key, rid))
    }

    fn note_change(&mut self, data: &Arc<TableData>, rid: Rid, appended: Appended, change: Change<'_>) -> Result<()> {
        match change {
            _ if self.anchor.log.is_none() => {}
            Change::Update(values) => redo::put_update(&mut self.redo, data.id, rid, values),
            Change::Delete => redo::put_delete(&mut self.redo, data.id, rid),
        }
        let table = self.position(data);
        self.written.push(Written::Versions { table, rid, appended });
        self.pass_redo_on()?;
        // Looking costs a little, so it is done once for each block of numbers: by whoever begins it, as blocks are not
        // always used to their end.
        if appended.first % 16 == 1 && self.anchor.merges.is_crowded(data, rid.range()) {
            self.crowded = Some((table, rid.range()));
        }
        Ok(())
    }

    /// Passes redo on to the log before there is too much of it.
    pub(super) fn pass_redo_on(&mut self) -> Result<()> {
        if let Some(log) = &self.anchor.log
            && self.redo.len() >= REDO_BYTES_MAX
        {
            let partition = self.log_place().partition;
            log.append_data(partition, self.id().number(), &self.redo)?;
            (self.log_partition, self.redo_in_log) = (Some(partition), self.redo_in_log + self.redo.len() as u64);
            self.redo.clear();
        }
        Ok(())
    }
}
