//! Inserting: a thread writes its new records into the range that is open for it, and opens the next one when that is full.
use arrow_array::ArrayRef;
use sync::atomic::Ordering;
use types::{BlobRef, Rid};

use super::Table;
use crate::merge::early::EarlyColumns;
use crate::record::range::Range;
use crate::value::cell::{ArrayCells, Cell};

impl Table {
    /// Writes a new record with the Start Time word `start`: a running transaction's id, or a commit timestamp.
    pub fn insert(&self, cells: &[Cell<'_>], start: u64) -> Rid {
        self.insert_in_open_range(|range| {
            let slot = range.allocate_slot()?;
            Some((slot, range.write_insert(slot, cells, start)))
        })
    }

    /// Writes the first of some rows of a batch, as many as its open range takes, with the Start Time word `start`. Returns the
    /// first of the new records, which are neighbours, and how many they are.
    ///
    /// # Panics
    /// If there is no row, or not a column for each of the table's.
    pub fn insert_rows(&self, columns: &[ArrayCells<'_>], rows: std::ops::Range<usize>, start: u64) -> (Rid, usize) {
        assert!(!rows.is_empty() && columns.len() == self.schema.columns().len(), "rows of all columns");
        let mut count = 0;
        let first = self.insert_in_open_range(|range| {
            let slots = range.allocate_slots(rows.len());
            count = slots.len();
            let rows = rows.start..rows.start + count;
            (count > 0).then(|| (slots.start, range.write_inserts(slots.start, columns, rows, start)))
        });
        (first, count)
    }

    /// Writes to the range that is open for this thread. `write` returns the first slot and the bytes that the range's insert
    /// pages take then, or `None` if the range is full.
    fn insert_in_open_range(&self, mut write: impl FnMut(&Range) -> Option<(usize, u64)>) -> Rid {
        let open = &self.open[sync::writer_slot() % self.open.len()];
        loop {
            let seen = open.load(Ordering::Acquire);
            if seen > 0
                && let Some((slot, bytes)) = write(self.range(seen - 1))
            {
                if bytes > self.meter.budget().open_range_bytes_max(self.open.len()) {
                    self.range(seen - 1).close();
                }
                return Rid::base(seen - 1, slot);
            }
            let _growing = self.growing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if open.load(Ordering::Acquire) == seen {
                open.store(self.add_range() + 1, Ordering::Release);
            }
        }
    }

    /// Makes the base columns of a range that one transaction has filled, before it has committed; its first merge takes them. By
    /// what is returned [`restore_columns`](Self::restore_columns) or [`restore_blobs`](Self::restore_blobs) gives the range back. `None`
    /// if the range still takes records, was merged, or has no columns.
    pub fn build_columns(&self, range: usize) -> Option<EarlyColumns> {
        self.range(range).build_early()
    }

    /// Notes that columns which wait for a first merge are in blobs, which the source of pages has once their transaction commits.
    pub fn place_columns(&self, range: usize, blobs: &[BlobRef]) {
        self.range(range).place_early(blobs);
    }

    /// Gives up columns that wait for a first merge, which makes them again: they are worth no memory that something else needs.
    pub fn forget_columns(&self) {
        (0..self.range_count()).for_each(|range| self.range_as_is(range).forget_early());
    }

    /// Whether a range takes no more records, and has this many.
    pub fn is_filled(&self, range: usize, records: usize) -> bool {
        let range = self.range_as_is(range);
        range.is_closed() && range.len() == records
    }

    /// The values of neighbouring records as they were inserted, as arrays of the columns' types; `None` where they are no longer in
    /// insert pages.
    pub fn inserted(&self, range: usize, slots: std::ops::Range<usize>) -> Option<Vec<ArrayRef>> {
        self.range(range).inserted(slots)
    }
}
