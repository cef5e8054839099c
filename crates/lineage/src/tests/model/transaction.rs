//! A transaction of the model: what it wrote, command by command, and what of it was taken back.
use types::{Command, Rid, StartTime, Timestamp, TxnId};

use crate::Table;
use crate::record::append::AppendedRecords;
use crate::record::hold::Hold;
use crate::tests::model::Row;

/// The change of a record by a transaction.
#[derive(Clone, Copy)]
pub(super) enum Wrote {
    /// A row in the place of the former one; `None` = it is deleted.
    Row(Option<Row>),
    /// Nothing: it locked the record.
    Lock(Hold),
}

pub(super) struct Write {
    pub(super) command: Command,
    /// the number of the record
    pub(super) record: usize,
    pub(super) rid: Rid,
    /// `None` = it was inserted
    pub(super) appended: Option<AppendedRecords>,
    pub(super) wrote: Wrote,
}

/// A running transaction.
pub(super) struct Open {
    pub(super) id: TxnId,
    pub(super) at: Timestamp,
    pub(super) command: Command,
    /// its commit timestamp, if it is prepared
    pub(super) prepared: Option<Timestamp>,
    pub(super) writes: Vec<Write>,
    /// how much was written at each savepoint
    pub(super) savepoints: Vec<usize>,
}

impl Open {
    /// The row that commands before `before` left of a record, `None` if they did not change it.
    pub(super) fn own(&self, record: usize, before: Command) -> Option<Option<Row>> {
        let rows = self.writes.iter().rev().filter(|write| write.record == record && write.command < before);
        rows.filter_map(|write| if let Wrote::Row(row) = write.wrote { Some(row) } else { None }).next()
    }

    /// Whether it has written or locked a record.
    pub(super) fn has(&self, record: usize) -> bool {
        self.writes.iter().any(|write| write.record == record)
    }

    /// How much it holds of a record that it has written or locked.
    pub(super) fn hold(&self, record: usize) -> Option<Hold> {
        let hold = |write: &Write| match write.wrote {
            Wrote::Lock(hold) => hold,
            Wrote::Row(Some(_)) if write.appended.is_some() => Hold::Values,
            Wrote::Row(_) => Hold::Whole,
        };
        self.writes.iter().filter(|write| write.record == record).map(hold).max()
    }

    /// Whether all that it has written of a record is its insert.
    pub(super) fn has_only_inserted(&self, record: usize) -> bool {
        let mut writes = self.writes.iter().filter(|write| write.record == record);
        writes.all(|write| write.appended.is_none())
    }

    /// Stamps what it has written from number `first` on.
    pub(super) fn stamp(&self, table: &Table, first: usize, stamp: u64) {
        for write in &self.writes[first..] {
            match write.appended {
                None => table.stamp_insert(&sync::pin(), write.rid, self.id, stamp),
                Some(appended) => table.stamp_versions(&sync::pin(), write.rid, appended, self.id, stamp),
            }
        }
    }

    /// Takes back what it wrote since its last savepoint, which stays if it is not `released`.
    pub(super) fn roll_back(&mut self, table: &Table, is_released: bool) {
        let Some(first) = self.savepoints.pop() else { return };
        self.stamp(table, first, StartTime::TOMBSTONE);
        self.writes.truncate(first);
        if !is_released {
            self.savepoints.push(first);
        }
    }
}
