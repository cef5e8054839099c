//! The dependencies of a partition commit, and why it is not replayed upon lost commits.
//!
//! A partition commit is acknowledged when its own partition is on disk, and survives a gap before it (Hathi, sections 3
//! and 4). Hathi leaves it to the application that such transactions are independent of all others. Here the frame names the
//! LSN that its commit **depends on**, and recovery hands the commit over only if nothing up to that LSN is missing:
//!
//! ```text
//!   LSN         1  2  3  4  5  6  7  8
//!   on disk     x  x  x  .  x  x  x  x       4 is missing: the first gap
//!   kind        c  c  c     c  p  p  p       c commit, p partition commit
//!   depends on                 3  5  0
//!   handed over x  x  x        x     x       5 is no partition commit; 7 depends on it
//! ```
//!
//! **Why that is right.** The caller names every commit that the transaction has read from or written over, one by
//! one or all up to some LSN. Let D be the highest of them. The set of commits handed over is then closed: with a
//! commit goes everything that it depends on, as all up to D is there. A commit is *acknowledged* when its
//! partition is on disk up to it and everything up to D is stable: then D lies before the first gap of any later
//! recovery, and the commit is handed over. Commits that were stable when the frame was appended need not be named
//! for the same reason.
//!
//! **Commits of the same partition** are not named where that can be spared: if Q stands before P in a partition, is a partition
//! commit and depends on D(Q), P names D(Q) instead of Q. P is read only if Q was read before it, and where D(Q) is not missing Q is
//! handed over as well. So a thread that works on its own rows waits for its own partition only, though each of its
//! transactions depends on the one before.
//!
//! The memory for that is bounded, and a commit that was forgotten is named itself. Waiting longer is never wrong.

use std::collections::BTreeMap;

use crate::Lsn;

/// So many partition commits of a partition that are not stable are remembered.
const RECENT_MAX: usize = 4096;

/// The commits that a partition commit must not survive without: all that its transaction has read from or written over.
/// Those that are stable may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dependencies<'a> {
    /// Every commit up to this one; 0 for none.
    pub up_to: Lsn,
    /// The commits by their numbers.
    pub commits: &'a [Lsn],
}

/// The partition commits of one partition that may not be stable, with what they depend on.
#[derive(Default)]
pub(crate) struct RecentCommits(BTreeMap<Lsn, Lsn>);

impl RecentCommits {
    /// The LSN to be named by a commit that is appended now, when all up to `stable` is on disk; 0 if none need be.
    pub(crate) fn resolve(&self, on: Dependencies<'_>, stable: Lsn) -> Lsn {
        let named = |lsn: &Lsn| self.0.get(lsn).copied().unwrap_or(*lsn);
        let unstable = on.commits.iter().filter(|lsn| **lsn > stable);
        let depends_on = unstable.map(named).fold(on.up_to, Lsn::max);
        if depends_on > stable { depends_on } else { 0 }
    }

    /// Remembers a commit that was appended.
    pub(crate) fn note(&mut self, lsn: Lsn, depends_on: Lsn, stable: Lsn) {
        while self.0.first_key_value().is_some_and(|(first, _)| *first <= stable || self.0.len() >= RECENT_MAX) {
            self.0.pop_first();
        }
        self.0.insert(lsn, depends_on);
        debug_assert!(self.0.len() <= RECENT_MAX, "{} commits are remembered", self.0.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(up_to: Lsn, commits: &[Lsn]) -> Dependencies<'_> {
        Dependencies { up_to, commits }
    }

    #[test]
    fn what_is_stable_is_not_named() {
        let recent = RecentCommits::default();
        assert_eq!(recent.resolve(on(7, &[3, 8]), 8), 0);
        assert_eq!(recent.resolve(on(7, &[3, 9]), 8), 9);
        assert_eq!(recent.resolve(on(12, &[3, 9]), 8), 12);
        assert_eq!(recent.resolve(on(0, &[]), 0), 0);
    }

    #[test]
    fn a_commit_of_the_partition_stands_for_what_it_depends_on() {
        let mut recent = RecentCommits::default();
        recent.note(10, 4, 3);
        recent.note(12, 0, 3);
        assert_eq!(recent.resolve(on(0, &[10]), 3), 4);
        assert_eq!(recent.resolve(on(0, &[12]), 3), 0, "it depends on nothing that could be missing");
        assert_eq!(recent.resolve(on(0, &[10, 11]), 3), 11, "another partition's");
        assert_eq!(recent.resolve(on(12, &[10]), 3), 12, "all up to it are more than it");
    }

    #[test]
    fn what_was_forgotten_is_named_itself() {
        let mut recent = RecentCommits::default();
        (1..=RECENT_MAX as u64 + 5).for_each(|lsn| recent.note(lsn, 0, 0));
        assert_eq!(recent.0.len(), RECENT_MAX);
        assert_eq!(recent.resolve(on(0, &[5]), 0), 5);
        recent.note(10_000, 0, 9_999);
        assert_eq!(recent.0.len(), 1, "what is stable is forgotten");
    }
}
