//! Appending a version to a record: an update, or the end of the record.
//!
//! ```text
//! find     the record, where only its key is known
//! append   at once where no other transaction is in the way; else after waiting for it, as the isolation level says
//! keep     a version that changes the key is locked besides, so that it also keeps those off that rely on the key only
//! check    the version against the rules of the table
//! settle   the keys that the version has which the one before had not
//! note     what to stamp, and the redo
//! ```
//!
//! A step that fails takes back those before it.
use std::sync::Arc;

use lineage::{AppendedRecords, Change, Hold, WriteError};
use smallvec::SmallVec;
use types::{Rid, Snapshot, Timestamp, TxnId};

use super::locks::{LockAttempt, Obstacle, hold_beside, hold_of, strength_of};
use super::references::noted::FormerKeys;
use super::{LockedRow, Transaction};
use crate::error::{Error, Result};
use crate::keys::data::Indexes;
use crate::keys::order::IndexKey;
use crate::state::rules::Rules;
use crate::state::table_data::TableData;
use crate::terms::isolation::Isolation;

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
    /// Appends a version to the record with the key that has this form in the index; false if there is none.
    pub(super) fn change_by_key(&mut self, data: &Arc<TableData>, key: IndexKey, change: Change<'_>) -> Result<bool> {
        let at = self.newest_allowed();
        if let Some(primary_key) = &data.primary_key
            && !data.has_changed_keys()
        {
            // Nothing is pinned while the change waits for memory: what others give up would not come back.
            let newest = primary_key.find(&sync::pin(), &key, Some)?;
            if let Some(newest) = newest
                && self.change(data, newest, at, change)? == Done::Changed
            {
                return Ok(true);
            }
        }
        // There is no record, or an older one has the key in this snapshot.
        let found = self.find(data, &key)?;
        if let Some(reads) = self.reads() {
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
        let rules = self.rules(data)?;
        let former = match &rules {
            Some(rules) => match self.former_keys(data, (rid, at), rules, change)? {
                Some(former) => former,
                None => return Ok(Done::Gone),
            },
            None => FormerKeys::new(),
        };
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
        }
        let right = rules.as_ref().map_or(Ok(()), |rules| self.check_change(data, rules, rid, change));
        if let Err(error) = right.and_then(|()| self.settle(data, rid, changes_key, &indexes)) {
            self.unlock(locked, self.shared.len());
            self.give_way(data, rid, appended);
            return Err(error);
        }
        self.note_change(data, rid, appended, change)?;
        if let Some(rules) = &rules {
            self.note_references(data, rules, rid, change, former)?;
        }
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

    /// Refuses a version that was appended if it breaks a rule.
    fn check_change(&self, data: &TableData, rules: &Rules, rid: Rid, change: Change<'_>) -> Result<()> {
        match change {
            Change::Update(values) => self.check_version(data, rules, rid, values.iter().map(|(column, _)| *column)),
            Change::Delete => Ok(()),
        }
    }

    /// Notes what a changed row refers to, and what may have referred to it.
    fn note_references(
        &mut self,
        data: &Arc<TableData>,
        rules: &Rules,
        rid: Rid,
        change: Change<'_>,
        former: FormerKeys,
    ) -> Result<()> {
        if let Change::Update(values) = change {
            let changed: SmallVec<[usize; 8]> = values.iter().map(|(column, _)| *column).collect();
            self.note_updated(data, rules, rid, &changed);
        }
        self.note_former_keys(data, rid, former, matches!(change, Change::Delete))
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

    /// The newest commit that may have written the rows this transaction changes: under READ COMMITTED any.
    pub(super) fn newest_allowed(&self) -> Timestamp {
        match self.options.isolation {
            Isolation::ReadCommitted => Timestamp::MAX,
            Isolation::Snapshot | Isolation::Serializable => self.at,
        }
    }
}
