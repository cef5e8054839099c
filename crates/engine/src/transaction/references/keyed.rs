//! Keys of UNIQUE and exclusion constraints that a transaction may put off: whether a row is alone with its key, or no other is in its
//! way, is looked at when all are written.
//!
//! The index takes whatever is entered. Of two transactions that enter one key, the one that looks later finds the other's row: if that is
//! committed the key is there twice, and if its writer runs it is waited for, as with keys that are claimed at once (`claim.rs`).
use std::sync::Arc;

use lineage::{Cell, Writer};
use types::{Rid, Snapshot, TxnId};

use crate::error::{Error, Result};
use crate::keys::data::IndexData;
use crate::keys::order::IndexKey;
use crate::state::table_data::TableData;
use crate::transaction::Transaction;
use crate::transaction::locks::LockAttempt;

/// Another row with the key.
enum Other {
    /// It is there.
    Row(Rid),
    /// It may be there, once its writer has ended; `None` if that has ended too late for this transaction's snapshot.
    Undecided(Rid, Option<TxnId>),
}

impl Transaction {
    /// Looks whether rows are alone with the keys that they have by now.
    pub(super) fn settle_keys(&mut self, data: &Arc<TableData>, index: &Arc<IndexData>, rows: &[Rid]) -> Result<()> {
        debug_assert!(index.definition.deferral.is_some(), "keys of other indexes are claimed when they are entered");
        data.fill(index)?;
        if index.is_exclusive() {
            return rows.iter().try_for_each(|rid| self.settle_excluding(data, index, *rid));
        }
        for rid in rows {
            let keys = data.storage.read(self.newest(), *rid, index.columns(), |cells| index.keyed(cells))?;
            let mut keys = keys.transpose()?.into_iter().flatten();
            let Some(keyed) = keys.find(|keyed| keyed.is_compared) else { continue };
            self.when_free(data, |transaction| match transaction.other_with(data, index, &keyed.key, *rid)? {
                None => Ok(LockAttempt::Done(())),
                Some(Other::Row(other)) => {
                    transaction.reads().into_iter().for_each(|reads| reads.note_record(data, other));
                    let (table, constraint) = (data.name.to_string(), index.definition.name.clone());
                    let key = transaction.describe_key(data, index, *rid)?;
                    Err(Error::DuplicateKey { table, constraint, key })
                }
                Some(Other::Undecided(other, Some(owner))) => transaction.wait_or_lose(data, other, owner),
                Some(Other::Undecided(_, None)) => Err(transaction.lose(Error::Conflict)),
            })?;
        }
        Ok(())
    }

    /// The first other row that has a key, or may have it.
    fn other_with(&self, data: &TableData, index: &IndexData, key: &IndexKey, rid: Rid) -> Result<Option<Other>> {
        let seen = self.transactions().view(Snapshot::of_transaction(self.newest_allowed(), self.id()));
        let has_key = |cells: &[Cell<'_>]| index.has_key(cells, key);
        let others = index.at(&sync::pin(), key)?.rids(key);
        for other in others.into_iter().filter(|other| *other != rid) {
            self.saw_anything();
            match data.storage.newest_writer(self.newest(), other)? {
                Writer::Running(owner) => return Ok(Some(Other::Undecided(other, Some(owner)))),
                Writer::Tombstone => continue,
                Writer::Settled => {}
            }
            if data.storage.read(self.newest(), other, index.columns(), has_key)? == Some(true) {
                return Ok(Some(Other::Row(other)));
            }
            // It gave the key up after this transaction's snapshot, which would have the key twice.
            if data.storage.read(seen, other, index.columns(), has_key)? == Some(true) {
                return Ok(Some(Other::Undecided(other, None)));
            }
        }
        Ok(None)
    }
}
