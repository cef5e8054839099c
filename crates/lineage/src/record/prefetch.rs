//! Asking for the memory of several records before the first of them is read: a lookup by key waits for memory three
//! times, one after the other (Indirection and base values, the tail record, its values), and several lookups can wait
//! together.
use sync::atomic::Ordering;

use sync::Guard;

use crate::page::tail::TailRecord;
use crate::record::range::{LATCH, Range};

impl Range {
    /// Asks for the Indirection word of a record.
    #[inline]
    pub(crate) fn prefetch_indirection(&self, slot: usize) {
        sync::prefetch(std::ptr::from_ref(&self.indirection[slot]));
    }

    /// Asks for the Indirection word of a record and the base values of some columns.
    #[inline]
    pub(crate) fn prefetch_base(&self, guard: &Guard, slot: usize, columns: &[usize]) {
        self.prefetch_indirection(slot);
        let pages = self.pages.load(guard);
        columns.iter().for_each(|column| pages.columns[*column].prefetch(guard, *column, slot));
    }

    /// Asks for the newest version, if it is in the tail.
    #[inline]
    pub(crate) fn prefetch_newest(&self, guard: &Guard, slot: usize) {
        if let Some(record) = self.newest_record(guard, slot) {
            record.prefetch();
        }
    }

    /// Asks for the values of the newest version, if it is in the tail.
    #[inline]
    pub(crate) fn prefetch_values(&self, guard: &Guard, slot: usize, columns: &[usize]) {
        if let Some(record) = self.newest_record(guard, slot) {
            record.prefetch_values(columns);
        }
    }

    #[inline]
    fn newest_record<'g>(&'g self, guard: &'g Guard, slot: usize) -> Option<TailRecord<'g>> {
        let newest = self.indirection[slot].load(Ordering::Relaxed) & !LATCH;
        let part = self.part_of(slot);
        let is_pending = newest > self.pages.load(guard).floor[part];
        if is_pending { self.parts[part].tails.get(guard, newest) } else { None }
    }
}
