//! The ranges that a transaction fills, as far as its redo has not their rows yet.
use std::sync::Arc;

use types::Rid;

use crate::background::filled::FilledColumns;
use crate::background::loads::Load;
use crate::state::table_data::TableData;

/// So many ranges that are full may wait for their columns, before the transaction makes them itself.
const UNMADE_MAX: usize = 3;

/// What a transaction has inserted by the batch, as far as its redo was put off.
#[derive(Clone, Default)]
pub(super) struct Filling {
    /// that it inserted by the batch
    pub(super) rows: usize,
    pub(super) ranges: Vec<FillingRange>,
    /// the columns that the redo has, in bytes
    pub(super) column_bytes: usize,
    /// where further columns go, once these are many
    pub(super) load: Option<Arc<Load>>,
}

/// The first records of a range, all of one transaction.
#[derive(Clone)]
pub(super) struct FillingRange {
    pub(super) table: Arc<TableData>,
    pub(super) range: usize,
    pub(super) rows: usize,
    pub(super) long_bytes: usize,
    /// once it is full
    pub(super) columns: Option<Arc<FilledColumns>>,
}

impl Filling {
    /// Adds records that are stored from `first` on to the range that they fill; `None` if there is none whose last rows they follow.
    pub(super) fn add(&mut self, table: &Arc<TableData>, first: Rid, rows: usize) -> Option<usize> {
        self.rows += rows;
        let is_next = |filling: &FillingRange| {
            filling.range == first.range()
                && filling.rows == first.slot()
                && filling.columns.is_none()
                && Arc::ptr_eq(&filling.table, table)
        };
        let at = self.ranges.iter().position(is_next)?;
        let filling = &mut self.ranges[at];
        filling.rows += rows;
        debug_assert!(filling.rows <= table.storage.range_records(), "invariant 8: more rows than slots are put off");
        Some(at)
    }

    /// Takes out a range whose columns are made, or are to be made now, as too many wait.
    pub(super) fn take_full(&mut self) -> Option<FillingRange> {
        let full = || self.ranges.iter().enumerate().filter_map(|(at, filling)| Some((at, filling.columns.as_ref()?)));
        let first = || full().next().filter(|_| full().count() > UNMADE_MAX);
        let (at, _) = full().find(|(_, columns)| columns.are_made()).or_else(first)?;
        Some(self.ranges.remove(at))
    }
}
