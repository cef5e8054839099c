//! Waiting for other transactions, and locking rows without a change.
//!
//! The uncommitted version of a record is its lock. Who wants to write it too waits until that version's transaction has
//! ended (`txn`: one queue a row, deadlocks found), and looks again. Locking a row for update appends a version that says
//! nothing, which is a tombstone from the end of the transaction on.
use std::sync::Arc;
use std::time::Instant;

use lineage::{Validation, WriteError, Writer};
use txn::{Place, RowName, WaitError};
use types::{Rid, Snapshot, Timestamp, TxnId, Value};

use super::{Locked, Transaction};
use crate::anchor::Anchor;
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::indexes::IndexKey;
use crate::isolation::{Isolation, LockStrength, LockWait, RowLock};
use crate::read_view::ReadView;
use crate::table::{Table, TableData};

/// A row that a transaction could not have, and the one that had it.
pub(crate) struct Lost {
    data: Arc<TableData>,
    rid: Rid,
    owner: TxnId,
}

/// What came of trying to get a row.
pub(super) enum Tried<T> {
    Done(T),
    /// Another transaction holds it.
    Held(Rid, TxnId),
}

/// Ends a transaction's wait for a row from another thread.
#[derive(Clone)]
pub struct Interrupter {
    anchor: Anchor,
    txn: TxnId,
}

impl Interrupter {
    /// The transaction's wait fails with [`Error::Interrupted`], or its next one if it is not waiting now.
    pub fn interrupt(&self) {
        self.anchor.core.transactions.0.interrupt(self.txn);
    }
}

impl Transaction {
    /// The means to end its waits from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter { anchor: self.anchor.clone(), txn: self.id() }
    }

    /// Forgets an interrupt that has not met a wait.
    pub fn clear_interrupt(&mut self) {
        self.transactions().0.clear_interrupt(self.handle());
    }

    /// What to do about a row that another transaction has written: under READ COMMITTED it is waited for, above it is lost.
    pub(super) fn wait_or_lose<T>(&mut self, data: &Arc<TableData>, rid: Rid, owner: TxnId) -> Result<Tried<T>> {
        if self.options.isolation == Isolation::ReadCommitted {
            return Ok(Tried::Held(rid, owner));
        }
        self.lost = Some(Lost { data: data.clone(), rid, owner });
        Err(self.lose(Error::Conflict))
    }

    /// Tries until no other transaction holds the row, waiting in the row's queue in between.
    #[inline]
    pub(super) fn when_free<T>(
        &mut self,
        data: &Arc<TableData>,
        mut attempt: impl FnMut(&mut Transaction) -> Result<Tried<T>>,
    ) -> Result<T> {
        match attempt(self)? {
            Tried::Done(done) => Ok(done),
            Tried::Held(rid, owner) => self.queue(data, rid, owner, &mut attempt),
        }
    }

    #[cold]
    fn queue<T>(
        &mut self,
        data: &Arc<TableData>,
        mut rid: Rid,
        mut owner: TxnId,
        attempt: &mut dyn FnMut(&mut Transaction) -> Result<Tried<T>>,
    ) -> Result<T> {
        let (anchor, deadline) = (self.anchor.clone(), self.lock_deadline());
        let queues = &anchor.core.transactions.0;
        let mut place = queues.queue(self.handle(), row_name(data, rid));
        loop {
            let is_held = || is_held(&anchor, data, rid, owner);
            place.wait(owner, &is_held, deadline).map_err(|error| self.wait_failed(error))?;
            match attempt(self)? {
                // The place is given up now that the row is this transaction's.
                Tried::Done(done) => return Ok(done),
                Tried::Held(next, holder) => {
                    if next != rid {
                        place = queues.queue(self.handle(), row_name(data, next));
                    }
                    (rid, owner) = (next, holder);
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
    pub(crate) fn follow(&mut self, place: &mut Place<'_>, lost: &Lost) -> Result<()> {
        let is_held = || is_held(&self.anchor, &lost.data, lost.rid, lost.owner);
        place.wait(lost.owner, &is_held, self.lock_deadline()).map_err(|error| self.wait_failed(error))?;
        if self.options.isolation != Isolation::ReadCommitted {
            self.at = self.transactions().0.renew_snapshot(self.handle());
        }
        Ok(())
    }

    /// A place in the queue of a row that an earlier transaction lost.
    pub(crate) fn place<'a>(&self, database: &'a Shared, lost: &Lost) -> Place<'a> {
        database.core.transactions.0.queue(self.handle(), row_name(&lost.data, lost.rid))
    }

    /// Remembers that the transaction may succeed when it is done again.
    pub(super) fn lose(&self, error: Error) -> Error {
        self.has_lost.set(true);
        error
    }

    /// Whether it met a conflict that may not come again, and to whom it lost a row.
    pub(crate) fn loss(&mut self) -> (bool, Option<Lost>) {
        (self.has_lost.get(), self.lost.take())
    }

    /// Has those look again who wait for this transaction, as it has given something up.
    pub(super) fn wake_waiters(&self) {
        self.transactions().0.wake_waiters(self.handle());
    }

    /// Waits until nobody else shares a row of which this transaction has the newest version.
    pub(super) fn wait_for_sharers(&self, data: &TableData, rid: Rid, wait: LockWait) -> Result<Option<RowLock>> {
        let deadline = self.lock_deadline();
        while let Some(other) = data.share_locks.other(rid, self.id()) {
            match wait {
                LockWait::Block => {}
                LockWait::NoWait => return Err(Error::LockNotAvailable { table: data.name.to_string() }),
                LockWait::SkipLocked => return Ok(Some(RowLock::Skipped)),
            }
            let is_held = || data.share_locks.has(rid, other);
            let waited = self.transactions().0.wait_for(self.handle(), other, row_name(data, rid), &is_held, deadline);
            waited.map_err(|error| self.wait_failed(error))?;
        }
        Ok(None)
    }

    /// Locks a row that was found in `view`, until the transaction ends or rolls back to an earlier savepoint.
    ///
    /// Under READ COMMITTED a row that is newer than the view is locked all the same and told to be [`RowLock::Stale`];
    /// above it is a conflict.
    pub fn lock_row(
        &mut self,
        table: &Table,
        rid: u64,
        strength: LockStrength,
        wait: LockWait,
        view: &ReadView,
    ) -> Result<RowLock> {
        self.check_writable(table)?;
        self.lock_found(table, rid, strength, wait, view.at())
    }

    /// The row with this primary key, locked for update; waits for it at every isolation level.
    pub fn get_for_update(&mut self, table: &Table, key: &[Value]) -> Result<Option<Vec<Value>>> {
        self.check_writable(table)?;
        let data = &table.data;
        let Some(index_key) = data.key_of_values(key)? else { return Ok(None) };
        loop {
            let Some(rid) = self.find(data, &index_key)? else {
                if let Some(reads) = &self.reads {
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
            LockStrength::Update => self.lock_for_update(data, rid, wait, seen),
            LockStrength::Share => self.lock_for_share(data, rid, wait, seen),
        };
        self.saw_anything();
        locked
    }

    fn lock_for_update(&mut self, data: &Arc<TableData>, rid: Rid, wait: LockWait, seen: Timestamp) -> Result<RowLock> {
        self.anchor.check_memory()?;
        let start = self.start()?;
        let mut at = seen;
        let appended = self.when_free(data, |transaction| {
            loop {
                let view = transaction.transactions().view(Snapshot::of_transaction(at, transaction.id()));
                return match data.storage.lock(view, start, rid) {
                    Ok(appended) => Ok(Tried::Done(appended.ok_or(RowLock::Locked))),
                    Err(WriteError::NotVisible) => Ok(Tried::Done(Err(RowLock::Gone))),
                    Err(WriteError::Locked(owner)) => Self::held(data, rid, owner, wait),
                    Err(WriteError::Changed(_)) if transaction.options.isolation == Isolation::ReadCommitted => {
                        at = Timestamp::MAX;
                        continue;
                    }
                    Err(WriteError::Changed(_)) => Err(transaction.lose(Error::Conflict)),
                    Err(WriteError::Page(error)) => Err(error.into()),
                };
            }
        })?;
        let outcome = if at == seen { RowLock::Locked } else { RowLock::Stale };
        let appended = match appended {
            Ok(appended) => appended,
            Err(RowLock::Locked) => return Ok(outcome),
            Err(without) => return Ok(without),
        };
        let table = self.position(data);
        self.locked.push(Locked { table, rid, appended });
        if data.share_locks.are_any() {
            match self.wait_for_sharers(data, rid, wait) {
                Ok(None) => {}
                without => {
                    self.unlock_last();
                    return without.map(|skipped| skipped.unwrap_or(RowLock::Locked));
                }
            }
        }
        Ok(outcome)
    }

    /// What to do about a row that another transaction has locked.
    fn held<T>(data: &TableData, rid: Rid, owner: TxnId, wait: LockWait) -> Result<Tried<Result<T, RowLock>>> {
        match wait {
            LockWait::Block => Ok(Tried::Held(rid, owner)),
            LockWait::NoWait => Err(Error::LockNotAvailable { table: data.name.to_string() }),
            LockWait::SkipLocked => Ok(Tried::Done(Err(RowLock::Skipped))),
        }
    }

    fn lock_for_share(&mut self, data: &Arc<TableData>, rid: Rid, wait: LockWait, seen: Timestamp) -> Result<RowLock> {
        if data.share_locks.has(rid, self.id()) {
            return self.look_again(data, rid, seen);
        }
        let shared = self.when_free(data, |transaction| {
            data.share_locks.enter(rid, transaction.id());
            match data.storage.newest_writer_latched(transaction.newest(), rid)? {
                Writer::Settled => transaction.look_again(data, rid, seen).map(|found| Tried::Done(Ok(found))),
                Writer::Tombstone => Ok(Tried::Done(Err(RowLock::Gone))),
                Writer::Running(owner) => {
                    // The owner may be waiting for those who share the row.
                    transaction.stop_sharing(data, rid);
                    Self::held(data, rid, owner, wait)
                }
            }
        });
        if let Ok(Ok(RowLock::Locked | RowLock::Stale)) = shared {
            let table = self.position(data);
            self.shared.push((table, rid));
        } else {
            self.stop_sharing(data, rid);
        }
        shared.map(|shared| shared.unwrap_or_else(|without| without))
    }

    fn stop_sharing(&self, data: &TableData, rid: Rid) {
        data.share_locks.leave(rid, self.id());
        self.wake_waiters();
    }

    /// What there is to say of a row that nobody can change any more.
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

    /// Locks a record for update whatever its version, and says whether it has this key then.
    pub(super) fn lock_with_key(&mut self, data: &Arc<TableData>, rid: Rid, key: &IndexKey) -> Result<bool> {
        let locked = self.lock_for_update(data, rid, LockWait::Block, Timestamp::MAX)?;
        let Some(primary_key) = &data.primary_key else { return Ok(false) };
        let has_key = |cells: &[lineage::Cell<'_>]| primary_key.key(cells) == *key;
        let is_same = data.storage.read(self.newest(), rid, &primary_key.columns, has_key)? == Some(true);
        self.saw_anything();
        Ok(locked != RowLock::Gone && is_same)
    }
}

/// Whether a row is still held by a transaction.
fn is_held(anchor: &Anchor, data: &TableData, rid: Rid, owner: TxnId) -> bool {
    data.storage.newest_writer(anchor.core.transactions.newest(None), rid) == Ok(Writer::Running(owner))
}

fn row_name(data: &TableData, rid: Rid) -> RowName {
    RowName { table: data.id, rid: rid.word() }
}
