//! Turning merged tail records into history, and giving up the history that nobody may ask for (L-Store, end of
//! section 2.1).
//!
//! ```text
//! tail of an update range   1 ......... through ......... TPS of all pages ......... allocated
//!                           history pages | merged: become | not merged: stay
//! ```
//!
//! After a merge, whole tail pages that every base page has taken in are rewritten into history pages and given up;
//! readers find a version in the one place or in the other. (The paper waits until no running query needs them in place;
//! here a walk along a chain crosses from the tail to the history, so nothing has to wait for a long query.)
//!
//! **The horizon** is the oldest snapshot that may still be asked for. A record all of whose archived versions are at or
//! before it, and whose base record shows nothing newer, needs no history: every snapshot left sees the base record. It
//! is not even written. If such a record is updated again and a merge is about to put the new value over the base value
//! that earlier snapshots still need, the merge first keeps the old one as the record's *origin*
//! ([`Range::keep_origins`]); its writer does not have to know.
//!
//! Order of publication, for readers, who load pages before the Indirection word and the history last: history first,
//! then base pages, and tail pages are given up at the end. Everything here runs under the merge's own mutex.
use sync::Guard;
use sync::atomic::Ordering;
use types::Timestamp;

use crate::base::{MetaColumns, MetaPage, Pages};
use crate::cell::Cell;
use crate::history::{History, HistoryPage, NewVersion};
use crate::memory::{Charge, MemoryKind};
use crate::range::Range;
use crate::tail::{Kind, TailRecord};

/// The history of an update range, with the memory that it is charged for.
pub(crate) struct Archive {
    pub(crate) history: History,
    /// how many versions there were when it last expired
    len_expired: usize,
    /// the horizon then
    horizon_expired: u64,
    _charge: Charge,
}

impl Archive {
    pub(crate) fn new(history: History, charge: Charge) -> Archive {
        Archive { len_expired: 0, horizon_expired: 0, history, _charge: charge }
    }
}

/// Tail records of an update range that become history at a time: some ten milliseconds of work, and as many as a merge
/// takes in, so that history keeps up with merges.
const RECORDS_AT_ONCE: u64 = 1 << 15;

/// A merged tail record on its way into history.
struct Archived<'g> {
    slot: usize,
    record: TailRecord<'g>,
    start: u64,
}

impl Range {
    /// Whether there is something to archive, or enough history to look for what can go.
    pub(crate) fn has_archivable(&self, guard: &Guard) -> bool {
        let pages = self.pages.load(guard);
        matches!(pages.meta, MetaPage::Base(_))
            && (0..self.parts.len()).any(|part| {
                let archive = self.parts[part].archive.load(guard);
                self.archivable(guard, pages, part, false).is_some() || self.has_grown(part, archive)
            })
    }

    /// Up to where an update range can become history now, in whole tail pages: `all`, or some pages at least, so that
    /// history pages are large, and some thousand records at most, so that merges need not wait long.
    fn archivable(&self, guard: &Guard, pages: &Pages, part: usize, all: bool) -> Option<u64> {
        let page_records = self.parts[part].tails.page_records() as u64;
        let archived = self.parts[part].archive.load(guard).history.through();
        let merged = pages.floor[part] / page_records * page_records;
        let (batch, through) = if all {
            (1, merged)
        } else {
            let batch = (self.options.update_range_records as u64 / 16).max(page_records);
            (batch, merged.min(archived + RECORDS_AT_ONCE))
        };
        (through >= archived + batch).then_some(through)
    }

    /// Whether there is enough new history for a look at every record to be worth it.
    fn has_grown(&self, part: usize, archive: &Archive) -> bool {
        archive.history.len() >= 2 * archive.len_expired.max(self.parts[part].tails.page_records())
    }

    /// Archives what has been merged, and expires what no snapshot from `horizon` on needs. `all` takes in the last
    /// pages too, and expires however little it brings. Returns whether it archived anything. The caller holds the merge's
    /// mutex.
    pub(crate) fn archive(&self, guard: &Guard, horizon: Timestamp, all: bool) -> bool {
        let pages = self.pages.load(guard);
        let MetaPage::Base(meta) = &pages.meta else { return false };
        let mut has_archived = false;
        for part in 0..self.parts.len() {
            if let Some(through) = self.archivable(guard, pages, part, all) {
                has_archived = true;
                let before = &self.parts[part].archive.load(guard).history;
                let history = self.with_archived(guard, part, meta, before, through, horizon);
                self.publish_history(guard, part, history, None);
                self.parts[part].tails.give_up(guard, through);
            }
            self.expire(guard, part, meta, horizon, all);
        }
        has_archived
    }

    fn publish_history(&self, guard: &Guard, part: usize, history: History, expired: Option<Timestamp>) {
        let cell = &self.parts[part].archive;
        let before = cell.load(guard);
        let (len_expired, horizon_expired) = match expired {
            Some(horizon) => (history.len(), horizon.0),
            None => (before.len_expired, before.horizon_expired),
        };
        let charge = Charge::new(&self.meter, MemoryKind::History, history.bytes());
        cell.replace(Archive { history, len_expired, horizon_expired, _charge: charge }, guard);
    }

    /// The history with the tail records up to `through`, but for those that no snapshot from the horizon on needs.
    fn with_archived(
        &self,
        guard: &Guard,
        part: usize,
        meta: &MetaColumns,
        before: &History,
        through: u64,
        horizon: Timestamp,
    ) -> History {
        let first_slot = part * self.options.update_range_records;
        let mut is_needed = vec![horizon == Timestamp::ZERO; self.options.update_range_records];
        let mut versions = Vec::new();
        let tails = &self.parts[part].tails;
        for sequence in before.through() + 1..=through {
            let Some(record) = tails.get(guard, sequence) else { continue };
            let start = record.start().load(Ordering::Acquire);
            if start > Timestamp::MAX.0 {
                continue; // rolled back, or a number that was never used
            }
            let slot = record.slot();
            let is_recent = record.kind() != Kind::Snapshot && start > horizon.0;
            let is_needed = &mut is_needed[slot - first_slot];
            // A record that has older history needs this too, lest a reader takes that for the newest.
            *is_needed |= is_recent
                || meta.last_updated(slot) > horizon.0
                || before.len() > 0 && before.versions(slot).next().is_some();
            versions.push(Archived { slot, record, start });
        }
        let all = versions.len();
        versions.retain(|version| is_needed[version.slot - first_slot]);
        versions.sort_unstable_by_key(|version| (version.slot, std::cmp::Reverse(version.record.sequence)));
        let history = before.append(self.build_page(&versions), through);
        if versions.len() < all { history.pass(through) } else { history }
    }

    fn build_page(&self, versions: &[Archived<'_>]) -> HistoryPage {
        let mut values: Vec<(usize, Cell<'_>)> = Vec::new();
        let mut ends = Vec::with_capacity(versions.len());
        for version in versions {
            let explicit = version.record.explicit();
            values.extend(explicit.iter().map(|column| (column, version.record.cell(column))));
            ends.push(values.len());
        }
        let mut from = 0;
        let new_versions = versions.iter().zip(ends).map(|(version, end)| {
            let (slot, sequence, kind) = (version.slot, version.record.sequence, version.record.kind());
            let values = &values[std::mem::replace(&mut from, end)..end];
            NewVersion { slot, sequence, kind, start: version.start, values }
        });
        HistoryPage::build(&self.types, new_versions)
    }

    /// Gives up old history, when there is enough of it to be worth looking at every record.
    fn expire(&self, guard: &Guard, part: usize, meta: &MetaColumns, horizon: Timestamp, all: bool) {
        let archive = self.parts[part].archive.load(guard);
        let has_moved = horizon.0 > archive.horizon_expired;
        if archive.history.len() == 0 || !has_moved || !(all || self.has_grown(part, archive)) {
            return;
        }
        // A base record that shows a version after the horizon does not stand for the snapshots before that.
        let keep_origin = |slot: usize| meta.last_updated(slot) > horizon.0;
        if let Some(history) = archive.history.expire(horizon.0, keep_origin) {
            self.publish_history(guard, part, history, Some(horizon));
        }
    }

    /// Keeps, as origins in the history, the base values that the merge is about to replace and that snapshots between
    /// the horizon and the new version need: those of records whose own history was given up, be it only the snapshot
    /// record that a rolled-back update left. `newest` are the newest versions that the merge takes in, each with its
    /// commit time.
    pub(crate) fn keep_origins<'g>(
        &self,
        guard: &Guard,
        part: usize,
        meta: &MetaColumns,
        newest: impl Iterator<Item = (TailRecord<'g>, Timestamp)>,
        horizon: Timestamp,
    ) {
        let (pages, history) = (self.pages.load(guard), &self.parts[part].archive.load(guard).history);
        if history.given_up() == 0 {
            return;
        }
        let lost: Vec<TailRecord<'_>> = newest
            .filter(|(record, committed)| *committed > horizon && self.has_lost_history(guard, part, history, record))
            .map(|(record, _)| record)
            .collect();
        if lost.is_empty() {
            return;
        }
        let value = |slot, column: usize| (column, pages.columns[column].cell(column, slot));
        let values_of = |record: &TailRecord<'_>| -> Vec<(usize, Cell<'_>)> {
            record.ever().iter().map(|column| value(record.slot(), column)).collect()
        };
        let values: Vec<Vec<(usize, Cell<'_>)>> = lost.iter().map(values_of).collect();
        let origins = lost.iter().zip(&values).map(|(record, values)| NewVersion {
            slot: record.slot(),
            sequence: history.through(),
            kind: Kind::Update,
            // Whatever the origin stands for was there at the horizon, or it would not have been given up.
            start: meta.start.word(record.slot()).load(Ordering::Relaxed),
            values,
        });
        let history = history.restore(HistoryPage::build(&self.types, origins));
        self.publish_history(guard, part, history, None);
    }

    /// Whether the chain that begins with this version ends in history that is not there any more.
    fn has_lost_history(&self, guard: &Guard, part: usize, history: &History, newest: &TailRecord<'_>) -> bool {
        let mut sequence = newest.prev();
        while sequence != 0 {
            match self.parts[part].tails.get(guard, sequence) {
                Some(record) => sequence = record.prev(),
                None => return history.versions(newest.slot()).next().is_none(),
            }
        }
        false
    }
}
