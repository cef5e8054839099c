//! The times at which records changed: the versions of one record, and the changes of a range between two commits.
//!
//! Versions are in three places: the base record (its insert), the tail, and the history. A version may move from
//! the tail to the history meanwhile, so the tail is read first and what is found twice is counted once. A version
//! of a prepared transaction may be one of those asked for, or come to nothing: its outcome is waited for.
use std::cmp::Reverse;

use sync::Guard;
use types::{Rid, Snapshot, Timestamp};

use crate::memory::source::PageError;
use crate::page::contents::HistoryEntry;
use crate::page::lent::Lent;
use crate::page::tail::TailRecord;
use crate::record::range::Range;
use crate::record::view::{Outcomes, Resolved, View, resolve};
use crate::value::cell::Cell;
use crate::value::kind::Kind;

/// A record that a commit changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ChangedRecord {
    /// the commit
    pub at: Timestamp,
    /// the record
    pub rid: Rid,
}

/// When a version was committed, `None` if it was not, or after `to`.
fn committed<O: Outcomes>(outcomes: &O, to: Timestamp, resolve: impl Fn() -> Resolved) -> Option<Timestamp> {
    loop {
        match resolve() {
            Resolved::Committed(at) => return Some(at).filter(|at| *at <= to),
            Resolved::Prepared(txn, at) if at <= to => outcomes.await_decision(txn),
            _ => return None,
        }
    }
}

/// When a tail record's version was committed: `None` for a snapshot record, and as in [`committed`].
fn committed_in_tail<O: Outcomes>(record: &TailRecord<'_>, to: Timestamp, outcomes: &O) -> Option<Timestamp> {
    let is_version = record.kind() != Kind::Snapshot;
    is_version.then(|| committed(outcomes, to, || record.resolve(outcomes))).flatten()
}

impl Range {
    /// When the versions of the record at `slot` were committed, oldest first, up to `to`.
    pub(crate) fn version_times<O: Outcomes>(
        &self,
        guard: &Guard,
        slot: usize,
        to: Timestamp,
        outcomes: &O,
    ) -> Result<Vec<Timestamp>, PageError> {
        let part = self.part(slot);
        let mut times = Vec::new();
        part.tails.each_live(guard, |record| {
            if record.start().load(sync::atomic::Ordering::Acquire) != 0 && record.slot() == slot {
                times.extend(committed_in_tail(&record, to, outcomes));
            }
        });
        let history = &part.archive.load(guard).history;
        for page in history.pages_of(slot) {
            let versions = page.get(guard)?.versions(slot).filter(|version| version.kind() != Kind::Snapshot);
            times.extend(versions.map(|version| Timestamp(version.start())).filter(|at| *at <= to));
        }
        let inserted = self.pages.load(guard).meta.start(guard, slot)?;
        times.extend(committed(outcomes, to, || resolve(inserted, outcomes)));
        times.sort_unstable();
        times.dedup();
        Ok(times)
    }

    /// The records that commits after `from` and not after `to` changed.
    pub(crate) fn changed<O: Outcomes>(
        &self,
        index: usize,
        from: Timestamp,
        to: Timestamp,
        outcomes: &O,
    ) -> Result<Vec<ChangedRecord>, PageError> {
        let guard = &sync::pin();
        let is_wanted = |at: &Timestamp| *at > from;
        let changed = |slot, at| ChangedRecord { at, rid: Rid::base(index, slot) };
        let mut changes = Vec::new();
        for part in &self.parts {
            part.tails.each_live(guard, |record| {
                let at = committed_in_tail(&record, to, outcomes).filter(is_wanted);
                changes.extend(at.map(|at| changed(record.slot(), at)));
            });
            let history = &part.archive.load(guard).history;
            let has_changes = |page: &&HistoryEntry| {
                page.outline.start_span.is_some_and(|(earliest, latest)| earliest <= to.0 && latest > from.0)
            };
            for page in history.pages().iter().filter(has_changes) {
                let page = page.hold(guard)?;
                changes.extend(page.changes(from.0, to.0).map(|(slot, at, _)| changed(slot, Timestamp(at))));
            }
        }
        let (meta, lent) = (&self.pages.load(guard).meta, Lent::new(0));
        let starts = lent.starts(guard, meta)?;
        for slot in 0..self.len() {
            let at = committed(outcomes, to, || resolve(starts.word(slot), outcomes)).filter(is_wanted);
            changes.extend(at.map(|at| changed(slot, at)));
        }
        changes.sort_unstable();
        changes.dedup();
        Ok(changes)
    }

    /// Passes on what records of the range that are wanted were at each moment from `from` to `to` at which one changed: record by
    /// record, from the newest moment back, `None` where there was no record.
    pub(crate) fn for_each_moment<O: Outcomes>(
        &self,
        index: usize,
        columns: &[usize],
        (from, to): (Timestamp, Timestamp),
        outcomes: &O,
        is_wanted: impl Fn(Rid) -> bool,
        mut visit: impl FnMut(ChangedRecord, Option<&[Cell<'_>]>),
    ) -> Result<(), PageError> {
        let mut moments = self.changed(index, Timestamp::ZERO, to, outcomes)?;
        moments.retain(|moment| is_wanted(moment.rid));
        // The version at `from` is the first that is known.
        moments.iter_mut().for_each(|moment| moment.at = moment.at.max(from));
        moments.sort_unstable_by_key(|moment| (moment.rid, Reverse(moment.at)));
        moments.dedup();
        for moments in moments.chunk_by(|left, right| left.rid == right.rid) {
            let guard = &sync::pin();
            let mut descent = self.descend(guard, moments[0].rid.slot(), columns);
            for moment in moments {
                let view = View { snapshot: Snapshot::at(moment.at), outcomes };
                visit(*moment, descent.read(view)?);
            }
        }
        Ok(())
    }
}
