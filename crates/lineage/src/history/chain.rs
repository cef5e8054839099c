//! The versions of one record on their way into a page, newest first, and the three rules that shorten them.
//!
//! A reader at *t* walks such a chain from its newest version to its oldest. It passes over updates and deletes that
//! started after *t*; a snapshot record it always sees. The first update or delete that it sees decides whether the
//! record exists, and each column comes from the first version seen that has it. Updates and deletes never start later
//! than newer ones: a record's writers follow each other, each after the other's commit. Therefore:
//!
//! **One transaction.** Versions of the same start are seen together or not at all, so the newest of them decides, and
//! the older ones can only give it columns that neither it has nor a snapshot record between them, which would come
//! first in the walk. They give these and go.
//!
//! **Delta.** A value that an update repeats is left out: when the next older version that has the column holds the
//! same value. Whoever sees the update sees that version too, walks on to it and finds no other value on the way; who
//! does not see the update asked nothing of it. A snapshot record leaves nothing out, as it is seen by readers who do
//! not see what is older. What is left out must be older *in the same page*, for pages change one by one.
//!
//! **Settled.** Let no reader be older than the horizon. The settled part of a chain is what is older than the oldest
//! update or delete that started after the horizon, or all of it where there is none. Every reader sees every version
//! of it: starts are at or before the horizon, or it is a snapshot record. A walk that reaches it therefore always
//! ends the same way: its newest update or delete decides, its newest value of each column counts. One version stands
//! for all of it: that update or delete (or where there is none, a snapshot record), with the newest value of every
//! column. This is the record's *origin*. What is newer stays as it is, snapshot records included, and every value
//! left out of it by the delta rule is found in the origin, if it was found in the settled part before.
use smallvec::SmallVec;

use crate::cell::Cell;
use crate::column_set::ColumnSet;
use crate::tail::Kind;

/// Explicit values of a version.
pub(super) type Values<'a> = SmallVec<[(usize, Cell<'a>); 4]>;

/// A version on its way into a page.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) sequence: u64,
    pub(super) kind: Kind,
    pub(super) start: u64,
    pub(super) values: Values<'a>,
}

impl Draft<'_> {
    fn columns(&self) -> ColumnSet {
        ColumnSet::of(self.values.iter().map(|(column, _)| *column))
    }

    fn decides(&self) -> bool {
        self.kind != Kind::Snapshot
    }
}

/// Makes one version of those that one transaction wrote.
pub(super) fn join_transactions(chain: &mut Vec<Draft<'_>>) {
    let starts = || chain.iter().filter(|draft| draft.decides()).map(|draft| draft.start);
    debug_assert!(starts().is_sorted_by(|newer, older| newer >= older), "older versions start earlier");
    if starts().zip(starts().skip(1)).all(|(newer, older)| newer != older) {
        return;
    }
    let mut kept = 0;
    let mut survivor: Option<usize> = None;
    let mut covered = ColumnSet::EMPTY;
    for at in 0..chain.len() {
        let columns = chain[at].columns();
        match survivor {
            Some(survivor) if chain[at].decides() && chain[at].start == chain[survivor].start => {
                let mut values = std::mem::take(&mut chain[at].values);
                values.retain(|(column, _)| !covered.contains(*column));
                chain[survivor].values.append(&mut values);
                covered.insert_all(&columns);
                continue;
            }
            Some(_) if !chain[at].decides() => covered.insert_all(&columns),
            _ => (survivor, covered) = (chain[at].decides().then_some(kept), columns),
        }
        chain.swap(kept, at);
        kept += 1;
    }
    chain.truncate(kept);
}

/// Leaves out repeated values. `current` has room for a cell of every column, all `None` before and after.
pub(super) fn leave_out_repeated<'a>(chain: &mut [Draft<'a>], current: &mut [Option<Cell<'a>>]) {
    if chain.len() < 2 {
        return;
    }
    for draft in chain.iter_mut().rev() {
        let leaves_out = draft.decides();
        draft.values.retain(|(column, cell)| {
            let is_repeated = current[*column].replace(*cell) == Some(*cell);
            !(leaves_out && is_repeated)
        });
    }
    // Each column that was met still has a value somewhere in the chain.
    chain.iter().flat_map(|draft| &draft.values).for_each(|(column, _)| current[*column] = None);
}

/// Where the settled part begins in a chain of these kinds and starts.
pub(super) fn settled_from(
    chain: impl DoubleEndedIterator<Item = (Kind, u64)> + ExactSizeIterator,
    horizon: u64,
) -> usize {
    let mut newest_first = chain;
    newest_first.rposition(|(kind, start)| kind != Kind::Snapshot && start > horizon).map_or(0, |oldest| oldest + 1)
}

/// Puts the origin in the place of the settled part, which begins at `from`.
pub(super) fn settle(chain: &mut Vec<Draft<'_>>, from: usize) {
    let origin = from + chain[from..].iter().position(Draft::decides).unwrap_or(0);
    let mut covered = ColumnSet::EMPTY;
    let mut values = Values::new();
    for draft in &mut chain[from..] {
        for (column, cell) in std::mem::take(&mut draft.values) {
            if !covered.contains(column) {
                covered.insert(column);
                values.push((column, cell));
            }
        }
    }
    chain.swap(from, origin);
    chain.truncate(from + 1);
    chain[from].values = values;
}
