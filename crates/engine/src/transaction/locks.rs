//! Waiting for other transactions, and locking rows without a change.
//!
//! The uncommitted version of a record is its lock. A transaction that wants to write the record too waits until
//! that version's transaction has ended (`txn`: one queue a row, deadlocks found), and looks again. Locking a row
//! for update appends a version that says nothing, which is a tombstone from the end of the transaction on.
//! `lineage::Hold` tells how strong a lock the appended versions are: a transaction that only shares the key does
//! not wait for an update of other columns.
//!
//! The sharers of a row stand on a list (`share_locks.rs`). A writer that has to wait for one of them appends
//! nothing before, or takes it back, and it waits for that transaction itself and not in the row's queue. Nor does
//! a transaction wait in the queue that shares the row itself: those in the queue may be waiting for it.
use std::sync::Arc;
use std::time::Instant;

use lineage::{AppendedRecords, Change, Hold, Validation, WriteError, Writer};
use txn::{QueuePlace, RowName, WaitError};
use types::{Rid, Snapshot, StartTime, Timestamp, TxnId, Value};

use super::Transaction;
use super::notes::{LockedRow, Lost};
use super::running::is_rolled_back;
use crate::database::handle::Anchor;
use crate::database::shared::DatabaseState;
use crate::error::{Error, Result};
use crate::keys::data::Indexes;
use crate::keys::order::IndexKey;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::table::read_view::ReadView;
use crate::terms::isolation::{Isolation, LockStrength, LockWait, RowLock};

/// The result of trying to get a row.
pub(super) enum LockAttempt<T> {
    Done(T),
    /// Another transaction holds it.
    Held(Rid, TxnId, Obstacle),
}

/// The hold of another transaction that keeps this one from a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Its version of the row, or its lock.
    Version,
    /// Its version of the row, or its lock, because it may end the row or change its key.
    WholeVersion,
    /// Its share of the row, which is to be locked so.
    Share(LockStrength),
}

/// Ends from another thread what a transaction is at for long: its wait for a row, a batch of rows, the making of an index.
#[derive(Clone)]
pub struct Interrupter {
    anchor: Anchor,
    txn: TxnId,
}

impl Interrupter {
    /// What the transaction is at fails with [`Error::Interrupted`], or what it is at next if it is at nothing now.
    pub fn interrupt(&self) {
        self.anchor.core.transactions.0.interrupt(self.txn);
    }
}

impl Transaction {
    /// The means to end its waits from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter { anchor: self.anchor.clone(), txn: self.id() }
    }

    /// Whether the transaction is to end what it is at. What takes long asks this between its steps.
    pub(super) fn is_interrupted(&self) -> bool {
        self.transactions().0.is_interrupted(self.id())
    }

    /// Forgets an interrupt that has not ended anything.
    pub fn clear_interrupt(&mut self) {
        self.transactions().0.clear_interrupt(self.handle());
    }

    /// Waits for a row that another transaction has written, under READ COMMITTED or if that one is rolled back already;
    /// else loses it.
    pub(super) fn wait_or_lose<T>(&mut self, data: &Arc<TableData>, rid: Rid, owner: TxnId) -> Result<LockAttempt<T>> {
        debug_assert_ne!(owner, self.id(), "a transaction is not in its own way");
        let is_given_up = || self.transactions().0.description(owner).is_some_and(is_rolled_back);
        if self.options.isolation == Isolation::ReadCommitted || is_given_up() {
            return Ok(LockAttempt::Held(rid, owner, Obstacle::Version));
        }
        self.lost = Some(Lost { data: data.clone(), rid, owner });
        Err(self.lose(Error::Conflict))
    }

    /// Tries until no other transaction holds the row, waiting in the row's queue in between.
    #[inline]
    pub(super) fn when_free<T>(
        &mut self,
        data: &Arc<TableData>,
        mut attempt: impl FnMut(&mut Transaction) -> Result<LockAttempt<T>>,
    ) -> Result<T> {
        match attempt(self)? {
            LockAttempt::Done(done) => Ok(done),
            LockAttempt::Held(rid, owner, by) => self.queue(data, (rid, owner, by), &mut attempt),
        }
    }

    #[cold]
    fn queue<T>(
        &mut self,
        data: &Arc<TableData>,
        (mut rid, mut owner, mut by): (Rid, TxnId, Obstacle),
        attempt: &mut dyn FnMut(&mut Transaction) -> Result<LockAttempt<T>>,
    ) -> Result<T> {
        let (anchor, deadline) = (self.anchor.clone(), self.lock_deadline());
        let queues = &anchor.core.transactions.0;
        let mut place = queues.queue(self.handle(), row_name(data, rid));
        loop {
            let is_held = || is_held(&anchor, data, (rid, owner, by));
            let is_in_line = by == Obstacle::Version && !data.share_locks.has(rid, self.id(), LockStrength::KeyShare);
            let waited = match is_in_line {
                true => place.wait(owner, &is_held, deadline),
                false => queues.wait_for(self.handle(), owner, row_name(data, rid), &is_held, deadline),
            };
            waited.map_err(|error| self.wait_failed(error))?;
            match attempt(self)? {
                // The place is given up now that the row is this transaction's.
                LockAttempt::Done(done) => return Ok(done),
                LockAttempt::Held(next, holder, why) => {
                    if next != rid {
                        place = queues.queue(self.handle(), row_name(data, next));
                    }
                    (rid, owner, by) = (next, holder, why);
                }
            }
        }
    }

    pub(super) fn lock_deadline(&self) -> Option<Instant> {
        self.options.lock_timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    pub(super) fn wait_failed(&self, error: WaitError) -> Error {
        match error {
            WaitError::Deadlock => self.lose(Error::Deadlock),
            WaitError::TimedOut => Error::LockTimeout,
            WaitError::Interrupted => Error::Interrupted,
        }
    }

    /// Waits in `place` until a row that an earlier transaction lost is free, and takes a new snapshot.
    pub(crate) fn follow(&mut self, place: &mut QueuePlace<'_>, lost: &Lost) -> Result<()> {
        let is_held = || is_held(&self.anchor, &lost.data, (lost.rid, lost.owner, Obstacle::Version));
        place.wait(lost.owner, &is_held, self.lock_deadline()).map_err(|error| self.wait_failed(error))?;
        if self.options.isolation != Isolation::ReadCommitted {
            let renewed = self.transactions().0.renew_snapshot(self.handle());
            debug_assert!(renewed >= self.at, "invariant 4: the snapshot goes back from {:?} to {renewed:?}", self.at);
            self.at = renewed;
        }
        Ok(())
    }

    /// A place in the queue of a row that an earlier transaction lost.
    pub(crate) fn place<'a>(&self, database: &'a DatabaseState, lost: &Lost) -> QueuePlace<'a> {
        database.core.transactions.0.queue(self.handle(), row_name(&lost.data, lost.rid))
    }

    /// Remembers that the transaction may succeed when it is done again.
    pub(super) fn lose(&self, error: Error) -> Error {
        self.has_lost.set(true);
        error
    }

    /// Whether it met a conflict that may not come again, and the transaction that it lost a row to.
    pub(crate) fn loss(&mut self) -> (bool, Option<Lost>) {
        (self.has_lost.get(), self.lost.take())
    }

    /// Wakes the transactions that wait for this one to look again, as it has given something up.
    pub(super) fn wake_waiters(&self) {
        self.transactions().0.wake_waiters(self.handle());
    }

    /// Finds another transaction that keeps this one from a row by sharing it.
    #[inline]
    pub(super) fn sharer(&self, data: &TableData, rid: Rid, strength: LockStrength) -> Option<TxnId> {
        if data.share_locks.are_any() { data.share_locks.other(rid, self.id(), strength) } else { None }
    }

    /// Takes back what was appended to a row, as it can't stay.
    pub(super) fn give_way(&self, data: &TableData, rid: Rid, appended: AppendedRecords) {
        data.storage.stamp_versions(&sync::pin(), rid, appended, self.id(), StartTime::TOMBSTONE);
        self.wake_waiters();
    }

    /// Locks a row that was found in `view`, until the transaction ends or rolls back to an earlier savepoint.
    ///
    /// Under READ COMMITTED a row that is newer than the view is locked all the same and told to be [`RowLock::Stale`];
    /// above it is a conflict.
    ///
    /// # Errors
    /// - [`Error::LockNotAvailable`] if another transaction has the row, and `wait` says not to wait.
    /// - [`Error::Conflict`] above READ COMMITTED if the row is newer than the view.
    /// - Those of a write and of a wait.
    pub fn lock_row(
        &mut self,
        table: &Table,
        rid: u64,
        strength: LockStrength,
        wait: LockWait,
        view: &ReadView,
    ) -> Result<RowLock> {
        self.check_writable(table)?;
        if table.data.array.is_some() {
            return self.lock_in_array(table, rid, wait, view);
        }
        self.lock_found(table, rid, strength, wait, view.at())
    }

    /// The row with this primary key, locked for update; waits for it at every isolation level.
    ///
    /// # Errors
    /// [`Error::NoPrimaryKey`], [`Error::WrongWidth`] or [`Error::BadValue`] if the table has no such key;
    /// [`Error::Conflict`] above READ COMMITTED if the row is newer than the transaction's snapshot; those of a
    /// write, of a wait and of a read.
    pub fn get_for_update(&mut self, table: &Table, key: &[Value]) -> Result<Option<Vec<Value>>> {
        self.check_writable(table)?;
        let data = &table.data;
        if data.array.is_some() {
            return self.get(table, key);
        }
        let Some(index_key) = data.key_of_values(key)? else { return Ok(None) };
        loop {
            let Some(rid) = self.find(data, &index_key)? else {
                if let Some(reads) = self.reads() {
                    reads.note_key(data, index_key, None);
                }
                return Ok(None);
            };
            let at = self.newest_allowed();
            match self.lock_found(table, rid.word(), LockStrength::Update, LockWait::Block, at)? {
                // Another record may have got its key.
                RowLock::Gone => {}
                RowLock::Skipped => return Ok(None),
                RowLock::Locked | RowLock::Stale => {
                    // Without a row it has another key now.
                    if let Some(row) = self.get(table, key)? {
                        return Ok(Some(row));
                    }
                }
            }
        }
    }

    pub(super) fn lock_found(
        &mut self,
        table: &Table,
        rid: u64,
        strength: LockStrength,
        wait: LockWait,
        seen: Timestamp,
    ) -> Result<RowLock> {
        let (data, rid) = (&table.data, Rid::from_word(rid));
        if !data.storage.contains(rid) {
            return Ok(RowLock::Gone);
        }
        let locked = match strength {
            LockStrength::Update => self.lock_for_change(data, rid, Hold::Whole, wait, seen),
            LockStrength::NoKeyUpdate => self.lock_for_change(data, rid, Hold::Values, wait, seen),
            LockStrength::Share | LockStrength::KeyShare => self.lock_for_share(data, rid, strength, wait, seen),
        };
        self.saw_anything();
        locked
    }

    pub(super) fn lock_for_change(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        hold: Hold,
        wait: LockWait,
        seen: Timestamp,
    ) -> Result<RowLock> {
        debug_assert!(self.has_entered(data), "the table could go while a row of it is locked");
        self.anchor.check_memory_of(data)?;
        let start = self.start()?;
        let strength = strength_of(hold);
        let mut at = seen;
        let appended = self.when_free(data, |transaction| {
            if let Some(other) = transaction.sharer(data, rid, strength) {
                return Self::held(data, (rid, other, Obstacle::Share(strength)), wait);
            }
            loop {
                let view = transaction.transactions().view(Snapshot::of_transaction(at, transaction.id()));
                let appended = match data.storage.lock(view, start, rid, hold) {
                    Ok(Some(appended)) => appended,
                    Ok(None) => return Ok(LockAttempt::Done(Err(RowLock::Locked))),
                    Err(WriteError::NotVisible) => return Ok(LockAttempt::Done(Err(RowLock::Gone))),
                    Err(WriteError::Locked(owner)) => return Self::held(data, (rid, owner, Obstacle::Version), wait),
                    Err(WriteError::Changed(_)) if transaction.options.isolation == Isolation::ReadCommitted => {
                        at = Timestamp::MAX;
                        continue;
                    }
                    Err(WriteError::Changed(_)) => return Err(transaction.lose(Error::Conflict)),
                    Err(WriteError::Page(error)) => return Err(error.into()),
                };
                let Some(other) = transaction.sharer(data, rid, strength) else {
                    return Ok(LockAttempt::Done(Ok(appended)));
                };
                transaction.give_way(data, rid, appended);
                return Self::held(data, (rid, other, Obstacle::Share(strength)), wait);
            }
        })?;
        let outcome = if at == seen { RowLock::Locked } else { RowLock::Stale };
        match appended {
            Ok(appended) => {
                let table = self.position(data);
                self.locked.push(LockedRow { table, rid, appended });
                Ok(outcome)
            }
            Err(RowLock::Locked) => Ok(outcome),
            Err(without) => Ok(without),
        }
    }

    /// Decides what to do about a row that another transaction has locked.
    fn held<T>(
        data: &TableData,
        (rid, owner, by): (Rid, TxnId, Obstacle),
        wait: LockWait,
    ) -> Result<LockAttempt<Result<T, RowLock>>> {
        match wait {
            LockWait::Block => Ok(LockAttempt::Held(rid, owner, by)),
            LockWait::NoWait => Err(Error::LockNotAvailable { table: data.name.to_string() }),
            LockWait::SkipLocked => Ok(LockAttempt::Done(Err(RowLock::Skipped))),
        }
    }

    fn lock_for_share(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        strength: LockStrength,
        wait: LockWait,
        seen: Timestamp,
    ) -> Result<RowLock> {
        debug_assert!(self.has_entered(data), "the table could go while a row of it is locked");
        if data.share_locks.has(rid, self.id(), strength) {
            return self.look_again(data, rid, seen);
        }
        let shared = self.when_free(data, |transaction| {
            data.share_locks.enter(rid, transaction.id(), strength);
            let newest = transaction.newest();
            let (owner, by) = match data.storage.newest_writer_latched(newest, rid)? {
                Writer::Settled => {
                    return transaction.look_again(data, rid, seen).map(|found| LockAttempt::Done(Ok(found)));
                }
                Writer::Tombstone => return Ok(LockAttempt::Done(Err(RowLock::Gone))),
                Writer::Running(owner) if strength != LockStrength::KeyShare => (owner, Obstacle::Version),
                Writer::Running(owner) => match data.storage.hold(newest, rid, owner)? {
                    Hold::Whole => (owner, Obstacle::WholeVersion),
                    // Should it want more from here on, it finds this transaction on the list.
                    Hold::Values => {
                        return transaction.look_again(data, rid, seen).map(|found| LockAttempt::Done(Ok(found)));
                    }
                },
            };
            // The owner may be waiting for the transactions that share the row.
            transaction.stop_sharing(data, rid, strength);
            Self::held(data, (rid, owner, by), wait)
        });
        if let Ok(Ok(RowLock::Locked | RowLock::Stale)) = shared {
            debug_assert!(data.share_locks.has(rid, self.id(), strength), "the row is told to be shared, and is not");
            let table = self.position(data);
            self.shared.push((table, rid, strength));
        } else {
            self.stop_sharing(data, rid, strength);
        }
        shared.map(|shared| shared.unwrap_or_else(|without| without))
    }

    fn stop_sharing(&self, data: &TableData, rid: Rid, strength: LockStrength) {
        data.share_locks.leave(rid, self.id(), strength);
        self.wake_waiters();
    }

    /// The answer for a row that no transaction can change any more.
    fn look_again(&self, data: &TableData, rid: Rid, seen: Timestamp) -> Result<RowLock> {
        let is_there = data.storage.read(self.newest(), rid, &[], |_| ())?.is_some();
        let asked = Validation { from: seen, to: Timestamp::MAX, own: self.id(), outcomes: self.transactions() };
        let is_newer = seen < Timestamp::MAX && data.storage.changed_between(rid, asked)?;
        match self.options.isolation {
            Isolation::Snapshot | Isolation::Serializable if is_newer => Err(self.lose(Error::Conflict)),
            _ if !is_there => Ok(RowLock::Gone),
            _ => Ok(if is_newer { RowLock::Stale } else { RowLock::Locked }),
        }
    }

    /// Locks a record for a change whatever its version, and says whether it has this key then.
    pub(super) fn lock_with_key(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        key: &IndexKey,
        hold: Hold,
    ) -> Result<bool> {
        let locked = self.lock_for_change(data, rid, hold, LockWait::Block, Timestamp::MAX)?;
        let Some(primary_key) = &data.primary_key else { return Ok(false) };
        let has_key = |cells: &[lineage::Cell<'_>]| primary_key.key(cells) == *key;
        let is_same = data.storage.read(self.newest(), rid, &primary_key.columns, has_key)? == Some(true);
        self.saw_anything();
        Ok(locked != RowLock::Gone && is_same)
    }
}

/// Whether a transaction still keeps others from a row.
fn is_held(anchor: &Anchor, data: &TableData, (rid, owner, by): (Rid, TxnId, Obstacle)) -> bool {
    let newest = anchor.core.transactions.newest(None);
    match by {
        Obstacle::Share(strength) => data.share_locks.keeps_off(rid, owner, strength),
        _ if data.storage.newest_writer(newest, rid) != Ok(Writer::Running(owner)) => false,
        Obstacle::Version => true,
        Obstacle::WholeVersion => data.storage.hold(newest, rid, owner) == Ok(Hold::Whole),
    }
}

/// How much of a row a change needs: all of it to end it, or to set a column by which others may refer to it.
pub(super) fn hold_of(data: &TableData, change: Change<'_>) -> Hold {
    let touched = data.indexes.which(|index| match change {
        Change::Update(values) => index.is_among(values.iter().map(|(column, _)| *column)),
        Change::Delete => false,
    });
    hold_beside(data, change, &touched)
}

/// How much of a row a change needs, for a change that touches columns of these indexes.
#[inline]
pub(super) fn hold_beside(data: &TableData, change: Change<'_>, touched: &Indexes) -> Hold {
    let is_key = match (change, &data.primary_key) {
        (Change::Delete, _) => true,
        (Change::Update(values), Some(key)) if key.is_among(values.iter().map(|(column, _)| *column)) => true,
        (Change::Update(_), _) => touched.iter().any(|index| index.definition.is_key()),
    };
    if is_key { Hold::Whole } else { Hold::Values }
}

/// The strength of a lock that holds so much of a row.
pub(super) fn strength_of(hold: Hold) -> LockStrength {
    match hold {
        Hold::Values => LockStrength::NoKeyUpdate,
        Hold::Whole => LockStrength::Update,
    }
}

fn row_name(data: &TableData, rid: Rid) -> RowName {
    RowName { table: data.id, rid: rid.word() }
}
