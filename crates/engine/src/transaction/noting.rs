//! Noting what was written: for the commit, which stamps it, and for the log.
//!
//! Each write adds an entry to the list of records to stamp, and its operation to the redo. Redo stays with the transaction
//! until the commit; where there is much of it, it goes to the log before, and the log waits for the commit or the abort.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lineage::{AppendedRecords, Cell, Change};
use types::Rid;

use super::{Transaction, WrittenRecords};
use crate::disk::redo;
use crate::error::Result;
use crate::state::table_data::TableData;

/// Redo beyond this size goes to the log before the commit.
pub(super) const REDO_BYTES_MAX: usize = 1 << 20;

impl Transaction {
    /// Notes a record that was inserted.
    #[inline]
    pub(super) fn note_insert(&mut self, data: &Arc<TableData>, rid: Rid, cells: &[Cell<'_>]) -> Result<()> {
        self.note_stored(data, rid, 1);
        self.log_insert(data, rid, cells)
    }

    /// Notes so many neighbouring records as stored, with those before them if they are neighbours.
    #[inline]
    pub(super) fn note_stored(&mut self, data: &Arc<TableData>, rid: Rid, stored: u32) {
        debug_assert!(data.storage.contains(rid) && stored > 0, "invariant 3: {rid:?} is noted before it is stored");
        let table = self.position(data);
        let is_next =
            |first: Rid, count: u32| first.range() == rid.range() && first.slot() + count as usize == rid.slot();
        let may_grow = self.written.len() > self.last_mark();
        match self.written.last_mut() {
            Some(WrittenRecords::Inserts { table: same, first, count })
                if may_grow && *same == table && is_next(*first, *count) =>
            {
                *count += stored;
            }
            _ => self.written.push(WrittenRecords::Inserts { table, first: rid, count: stored }),
        }
    }

    /// Adds the insertion of a row to the redo.
    #[inline]
    pub(super) fn log_insert(&mut self, data: &Arc<TableData>, rid: Rid, cells: &[Cell<'_>]) -> Result<()> {
        if self.is_logged(data) {
            redo::put_insert(&mut self.redo, data.id, rid, cells);
        }
        self.pass_redo_on()
    }

    /// Notes a version that was appended to a record.
    #[inline]
    pub(super) fn note_change(
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
        let table = self.position(data);
        self.written.push(WrittenRecords::Versions { table, rid, appended });
        self.note_crowd(data, table, (rid, appended));
        self.settle_redo()?;
        match change {
            _ if !self.is_logged(data) => {}
            Change::Update(values) => redo::put_update(&mut self.redo, data.id, rid, values),
            Change::Delete => redo::put_delete(&mut self.redo, data.id, rid),
        }
        self.pass_redo_on()
    }

    /// Adds what happens to a table as a whole to the redo.
    pub(super) fn log_catalog(&mut self, data: &TableData, put: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        if self.is_logged(data) {
            self.settle_redo()?;
            put(&mut self.redo);
            self.pass_redo_on()?;
        }
        Ok(())
    }

    /// Whether what happens to a table goes to the log.
    #[inline]
    pub(super) fn is_logged(&self, data: &TableData) -> bool {
        self.anchor.log.is_some() && !data.is_temporary
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
            let bytes = self.redo.len() as u64;
            self.anchor.core.running_redo.fetch_add(bytes, Ordering::Relaxed);
            (self.log_partition, self.redo_in_log) = (Some(partition), self.redo_in_log + bytes);
            self.redo.clear();
        }
        Ok(())
    }
}
