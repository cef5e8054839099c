//! The Start Times of what a transaction writes: its mark while it runs, then its outcome.
//!
//! What is written has the transaction's id and the command that wrote it as its Start Time, which hides it from others. The
//! commit puts its timestamp there, a rollback a tombstone: in the order in which all was written, as the list of notes has it.
use std::sync::Arc;

use types::{Command, StartTime, TxnId};

use super::Transaction;
use super::notes::{WrittenRecords, neighbours};
use crate::error::{Error, Result};
use crate::state::table_data::TableData;

impl Transaction {
    /// The Start Time of what is written now. What views that are still open see must not change, so a new command begins
    /// where there are any.
    #[inline(always)]
    pub(super) fn start(&mut self) -> Result<u64> {
        if self.open.get().is_some() {
            self.begin_command()?;
        }
        let start = self.id().word_of(self.command);
        debug_assert!(
            matches!(StartTime::from_word(start), StartTime::Pending(txn) if txn == self.id()),
            "invariant 4: {start:#x} is not hidden from others"
        );
        Ok(start)
    }

    /// Begins a new command if a view is still open that must not see what is written next.
    #[cold]
    fn begin_command(&mut self) -> Result<()> {
        if self.open.get().is_some_and(|open| Arc::strong_count(open) > 1) {
            let next = Command(self.command.0 + 1);
            if next == Command::LAST {
                return Err(Error::TooManyCommands);
            }
            debug_assert!(next > self.command, "invariant 4: commands are numbered upwards");
            (self.command, self.open) = (next, Default::default());
        }
        Ok(())
    }

    /// Writes an outcome to the Start Times of what it wrote, from this place in the list on.
    pub(super) fn stamp_versions(&self, from: usize, stamp: u64) {
        stamp_records(&self.tables, &self.written[from..], self.id(), stamp);
    }
}

/// Writes an outcome to the Start Times of records that the transaction `id` wrote to these tables.
pub(super) fn stamp_records(tables: &[Arc<TableData>], written: &[WrittenRecords], id: TxnId, stamp: u64) {
    debug_assert!(
        matches!(StartTime::from_word(stamp), StartTime::Committed(_) | StartTime::Tombstone),
        "invariant 1: {stamp:#x} is no outcome"
    );
    let guard = sync::pin();
    for written in written {
        match *written {
            WrittenRecords::Inserts { table, first, count } => {
                let storage = &tables[table as usize].storage;
                neighbours(first, count).for_each(|rid| storage.stamp_insert(&guard, rid, id, stamp));
            }
            WrittenRecords::Versions { table, rid, appended } => {
                tables[table as usize].storage.stamp_versions(&guard, rid, appended, id, stamp);
            }
        }
    }
}
