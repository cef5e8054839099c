//! Rows that refer to others: the key must be there, and stays until the transaction ends.
use std::sync::Arc;

use types::{Rid, Timestamp, Value};

use super::lookup::shown;
use crate::error::{Error, Result};
use crate::keys::data::IndexData;
use crate::state::table_data::{ScanOptions, TableData};
use crate::table::Table;
use crate::terms::constraints::ForeignKey;
use crate::terms::isolation::{LockStrength, LockWait, RowLock};
use crate::transaction::Transaction;

/// What the columns of a foreign key say.
enum Reference {
    /// They refer to a row.
    ToRow,
    ToNothing,
    /// Some are NULL and some are not, of which the constraint does not allow.
    Mixed,
}

fn reference(key: &ForeignKey, values: &[Value]) -> Reference {
    match values.iter().filter(|value| value.is_null()).count() {
        0 => Reference::ToRow,
        nulls if key.is_full && nulls < values.len() => Reference::Mixed,
        _ => Reference::ToNothing,
    }
}

impl Transaction {
    /// Looks at rows that were written and may refer to others.
    pub(super) fn settle_referring(&mut self, data: &Arc<TableData>, key: &ForeignKey, rows: &[Rid]) -> Result<()> {
        debug_assert_eq!(key.columns.len(), key.referenced.len(), "a column for each that is referred to");
        let referenced = self.table_to_write(&key.table)?;
        let index = self.key_over(&referenced, &key.referenced)?;
        for rid in rows {
            let Some(values) = self.newest_values(data, *rid, &key.columns)? else { continue };
            match reference(key, &values) {
                Reference::ToNothing => {}
                Reference::Mixed => return Err(mixed(data, key)),
                Reference::ToRow if self.share_key(&referenced, &index, key, &values)? => {}
                Reference::ToRow => return Err(missing(data, key, &values)),
            }
        }
        Ok(())
    }

    /// Locks the row that has a key, so that it keeps the key; whether there is one.
    fn share_key(&mut self, table: &Table, index: &IndexData, key: &ForeignKey, values: &[Value]) -> Result<bool> {
        loop {
            let Some(rid) = self.newest_with(&table.data, index, (&key.referenced, values))? else { return Ok(false) };
            let locked = self.lock_found(table, rid.word(), LockStrength::KeyShare, LockWait::Block, Timestamp::MAX)?;
            debug_assert!(locked != RowLock::Skipped, "a lock that is waited for is not skipped");
            // While it was waited for, the row may have got another key, and another row this one.
            let is_locked = matches!(locked, RowLock::Locked | RowLock::Stale);
            if is_locked && self.newest_with(&table.data, index, (&key.referenced, values))? == Some(rid) {
                return Ok(true);
            }
        }
    }

    /// Looks whether all rows of a table meet a foreign key. The caller has both tables for itself.
    ///
    /// # Errors
    /// [`Error::NotReferenced`] or [`Error::MixedKey`] for a row that does not; those of a read.
    pub fn check_references(&self, table: &Table, key: &ForeignKey) -> Result<()> {
        let referenced = self.table(&key.table)?;
        let index = self.key_over(&referenced, &key.referenced)?;
        let view = self.newest_view()?;
        let scan = table.scan(&view, ScanOptions { with_rid: true, ..ScanOptions::default() })?;
        for batch in scan.batches() {
            for rid in super::referred::rids(&batch?) {
                let Some(values) = self.newest_values(&table.data, rid, &key.columns)? else { continue };
                match reference(key, &values) {
                    Reference::ToNothing => {}
                    Reference::Mixed => return Err(mixed(&table.data, key)),
                    Reference::ToRow => {
                        if self.newest_with(&referenced.data, &index, (&key.referenced, &values))?.is_none() {
                            return Err(missing(&table.data, key, &values));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn missing(data: &TableData, key: &ForeignKey, values: &[Value]) -> Error {
    Error::NotReferenced {
        table: data.name.to_string(),
        constraint: key.name.clone(),
        key: shown(data, &key.columns, values),
        referenced: key.table.clone(),
    }
}

fn mixed(data: &TableData, key: &ForeignKey) -> Error {
    Error::MixedKey { table: data.name.to_string(), constraint: key.name.clone() }
}
