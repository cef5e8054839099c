//! The memory of a tail page's records.
use sync::atomic::AtomicU64;

use crate::memory::spare::SpareWords;
use crate::page::options::TailValues;

/// Words before the values: the meta-data of a record.
pub(super) const HEAD: usize = 6;

/// Words of a cache line.
pub(super) const LINE: usize = 8;

/// How much of a table's records lies together.
#[derive(Clone, Copy)]
pub(super) struct RecordShape {
    /// log2 of the words of a record
    pub(super) bits: u32,
    /// how many columns have their values there
    pub(super) values: usize,
}

impl RecordShape {
    /// That of tables with so many columns.
    pub(super) fn new(columns: usize, values: TailValues) -> RecordShape {
        let columns = if values == TailValues::InRecords { columns } else { 0 };
        let words = if HEAD + columns <= LINE { LINE } else { 2 * LINE };
        RecordShape { bits: words.trailing_zeros(), values: columns.min(words - HEAD) }
    }
}

/// The records of a page: meta-data, and values of the first columns, see [`super`].
pub(super) struct Records {
    words: Box<[AtomicU64]>,
    /// The first word that begins a cache line.
    first: usize,
    shape: RecordShape,
}

impl Records {
    /// Zeros for `len` records.
    pub(super) fn new(len: usize, shape: RecordShape, spare: &SpareWords) -> Records {
        let words = spare.take_zeroed((len << shape.bits) + LINE - 1);
        let lines = LINE * size_of::<u64>();
        let first = words.as_ptr().addr().wrapping_neg() % lines / size_of::<u64>();
        Records { words, first, shape }
    }

    /// The memory of a page that is gone.
    pub(super) fn take_words(&mut self) -> Box<[AtomicU64]> {
        std::mem::take(&mut self.words)
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

    /// The words of the record at `at`: its head, and its values.
    #[inline]
    pub(super) fn words(&self, at: usize) -> &[AtomicU64] {
        &self.words[self.first + (at << self.shape.bits)..][..HEAD + self.shape.values]
    }
}
