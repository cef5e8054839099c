//! The tail records of one append: what they hold, once it is known which version they follow.
//!
//! ```text
//! cumulate  the new values, and those that the version before holds explicitly and base pages have not merged
//! keep      for columns updated for the first time, what the base pages have: a snapshot record
//! write     the snapshot record if there is one, then the version; both stand in the tail, and nothing leads to them yet
//! ```
//!
//! See `write` for what comes before it and after it, and for the rules.
use sync::Guard;

use crate::memory::source::PageError;
use crate::page::base::Pages;
use crate::page::tail::{CarriedColumns, NewRecord, TailRecord};
use crate::record::range::Range;
use crate::record::view::{Outcomes, Resolved, View, resolve};
use crate::value::cell::{Cell, ColumnCells};
use crate::value::column_set::ColumnSet;
use crate::value::kind::Kind;

/// The sequence numbers of the tail records that a write appended and its transaction must stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppendedRecords {
    /// the first one, of the snapshot record if there is one
    pub first: u64,
    /// the last one, the new version
    pub last: u64,
}

/// The newest version of a record as a writer needs it.
pub(super) struct Newest<'g> {
    /// the newest tail record that was not rolled back, snapshot records included; 0 where there is none
    pub(super) top: u64,
    /// the newest version that counts, `None` where the base pages have it
    pub(super) version: Option<TailRecord<'g>>,
    /// what became of its writer, or of the transaction that has locked it; asked once: the latch keeps no
    /// transaction from ending
    pub(super) writer: Resolved,
    /// whether it ends the record
    pub(super) is_deleted: bool,
    /// whether it is a later one than the insert, or locked
    pub(super) is_update: bool,
    /// the columns updated so far
    pub(super) ever: ColumnSet,
    /// up to here, all pages have taken in the tail
    pub(super) floor: u64,
    pub(super) pages: &'g Pages,
}

/// One append, with the record latched.
pub(super) struct Append<'a> {
    pub(super) range: &'a Range,
    pub(super) guard: &'a Guard,
    pub(super) start: u64,
    pub(super) slot: usize,
    pub(super) newest: Newest<'a>,
}

impl Append<'_> {
    /// Appends a snapshot record for the columns that are updated for the first time, if there are any, and the new version.
    /// The record's Indirection word is `above`.
    #[inline]
    pub(super) fn update<O: Outcomes>(
        &self,
        view: View<'_, O>,
        values: &[(usize, Cell<'_>)],
        above: u64,
    ) -> Result<AppendedRecords, PageError> {
        let (guard, slot, tails) = (self.guard, self.slot, &self.range.part(self.slot).tails);
        let mut cumulative = ColumnCells::new();
        let (reset, carried) = self.cumulate(values, &mut cumulative);
        let mut originals = ColumnCells::new();
        let first_time = values.iter().map(|(column, _)| *column).filter(|column| !self.newest.ever.contains(*column));
        self.newest.pages.originals(guard, first_time, slot, &mut originals)?;
        let mut ever = self.newest.ever.clone();
        values.iter().for_each(|(column, _)| ever.insert(*column));

        let first = tails.allocate(guard, 1 + u64::from(!originals.is_empty()), above);
        let (mut sequence, mut prev, ever) = (first, self.newest.top, &ever);
        if !originals.is_empty() {
            let (start, values) = (self.start_of_base(view)?, originals.as_slice());
            let kind = Kind::Snapshot;
            tails.write(guard, sequence, &NewRecord { prev, slot, kind, start, reset: 0, ever, values, carried: None });
            (sequence, prev) = (sequence + 1, sequence);
        }
        let (start, kind, values) = (self.start, Kind::Update, cumulative.as_slice());
        tails.write(guard, sequence, &NewRecord { prev, slot, kind, start, reset, ever, values, carried });
        Ok(AppendedRecords { first, last: sequence })
    }

    fn start_of_base<O: Outcomes>(&self, view: View<'_, O>) -> Result<u64, PageError> {
        Ok(match resolve(self.newest.pages.meta.start(self.guard, self.slot)?, view.outcomes) {
            Resolved::Committed(at) => at.0,
            // It was checked before: what is not committed is this transaction's own.
            _ => self.start,
        })
    }

    /// Collects `values` and what the version before holds for other columns, but for those merged into their base
    /// pages; returns the number after which no column that is left out has changed, and what is copied word by word.
    fn cumulate<'a>(
        &'a self,
        values: &[(usize, Cell<'a>)],
        cumulative: &mut ColumnCells<'a>,
    ) -> (u64, Option<CarriedColumns<'a>>) {
        cumulative.extend_from_slice(values);
        let Some(version) = &self.newest.version else { return (self.newest.floor.min(self.newest.top), None) };
        let mut reset = version.reset();
        let (pages, part) = (self.newest.pages, self.range.part_of(self.slot));
        let mut changed = ColumnSet::EMPTY;
        values.iter().for_each(|(column, _)| changed.insert(*column));
        // The meta-data page is at least as far as any other.
        let may_be_merged = pages.meta.lineage()[part] >= version.sequence;
        // Unchanged columns are copied as they are.
        let columns = if may_be_merged { 0 } else { version.explicit_among(!changed.word(0)) };
        changed.insert_word(0, columns);
        version.explicit().for_each(|column| {
            if changed.contains(column) {
            } else if may_be_merged && pages.columns[column].lineage[part] >= version.sequence {
                reset = version.sequence;
            } else {
                cumulative.push((column, version.cell(column)));
            }
        });
        (reset, Some(CarriedColumns { from: *version, columns }))
    }

    /// Appends a record without values: the end of the record, or a lock.
    pub(super) fn mark(&self, kind: Kind, above: u64) -> AppendedRecords {
        let tails = &self.range.part(self.slot).tails;
        let sequence = tails.allocate(self.guard, 1, above);
        let (prev, slot, start, ever) = (self.newest.top, self.slot, self.start, &self.newest.ever);
        let (reset, carried) = (0, None);
        let record = NewRecord { prev, slot, kind, start, reset, ever, values: &[], carried };
        tails.write(self.guard, sequence, &record);
        AppendedRecords { first: sequence, last: sequence }
    }
}
