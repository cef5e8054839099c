//! Tail pages: the append-only home of every new version (L-Store, sections 2.1, 2.2 and 3).
//!
//! The tail records of a range are numbered 1, 2, 3, ... and lie in pages of 512. A page holds the meta-data columns
//! of its records and, for a data column, an array of words only from the first record on that has a value for it:
//!
//! ```text
//! tail page p: records 512 p + 1 ..= 512 (p + 1)
//!   Indirection     prev    [u64; 512]   the previous version's number, 0 = the base record
//!   Base slot       slot    [u64; 512]   slot (32 bits) | kind (8 bits)
//!   Cumulation      reset   [u64; 512]   updated columns without a value here have not changed after this number
//!   Start Time      start   [u64; 512]   see `types::StartTime`; written last, by a release store
//!   Schema Encoding explicit[u64; 512 w] the columns with a value in this record
//!                   ever    [u64; 512 w] the columns updated up to this version, whether merged or not
//!                   nulls   [u64; 512 w] the explicit columns that are NULL
//!   data column c   lazily  [u64; 512]   words, or places in the range's byte heap
//! ```
//!
//! Everything is written once, before Start Time, except Start Time itself, which goes from the transaction's id to
//! its commit timestamp or to a tombstone. Records are reached by number (merge, scan) after an acquire load of Start
//! Time, or along the chain from the Indirection word, which was published by a release store.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use sync::{CachePadded, Directory, zeroed_atomics};
use types::Schema;

use crate::cell::{Cell, is_wide};
use crate::column_set::{ColumnSet, words_of};
use crate::heap::ByteHeap;

/// Tail records in one tail page: 4 KiB a column, smaller than base pages (section 4.3, footnote 8).
const PAGE_RECORDS: usize = 512;

/// What a tail record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// New values.
    Update = 0,
    /// The values before a column's first update, kept so that outdated base pages can go.
    Snapshot = 1,
    /// The end of the record.
    Delete = 2,
}

/// The tail pages of one range.
pub struct TailPages {
    wide: Box<[bool]>,
    set_words: usize,
    allocated: CachePadded<AtomicU64>,
    pages: Directory<TailPage>,
    heap: ByteHeap,
}

struct TailPage {
    prev: Box<[AtomicU64]>,
    slot: Box<[AtomicU64]>,
    reset: Box<[AtomicU64]>,
    start: Box<[AtomicU64]>,
    explicit: Box<[AtomicU64]>,
    ever: Box<[AtomicU64]>,
    nulls: Box<[AtomicU64]>,
    columns: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

/// One tail record to be written.
pub struct NewRecord<'a> {
    /// the previous version's number
    pub prev: u64,
    /// the base record's slot
    pub slot: usize,
    /// what it is
    pub kind: Kind,
    /// the Start Time word
    pub start: u64,
    /// the newest number up to which updated columns may have changed that are not explicit
    pub reset: u64,
    /// the columns updated so far
    pub ever: ColumnSet,
    /// the explicit values
    pub values: &'a [(usize, Cell<'a>)],
}

impl TailPages {
    /// No tail records yet, for records of this schema.
    pub fn new(schema: &Schema) -> TailPages {
        TailPages {
            wide: schema.columns().iter().map(|column| is_wide(column.data_type)).collect(),
            set_words: words_of(schema),
            allocated: CachePadded::new(AtomicU64::new(0)),
            pages: Directory::new(),
            heap: ByteHeap::default(),
        }
    }

    /// The highest number handed out; its record may not be written yet.
    #[inline]
    pub fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Acquire)
    }

    /// Takes the next `count` numbers and returns the first.
    pub fn allocate(&self, count: u64) -> u64 {
        self.allocated.fetch_add(count, Ordering::AcqRel) + 1
    }

    /// Writes the record numbered `sequence`, which the caller allocated.
    pub fn write(&self, sequence: u64, record: &NewRecord<'_>) {
        let (page_index, at) = place(sequence);
        let page = self.pages.get_or_init(page_index, || TailPage::new(self.wide.len(), self.set_words));
        debug_assert_eq!(page.start[at].load(Ordering::Relaxed), 0, "a tail record is written once");
        page.prev[at].store(record.prev, Ordering::Relaxed);
        page.reset[at].store(record.reset, Ordering::Relaxed);
        page.slot[at].store(record.slot as u64 | (record.kind as u64) << 32, Ordering::Relaxed);
        let (mut explicit, mut nulls) = (ColumnSet::EMPTY, ColumnSet::EMPTY);
        for (column, cell) in record.values {
            explicit.insert(*column);
            let word = match cell {
                Cell::Null => {
                    nulls.insert(*column);
                    continue;
                }
                Cell::Word(word) => *word,
                Cell::Bytes(bytes) => self.heap.append(bytes),
            };
            page.columns[*column].get_or_init(|| zeroed_atomics(PAGE_RECORDS))[at].store(word, Ordering::Relaxed);
        }
        for i in 0..self.set_words {
            let at = at * self.set_words + i;
            page.explicit[at].store(explicit.word(i), Ordering::Relaxed);
            page.ever[at].store(record.ever.word(i), Ordering::Relaxed);
            page.nulls[at].store(nulls.word(i), Ordering::Relaxed);
        }
        page.start[at].store(record.start, Ordering::Release);
    }

    /// The record numbered `sequence`, or `None` where its page is not there yet.
    #[inline]
    pub fn get(&self, sequence: u64) -> Option<TailRecord<'_>> {
        let (page_index, at) = place(sequence);
        Some(TailRecord { pages: self, page: self.pages.get(page_index)?, at, sequence })
    }

    /// The record numbered `sequence`, which was reached along a chain and is therefore written.
    #[inline]
    pub fn published(&self, sequence: u64) -> TailRecord<'_> {
        self.get(sequence).expect("a published tail record has its page")
    }
}

#[inline]
fn place(sequence: u64) -> (usize, usize) {
    debug_assert!(sequence > 0, "tail records are numbered from 1");
    let index = (sequence - 1) as usize;
    (index / PAGE_RECORDS, index % PAGE_RECORDS)
}

impl TailPage {
    fn new(columns: usize, set_words: usize) -> TailPage {
        TailPage {
            prev: zeroed_atomics(PAGE_RECORDS),
            slot: zeroed_atomics(PAGE_RECORDS),
            reset: zeroed_atomics(PAGE_RECORDS),
            start: zeroed_atomics(PAGE_RECORDS),
            explicit: zeroed_atomics(PAGE_RECORDS * set_words),
            ever: zeroed_atomics(PAGE_RECORDS * set_words),
            nulls: zeroed_atomics(PAGE_RECORDS * set_words),
            columns: (0..columns).map(|_| OnceLock::new()).collect(),
        }
    }
}

/// A written tail record. The caller has seen it published: by an acquire load of its Start Time or of a chain to it.
#[derive(Clone, Copy)]
pub struct TailRecord<'a> {
    pages: &'a TailPages,
    page: &'a TailPage,
    at: usize,
    /// its number
    pub sequence: u64,
}

impl<'a> TailRecord<'a> {
    /// Its Start Time word.
    #[inline]
    pub fn start(&self) -> &'a AtomicU64 {
        &self.page.start[self.at]
    }

    /// The number of the previous version, 0 = the base record.
    #[inline]
    pub fn prev(&self) -> u64 {
        self.page.prev[self.at].load(Ordering::Relaxed)
    }

    /// Columns that were updated up to this version and have no value here have not changed after this number.
    #[inline]
    pub fn reset(&self) -> u64 {
        self.page.reset[self.at].load(Ordering::Relaxed)
    }

    /// The slot of its base record.
    #[inline]
    pub fn slot(&self) -> usize {
        self.page.slot[self.at].load(Ordering::Relaxed) as u32 as usize
    }

    /// What it is.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self.page.slot[self.at].load(Ordering::Relaxed) >> 32 {
            0 => Kind::Update,
            1 => Kind::Snapshot,
            _ => Kind::Delete,
        }
    }

    /// The columns that have a value here.
    pub fn explicit(&self) -> ColumnSet {
        self.set(&self.page.explicit)
    }

    /// The columns that were updated up to this version.
    pub fn ever(&self) -> ColumnSet {
        self.set(&self.page.ever)
    }

    /// Whether `column` has a value here.
    #[inline]
    pub fn is_explicit(&self, column: usize) -> bool {
        self.has(&self.page.explicit, column)
    }

    /// Whether `column` was updated up to this version.
    #[inline]
    pub fn was_ever_updated(&self, column: usize) -> bool {
        self.has(&self.page.ever, column)
    }

    /// The value of an explicit column.
    #[inline]
    pub fn cell(&self, column: usize) -> Cell<'a> {
        debug_assert!(self.is_explicit(column));
        if self.has(&self.page.nulls, column) {
            return Cell::Null;
        }
        let words = self.page.columns[column].get().expect("an explicit value has its array");
        let word = words[self.at].load(Ordering::Relaxed);
        if self.pages.wide[column] {
            // SAFETY: the word was stored by `write` from this range's heap, and this record is published.
            Cell::Bytes(unsafe { self.pages.heap.get(word) })
        } else {
            Cell::Word(word)
        }
    }

    #[inline]
    fn has(&self, words: &[AtomicU64], column: usize) -> bool {
        let word = words[self.at * self.pages.set_words + column / 64].load(Ordering::Relaxed);
        word & 1 << (column % 64) != 0
    }

    fn set(&self, words: &[AtomicU64]) -> ColumnSet {
        let mut set = ColumnSet::EMPTY;
        for i in 0..self.pages.set_words {
            set.insert_word(i, words[self.at * self.pages.set_words + i].load(Ordering::Relaxed));
        }
        set
    }
}
