//! Tail pages: the append-only home of every new version (L-Store, sections 2.1, 2.2 and 3).
//!
//! The tail records of an update range are numbered 1, 2, 3, ... and lie in pages of 256 (fewer in small ranges), made
//! when the first of their records is written and given up once their records are history. A record's meta-data columns lie
//! in one cache line with its values in the first two data columns, those in the next eight in the line behind it: a reader by key
//! needs all of these together. The values of further columns lie column by column, from the first record on that has one:
//!
//! ```text
//! tail page p: records 256 p + 1 ..= 256 (p + 1)
//!   each record, 128 bytes, or 64 where the table has two columns:
//!     Start Time       see `types::StartTime`; written last, by a release store
//!     Indirection      the previous version's number, 0 = the base record (40 bits)
//!     Base slot        slot (16 bits) | kind (8 bits)
//!     Cumulation       updated columns without a value here have not changed after this number
//!     Schema Encoding  explicit: the columns with a value in this record
//!                      ever: the columns updated up to this version, whether merged or not
//!                      nulls: the explicit columns that are NULL
//!     values           of the first columns: values, or what names them in `wide`
//!   sets     the same three for columns 64 and up, where a table has so many
//!   words    values of the other columns, see `words`
//! ```
//!
//! Everything is written once, before Start Time, except Start Time itself, which goes from the transaction's id to
//! its commit timestamp or to a tombstone. Records are reached by number (merge, scan) after an acquire load of Start
//! Time, or along the chain from the Indirection word, which was published by a release store.
use std::ptr::NonNull;
use std::sync::Arc;

use sync::atomic::{AtomicU64, Ordering};
use sync::blocking::OnceLock;
use sync::{Guard, zeroed_atomics};
use types::{Schema, StartTime};

use crate::memory::budget::{Charge, MemoryKind, Meter};
use crate::page::interrupted::Outdated;
use crate::page::options::{TableOptions, page_records};
use crate::page::sequence::SequenceBlocks;
use crate::page::wide::WideValues;
use crate::page::words::{Layout, Words};
use crate::value::cell::{Cell, is_wide};
use crate::value::column_set::{ColumnSet, columns_of, words_of};

mod digest;
mod page_table;
mod part;
mod record;
mod records;
mod restored;
mod texts;

use digest::Digest;
pub(crate) use digest::{DigestPart, DigestRow, VersionSet};
use page_table::{PageTables, WithRecords};
pub(crate) use record::RECORDS_AHEAD;
pub use record::{CarriedColumns, CarriedWords, Head, NewRecord, NewWords, RecordPlace, TailRecord};
use record::{EVER, EXPLICIT, NULLS, SETS};
use records::{RecordShape, Records};
use texts::TailTexts;

/// The tail pages of one update range.
pub struct TailPages {
    wide: Arc<[bool]>,
    /// of the first 64 columns, a bit each: those stored as bytes, and those without a place in a record
    wide_columns: u64,
    spilled: u64,
    shape: RecordShape,
    set_words: usize,
    layout: Layout,
    /// log2 of the records in a page
    page_bits: u32,
    /// the bits of a number, less one, that tell its place in the page
    place_mask: usize,
    meter: Arc<Meter>,
    texts: TailTexts,
    sequences: SequenceBlocks,
    pages: PageTables<TailPage>,
}

struct TailPage {
    records: Records,
    sets: Box<[AtomicU64]>,
    /// of the columns that have no place in a record
    words: Words,
    values: WideValues,
    charge: Charge,
    /// the newest commit of its records, once all are decided and somebody has looked; see `validation`
    newest: AtomicU64,
    /// once all records are decided and a scan has come here
    digest: OnceLock<Digest>,
}

impl TailPages {
    /// No tail records of an update range yet.
    pub(crate) fn new(schema: &Schema, options: &TableOptions, meter: &Arc<Meter>) -> TailPages {
        let wide: Arc<[bool]> = schema.columns().iter().map(|column| is_wide(column.data_type)).collect();
        let bits = |is_meant: &dyn Fn(usize) -> bool| {
            (0..wide.len().min(64)).filter(|column| is_meant(*column)).fold(0, |bits, column| bits | 1 << column)
        };
        let shape = RecordShape::new(wide.len(), options.tail_values);
        TailPages {
            wide_columns: bits(&|column| wide[column]),
            spilled: bits(&|column| column >= shape.values),
            shape,
            wide,
            set_words: words_of(schema),
            layout: options.layout,
            page_bits: page_records(options.update_range_records).trailing_zeros(),
            place_mask: page_records(options.update_range_records) - 1,
            meter: meter.clone(),
            texts: TailTexts::new(schema, options, meter),
            sequences: SequenceBlocks::new(options.workers),
            pages: PageTables::new(),
        }
    }

    /// The highest number handed out; its record may not be written yet.
    #[inline]
    pub fn allocated(&self) -> u64 {
        self.sequences.allocated()
    }

    /// Takes `count` consecutive numbers above `above` and returns the first.
    #[inline(always)]
    pub(crate) fn allocate(&self, guard: &Guard, count: u64, above: u64) -> u64 {
        self.sequences.take(count, above, |unused| self.bury(guard, unused))
    }

    /// Buries the numbers that writers hold and have not used, so that a merge can pass them.
    pub(crate) fn seal(&self, guard: &Guard) {
        self.sequences.seal(|unused| self.bury(guard, unused));
    }

    /// Makes tombstones of records that are not written, or not to be found.
    pub(crate) fn bury(&self, guard: &Guard, numbers: std::ops::Range<u64>) {
        for sequence in numbers {
            let (page, at) = self.place(sequence);
            self.page_to_write(guard, page).record_place(at).publish(StartTime::TOMBSTONE);
        }
    }

    /// Writes the record numbered `sequence`, which the caller allocated.
    pub(crate) fn write(&self, guard: &Guard, sequence: u64, record: &NewRecord<'_>) {
        let (page_index, at) = self.place(sequence);
        let page = self.page_to_write(guard, page_index);
        let place = page.record_place(at);
        place.link(record.prev, record.slot, record.kind);
        place.reset_at(record.reset);
        let (mut explicit, mut nulls) = (ColumnSet::EMPTY, ColumnSet::EMPTY);
        let allocated = |bytes| page.charge.grow(bytes);
        for (column, cell) in record.values {
            explicit.insert(*column);
            match cell {
                Cell::Null => nulls.insert(*column),
                Cell::Word(word) => page.slot(place, *column, at).store(*word, Ordering::Relaxed),
                Cell::Bytes(bytes) => {
                    let word = page.values.store(*column, bytes, allocated);
                    page.slot(place, *column, at).store(word, Ordering::Release);
                }
            }
        }
        if let Some(carried) = &record.carried {
            let old_nulls = carried.from.set_word(NULLS, 0);
            explicit.insert_word(0, carried.columns);
            nulls.insert_word(0, carried.columns & old_nulls);
            for column in columns_of(carried.columns & !old_nulls) {
                let slot = page.slot(place, column, at);
                if self.wide[column] {
                    let word = carried.from.wide_word(column);
                    // SAFETY: the word is 0, or `write` got it for this column from that page's values and stored it with
                    // release.
                    let word = unsafe { page.values.carry(column, word, &carried.from.page().values, allocated) };
                    slot.store(word, Ordering::Release);
                } else {
                    slot.store(carried.from.word(column), Ordering::Relaxed);
                }
            }
        }
        for (set, columns) in [(EXPLICIT, &explicit), (EVER, record.ever), (NULLS, &nulls)] {
            place.set(set).store(columns.word(0), Ordering::Relaxed);
            for i in 1..self.set_words {
                page.sets[self.set_place(at, set, i)].store(columns.word(i), Ordering::Relaxed);
            }
        }
        place.publish(record.start);
    }

    /// Writes a record of words, which the caller numbered.
    ///
    /// # Safety
    /// The `last` of the record's columns is the greatest.
    /// # Panics
    /// If one of its columns, those carried included, is stored as bytes.
    #[inline(always)]
    pub(crate) unsafe fn write_words<'g>(
        &'g self,
        guard: &'g Guard,
        sequence: u64,
        record: NewWords<'_>,
    ) -> RecordPlace<'g> {
        let place = self.place_to_write(guard, sequence);
        assert_eq!(record.head.explicit & self.wide_columns, 0, "bytes are written and carried by `write`");
        if let Some(carried) = &record.carried {
            place.copy_values(carried.from);
        }
        // SAFETY: the caller's promise.
        unsafe { place.put_all(record.columns, record.last, record.words) };
        if record.head.explicit & self.spilled != 0 {
            let carried = record.carried.map(|carried| (carried.sequence, carried.columns));
            self.write_spilled(guard, sequence, (record.columns, record.words), carried);
        }
        place.write(record.head);
        place
    }

    /// The words of a record that the caller numbered.
    #[inline(always)]
    pub(crate) fn place_to_write<'g>(&'g self, guard: &'g Guard, sequence: u64) -> RecordPlace<'g> {
        self.place_of(guard, sequence).unwrap_or_else(|| self.place_in_new_page(guard, sequence))
    }

    #[cold]
    fn place_in_new_page<'g>(&'g self, guard: &'g Guard, sequence: u64) -> RecordPlace<'g> {
        self.page_to_write(guard, self.place(sequence).0).record_place(self.place(sequence).1)
    }

    /// The columns, of the first 64, that have no place in a record.
    #[inline]
    pub(crate) fn spilled_columns(&self) -> u64 {
        self.spilled
    }

    /// The words of columns that have no place in the record.
    #[inline(never)]
    fn write_spilled(
        &self,
        guard: &Guard,
        sequence: u64,
        (columns, words): (&[usize], &[u64]),
        carried: Option<(u64, u64)>,
    ) {
        let (page_index, at) = self.place(sequence);
        let page = self.page_to_write(guard, page_index);
        let place = page.record_place(at);
        let carried = carried.and_then(|(sequence, columns)| Some((self.get(guard, sequence)?, columns)));
        if let Some((from, columns)) = carried {
            for column in columns_of(columns & self.spilled) {
                page.slot(place, column, at).store(from.word(column), Ordering::Relaxed);
            }
        }
        let new = columns.iter().zip(words).filter(|(column, _)| **column >= page.records.values());
        new.for_each(|(column, word)| page.slot(place, *column, at).store(*word, Ordering::Relaxed));
    }

    /// The columns, of the first 64, that are stored as bytes.
    #[inline]
    pub(crate) fn wide_columns(&self) -> u64 {
        self.wide_columns
    }

    /// The page of a record, and its place there.
    #[inline]
    fn place(&self, sequence: u64) -> (usize, usize) {
        debug_assert!(sequence > 0, "tail records are numbered from 1");
        let index = (sequence - 1) as usize;
        debug_assert_eq!(self.place_mask, self.page_records() - 1);
        (index >> self.page_bits, index & self.place_mask)
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
        self.pages.get_or_make(guard, index, || self.new_page(index))
    }

    fn new_page(&self, index: usize) -> TailPage {
        let sets = zeroed_atomics(self.page_records() * SETS * (self.set_words - 1));
        let records = Records::new(self.page_records(), self.shape, self.meter.budget().spare_words());
        let bytes = records.bytes() + size_of_val(&*sets);
        TailPage {
            words: Words::new(self.layout, self.wide.len() - self.shape.values, self.page_records()),
            records,
            sets,
            values: WideValues::new(self.texts.of_page(index)),
            charge: Charge::new(&self.meter, MemoryKind::Tail, bytes),
            newest: AtomicU64::new(0),
            digest: OnceLock::new(),
        }
    }

    /// Gives up the pages whose records are all numbered `through` or lower.
    pub(crate) fn give_up(&self, guard: &Guard, through: u64) {
        self.pages.give_up(guard, through as usize >> self.page_bits);
    }

    /// The record numbered `sequence`, or `None` where its page is not there: not yet, or no longer.
    #[inline]
    pub(crate) fn get<'g>(&'g self, guard: &'g Guard, sequence: u64) -> Option<TailRecord<'g>> {
        let (page_index, at) = self.place(sequence);
        let page = self.pages.load(guard).get(page_index)?;
        Some(TailRecord::new(self, page, at, sequence))
    }

    /// The words of the record numbered `sequence`, or `None` where its page is not there.
    #[inline(always)]
    pub(crate) fn place_of<'g>(&'g self, guard: &'g Guard, sequence: u64) -> Option<RecordPlace<'g>> {
        let (index, at) = self.place(sequence);
        let records = self.pages.load(guard).records(index);
        // SAFETY: the words are those of a page of this shape, which the table holds; the table stays as long as the guard.
        // `at` is below the number of records of a page.
        (!records.is_null()).then(|| unsafe { RecordPlace::of(records, at, self.shape) })
    }

    /// Visits the records of these numbers, oldest first, each with its number, until one is answered by false; those of pages that
    /// are not there are passed over.
    #[inline]
    pub(crate) fn each_place<'g>(
        &'g self,
        guard: &'g Guard,
        sequences: std::ops::Range<u64>,
        mut visit: impl FnMut(u64, RecordPlace<'g>) -> bool,
    ) {
        let (table, shape, mut sequence) = (self.pages.load(guard), self.shape, sequences.start);
        while sequence < sequences.end {
            let (index, first) = self.place(sequence);
            let count = (self.page_records() - first).min((sequences.end - sequence) as usize);
            let records = table.records(index);
            if !records.is_null() {
                for at in 0..count {
                    // SAFETY: as in `place_of`; the page has all of these places.
                    let place = unsafe { RecordPlace::of(records, first + at, shape) };
                    if !visit(sequence + at as u64, place) {
                        return;
                    }
                }
            }
            sequence += count as u64;
        }
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

    /// Visits all records that are not history, newest first.
    pub(crate) fn each_live<'g>(&'g self, guard: &'g Guard, mut visit: impl FnMut(TailRecord<'g>)) {
        loop {
            let first = (self.pages.load(guard).first << self.page_bits) as u64;
            if self.each_newest_first(guard, first, &mut visit).is_ok() {
                return;
            }
        }
    }

    /// Visits the records numbered above `after`, oldest first, until one is answered by false; `None` stands for the records of a
    /// page that is not made yet. Visits nothing and returns an error if some of the records have become history.
    pub(crate) fn each_oldest_first<'g>(
        &'g self,
        guard: &'g Guard,
        after: u64,
        mut visit: impl FnMut(Option<TailRecord<'g>>) -> bool,
    ) -> Result<(), Outdated> {
        let (through, table) = (self.allocated(), self.pages.load(guard));
        if through > after && (table.first << self.page_bits) as u64 > after {
            return Err(Outdated);
        }
        let mut sequence = after + 1;
        while sequence <= through {
            let (index, first) = self.place(sequence);
            let last = self.page_records().min(first + (through - sequence) as usize + 1);
            let page = table.get(index);
            for at in first..last {
                let record =
                    page.map(|page| TailRecord::new(self, page, at, ((index << self.page_bits) + at + 1) as u64));
                if !visit(record) {
                    return Ok(());
                }
                if page.is_none() {
                    break;
                }
            }
            sequence += (last - first) as u64;
        }
        Ok(())
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
        (0..pages.page_records()).map(move |at| TailRecord::new(pages, page, at, first + at as u64))
    }
}

impl Drop for TailPage {
    fn drop(&mut self) {
        self.charge.meter().budget().spare_words().put(self.records.take_words());
    }
}

impl WithRecords for TailPage {
    fn first_word(&self) -> *const AtomicU64 {
        self.records.first_word()
    }
}

impl TailPage {
    /// The words of the record at `at`.
    #[inline]
    fn record_place(&self, at: usize) -> RecordPlace<'_> {
        // SAFETY: the slice has a head and so many values, and is borrowed.
        unsafe { RecordPlace::new(NonNull::from(self.records.words(at)).cast(), self.records.values()) }
    }

    /// Where the word of a column of the record at `at` is stored, whose place this is: with release, if the column is stored
    /// as bytes.
    #[inline]
    fn slot<'p>(&'p self, place: RecordPlace<'p>, column: usize, at: usize) -> &'p AtomicU64 {
        match place.value(column) {
            Some(value) => value,
            None => self.words.slot(column - self.records.values(), at, |bytes| self.charge.grow(bytes)),
        }
    }

    /// The word that is stored there; 0 where none was.
    #[inline]
    fn load(&self, place: RecordPlace<'_>, column: usize, at: usize, ordering: Ordering) -> u64 {
        match place.value(column) {
            Some(value) => value.load(ordering),
            None => self.words.load(column - self.records.values(), at, ordering),
        }
    }
}
