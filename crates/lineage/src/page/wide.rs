//! The values of insert and tail pages that do not fit a word: in the pages' heap, or in the dictionary of their column.
//!
//! ```text
//! word that a page stores:   | 0 | place in the heap, 63 bits |        see `heap`
//!                            | 1 | 0 (31) | id (32)           |        in the dictionary of the column, see `text`
//! ```
//!
//! The word 0, which a page has where nothing was stored yet, names no bytes. A page stores the word of such a column with
//! release and loads it with acquire: so a reader that finds a word finds what it names, without a latch, whatever it knows of the
//! record.
use std::sync::Arc;

use crate::page::heap::ByteHeap;
use crate::page::text::Texts;

/// The bit of words that are ids.
const IS_ID: u64 = 1 << 63;

/// The values of some pages that do not fit a word.
pub(crate) struct WideValues {
    heap: ByteHeap,
    texts: Arc<Texts>,
}

impl WideValues {
    /// No values yet; those in dictionaries will be in these.
    pub(crate) fn new(texts: Arc<Texts>) -> WideValues {
        WideValues { heap: ByteHeap::default(), texts }
    }

    /// Keeps a value of a column and returns the word that names it, never 0, which must reach other threads by a release
    /// store.
    /// `allocated` is told the bytes that this took of the pages' own memory.
    pub(crate) fn store(&self, column: usize, bytes: &[u8], allocated: impl Fn(usize)) -> u64 {
        match self.texts.encode(column, bytes) {
            Some(id) => IS_ID | u64::from(id),
            None => self.heap.append(bytes, allocated),
        }
    }

    /// The bytes that `word` names in a column.
    ///
    /// # Safety
    /// - `word` is 0, or came from [`WideValues::store`] of these values for this column and was read through an acquire
    ///   load that saw the release store which published it.
    #[inline]
    pub(crate) unsafe fn get(&self, column: usize, word: u64) -> &[u8] {
        if word & IS_ID != 0 {
            return self.texts.value(column, word as u32);
        }
        // SAFETY: without the bit it is the heap's word; the rest is the caller's promise.
        unsafe { self.heap.get(word) }
    }

    /// Stores the value that `word` names in a column of `other`. A value in dictionaries that both share is not
    /// even looked at.
    ///
    /// # Safety
    /// - as for [`WideValues::get`] of `other`
    pub(crate) unsafe fn carry(&self, column: usize, word: u64, other: &WideValues, allocated: impl Fn(usize)) -> u64 {
        if word & IS_ID != 0 && Arc::ptr_eq(&self.texts, &other.texts) {
            return word;
        }
        // SAFETY: the caller's promise.
        self.store(column, unsafe { other.get(column, word) }, allocated)
    }

    /// The id in the dictionary of its column that `word` is, if it is one.
    #[inline]
    pub(crate) fn id(word: u64) -> Option<u32> {
        (word & IS_ID != 0).then_some(word as u32)
    }

    /// The dictionaries.
    pub(crate) fn texts(&self) -> &Arc<Texts> {
        &self.texts
    }
}
