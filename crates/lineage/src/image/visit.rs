//! The versions of a range, for whoever builds an index of what was restored.
//!
//! An index has an entry for every value that a record has in some version that can still be seen. Most records have one:
//! what the base page or the insert page holds. Others follow, of the records only that have versions in the tail or in the
//! history which name one of the columns: at the start of each such version the record is read as a snapshot sees it.
use sync::Guard;
use sync::atomic::Ordering;
use types::{Rid, Snapshot, StartTime, Timestamp, TxnId};

use crate::cell::Cell;
use crate::evict::{Lent, PageError};
use crate::range::Range;
use crate::table::Table;
use crate::tail::Kind;
use crate::view::{Outcome, Outcomes, View};

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
    pub fn for_each_version_of_columns(
        &self,
        range: usize,
        columns: &[usize],
        mut visit: impl FnMut(Rid, &[Cell<'_>]),
    ) -> Result<(), PageError> {
        let visit = |slot: usize, cells: &[Cell<'_>]| visit(Rid::base(range, slot), cells);
        self.range(range).for_each_version_of_columns(&sync::pin(), columns, visit)
    }
}

impl Range {
    fn for_each_version_of_columns(
        &self,
        guard: &Guard,
        columns: &[usize],
        mut visit: impl FnMut(usize, &[Cell<'_>]),
    ) -> Result<(), PageError> {
        let (pages, lent) = (self.pages.load(guard), Lent::new(columns.len()));
        let mut cells = vec![Cell::Null; columns.len()];
        let starts = lent.starts(guard, &pages.meta)?;
        let base = |(i, column): (usize, &usize)| lent.values(guard, &pages.columns[*column], (i, *column));
        let base = columns.iter().enumerate().map(base).collect::<Result<Vec<_>, PageError>>()?;
        let inserted = |slot: usize| match StartTime::from_word(starts.word(slot).load(Ordering::Acquire)) {
            StartTime::Committed(at) => Some(at),
            StartTime::Pending(_) | StartTime::Tombstone | StartTime::Unwritten => None,
        };
        for slot in (0..self.len()).filter(|slot| inserted(*slot).is_some()) {
            cells.iter_mut().zip(&base).for_each(|(cell, base)| *cell = base.cell(slot));
            visit(slot, &cells);
        }
        let mut changes = self.changes_of(guard, columns)?;
        changes.sort_unstable();
        changes.dedup();
        for changes in changes.chunk_by(|left, right| left.0 == right.0) {
            let slot = changes[0].0;
            let times = changes.iter().map(|(_, at)| *at).chain(inserted(slot));
            for at in times {
                let view = View { snapshot: Snapshot::at(at), outcomes: &Stamped };
                if self.read(guard, view, slot, columns, &mut cells)? {
                    visit(slot, &cells);
                }
            }
        }
        Ok(())
    }

    /// Slot and start of the versions that have a value for one of these columns.
    fn changes_of(&self, guard: &Guard, columns: &[usize]) -> Result<Vec<(usize, Timestamp)>, PageError> {
        let mut changes = Vec::new();
        for part in &self.parts {
            part.tails.each_live(guard, |record| {
                let start = StartTime::from_word(record.start().load(Ordering::Acquire));
                if let StartTime::Committed(at) = start
                    && record.kind() == Kind::Update
                    && columns.iter().any(|column| record.is_explicit(*column))
                {
                    changes.push((record.slot(), at));
                }
            });
            for page in part.archive.load(guard).history.pages() {
                let page = &*page.hold(guard)?;
                let versions = page.slots().flat_map(|slot| page.versions(slot).map(move |version| (slot, version)));
                let changing = versions.filter(|(_, version)| {
                    version.kind() == Kind::Update && columns.iter().any(|column| version.is_explicit(*column))
                });
                changes.extend(changing.map(|(slot, version)| (slot, Timestamp(version.start()))));
            }
        }
        Ok(changes)
    }
}
