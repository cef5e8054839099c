//! The redo of ranges that a transaction fills: their columns in place of their rows.
//!
//! A transaction that inserts by the batch, and has filled a range, puts the redo of what follows off: the rows of a range that it
//! begins are not in its redo while it fills that range. Once the range is full a merge thread makes its base columns, and their bytes
//! are the redo. So a large load encodes its rows once, and not on the thread that inserts.
//!
//! ```text
//! rows of range r    r is begun ... filled --> its columns are made --> redo, in any order
//!                         |            |                 |
//!                         +------------+-----------------+--> what else is to be in the redo after them, and the commit:
//!                                                             columns that are made, or rows where r is not full
//! ```
//!
//! Inserts of different records may be replayed in any order, so only what changes rows, or tables, has the redo **settled** before. A
//! savepoint remembers what was put off when it was made. Where the transaction goes back to it, that is put off again: the redo which
//! it has since become is taken back with the rest, and rows that were inserted since are not in what is put off.
use std::sync::Arc;

use lineage::{ArrayCells, Layout};
use types::Rid;

use super::Transaction;
use super::columns::ColumnRows;
use crate::background::filled::FilledColumns;
use crate::disk::redo;
use crate::error::Result;
use crate::keys::computed::ROWS_AT_ONCE;
use crate::state::table_data::TableData;

/// So many ranges that are full may wait for their columns, before the transaction makes them itself.
const UNMADE_MAX: usize = 3;

/// The redo of a range with more bytes in its long values than this is its rows.
const LONG_BYTES_MAX: usize = 16 << 20;

/// What a transaction has inserted by the batch, as far as its redo was put off.
#[derive(Clone, Default)]
pub(super) struct Filling {
    /// that it inserted by the batch
    rows: usize,
    ranges: Vec<FillingRange>,
}

/// The first records of a range, all of one transaction.
#[derive(Clone)]
struct FillingRange {
    table: Arc<TableData>,
    range: usize,
    rows: usize,
    long_bytes: usize,
    /// once it is full
    columns: Option<Arc<FilledColumns>>,
}

impl Filling {
    /// The range that is filled by records from `first` on; `None` if their redo is not put off.
    fn range_of(&mut self, table: &Arc<TableData>, first: Rid) -> Option<&mut FillingRange> {
        let is_next = |filling: &FillingRange| {
            filling.range == first.range()
                && filling.rows == first.slot()
                && filling.columns.is_none()
                && Arc::ptr_eq(&filling.table, table)
        };
        if first.slot() == 0
            && self.rows >= table.storage.range_records()
            && table.storage.options().layout == Layout::Column
        {
            let (table, range) = (table.clone(), first.range());
            self.ranges.push(FillingRange { table, range, rows: 0, long_bytes: 0, columns: None });
        }
        self.ranges.iter_mut().find(|filling| is_next(filling))
    }

    /// Takes out a range whose columns are made, or are to be made now, as too many wait.
    fn take_full(&mut self) -> Option<FillingRange> {
        let full = || self.ranges.iter().enumerate().filter_map(|(at, filling)| Some((at, filling.columns.as_ref()?)));
        let first = || full().next().filter(|_| full().count() > UNMADE_MAX);
        let (at, _) = full().find(|(_, columns)| columns.are_made()).or_else(first)?;
        Some(self.ranges.remove(at))
    }
}

impl Transaction {
    /// Puts the redo of records off that were inserted by the batch, from `first` on; returns whether it did.
    pub(super) fn put_off_redo(&mut self, data: &Arc<TableData>, first: Rid, rows: &ColumnRows<'_>) -> Result<bool> {
        let filling = self.filling.get_or_insert_default();
        let count = rows.rows.len();
        let found = filling.range_of(data, first);
        let is_put_off = found.is_some();
        if let Some(range) = found {
            (range.rows, range.long_bytes) = (range.rows + count, range.long_bytes + rows.long_bytes());
            if range.long_bytes > LONG_BYTES_MAX {
                let rows = range.clone();
                filling.ranges.retain(|range| !Arc::ptr_eq(&range.table, data) || range.range != first.range());
                self.log_range(&rows)?;
            } else if data.storage.is_filled(range.range, range.rows) {
                let columns = Arc::new(FilledColumns::new(data.clone(), range.range));
                self.anchor.merges.make_columns(&columns);
                range.columns = Some(columns);
            }
        }
        if let Some(filling) = &mut self.filling {
            filling.rows += count;
        }
        while let Some(range) = self.filling.as_mut().and_then(|filling| filling.take_full()) {
            self.log_range(&range)?;
        }
        Ok(is_put_off)
    }

    /// Puts into the redo all of it that was put off.
    #[inline]
    pub(super) fn settle_redo(&mut self) -> Result<()> {
        if self.filling.is_some() { self.settle_filling() } else { Ok(()) }
    }

    #[cold]
    fn settle_filling(&mut self) -> Result<()> {
        let ranges = self.filling.as_mut().map(|filling| std::mem::take(&mut filling.ranges));
        ranges.into_iter().flatten().try_for_each(|range| self.log_range(&range))
    }

    /// Adds the records of a range to the redo.
    fn log_range(&mut self, FillingRange { table, range, rows, columns, .. }: &FillingRange) -> Result<()> {
        if let Some(bytes) = columns.as_ref().and_then(|columns| columns.make()) {
            redo::put_insert_columns(&mut self.redo, table.id, Rid::base(*range, rows - 1), bytes);
            return self.pass_redo_on();
        }
        let arrays = table.storage.inserted(*range, 0..*rows);
        let arrays = arrays.expect("a range is not merged before its records are resolved");
        let types = table.schema.columns().iter().map(|column| column.data_type);
        let columns: Vec<_> = arrays.iter().zip(types).map(|(array, of)| ArrayCells::new(array.as_ref(), of)).collect();
        for first in (0..*rows).step_by(ROWS_AT_ONCE) {
            let part = ColumnRows { columns: &columns, rows: first..(first + ROWS_AT_ONCE).min(*rows) };
            self.log_rows(table, Rid::base(*range, first), part)?;
        }
        Ok(())
    }
}
