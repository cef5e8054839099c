//! What a serializable transaction has read: noting it, and looking at its commit whether it would read the same.
use std::sync::Arc;

use types::{Rid, Timestamp};

use super::Transaction;
use super::noted_reads::Reads;
use crate::error::Result;
use crate::state::catalog::has_gone_between;
use crate::state::table_data::TableData;
use crate::table::read_set::ReadSet;

impl Transaction {
    /// Where the transaction notes what it reads; `None` if it need not.
    pub(super) fn reads(&self) -> Option<&Arc<ReadSet>> {
        self.reads.as_ref().map(Reads::set)
    }

    /// Notes records of a table that were read by key.
    pub(super) fn note_records(&mut self, data: &Arc<TableData>, rids: impl Iterator<Item = Rid>) {
        if let Some(reads) = &mut self.reads {
            let table = self.tables.iter().position(|known| Arc::ptr_eq(known, data));
            reads.note(data, table, rids);
        }
    }

    /// Looks whether the transaction would read the same just before it commits at `at`.
    ///
    /// # Errors
    /// [`Error::ReadChanged`](crate::Error::ReadChanged) if it would not; those of a read.
    pub(super) fn validate_reads(&self, at: Timestamp) -> Result<()> {
        let Some(reads) = &self.reads else { return Ok(()) };
        debug_assert!(self.at < at, "invariant 4: a commit at {at:?} of a transaction that reads {:?}", self.at);
        if !self.are_untouched(reads, at) {
            let (table, records) = reads.records();
            reads.set().note_records(&self.tables[table], records.iter().copied());
        }
        reads.known_set().map_or(Ok(()), |set| set.validate(&self.anchor.core, self.at, at, self.id()))
    }

    /// Whether a look tells that no commit before `at` has changed the records that were read by key, or taken their table away.
    /// False also where more is to be asked.
    fn are_untouched(&self, reads: &Reads, at: Timestamp) -> bool {
        let (from, to, (table, records)) = (self.at, Timestamp(at.0 - 1), reads.records());
        if to <= from || records.is_empty() {
            return true;
        }
        let (table, guard) = (&self.tables[table], &sync::pin());
        let points = table.storage.points(guard);
        records.iter().all(|rid| points.at(*rid).is_untouched_since(guard, from))
            && !has_gone_between(self.transactions(), table, from, to, self.id())
    }
}
