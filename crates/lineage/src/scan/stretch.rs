//! Reading records that follow one another, column by column.
//!
//! A short range of keys mostly leads to records side by side, as rows are loaded in the order of their keys. Read record by record, each
//! value is found anew; here a column is decoded for all of them at once, and what the tail has of some is laid over it:
//!
//! ```text
//! pages ──▶ Indirection words: which records have something newer ──▶ columns decoded ──▶ newer values laid over
//! ```
//!
//! A few of the rows may lie elsewhere, as when one was deleted and put in again: these are laid over as well, in place of the records that
//! their keys had before.
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
use crate::page::base::{MetaPage, Pages, Values};
use crate::record::range::{LATCH, Range};
use crate::record::view::{Outcomes, View};
use crate::scan::overlay::overlay;
use crate::value::cell::Cell;
use crate::value::column_builder::ColumnBuilder;
use crate::value::word_rows::WordRows;

/// Records that follow one another in a range, but for some.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// the first one
    pub first: Rid,
    /// how many there are
    pub count: usize,
    /// other records that are meant at some places of the stretch, counted from its first; ascending
    pub elsewhere: &'a [(u32, Rid)],
}

impl Stretch<'_> {
    /// The records, place by place.
    pub fn records(&self) -> impl Iterator<Item = Rid> {
        let (first, mut elsewhere) = (self.first, self.elsewhere.iter().peekable());
        (0..self.count).map(move |at| match elsewhere.next_if(|(place, _)| *place as usize == at) {
            Some((_, rid)) => *rid,
            None => Rid::base(first.range(), first.slot() + at),
        })
    }
}

/// The values that do not come from the base pages, by their places among those that are read: of a record with something newer, or of
/// another record.
type Newer = SmallVec<[(u32, Option<Rid>); 16]>;

impl Range {
    /// The values of some columns of the stretch, which begins in this range, as arrays of the columns' types; what lies elsewhere is
    /// read by `read_other`, which says whether the record is there. `None` if one of the records is not there for the view, or cannot be
    /// told to be by a look at it.
    pub(crate) fn stretch<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        view: View<'_, O>,
        stretch: Stretch<'_>,
        columns: &[usize],
        read_other: impl Fn(Rid, &mut [Cell<'g>]) -> Result<bool, PageError>,
    ) -> Result<Option<Vec<ArrayRef>>, PageError> {
        let slots = (stretch.first.slot(), stretch.first.slot() + stretch.count);
        if slots.1 > self.len() {
            return Ok(None);
        }
        let pages = self.pages.load(guard);
        let Some(newer) = self.newer(guard, pages, view, slots, stretch.elsewhere)? else { return Ok(None) };
        let mut patches: SmallVec<[Vec<(u32, Cell<'_>)>; 8]> = SmallVec::from_elem(Vec::new(), columns.len());
        let mut cells: SmallVec<[Cell<'_>; 8]> = SmallVec::from_elem(Cell::Null, columns.len());
        for (at, other) in newer {
            let is_there = match other {
                Some(rid) => read_other(rid, &mut cells)?,
                None => self.read(guard, view, slots.0 + at as usize, columns, &mut cells)?,
            };
            if !is_there {
                return Ok(None);
            }
            patches.iter_mut().zip(&cells).for_each(|(patches, cell)| patches.push((at, *cell)));
        }
        let column = |(column, patches): (&usize, &Vec<_>)| self.column(guard, pages, *column, slots, patches);
        columns.iter().zip(&patches).map(column).collect::<Result<_, _>>().map(Some)
    }

    /// Adds the words of some columns of the stretch to `rows`, as [`stretch`](Self::stretch) gives them as arrays; false where that gives
    /// nothing, and nothing is added. All of the columns are stored as words.
    pub(crate) fn stretch_words<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        view: View<'_, O>,
        stretch: Stretch<'_>,
        rows: &mut WordRows,
        read_other: impl Fn(Rid, &[usize], &mut [Cell<'g>]) -> Result<bool, PageError>,
    ) -> Result<bool, PageError> {
        let slots = (stretch.first.slot(), stretch.first.slot() + stretch.count);
        if slots.1 > self.len() {
            return Ok(false);
        }
        let pages = self.pages.load(guard);
        let Some(newer) = self.newer(guard, pages, view, slots, stretch.elsewhere)? else { return Ok(false) };
        let first = rows.len();
        rows.add(stretch.count);
        for place in 0..rows.columns().len() {
            self.put_words(guard, pages, (place, slots), (first, rows))?;
        }
        let mut cells: SmallVec<[Cell<'_>; 8]> = SmallVec::from_elem(Cell::Null, rows.columns().len());
        for (at, other) in newer {
            let is_there = match other {
                Some(rid) => read_other(rid, rows.columns(), &mut cells)?,
                None => self.read(guard, view, slots.0 + at as usize, rows.columns(), &mut cells)?,
            };
            if !is_there {
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

    /// Which of the records lie elsewhere or have something newer than these pages; `None` if another is not plainly seen in them.
    fn newer<O: Outcomes>(
        &self,
        guard: &Guard,
        pages: &Pages,
        view: View<'_, O>,
        (from, to): (usize, usize),
        elsewhere: &[(u32, Rid)],
    ) -> Result<Option<Newer>, PageError> {
        let settled = match &pages.meta {
            MetaPage::Base(meta) if meta.is_all_visible_at(view.snapshot.at) => None,
            meta => Some(meta.settled_times(guard)?),
        };
        let is_seen = |slot: usize| settled.is_none_or(|times| times.at(slot).is_some_and(|at| view.is_in_time(at)));
        let (mut newer, mut elsewhere) = (Newer::new(), elsewhere.iter().peekable());
        for slot in from..to {
            if let Some((at, rid)) = elsewhere.next_if(|(at, _)| from + *at as usize == slot) {
                newer.push((*at, Some(*rid)));
            } else if self.indirection[slot].load(Ordering::Acquire) & !LATCH > pages.floor[self.part_of(slot)] {
                newer.push(((slot - from) as u32, None));
            } else if !is_seen(slot) {
                return Ok(None);
            }
        }
        Ok(Some(newer))
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
