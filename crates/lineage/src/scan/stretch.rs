//! Reading records that follow one another, column by column.
//!
//! A short range of keys mostly leads to records side by side, as rows are loaded in the order of their keys. Read record by record, each
//! value is found anew; here a column is decoded for all of them at once, and what the tail has of some is laid over it:
//!
//! ```text
//! pages ──▶ Indirection words: which records have something newer ──▶ columns decoded ──▶ newer values laid over
//! ```
//!
//! As for every read the pages are loaded first and the Indirection words then, so that whatever the pages have merged in is on the
//! chain that such a word starts. A record with something newer is read as any other read would.
use arrow_array::ArrayRef;
use smallvec::SmallVec;
use sync::Guard;
use sync::atomic::Ordering;

use crate::memory::source::PageError;
use crate::page::base::{MetaPage, Pages, Values};
use crate::record::point::sees_base;
use crate::record::range::{LATCH, Range};
use crate::record::view::{Outcomes, View};
use crate::scan::overlay::overlay;
use crate::value::cell::Cell;
use crate::value::column_builder::ColumnBuilder;

/// The records that have something newer than their base values: by their places among those that are read.
type Newer = SmallVec<[u32; 16]>;

impl Range {
    /// The values of some columns of the records in the slots `from..to`, as arrays of the columns' types. `None` if one of the records is
    /// not there for the view, or cannot be told to be by a look at it.
    pub(crate) fn stretch<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        slots @ (_, to): (usize, usize),
        columns: &[usize],
    ) -> Result<Option<Vec<ArrayRef>>, PageError> {
        if to > self.len() {
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

    /// Which of the records have something newer than these pages; `None` if another is not plainly seen in them.
    fn newer<O: Outcomes>(
        &self,
        guard: &Guard,
        pages: &Pages,
        view: View<'_, O>,
        (from, to): (usize, usize),
    ) -> Result<Option<Newer>, PageError> {
        let are_all_seen = matches!(&pages.meta, MetaPage::Base(meta) if meta.is_all_visible_at(view.snapshot.at));
        let mut newer = Newer::new();
        for slot in from..to {
            if self.indirection[slot].load(Ordering::Acquire) & !LATCH > pages.floor[self.part_of(slot)] {
                newer.push((slot - from) as u32);
            } else if !are_all_seen && !sees_base(guard, pages, view, slot)? {
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
