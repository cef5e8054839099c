//! One history page: versions of many records, those of a record next to each other, records in the order of their
//! slots (L-Store, section 2.1).
//!
//! ```text
//! slots      which slots have versions here; a slot's rank is its record's number
//! first      number of each record's newest version, and the number of all versions at the end
//!            versions are numbered by slot, and from newest to oldest within a record:
//!              slot 3: 0 1 2 | slot 8: 3 | slot 9: 4 5 | ...
//! sequences  of each version
//! snapshots  which versions are snapshot records         deletes  which are deletes; the others are updates
//! starts     of each update or delete                    snapshot_starts  of each snapshot record
//! columns    what `column.rs` draws, for each column that some version has a value for
//! ```
//!
//! Snapshot records carry the start of their base record, far from those of updates: kept apart, both take few bits.
//! Everything is within reach by the number of a version, so that reading a record touches nothing of another.
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use types::DataType;

use super::chain::{Draft, Values, join_seen_together, leave_out_repeated};
use super::column::{Column, ColumnWriter};
use super::packed::{Packed, partition_point};
use super::positions::Positions;
use super::words::{WordBlock, WordVersion};
use crate::value::cell::{Cell, is_wide};
#[cfg(test)]
use crate::value::column_set::ColumnSet;
use crate::value::kept::Kept;
use crate::value::kind::Kind;

/// A version to be put into a history page.
pub(crate) struct NewVersion<'a> {
    /// the slot of its base record
    pub(crate) slot: usize,
    /// its number in the tail
    pub(crate) sequence: u64,
    /// what it is
    pub(crate) kind: Kind,
    /// when it was committed
    pub(crate) start: u64,
    /// its explicit values, each column named once
    pub(crate) values: Values<'a>,
}

/// Versions of records, in few bytes. Never changes.
#[derive(Debug)]
pub(crate) struct HistoryPage {
    /// shared with its outline
    pub(crate) slots: Arc<Positions>,
    pub(crate) first: Packed,
    pub(crate) sequences: Packed,
    pub(crate) snapshots: Positions,
    pub(crate) deletes: Positions,
    pub(crate) starts: Packed,
    pub(crate) snapshot_starts: Packed,
    pub(crate) columns: Box<[Option<Box<Column>>]>,
    pub(crate) sequence_span: Option<(u64, u64)>,
    pub(crate) start_span: Option<(u64, u64)>,
}

impl HistoryPage {
    /// Builds a page from committed versions sorted by slot, and from newest to oldest within a slot, without those that
    /// no kept snapshot needs beside the others.
    pub(crate) fn build<'a>(
        types: &[DataType],
        kept: &Kept,
        versions: impl IntoIterator<Item = NewVersion<'a>>,
    ) -> HistoryPage {
        let mut writer = PageWriter::new(types, kept);
        let mut chain: Vec<Draft<'a>> = Vec::new();
        let mut slot = 0;
        for version in versions {
            if version.slot != slot {
                debug_assert!(version.slot > slot, "versions come by slot");
                writer.push_record(slot, &mut chain);
                slot = version.slot;
            }
            debug_assert!(chain.last().is_none_or(|newer| newer.sequence > version.sequence), "newest comes first");
            let NewVersion { sequence, kind, start, values, .. } = version;
            chain.push(Draft { sequence, kind, start, values });
        }
        writer.push_record(slot, &mut chain);
        writer.finish()
    }

    /// The versions of a record, newest first.
    #[inline]
    pub(crate) fn versions(&self, slot: usize) -> impl ExactSizeIterator<Item = Version<'_>> + DoubleEndedIterator {
        let numbers = match self.slots.find(slot) {
            Some(record) => self.numbers(record),
            None => 0..0,
        };
        numbers.map(|number| Version { page: self, number })
    }

    /// The versions of a record that a snapshot at `at` sees, newest first: all snapshot records, and the updates
    /// and deletes that did not start later. The others are passed over by a search, not one by one.
    #[inline]
    pub(crate) fn versions_seen(&self, slot: usize, at: u64) -> impl Iterator<Item = Version<'_>> {
        let numbers = self.slots.find(slot).map_or(0..0, |record| self.numbers(record));
        let seen = self.first_started(&numbers, at);
        let numbers = self.snapshots.within(numbers.start..seen).chain(seen..numbers.end);
        numbers.map(|number| Version { page: self, number })
    }

    /// The first of a record's updates and deletes that did not start after `at`, or the end of its versions.
    fn first_started(&self, numbers: &Range<usize>, at: u64) -> usize {
        // Updates and deletes are counted without the snapshot records between them; their starts descend.
        let count_before = |number: usize| number - self.snapshots.rank(number);
        let counts = count_before(numbers.start)..count_before(numbers.end);
        let later = partition_point(counts.clone(), |count| self.starts.get(count) > at);
        partition_point(numbers.clone(), |number| count_before(number + 1) <= later)
    }

    /// The slots that have versions here, ascending.
    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> {
        self.slots.iter()
    }

    /// How many versions there are.
    pub(crate) fn len(&self) -> usize {
        self.sequences.len()
    }

    /// The lowest and the highest sequence of a version, `None` where there is no version.
    pub(crate) fn sequence_span(&self) -> Option<(u64, u64)> {
        self.sequence_span
    }

    /// The earliest and the latest start of an update or delete, `None` where there is neither.
    pub(crate) fn start_span(&self) -> Option<(u64, u64)> {
        self.start_span
    }

    /// The memory that this page takes.
    pub(crate) fn bytes(&self) -> usize {
        let positions = [&*self.slots, &self.snapshots, &self.deletes].map(Positions::heap_bytes);
        let streams = [&self.first, &self.sequences, &self.starts, &self.snapshot_starts].map(Packed::heap_bytes);
        let column = |column: &Column| size_of::<Column>() + column.heap_bytes();
        let columns: usize = self.columns.iter().flatten().map(|each| column(each)).sum();
        let fixed = size_of::<HistoryPage>() + size_of_val(&*self.columns);
        fixed + positions.iter().sum::<usize>() + streams.iter().sum::<usize>() + columns
    }

    /// The slots that were updated or deleted after `from` and not after `to`, when, and which of the two; by slot,
    /// and from newest to oldest within a slot.
    pub(crate) fn changes(&self, from: u64, to: u64) -> impl Iterator<Item = (usize, u64, Kind)> {
        let overlaps = self.start_span.is_some_and(|(earliest, latest)| earliest <= to && latest > from);
        self.slots
            .iter()
            .take(if overlaps { usize::MAX } else { 0 })
            .enumerate()
            .flat_map(move |(record, slot)| {
                let versions = self.numbers(record).map(|number| Version { page: self, number });
                versions.map(move |version| (slot, version.start(), version.kind()))
            })
            .filter(move |(_, start, kind)| *kind != Kind::Snapshot && *start > from && *start <= to)
    }

    /// Appends the versions of these numbers, by number and without their columns, to `found`: without the searches for each that
    /// [`Version`] makes.
    pub(super) fn each_without_values(&self, numbers: Range<usize>, found: &mut Vec<WordVersion>) {
        let earlier = found.len();
        self.sequences.each_within(numbers.clone(), |sequence| {
            found.push(WordVersion { sequence, kind: Kind::Update, start: 0, explicit: 0 });
        });
        let found = &mut found[earlier..];
        let snapshots = self.snapshots.rank(numbers.start)..self.snapshots.rank(numbers.end);
        let mut snapshot_starts = snapshots.clone().map(|snapshot| self.snapshot_starts.get(snapshot));
        self.snapshots.each_within(numbers.clone(), |number| {
            let start = snapshot_starts.next().expect("each snapshot record has a start");
            (found[number - numbers.start].kind, found[number - numbers.start].start) = (Kind::Snapshot, start);
        });
        self.deletes.each_within(numbers.clone(), |number| found[number - numbers.start].kind = Kind::Delete);
        // Those of updates and deletes are counted without the snapshot records between them.
        let mut others = found.iter_mut().filter(|version| version.kind != Kind::Snapshot);
        self.starts.each_within(numbers.start - snapshots.start..numbers.end - snapshots.end, |start| {
            others.next().expect("each update and delete has a start").start = start;
        });
    }

    /// The numbers of a record's versions.
    pub(crate) fn numbers(&self, record: usize) -> Range<usize> {
        self.first.get(record) as usize..self.first.get(record + 1) as usize
    }
}

/// A version in a history page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'a> {
    page: &'a HistoryPage,
    number: usize,
}

impl<'a> Version<'a> {
    /// Its number in the tail, once.
    pub(crate) fn sequence(&self) -> u64 {
        self.page.sequences.get(self.number)
    }

    /// The kind of the version.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        if self.page.snapshots.contains(self.number) {
            Kind::Snapshot
        } else if self.page.deletes.contains(self.number) {
            Kind::Delete
        } else {
            Kind::Update
        }
    }

    /// When it was committed; of a snapshot record, when its base record was.
    #[inline]
    pub(crate) fn start(&self) -> u64 {
        match self.page.snapshots.find(self.number) {
            Some(before) => self.page.snapshot_starts.get(before),
            None => self.page.starts.get(self.number - self.page.snapshots.rank(self.number)),
        }
    }

    /// The value of a column, if it is explicit here. A column that is not may have been explicit in the tail, if an
    /// older version of this page holds the same value.
    #[inline]
    pub(crate) fn get(&self, column: usize) -> Option<Cell<'a>> {
        self.page.columns[column].as_deref()?.get(self.number)
    }

    /// Whether a column has a value here.
    #[inline]
    pub(crate) fn is_explicit(&self, column: usize) -> bool {
        self.page.columns[column].as_deref().is_some_and(|column| column.contains(self.number))
    }

    /// The value of an explicit column.
    #[inline]
    pub(crate) fn cell(&self, column: usize) -> Cell<'a> {
        self.get(column).expect("the column is explicit")
    }

    /// The columns that have a value here.
    #[cfg(test)]
    pub(crate) fn explicit(&self) -> ColumnSet {
        let mut columns = ColumnSet::EMPTY;
        self.values().for_each(|(column, _)| columns.insert(column));
        columns
    }

    /// The explicit columns with their values, by column.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, Cell<'a>)> + use<'a> {
        let number = self.number;
        let columns = self.page.columns.iter().enumerate();
        columns.filter_map(move |(at, column)| Some((at, column.as_deref()?.get(number)?)))
    }

    pub(crate) fn draft(&self) -> Draft<'a> {
        let values = self.values().collect();
        Draft { sequence: self.sequence(), kind: self.kind(), start: self.start(), values }
    }
}

/// Versions that are read at once.
pub(super) const READ_AHEAD: usize = 1024;

/// Reads a page from its first record to its last. The cost of a record does not grow with the page, as searches
/// for each version would.
pub(crate) struct PageReader<'a> {
    page: &'a HistoryPage,
    slots: std::vec::IntoIter<usize>,
    /// The record of the first slot left.
    record: usize,
    /// Versions read and not taken; the number of the next one to read.
    drafts: VecDeque<Draft<'a>>,
    next: usize,
}

impl<'a> PageReader<'a> {
    pub(crate) fn new(page: &'a HistoryPage) -> Self {
        let slots = page.slots().collect::<Vec<_>>().into_iter();
        PageReader { page, slots, record: 0, drafts: VecDeque::new(), next: 0 }
    }

    /// Adds the versions of a record to a chain, newest first, and returns how many there are. Slots are asked for in
    /// ascending order, and none that has versions is left out.
    pub(crate) fn take(&mut self, slot: usize, chain: &mut Vec<Draft<'a>>) -> usize {
        if self.slots.as_slice().first() != Some(&slot) {
            return 0;
        }
        self.slots.next();
        let numbers = self.page.numbers(self.record);
        self.record += 1;
        if numbers.end > self.next {
            self.read_on(numbers.end.max(self.next + READ_AHEAD).min(self.page.len()));
        }
        chain.extend(self.drafts.drain(..numbers.len()));
        numbers.len()
    }

    fn read_on(&mut self, end: usize) {
        let (page, numbers) = (self.page, self.next..end);
        let earlier = self.drafts.len();
        let mut versions = Vec::with_capacity(numbers.len());
        page.each_without_values(numbers.clone(), &mut versions);
        self.drafts.extend(versions.into_iter().map(|version| {
            let WordVersion { sequence, kind, start, .. } = version;
            Draft { sequence, kind, start, values: Values::new() }
        }));
        let place = |number: usize| earlier + number - numbers.start;
        for (at, column) in page.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            column.for_each_within(numbers.clone(), |number, cell| self.drafts[place(number)].values.push((at, cell)));
        }
        self.next = end;
    }
}

/// Collects the records of a page, slot by slot.
pub(crate) struct PageWriter<'a, 't> {
    types: &'t [DataType],
    pub(super) kept: &'t Kept,
    slots: Vec<u64>,
    first: Vec<u64>,
    sequences: Vec<u64>,
    snapshots: Vec<u64>,
    deletes: Vec<u64>,
    starts: Vec<u64>,
    snapshot_starts: Vec<u64>,
    pub(super) columns: Vec<ColumnWriter<'a>>,
    /// room for the delta rule
    current: Vec<Option<Cell<'a>>>,
    /// what has not gone to the columns
    pub(super) words: WordBlock,
}

impl<'a, 't> PageWriter<'a, 't> {
    pub(crate) fn new(types: &'t [DataType], kept: &'t Kept) -> Self {
        Self::with_room(types, kept, 0)
    }

    /// A writer with room for so many versions.
    pub(crate) fn with_room(types: &'t [DataType], kept: &'t Kept, versions: usize) -> Self {
        PageWriter {
            types,
            kept,
            slots: Vec::new(),
            first: Vec::new(),
            sequences: Vec::with_capacity(versions),
            snapshots: Vec::new(),
            deletes: Vec::new(),
            starts: Vec::with_capacity(versions),
            snapshot_starts: Vec::new(),
            columns: types.iter().map(|_| ColumnWriter::default()).collect(),
            current: vec![None; types.len()],
            words: WordBlock::default(),
        }
    }

    /// A writer with room for all that is in these pages.
    pub(crate) fn with_room_for<'p>(
        types: &'t [DataType],
        kept: &'t Kept,
        pages: impl Iterator<Item = &'p HistoryPage> + Clone,
    ) -> Self {
        let mut writer = Self::with_room(types, kept, pages.clone().map(HistoryPage::len).sum());
        for (at, column) in writer.columns.iter_mut().enumerate().filter(|(at, _)| !is_wide(types[*at])) {
            let values = pages.clone().filter_map(|page| page.columns[at].as_deref()).map(Column::value_count);
            column.reserve_words(values.sum());
        }
        writer
    }

    /// Adds a record's versions, newest first, and empties the chain. Slots ascend.
    pub(crate) fn push_record(&mut self, slot: usize, chain: &mut Vec<Draft<'a>>) {
        if chain.is_empty() {
            return;
        }
        self.flush_words();
        join_seen_together(chain, self.kept);
        leave_out_repeated(chain, &mut self.current);
        self.begin_record(slot);
        for draft in chain.drain(..) {
            let number = self.push_version(draft.sequence, draft.kind, draft.start);
            for (column, cell) in draft.values {
                self.columns[column].push(number, cell);
            }
        }
    }

    /// Begins a record with versions.
    #[inline]
    pub(super) fn begin_record(&mut self, slot: usize) {
        debug_assert!(self.slots.last().is_none_or(|last| *last < slot as u64), "records come by slot");
        self.slots.push(slot as u64);
        self.first.push(self.sequences.len() as u64);
    }

    /// Adds a version without its values; returns its number.
    #[inline]
    pub(super) fn push_version(&mut self, sequence: u64, kind: Kind, start: u64) -> usize {
        let number = self.sequences.len();
        self.sequences.push(sequence);
        if kind == Kind::Snapshot {
            self.snapshots.push(number as u64);
            self.snapshot_starts.push(start);
            return number;
        }
        debug_assert!(matches!(kind, Kind::Update | Kind::Delete), "a lock is a tombstone once it is resolved");
        if kind == Kind::Delete {
            self.deletes.push(number as u64);
        }
        self.starts.push(start);
        number
    }

    /// Gives the words of the last versions to the columns.
    fn flush_words(&mut self) {
        if let Some(last) = self.sequences.len().checked_sub(1) {
            self.words.flush(last / WordBlock::VERSIONS, &mut self.columns);
        }
    }

    pub(crate) fn finish(mut self) -> HistoryPage {
        self.flush_words();
        let versions = self.sequences.len();
        self.first.push(versions as u64);
        let slots_end = self.slots.last().map_or(0, |last| *last as usize + 1);
        let columns = self.columns.into_iter().zip(self.types);
        let column = |(column, data_type): (ColumnWriter<'_>, &DataType)| {
            column.finish(&self.first, is_wide(*data_type)).map(Box::new)
        };
        HistoryPage {
            slots: Arc::new(Positions::of(&self.slots, slots_end)),
            first: Packed::of(&self.first),
            sequence_span: span_of(&self.sequences),
            sequences: Packed::of(&self.sequences),
            snapshots: Positions::of(&self.snapshots, versions),
            deletes: Positions::of(&self.deletes, versions),
            start_span: span_of(&self.starts),
            starts: Packed::of(&self.starts),
            snapshot_starts: Packed::of(&self.snapshot_starts),
            columns: columns.map(column).collect(),
        }
    }
}

/// The least and the greatest of these numbers.
pub(crate) fn span_of(values: &[u64]) -> Option<(u64, u64)> {
    Some((*values.iter().min()?, *values.iter().max()?))
}
