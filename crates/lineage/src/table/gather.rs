//! Reading records that lie anywhere, column by column.
//!
//! Neighbouring keys of which some were deleted and put in again lead to records here and there. Read one by one, the pages, the time of
//! each record and the kind of each column are found anew. Here it is found first where each record's values are, and then the values are
//! read:
//!
//! ```text
//! Rids ──▶ each record: the base pages of its range have what the view sees, or it is read by itself
//!      ──▶ column by column, range by range: the values at the slots that are read there, each put in the place of its record
//! ```
//!
//! As for every read the pages are loaded first and the Indirection words then.
use smallvec::SmallVec;
use sync::Guard;
use types::Rid;

use crate::memory::source::PageError;
use crate::page::base::{Pages, Values};
use crate::record::range::Range;
use crate::record::view::{Outcomes, View};
use crate::scan::stretch::PlainlySeen;
use crate::table::Table;
use crate::value::cell::{Cell, is_wide};
use crate::value::word_rows::WordRows;

/// The values of a column, in the order of the records.
#[derive(Clone, Copy, Debug)]
pub enum GatheredColumn<'a, 'g> {
    /// words, none of them NULL
    Words(&'a [u64]),
    /// what is not words, and where one is NULL
    Cells(&'a [Cell<'g>]),
}

/// Records of a range whose values are in its base pages: the slots, and the numbers of the records among all.
struct Place<'g, O> {
    number: usize,
    range: &'g Range,
    pages: &'g Pages,
    seen: PlainlySeen<'g, O>,
    slots: Vec<u32>,
    records: Vec<u32>,
}

/// Records of which it is known where their values are.
struct Located<'g, O> {
    count: usize,
    ranges: SmallVec<[Place<'g, O>; 2]>,
    /// the numbers of the records that were read, and their values, row behind row
    read: Vec<u32>,
    cells: Vec<Cell<'g>>,
}

/// Records may lie in many ranges: of so many it is looked whether one is there already.
const RANGES_SEARCHED: usize = 8;

impl Table {
    /// Reads records, and passes the values of some columns to `take`, column by column, each with its place among `columns`. Ends before
    /// the first record that is not there for the view, and returns how many it has read.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back; what was passed says nothing then.
    pub fn gather<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        view: View<'g, O>,
        rids: &[Rid],
        columns: &[usize],
        mut take: impl FnMut(usize, GatheredColumn<'_, 'g>),
    ) -> Result<usize, PageError> {
        let located = self.locate(guard, view, rids, columns)?;
        let (mut words, mut cells) = (Vec::new(), Vec::new());
        for (place, column) in columns.iter().copied().enumerate() {
            let (place, has_bytes) = ((place, columns.len()), is_wide(self.schema().columns()[column].data_type));
            if !has_bytes {
                words.clear();
                words.resize(located.count, 0);
                let mut has_null = false;
                located.each_value(guard, (column, has_bytes), place, |record, cell| match cell {
                    Cell::Word(word) => words[record] = word,
                    Cell::Null | Cell::Bytes(_) => has_null = true,
                })?;
                if !has_null {
                    take(place.0, GatheredColumn::Words(&words));
                    continue;
                }
            }
            cells.clear();
            cells.resize(located.count, Cell::Null);
            located.each_value(guard, (column, has_bytes), place, |record, cell| cells[record] = cell)?;
            take(place.0, GatheredColumn::Cells(&cells));
        }
        Ok(located.count)
    }

    /// As [`gather`](Self::gather): adds the words of the columns of `rows` to these.
    ///
    /// # Errors
    /// As [`gather`](Self::gather); rows that were added then say nothing.
    pub fn gather_words<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        view: View<'g, O>,
        rids: &[Rid],
        rows: &mut WordRows,
    ) -> Result<usize, PageError> {
        let (first, columns) = (rows.len(), SmallVec::<[usize; 8]>::from(rows.columns()));
        rows.add(rids.len());
        let count = self.gather(guard, view, rids, &columns, |place, values| {
            let mut column = rows.column_from(first, place);
            match values {
                GatheredColumn::Words(words) => {
                    words.iter().enumerate().for_each(|(at, word)| column.put(at, Some(*word)))
                }
                GatheredColumn::Cells(cells) => {
                    cells.iter().enumerate().for_each(|(at, cell)| column.put(at, cell.word()))
                }
            }
        })?;
        rows.truncate(first + count);
        Ok(count)
    }

    /// Finds where the values of the records are, up to the first that is not there.
    fn locate<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        view: View<'g, O>,
        rids: &[Rid],
        columns: &[usize],
    ) -> Result<Located<'g, O>, PageError> {
        rids.iter().for_each(|rid| self.range(rid.range()).prefetch_indirection(rid.slot()));
        let mut located = Located { count: 0, ranges: SmallVec::new(), read: Vec::new(), cells: Vec::new() };
        let mut at = 0;
        for rid in rids {
            if located.ranges.get(at).is_none_or(|place| place.number != rid.range()) {
                at = located.place_of(rid.range()).unwrap_or(located.ranges.len());
                if at == located.ranges.len() {
                    let room = rids.len() - located.count;
                    located.ranges.push(Place::new(guard, (rid.range(), self.range(rid.range())), view, room)?);
                }
            }
            let (place, slot, record) = (&mut located.ranges[at], rid.slot(), located.count as u32);
            if !place.range.has_newer(place.pages, slot) && place.seen.has(slot) {
                place.slots.push(slot as u32);
                place.records.push(record);
            } else {
                let before = located.cells.len();
                if before == 0 {
                    let left = rids.len() - located.count;
                    located.read.reserve(left);
                    located.cells.reserve(left * columns.len());
                }
                located.cells.resize(before + columns.len(), Cell::Null);
                if !place.range.read(guard, view, slot, columns, &mut located.cells[before..])? {
                    break;
                }
                located.read.push(record);
            }
            located.count += 1;
        }
        debug_assert!(located.count <= rids.len(), "each record is located once");
        Ok(located)
    }
}

impl<'g, O: Outcomes> Located<'g, O> {
    /// The place of a range among these, if it is known to be there.
    fn place_of(&self, number: usize) -> Option<usize> {
        let first = self.ranges.len().saturating_sub(RANGES_SEARCHED);
        let at = self.ranges[first..].iter().position(|place| place.number == number)?;
        Some(first + at)
    }

    /// Passes the values of a column that has bytes, or else words, each with the number of its record. Of the values that were read the
    /// column's are at this place among so many of each record.
    #[inline]
    fn each_value(
        &self,
        guard: &'g Guard,
        (column, has_bytes): (usize, bool),
        (place, width): (usize, usize),
        mut put: impl FnMut(usize, Cell<'g>),
    ) -> Result<(), PageError> {
        for range in self.ranges.iter().filter(|range| !range.slots.is_empty()) {
            let (page, places) = (&range.pages.columns[column], range.slots.iter().zip(&range.records));
            match &page.values {
                Values::Column(encoded) if !has_bytes => {
                    let mut records = range.records.iter();
                    encoded.get(guard)?.each_word_at(&range.slots, |word| {
                        let record = records.next().map_or(usize::MAX, |record| *record as usize);
                        put(record, word.map_or(Cell::Null, Cell::Word));
                    });
                }
                Values::Column(encoded) => {
                    let encoded = encoded.get(guard)?;
                    places.for_each(|(slot, record)| put(*record as usize, encoded.cell(*slot as usize)));
                }
                Values::Insert(_) | Values::Rows(_) => {
                    for (slot, record) in places {
                        put(*record as usize, page.cell(guard, column, *slot as usize)?);
                    }
                }
            }
        }
        for (row, record) in self.read.iter().enumerate() {
            put(*record as usize, self.cells[row * width + place]);
        }
        Ok(())
    }
}

impl<'g, O: Outcomes> Place<'g, O> {
    /// A range with its number, with room for so many records.
    fn new(
        guard: &'g Guard,
        (number, range): (usize, &'g Range),
        view: View<'g, O>,
        room: usize,
    ) -> Result<Self, PageError> {
        let pages = range.pages.load(guard);
        let seen = PlainlySeen::in_pages(guard, pages, view)?;
        let list = || Vec::with_capacity(room);
        Ok(Place { number, range, pages, seen, slots: list(), records: list() })
    }
}
