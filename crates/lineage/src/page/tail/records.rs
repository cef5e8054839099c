//! The memory of a tail page's records.
use std::ptr::NonNull;
use std::sync::Arc;

use sync::atomic::{AtomicU64, Ordering};
use sync::zeroed_atomics;

use super::record::{HEAD, LINE, RecordPlace, RecordShape};
use crate::memory::budget::Meter;

/// A model has few records, and every look at one costs it time.
const MODELLED: bool = cfg!(any(loom, shuttle));

/// The records of a page: meta-data, and values of the first columns, see [`super`].
pub(super) struct Records {
    words: Box<[AtomicU64]>,
    /// The first word that begins a cache line.
    first: usize,
    shape: RecordShape,
    /// Where the words are kept for another page.
    meter: Arc<Meter>,
}

impl Records {
    /// Zeros for `len` records.
    pub(super) fn new(len: usize, shape: RecordShape, meter: &Arc<Meter>) -> Records {
        let words_len = (len << shape.bits) + LINE - 1;
        let words = meter.budget().spare().take(words_len).unwrap_or_else(|| zeroed_atomics(words_len));
        let lines = LINE * size_of::<u64>();
        let first = words.as_ptr().addr().wrapping_neg() % lines / size_of::<u64>();
        let is_zero = |word: &AtomicU64| word.load(Ordering::Relaxed) == 0;
        debug_assert!(MODELLED || words.iter().all(is_zero), "a tail record is written once");
        Records { words, first, shape, meter: meter.clone() }
    }

    /// How many columns have their values here.
    #[inline]
    pub(super) fn values(&self) -> usize {
        self.shape.values
    }

    /// Bytes of memory, but for what precedes the first cache line.
    pub(super) fn bytes(&self) -> usize {
        (self.words.len() + 1 - LINE) * size_of::<u64>()
    }

    /// The first word of the first record.
    pub(super) fn first_word(&self) -> *const AtomicU64 {
        self.words[self.first..].as_ptr()
    }

    /// The record at `at`.
    #[inline]
    pub(super) fn place(&self, at: usize) -> RecordPlace<'_> {
        let words = &self.words[self.first + (at << self.shape.bits)..][..HEAD + self.shape.values];
        // SAFETY: the slice has a head and so many values, and is borrowed.
        unsafe { RecordPlace::new(NonNull::from(words).cast(), self.shape.values) }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        let (words, budget) = (std::mem::take(&mut self.words), self.meter.budget());
        if !MODELLED && budget.has_room_for_copies(size_of_val(&*words) as u64) {
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            budget.spare().keep(words);
        }
    }
}
