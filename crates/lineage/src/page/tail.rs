//! Tail pages: the append-only home of every new version (L-Store, sections 2.1, 2.2 and 3).
//!
//! The tail records of an update range are numbered 1, 2, 3, ... and lie in pages of 256 (fewer in small ranges), made
//! when the first of their records is written and given up once their records are history. A page holds the meta-data
//! columns of its records, which every reader of a record needs together, in one cache line each, and the values of a data
//! column only from the first record on that has one:
//!
//! ```text
//! tail page p: records 256 p + 1 ..= 256 (p + 1)
//!   header of each record, 64 bytes:
//!     Start Time       see `types::StartTime`; written last, by a release store
//!     Indirection      the previous version's number, 0 = the base record
//!     Base slot        slot (32 bits) | kind (8 bits)
//!     Cumulation       updated columns without a value here have not changed after this number
//!     Schema Encoding  explicit: the columns with a value in this record
//!                      ever: the columns updated up to this version, whether merged or not
//!                      nulls: the explicit columns that are NULL
//!   sets     the same three for columns 64 and up, where a table has so many
//!   words    data columns, see `words`: values, or what names them in `wide`
//! ```
//!
//! Everything is written once, before Start Time, except Start Time itself, which goes from the transaction's id to
//! its commit timestamp or to a tombstone. Records are reached by number (merge, scan) after an acquire load of Start
//! Time, or along the chain from the Indirection word, which was published by a release store.
use std::sync::{Arc, PoisonError};

use sync::atomic::{AtomicU64, Ordering};
use sync::blocking::{Mutex, OnceLock};
use sync::{EpochCell, Guard, zeroed_atomics};
use types::{Schema, StartTime};

use crate::memory::budget::{Charge, MemoryKind, Meter};
use crate::page::interrupted::Outdated;
use crate::page::options::TableOptions;
use crate::page::options::page_records;
use crate::page::sequence::SequenceBlocks;
use crate::page::text::TextCell;
use crate::page::wide::WideValues;
use crate::page::words::{Layout, Words};
use crate::value::cell::{Cell, is_wide};
use crate::value::column_set::{ColumnSet, words_of};
use crate::value::kind::Kind;

mod restored;
mod texts;

use texts::TailTexts;

/// The tail pages of one update range.
pub struct TailPages {
    wide: Arc<[bool]>,
    set_words: usize,
    layout: Layout,
    /// log2 of the records in a page
    page_bits: u32,
    meter: Arc<Meter>,
    texts: TailTexts,
    sequences: SequenceBlocks,
    pages: EpochCell<PageTable>,
    /// Held while a page is made or pages are given up.
    growing: Mutex<()>,
}

/// The pages from number `first` on; those before are history.
struct PageTable {
    first: usize,
    pages: Box<[OnceLock<Arc<TailPage>>]>,
}

struct TailPage {
    headers: Box<[Header]>,
    sets: Box<[AtomicU64]>,
    words: Words,
    values: WideValues,
    charge: Charge,
    /// the newest commit of its records, once all are decided and somebody has looked; see `validation`
    newest: AtomicU64,
}

/// The meta-data columns of one record, in one cache line.
#[derive(Default)]
#[repr(align(64))]
struct Header {
    start: AtomicU64,
    prev: AtomicU64,
    slot_and_kind: AtomicU64,
    reset: AtomicU64,
    sets: [AtomicU64; SETS],
}

const SETS: usize = 3;
const EXPLICIT: usize = 0;
const EVER: usize = 1;
const NULLS: usize = 2;

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
    pub ever: &'a ColumnSet,
    /// the explicit values
    pub values: &'a [(usize, Cell<'a>)],
    /// explicit columns whose values are those of an older record, NULLs included
    pub carried: Option<Carried<'a>>,
}

/// Columns, of the first 64, that a new record repeats from an older one.
#[derive(Clone, Copy)]
pub struct Carried<'a> {
    /// the older record
    pub from: TailRecord<'a>,
    /// the columns, a bit each
    pub columns: u64,
}

impl TailPages {
    /// No tail records of an update range yet.
    pub(crate) fn new(schema: &Schema, options: &TableOptions, meter: &Arc<Meter>) -> TailPages {
        TailPages {
            wide: schema.columns().iter().map(|column| is_wide(column.data_type)).collect(),
            set_words: words_of(schema),
            layout: options.layout,
            page_bits: page_records(options.update_range_records).trailing_zeros(),
            meter: meter.clone(),
            texts: TailTexts::new(schema, options, meter),
            sequences: SequenceBlocks::new(options.workers),
            pages: EpochCell::new(PageTable { first: 0, pages: Box::default() }),
            growing: Mutex::new(()),
        }
    }

    /// The highest number handed out; its record may not be written yet.
    #[inline]
    pub fn allocated(&self) -> u64 {
        self.sequences.allocated()
    }

    /// Takes `count` consecutive numbers above `above` and returns the first.
    #[inline]
    pub(crate) fn allocate(&self, guard: &Guard, count: u64, above: u64) -> u64 {
        self.sequences.take(count, above, |unused| self.bury(guard, unused))
    }

    /// Buries the numbers that writers hold and have not used, so that a merge can pass them.
    pub(crate) fn seal(&self, guard: &Guard) {
        self.sequences.seal(|unused| self.bury(guard, unused));
    }

    fn bury(&self, guard: &Guard, numbers: std::ops::Range<u64>) {
        for sequence in numbers {
            let (page, at) = self.place(sequence);
            self.page_to_write(guard, page).headers[at].start.store(StartTime::TOMBSTONE, Ordering::Release);
        }
    }

    /// Writes the record numbered `sequence`, which the caller allocated.
    pub(crate) fn write(&self, guard: &Guard, sequence: u64, record: &NewRecord<'_>) {
        let (page_index, at) = self.place(sequence);
        let page = self.page_to_write(guard, page_index);
        let header = &page.headers[at];
        debug_assert_eq!(header.start.load(Ordering::Relaxed), 0, "a tail record is written once");
        header.prev.store(record.prev, Ordering::Relaxed);
        header.reset.store(record.reset, Ordering::Relaxed);
        header.slot_and_kind.store(record.slot as u64 | (record.kind as u64) << 32, Ordering::Relaxed);
        let (mut explicit, mut nulls) = (ColumnSet::EMPTY, ColumnSet::EMPTY);
        let allocated = |bytes| page.charge.grow(bytes);
        for (column, cell) in record.values {
            explicit.insert(*column);
            let word = match cell {
                Cell::Null => {
                    nulls.insert(*column);
                    continue;
                }
                Cell::Word(word) => *word,
                Cell::Bytes(bytes) => page.values.store(*column, bytes, allocated),
            };
            page.words.store(*column, at, word, allocated);
        }
        if let Some(carried) = &record.carried {
            let old_nulls = carried.from.set_word(NULLS, 0);
            explicit.insert_word(0, carried.columns);
            nulls.insert_word(0, carried.columns & old_nulls);
            let mut columns = carried.columns & !old_nulls;
            while columns != 0 {
                let column = columns.trailing_zeros() as usize;
                columns &= columns - 1;
                let (from, word) = (carried.from.page, carried.from.page.words.load(column, carried.from.at));
                let word = if self.wide[column] {
                    // SAFETY: `write` got the word for this column from that page's values, and that record is published.
                    unsafe { page.values.carry(column, word, &from.values, allocated) }
                } else {
                    word
                };
                page.words.store(column, at, word, allocated);
            }
        }
        for (set, columns) in [(EXPLICIT, &explicit), (EVER, record.ever), (NULLS, &nulls)] {
            header.sets[set].store(columns.word(0), Ordering::Relaxed);
            for i in 1..self.set_words {
                page.sets[self.set_place(at, set, i)].store(columns.word(i), Ordering::Relaxed);
            }
        }
        header.start.store(record.start, Ordering::Release);
    }

    /// The page of a record, and its place there.
    #[inline]
    fn place(&self, sequence: u64) -> (usize, usize) {
        debug_assert!(sequence > 0, "tail records are numbered from 1");
        let index = (sequence - 1) as usize;
        (index >> self.page_bits, index & (self.page_records() - 1))
    }

    /// How many records a page has.
    #[inline]
    pub(crate) fn page_records(&self) -> usize {
        1 << self.page_bits
    }

    fn set_place(&self, at: usize, set: usize, i: usize) -> usize {
        (at * SETS + set) * (self.set_words - 1) + i - 1
    }

    /// The page for a record that the caller allocated.
    #[inline]
    fn page_to_write<'g>(&'g self, guard: &'g Guard, index: usize) -> &'g TailPage {
        match self.pages.load(guard).get(index) {
            Some(page) => page,
            None => self.make_page(guard, index),
        }
    }

    #[cold]
    fn make_page<'g>(&'g self, guard: &'g Guard, index: usize) -> &'g TailPage {
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.pages.load(guard);
        if index >= table.first + table.pages.len() {
            let pages = (table.pages.len() * 2).max(4).max(index + 1 - table.first);
            self.pages.replace(table.copy(table.first, pages), guard);
        }
        let table = self.pages.load(guard);
        assert!(index >= table.first, "pages are given up only once all their records are merged");
        table.pages[index - table.first].get_or_init(|| Arc::new(self.new_page(index)))
    }

    fn new_page(&self, index: usize) -> TailPage {
        let sets = zeroed_atomics(self.page_records() * SETS * (self.set_words - 1));
        let bytes = self.page_records() * size_of::<Header>() + size_of_val(&*sets);
        TailPage {
            headers: (0..self.page_records()).map(|_| Header::default()).collect(),
            sets,
            words: Words::new(self.layout, self.wide.len(), self.page_records()),
            values: WideValues::new(self.texts.of_page(index)),
            charge: Charge::new(&self.meter, MemoryKind::Tail, bytes),
            newest: AtomicU64::new(0),
        }
    }

    /// Gives up the pages whose records are all numbered `through` or lower.
    pub(crate) fn give_up(&self, guard: &Guard, through: u64) {
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.pages.load(guard);
        let first = through as usize >> self.page_bits;
        if first > table.first {
            let end = (table.first + table.pages.len()).max(first);
            self.pages.replace(table.copy(first, end - first), guard);
        }
    }

    /// The record numbered `sequence`, or `None` where its page is not there: not yet, or no longer.
    #[inline]
    pub(crate) fn get<'g>(&'g self, guard: &'g Guard, sequence: u64) -> Option<TailRecord<'g>> {
        let (page_index, at) = self.place(sequence);
        let page = self.pages.load(guard).get(page_index)?;
        Some(TailRecord { pages: self, page, at, sequence })
    }

    /// Visits all records that are not history, newest first.
    pub(crate) fn each_live<'g>(&'g self, guard: &'g Guard, mut visit: impl FnMut(TailRecord<'g>)) {
        loop {
            let first = (self.pages.load(guard).first << self.page_bits) as u64;
            if self.each_newest_first(guard, first, &mut visit).is_ok() {
                return;
            }
        }
    }

    /// Visits the records numbered above `after`, newest first; pages that are not made yet are passed over. Does nothing
    /// and returns an error if some of the records have become history.
    #[inline]
    pub(crate) fn each_newest_first<'g>(
        &'g self,
        guard: &'g Guard,
        after: u64,
        mut visit: impl FnMut(TailRecord<'g>),
    ) -> Result<(), Outdated> {
        let through = self.allocated();
        if through <= after {
            return Ok(());
        }
        let table = self.pages.load(guard);
        if (table.first << self.page_bits) as u64 > after {
            return Err(Outdated);
        }
        let ((first, first_at), (last, last_at)) = (self.place(after + 1), self.place(through));
        for index in (first..=last).rev() {
            let Some(page) = table.get(index) else { continue };
            let from = if index == first { first_at } else { 0 };
            let to = if index == last { last_at } else { self.page_records() - 1 };
            for at in (from..=to).rev() {
                visit(TailRecord { pages: self, page, at, sequence: ((index << self.page_bits) + at + 1) as u64 });
            }
        }
        Ok(())
    }

    /// The pages with records numbered above `after`, whole. An error if some of these records have become history.
    pub(crate) fn pages_above<'g>(
        &'g self,
        guard: &'g Guard,
        after: u64,
    ) -> Result<impl Iterator<Item = TailPageRecords<'g>>, Outdated> {
        let (through, table) = (self.allocated(), self.pages.load(guard));
        if through > after && (table.first << self.page_bits) as u64 > after {
            return Err(Outdated);
        }
        let (first, end) = (after as usize >> self.page_bits, (through as usize).div_ceil(self.page_records()));
        Ok((first..end).filter_map(move |index| {
            let page = table.get(index)?;
            Some(TailPageRecords { pages: self, page, first: ((index << self.page_bits) + 1) as u64 })
        }))
    }
}

/// A tail page with all its records, written or not.
pub(crate) struct TailPageRecords<'g> {
    pages: &'g TailPages,
    page: &'g TailPage,
    first: u64,
}

impl<'g> TailPageRecords<'g> {
    /// The newest commit of its records, once all are decided; 0 = not known.
    pub(crate) fn newest(&self) -> &'g AtomicU64 {
        &self.page.newest
    }

    /// The records.
    pub(crate) fn records(&self) -> impl Iterator<Item = TailRecord<'g>> {
        let (pages, page, first) = (self.pages, self.page, self.first);
        (0..page.headers.len()).map(move |at| TailRecord { pages, page, at, sequence: first + at as u64 })
    }
}

impl PageTable {
    #[inline]
    fn get(&self, index: usize) -> Option<&TailPage> {
        self.pages.get(index.checked_sub(self.first)?)?.get().map(|page| &**page)
    }

    /// The pages from number `first` on, with room for `len`.
    fn copy(&self, first: usize, len: usize) -> PageTable {
        let page = |index: usize| match self.pages.get(first - self.first + index).and_then(OnceLock::get) {
            Some(page) => OnceLock::from(page.clone()),
            None => OnceLock::new(),
        };
        PageTable { first, pages: (0..len).map(page).collect() }
    }
}

/// A written tail record. The caller has seen it published: by an acquire load of its Start Time or of a chain to it.
#[derive(Clone, Copy)]
pub struct TailRecord<'g> {
    pages: &'g TailPages,
    page: &'g TailPage,
    at: usize,
    /// its number
    pub sequence: u64,
}

impl<'g> TailRecord<'g> {
    #[inline]
    fn header(&self) -> &'g Header {
        &self.page.headers[self.at]
    }

    /// Its Start Time word.
    #[inline]
    pub fn start(&self) -> &'g AtomicU64 {
        &self.header().start
    }

    /// The number of the previous version, 0 = the base record.
    #[inline]
    pub fn prev(&self) -> u64 {
        self.header().prev.load(Ordering::Relaxed)
    }

    /// Columns that were updated up to this version and have no value here have not changed after this number.
    #[inline]
    pub fn reset(&self) -> u64 {
        self.header().reset.load(Ordering::Relaxed)
    }

    /// The slot of its base record.
    #[inline]
    pub fn slot(&self) -> usize {
        self.header().slot_and_kind.load(Ordering::Relaxed) as u32 as usize
    }

    /// What it is.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self.header().slot_and_kind.load(Ordering::Relaxed) >> 32 {
            0 => Kind::Update,
            1 => Kind::Snapshot,
            2 => Kind::Delete,
            3 => Kind::Lock,
            _ => Kind::ValuesLock,
        }
    }

    /// The columns that have a value here.
    #[inline]
    pub fn explicit(&self) -> ColumnSet {
        self.set(EXPLICIT)
    }

    /// The columns that were updated up to this version.
    #[inline]
    pub fn ever(&self) -> ColumnSet {
        self.set(EVER)
    }

    /// Whether `column` has a value here.
    #[inline]
    pub fn is_explicit(&self, column: usize) -> bool {
        self.has(EXPLICIT, column)
    }

    /// Whether `column` was updated up to this version.
    #[inline]
    pub fn was_ever_updated(&self, column: usize) -> bool {
        self.has(EVER, column)
    }

    /// The value of an explicit column.
    #[inline]
    pub fn cell(&self, column: usize) -> Cell<'g> {
        debug_assert!(self.is_explicit(column));
        self.cell_unless(self.has(NULLS, column), column)
    }

    /// The value of an explicit column of text, for a merge.
    pub(crate) fn text(&self, column: usize) -> TextCell<'g> {
        debug_assert!(self.is_explicit(column) && self.pages.wide[column]);
        match WideValues::id(self.page.words.load(column, self.at)) {
            _ if self.has(NULLS, column) => TextCell::Null,
            Some(id) => TextCell::Known(self.page.values.texts(), id),
            None => TextCell::of(self.cell(column)),
        }
    }

    /// Which of these columns (of the first 64, a bit each) are explicit here.
    #[inline]
    pub(crate) fn explicit_among(&self, columns: u64) -> u64 {
        self.set_word(EXPLICIT, 0) & columns
    }

    /// Asks for the record's meta-data.
    #[inline]
    pub(crate) fn prefetch(&self) {
        sync::prefetch(std::ptr::from_ref(self.header()));
    }

    /// Asks for the values of some columns.
    #[inline]
    pub(crate) fn prefetch_values(&self, columns: &[usize]) {
        columns.iter().for_each(|column| self.page.words.prefetch(*column, self.at));
    }

    /// The record's sets of columns, loaded once; `None` if the table has more columns than a word has bits.
    #[inline]
    pub(crate) fn few(&self) -> Option<FewColumns<'g>> {
        let word = |set| self.set_word(set, 0);
        (self.pages.set_words == 1).then(|| FewColumns {
            record: *self,
            explicit: word(EXPLICIT),
            ever: word(EVER),
            nulls: word(NULLS),
        })
    }

    #[inline]
    fn cell_unless(&self, is_null: bool, column: usize) -> Cell<'g> {
        if is_null {
            return Cell::Null;
        }
        let word = self.page.words.load(column, self.at);
        if self.pages.wide[column] {
            // SAFETY: `write` got the word for this column from this page's values, and this record is published.
            Cell::Bytes(unsafe { self.page.values.get(column, word) })
        } else {
            Cell::Word(word)
        }
    }

    #[inline]
    fn set_word(&self, set: usize, i: usize) -> u64 {
        match i {
            0 => self.header().sets[set].load(Ordering::Relaxed),
            _ => self.page.sets[self.pages.set_place(self.at, set, i)].load(Ordering::Relaxed),
        }
    }

    #[inline]
    fn has(&self, set: usize, column: usize) -> bool {
        self.set_word(set, column / 64) & 1 << (column % 64) != 0
    }

    #[inline]
    fn set(&self, set: usize) -> ColumnSet {
        let mut columns = ColumnSet::EMPTY;
        (0..self.pages.set_words).for_each(|i| columns.insert_word(i, self.set_word(set, i)));
        columns
    }
}

/// A tail record of a table with at most 64 columns.
pub(crate) struct FewColumns<'g> {
    record: TailRecord<'g>,
    explicit: u64,
    ever: u64,
    nulls: u64,
}

impl<'g> FewColumns<'g> {
    /// The value of a column, if it is explicit.
    #[inline]
    pub(crate) fn explicit(&self, column: usize) -> Option<Cell<'g>> {
        let is_in = |set: u64| set >> column & 1 != 0;
        is_in(self.explicit).then(|| self.record.cell_unless(is_in(self.nulls), column))
    }

    /// Whether the column was updated up to this version.
    #[inline]
    pub(crate) fn was_ever_updated(&self, column: usize) -> bool {
        self.ever >> column & 1 != 0
    }
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Header>() == 64);
