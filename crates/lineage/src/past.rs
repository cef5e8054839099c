//! When records changed: the versions of one record, and the changes of a range between two commits.
//!
//! Versions are in three places: the base record (its insert), the tail, and the history. A version may move from the tail
//! to the history while somebody looks, so the tail is read first and what is found twice is counted once.
//! A version whose transaction is only prepared is not there yet: its commit may come to nothing.
use sync::Guard;
use types::{Rid, Timestamp};

use crate::range::Range;
use crate::tail::{Kind, TailRecord};
use crate::view::{Outcomes, Resolved, resolve};

/// A record that a commit changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Changed {
    /// the commit
    pub at: Timestamp,
    /// the record
    pub rid: Rid,
}

/// When a tail record's version was committed, `None` for snapshot records and what is not committed.
fn committed<O: Outcomes>(record: &TailRecord<'_>, outcomes: &O) -> Option<Timestamp> {
    match record.resolve(outcomes) {
        Resolved::Committed(at) if record.kind() != Kind::Snapshot => Some(at),
        _ => None,
    }
}

impl Range {
    /// When the versions of the record at `slot` were committed, oldest first.
    pub(crate) fn version_times<O: Outcomes>(&self, guard: &Guard, slot: usize, outcomes: &O) -> Vec<Timestamp> {
        let part = self.part(slot);
        let mut times = Vec::new();
        part.tails.each_live(guard, |record| {
            if record.start().load(sync::atomic::Ordering::Acquire) != 0 && record.slot() == slot {
                times.extend(committed(&record, outcomes));
            }
        });
        let history = &part.archive.load(guard).history;
        let versions = history.versions(slot).filter(|version| version.kind() != Kind::Snapshot);
        times.extend(versions.map(|version| Timestamp(version.start())));
        if let Resolved::Committed(at) = resolve(self.pages.load(guard).meta.start(slot), outcomes) {
            times.push(at);
        }
        times.sort_unstable();
        times.dedup();
        times
    }

    /// The records that commits after `from` and not after `to` changed.
    pub(crate) fn changed<O: Outcomes>(
        &self,
        index: usize,
        from: Timestamp,
        to: Timestamp,
        outcomes: &O,
    ) -> Vec<Changed> {
        let guard = &sync::pin();
        let is_wanted = |at: &Timestamp| *at > from && *at <= to;
        let changed = |slot, at| Changed { at, rid: Rid::base(index, slot) };
        let mut changes = Vec::new();
        for part in &self.parts {
            part.tails.each_live(guard, |record| {
                let at = committed(&record, outcomes).filter(is_wanted);
                changes.extend(at.map(|at| changed(record.slot(), at)));
            });
            let history = &part.archive.load(guard).history;
            changes.extend(history.changes(from.0, to.0).map(|(slot, at, _)| changed(slot, Timestamp(at))));
        }
        let meta = &self.pages.load(guard).meta;
        for slot in 0..self.len() {
            if let Resolved::Committed(at) = resolve(meta.start(slot), outcomes)
                && is_wanted(&at)
            {
                changes.push(changed(slot, at));
            }
        }
        changes.sort_unstable();
        changes.dedup();
        changes
    }
}
