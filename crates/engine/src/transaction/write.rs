//! Rows one by one: insert, update, delete.
use std::sync::Arc;

use lineage::{AppendedRecords, Cell, Change, Hold, WriteError, word_of_value};
use smallvec::SmallVec;
use types::{Command, Rid, Snapshot, StartTime, Timestamp, TxnId, Value};

use super::locks::{LockAttempt, Obstacle, hold_beside, hold_of, strength_of};
use super::{LockedRow, Transaction, WrittenRecords};
use crate::disk::redo;
use crate::error::{Error, Result};
use crate::keys::computed::KeysOfBatch;
use crate::keys::data::Indexes;
use crate::keys::order::IndexKey;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::isolation::{Isolation, LockWait};
use crate::terms::row::{Cells, FittedRow, check_width};

/// Redo beyond this size goes to the log before the commit.
const REDO_BYTES_MAX: usize = 1 << 20;

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
    ///
    /// # Errors
    /// - [`Error::WrongWidth`], [`Error::BadValue`] or [`Error::NullInColumn`] if the row does not fit the table's
    ///   columns.
    /// - [`Error::DuplicateKey`] if another row has its primary key, or its key of a unique index;
    ///   [`Error::Conflict`] if a transaction that has not ended may have written such a row, and this one does not
    ///   wait for it.
    /// - [`Error::Expression`] if an expression of an index has no value for the row.
    /// - Those of a write and of a wait.
    pub fn insert(&mut self, table: &Table, row: &[Value]) -> Result<Rid> {
        self.check_writable(table)?;
        let data = &table.data;
        check_width(&data.name, data.schema.columns().len(), row.len())?;
        let mut fitted = FittedRow::new(&data.name, data.schema.columns(), row.iter().enumerate())?;
        let cells: Cells<'_> = fitted.cells().map(|(_, cell)| cell).collect();
        self.insert_cells(data, &cells, None)
    }

    /// Inserts a row, by itself or of a batch that has its keys worked out already.
    pub(super) fn insert_cells(
        &mut self,
        data: &Arc<TableData>,
        cells: &[Cell<'_>],
        keys: Option<(&KeysOfBatch, usize)>,
    ) -> Result<Rid> {
        debug_assert!(self.has_entered(data), "the table could go while it is written to");
        debug_assert_eq!(cells.len(), data.schema.columns().len(), "a cell for each column");
        self.anchor.check_memory_of(data)?;
        let rid = data.storage.insert(cells, self.start()?);
        debug_assert!(data.storage.contains(rid), "invariant 3: {rid:?} is out of reach");
        if let Err(error) = self.enter_keys(data, cells, keys, rid) {
            data.storage.stamp_insert(&sync::pin(), rid, self.id(), StartTime::TOMBSTONE);
            self.wake_waiters();
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
            Some(WrittenRecords::Inserts { table: same, first, count })
                if may_grow && *same == table && is_next(*first, *count) =>
            {
                *count += 1;
            }
            _ => self.written.push(WrittenRecords::Inserts { table, first: rid, count: 1 }),
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
        let start = self.id().word_of(self.command);
        debug_assert!(
            matches!(StartTime::from_word(start), StartTime::Pending(txn) if txn == self.id()),
            "invariant 4: {start:#x} is not hidden from others"
        );
        Ok(start)
    }

    /// The newest commit that may have written the rows this transaction changes: under READ COMMITTED any.
    pub(super) fn newest_allowed(&self) -> Timestamp {
        match self.options.isolation {
            Isolation::ReadCommitted => Timestamp::MAX,
            Isolation::Snapshot | Isolation::Serializable => self.at,
        }
    }

    /// Sets columns of the row with this primary key; returns whether there is one.
    ///
    /// # Errors
    /// As [`update_columns`](Self::update_columns).
    pub fn update(&mut self, table: &Table, key: &[Value], changes: &[(&str, Value)]) -> Result<bool> {
        let position = |(name, value): &'_ (&str, Value)| Ok((table.data.position(name)?, value.clone()));
        let changes = changes.iter().map(position).collect::<Result<SmallVec<[(usize, Value); 4]>>>()?;
        self.update_columns(table, key, &changes)
    }

    /// Sets columns, named by their positions, of the row with this primary key; returns whether there is one.
    ///
    /// # Errors
    /// - [`Error::NoSuchColumn`] or [`Error::ColumnTwice`] if `changes` name no column of the table, or one twice.
    /// - [`Error::NoPrimaryKey`] or [`Error::WrongWidth`] if the table has no such key; [`Error::BadValue`] or
    ///   [`Error::NullInColumn`] if a value does not fit its column.
    /// - [`Error::Conflict`] above READ COMMITTED if another transaction has changed the row: it has not ended, or it
    ///   has committed after this one's snapshot.
    /// - [`Error::DuplicateKey`] and [`Error::Expression`] as [`insert`](Self::insert); those of a write and of a
    ///   wait.
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
        let mut fitted =
            FittedRow::new(&data.name, data.schema.columns(), changes.iter().map(|(at, value)| (*at, value)))?;
        let values: Vec<(usize, Cell<'_>)> = fitted.cells().collect();
        self.change_key(data, key, Change::Update(&values))
    }

    /// Sets columns of the row with this primary key to what `compute` makes of its values in `columns`; returns whether there is
    /// such a row, or `None` if `compute` gives none, and nothing is changed. Under READ COMMITTED it computes again for a row that
    /// others have changed meanwhile.
    ///
    /// # Errors
    /// As [`update_columns`](Self::update_columns).
    pub fn update_computed(
        &mut self,
        table: &Table,
        key: &[Value],
        columns: &[usize],
        mut compute: impl FnMut(&[Value]) -> Option<Vec<(usize, Value)>>,
    ) -> Result<Option<bool>> {
        self.check_writable(table)?;
        let data = &table.data;
        data.check_positions(columns.iter().copied())?;
        let Some(key) = data.key_of_values(key)? else { return Ok(Some(false)) };
        loop {
            let (found, seen) = {
                let glance = self.glance();
                let view = self.transactions().view(glance.snapshot);
                (
                    data.read(view, &key, columns, |rid, cells| (rid, table.values_of(columns, cells)))?,
                    glance.snapshot.at,
                )
            };
            if let Some(reads) = &self.reads {
                reads.note_key(data, key.clone(), found.as_ref().map(|(rid, _)| *rid));
            }
            let Some((rid, values)) = found else { return Ok(Some(false)) };
            let Some(changes) = compute(&values) else { return Ok(None) };
            let mut fitted =
                FittedRow::new(&data.name, data.schema.columns(), changes.iter().map(|(at, value)| (*at, value)))?;
            let cells: Vec<(usize, Cell<'_>)> = fitted.cells().collect();
            match self.change(data, rid, seen, Change::Update(&cells))? {
                Done::Changed => return Ok(Some(true)),
                Done::Gone => return Ok(Some(false)),
                // Locked, it is not changed again before its values are read.
                Done::Stale => {
                    let strength = strength_of(hold_of(data, Change::Update(&cells)));
                    self.lock_found(table, rid.word(), strength, LockWait::Block, seen).map(drop)?
                }
            }
        }
    }

    /// Deletes the row with this primary key; returns whether there was one.
    ///
    /// # Errors
    /// [`Error::NoPrimaryKey`], [`Error::WrongWidth`] or [`Error::BadValue`] if the table has no such key;
    /// [`Error::Conflict`] as [`update_columns`](Self::update_columns); those of a write and of a wait.
    pub fn delete(&mut self, table: &Table, key: &[Value]) -> Result<bool> {
        self.check_writable(table)?;
        self.change_key(&table.data, key, Change::Delete)
    }

    /// Appends a version to the record with this key; false if there is none.
    fn change_key(&mut self, data: &Arc<TableData>, key: &[Value], change: Change<'_>) -> Result<bool> {
        let Some(key) = data.key_of_values(key)? else { return Ok(false) };
        self.change_by_key(data, key, change)
    }

    /// Appends a version to the record with the key that has this form in the index; false if there is none.
    pub(super) fn change_by_key(&mut self, data: &Arc<TableData>, key: IndexKey, change: Change<'_>) -> Result<bool> {
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
        if at == Timestamp::MAX
            && data.has_changed_keys()
            && !self.lock_with_key(data, rid, &key, hold_of(data, change))?
        {
            return Ok(false);
        }
        Ok(self.change(data, rid, at, change)? == Done::Changed)
    }

    /// The record that has the key now.
    pub(super) fn find(&self, data: &TableData, key: &IndexKey) -> Result<Option<Rid>> {
        let glance = self.glance();
        let found = data.find(self.transactions().view(glance.snapshot), key)?;
        self.saw_row(data, found, glance.snapshot.at);
        Ok(found)
    }

    /// Appends a version to a record of the table that has its newest version committed at or before `at`, and
    /// enters its key if that changes.
    pub(super) fn change(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        at: Timestamp,
        change: Change<'_>,
    ) -> Result<Done> {
        debug_assert!(self.has_entered(data), "the table could go while it is written to");
        // A delete may always go ahead: it is how room is made.
        if let Change::Update(_) = change {
            self.anchor.check_memory_of(data)?;
        }
        let changes_key = match (&data.primary_key, change) {
            (Some(key), Change::Update(values)) => key.is_among(values.iter().map(|(column, _)| *column)),
            _ => false,
        };
        if changes_key {
            data.note_changed_key();
        }
        let indexes = data.indexes.which(|index| match change {
            Change::Update(values) => index.is_among(values.iter().map(|(column, _)| *column)),
            Change::Delete => false,
        });
        indexes.iter().for_each(|index| index.note_changed_key());
        let start = self.start()?;
        let locked = self.locked.len();
        let appended = match self.append(data, rid, (at, start), change, &indexes)? {
            Ok(appended) => appended,
            Err(without) => {
                self.saw_anything();
                return Ok(without);
            }
        };
        self.saw_version(data, rid, Timestamp::MAX);
        if changes_key || !indexes.is_empty() {
            data.outdated_entries.add(1);
            if let Err(error) = self.settle(data, rid, changes_key, &indexes) {
                self.unlock(locked, self.shared.len());
                self.give_way(data, rid, appended);
                return Err(error);
            }
        }
        self.note_change(data, rid, appended, change)?;
        Ok(Done::Changed)
    }

    /// Appends a version, at once where nobody is in the way.
    #[inline]
    fn append(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        (at, start): (Timestamp, u64),
        change: Change<'_>,
        indexes: &Indexes,
    ) -> Result<Result<AppendedRecords, Done>> {
        let hold = hold_beside(data, change, indexes);
        if !data.share_locks.are_any() {
            let view = self.transactions().view(Snapshot::of_transaction(at, self.id()));
            if let Ok(appended) = data.storage.append(view, start, rid, change) {
                match self.keep(data, rid, (appended, start), (hold, change))? {
                    None => return Ok(Ok(appended)),
                    Some(_) => self.give_way(data, rid, appended),
                }
            }
        }
        self.append_when_free(data, rid, (at, start), (hold, change))
    }

    /// Appends a version, once no other transaction holds the record or shares it.
    #[cold]
    fn append_when_free(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        (at, start): (Timestamp, u64),
        (hold, change): (Hold, Change<'_>),
    ) -> Result<Result<AppendedRecords, Done>> {
        let strength = strength_of(hold);
        self.when_free(data, |transaction| {
            if let Some(other) = transaction.sharer(data, rid, strength) {
                return Ok(LockAttempt::Held(rid, other, Obstacle::Share(strength)));
            }
            let view = transaction.transactions().view(Snapshot::of_transaction(at, transaction.id()));
            match data.storage.append(view, start, rid, change) {
                Ok(appended) => match transaction.keep(data, rid, (appended, start), (hold, change))? {
                    None => Ok(LockAttempt::Done(Ok(appended))),
                    Some(other) => {
                        transaction.give_way(data, rid, appended);
                        Ok(LockAttempt::Held(rid, other, Obstacle::Share(strength)))
                    }
                },
                Err(WriteError::NotVisible) => Ok(LockAttempt::Done(Err(Done::Gone))),
                Err(WriteError::Locked(owner)) => transaction.wait_or_lose(data, rid, owner),
                Err(WriteError::Changed(_)) if transaction.options.isolation == Isolation::ReadCommitted => {
                    Ok(LockAttempt::Done(Err(Done::Stale)))
                }
                Err(WriteError::Changed(_)) => Err(transaction.lose(Error::Conflict)),
                Err(WriteError::Page(error)) => Err(error.into()),
            }
        })
    }

    /// Makes a version that was appended keep off the transactions that it should: one that changes the key gets a
    /// lock on top. Returns a transaction that shares the row, if the version has to go again.
    #[inline]
    fn keep(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        (appended, start): (AppendedRecords, u64),
        (hold, change): (Hold, Change<'_>),
    ) -> Result<Option<TxnId>> {
        let changes_key = hold == Hold::Whole && matches!(change, Change::Update(_));
        if !changes_key {
            return Ok(self.sharer(data, rid, strength_of(hold)));
        }
        let view = self.transactions().view(Snapshot::of_transaction(Timestamp::MAX, self.id()));
        let lock = match data.storage.lock(view, start, rid, hold) {
            Ok(lock) => lock,
            Err(WriteError::Page(error)) => {
                self.give_way(data, rid, appended);
                return Err(error.into());
            }
            Err(error) => unreachable!("the newest version is this transaction's: {error:?}"),
        };
        let sharer = self.sharer(data, rid, strength_of(hold));
        match lock {
            Some(lock) if sharer.is_some() => self.give_way(data, rid, lock),
            Some(lock) => {
                let table = self.position(data);
                self.locked.push(LockedRow { table, rid, appended: lock });
            }
            None => {}
        }
        Ok(sharer)
    }

    /// Enters the keys that a version has which was appended.
    fn settle(&mut self, data: &Arc<TableData>, rid: Rid, changes_key: bool, indexes: &Indexes) -> Result<()> {
        if let Some(primary_key) = data.primary_key.as_ref().filter(|_| changes_key) {
            let key = data.storage.read(self.newest(), rid, &primary_key.columns, |cells| primary_key.key(cells))?;
            key.map_or(Ok(()), |key| self.enter_key(data, primary_key, &key, rid))?;
        }
        for index in indexes {
            let keyed = data.storage.read(self.newest(), rid, index.columns(), |cells| index.keyed(cells))?;
            if let Some(keyed) = keyed {
                self.enter_index(data, index, keyed, rid)?;
            }
        }
        Ok(())
    }

    fn note_change(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        appended: AppendedRecords,
        change: Change<'_>,
    ) -> Result<()> {
        debug_assert!(
            appended.first > 0,
            "invariant 3: sequence numbers begin with 1, and {rid:?} would seem never updated"
        );
        if matches!(change, Change::Delete) {
            data.outdated_entries.add(1);
        }
        match change {
            _ if self.anchor.log.is_none() => {}
            Change::Update(values) => redo::put_update(&mut self.redo, data.id, rid, values),
            Change::Delete => redo::put_delete(&mut self.redo, data.id, rid),
        }
        let table = self.position(data);
        self.written.push(WrittenRecords::Versions { table, rid, appended });
        self.pass_redo_on()?;
        self.note_crowd(data, table, (rid, appended));
        Ok(())
    }

    /// Notes if the merge can't keep up with a range. The check costs a little, so it is done once for each block of
    /// numbers, at its beginning, as blocks are not always used to their end.
    #[inline]
    pub(super) fn note_crowd(&mut self, data: &Arc<TableData>, table: u32, (rid, appended): (Rid, AppendedRecords)) {
        if appended.first % 16 == 1 && self.anchor.merges.is_crowded(data, rid.range()) {
            self.crowded = Some((table, rid.range()));
        }
    }

    /// Passes redo on to the log before there is too much of it.
    pub(super) fn pass_redo_on(&mut self) -> Result<()> {
        if let Some(log) = &self.anchor.log
            && self.redo.len() >= REDO_BYTES_MAX
        {
            let partition = self.log_place().partition;
            debug_assert!(
                self.log_partition.is_none_or(|known| known == partition),
                "invariant 8: redo of a transaction is in two partitions"
            );
            log.append_data(partition, self.id().number(), &self.redo)?;
            (self.log_partition, self.redo_in_log) = (Some(partition), self.redo_in_log + self.redo.len() as u64);
            self.redo.clear();
        }
        Ok(())
    }
}
