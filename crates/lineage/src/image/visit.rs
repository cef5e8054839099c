//! The versions of a range, for building an index of what was restored.
//!
//! An index has an entry for every value that a record has in some version that can still be seen. Most records have one:
//! what the base page or the insert page holds. Others follow, of the records only that have versions in the tail or in the
//! history which name one of the columns: at the start of each such version the record is read as a snapshot sees it.
//!
//! It may be asked while others write, merge and archive. Pages are loaded first, so that what moves meanwhile moves to a place
//! that is looked at later: from the tail into the history. Only what a merge puts into newer pages can be gone from both when
//! no snapshot needs it there; then the pages that were loaded are too old, and the range is visited again.
use std::collections::HashSet;

use smallvec::SmallVec;
use sync::Guard;
use types::{Rid, Snapshot, Timestamp, TxnId};

use crate::memory::source::PageError;
use crate::page::base::{MetaPage, Pages};
use crate::page::lent::Lent;
use crate::record::range::Range;
use crate::record::view::{Outcome, Outcomes, Resolved, View, resolve};
use crate::table::Table;
use crate::value::cell::Cell;
use crate::value::kind::Kind;

/// Only what is stamped counts.
struct Stamped;

impl Outcomes for Stamped {
    fn outcome(&self, _: TxnId) -> Outcome {
        Outcome::Active
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        false
    }

    fn await_decision(&self, _: TxnId) {}
}

impl Table {
    /// Passes the values of some columns on, record by record and for every version that there is: what the base page holds,
    /// and what each version in tail and history had that changed one of them. The same values may come more than once.
    /// Transactions that have not stamped their versions are left out.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back. Some versions may have been passed on.
    pub fn for_each_version_of_columns(
        &self,
        range: usize,
        columns: &[usize],
        visit: impl FnMut(Rid, &[Cell<'_>]),
    ) -> Result<(), PageError> {
        self.for_each_committed_version(range, columns, self.horizon(), &Stamped, visit)
    }

    /// Passes the values of some columns on while others use the table: of every version that is visible at `from`
    /// or later and had committed when this was called, stamped or not. Of what commits meanwhile some is passed
    /// on. The caller keeps what there is from then on ([`Table::keep_all`]).
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back. Some versions may have been passed on.
    pub fn for_each_committed_version<O: Outcomes>(
        &self,
        range: usize,
        columns: &[usize],
        from: Timestamp,
        outcomes: &O,
        mut visit: impl FnMut(Rid, &[Cell<'_>]),
    ) -> Result<(), PageError> {
        let mut visit = |slot: usize, cells: &[Cell<'_>]| visit(Rid::base(range, slot), cells);
        let range = self.range(range);
        while !range.for_each_version(&sync::pin(), columns, from, outcomes, &mut visit)? {}
        Ok(())
    }

    /// Passes on the words of a column that no update has changed, record by record from slot 0 on, where each record of the range
    /// has base pages, is committed, and has a value. False, and nothing is passed on, for any other range.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back. Nothing was passed on then.
    pub fn for_each_base_word(
        &self,
        range: usize,
        column: usize,
        mut visit: impl FnMut(usize, u64),
    ) -> Result<bool, PageError> {
        let (guard, lent, range) = (&sync::pin(), Lent::new(1), self.range(range));
        let pages = range.pages.load(guard);
        let is_whole = matches!(&pages.meta, MetaPage::Base(meta) if meta.is_all_visible_at(Timestamp::MAX));
        if !is_whole {
            return Ok(false);
        }
        let values = lent.values(guard, &pages.columns[column], (0, column))?;
        let word = |slot| match values.cell(slot) {
            Cell::Word(word) => Some(word),
            Cell::Null | Cell::Bytes(_) => None,
        };
        let Some(words) = (0..range.len()).map(word).collect::<Option<Vec<u64>>>() else { return Ok(false) };
        words.into_iter().enumerate().for_each(|(slot, word)| visit(slot, word));
        Ok(true)
    }
}

impl Range {
    /// Returns whether all was visited: false if newer pages have what is nowhere else.
    fn for_each_version<O: Outcomes>(
        &self,
        guard: &Guard,
        columns: &[usize],
        from: Timestamp,
        outcomes: &O,
        visit: &mut impl FnMut(usize, &[Cell<'_>]),
    ) -> Result<bool, PageError> {
        let (pages, lent) = (self.pages.load(guard), Lent::new(columns.len()));
        let mut cells = vec![Cell::Null; columns.len()];
        let starts = lent.starts(guard, &pages.meta)?;
        let base = |(i, column): (usize, &usize)| lent.values(guard, &pages.columns[*column], (i, *column));
        let base = columns.iter().enumerate().map(base).collect::<Result<Vec<_>, PageError>>()?;
        let inserted = |slot: usize| match resolve(starts.word(slot), outcomes) {
            Resolved::Committed(at) => Some(at),
            _ => None,
        };
        for slot in (0..self.len()).filter(|slot| inserted(*slot).is_some()) {
            cells.iter_mut().zip(&base).for_each(|(cell, base)| *cell = base.cell(slot));
            visit(slot, &cells);
        }
        let mut changes = self.changes_of(guard, columns, outcomes, visit)?;
        if self.is_outdated(guard, pages, columns) {
            return Ok(false);
        }
        changes.sort_unstable();
        changes.dedup();
        for changes in changes.chunk_by(|left, right| left.0 == right.0) {
            let slot = changes[0].0;
            // The first version that is known is the one at `from`: older ones are not asked for.
            let times = changes.iter().rev().map(|(_, at)| *at).chain(inserted(slot));
            let mut descent = self.descend(guard, slot, columns);
            for at in times.map(|at| at.max(from)) {
                let view = View { snapshot: Snapshot::at(at), outcomes };
                if let Some(cells) = descent.read(view)? {
                    visit(slot, cells);
                }
            }
        }
        Ok(true)
    }

    /// Whether some of what these pages have not merged is gone from the tail and the history.
    fn is_outdated(&self, guard: &Guard, pages: &Pages, columns: &[usize]) -> bool {
        let given_up = |part: usize| self.parts[part].archive.load(guard).history.given_up();
        (0..self.parts.len()).any(|part| given_up(part) > pages.tps_min(part, columns))
    }

    /// Visits the versions that have a value for each of these columns, and returns slot and start of those that have one for
    /// some of them: what they left as it was is with a version before.
    fn changes_of<O: Outcomes>(
        &self,
        guard: &Guard,
        columns: &[usize],
        outcomes: &O,
        visit: &mut impl FnMut(usize, &[Cell<'_>]),
    ) -> Result<Vec<(usize, Timestamp)>, PageError> {
        let (mut changes, mut known) = (Vec::new(), HashSet::new());
        let mut changed = |slot: usize, at: Timestamp, has: &dyn Fn(usize) -> bool| {
            // The values before the first change are asked for as well, once.
            let is_first = known.insert(slot);
            let is_whole = columns.iter().all(|column| has(*column));
            if is_first || !is_whole && columns.iter().any(|column| has(*column)) {
                changes.push((slot, at));
            }
            is_whole
        };
        for part in &self.parts {
            part.tails.each_live(guard, |record| {
                if record.kind() == Kind::Update
                    && columns.iter().any(|column| record.is_explicit(*column))
                    && let Resolved::Committed(at) = resolve(record.start(), outcomes)
                    && changed(record.slot(), at, &|column| record.is_explicit(column))
                {
                    visit(record.slot(), &cells_of(columns, |column| record.cell(column)));
                }
            });
            for page in part.archive.load(guard).history.pages() {
                let page = &*page.hold(guard)?;
                let versions = page.slots().flat_map(|slot| page.versions(slot).map(move |version| (slot, version)));
                for (slot, version) in versions.filter(|(_, version)| version.kind() == Kind::Update) {
                    if columns.iter().any(|column| version.is_explicit(*column))
                        && changed(slot, Timestamp(version.start()), &|column| version.is_explicit(column))
                    {
                        visit(slot, &cells_of(columns, |column| version.cell(column)));
                    }
                }
            }
        }
        Ok(changes)
    }
}

fn cells_of<'c>(columns: &[usize], cell: impl Fn(usize) -> Cell<'c>) -> SmallVec<[Cell<'c>; 4]> {
    columns.iter().map(|column| cell(*column)).collect()
}
