//! Claiming a key that only one record may have.
//!
//! The key is claimed under the latch of its entry, by checking the current state of every record that ever had it. If a
//! running transaction may give the key up, or take it back by rolling back, READ COMMITTED waits for that transaction;
//! SNAPSHOT and SERIALIZABLE fail with a conflict.
use std::sync::Arc;

use index::{Holder, InsertError};
use lineage::{Cell, PageError, Writer};
use types::{Rid, Snapshot, TxnId};

use super::Transaction;
use super::locks::LockAttempt;
use crate::error::{Error, Result};
use crate::keys::data::IndexData;
use crate::keys::order::IndexKey;
use crate::keys::primary_key::PrimaryKey;
use crate::state::table_data::TableData;
use crate::terms::row::shorten;

/// Why a record does not get a key.
enum KeyRefusal {
    /// Another record has it.
    By(Rid),
    /// Whether another record keeps it is known once its writer has ended; `None` if it has ended, too late for this
    /// transaction's snapshot.
    Undecided(Rid, Option<TxnId>),
    /// The holder is unknown, as a page can't be read back.
    Unknown(PageError),
    /// The index can't take it, or its block can't be read.
    Index(Error),
}

/// A holder of keys, of which no two records may have the same one.
pub(super) trait Unique {
    fn index(&self) -> &IndexData;

    /// Whether a record may have got another key than the one that it was inserted with.
    fn has_changed_keys(&self, data: &TableData) -> bool;

    /// The name of the constraint.
    fn constraint(&self, data: &TableData) -> String;
}

impl Unique for PrimaryKey {
    fn index(&self) -> &IndexData {
        &self.index
    }

    fn has_changed_keys(&self, data: &TableData) -> bool {
        data.has_changed_keys()
    }

    fn constraint(&self, data: &TableData) -> String {
        data.settings().name_of_key(&data.name)
    }
}

impl Unique for IndexData {
    fn index(&self) -> &IndexData {
        self
    }

    fn has_changed_keys(&self, _: &TableData) -> bool {
        IndexData::has_changed_keys(self)
    }

    fn constraint(&self, _: &TableData) -> String {
        self.definition.name.clone()
    }
}

impl Transaction {
    /// Enters `rid` under its key, unless another record has the key. Where the isolation level says so, waits for
    /// a transaction that may give the key up.
    pub(super) fn enter_key<U: Unique>(
        &mut self,
        data: &Arc<TableData>,
        unique: &U,
        key: &IndexKey,
        rid: Rid,
    ) -> Result<()> {
        self.when_free(data, |transaction| match transaction.claim_key(data, unique, key, rid) {
            Ok(()) => Ok(LockAttempt::Done(())),
            Err(KeyRefusal::By(other)) => {
                transaction.reads().into_iter().for_each(|reads| reads.note_record(data, other));
                let (table, key) = (data.name.to_string(), transaction.describe_key(data, unique.index(), other)?);
                Err(Error::DuplicateKey { table, constraint: unique.constraint(data), key })
            }
            Err(KeyRefusal::Undecided(other, Some(owner))) => transaction.wait_or_lose(data, other, owner),
            Err(KeyRefusal::Undecided(_, None)) => Err(transaction.lose(Error::Conflict)),
            Err(KeyRefusal::Unknown(error)) => Err(error.into()),
            Err(KeyRefusal::Index(error)) => Err(error),
        })
    }

    fn claim_key<U: Unique>(&self, data: &TableData, unique: &U, key: &IndexKey, rid: Rid) -> Result<(), KeyRefusal> {
        let (newest, index) = (self.newest(), unique.index());
        let columns = index.columns();
        let seen = self.transactions().view(Snapshot::of_transaction(self.newest_allowed(), self.id()));
        let has_key = |cells: &[Cell<'_>]| index.has_key(cells, key);
        let mut taken = None;
        let guard = &sync::pin();
        let claimed = index.at(guard, key).map_err(KeyRefusal::Index)?.insert_unique(key, rid, |other| {
            self.saw_anything();
            let look = || {
                match data.storage.newest_writer(newest, other)? {
                    Writer::Running(owner) => {
                        return Ok((Holder::Present, Some(KeyRefusal::Undecided(other, Some(owner)))));
                    }
                    Writer::Tombstone => return Ok((Holder::Void, None)),
                    Writer::Settled => {}
                }
                let has_now = data.storage.read(newest, other, columns, has_key)?;
                if has_now == Some(true) {
                    return Ok((Holder::Present, None));
                }
                // It gave the key up after this transaction's snapshot, which would have the key twice.
                if data.storage.read(seen, other, columns, has_key)? == Some(true) {
                    return Ok((Holder::Present, Some(KeyRefusal::Undecided(other, None))));
                }
                // Deleted with the key that it was inserted with. Once keys have been changed in this table that is no
                // longer certain: a merge forgets an update that was rolled back, and the index has its entry.
                let is_former = has_now.is_none() && !unique.has_changed_keys(data);
                Ok((if is_former { Holder::Former } else { Holder::Past }, None))
            };
            let (holder, why) = look().unwrap_or_else(|error| (Holder::Present, Some(KeyRefusal::Unknown(error))));
            if holder == Holder::Present {
                taken = why;
            }
            holder
        });
        if claimed.is_ok() {
            index.note_entered(rid.range(), || std::iter::once((key.clone(), rid)));
        }
        claimed.map_err(|error| match error {
            InsertError::Present(other) => {
                debug_assert_ne!(other, rid, "a record does not keep itself from its key");
                taken.unwrap_or(KeyRefusal::By(other))
            }
            InsertError::NoRoom(error) => KeyRefusal::Index(index.without_room(error)),
        })
    }

    /// A record's key as it stands in a message.
    pub(super) fn describe_key(&self, data: &TableData, index: &IndexData, rid: Rid) -> Result<String> {
        let shown = data.storage.read(self.newest(), rid, index.columns(), |cells| index.describe(cells))?;
        Ok(shorten(shown.unwrap_or_default()))
    }
}
