//! Reading records that follow one another, column by column.
//!
//! A short range of keys mostly leads to records side by side, as rows are loaded in the order of their keys. Read record by record, each
//! value is found anew; here a column is decoded for all of them at once, and what the tail has of some is laid over it:
//!
//! ```text
//! pages ──▶ Indirection words: which records have something newer ──▶ columns decoded ──▶ newer values laid over
//! ```
//!
//! A caller that wants values rather than arrays has the words of the rows put into a list that it keeps ([`WordRows`]), which takes a
//! third of the instructions where the rows are ten.
//!
//! As for every read the pages are loaded first and the Indirection words then, so that whatever the pages have merged in is on the
//! chain that such a word starts. A record with something newer is read as any other read would.
use arrow_array::ArrayRef;
use smallvec::SmallVec;
use sync::Guard;
use sync::atomic::Ordering;
use types::Rid;

use crate::memory::source::PageError;
use crate::page::base::{MetaPage, Pages, SettledTimes, Values};
use crate::record::range::{LATCH, Range};
use crate::record::view::{Outcomes, View};
use crate::scan::overlay::overlay;
use crate::value::cell::Cell;
use crate::value::column_builder::ColumnBuilder;
use crate::value::word_rows::WordRows;

/// Records that follow one another in a range.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// the first one
    pub first: Rid,
    /// how many there are
    pub count: usize,
}

impl Stretch {
    /// The records.
    pub fn records(self) -> impl Iterator<Item = Rid> {
        (0..self.count).map(move |at| Rid::base(self.first.range(), self.first.slot() + at))
    }

    /// The slots, from the first to the one behind the last.
    fn slots(self) -> (usize, usize) {
        (self.first.slot(), self.first.slot() + self.count)
    }
}

/// The places of the records that have something newer than the base pages, counted from the first.
type Newer = SmallVec<[u32; 16]>;

/// Which records a view plainly sees as base pages have them: what is there was committed in time, and is stamped.
pub(crate) struct PlainlySeen<'a, O> {
    view: View<'a, O>,
    /// `None` if all are seen
    times: Option<SettledTimes<'a>>,
}

impl<'a, O: Outcomes> PlainlySeen<'a, O> {
    /// Those of some pages.
    pub(crate) fn in_pages(guard: &'a Guard, pages: &'a Pages, view: View<'a, O>) -> Result<Self, PageError> {
        let times = match &pages.meta {
            MetaPage::Base(meta) if meta.is_all_visible_at(view.snapshot.at) => None,
            meta => Some(meta.settled_times(guard)?),
        };
        Ok(PlainlySeen { view, times })
    }

    /// Whether the record at `slot` is one of them.
    #[inline]
    pub(crate) fn has(&self, slot: usize) -> bool {
        self.times.is_none_or(|times| times.at(slot).is_some_and(|at| self.view.is_in_time(at)))
    }
}

impl Range {
    /// The values of some columns of the stretch, which is in this range, as arrays of the columns' types. `None` if one of the records
    /// is not there for the view, or cannot be told to be by a look at it.
    pub(crate) fn stretch<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        stretch: Stretch,
        columns: &[usize],
    ) -> Result<Option<Vec<ArrayRef>>, PageError> {
        let slots = stretch.slots();
        if slots.1 > self.len() {
            return Ok(None);
        }
        let pages = self.pages.load(guard);
        let Some(newer) = self.newer(guard, pages, view, slots)? else { return Ok(None) };
        let mut patches: SmallVec<[Vec<(u32, Cell<'_>)>; 8]> = SmallVec::from_elem(Vec::new(), columns.len());
        let mut cells: SmallVec<[Cell<'_>; 8]> = SmallVec::from_elem(Cell::Null, columns.len());
        for at in newer {
            if !self.read(guard, view, slots.0 + at as usize, columns, &mut cells)? {
                return Ok(None);
            }
            patches.iter_mut().zip(&cells).for_each(|(patches, cell)| patches.push((at, *cell)));
        }
        let column = |(column, patches): (&usize, &Vec<_>)| self.column(guard, pages, *column, slots, patches);
        columns.iter().zip(&patches).map(column).collect::<Result<_, _>>().map(Some)
    }

    /// Adds the words of some columns of the stretch to `rows`, as [`stretch`](Self::stretch) gives them as arrays; false where that gives
    /// nothing, and nothing is added. All of the columns are stored as words.
    pub(crate) fn stretch_words<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        stretch: Stretch,
        rows: &mut WordRows,
    ) -> Result<bool, PageError> {
        let slots = stretch.slots();
        if slots.1 > self.len() {
            return Ok(false);
        }
        let pages = self.pages.load(guard);
        let Some(newer) = self.newer(guard, pages, view, slots)? else { return Ok(false) };
        let first = rows.len();
        rows.add(stretch.count);
        for place in 0..rows.columns().len() {
            self.put_words(guard, pages, (place, slots), (first, rows))?;
        }
        let mut cells: SmallVec<[Cell<'_>; 8]> = SmallVec::from_elem(Cell::Null, rows.columns().len());
        for at in newer {
            if !self.read(guard, view, slots.0 + at as usize, rows.columns(), &mut cells)? {
                rows.truncate(first);
                return Ok(false);
            }
            rows.put(first + at as usize, &cells);
        }
        Ok(true)
    }

    /// Puts the words that the pages have of one of the columns of `rows` into these, from row `first` on.
    fn put_words(
        &self,
        guard: &Guard,
        pages: &Pages,
        (place, (from, to)): (usize, (usize, usize)),
        (first, rows): (usize, &mut WordRows),
    ) -> Result<(), PageError> {
        let column = rows.columns()[place];
        let (page, mut values) = (&pages.columns[column], rows.column_from(first, place));
        if let Values::Column(encoded) = &page.values {
            encoded.get(guard)?.each_word(from, to, |at, word| values.put(at, word));
            return Ok(());
        }
        for (at, slot) in (from..to).enumerate() {
            values.put(at, page.cell(guard, column, slot)?.word());
        }
        Ok(())
    }

    /// Which of the records have something newer than these pages; `None` if another is not plainly seen in them.
    fn newer<O: Outcomes>(
        &self,
        guard: &Guard,
        pages: &Pages,
        view: View<'_, O>,
        (from, to): (usize, usize),
    ) -> Result<Option<Newer>, PageError> {
        let (seen, mut newer) = (PlainlySeen::in_pages(guard, pages, view)?, Newer::new());
        for slot in from..to {
            if self.has_newer(pages, slot) {
                newer.push((slot - from) as u32);
            } else if !seen.has(slot) {
                return Ok(None);
            }
        }
        Ok(Some(newer))
    }

    /// Whether a record has something newer than these pages, which were loaded before.
    #[inline]
    pub(crate) fn has_newer(&self, pages: &Pages, slot: usize) -> bool {
        self.indirection[slot].load(Ordering::Acquire) & !LATCH > pages.floor[self.part_of(slot)]
    }

    /// A column of the records, with the newer values of some of them.
    fn column(
        &self,
        guard: &Guard,
        pages: &Pages,
        column: usize,
        (from, to): (usize, usize),
        patches: &[(u32, Cell<'_>)],
    ) -> Result<ArrayRef, PageError> {
        let (page, data_type) = (&pages.columns[column], self.types[column]);
        if let Values::Column(encoded) = &page.values {
            return Ok(overlay(encoded.get(guard)?.decode(from, to), data_type, patches));
        }
        let (mut builder, mut patches) = (ColumnBuilder::new(data_type, to - from), patches.iter().peekable());
        for slot in from..to {
            match patches.next_if(|(at, _)| from + *at as usize == slot) {
                Some((_, cell)) => builder.push(*cell),
                None => builder.push(page.cell(guard, column, slot)?),
            }
        }
        Ok(builder.finish())
    }
}
