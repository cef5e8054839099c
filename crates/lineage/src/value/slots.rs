//! Sets of slots, or of other small numbers, that grow: a bit each.
use crate::value::column_set::columns_of;

/// A set of slots.
pub(crate) struct SlotSet(Box<[u64]>);

impl SlotSet {
    /// No slot yet, of those below `end`.
    pub(crate) fn new(end: usize) -> SlotSet {
        SlotSet(vec![0; end.div_ceil(64)].into())
    }

    /// Adds a slot.
    #[inline]
    pub(crate) fn insert(&mut self, slot: usize) {
        self.0[slot / 64] |= 1 << (slot % 64);
    }

    /// Adds a slot, if it is below the end; whether that was so, and it was not there before.
    #[inline]
    pub(crate) fn insert_new(&mut self, slot: usize) -> bool {
        let Some(word) = self.0.get_mut(slot / 64) else { return false };
        let is_new = *word >> (slot % 64) & 1 == 0;
        *word |= 1 << (slot % 64);
        is_new
    }

    /// The slots `from..to`, where `from` begins a word, a bit each.
    #[inline]
    pub(crate) fn part(&self, from: usize, to: usize) -> &[u64] {
        debug_assert!(from.is_multiple_of(64), "slot {from} begins no word");
        &self.0[from / 64..to.div_ceil(64)]
    }

    /// How many of them there are among `words`, which has a bit for each slot.
    pub(crate) fn count_among(&self, words: &[u64]) -> usize {
        self.0.iter().zip(words).map(|(mine, others)| (mine & others).count_ones() as usize).sum()
    }

    /// The slots, ascending.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| columns_of(*word).map(move |bit| 64 * at + bit))
    }

    /// Takes out the slots for which the answer is false; returns whether there were any.
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(usize) -> bool) -> bool {
        let mut has_taken = false;
        for (at, word) in self.0.iter_mut().enumerate() {
            for bit in columns_of(*word).filter(|bit| !is_kept(64 * at + bit)) {
                *word &= !(1 << bit);
                has_taken = true;
            }
        }
        has_taken
    }
}
