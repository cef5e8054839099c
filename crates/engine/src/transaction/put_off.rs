//! The redo of ranges that a transaction fills: their columns in place of their rows.
//!
//! A transaction that has inserted the rows of a part of a range by the batch puts the redo of what follows off: the rows of a range
//! that it begins are not in its redo while it fills that range. Once the range is full a merge thread makes its base columns, and
//! their bytes are the redo. So a large load encodes its rows once, and not on the thread that inserts. From some megabytes of them on
//! they go to files, which the redo names (`background/loads.rs`): these are on disk before the commit.
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
use super::filling::FillingRange;
use crate::background::filled::{FilledColumns, MadeColumns};
use crate::background::loads::{Load, PlacedColumns};
use crate::disk::redo;
use crate::error::Result;
use crate::keys::computed::ROWS_AT_ONCE;
use crate::state::table_data::TableData;

/// The redo of a range with more bytes in its long values than this is its rows.
const LONG_BYTES_MAX: usize = 16 << 20;

/// A transaction that has inserted this part of a range is likely to fill the next one.
const LOAD_PART: usize = 4;

impl Transaction {
    /// Puts the redo of so many records off that were inserted by the batch, from `first` on; returns whether it did. `long_bytes` is
    /// asked for the bytes of their long values if so.
    pub(super) fn put_off_redo(
        &mut self,
        data: &Arc<TableData>,
        first: Rid,
        rows: usize,
        long_bytes: impl FnOnce() -> usize,
    ) -> Result<bool> {
        let filling = self.filling.get_or_insert_default();
        let storage = &data.storage;
        // The columns wait beside the rows, so there has to be memory.
        if first.slot() == 0
            && filling.rows >= storage.range_records() / LOAD_PART
            && storage.options().layout == Layout::Column
            && self.anchor.core.budget.has_room_for_copies(0)
        {
            let (table, range) = (data.clone(), first.range());
            filling.ranges.push(FillingRange { table, range, rows: 0, long_bytes: 0, columns: None });
        }
        let Some(at) = filling.add(data, first, rows) else { return Ok(false) };
        let range = &mut filling.ranges[at];
        range.long_bytes += long_bytes();
        if range.long_bytes > LONG_BYTES_MAX {
            let rows = filling.ranges.remove(at);
            self.log_range(&rows)?;
        } else if storage.is_filled(range.range, range.rows) {
            if let Some(loads) = self.anchor.loads.as_ref().filter(|loads| loads.are_worth(filling.column_bytes)) {
                filling.load.get_or_insert_with(|| loads.begin());
            }
            let columns = Arc::new(FilledColumns::new(data.clone(), range.range, filling.load.clone()));
            self.anchor.merges.make_columns(&columns);
            range.columns = Some(columns);
        }
        while let Some(range) = self.filling.as_mut().and_then(|filling| filling.take_full()) {
            self.log_range(&range)?;
        }
        Ok(true)
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

    /// Puts the files that the redo names on disk.
    pub(super) fn finish_load(&self) -> Result<()> {
        self.load().map_or(Ok(()), |load| load.finish())
    }

    /// The load that it has begun.
    pub(super) fn load(&self) -> Option<&Load> {
        self.filling.as_ref()?.load.as_deref()
    }

    /// Adds the records of a range to the redo.
    fn log_range(&mut self, FillingRange { table, range, rows, columns, .. }: &FillingRange) -> Result<()> {
        debug_assert!(*rows > 0, "invariant 8: a range that nothing was put into is to be replayed");
        if let Some(made) = columns.as_ref().and_then(|columns| columns.make()) {
            let last = Rid::base(*range, rows - 1);
            match made {
                MadeColumns::Bytes(bytes) => {
                    redo::put_insert_columns(&mut self.redo, table.id, last, bytes);
                    self.filling.iter_mut().for_each(|filling| filling.column_bytes += bytes.len());
                }
                MadeColumns::Blobs(PlacedColumns { file, salt, .. }, said) => {
                    redo::put_insert_blobs(&mut self.redo, table.id, last, (*file, *salt), said);
                }
            }
            return self.pass_redo_on();
        }
        let arrays = table.storage.inserted(*range, 0..*rows);
        let arrays = arrays.expect("a range is not merged before its records are resolved");
        let types = table.schema.columns().iter().map(|column| column.data_type);
        let columns: Vec<_> = arrays.iter().zip(types).map(|(array, of)| ArrayCells::new(array.as_ref(), of)).collect();
        for first in (0..*rows).step_by(ROWS_AT_ONCE) {
            self.log_rows(table, Rid::base(*range, first), &columns, first..(first + ROWS_AT_ONCE).min(*rows))?;
        }
        Ok(())
    }
}
