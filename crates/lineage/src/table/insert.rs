//! Inserting: a thread writes its new records into the range that is open for it, and opens the next one when that is full.
use sync::atomic::Ordering;
use types::Rid;

use super::Table;
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
        let open = &self.open[sync::thread_slot() % self.open.len()];
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
}
