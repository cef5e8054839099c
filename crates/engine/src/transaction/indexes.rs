//! Making and dropping indexes within a transaction, and reading through them.
//!
//! Others write to the table while an index of it is made:
//!
//! ```text
//! 1  the index is on the table's list: every transaction that begins to write to it from here on keeps the index as well
//! 2  those that wrote to it before are waited for, until they have ended
//! 3  every version that has committed is entered, and what this transaction itself has written; an expression must not fail
//!    for what is there now
//! 4  if the index is unique: no two rows have one key now; rows that came since step 1 have claimed theirs
//! 5  the commit makes the index one that others may use
//! ```
//!
//! Until step 5 it can be rolled back like everything else. A key that a writer enters and step 3 enters again is
//! one entry. Of the transactions that write to the table, none waits for the one that makes the index, except
//! where two rows would have one key of a unique index.
//!
//! An index that is dropped is kept by all writers until the transaction that drops it has committed. Names of indexes and of
//! tables are claimed alike, so that nothing else gets one meanwhile.
use std::sync::Arc;

use index::{BitwiseError, KeyRids};
use lineage::Writer;
use types::{Rid, Timestamp};

use super::Transaction;
use super::notes::{CatalogStep, WrittenRecords, neighbours};
use crate::disk::redo;
use crate::error::{Error, Result};
use crate::keys::computed::KeysOfRows;
use crate::keys::data::{Index, IndexData};
use crate::keys::definition::{IndexDefinition, KeptIndex};
use crate::keys::order::{Direction, Keyed};
use crate::keys::range::IndexRange;
use crate::state::catalog::row_of_table;
use crate::state::index_build::enter_committed;
use crate::state::table_data::{ScanOptions, TableData};
use crate::table::Table;
use crate::table::index_scan::IndexRows;
use crate::terms::table_lock::Standing;

impl Transaction {
    /// Makes an index of a table. Others go on writing to the table; those that do so already are waited for.
    ///
    /// # Errors
    /// [`Error::KeysNotUnique`] if it is to be unique and can't; [`Error::IndexExists`], or [`Error::TableExists`], if the name is
    /// taken; [`Error::BadIndex`] if its method does not take such columns; [`Error::Interrupted`] if another thread ended it.
    pub fn create_index(&mut self, table: &str, definition: IndexDefinition) -> Result<Index> {
        self.change_catalog(|transaction| {
            let data = transaction.claim_plain(table)?;
            data.check_no_array("an index", "Its key is its place; only tables of other layouts have indexes.")?;
            transaction.claim_index_name(&definition.name)?;
            let has_changed_keys = data.storage.range_count() > 0;
            let index = transaction.add_index(&data, KeptIndex { definition, has_changed_keys })?;
            transaction.await_writers(&data)?;
            transaction.anchor.check_memory()?;
            let (transactions, own) = (&transaction.anchor.core.transactions, transaction.id());
            let failing = enter_committed(&data, &index, transactions, &|| transactions.0.is_interrupted(own))?;
            failing.into_iter().try_for_each(|rid| transaction.check_expressions(&data, &index, rid))?;
            transaction.enter_own(&data, &index)?;
            if let Some(space) = index.entries().space() {
                let bad = |error: BitwiseError| Error::BadIndex {
                    index: index.definition.name.clone(),
                    why: error.to_string(),
                };
                space.bring_forward(false).map_err(bad)?;
            }
            if index.definition.is_unique() {
                transaction.check_unique(&data, &index)?;
            }
            if index.is_exclusive() {
                transaction.check_excluding(&data, &index)?;
            }
            debug_assert_eq!(
                index.standing.standing(),
                Standing::Locked(transaction.id()),
                "invariant 7: others may use the index before it has all entries"
            );
            Ok(Index { data: index })
        })
    }

    /// Removes an index.
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`] if the transaction sees no such index; [`Error::TableChanged`] if others have changed
    /// its table since the transaction's snapshot; [`Error::ReadOnlyTransaction`]; [`Error::Log`]; those of a wait.
    pub fn drop_index(&mut self, name: &str) -> Result<()> {
        self.change_catalog(|transaction| {
            let (table, _) = transaction.find_index(name)?;
            // The indexes of a table share its fate.
            let data = transaction.claim_table(&table)?;
            transaction.claim(name)?;
            let (_, index) = transaction.find_index(name)?;
            transaction.log_catalog(&data, |redo| redo::put_drop_index(redo, data.id, name))?;
            transaction.note_step(CatalogStep::IndexDropped(data, index));
            Ok(())
        })
    }

    /// The indexes of a table that the transaction may use: those that are open for all, with its own changes.
    pub fn indexes(&self, table: &Table) -> Vec<Index> {
        self.indexes_of(&table.data).into_iter().map(|data| Index { data }).collect()
    }

    /// The index of this name, and the name of its table.
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`] if the transaction sees no such index.
    pub fn index(&self, name: &str) -> Result<(String, Index)> {
        self.find_index(name).map(|(table, data)| (table, Index { data }))
    }

    /// The rows of a range of an index that the transaction sees at this moment, each with its Rid, in the order of
    /// the index or against it. Its own writes while the scan goes on are not seen.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if the table is another database's; the others as [`Table::index_scan`].
    pub fn index_scan(
        &self,
        table: &Table,
        index: &Index,
        range: &IndexRange,
        direction: Direction,
    ) -> Result<IndexRows> {
        self.check_readable(table)?;
        let scan = table.index_scan(&self.view()?, index, range, direction, ScanOptions::default())?;
        Ok(IndexRows { scan, found: Vec::new().into_iter() })
    }

    fn indexes_of(&self, data: &TableData) -> Vec<Arc<IndexData>> {
        data.indexes.all().into_iter().filter(|index| self.has_index(index)).collect()
    }

    /// Whether an index is there for this transaction.
    pub(super) fn has_index(&self, index: &Arc<IndexData>) -> bool {
        match index.standing.standing() {
            Standing::Open => !self.has_dropped_index(index),
            Standing::Locked(maker) => maker == self.id() && !self.has_dropped_index(index),
            Standing::Gone(_) => false,
        }
    }

    /// Whether this transaction has dropped an index.
    pub(super) fn has_dropped_index(&self, index: &Arc<IndexData>) -> bool {
        self.steps()
            .iter()
            .any(|step| matches!(step, CatalogStep::IndexDropped(_, dropped) if Arc::ptr_eq(dropped, index)))
    }

    fn find_index(&self, name: &str) -> Result<(String, Arc<IndexData>)> {
        let catalog = &self.anchor.core.catalog;
        let found = catalog.find_among(self.transactions(), self.sight(), |table, data| {
            let named = data.indexes.which(|index| *index.definition.name == *name);
            named.into_iter().find(|index| self.has_index(index)).map(|index| (table.to_owned(), index))
        });
        debug_assert!(
            found.as_ref().is_none_or(|(_, index)| index.definition.name == name),
            "\"{name}\" is looked for, and another index found"
        );
        found.ok_or_else(|| Error::NoSuchIndex(name.into()))
    }

    /// Refuses a name that an index has.
    pub(super) fn check_no_index(&self, name: &str) -> Result<()> {
        match self.find_index(name) {
            Ok(_) => Err(Error::IndexExists(name.into())),
            Err(_) => Ok(()),
        }
    }

    /// Claims a name that is to be an index's.
    fn claim_index_name(&mut self, name: &str) -> Result<()> {
        self.claim_free(name).map_err(|error| match error {
            Error::TableExists(name) => Error::IndexExists(name),
            other => other,
        })
    }

    /// Puts an index without entries on a table's list.
    fn add_index(&mut self, data: &Arc<TableData>, kept: KeptIndex) -> Result<Arc<IndexData>> {
        let index = Arc::new(IndexData::new(data.schema(), kept.clone(), Some(self.id()))?);
        index.compile(data.schema(), self.anchor.core.expressions())?;
        debug_assert_eq!(index.kept(), kept, "invariant 8: the index would be another one after a crash");
        self.note_step(CatalogStep::IndexMade(data.clone(), index.clone()));
        // From here on writers enter keys, and may change some.
        data.indexes.add(index.clone());
        self.log_catalog(data, |redo| redo::put_create_index(redo, data.id, &kept))?;
        Ok(index)
    }

    /// Gives a table that takes another one's place the indexes of that one. It has no rows yet.
    pub(super) fn copy_indexes(&mut self, from: &TableData, to: &Arc<TableData>) -> Result<()> {
        for index in self.indexes_of(from) {
            let definition = index.definition.clone();
            self.add_index(to, KeptIndex { definition, has_changed_keys: false })?;
        }
        Ok(())
    }

    /// Waits for the transactions that write to a table now.
    fn await_writers(&self, data: &Arc<TableData>) -> Result<()> {
        let (transactions, deadline) = (&self.transactions().0, self.lock_deadline());
        for user in transactions.other_users(self.handle(), data.id) {
            let is_used = || transactions.uses_table(user, data.id);
            let waited = transactions.wait_for(self.handle(), user, row_of_table(data), &is_used, deadline);
            waited.map_err(|error| self.wait_failed(error))?;
        }
        Ok(())
    }

    /// Refuses an index of an expression that fails for a record as it is now. For older versions of it that does not matter.
    fn check_expressions(&self, data: &TableData, index: &IndexData, rid: Rid) -> Result<()> {
        let keyed = data.storage.read(self.newest(), rid, index.columns(), |cells| index.keyed(cells))?;
        keyed.map_or(Ok(()), |keyed| keyed.map(drop))
    }

    /// Enters what this transaction has written to a table. Versions that it has overwritten itself come back only
    /// with a savepoint from before the index.
    fn enter_own(&self, data: &Arc<TableData>, index: &IndexData) -> Result<()> {
        let enter = |rid: Rid| -> Result<()> {
            let keys = data.storage.read(self.newest(), rid, index.columns(), |cells| index.keyed(cells))?;
            let mut keys = keys.transpose()?.into_iter().flatten();
            keys.try_for_each(|keyed| index.enter(&keyed.key, rid))
        };
        for written in &self.written {
            match *written {
                WrittenRecords::Inserts { table, first, count } if Arc::ptr_eq(&self.tables[table as usize], data) => {
                    neighbours(first, count).try_for_each(enter)?;
                }
                WrittenRecords::Versions { table, rid, .. } if Arc::ptr_eq(&self.tables[table as usize], data) => {
                    enter(rid)?
                }
                WrittenRecords::Inserts { .. } | WrittenRecords::Versions { .. } => {}
            }
        }
        Ok(())
    }

    /// Refuses an index of which two rows have one key now. Rows that come while this looks have claimed their keys.
    fn check_unique(&self, data: &Arc<TableData>, index: &IndexData) -> Result<()> {
        for range in 0..data.storage.range_count() {
            let slots = 0..data.storage.range_records();
            let rids = slots.map(|slot| Rid::base(range, slot)).take_while(|rid| data.storage.contains(*rid));
            let mut repeated: Vec<(Rid, KeyRids)> = Vec::new();
            let mut keys = KeysOfRows::new(index, |rid: Rid, keyed: Result<Keyed>| {
                // Where an expression fails now, the writer has been told.
                if let Ok(Keyed { key, is_compared: true }) = keyed {
                    // It is being made: all of it is in memory.
                    let others = index.entries().rids(&key);
                    repeated.extend((others.len() > 1).then_some((rid, others)));
                }
            });
            for rid in rids {
                data.storage.read(self.newest(), rid, index.columns(), |cells| keys.push(rid, cells))?;
            }
            keys.finish();
            for (rid, others) in repeated {
                self.check_alone(data, index, rid, others.into_iter().filter(|other| *other != rid))?;
            }
        }
        Ok(())
    }

    /// Refuses a record that has the key of one of the others, once it is known what becomes of them all.
    fn check_alone(
        &self,
        data: &Arc<TableData>,
        index: &IndexData,
        rid: Rid,
        others: impl Iterator<Item = Rid>,
    ) -> Result<()> {
        for other in others {
            let keys = [self.settled_key(data, index, rid)?, self.settled_key(data, index, other)?];
            if keys[0].is_some() && keys[0] == keys[1] {
                let key = self.describe_key(data, index, rid)?;
                let (table, index) = (data.name.to_string(), index.definition.name.clone());
                return Err(Error::KeysNotUnique { table, index, key });
            }
        }
        Ok(())
    }

    /// Waits until the newest version of a record is decided.
    pub(super) fn await_decided(&self, data: &Arc<TableData>, rid: Rid) -> Result<()> {
        let (transactions, deadline) = (self.transactions(), self.lock_deadline());
        let owner = || match data.storage.newest_writer(self.newest(), rid) {
            Ok(Writer::Running(owner)) => Ok(Some(owner)),
            Ok(Writer::Tombstone | Writer::Settled) => Ok(None),
            Err(error) => Err(error),
        };
        while let Some(user) = owner()? {
            let is_held = || owner() == Ok(Some(user));
            let waited = transactions.0.wait_for(self.handle(), user, row_of_table(data), &is_held, deadline);
            waited.map_err(|error| self.wait_failed(error))?;
        }
        Ok(())
    }

    /// The key that a record has once its newest version is decided.
    fn settled_key(
        &self,
        data: &Arc<TableData>,
        index: &IndexData,
        rid: Rid,
    ) -> Result<Option<crate::keys::order::IndexKey>> {
        self.await_decided(data, rid)?;
        let keys = data.storage.read(self.newest(), rid, index.columns(), |cells| index.keyed(cells))?;
        Ok(keys.transpose()?.into_iter().flatten().find(|keyed| keyed.is_compared).map(|keyed| keyed.key))
    }
}

/// Publishes the indexes that the committed transaction has made or dropped.
pub(super) fn publish_indexes(steps: &[CatalogStep], at: Timestamp) {
    for step in steps {
        match step {
            CatalogStep::IndexMade(_, index) => index.publish(at),
            CatalogStep::IndexDropped(table, index) => {
                // First it is known to be gone, then it is no longer maintained.
                index.standing.retire(at);
                table.indexes.remove(index);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use types::{Column, DataType, Schema, Timestamp};

    use crate::{Database, IndexDefinition};

    /// The log tells of later ones: it is read from the checkpoint's commit on.
    #[test]
    fn a_checkpoint_has_the_indexes_that_were_made_by_its_commit() {
        let db = Database::in_memory();
        let schema = Schema::new(vec![Column::new("a", DataType::BigInt)], &[]).unwrap();
        let table = db.create_table("t", schema).unwrap();
        let mut transaction = db.begin().unwrap();
        transaction.create_index("t", IndexDefinition::new("i", &[0])).unwrap();
        assert_eq!(table.data.indexes.made_by(Timestamp::MAX).len(), 0, "it is not committed");
        let at = transaction.commit().unwrap();
        let made_by = |at: u64| table.data.indexes.made_by(Timestamp(at)).len();
        assert_eq!((made_by(at.0 - 1), made_by(at.0)), (0, 1));
    }
}
