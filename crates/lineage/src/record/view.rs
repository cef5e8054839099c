//! What a reader sees: the one rule by which every path decides whether a version is visible.
//!
//! A Start Time word at or below the snapshot's timestamp is visible: one compare, the common case. Otherwise the
//! word may still name a transaction that has committed and not stamped its records yet; then the transaction table
//! is asked, through the trait that this crate declares and the engine supplies.
//!
//! A transaction that has its commit timestamp and may still abort is *prepared* (pre-committed). A reader with a
//! snapshot at or after that timestamp takes its versions for committed and depends on it from then on; for
//! writers, the merge and the list of changes it is not over.
use sync::atomic::{AtomicU64, Ordering};
use types::{Snapshot, StartTime, Timestamp, TxnId};

use crate::page::tail::TailRecord;

/// What became of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is running.
    Active,
    /// It has this commit timestamp, has written all that it will, and may still abort.
    Prepared(Timestamp),
    /// It committed at this time.
    Committed(Timestamp),
    /// It rolled back.
    Aborted,
    /// It is over and has stamped all that it wrote: read the Start Time word again.
    Stamped,
}

/// Resolves transactions that are named in Start Time words.
pub trait Outcomes {
    /// What became of `txn`. While it is taking its commit timestamp this waits for the few instructions until
    /// it has one, so that the answer agrees with every snapshot taken before the call.
    fn outcome(&self, txn: TxnId) -> Outcome;

    /// The reader is about to take a version of the prepared transaction `on` for committed. True: it may; if it is a
    /// transaction, that depends on `on` from here on. False: `on` is decided meanwhile (a reader that is no transaction
    /// has been made to wait for that), so its outcome is to be asked for again.
    fn speculate(&self, reader: Snapshot, on: TxnId) -> bool;

    /// Returns once the prepared transaction `on` is decided.
    fn await_decision(&self, on: TxnId);
}

/// A Start Time word with its transaction looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolved {
    /// Not written yet.
    Unwritten,
    /// Written by a transaction that still runs.
    Active(TxnId),
    /// Written by a transaction that will have committed at this time, if it does not abort.
    Prepared(TxnId, Timestamp),
    /// Committed at this time.
    Committed(Timestamp),
    /// Rolled back.
    Tombstone,
}

impl Resolved {
    /// The transaction, if it has not ended.
    #[inline]
    pub(crate) fn unended(self) -> Option<TxnId> {
        match self {
            Resolved::Active(txn) | Resolved::Prepared(txn, _) => Some(txn),
            _ => None,
        }
    }
}

/// Looks up what a Start Time word stands for now.
#[inline]
pub fn resolve<O: Outcomes>(start: &AtomicU64, outcomes: &O) -> Resolved {
    loop {
        let word = start.load(Ordering::Acquire);
        match StartTime::from_word(word) {
            StartTime::Committed(at) => return Resolved::Committed(at),
            StartTime::Tombstone => return Resolved::Tombstone,
            StartTime::Unwritten => return Resolved::Unwritten,
            StartTime::Pending(txn) => match outcomes.outcome(txn) {
                Outcome::Active => return Resolved::Active(txn),
                // A running transaction may take a single version back (a key that is taken). If it did so after the
                // word was read, and has committed since, its outcome is not that of this version.
                Outcome::Committed(at) if start.load(Ordering::Acquire) == word => return Resolved::Committed(at),
                // The same before it was prepared.
                Outcome::Prepared(at) if start.load(Ordering::Acquire) == word => return Resolved::Prepared(txn, at),
                Outcome::Committed(_) | Outcome::Prepared(_) => {}
                Outcome::Aborted => return Resolved::Tombstone,
                Outcome::Stamped => {}
            },
        }
    }
}

/// Looks up a Start Time word and, where its transaction is over, writes the outcome in its place, so that later
/// readers need not ask.
pub fn resolve_and_stamp<O: Outcomes>(start: &AtomicU64, outcomes: &O) -> Resolved {
    stamp_resolved(start, start.load(Ordering::Acquire), || resolve(start, outcomes))
}

/// Replaces the word `before`, if it is a transaction's id and still there, by what has become of it.
fn stamp_resolved(start: &AtomicU64, before: u64, resolve: impl FnOnce() -> Resolved) -> Resolved {
    let seen = StartTime::from_word(before);
    if seen == StartTime::Unwritten {
        // What is written from here on would not be stamped.
        return Resolved::Unwritten;
    }
    let resolved = resolve();
    if let StartTime::Pending(_) = seen {
        let stamp = match resolved {
            Resolved::Committed(at) => at.0,
            Resolved::Tombstone => StartTime::TOMBSTONE,
            Resolved::Active(_) | Resolved::Prepared(..) | Resolved::Unwritten => return resolved,
        };
        // Its owner may stamp the same value at the same time; either store is right.
        let _ = start.compare_exchange(before, stamp, Ordering::AcqRel, Ordering::Relaxed);
    }
    resolved
}

/// Whether a reader sees a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visibility {
    /// Committed in time, or the reader's own.
    Visible,
    /// Committed later, or running.
    Invisible,
    /// Rolled back, or not written: as if it were not there.
    Absent,
}

/// A snapshot and the means to resolve transactions.
pub struct View<'a, O> {
    /// What is visible.
    pub snapshot: Snapshot,
    /// The source of the outcome of transactions.
    pub outcomes: &'a O,
}

impl<O> Clone for View<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for View<'_, O> {}

impl<O: Outcomes> View<'_, O> {
    /// Whether a version with this Start Time is visible.
    #[inline]
    pub fn visibility(&self, start: &AtomicU64) -> Visibility {
        let word = start.load(Ordering::Acquire);
        if self.is_in_time(word) { Visibility::Visible } else { self.visibility_beyond(start, word) }
    }

    /// Whether a version with this Start Time was committed in time and stamped.
    #[inline]
    pub(crate) fn is_in_time(&self, word: u64) -> bool {
        word <= self.snapshot.at.0 && word != 0
    }

    /// What is left to ask of a Start Time that was this word when it was looked at.
    #[inline]
    fn visibility_beyond(&self, start: &AtomicU64, word: u64) -> Visibility {
        if word <= Timestamp::MAX.0 {
            return if word == 0 { Visibility::Absent } else { Visibility::Invisible };
        }
        if self.snapshot.sees_own(word) {
            return Visibility::Visible;
        }
        self.visibility_of_pending(start)
    }

    /// What is left to ask of a Start Time that was a transaction's id when it was looked at.
    fn visibility_of_pending(&self, start: &AtomicU64) -> Visibility {
        loop {
            return match resolve(start, self.outcomes) {
                Resolved::Committed(at) if at <= self.snapshot.at => Visibility::Visible,
                // Nobody depends on himself: of his own versions a reader sees those that the snapshot names.
                Resolved::Prepared(on, at) if at <= self.snapshot.at && self.snapshot.own != Some(on) => {
                    if !self.outcomes.speculate(self.snapshot, on) {
                        continue;
                    }
                    Visibility::Visible
                }
                Resolved::Committed(_) | Resolved::Prepared(..) | Resolved::Active(_) => Visibility::Invisible,
                Resolved::Tombstone | Resolved::Unwritten => Visibility::Absent,
            };
        }
    }
}

/// A lock is nobody's version, whatever becomes of its transaction: once that has ended, the lock is a tombstone.
impl TailRecord<'_> {
    /// Whether the version is visible.
    #[inline]
    pub(crate) fn visibility<O: Outcomes>(&self, view: View<'_, O>) -> Visibility {
        let word = self.start().load(Ordering::Acquire);
        if view.is_in_time(word) {
            Visibility::Visible
        } else if word != 0 && self.kind().is_lock() {
            Visibility::Absent
        } else {
            view.visibility_beyond(self.start(), word)
        }
    }

    /// Looks up what its Start Time stands for now.
    #[inline]
    pub(crate) fn resolve<O: Outcomes>(&self, outcomes: &O) -> Resolved {
        match StartTime::from_word(self.start().load(Ordering::Acquire)) {
            StartTime::Committed(at) => Resolved::Committed(at),
            _ => self.resolve_unstamped(outcomes),
        }
    }

    fn resolve_unstamped<O: Outcomes>(&self, outcomes: &O) -> Resolved {
        match resolve(self.start(), outcomes) {
            Resolved::Committed(_) if self.kind().is_lock() => Resolved::Tombstone,
            resolved => resolved,
        }
    }

    /// Looks up what its Start Time stands for now, and writes the outcome in its place.
    pub(crate) fn resolve_and_stamp<O: Outcomes>(&self, outcomes: &O) -> Resolved {
        stamp_resolved(self.start(), self.start().load(Ordering::Acquire), || self.resolve(outcomes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While a reader asks, the transaction takes this one version back and then comes to its outcome.
    struct TakesItBack<'a>(&'a AtomicU64, Outcome);

    impl Outcomes for TakesItBack<'_> {
        fn outcome(&self, _: TxnId) -> Outcome {
            self.0.store(StartTime::TOMBSTONE, Ordering::Release);
            self.1
        }

        fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
            unreachable!("the version is not there")
        }

        fn await_decision(&self, _: TxnId) {}
    }

    #[test]
    fn a_version_taken_back_does_not_commit_with_its_transaction() {
        for outcome in [Outcome::Committed(Timestamp(5)), Outcome::Prepared(Timestamp(5))] {
            let pending = || AtomicU64::new(TxnId::new(1).word());
            let start = pending();
            let outcomes = TakesItBack(&start, outcome);
            assert_eq!(resolve(&start, &outcomes), Resolved::Tombstone);
            let start = pending();
            let outcomes = TakesItBack(&start, outcome);
            assert_eq!(resolve_and_stamp(&start, &outcomes), Resolved::Tombstone, "the merge passes over it");
            let start = pending();
            let view = View { snapshot: Snapshot::at(Timestamp::MAX), outcomes: &TakesItBack(&start, outcome) };
            assert_eq!(view.visibility(&start), Visibility::Absent);
        }
    }
}
