//! The snapshots for which a table still has its rows, and what follows for a version.
//!
//! ```text
//!       snapshots in use          horizon: every snapshot from here on
//!  -------o-----------o-------------|=========================================> time
//!      a     b  c  d         e  f     g  h                  commits of a record's versions
//!                  ^            ^                           d stands for b and c, f for e
//! ```
//!
//! A long reader needs one version of each record, not all that were made since. So a table has, beside the
//! *horizon* from which on it keeps everything, a short list of older snapshots: those that were in use whenever
//! the horizon was raised. Versions that began between two of these snapshots are seen by the same snapshots, all
//! those from the later one on, and a reader that sees them sees the newest of them first; only that one is kept.
//! (Interval-based garbage collection: Lee et al. for SAP HANA, SIGMOD 2016; Böttcher et al., *Scalable Garbage
//! Collection for In-Memory MVCC Systems*, VLDB 2019.) A snapshot that is neither at or after the horizon nor in
//! the list is refused, even if it is newer than one that is.
//!
//! # Why no snapshot in use loses a version
//!
//! A transaction that begins to use a snapshot announces it where [`Horizon::raise`] looks for them, and then asks
//! whether the table has it. An answer that does not come from the horizon alone, and every decision, holds the
//! same latch.
//!
//! - The asker finds the horizon at or before its snapshot. The decision that next raises it marks the word first and
//!   looks for snapshots then; as the asker did not find the mark, its announcement came before, and is found: the
//!   snapshot enters the list.
//! - The asker finds a later horizon, and its snapshot in the list, with the latch held: no version that it sees was
//!   given up, as the list only ever loses snapshots and what is given up is decided by lists. Later decisions take the
//!   latch after the announcement and find it: the snapshot stays in the list.
//! - Otherwise it is told that the snapshot was given up.
//!
//! The newest snapshot need not ask: what the announcements leave out is not older than the last of them.
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use sync::atomic::{AtomicU64, Ordering};
use sync::blocking::Mutex;
use sync::hint::SpinWait;
use types::Timestamp;

/// The snapshots for which a table has its rows: all from a horizon on, and some older ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    horizon: Timestamp,
    /// those before the horizon, ascending
    old: Arc<[Timestamp]>,
}

impl Default for Kept {
    fn default() -> Self {
        Kept::from(Timestamp::ZERO)
    }
}

/// Every snapshot from a time on.
impl From<Timestamp> for Kept {
    fn from(horizon: Timestamp) -> Kept {
        Kept { horizon, old: Arc::default() }
    }
}

impl Kept {
    /// Keeps all from a horizon on, and these snapshots before it, which ascend.
    pub(crate) fn of_parts(horizon: Timestamp, old: Arc<[Timestamp]>) -> Kept {
        Kept { horizon, old }
    }

    /// The snapshots before the horizon.
    pub fn old(&self) -> &[Timestamp] {
        &self.old
    }

    /// Every snapshot from here on is kept.
    pub fn horizon(&self) -> Timestamp {
        self.horizon
    }

    /// The oldest snapshot that is kept.
    #[inline]
    pub fn oldest(&self) -> Timestamp {
        self.old.first().map_or(self.horizon, |first| *first)
    }

    /// Whether this snapshot is kept.
    pub fn contains(&self, at: Timestamp) -> bool {
        at >= self.horizon || self.old.binary_search(&at).is_ok()
    }

    /// Whether there are snapshots before the horizon.
    pub(crate) fn has_old(&self) -> bool {
        !self.old.is_empty()
    }

    /// The oldest of these snapshots that sees what started at `start`. Versions for which it is the same are seen together
    /// or not at all.
    #[inline]
    pub(crate) fn first_to_see(&self, start: u64) -> u64 {
        if start >= self.horizon.0 {
            return start;
        }
        let later = self.old.partition_point(|at| at.0 < start);
        self.old.get(later).map_or(self.horizon.0, |at| at.0)
    }

    /// The snapshots that are left when the horizon rises: those that are in use.
    pub(crate) fn raised(&self, horizon: Timestamp, in_use: &[Timestamp]) -> Kept {
        debug_assert!(in_use.is_sorted(), "snapshots in use come in order");
        let horizon = horizon.max(self.horizon);
        let mut old: Vec<Timestamp> = in_use.iter().copied().take_while(|at| *at < horizon).collect();
        old.retain(|at| self.contains(*at));
        old.dedup();
        Kept { horizon, old: old.into() }
    }
}

/// Set in the horizon while a higher one is decided upon.
const DECIDING: u64 = 1 << 63;

/// The snapshots that a table keeps now.
pub(crate) struct Horizon {
    word: AtomicU64,
    decided: Mutex<Decided>,
}

#[derive(Default)]
struct Decided {
    kept: Kept,
    /// times from which on a reader needs everything, and how many readers do
    needed_from: BTreeMap<Timestamp, usize>,
}

impl Horizon {
    /// Everything is kept.
    pub(crate) fn new() -> Horizon {
        Horizon { word: AtomicU64::new(0), decided: Mutex::default() }
    }

    /// Everything from here on is kept.
    pub(crate) fn get(&self) -> Timestamp {
        let mut wait = SpinWait::new();
        loop {
            let word = self.word.load(Ordering::SeqCst);
            if word & DECIDING == 0 {
                return Timestamp(word);
            }
            wait.pause();
        }
    }

    pub(crate) fn kept(&self) -> Kept {
        self.with_decided(|decided| decided.kept.clone())
    }

    fn with_decided<R>(&self, take: impl FnOnce(&mut Decided) -> R) -> R {
        take(&mut self.decided.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// See [`crate::Table::keeps`].
    pub(crate) fn keeps(&self, at: Timestamp) -> bool {
        at >= self.get() || self.with_decided(|decided| decided.kept.contains(at))
    }

    /// See [`crate::Table::raise_horizon`].
    pub(crate) fn raise(&self, wanted: Timestamp, in_use: impl FnOnce() -> Vec<Timestamp>) -> Kept {
        self.with_decided(|decided| {
            self.word.fetch_or(DECIDING, Ordering::SeqCst);
            let in_use = in_use();
            let newest = in_use.last().map_or(Timestamp::ZERO, |last| *last);
            let needed = decided.needed_from.keys().next().map_or(Timestamp::MAX, |first| *first);
            decided.kept = decided.kept.raised(wanted.min(newest).min(needed), &in_use);
            self.word.store(decided.kept.horizon.0, Ordering::SeqCst);
            decided.kept.clone()
        })
    }

    /// Nothing before `at` is there, after a restart: no snapshot from before is in use.
    pub(crate) fn restore(&self, at: Timestamp) {
        self.with_decided(|decided| {
            decided.kept = Kept::from(at.max(decided.kept.horizon));
            self.word.store(decided.kept.horizon.0, Ordering::SeqCst);
        });
    }

    /// The horizon as it was decided last, whatever is being decided now.
    pub(crate) fn decided(&self) -> Timestamp {
        self.with_decided(|decided| decided.kept.horizon)
    }

    /// See [`crate::Table::keep_all`].
    pub(crate) fn keep_all(&self) -> KeptFrom<'_> {
        self.with_decided(|decided| self.need(decided, decided.kept.horizon))
    }

    /// See [`crate::Table::keep_from`].
    pub(crate) fn keep_from(&self, from: Timestamp) -> Option<KeptFrom<'_>> {
        self.with_decided(|decided| (from >= decided.kept.horizon).then(|| self.need(decided, from)))
    }

    fn need(&self, decided: &mut Decided, from: Timestamp) -> KeptFrom<'_> {
        *decided.needed_from.entry(from).or_default() += 1;
        KeptFrom { horizon: self, from }
    }
}

/// Keeps every version of a table from a time on as long as it lives.
pub struct KeptFrom<'a> {
    horizon: &'a Horizon,
    from: Timestamp,
}

impl KeptFrom<'_> {
    /// From here on everything is kept.
    pub fn from(&self) -> Timestamp {
        self.from
    }
}

impl Drop for KeptFrom<'_> {
    fn drop(&mut self) {
        self.horizon.with_decided(|decided| {
            if let Some(count) = decided.needed_from.get_mut(&self.from) {
                *count -= 1;
                if *count == 0 {
                    decided.needed_from.remove(&self.from);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(words: &[u64]) -> Vec<Timestamp> {
        words.iter().copied().map(Timestamp).collect()
    }

    fn raise(horizon: &Horizon, wanted: u64, in_use: &[u64]) -> Kept {
        horizon.raise(Timestamp(wanted), || times(in_use))
    }

    fn kept_of(horizon: &Horizon, until: u64) -> Vec<u64> {
        (0..until).filter(|at| horizon.keeps(Timestamp(*at))).collect()
    }

    #[test]
    fn what_is_neither_in_use_nor_after_the_horizon_is_refused_for_ever() {
        let horizon = Horizon::new();
        assert_eq!(raise(&horizon, u64::MAX >> 1, &[3, 5, 5, 8, 10]).horizon(), Timestamp(10));
        assert_eq!(kept_of(&horizon, 13), [3, 5, 8, 10, 11, 12]);
        raise(&horizon, 10, &[3, 4, 8, 12]);
        assert_eq!(kept_of(&horizon, 13), [3, 8, 10, 11, 12], "4 was given up before somebody asked for it");
        assert_eq!(raise(&horizon, 5, &[5, 8, 10, 12]).horizon(), Timestamp(10), "it only goes up");
        assert_eq!(kept_of(&horizon, 13), [8, 10, 11, 12]);
        assert_eq!(horizon.kept().oldest(), Timestamp(8));
        raise(&horizon, 12, &[12]);
        assert_eq!((kept_of(&horizon, 13), horizon.kept().oldest()), (vec![12], Timestamp(12)));
    }

    #[test]
    fn versions_between_two_snapshots_are_seen_together() {
        let horizon = Horizon::new();
        let kept = raise(&horizon, 10, &[3, 6, 12]);
        let seen_first = (1..=12).map(|start| kept.first_to_see(start)).collect::<Vec<_>>();
        assert_eq!(seen_first, [3, 3, 3, 6, 6, 6, 10, 10, 10, 10, 11, 12]);
        for start in 1..=13 {
            let first = (0..=13).find(|at| *at >= start && kept.contains(Timestamp(*at)));
            assert_eq!(Some(kept.first_to_see(start)), first);
        }
    }

    #[test]
    fn what_somebody_needs_whole_stays_whole() {
        let horizon = Horizon::new();
        raise(&horizon, 5, &[20]);
        assert!(horizon.keep_from(Timestamp(4)).is_none());
        let all = horizon.keep_all();
        let later = horizon.keep_from(Timestamp(8)).unwrap();
        let again = horizon.keep_from(Timestamp(8)).unwrap();
        assert_eq!((all.from(), later.from()), (Timestamp(5), Timestamp(8)));
        assert_eq!(raise(&horizon, 20, &[20]).horizon(), Timestamp(5));
        drop((all, later));
        assert_eq!(raise(&horizon, 20, &[20]).horizon(), Timestamp(8));
        drop(again);
        assert_eq!(raise(&horizon, 20, &[20]).horizon(), Timestamp(20));
    }
}
