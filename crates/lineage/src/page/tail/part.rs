//! The records of a tail page that a scan asks for: one by one, or by the page's digest, with the memory of what comes next asked for
//! ahead.
use std::ops::Range;

use sync::Guard;
use sync::atomic::Ordering;
use types::{StartTime, Timestamp};

use super::digest::{Digest, DigestPart, Drawn};
use super::page_table::PageTable;
use super::{TailPage, TailPages, TailRecord};
use crate::page::interrupted::Outdated;

/// Neighbouring records of one page.
#[derive(Clone, Copy)]
pub(crate) struct TailPart<'g> {
    pages: &'g TailPages,
    page: &'g TailPage,
    /// of the page
    index: usize,
    /// the places of the first record in the page, and of the last
    from: usize,
    to: usize,
}

impl TailPages {
    /// Visits the records numbered above `after`, newest first; pages that are not made yet are passed over. Does nothing
    /// and returns an error if some of the records have become history.
    #[inline]
    pub(crate) fn each_newest_first<'g>(
        &'g self,
        guard: &'g Guard,
        after: u64,
        mut visit: impl FnMut(TailRecord<'g>),
    ) -> Result<(), Outdated> {
        self.each_part_newest_first(guard, after, &[], |part| part.records().for_each(&mut visit))
    }

    /// Visits the records numbered above `after` page by page, otherwise as [`each_newest_first`](Self::each_newest_first). Meanwhile asks
    /// for the memory of what digests of the next pages have of some columns.
    #[inline]
    pub(crate) fn each_part_newest_first<'g>(
        &'g self,
        guard: &'g Guard,
        after: u64,
        columns: &[usize],
        mut visit: impl FnMut(TailPart<'g>),
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
            if !columns.is_empty() {
                prefetch_digests(table, first..index, columns);
            }
            let Some(page) = table.get(index) else { continue };
            let from = if index == first { first_at } else { 0 };
            let to = if index == last { last_at } else { self.page_records() - 1 };
            visit(TailPart { pages: self, page, index, from, to });
        }
        Ok(())
    }
}

impl<'g> TailPart<'g> {
    #[inline]
    fn record(self, at: usize) -> TailRecord<'g> {
        TailRecord::new(self.pages, self.page, at, ((self.index << self.pages.page_bits) + at + 1) as u64)
    }

    /// The records, newest first.
    #[inline]
    pub(crate) fn records(self) -> impl Iterator<Item = TailRecord<'g>> {
        (self.from..=self.to).rev().map(move |at| self.record(at))
    }

    /// The records, newest first, where each needs memory of its own: that of the next ones is asked for.
    #[inline]
    pub(crate) fn records_ahead(self) -> impl Iterator<Item = TailRecord<'g>> {
        const AHEAD: usize = 8;
        let soon = move |at: usize| at.checked_sub(AHEAD).filter(|at| *at >= self.from);
        (self.from..=self.to).rev().map(move |at| {
            soon(at).into_iter().for_each(|at| self.record(at).prefetch());
            self.record(at)
        })
    }

    /// Draws up the digest of the page, if it can be.
    #[cold]
    fn draw_up(self) -> Option<&'g Digest> {
        // The last page goes on to be written, and tables of many columns keep their sets elsewhere.
        if self.to + 1 < self.pages.page_records() || self.pages.set_words > 1 {
            return None;
        }
        let drawn = |record: TailRecord<'g>| Drawn {
            start: StartTime::from_word(record.start().load(Ordering::Acquire)),
            kind: record.kind(),
            slot: record.slot(),
            place: record.place_in_page(),
            reset: record.reset(),
        };
        let records = TailPart { from: 0, ..self }.records().map(drawn);
        let digest = Digest::draw_up(records, self.pages.wide.len())?;
        Some(self.page.digest.get_or_init(|| {
            self.page.charge.grow(digest.bytes());
            digest
        }))
    }

    /// The versions of these records in the page's digest, for a scan at this time of these columns on base pages that
    /// have all up to number `floor`; `None` where the records are to be visited.
    #[inline]
    pub(crate) fn digest(self, at: Timestamp, floor: u64, columns: &[usize]) -> Option<DigestPart<'g>> {
        if columns.iter().any(|column| self.pages.wide[*column]) {
            return None;
        }
        let drawn_up = self.page.digest.get().or_else(|| self.draw_up());
        let digest = drawn_up.filter(|digest| digest.serves(at, floor))?;
        for column in columns {
            let value = |record: TailRecord<'_>| (record.word(*column), record.is_null(*column));
            let value = |at| Some(self.record(at)).filter(|record| record.is_explicit(*column)).map(value);
            match digest.draw_up_column(*column, value) {
                0 => {}
                bytes => self.page.charge.grow(bytes),
            }
        }
        Some(digest.part(self.from))
    }
}

/// Asks for the memory of the digests of the last of these pages, one step of the way to their values for each: a scan that comes to a page
/// finds what the steps before it have asked for.
#[inline]
fn prefetch_digests(table: &PageTable<TailPage>, pages: Range<usize>, columns: &[usize]) {
    let page =
        |before: usize| pages.end.checked_sub(before).filter(|at| *at >= pages.start).and_then(|at| table.get(at));
    if let Some(page) = page(3) {
        sync::prefetch(std::ptr::from_ref(&page.digest));
    }
    if let Some(digest) = page(2).and_then(|page| page.digest.get()) {
        digest.prefetch(columns);
    }
    if let Some(digest) = page(1).and_then(|page| page.digest.get()) {
        digest.prefetch_values(columns);
    }
}
