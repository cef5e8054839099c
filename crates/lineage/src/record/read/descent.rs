//! Reading one record as of one moment after the other, each older than the one before: all its versions in as many steps as there
//! are, where a read of its own for each would pass over all that are newer, and look for columns in all that are older.
//!
//! - A version that a snapshot does not see, no older one sees. In the tail a walk begins where the one before has
//!   met the first version that it saw; the snapshot records that were passed are kept, as they have old values for
//!   every older moment.
//! - A value found in a version that was made at some time is the value at every moment from then on to the one that was read: the
//!   versions in between have none for that column. One found in no version, but in the base page, is the value for all older moments.
//!
//! The pages are those with which the descent began, as they and the Indirection word belong together (see [`super`]).
use sync::Guard;
use sync::atomic::Ordering;

use super::Walk;
use crate::memory::source::PageError;
use crate::page::base::Pages;
use crate::page::interrupted::Interrupted;
use crate::record::range::{LATCH, Range};
use crate::record::view::{Outcomes, Resolved, View};
use crate::value::cell::Cell;
use crate::value::column_set::ColumnSet;
use crate::value::kind::Kind;

/// See the module.
pub(crate) struct Descent<'d, 'g> {
    range: &'g Range,
    guard: &'g Guard,
    slot: usize,
    columns: &'d [usize],
    pages: &'g Pages,
    newest: u64,
    /// Where the next walk begins.
    sequence: u64,
    /// Snapshot records that were passed.
    passed: Vec<u64>,
    /// As in a walk.
    newer: ColumnSet,
    newer_oldest: u64,
    /// The values read last, and since when they are so; `u64::MAX` where that is not known.
    cells: Vec<Cell<'g>>,
    since: Vec<u64>,
    /// Columns with a known `since` in this read.
    noted: ColumnSet,
}

impl Range {
    /// Begins to read some columns of the record at `slot`.
    pub(crate) fn descend<'d, 'g>(&'g self, guard: &'g Guard, slot: usize, columns: &'d [usize]) -> Descent<'d, 'g> {
        let pages = self.pages.load(guard);
        let newest = self.indirection[slot].load(Ordering::Acquire) & !LATCH;
        Descent {
            range: self,
            guard,
            slot,
            columns,
            pages,
            newest,
            sequence: newest,
            passed: Vec::new(),
            newer: ColumnSet::EMPTY,
            newer_oldest: u64::MAX,
            cells: vec![Cell::Null; columns.len()],
            since: vec![u64::MAX; columns.len()],
            noted: ColumnSet::EMPTY,
        }
    }
}

impl<'g> Descent<'_, 'g> {
    /// The values that `view` sees, `None` where it sees no record. No view before may have been of an older moment.
    pub(crate) fn read<O: Outcomes>(&mut self, view: View<'_, O>) -> Result<Option<&[Cell<'g>]>, PageError> {
        loop {
            match self.read_once(view) {
                Ok(exists) => {
                    if !exists {
                        self.since.fill(u64::MAX);
                    }
                    return Ok(exists.then_some(&self.cells));
                }
                Err(Interrupted::Outdated) => *self = self.range.descend(self.guard, self.slot, self.columns),
                Err(Interrupted::Page(error)) => return Err(error),
            }
        }
    }

    fn read_once<O: Outcomes>(&mut self, view: View<'_, O>) -> Result<bool, Interrupted> {
        let Descent { range, guard, slot, columns, pages, newest, .. } = *self;
        let mut out = self.cells.clone();
        if let Some(exists) = range.read_merged(guard, pages, view, (slot, newest), columns, &mut out)? {
            self.since.fill(u64::MAX);
            self.cells = out;
            return Ok(exists);
        }
        let mut walk = Walk::new(guard, columns, &mut out);
        self.noted = ColumnSet::EMPTY;
        for (i, since) in self.since.iter_mut().enumerate() {
            match *since <= view.snapshot.at.0 {
                true => {
                    walk.take(i, self.cells[i]);
                    self.noted.insert(i);
                }
                false => *since = u64::MAX,
            }
        }
        let exists = match self.walk(view, &mut walk)? {
            Some(exists) => exists,
            None => {
                let exists = range.end_walk(pages, view, slot, &mut walk)?;
                self.since
                    .iter_mut()
                    .enumerate()
                    .filter(|(i, _)| !walk.found.contains(*i))
                    .for_each(|(_, since)| *since = 0);
                exists
            }
        };
        self.cells = out;
        Ok(exists)
    }

    /// Visits versions until nothing is left to ask for.
    fn walk<O: Outcomes>(&mut self, view: View<'_, O>, walk: &mut Walk<'_, 'g>) -> Result<Option<bool>, Interrupted> {
        let Descent { range, guard, slot, columns, pages, .. } = *self;
        let part = range.part_of(slot);
        let tails = &range.parts[part].tails;
        for record in std::mem::take(&mut self.passed) {
            let Some(record) = tails.get(guard, record) else { continue };
            walk.take_explicit(|column| record.is_explicit(column), |column| record.cell(column));
            self.note(walk, 0, |column| record.is_explicit(column));
            self.passed.push(record.sequence);
        }
        (walk.newer, walk.newer_oldest) = (self.newer.clone(), self.newer_oldest);
        let mut sequence = self.sequence;
        while sequence != 0 {
            let Some(record) = tails.get(guard, sequence) else { break };
            let done = walk.visit_tail(&record, view, pages, slot, part)?;
            let since = match record.resolve(view.outcomes) {
                _ if record.kind() == Kind::Snapshot => 0,
                Resolved::Committed(at) => at.0,
                _ => u64::MAX,
            };
            self.note(walk, since, |column| record.is_explicit(column));
            if done.is_some() {
                return Ok(done);
            }
            sequence = record.prev();
            if !walk.exists {
                if record.kind() == Kind::Snapshot {
                    self.passed.push(record.sequence);
                }
                (self.sequence, self.newer_oldest) = (sequence, walk.newer_oldest);
                self.newer.clone_from(&walk.newer);
            }
        }
        if sequence == 0 {
            return Ok(None);
        }
        let history = &range.parts[part].archive.load(guard).history;
        if history.given_up() > pages.tps_min(part, columns) {
            return Err(Interrupted::Outdated);
        }
        for page in history.pages_of(slot) {
            for version in page.get(guard)?.versions_seen(slot, view.snapshot.at.0) {
                let done = walk.visit_history(&version);
                let since = if version.kind() == Kind::Snapshot { 0 } else { version.start() };
                self.note(walk, since, |column| version.is_explicit(column));
                if done.is_some() {
                    return Ok(done);
                }
            }
        }
        Ok(None)
    }

    /// Notes since when the values are so that were found just now: those in a version since that was made; of others, which came
    /// from the base pages beside it, that is not known.
    fn note(&mut self, walk: &Walk<'_, 'g>, since: u64, is_explicit: impl Fn(usize) -> bool) {
        for (i, &column) in self.columns.iter().enumerate() {
            if walk.found.contains(i) && !self.noted.contains(i) {
                self.noted.insert(i);
                self.since[i] = if is_explicit(column) { since } else { u64::MAX };
            }
        }
    }
}
