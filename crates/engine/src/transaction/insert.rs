//! Inserting a row that has become cells.
//!
//! ```text
//! rules   the row meets the constraints of the table
//! store   the record is there, marked as this transaction's: nobody else sees it
//! keys    those of the primary key and of each index; where one is refused, the record becomes a tombstone
//! note    what to stamp, the redo, and what the row refers to
//! ```
use std::sync::Arc;

use lineage::Cell;
use types::{Rid, StartTime};

use super::Transaction;
use crate::error::Result;
use crate::keys::computed::KeysOfBatch;
use crate::state::rules::Rules;
use crate::state::table_data::TableData;

impl Transaction {
    /// Inserts a row, by itself or of a batch that has its keys worked out already.
    pub(super) fn insert_cells(
        &mut self,
        data: &Arc<TableData>,
        cells: &[Cell<'_>],
        keys: Option<(&KeysOfBatch, usize)>,
    ) -> Result<Rid> {
        debug_assert!(self.has_entered(data), "the table could go while it is written to");
        debug_assert_eq!(cells.len(), data.schema.columns().len(), "a cell for each column");
        let rules = self.rules(data)?;
        if let Some(rules) = &rules {
            self.check_row(data, rules, cells)?;
        }
        self.insert_right(data, cells, keys, rules.as_deref())
    }

    /// Inserts a row of which no column is against these rules.
    pub(super) fn insert_right(
        &mut self,
        data: &Arc<TableData>,
        cells: &[Cell<'_>],
        keys: Option<(&KeysOfBatch, usize)>,
        rules: Option<&Rules>,
    ) -> Result<Rid> {
        self.anchor.check_memory_of(data)?;
        let rid = data.storage.insert(cells, self.start()?);
        debug_assert!(data.storage.contains(rid), "invariant 3: {rid:?} is out of reach");
        if let Err(error) = self.enter_keys(data, |column| cells[column], keys, rid) {
            data.storage.stamp_insert(&sync::pin(), rid, self.id(), StartTime::TOMBSTONE);
            self.wake_waiters();
            return Err(error);
        }
        self.note_insert(data, rid, cells)?;
        if let Some(rules) = rules {
            self.note_inserted(data, rules, rid, cells);
        }
        Ok(rid)
    }
}
