//! The records of a range that are in no page of their own on disk: those of insert pages, and tail records that are not
//! history yet.
//!
//! ```text
//! inserts | records | slots | Start Times | NULLs, word by word | cells |
//! tails   | tail pages, a bit each, in words: set where a page has some of the records
//!         | records | sequences | distances to the previous version, or 0 | slots in the update range | kinds | Start Times
//!         | cumulations | explicit, ever, nulls, word by word | cells |              (all packed; see `cells`)
//! ```
//!
//! Only what was committed when the image was taken is there. The numbers and slots between are those of tombstones, or of
//! what the log has.
use std::ops::Range;

use types::DataType;

use crate::codec::cells::{CellsReader, CellsWriter};
use crate::codec::{Damage, Reader, Shape, Writer};
use crate::page::tail::{NewRecord, TailRecord};
use crate::value::cell::Cell;
use crate::value::column_set::ColumnSet;
use crate::value::kind::Kind;

/// Collects records of insert pages, by slot.
pub(crate) struct InsertsWriter {
    slots: Vec<u64>,
    starts: Vec<u64>,
    nulls: Vec<Vec<u64>>,
    cells: CellsWriter,
}

impl InsertsWriter {
    pub(crate) fn new(types: &[DataType]) -> InsertsWriter {
        let nulls = vec![vec![]; types.len().div_ceil(64)];
        InsertsWriter { slots: vec![], starts: vec![], nulls, cells: CellsWriter::new(types) }
    }

    pub(crate) fn push<'a>(&mut self, slot: usize, start: u64, cells: impl Iterator<Item = Cell<'a>>) {
        let mut nulls = ColumnSet::EMPTY;
        for (column, cell) in cells.enumerate() {
            if !self.cells.push(column, cell) {
                nulls.insert(column);
            }
        }
        self.slots.push(slot as u64);
        self.starts.push(start);
        self.nulls.iter_mut().enumerate().for_each(|(i, words)| words.push(nulls.word(i)));
    }

    pub(crate) fn finish(&self, writer: &mut Writer) {
        writer.number(self.slots.len() as u64);
        writer.numbers(&self.slots);
        writer.numbers(&self.starts);
        self.nulls.iter().for_each(|words| writer.numbers(words));
        self.cells.finish(writer);
    }
}

/// Records of insert pages, ascending by slot.
pub(crate) struct InsertsReader<'a> {
    slots: Vec<u64>,
    starts: Vec<u64>,
    nulls: Sets,
    cells: CellsReader<'a>,
    width: usize,
}

/// A set of columns for each record, word by word.
struct Sets(Vec<Vec<u64>>);

impl Sets {
    fn read(reader: &mut Reader<'_>, shape: Shape<'_>, len: usize, what: &str) -> Result<Sets, Damage> {
        let mut words = Vec::with_capacity(shape.set_words());
        for i in 0..shape.set_words() {
            let of_records = reader.numbers_of(len, what)?;
            let is_within = of_records.iter().all(|word| word & !shape.columns_of_word(i) == 0);
            reader.check(is_within, || format!("has {what} of columns that are not there"))?;
            words.push(of_records);
        }
        Ok(Sets(words))
    }

    fn contains(&self, record: usize, column: usize) -> bool {
        self.0[column / 64][record] >> (column % 64) & 1 != 0
    }

    fn of(&self, record: usize) -> ColumnSet {
        let mut columns = ColumnSet::EMPTY;
        self.0.iter().enumerate().for_each(|(i, words)| columns.insert_word(i, words[record]));
        columns
    }

    /// In how many records a column is here and not in `others`.
    fn count_without(&self, others: &Sets, column: usize) -> usize {
        let bits = self.0[column / 64].iter().zip(&others.0[column / 64]);
        bits.filter(|(these, others)| (**these & !**others) >> (column % 64) & 1 != 0).count()
    }
}

impl<'a> InsertsReader<'a> {
    /// Records in at most as many slots as the range has.
    pub(crate) fn read(reader: &mut Reader<'a>, shape: Shape<'_>) -> Result<InsertsReader<'a>, Damage> {
        let len = reader.count(shape.len, "inserted records")?;
        let slots = reader.numbers_of(len, "slots")?;
        let is_within = slots.last().is_none_or(|last| *last < shape.len as u64);
        reader.check(is_within && slots.is_sorted_by(|left, right| left < right), || {
            format!("has slots that do not ascend within {}", shape.len)
        })?;
        let starts = reader.numbers_of(len, "start times")?;
        let is_committed = starts.iter().all(|start| shape.is_committed(*start));
        reader.check(is_committed, || format!("has a record that was inserted at no time up to {}", shape.at.0))?;
        let nulls = Sets::read(reader, shape, len, "NULLs")?;
        let width = shape.types.len();
        let count =
            |column: usize| len - nulls.0[column / 64].iter().filter(|word| **word >> (column % 64) & 1 != 0).count();
        let counts: Vec<usize> = (0..width).map(count).collect();
        let cells = CellsReader::read(reader, shape.types, &counts)?;
        Ok(InsertsReader { slots, starts, nulls, cells, width })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Passes slot, Start Time and values of each record on.
    pub(crate) fn for_each(mut self, mut take: impl FnMut(usize, u64, &[Cell<'a>])) {
        let mut cells = Vec::with_capacity(self.width);
        for (record, (slot, start)) in self.slots.iter().zip(&self.starts).enumerate() {
            cells.clear();
            for column in 0..self.width {
                let is_null = self.nulls.contains(record, column);
                cells.push(if is_null { Cell::Null } else { self.cells.next(column) });
            }
            take(*slot as usize, *start, &cells);
        }
    }
}

/// Collects tail records of an update range, by sequence.
pub(crate) struct TailsWriter {
    first_slot: usize,
    set_words: usize,
    sequences: Vec<u64>,
    distances: Vec<u64>,
    slots: Vec<u64>,
    kinds: Vec<u64>,
    starts: Vec<u64>,
    resets: Vec<u64>,
    /// explicit, ever, nulls
    sets: [Vec<u64>; 3],
    cells: CellsWriter,
}

impl TailsWriter {
    /// A writer for an update range with slots from `first_slot` on.
    pub(crate) fn new(types: &[DataType], first_slot: usize) -> TailsWriter {
        TailsWriter {
            first_slot,
            set_words: types.len().div_ceil(64),
            sequences: vec![],
            distances: vec![],
            slots: vec![],
            kinds: vec![],
            starts: vec![],
            resets: vec![],
            sets: Default::default(),
            cells: CellsWriter::new(types),
        }
    }

    /// Adds a record that was committed at `start` and stands on the version `prev`.
    pub(crate) fn push(&mut self, record: &TailRecord<'_>, prev: u64, start: u64) {
        self.sequences.push(record.sequence);
        self.distances.push(if prev == 0 { 0 } else { record.sequence - prev });
        self.slots.push((record.slot() - self.first_slot) as u64);
        self.kinds.push(record.kind() as u64);
        self.starts.push(start);
        self.resets.push(record.reset());
        let (explicit, mut nulls) = (record.explicit(), ColumnSet::EMPTY);
        for column in explicit.iter() {
            if !self.cells.push(column, record.cell(column)) {
                nulls.insert(column);
            }
        }
        for (set, columns) in self.sets.iter_mut().zip([explicit, record.ever(), nulls]) {
            set.extend((0..self.set_words).map(|i| columns.word(i)));
        }
    }

    /// The highest number of a record, 0 = none.
    pub(crate) fn last(&self) -> u64 {
        self.sequences.last().map_or(0, |last| *last)
    }

    /// Writes the records of tail pages of so many.
    pub(crate) fn finish(&self, (through, allocated): (u64, u64), page_records: u64, writer: &mut Writer) {
        writer.array(&pages_of(&self.sequences, (through, allocated), page_records));
        writer.number(self.sequences.len() as u64);
        for numbers in [&self.sequences, &self.distances, &self.slots, &self.kinds, &self.starts, &self.resets] {
            writer.numbers(numbers);
        }
        for set in &self.sets {
            for i in 0..self.set_words {
                writer.numbers(&set.iter().copied().skip(i).step_by(self.set_words).collect::<Vec<u64>>());
            }
        }
        self.cells.finish(writer);
    }
}

/// A bit for each tail page, set where it has one of these records.
fn pages_of(sequences: &[u64], (through, allocated): (u64, u64), page_records: u64) -> Vec<u64> {
    let first = through / page_records;
    let mut pages = vec![0u64; (allocated.div_ceil(page_records) - first).div_ceil(64) as usize];
    for sequence in sequences {
        let page = (sequence - 1) / page_records - first;
        pages[page as usize / 64] |= 1 << (page % 64);
    }
    pages
}

/// Tail records of an update range, ascending by sequence.
pub(crate) struct TailsReader<'a> {
    pub(crate) sequences: Vec<u64>,
    distances: Vec<u64>,
    pub(crate) slots: Vec<u64>,
    kinds: Vec<Kind>,
    starts: Vec<u64>,
    resets: Vec<u64>,
    explicit: Sets,
    ever: Sets,
    nulls: Sets,
    cells: CellsReader<'a>,
}

impl<'a> TailsReader<'a> {
    /// Records in these `slots`, numbered above `through` and up to `allocated`.
    pub(crate) fn read(
        reader: &mut Reader<'a>,
        shape: Shape<'_>,
        slots: Range<usize>,
        (through, allocated): (u64, u64),
        page_records: u64,
    ) -> Result<TailsReader<'a>, Damage> {
        // Numbers take memory, so they have to be here in some way before they are believed.
        let pages = (allocated.div_ceil(page_records) - through / page_records) as usize;
        let pages = reader.array::<u64>(pages.div_ceil(64), "tail pages")?;
        let len = reader.count((allocated - through) as usize, "tail records")?;
        let sequences = reader.numbers_of(len, "sequences")?;
        let is_within = sequences.first().is_none_or(|first| *first > through)
            && sequences.last().is_none_or(|last| *last <= allocated);
        reader.check(is_within && sequences.is_sorted_by(|left, right| left < right), || {
            format!("has tail records that do not ascend between {through} and {allocated}")
        })?;
        reader.check(pages == pages_of(&sequences, (through, allocated), page_records), || {
            "has other tail pages than those of its records".into()
        })?;
        let distances = reader.numbers_of(len, "distances to previous versions")?;
        let mut places = reader.numbers_of(len, "slots of tail records")?;
        let is_within = places.iter().all(|place| *place < slots.len() as u64);
        reader.check(is_within, || format!("has a tail record outside of slots {slots:?}"))?;
        places.iter_mut().for_each(|place| *place += slots.start as u64);
        let kinds = reader.numbers_of(len, "kinds")?;
        let kinds = kinds.into_iter().map(|kind| match kind {
            0 => Ok(Kind::Update),
            1 => Ok(Kind::Snapshot),
            2 => Ok(Kind::Delete),
            kind => Err(reader.damage(&format!("has a tail record of kind {kind}"))),
        });
        let kinds = kinds.collect::<Result<Vec<Kind>, Damage>>()?;
        let starts = reader.numbers_of(len, "start times")?;
        let is_committed = starts.iter().all(|start| shape.is_committed(*start));
        reader.check(is_committed, || format!("has a version that began at no time up to {}", shape.at.0))?;
        let resets = reader.numbers_of(len, "cumulations")?;
        let explicit = Sets::read(reader, shape, len, "values")?;
        let ever = Sets::read(reader, shape, len, "updates")?;
        let nulls = Sets::read(reader, shape, len, "NULLs")?;
        let counts: Vec<usize> = (0..shape.types.len()).map(|column| explicit.count_without(&nulls, column)).collect();
        let cells = CellsReader::read(reader, shape.types, &counts)?;
        let tails =
            TailsReader { sequences, distances, slots: places, kinds, starts, resets, explicit, ever, nulls, cells };
        tails.check_chains(reader, through)?;
        Ok(tails)
    }

    /// Every version stands on an older one of its record, be it in the history or the base page.
    fn check_chains(&self, reader: &Reader<'_>, through: u64) -> Result<(), Damage> {
        for (record, sequence) in self.sequences.iter().enumerate() {
            let distance = self.distances[record];
            reader.check(distance <= *sequence, || format!("has a version {distance} before {sequence}"))?;
            let prev = self.prev(record);
            let stands = prev <= through || {
                let at = self.sequences[..record].binary_search(&prev);
                at.is_ok_and(|at| self.slots[at] == self.slots[record])
            };
            reader.check(stands, || format!("has version {sequence} on {prev}, which is none of its record"))?;
        }
        Ok(())
    }

    fn prev(&self, record: usize) -> u64 {
        match self.distances[record] {
            0 => 0,
            distance => self.sequences[record] - distance,
        }
    }

    /// Passes each record on with its number.
    pub(crate) fn for_each(mut self, mut take: impl FnMut(u64, &NewRecord<'_>)) {
        let mut values = Vec::new();
        for record in 0..self.sequences.len() {
            values.clear();
            for column in self.explicit.of(record).iter() {
                let is_null = self.nulls.contains(record, column);
                values.push((column, if is_null { Cell::Null } else { self.cells.next(column) }));
            }
            let (slot, kind, ever) = (self.slots[record] as usize, self.kinds[record], self.ever.of(record));
            let (prev, start, reset) = (self.prev(record), self.starts[record], self.resets[record]);
            let values = &values;
            let new = NewRecord { prev, slot, kind, start, reset, ever: &ever, values, carried: None };
            take(self.sequences[record], &new);
        }
    }
}
