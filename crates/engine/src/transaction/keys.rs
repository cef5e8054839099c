//! The keys that rows enter: of the primary key, and of every index of the table.
//!
//! A key that only one record may have is claimed (`claim.rs`).
use std::sync::Arc;

use lineage::Cell;
use types::Rid;

use super::Transaction;
use crate::error::Result;
use crate::keys::computed::KeysOfBatch;
use crate::keys::data::IndexData;
use crate::keys::order::{IndexKey, Keyed, RowKeys};
use crate::keys::primary_key::PrimaryKey;
use crate::state::table_data::TableData;

/// Whether a record is found by its key.
pub(super) fn is_found(primary_key: &PrimaryKey, key: &IndexKey, rid: Rid) -> bool {
    let found = primary_key.find(&sync::pin(), key, |known| (known == rid).then_some(()));
    found.is_ok_and(|found| found.is_some())
}

impl Transaction {
    /// Enters the keys of a row that was inserted, whose cell of a column `cell` returns. If one fails, the keys entered before it
    /// are taken out again.
    pub(super) fn enter_keys<'r>(
        &mut self,
        data: &Arc<TableData>,
        cell: impl Fn(usize) -> Cell<'r> + Copy,
        keys: Option<(&KeysOfBatch, usize)>,
        rid: Rid,
    ) -> Result<()> {
        let keyed = |index| match keys {
            Some((keys, at)) => keys.keyed(index, at, cell),
            None => index.keyed_row(cell),
        };
        if let Some(primary_key) = &data.primary_key {
            let key = primary_key.key_of_row(cell);
            self.enter_key(data, primary_key, &key, rid)?;
            debug_assert!(is_found(primary_key, &key, rid), "invariant 7: {rid:?} is not found by its key");
        }
        let indexes = data.indexes.all();
        for (i, index) in indexes.iter().enumerate() {
            if let Err(error) = self.enter_index(data, index, keyed(index), rid) {
                for index in &indexes[..i] {
                    let entered = keyed(index).unwrap_or_default();
                    entered.iter().for_each(|keyed| index.entries().remove(&keyed.key, rid));
                }
                data.primary_key.iter().for_each(|primary_key| primary_key.remove(&primary_key.key_of_row(cell), rid));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Enters `rid` in an index under the keys that its row has there.
    pub(super) fn enter_index(
        &mut self,
        data: &Arc<TableData>,
        index: &Arc<IndexData>,
        keys: Result<RowKeys>,
        rid: Rid,
    ) -> Result<()> {
        match keys {
            Ok(keys) => keys.into_iter().try_for_each(|keyed| self.enter_keyed(data, index, keyed, rid)),
            // A transaction that has dropped an index does not fail for a key that the index can't take.
            Err(_) if self.has_dropped_index(index) => Ok(()),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn enter_keyed(
        &mut self,
        data: &Arc<TableData>,
        index: &Arc<IndexData>,
        Keyed { key, is_compared }: Keyed,
        rid: Rid,
    ) -> Result<()> {
        let excludes = index.is_exclusive() && !self.has_dropped_index(index);
        if excludes && index.definition.deferral.is_none() {
            return self.enter_excluding(data, index, &key, rid);
        }
        if (is_compared || excludes) && index.definition.deferral.is_some() {
            index.enter(&key, rid)?;
            self.references.get_or_insert_default().note_keyed(data, index, rid);
            return Ok(());
        }
        match is_compared && !self.has_dropped_index(index) {
            true => self.enter_key(data, &**index, &key, rid),
            false => index.enter(&key, rid),
        }
    }
}
