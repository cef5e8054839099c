//! The contents of the two meta-data pages of a range: Start Time slot by slot, and what merged tail records did.
use sync::atomic::{AtomicU64, Ordering};
use types::Timestamp;

use crate::value::column_set::ColumnSet;

/// Slots that share one word with the newest of their times, so that validation passes over those that are older.
pub(crate) const HINT_SLOTS: usize = 512;

/// Start Time of the base records of a range, slot by slot.
pub(crate) struct Times(pub(crate) Box<[AtomicU64]>);

/// The meta-data columns that only updated records need.
#[derive(Clone)]
pub(crate) struct UpdateColumns {
    /// Last Updated Time: the Start Time of the newest tail record taken in, 0 = none
    pub(crate) last_updated: Box<[u64]>,
    /// the newest Last Updated Time of every [`HINT_SLOTS`] slots
    pub(crate) newest: Box<[u64]>,
    /// Schema Encoding: the columns updated by the tail records taken in, `set_words` words a record
    pub(crate) ever: Box<[u64]>,
    /// whether the newest tail record taken in was a delete, a bit a record
    pub(crate) deleted: Box<[u64]>,
}

impl Times {
    /// The words, one for each slot.
    pub(crate) fn words(&self) -> Vec<u64> {
        self.0.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }
}

impl UpdateColumns {
    /// The columns of `len` records without an update.
    pub(crate) fn untouched(len: usize, set_words: usize) -> UpdateColumns {
        UpdateColumns {
            last_updated: vec![0; len].into(),
            newest: vec![0; len.div_ceil(HINT_SLOTS)].into(),
            ever: vec![0; len * set_words].into(),
            deleted: vec![0; len.div_ceil(64)].into(),
        }
    }

    /// The slots of records that were updated, ascending.
    pub(crate) fn updated(&self) -> impl Iterator<Item = usize> {
        self.last_updated.iter().enumerate().filter(|(_, at)| **at != 0).map(|(slot, _)| slot)
    }

    /// Finds the newest of every few slots.
    pub(crate) fn note_newest(&mut self) {
        let newest = |chunk: &[u64]| chunk.iter().copied().fold(0, u64::max);
        self.newest = self.last_updated.chunks(HINT_SLOTS).map(newest).collect();
    }

    /// Whether the newest tail record taken in of `slot` was a delete.
    #[inline]
    pub(crate) fn is_deleted(&self, slot: usize) -> bool {
        self.deleted[slot / 64] & 1 << (slot % 64) != 0
    }

    /// When the newest tail record taken in of `slot` was committed, `None` within if it was a delete; `None` if there is none.
    #[inline]
    pub(crate) fn settled(&self, slot: usize) -> Option<Option<u64>> {
        let last_updated = self.last_updated[slot];
        (last_updated > 0).then(|| (!self.is_deleted(slot)).then_some(last_updated))
    }

    /// The columns updated by the tail records taken in of `slot`.
    #[inline]
    pub(crate) fn ever(&self, slot: usize) -> ColumnSet {
        let set_words = self.ever.len() / self.last_updated.len();
        let mut columns = ColumnSet::EMPTY;
        (0..set_words).for_each(|i| columns.insert_word(i, self.ever[slot * set_words + i]));
        columns
    }

    /// Takes in the newest version of `slot`.
    pub(crate) fn take_in(&mut self, slot: usize, committed: Timestamp, ever: &ColumnSet, is_delete: bool) {
        let set_words = self.ever.len() / self.last_updated.len();
        self.last_updated[slot] = committed.0;
        let newest = &mut self.newest[slot / HINT_SLOTS];
        *newest = committed.0.max(*newest);
        (0..set_words).for_each(|i| self.ever[slot * set_words + i] = ever.word(i));
        self.deleted[slot / 64] |= u64::from(is_delete) << (slot % 64);
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.last_updated)
            + size_of_val(&*self.newest)
            + size_of_val(&*self.ever)
            + size_of_val(&*self.deleted)
    }
}
