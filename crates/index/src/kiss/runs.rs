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
use std::marker::PhantomData;
use std::ptr::NonNull;
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

    /// The runs as a reader finds them that asks for many keys; see [`LikelyRecords`].
    #[inline]
    pub(crate) fn now(&self) -> LikelyRecords<'_> {
        let words = self.words.get().and_then(Option::as_ref).map(|words| words.start().cast());
        LikelyRecords { home: self.home, words, runs: PhantomData }
    }

    /// See [`LikelyRecords::record`].
    #[inline]
    pub(crate) fn record(&self, key: u64) -> Option<Rid> {
        self.now().record(key)
    }

    /// Notes that the keys from this one on, a multiple of 64, were given to the records from `first` on, 64 of each.
    pub(crate) fn note(&self, key: u64, first: Rid) {
        debug_assert!(key.is_multiple_of(FANOUT as u64) && !first.is_tail());
        self.words.get_or_init(|| Mapping::reserve(SLOTS * size_of::<AtomicU64>()).ok());
        if let Some(word) = self.now().word(key) {
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
        if let Some(word) = self.now().word(key).filter(|word| word.load(Ordering::Relaxed) != 0) {
            word.store(0, Ordering::Release);
        }
    }
}

/// The runs of a tree, for a reader that asks for many keys: whether there are any is looked at once. Where there were none, it
/// finds none, even if some were noted since.
#[derive(Clone, Copy)]
pub struct LikelyRecords<'r> {
    home: u64,
    /// a word for every 64 keys of the home; `None` if there are no runs
    words: Option<NonNull<AtomicU64>>,
    runs: PhantomData<&'r Runs>,
}

impl<'r> LikelyRecords<'r> {
    #[inline(always)]
    fn word(self, key: u64) -> Option<&'r AtomicU64> {
        let (words, below) = (self.words?, key ^ self.home);
        // SAFETY: the mapping, which stays with the runs, has a word for every 64 keys of the home, of which this is one, and zeros
        // are valid words.
        (below >> 32 == 0).then(|| unsafe { words.add(below as usize / FANOUT).as_ref() })
    }

    /// The record that was given this key when it was inserted, if that is among a run; `None` says nothing about the key. The caller
    /// has seen all that the record's writer did before it entered the key.
    #[inline(always)]
    pub fn record(self, key: u64) -> Option<Rid> {
        let word = self.word(key)?.load(Ordering::Acquire);
        (word != 0).then(|| Rid::from_word((word & !RUN) + key % FANOUT as u64))
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
