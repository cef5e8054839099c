//! Reading a record (L-Store, sections 2.2, 3 and 4.2).
//!
//! First the pages are loaded, then the Indirection word: whatever a loaded page has merged in is then on the chain that
//! the word starts. If the newest version's number is within the TPS of every page read, and the record's Last Updated
//! Time is within the snapshot, the base pages hold the answer. Otherwise the chain is walked from the newest version on:
//!
//! - a tombstone and another transaction's or one's own lock are nothing;
//! - a version that the snapshot does not see is skipped, and the columns that it updated are marked as *newer*:
//!   base pages may have merged it in and must not be used for them;
//! - a snapshot record gives the original values of columns that only invisible versions have updated;
//! - the first visible version decides whether the record exists, and gives its explicit columns. A column that it
//!   lacks is in the base page if it was never updated, or if the page's TPS has reached the number at which the
//!   version's cumulation was reset (the writer left the column out because a page had merged it). Else the walk goes
//!   on;
//! - where the chain leaves the tail pages it goes on in the history pages of the update range, which hold what remains
//!   of the record's versions, newest first; a column found nowhere is in the base page.
//!
//! So the newest version of any column is at most two hops away (debug builds count), and an old snapshot's as far as
//! its age asks for.
use sync::Guard;
use sync::atomic::Ordering;

use crate::history::Version;
use crate::memory::source::PageError;
use crate::page::base::{MetaPage, Pages};
use crate::page::interrupted::Interrupted;
use crate::page::tail::TailRecord;
use crate::record::range::{LATCH, Range};
use crate::record::view::{Outcomes, View, Visibility};
use crate::value::cell::Cell;
use crate::value::column_set::ColumnSet;
use crate::value::kind::Kind;

mod descent;

/// The state of a walk along a record's chain.
struct Walk<'w, 'g> {
    guard: &'g Guard,
    columns: &'w [usize],
    out: &'w mut [Cell<'g>],
    /// positions in `columns` with a value found
    found: ColumnSet,
    missing: usize,
    /// columns updated by versions that the snapshot does not see
    newer: ColumnSet,
    /// the oldest of these versions
    newer_oldest: u64,
    /// whether a visible version was met
    exists: bool,
    /// records looked at since the first one that is visible
    hops: usize,
}

impl Range {
    /// Reads the version of the record at `slot` that `view` sees: fills `out[i]` with the value of `columns[i]` and
    /// returns true, or returns false where the view sees no record.
    #[inline]
    pub(crate) fn read<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        view: View<'_, O>,
        slot: usize,
        columns: &[usize],
        out: &mut [Cell<'g>],
    ) -> Result<bool, PageError> {
        loop {
            let pages = self.pages.load(guard);
            match self.read_from(guard, pages, view, slot, columns, out) {
                Ok(exists) => return Ok(exists),
                Err(Interrupted::Outdated) => {}
                Err(Interrupted::Page(error)) => return Err(error),
            }
        }
    }

    /// Reads the version of the record that `view` sees from pages loaded before.
    #[inline]
    pub(crate) fn read_from<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        pages: &'g Pages,
        view: View<'_, O>,
        slot: usize,
        columns: &[usize],
        out: &mut [Cell<'g>],
    ) -> Result<bool, Interrupted> {
        let newest = self.indirection[slot].load(Ordering::Acquire) & !LATCH;
        match self.read_merged(guard, pages, view, (slot, newest), columns, out)? {
            Some(exists) => Ok(exists),
            None => self.read_chain(guard, pages, view, slot, newest, columns, out),
        }
    }

    /// Reads from the base pages alone. `None` if there is more to it.
    #[inline]
    fn read_merged<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        pages: &'g Pages,
        view: View<'_, O>,
        (slot, newest): (usize, u64),
        columns: &[usize],
        out: &mut [Cell<'g>],
    ) -> Result<Option<bool>, PageError> {
        if newest <= pages.tps_min(self.part_of(slot), columns) {
            let exists = match &pages.meta {
                MetaPage::Base(meta) if meta.is_all_visible_at(view.snapshot.at) => Some(true),
                MetaPage::Base(meta)
                    if meta.newest > view.snapshot.at && meta.last_updated(guard, slot)? > view.snapshot.at.0 =>
                {
                    None
                }
                MetaPage::Base(meta) => {
                    Some(!meta.is_deleted(guard, slot)? && is_base_visible(guard, pages, view, slot)?)
                }
                MetaPage::Insert { .. } => Some(is_base_visible(guard, pages, view, slot)?),
            };
            match exists {
                Some(true) => {
                    for (i, &column) in columns.iter().enumerate() {
                        out[i] = pages.columns[column].cell(guard, column, slot)?;
                    }
                    return Ok(Some(true));
                }
                Some(false) => return Ok(Some(false)),
                None => {}
            }
        }
        Ok(None)
    }

    /// The common case of a walk, in few instructions: the newest version is visible, has the columns or leaves them to the
    /// base pages. False where there is more to it; `out` is to be filled again then.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "what a read is made of")]
    fn read_two_hops<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        pages: &'g Pages,
        view: View<'_, O>,
        (slot, part): (usize, usize),
        newest: u64,
        columns: &[usize],
        out: &mut [Cell<'g>],
    ) -> Result<bool, PageError> {
        let record = if newest > 0 { self.parts[part].tails.get(guard, newest) } else { None };
        let Some(record) = record.filter(|record| record.kind() == Kind::Update) else { return Ok(false) };
        let Some(few) = record.few() else { return Ok(false) };
        if record.visibility(view) != Visibility::Visible {
            return Ok(false);
        }
        let reset = record.reset();
        for (out, &column) in out.iter_mut().zip(columns) {
            let page = &pages.columns[column];
            *out = match few.explicit(column) {
                Some(cell) => cell,
                None if !few.was_ever_updated(column) || page.lineage[part] >= reset => {
                    page.cell(guard, column, slot)?
                }
                None => return Ok(false),
            };
        }
        Ok(true)
    }

    /// Walks the chain of the record at `slot` from its version numbered `newest` on.
    #[expect(clippy::too_many_arguments, reason = "what a read is made of")]
    pub(crate) fn read_chain<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        pages: &'g Pages,
        view: View<'_, O>,
        slot: usize,
        newest: u64,
        columns: &[usize],
        out: &mut [Cell<'g>],
    ) -> Result<bool, Interrupted> {
        let part = self.part_of(slot);
        if self.read_two_hops(guard, pages, view, (slot, part), newest, columns, out)? {
            return Ok(true);
        }
        let mut walk = Walk::new(guard, columns, out);
        let mut sequence = newest;
        while sequence != 0 {
            let Some(record) = self.parts[part].tails.get(guard, sequence) else {
                let history = &self.parts[part].archive.load(guard).history;
                if history.given_up() > pages.tps_min(part, columns) {
                    return Err(Interrupted::Outdated);
                }
                for page in history.pages_of(slot) {
                    for version in page.get(guard)?.versions_seen(slot, view.snapshot.at.0) {
                        if let Some(exists) = walk.visit_history(&version) {
                            return Ok(exists);
                        }
                    }
                }
                break;
            };
            sequence = record.prev();
            if let Some(exists) = walk.visit_tail(&record, view, pages, slot, part)? {
                return Ok(exists);
            }
        }
        Ok(self.end_walk(pages, view, slot, &mut walk)?)
    }

    /// Ends the walk once all versions were met.
    fn end_walk<'g, O: Outcomes>(
        &'g self,
        pages: &'g Pages,
        view: View<'_, O>,
        slot: usize,
        walk: &mut Walk<'_, 'g>,
    ) -> Result<bool, PageError> {
        if !walk.exists && !is_base_visible(walk.guard, pages, view, slot)? {
            return Ok(false);
        }
        walk.take_rest(pages, slot, self.part_of(slot))?;
        Ok(true)
    }
}

#[inline]
fn is_base_visible<O: Outcomes>(
    guard: &Guard,
    pages: &Pages,
    view: View<'_, O>,
    slot: usize,
) -> Result<bool, PageError> {
    Ok(view.visibility(pages.meta.start(guard, slot)?) == Visibility::Visible)
}

impl<'w, 'g> Walk<'w, 'g> {
    fn new(guard: &'g Guard, columns: &'w [usize], out: &'w mut [Cell<'g>]) -> Walk<'w, 'g> {
        let (missing, newer) = (columns.len(), ColumnSet::EMPTY);
        Walk {
            guard,
            columns,
            out,
            found: ColumnSet::EMPTY,
            missing,
            newer,
            newer_oldest: u64::MAX,
            exists: false,
            hops: 0,
        }
    }

    /// Looks at a tail record. Returns whether the record exists once that is all that is left to say.
    #[inline]
    fn visit_tail<O: Outcomes>(
        &mut self,
        record: &TailRecord<'g>,
        view: View<'_, O>,
        pages: &'g Pages,
        slot: usize,
        part: usize,
    ) -> Result<Option<bool>, PageError> {
        let kind = record.kind();
        match if kind == Kind::Snapshot { Visibility::Visible } else { record.visibility(view) } {
            Visibility::Absent => return Ok(None),
            Visibility::Invisible => {
                self.newer.insert_all(&record.explicit());
                self.newer_oldest = record.sequence;
                return Ok(None);
            }
            Visibility::Visible => {}
        }
        self.take_explicit(|column| record.is_explicit(column), |column| record.cell(column));
        if kind == Kind::Snapshot {
            return Ok(None);
        }
        if !self.exists && kind == Kind::Delete {
            return Ok(Some(false));
        }
        self.exists = true;
        self.take_base(record, pages, slot, part)?;
        self.count_hop(record, pages, part);
        Ok((self.missing == 0).then_some(true))
    }

    /// Looks at a version in the history: it lacks the columns that it left as they were, and the walk goes on to
    /// the version that has them.
    fn visit_history(&mut self, version: &Version<'g>) -> Option<bool> {
        let kind = version.kind();
        self.take_explicit(|column| version.is_explicit(column), |column| version.cell(column));
        if kind == Kind::Snapshot {
            return None;
        }
        if !self.exists && kind == Kind::Delete {
            return Some(false);
        }
        self.exists = true;
        (self.missing == 0).then_some(true)
    }

    #[inline]
    fn take(&mut self, i: usize, cell: Cell<'g>) {
        self.out[i] = cell;
        self.found.insert(i);
        self.missing -= 1;
    }

    /// Takes the values that a version has for columns still missing.
    #[inline]
    fn take_explicit(&mut self, is_explicit: impl Fn(usize) -> bool, cell: impl Fn(usize) -> Cell<'g>) {
        let columns = self.columns;
        for (i, &column) in columns.iter().enumerate() {
            if is_explicit(column) && !self.found.contains(i) {
                self.take(i, cell(column));
            }
        }
    }

    /// Takes from the base pages the columns that have their newest version at or before `record` there.
    #[inline]
    fn take_base(
        &mut self,
        record: &TailRecord<'g>,
        pages: &'g Pages,
        slot: usize,
        part: usize,
    ) -> Result<(), PageError> {
        let columns = self.columns;
        for (i, &column) in columns.iter().enumerate() {
            let page = &pages.columns[column];
            if !self.found.contains(i)
                && !self.newer.contains(column)
                && (!record.was_ever_updated(column) || page.lineage[part] >= record.reset())
            {
                self.take(i, page.cell(self.guard, column, slot)?);
            }
        }
        Ok(())
    }

    /// Holds the paper's promise that the newest version is two hops away: the base record, then the newest tail
    /// record. The promise is for readers that see the newest version, with pages as new as the writer found.
    #[inline]
    fn count_hop(&mut self, record: &TailRecord<'g>, pages: &'g Pages, part: usize) {
        self.hops += 1;
        let is_newest = self.hops == 1 && self.newer.is_empty();
        debug_assert!(
            !is_newest || self.missing == 0 || pages.tps_min(part, self.columns) < record.reset(),
            "the newest version is at most two hops away"
        );
    }

    /// Takes the columns that no version has from the base pages: they were not updated since the record's history
    /// begins, or only by versions that the page has not merged.
    fn take_rest(&mut self, pages: &'g Pages, slot: usize, part: usize) -> Result<(), PageError> {
        let columns = self.columns;
        for (i, &column) in columns.iter().enumerate() {
            if !self.found.contains(i) {
                debug_assert!(
                    !self.newer.contains(column) || pages.columns[column].lineage[part] < self.newer_oldest,
                    "a newer update leaves a snapshot record behind it, or the merge keeps the origin"
                );
                self.out[i] = pages.columns[column].cell(self.guard, column, slot)?;
            }
        }
        Ok(())
    }
}
