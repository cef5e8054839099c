//! The words that a transaction has read, those that it will write, and the records that it owns while it commits.
//!
//! The write set is a row of words, searched from its end while it is short and through a table of positions once it is
//! not. All vectors outlive their transaction: a thread keeps a spare for the next one.

use std::cell::Cell;

use durability::Lsn;

use crate::allocator::Block;

/// Up to so many writes a search of the row is quicker than the table.
const SHORT: usize = 8;
/// More than so many entries are not kept for the next transaction.
const KEPT_MAX: usize = 1 << 16;

/// A word to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) at: u64,
    pub(crate) value: u64,
}

/// An ownership record and what stood in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnershipRead {
    pub(crate) record: usize,
    pub(crate) word: u64,
}

/// The state of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    /// Everything read is as it was when the clock stood here.
    pub(crate) snapshot: Lsn,
    pub(crate) reads: Vec<OwnershipRead>,
    pub(crate) writes: WriteSet,
    /// The records owned, in their order, with what stood there before.
    pub(crate) owned: Vec<OwnershipRead>,
    /// Blocks allocated, and blocks freed.
    pub(crate) taken: Vec<Block>,
    pub(crate) given: Vec<Block>,
    /// The redo on its way to the log.
    pub(crate) redo: Vec<u8>,
}

thread_local! {
    static SPARE: Cell<Option<Box<Sets>>> = const { Cell::new(None) };
}

impl Sets {
    /// Empty sets, those of the transaction before where they are to be had.
    pub(crate) fn fresh(snapshot: Lsn) -> Box<Sets> {
        let mut sets = SPARE.take().unwrap_or_default();
        sets.restart(snapshot);
        sets
    }

    /// Forgets everything.
    pub(crate) fn restart(&mut self, snapshot: Lsn) {
        debug_assert!(self.owned.is_empty(), "what is owned is given back first");
        self.snapshot = snapshot;
        self.reads.clear();
        self.writes.clear();
        self.taken.clear();
        self.given.clear();
        self.redo.clear();
    }

    /// Keeps the vectors for the next transaction of the thread, unless they have grown large.
    pub(crate) fn recycle(sets: Box<Sets>) {
        if sets.reads.capacity().max(sets.writes.row.capacity()) <= KEPT_MAX {
            SPARE.set(Some(sets));
        }
    }

    /// Notes that a word under `record` was read. Neighbours that are read one after the other need one note.
    pub(crate) fn note_read(&mut self, record: usize, word: u64) {
        let seen = OwnershipRead { record, word };
        if self.reads.last() != Some(&seen) {
            self.reads.push(seen);
        }
    }

    /// The word of a record before it was owned.
    pub(crate) fn before(&self, record: usize) -> Option<u64> {
        let at = self.owned.binary_search_by_key(&record, |owned| owned.record).ok()?;
        Some(self.owned[at].word)
    }
}

/// The words that a transaction will write, each once.
#[derive(Debug, Default)]
pub(crate) struct WriteSet {
    row: Vec<Write>,
    /// Positions in the row plus one, by the hash of the word's number, probed linearly; 0 is free. Of use only beyond
    /// [`SHORT`] writes.
    positions: Vec<u32>,
}

impl WriteSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// The value to be written to a word.
    pub(crate) fn get(&self, at: u64) -> Option<u64> {
        self.find(at).map(|found| self.row[found].value)
    }

    /// Writes a word, in place of what was to be written there before.
    pub(crate) fn put(&mut self, at: u64, value: u64) {
        match self.find(at) {
            Some(found) => self.row[found].value = value,
            None => {
                self.row.push(Write { at, value });
                if self.row.len() > SHORT {
                    self.enter_last();
                }
            }
        }
    }

    /// The writes in the order of their words. Nothing can be found or added afterwards.
    pub(crate) fn sort(&mut self) {
        self.row.sort_unstable_by_key(|write| write.at);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Write> {
        self.row.iter().copied()
    }

    pub(crate) fn as_slice(&self) -> &[Write] {
        &self.row
    }

    fn clear(&mut self) {
        if self.row.len() > SHORT {
            self.positions.fill(0);
        }
        if self.positions.len() > KEPT_MAX {
            self.positions = Vec::new();
        }
        self.row.clear();
    }

    fn find(&self, at: u64) -> Option<usize> {
        if self.row.len() <= SHORT {
            return self.row.iter().rposition(|write| write.at == at);
        }
        let mask = self.positions.len() - 1;
        let mut slot = hash(at) & mask;
        loop {
            let position = self.positions[slot] as usize;
            if position == 0 {
                return None;
            }
            if self.row[position - 1].at == at {
                return Some(position - 1);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Enters the last write into the table, which is at most half full; all of them where the table is new.
    fn enter_last(&mut self) {
        let is_grown = self.positions.len() < 2 * self.row.len();
        if is_grown {
            self.positions.clear();
            self.positions.resize((4 * self.row.len()).next_power_of_two(), 0);
        }
        let is_first = self.row.len() == SHORT + 1;
        let first = if is_grown || is_first { 0 } else { self.row.len() - 1 };
        let mask = self.positions.len() - 1;
        for at in first..self.row.len() {
            let mut slot = hash(self.row[at].at) & mask;
            while self.positions[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.positions[slot] = at as u32 + 1;
        }
    }
}

/// Fibonacci hashing; the upper bits are the good ones.
fn hash(at: u64) -> usize {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_write_set_is_a_map(
            transactions in prop::collection::vec(prop::collection::vec((0_u64..300, 0_u64..9), 0..400), 1..4),
        ) {
            let mut writes = WriteSet::default();
            for transaction in transactions {
                let mut model = BTreeMap::new();
                for (at, value) in transaction {
                    prop_assert_eq!(writes.get(at), model.get(&at).copied());
                    writes.put(at, value);
                    model.insert(at, value);
                }
                for at in 0..300 {
                    prop_assert_eq!(writes.get(at), model.get(&at).copied());
                }
                writes.sort();
                prop_assert!(writes.iter().map(|write| (write.at, write.value)).eq(model));
                writes.clear();
                prop_assert!(writes.is_empty());
            }
        }
    }

    #[test]
    fn neighbours_need_one_note() {
        let mut sets = Sets::fresh(3);
        for record in [4, 4, 4, 5, 4] {
            sets.note_read(record, 6);
        }
        let records: Vec<usize> = sets.reads.iter().map(|seen| seen.record).collect();
        assert_eq!(records, [4, 5, 4]);
        sets.restart(9);
        assert!(sets.reads.is_empty() && sets.snapshot == 9);
    }
}
