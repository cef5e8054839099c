//! The notes of what a serializable transaction has read.
//!
//! Records that are read by key as words are mostly of the table that the transaction writes to, and nobody but the transaction
//! itself looks at the notes of them. They are kept with it: no latch, no memory of their own, no hold on their table but the one
//! that the transaction has. All else goes into a [`ReadSet`], which the views of the transaction note in too, on any thread; it is made
//! when there is something to put in.
use std::cell::OnceCell;
use std::sync::Arc;

use smallvec::SmallVec;
use types::Rid;

use crate::state::table_data::TableData;
use crate::table::read_set::ReadSet;

/// More records than this are noted in the read set.
const RECORDS_MAX: usize = 1 << 12;

/// The notes of a transaction.
#[derive(Default)]
pub(super) struct Reads {
    set: OnceCell<Arc<ReadSet>>,
    /// the position in the transaction's list of the table of `records`
    table: usize,
    /// records that were read by key
    records: SmallVec<[Rid; 16]>,
}

impl Reads {
    /// What was read but for records that are kept here.
    pub(super) fn set(&self) -> &Arc<ReadSet> {
        self.set.get_or_init(Arc::default)
    }

    /// That of which something is noted, if there is something.
    pub(super) fn known_set(&self) -> Option<&Arc<ReadSet>> {
        self.set.get()
    }

    /// The records that are kept here, and the position of their table in the transaction's list.
    pub(super) fn records(&self) -> (usize, &[Rid]) {
        (self.table, &self.records)
    }

    /// Whether there are any.
    pub(super) fn are_any(&self) -> bool {
        !self.records.is_empty() || self.set.get().is_some_and(|set| !set.is_empty())
    }

    /// Notes records of a table, which is at this position in the transaction's list, if it is there.
    pub(super) fn note(&mut self, data: &Arc<TableData>, table: Option<usize>, rids: impl Iterator<Item = Rid>) {
        let Some(table) = table.filter(|table| self.records.is_empty() || self.table == *table) else {
            return self.set().note_records(data, rids);
        };
        self.table = table;
        self.records.extend(rids);
        debug_assert!(
            self.records.iter().all(|rid| data.storage.contains(*rid)),
            "invariant 4: what is no record of {} was read",
            data.name
        );
        if self.records.len() > RECORDS_MAX {
            self.set.get_or_init(Arc::default).note_records(data, self.records.drain(..));
        }
    }
}
