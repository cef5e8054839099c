//! Tail records as they lie in their page, and how they are read.
use std::marker::PhantomData;
use std::ptr::NonNull;

use sync::atomic::{AtomicU64, Ordering};

use super::records::{HEAD, LINE, RecordShape};
use super::{TailPage, TailPages};
use crate::encoding::{Simd, equal_words};
use crate::page::text::TextCell;
use crate::page::wide::WideValues;
use crate::value::cell::Cell;
use crate::value::column_set::{ColumnSet, columns_of};
use crate::value::kind::Kind;

pub(super) const SETS: usize = 3;
pub(super) const EXPLICIT: usize = 0;
pub(super) const EVER: usize = 1;
pub(super) const NULLS: usize = 2;

const START: usize = 0;
const LINK: usize = 1;
const RESET: usize = 2;
const FIRST_SET: usize = 3;
const _: () = assert!(HEAD == FIRST_SET + SETS);

/// Values of a record of two lines that has no more columns behind it.
const TWO_LINES: usize = 2 * LINE - HEAD;

/// In the link: the previous version's number stands above the slot, that above the kind.
const PREV_SHIFT: u32 = 24;
const SLOT_SHIFT: u32 = 8;

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
    pub carried: Option<CarriedColumns<'a>>,
}

/// One tail record of a table with at most 64 columns to be written: an update, or the values before the first one.
pub struct NewWords<'a> {
    /// its meta-data
    pub head: Head,
    /// the columns that get new values
    pub columns: &'a [usize],
    /// the greatest of them
    pub last: usize,
    /// the new values, in the order of `columns`
    pub words: &'a [u64],
    /// explicit columns whose values are those of an older record
    pub carried: Option<CarriedWords<'a>>,
}

/// Columns that a new record of words repeats from an older one.
#[derive(Clone, Copy)]
pub struct CarriedWords<'a> {
    /// the older record
    pub from: RecordPlace<'a>,
    /// its number
    pub sequence: u64,
    /// the columns, a bit each
    pub columns: u64,
}

/// Columns, of the first 64, that a new record repeats from an older one.
#[derive(Clone, Copy)]
pub struct CarriedColumns<'a> {
    /// the older record
    pub from: TailRecord<'a>,
    /// the columns, a bit each
    pub columns: u64,
}

/// The meta-data of a record of a table with at most 64 columns.
#[derive(Clone, Copy)]
pub struct Head {
    /// the previous version's number
    pub prev: u64,
    /// the base record's slot
    pub slot: usize,
    /// what it is
    pub kind: Kind,
    /// the Start Time word
    pub start: u64,
    /// as in [`NewRecord`](super::NewRecord)
    pub reset: u64,
    /// the columns with a value, a bit each
    pub explicit: u64,
    /// the columns updated so far
    pub ever: u64,
    /// the explicit columns that are NULL
    pub nulls: u64,
}

/// Records lie in the order in which they came. Where they are visited by slot, the memory of so many is asked for ahead.
pub(crate) const RECORDS_AHEAD: usize = 16;

/// The words of one record: its meta-data, and the values of the first columns.
#[derive(Clone, Copy)]
pub struct RecordPlace<'p> {
    /// the first of the words, which are there for `'p`
    words: NonNull<AtomicU64>,
    /// how many values stand behind the head
    values: usize,
    lifetime: PhantomData<&'p AtomicU64>,
}

// SAFETY: it is no more than a shared reference to atomic words.
unsafe impl Send for RecordPlace<'_> {}
// SAFETY: as above.
unsafe impl Sync for RecordPlace<'_> {}

impl<'p> RecordPlace<'p> {
    /// The record at these words, of which so many are values.
    ///
    /// # Safety
    /// The words of its head and as many behind it are there for `'p`.
    #[inline]
    pub(super) unsafe fn new(words: NonNull<AtomicU64>, values: usize) -> RecordPlace<'p> {
        RecordPlace { words, values, lifetime: PhantomData }
    }

    /// The record at `at` of those whose first word is `records`.
    ///
    /// # Safety
    /// `records` is what [`Records::first_word`](super::Records::first_word) gave of records of this shape, which live as long as
    /// `'p`, and `at` is below their number.
    #[inline]
    pub(super) unsafe fn of(records: *const AtomicU64, at: usize, shape: RecordShape) -> RecordPlace<'p> {
        // SAFETY: the caller promises that the record is there; a record has a head, and behind it as many values as its shape.
        let words = unsafe { NonNull::new_unchecked(records.add(at << shape.bits).cast_mut()) };
        RecordPlace { words, values: shape.values, lifetime: PhantomData }
    }

    #[inline]
    fn head(self) -> &'p [AtomicU64; HEAD] {
        // SAFETY: a record has a head, which is there for `'p`.
        unsafe { self.words.cast().as_ref() }
    }

    #[inline]
    fn values(self) -> &'p [AtomicU64] {
        // SAFETY: as many values stand behind the head, for `'p`.
        unsafe { std::slice::from_raw_parts(self.words.add(HEAD).as_ptr(), self.values) }
    }

    /// Its Start Time word.
    #[inline]
    pub(crate) fn start(self) -> &'p AtomicU64 {
        &self.head()[START]
    }

    /// What it is.
    #[inline]
    pub(crate) fn kind(self) -> Kind {
        match self.head()[LINK].load(Ordering::Relaxed) as u8 {
            0 => Kind::Update,
            1 => Kind::Snapshot,
            2 => Kind::Delete,
            3 => Kind::Lock,
            _ => Kind::ValuesLock,
        }
    }

    /// Whether it is an update.
    #[inline]
    pub(crate) fn is_update(self) -> bool {
        self.head()[LINK].load(Ordering::Relaxed) as u8 == Kind::Update as u8
    }

    /// See [`TailRecord::reset`].
    #[inline]
    pub(crate) fn reset(self) -> u64 {
        self.head()[RESET].load(Ordering::Relaxed)
    }

    /// See [`TailRecord::sets`].
    #[inline]
    pub(crate) fn sets(self) -> (u64, u64, u64) {
        (self.explicit(), self.ever(), self.nulls())
    }

    /// The first of the [sets](Self::sets).
    #[inline]
    pub(crate) fn explicit(self) -> u64 {
        self.set(EXPLICIT).load(Ordering::Relaxed)
    }

    /// The second of the [sets](Self::sets).
    #[inline]
    pub(crate) fn ever(self) -> u64 {
        self.set(EVER).load(Ordering::Relaxed)
    }

    /// The third of the [sets](Self::sets).
    #[inline]
    pub(crate) fn nulls(self) -> u64 {
        self.set(NULLS).load(Ordering::Relaxed)
    }

    /// Whether a column has its place here.
    #[inline]
    pub(crate) fn has(self, column: usize) -> bool {
        column < self.values
    }

    /// The word of a column that has its place here.
    #[inline]
    pub(crate) fn word(self, column: usize) -> u64 {
        self.values()[column].load(Ordering::Relaxed)
    }

    /// The word of a column, without a look whether it has its place here.
    ///
    /// # Safety
    /// The column has its place here.
    #[inline]
    pub(crate) unsafe fn word_unchecked(self, column: usize) -> u64 {
        debug_assert!(self.has(column));
        // SAFETY: the caller's promise.
        unsafe { self.values().get_unchecked(column) }.load(Ordering::Relaxed)
    }

    /// See [`TailRecord::slot`].
    #[inline]
    pub(crate) fn slot(self) -> usize {
        usize::from((self.head()[LINK].load(Ordering::Relaxed) >> SLOT_SHIFT) as u16)
    }

    /// The columns that have their places here and the same words in another record of the same table, a bit each. Both are
    /// published.
    #[inline]
    pub(crate) fn equal_words(self, simd: Simd, other: RecordPlace<'_>) -> u64 {
        #[cfg(not(any(loom, shuttle)))]
        return equal_words(simd, self.published_words(), other.published_words());
        #[cfg(any(loom, shuttle))]
        {
            let words =
                |place: RecordPlace<'_>| place.values().iter().map(|word| word.load(Ordering::Relaxed)).collect();
            let (words, others): (Vec<u64>, Vec<u64>) = (words(self), words(other));
            equal_words(simd, &words, &others)
        }
    }

    /// The words of the columns that have their places here, once the record is published.
    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    fn published_words(self) -> &'p [u64] {
        // SAFETY: as many words stand behind the head, for `'p`. A value is not written any more once its record is published, and
        // an atomic word lies in memory as a plain one.
        unsafe { std::slice::from_raw_parts(self.words.add(HEAD).as_ptr().cast(), self.values) }
    }

    /// Asks for all of it.
    #[inline]
    pub(crate) fn prefetch(self) {
        sync::prefetch(self.words.as_ptr());
        sync::prefetch(self.words.as_ptr().wrapping_add(HEAD + self.values).wrapping_sub(1));
    }

    #[inline]
    pub(super) fn set(self, set: usize) -> &'p AtomicU64 {
        &self.head()[FIRST_SET + set]
    }

    /// The value of a column that has its place here.
    #[inline]
    pub(super) fn value(self, column: usize) -> Option<&'p AtomicU64> {
        self.values().get(column)
    }

    /// Begins to write the record.
    #[inline]
    pub(super) fn link(self, prev: u64, slot: usize, kind: Kind) {
        debug_assert_eq!(self.start().load(Ordering::Relaxed), 0, "a tail record is written once");
        debug_assert!(prev >> (u64::BITS - PREV_SHIFT) == 0 && slot >> (PREV_SHIFT - SLOT_SHIFT) == 0);
        self.head()[LINK].store(prev << PREV_SHIFT | (slot as u64) << SLOT_SHIFT | kind as u64, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn reset_at(self, reset: u64) {
        self.head()[RESET].store(reset, Ordering::Relaxed);
    }

    /// Puts the word of a column, if that has its place here. Before the record is published.
    #[inline]
    pub(crate) fn put(self, column: usize, word: u64) {
        if let Some(value) = self.value(column) {
            value.store(word, Ordering::Relaxed);
        }
    }

    /// Puts the words of some columns as far as they have their places here. Before the record is published.
    ///
    /// # Safety
    /// No column is greater than `last`.
    #[inline(always)]
    pub(super) unsafe fn put_all(self, columns: &[usize], last: usize, words: &[u64]) {
        debug_assert!(columns.iter().all(|column| *column <= last) && columns.len() == words.len());
        if let ([a, b, c, d], [first, second, third, fourth]) = (columns, words)
            && self.has(last)
        {
            for (column, word) in [(a, first), (b, second), (c, third), (d, fourth)] {
                // SAFETY: the column has its place here, as `last` has, which is no less by the caller's promise.
                unsafe { self.values().get_unchecked(*column) }.store(*word, Ordering::Relaxed);
            }
            return;
        }
        columns.iter().zip(words).for_each(|(column, word)| self.put(*column, *word));
    }

    /// Writes its meta-data, of a table with at most 64 columns, and publishes it with the values that were put here before.
    #[inline]
    pub(crate) fn write(self, head: Head) {
        self.link(head.prev, head.slot, head.kind);
        self.reset_at(head.reset);
        for (set, columns) in [(EXPLICIT, head.explicit), (EVER, head.ever), (NULLS, head.nulls)] {
            self.set(set).store(columns, Ordering::Relaxed);
        }
        self.publish(head.start);
    }

    /// Takes over the values from a record of the same table: all that have a place here, as those that mean nothing cost less
    /// than to tell which these are.
    #[inline(always)]
    pub(super) fn copy_values(self, from: RecordPlace<'_>) {
        let copy = |to: &AtomicU64, from: &AtomicU64| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        match (self.values().first_chunk::<TWO_LINES>(), from.values().first_chunk::<TWO_LINES>()) {
            (Some(to), Some(from)) => to.iter().zip(from).for_each(|(to, from)| copy(to, from)),
            _ => self.values().iter().zip(from.values()).for_each(|(to, from)| copy(to, from)),
        }
    }

    /// Ends writing: a reader that sees this sees everything else.
    #[inline]
    pub(super) fn publish(self, start: u64) {
        self.start().store(start, Ordering::Release);
    }
}

/// A written tail record. The caller has seen it published: by an acquire load of its Start Time or of a chain to it.
#[derive(Clone, Copy)]
pub struct TailRecord<'g> {
    pages: &'g TailPages,
    page: &'g TailPage,
    place: RecordPlace<'g>,
    at: usize,
    /// its number
    pub sequence: u64,
}

impl<'g> TailRecord<'g> {
    #[inline]
    pub(super) fn new(pages: &'g TailPages, page: &'g TailPage, at: usize, sequence: u64) -> Self {
        TailRecord { pages, page, place: page.record_place(at), at, sequence }
    }

    /// Its words.
    #[inline]
    pub(crate) fn place(&self) -> RecordPlace<'g> {
        self.place
    }

    #[inline]
    pub(super) fn page(&self) -> &'g TailPage {
        self.page
    }

    /// Its Start Time word.
    #[inline]
    pub fn start(&self) -> &'g AtomicU64 {
        self.place.start()
    }

    /// The number of the previous version, 0 = the base record.
    #[inline]
    pub fn prev(&self) -> u64 {
        self.place.head()[LINK].load(Ordering::Relaxed) >> PREV_SHIFT
    }

    /// Columns that were updated up to this version and have no value here have not changed after this number.
    #[inline]
    pub fn reset(&self) -> u64 {
        self.place.reset()
    }

    /// The slot of its base record.
    #[inline]
    pub fn slot(&self) -> usize {
        self.place.slot()
    }

    /// Its place in the page.
    #[inline]
    pub(super) fn place_in_page(&self) -> usize {
        self.at
    }

    /// What it is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.place.kind()
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

    /// Whether the value of an explicit column is NULL.
    #[inline]
    pub(crate) fn is_null(&self, column: usize) -> bool {
        self.has(NULLS, column)
    }

    /// The value of an explicit column.
    #[inline]
    pub fn cell(&self, column: usize) -> Cell<'g> {
        debug_assert!(self.is_explicit(column));
        self.cell_unless(self.has(NULLS, column), column)
    }

    /// How many columns have a value here.
    #[inline]
    pub(crate) fn value_count(&self) -> usize {
        (0..self.pages.set_words).map(|i| self.set_word(EXPLICIT, i).count_ones() as usize).sum()
    }

    /// Passes the explicit columns and their values to `take`, by column.
    #[inline]
    pub(crate) fn each_value(&self, mut take: impl FnMut(usize, Cell<'g>)) {
        for i in 0..self.pages.set_words {
            let nulls = self.set_word(NULLS, i);
            for bit in columns_of(self.set_word(EXPLICIT, i)) {
                take(64 * i + bit, self.cell_unless(nulls >> bit & 1 != 0, 64 * i + bit));
            }
        }
    }

    /// The value of an explicit column of text, for a merge.
    pub(crate) fn text(&self, column: usize) -> TextCell<'g> {
        debug_assert!(self.is_explicit(column) && self.pages.wide[column]);
        match WideValues::id(self.word(column)) {
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
        self.place.head().iter().take(1).for_each(|start| sync::prefetch(std::ptr::from_ref(start)));
    }

    /// Asks for the values of some columns.
    #[inline]
    pub(crate) fn prefetch_values(&self, columns: &[usize]) {
        self.prefetch_inline();
        let values = self.place.values;
        let spilled = columns.iter().filter(|column| **column >= values);
        spilled.for_each(|column| self.page.words.prefetch(*column - values, self.at));
    }

    /// Asks for the values that lie behind the meta-data.
    #[inline]
    pub(crate) fn prefetch_inline(&self) {
        self.place.values().last().into_iter().for_each(|value| sync::prefetch(std::ptr::from_ref(value)));
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

    #[inline(always)]
    fn cell_unless(&self, is_null: bool, column: usize) -> Cell<'g> {
        if is_null {
            return Cell::Null;
        }
        if self.pages.wide[column] {
            // SAFETY: the word is 0, or `write` got it for this column from this page's values and stored it with release.
            Cell::Bytes(unsafe { self.page.values.get(column, self.wide_word(column)) })
        } else {
            Cell::Word(self.word(column))
        }
    }

    /// The word of a column, as it is stored.
    #[inline]
    pub(crate) fn word(&self, column: usize) -> u64 {
        self.page.load(self.place, column, self.at, Ordering::Relaxed)
    }

    /// The word of a column that is stored as bytes, with what it names.
    #[inline]
    pub(crate) fn wide_word(&self, column: usize) -> u64 {
        self.page.load(self.place, column, self.at, Ordering::Acquire)
    }

    /// Explicit columns, columns updated so far and NULLs, of the first 64, a bit each.
    #[inline]
    pub(crate) fn sets(&self) -> (u64, u64, u64) {
        self.place.sets()
    }

    #[inline]
    pub(super) fn set_word(&self, set: usize, i: usize) -> u64 {
        match i {
            0 => self.place.set(set).load(Ordering::Relaxed),
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
