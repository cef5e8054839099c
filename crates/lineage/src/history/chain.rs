//! The versions of one record on their way into a page, newest first, and the three rules that shorten them.
//!
//! A reader at *t* walks such a chain from its newest version to its oldest. It passes over updates and deletes that
//! started after *t*; a snapshot record it always sees. The first update or delete that it sees decides whether the
//! record exists, and each column comes from the first version seen that has it. Updates and deletes never start later
//! than newer ones: a record's writers follow each other, each after the other's commit. Therefore:
//!
//! **Seen together.** Versions of the same start are seen together or not at all, and so are those with no kept
//! snapshot between their starts, as no other will ever be asked for (see [`crate::value::kept`]). So the newest of
//! them decides, and the older ones can only give it columns that neither it has nor a snapshot record between
//! them, which would come first in the walk. They give these and go. Values that newer versions left out because of
//! one of these (see below) are found in the one that stays, or still in that snapshot record: both in the page
//! where it was.
//!
//! **Delta.** A value that an update repeats is left out: when the next older version that has the column holds an
//! equal value. A reader that sees the update sees that version too, walks on to it and finds no other value on the
//! way; a reader that does not see the update asked nothing of it. A snapshot record leaves nothing out, as it is
//! seen by readers that do not see what is older. The older value must be *in the same page*, for pages change one
//! by one.
//!
//! **Settled.** Let no reader be older than a certain time. The settled part of a chain is what is older than the
//! oldest update or delete that started after it, or all of it where there is none. Every reader sees every version
//! of it: starts are at or before that time, or it is a snapshot record. A walk that reaches it therefore always
//! ends in the same way: its newest update or delete decides, its newest value of each column counts. One version
//! stands for all of it: that update or delete (or where there is none, a snapshot record), with the newest value
//! of every column. This is the record's *origin*. The newer part stays as it is, snapshot records included, and
//! every value left out of it by the delta rule is found in the origin, if it was found in the settled part before.
use smallvec::SmallVec;
use types::Timestamp;

use crate::value::cell::Cell;
use crate::value::column_set::ColumnSet;
use crate::value::kept::Kept;
use crate::value::kind::Kind;

/// Explicit values of a version.
pub(crate) type Values<'a> = SmallVec<[(usize, Cell<'a>); 4]>;

/// A version on its way into a page.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) sequence: u64,
    pub(crate) kind: Kind,
    pub(crate) start: u64,
    pub(crate) values: Values<'a>,
}

impl Draft<'_> {
    fn columns(&self) -> ColumnSet {
        let mut columns = ColumnSet::EMPTY;
        self.values.iter().for_each(|(column, _)| columns.insert(*column));
        columns
    }

    fn decides(&self) -> bool {
        self.kind != Kind::Snapshot
    }
}

/// Makes one version of those that the same snapshots see: all that one transaction wrote, and all between two kept
/// snapshots.
pub(crate) fn join_seen_together(chain: &mut Vec<Draft<'_>>, kept: &Kept) {
    let starts = || chain.iter().filter(|draft| draft.decides()).map(|draft| draft.start);
    debug_assert!(starts().is_sorted_by(|newer, older| newer >= older), "older versions start earlier");
    if !are_some_seen_together(starts(), kept) {
        return;
    }
    let mut len = 0;
    let mut survivor: Option<usize> = None;
    let mut covered = ColumnSet::EMPTY;
    for at in 0..chain.len() {
        let columns = chain[at].columns();
        match survivor {
            Some(survivor)
                if chain[at].decides() && are_seen_together(chain[survivor].start, chain[at].start, kept) =>
            {
                let mut values = std::mem::take(&mut chain[at].values);
                values.retain(|(column, _)| !covered.contains(*column));
                chain[survivor].values.append(&mut values);
                covered.insert_all(&columns);
                continue;
            }
            Some(_) if !chain[at].decides() => covered.insert_all(&columns),
            _ => (survivor, covered) = (chain[at].decides().then_some(len), columns),
        }
        chain.swap(len, at);
        len += 1;
    }
    chain.truncate(len);
}

/// Whether some updates and deletes of a record, by their starts from the newest on, become one.
#[inline]
pub(crate) fn are_some_seen_together(mut starts: impl Iterator<Item = u64>, kept: &Kept) -> bool {
    let mut newer = None;
    starts.any(|start| newer.replace(start).is_some_and(|newer| are_seen_together(newer, start, kept)))
}

/// Whether the same kept snapshots see what began at these times.
pub(crate) fn are_seen_together(newer: u64, older: u64, kept: &Kept) -> bool {
    newer == older || kept.first_to_see(newer) == kept.first_to_see(older)
}

/// Leaves out repeated values. `current` has room for a cell of every column, all `None` before and after.
pub(crate) fn leave_out_repeated<'a>(chain: &mut [Draft<'a>], current: &mut [Option<Cell<'a>>]) {
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

/// Where the settled part begins in a chain of these kinds and starts, for readers from `oldest` on.
pub(crate) fn settled_from(
    chain: impl DoubleEndedIterator<Item = (Kind, u64)> + ExactSizeIterator,
    oldest: Timestamp,
) -> usize {
    let mut newest_first = chain;
    newest_first.rposition(|(kind, start)| kind != Kind::Snapshot && start > oldest.0).map_or(0, |last| last + 1)
}

/// Puts the origin in the place of the settled part, which begins at `from`.
pub(crate) fn settle(chain: &mut Vec<Draft<'_>>, from: usize) {
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

#[cfg(test)]
mod tests {
    use super::*;

    type Written<'a> = (Kind, u64, &'a [(usize, u64)]);
    type Plain = (Kind, u64, Vec<(usize, u64)>);

    /// Versions newest first, numbered down to 1.
    fn chain_of(versions: &[Written<'_>]) -> Vec<Draft<'static>> {
        let values =
            |values: &[(usize, u64)]| values.iter().map(|(column, word)| (*column, Cell::Word(*word))).collect();
        let draft = |(sequence, (kind, start, cells)): (usize, &Written<'_>)| Draft {
            sequence: sequence as u64 + 1,
            kind: *kind,
            start: *start,
            values: values(cells),
        };
        let mut chain: Vec<_> = versions.iter().rev().enumerate().map(draft).collect();
        chain.reverse();
        chain
    }

    fn plain(chain: &[Draft<'_>]) -> Vec<Plain> {
        let word = |cell: Cell<'_>| if let Cell::Word(word) = cell { word } else { unreachable!("only words") };
        let values = |draft: &Draft<'_>| draft.values.iter().map(|(column, cell)| (*column, word(*cell))).collect();
        chain.iter().map(|draft| (draft.kind, draft.start, values(draft))).collect()
    }

    #[test]
    fn a_transaction_leaves_one_version_with_all_that_it_wrote() {
        let mut chain = chain_of(&[
            (Kind::Delete, 30, &[]),
            (Kind::Update, 30, &[(0, 1)]),
            (Kind::Snapshot, 5, &[(1, 2), (2, 3)]),
            (Kind::Update, 30, &[(0, 4), (2, 5), (3, 6)]),
            (Kind::Update, 20, &[(3, 7)]),
            (Kind::Snapshot, 5, &[(3, 8)]),
        ]);
        join_seen_together(&mut chain, &Kept::default());
        let expected = [
            (Kind::Delete, 30, vec![(0, 1), (3, 6)]),
            (Kind::Snapshot, 5, vec![(1, 2), (2, 3)]),
            (Kind::Update, 20, vec![(3, 7)]),
            (Kind::Snapshot, 5, vec![(3, 8)]),
        ];
        assert_eq!(plain(&chain), expected);
        assert_eq!(chain.iter().map(|draft| draft.sequence).collect::<Vec<_>>(), [6, 4, 2, 1]);
    }

    #[test]
    fn of_versions_between_two_snapshots_the_newest_stays_with_what_it_took_from_the_others() {
        let mut chain = chain_of(&[
            (Kind::Update, 50, &[(0, 1)]),
            (Kind::Update, 40, &[(0, 2)]),
            (Kind::Update, 30, &[(1, 3)]),
            (Kind::Snapshot, 5, &[(1, 4)]),
            (Kind::Update, 20, &[(0, 5), (2, 6)]),
            (Kind::Update, 10, &[(0, 7)]),
            (Kind::Snapshot, 5, &[(0, 8), (2, 9)]),
        ]);
        let kept = Kept::from(Timestamp::ZERO).raised(Timestamp(40), &[15, 41].map(Timestamp));
        join_seen_together(&mut chain, &kept);
        let expected = [
            (Kind::Update, 50, vec![(0, 1)]),
            (Kind::Update, 40, vec![(0, 2), (1, 3), (2, 6)]),
            (Kind::Snapshot, 5, vec![(1, 4)]),
            (Kind::Update, 10, vec![(0, 7)]),
            (Kind::Snapshot, 5, vec![(0, 8), (2, 9)]),
        ];
        assert_eq!(plain(&chain), expected);
    }

    #[test]
    fn updates_leave_out_what_they_repeat_and_snapshot_records_do_not() {
        let mut chain = chain_of(&[
            (Kind::Update, 30, &[(0, 1), (1, 2), (2, 3)]),
            (Kind::Snapshot, 5, &[(0, 1), (2, 3)]),
            (Kind::Update, 20, &[(0, 1), (1, 2)]),
            (Kind::Update, 10, &[(1, 9)]),
        ]);
        let mut current = vec![None; 3];
        leave_out_repeated(&mut chain, &mut current);
        let expected = [
            (Kind::Update, 30, vec![]),
            (Kind::Snapshot, 5, vec![(0, 1), (2, 3)]),
            (Kind::Update, 20, vec![(0, 1), (1, 2)]),
            (Kind::Update, 10, vec![(1, 9)]),
        ];
        assert_eq!(plain(&chain), expected);
        assert_eq!(current, [None; 3]);
    }

    #[test]
    fn what_started_at_the_oldest_snapshot_is_settled() {
        let chain = [(Kind::Update, 30), (Kind::Snapshot, 25), (Kind::Update, 20), (Kind::Snapshot, 25)];
        for (oldest, expected) in [(31, 0), (30, 0), (29, 1), (20, 1), (19, 3), (0, 3)] {
            assert_eq!(settled_from(chain.into_iter(), Timestamp(oldest)), expected, "from {oldest}");
        }
        assert_eq!(settled_from([(Kind::Snapshot, 25)].into_iter(), Timestamp::ZERO), 0);
    }

    #[test]
    fn the_origin_is_the_newest_settled_version_with_all_settled_columns() {
        let versions: [Written<'_>; 5] = [
            (Kind::Update, 40, &[(0, 1)]),
            (Kind::Snapshot, 5, &[(1, 2)]),
            (Kind::Update, 30, &[(2, 3)]),
            (Kind::Delete, 20, &[(2, 4), (3, 5)]),
            (Kind::Snapshot, 5, &[(0, 6), (3, 7)]),
        ];
        let mut chain = chain_of(&versions);
        settle(&mut chain, 1);
        let origin = (Kind::Update, 30, vec![(1, 2), (2, 3), (3, 5), (0, 6)]);
        assert_eq!(plain(&chain), [(Kind::Update, 40, vec![(0, 1)]), origin]);
        assert_eq!(chain[1].sequence, 3);

        let mut deleted = chain_of(&versions[3..]);
        settle(&mut deleted, 0);
        assert_eq!(plain(&deleted), [(Kind::Delete, 20, vec![(2, 4), (3, 5), (0, 6)])]);

        let mut originals = chain_of(&[versions[1], versions[4]]);
        settle(&mut originals, 0);
        assert_eq!(plain(&originals), [(Kind::Snapshot, 5, vec![(1, 2), (0, 6), (3, 7)])]);
    }
}
