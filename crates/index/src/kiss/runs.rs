//! Runs: where 64 neighbouring keys were given to records that follow one another, one word says to which.
//!
//! Rows are mostly loaded in the order of their keys. Then the entries of 64 keys say no more than the first of them, and a reader
//! that goes to the tree waits for a value that it could have worked out:
//!
//! ```text
//! tree:  slot -> node  | r | r + 1 | r + 2 | ... | r + 63 |      8 bytes a key
//! runs:  word          | r |                                     8 bytes for 64 keys, which stay in the processor's cache
//! ```
//!
//! A run is a fact about records: the record at `r + i` was given the key when it was inserted. It is a guess about keys. The record may
//! be dead by now, or its insert undone, and the key another record's. So a reader goes to the record first, and where that is not
//! there for it, to the tree. Where the reader finds it, it is the right one, as long as no record of the table has changed its
//! key: a key has one record at a time.
//!
//! A writer that gives a key of a run to another record, or takes an entry away, forgets the run, so that readers seldom go astray.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use sync::zeroed::AtomicU64;
use types::Rid;

use super::level_two::SLOTS;
use super::mapping::Mapping;
use super::node::FANOUT;

/// A word of 0 is no run.
const RUN: u64 = 1 << 63;

/// The runs among the keys of a tree's home. Takes no memory before the first.
pub(crate) struct Runs {
    /// the first key of the home
    home: u64,
    /// `None` inside: there is no address space, and there are no runs
    words: OnceLock<Option<Mapping>>,
    /// how many were noted
    count: AtomicUsize,
}

impl Runs {
    /// No runs yet, for keys with these upper 32 bits.
    pub(crate) fn new(home: u32) -> Runs {
        Runs { home: u64::from(home) << 32, words: OnceLock::new(), count: AtomicUsize::new(0) }
    }

    #[inline]
    fn word<'r>(&self, words: &'r Mapping, key: u64) -> Option<&'r AtomicU64> {
        let below = key ^ self.home;
        // SAFETY: the mapping has a word for every 64 keys of the home, of which this is one, and zeros are valid words.
        (below >> 32 == 0).then(|| unsafe { words.start().cast::<AtomicU64>().add(below as usize / FANOUT).as_ref() })
    }

    /// The record that was given this key when it was inserted, if that is among a run. The caller has seen all that the record's
    /// writer did before it entered the key.
    #[inline]
    pub(crate) fn record(&self, key: u64) -> Option<Rid> {
        let word = self.word(self.words.get()?.as_ref()?, key)?.load(Ordering::Acquire);
        (word != 0).then(|| Rid::from_word((word & !RUN) + key % FANOUT as u64))
    }

    /// Notes that the keys from this one on, a multiple of 64, were given to the records from `first` on, 64 of each.
    pub(crate) fn note(&self, key: u64, first: Rid) {
        debug_assert!(key.is_multiple_of(FANOUT as u64) && !first.is_tail());
        let words = self.words.get_or_init(|| Mapping::reserve(SLOTS * size_of::<AtomicU64>()).ok());
        if let Some(word) = words.as_ref().and_then(|words| self.word(words, key)) {
            word.store(first.word() | RUN, Ordering::Release);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Memory in bytes, pages that are used in part apart.
    pub(crate) fn bytes(&self) -> u64 {
        (self.count.load(Ordering::Relaxed) * size_of::<AtomicU64>()) as u64
    }

    /// Forgets the run that this key is among, if there is one.
    pub(crate) fn forget(&self, key: u64) {
        let word = self.words.get().and_then(|words| self.word(words.as_ref()?, key));
        if let Some(word) = word.filter(|word| word.load(Ordering::Relaxed) != 0) {
            word.store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_the_record_of_each_of_its_keys_until_it_is_forgotten() {
        let runs = Runs::new(1 << 31);
        let home = 1_u64 << 63;
        assert_eq!(runs.record(home), None);
        runs.forget(home);
        runs.note(home, Rid::base(0, 0));
        runs.note(home + 128, Rid::base(3, 1000));
        runs.note(7 << 6, Rid::base(9, 9));
        for at in 0..64 {
            assert_eq!(runs.record(home + at), Some(Rid::base(0, at as usize)));
            assert_eq!(runs.record(home + 64 + at), None);
            assert_eq!(runs.record(home + 128 + at), Some(Rid::base(3, 1000 + at as usize)));
            assert_eq!(runs.record((7 << 6) + at), None, "another home");
        }
        runs.forget(home + 63);
        assert_eq!(runs.record(home), None);
        assert_eq!(runs.record(home + 191), Some(Rid::base(3, 1063)));
        assert_eq!(runs.record(home | u64::from(u32::MAX)), None);
    }
}
