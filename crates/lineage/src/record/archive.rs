//! Turning merged tail records into history, and giving up the history that no snapshot may ask for (L-Store, end
//! of section 2.1).
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
//! **Kept versions** follow from a set of snapshots (see `kept`). Versions that the same snapshots see become one
//! on their way into a history page, so that what fell between two snapshots in use is not even written. A record
//! needs no history if all of its archived versions are at or before the oldest snapshot and its base record shows
//! nothing newer: every snapshot left sees the base record. If such a record is updated again and a merge is about
//! to put the new value over the base value that earlier snapshots still need, the merge first keeps the old one as
//! the record's *origin* ([`Range::keep_origins`]); its writer does not have to know.
//!
//! Order of publication: readers load pages before the Indirection word and the history last, so history is
//! published first, then base pages, and tail pages are given up at the end. Everything here runs under the merge's
//! own mutex.
use sync::Guard;
use sync::atomic::Ordering;
use types::Timestamp;

use crate::encoding::Simd;
use crate::history::chain::Draft;
use crate::history::page::PageWriter;
use crate::history::{ChainWords, HistoryPage, NewVersion, Values, WordVersion};
use crate::memory::source::PageError;
use crate::page::archived::{Archive, ExpiryFindings};
use crate::page::base::{MetaColumns, MetaPage, Pages};
use crate::page::history::History;
use crate::page::lent::Lent;
use crate::page::tail::{RecordPlace, TailPages, TailRecord};
use crate::record::range::Range;
use crate::value::cell::Cell;
use crate::value::column_set::{WORD_COLUMNS, each_column};
use crate::value::kept::Kept;
use crate::value::kind::Kind;
use crate::value::slots::SlotSet;

/// Tail records of an update range that become history at a time: some ten milliseconds of work, and as many as a merge
/// takes in, so that history keeps up with merges.
const RECORDS_AT_ONCE: u64 = 1 << 15;

/// Records whose memory is asked for before the first of them is read, as those of a slot lie far apart.
const RECORDS_ASKED: usize = 64;

/// A merged tail record on its way into history.
#[derive(Clone, Copy)]
struct ArchivedRecord<'g> {
    sequence: u64,
    place: RecordPlace<'g>,
}

/// Records that are linked by slot, from the newest to the oldest.
struct SlotChains<R> {
    /// each with the place behind that of the one before it of its slot, 0 for the first
    records: Vec<(R, u32)>,
    /// by slot: the place behind that of its newest record, 0 where there is none
    newest: Vec<u32>,
    /// the slots that have records
    slots: SlotSet,
}

impl<R: Copy> SlotChains<R> {
    fn new(slots: usize, records: usize) -> SlotChains<R> {
        SlotChains { records: Vec::with_capacity(records), newest: vec![0; slots], slots: SlotSet::new(slots) }
    }

    /// Adds a record that is newer than those before.
    #[inline]
    fn push(&mut self, slot: usize, record: R) {
        let before = std::mem::replace(&mut self.newest[slot], self.records.len() as u32 + 1);
        self.records.push((record, before));
        self.slots.insert(slot);
    }

    /// Passes on a slot's records, newest first.
    #[inline]
    fn each_of(&self, slot: usize, mut take: impl FnMut(R)) {
        let mut behind = self.newest[slot] as usize;
        while let Some(at) = behind.checked_sub(1) {
            let (record, before) = self.records[at];
            take(record);
            behind = before as usize;
        }
    }
}

/// The versions of a record, newest first.
struct TailWords<'r, 'g> {
    simd: Simd,
    tails: &'g TailPages,
    guard: &'g Guard,
    chain: &'r [ArchivedRecord<'g>],
}

impl<'g> TailWords<'_, 'g> {
    fn draft(&self, record: &ArchivedRecord<'_>) -> Option<Draft<'g>> {
        let record = self.tails.get(self.guard, record.sequence)?;
        let mut values = Values::with_capacity(record.value_count());
        record.each_value(|column, cell| values.push((column, cell)));
        let start = record.start().load(Ordering::Acquire);
        Some(Draft { sequence: record.sequence, kind: record.kind(), start, values })
    }
}

impl ChainWords for TailWords<'_, '_> {
    #[inline]
    fn word(&self, at: usize, column: usize) -> u64 {
        let ArchivedRecord { place, sequence } = self.chain[at];
        match place.has(column) {
            true => place.word(column),
            false => self.tails.get(self.guard, sequence).map_or(0, |record| record.word(column)),
        }
    }

    #[inline]
    fn each_word(&self, at: usize, columns: u64, mut take: impl FnMut(usize, u64)) {
        let (place, spilled) = (self.chain[at].place, columns & self.tails.spilled_columns());
        each_column(columns & !spilled, |column| take(column, place.word(column)));
        each_column(spilled, |column| take(column, self.word(at, column)));
    }

    #[inline]
    fn equal(&self, at: usize, other: usize, columns: u64) -> u64 {
        let mut equal = self.chain[at].place.equal_words(self.simd, self.chain[other].place) & columns;
        each_column(columns & self.tails.spilled_columns(), |column| {
            equal |= u64::from(self.word(at, column) == self.word(other, column)) << column;
        });
        equal
    }
}

/// The version as one of words; `None` if it has a NULL.
#[inline]
fn word_version(record: &ArchivedRecord<'_>) -> Option<WordVersion> {
    let ArchivedRecord { sequence, place } = *record;
    let (explicit, _, nulls) = place.sets();
    let start = place.start().load(Ordering::Acquire);
    (nulls == 0).then(|| WordVersion { sequence, kind: place.kind(), start, explicit })
}

/// Passes on the records of these numbers, oldest first, but for those that were rolled back and numbers that were never used.
#[inline]
fn each_committed<'g>(
    tails: &'g TailPages,
    guard: &'g Guard,
    sequences: std::ops::Range<u64>,
    mut visit: impl FnMut(ArchivedRecord<'g>),
) {
    tails.each_place(guard, sequences, |sequence, place| {
        if place.start().load(Ordering::Acquire) <= Timestamp::MAX.0 {
            visit(ArchivedRecord { sequence, place });
        }
        true
    });
}

impl Range {
    /// Whether there is something to archive, or enough history to look for what can go.
    pub(crate) fn has_archivable(&self, guard: &Guard) -> bool {
        let pages = self.pages.load(guard);
        matches!(pages.meta, MetaPage::Base(_))
            && (0..self.parts.len()).any(|part| {
                let archive = self.parts[part].archive.load(guard);
                self.archivable(guard, pages, part, false).is_some()
                    || self.has_grown(part, archive)
                    || self.is_pinned(part, archive)
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
        archive.history.len() >= 2 * archive.expired.len.max(self.parts[part].tails.page_records())
    }

    /// Whether most of the history waits only for snapshots to end.
    fn is_pinned(&self, part: usize, archive: &Archive) -> bool {
        archive.expired.pinned >= (archive.history.len() / 2).max(self.parts[part].tails.page_records())
    }

    /// Archives what has been merged, and expires what none of the `kept` snapshots needs. `all` takes in the last
    /// pages too, and expires however little it brings. Returns whether it archived anything. The caller holds the merge's
    /// mutex.
    ///
    /// Evicted pages that it needs are read back; where that fails this update range stays as it is.
    pub(crate) fn archive(&self, guard: &Guard, kept: &Kept, all: bool) -> Result<bool, PageError> {
        let pages = self.pages.load(guard);
        let MetaPage::Base(meta) = &pages.meta else { return Ok(false) };
        let mut has_archived = false;
        for part in 0..self.parts.len() {
            if let Some(through) = self.archivable(guard, pages, part, all) {
                has_archived = true;
                let before = &self.parts[part].archive.load(guard).history;
                let history = self.with_archived(guard, part, meta, before, through, kept)?;
                self.publish_history(guard, part, history);
                self.parts[part].tails.give_up(guard, through);
            }
            self.expire(guard, part, meta, kept, all)?;
        }
        Ok(has_archived)
    }

    fn publish_history(&self, guard: &Guard, part: usize, history: History) {
        let cell = &self.parts[part].archive;
        let before = cell.load(guard);
        let expired = before.expired.clone();
        cell.replace_large(Archive::new(history, expired, &self.meter), guard);
        self.has_published();
    }

    /// The history with the tail records up to `through`, but for those that no kept snapshot needs.
    fn with_archived(
        &self,
        guard: &Guard,
        part: usize,
        meta: &MetaColumns,
        before: &History,
        through: u64,
        kept: &Kept,
    ) -> Result<History, PageError> {
        let updates = meta.updates.as_ref().map(|updates| updates.hold(guard)).transpose()?;
        let last_updated = |slot: usize| updates.as_ref().map_or(0, |updates| updates.last_updated[slot]);
        let (first_slot, oldest) = (part * self.options.update_range_records, kept.oldest());
        let (tails, sequences) = (&self.parts[part].tails, before.through() + 1..through + 1);
        let mut chains = SlotChains::new(self.options.update_range_records, (through - before.through()) as usize);
        each_committed(tails, guard, sequences, |record| chains.push(record.place.slot() - first_slot, record));
        // A record that has older history needs this too, lest a reader takes that for the newest.
        let is_needed =
            |slot: usize| oldest == Timestamp::ZERO || last_updated(slot) > oldest.0 || before.has_versions(slot);
        let has_left_out = chains.slots.retain(|slot| is_needed(first_slot + slot));
        let page = self.history_page(guard, part, kept, &chains);
        let history = before.append(guard, page, through, kept)?;
        Ok(if has_left_out { history.pass(through) } else { history })
    }

    /// The page of these records.
    fn history_page(
        &self,
        guard: &Guard,
        part: usize,
        kept: &Kept,
        chains: &SlotChains<ArchivedRecord<'_>>,
    ) -> HistoryPage {
        let (tails, first_slot) = (&self.parts[part].tails, part * self.options.update_range_records);
        let mut writer = PageWriter::with_room(&self.types, kept, chains.records.len());
        let (simd, are_words) = (Simd::best(), self.types.len() <= WORD_COLUMNS && tails.wide_columns() == 0);
        let (mut versions, mut drafts) = (Vec::new(), Vec::new());
        // Those whose memory was asked for, the slots' one after the other, and where each of these ends.
        let (mut records, mut ends) = (Vec::new(), Vec::new());
        let mut slots = chains.slots.iter().peekable();
        while slots.peek().is_some() {
            records.clear();
            ends.clear();
            while let Some(slot) = slots.next_if(|_| records.len() < RECORDS_ASKED) {
                chains.each_of(slot, |record| {
                    record.place.prefetch();
                    records.push(record);
                });
                ends.push((slot, records.len()));
            }
            let mut begin = 0;
            for (slot, end) in &ends {
                let chain = TailWords { simd, tails, guard, chain: &records[begin..*end] };
                begin = *end;
                versions.clear();
                if are_words {
                    versions.extend(chain.chain.iter().map_while(word_version));
                }
                if versions.len() == chain.chain.len() {
                    writer.push_words(first_slot + slot, &mut versions, &chain);
                } else {
                    drafts.extend(chain.chain.iter().filter_map(|record| chain.draft(record)));
                    writer.push_record(first_slot + slot, &mut drafts);
                }
            }
        }
        writer.finish()
    }

    /// Gives up old history, when there is enough of it to be worth looking at every record, or what held most of it has
    /// ended.
    fn expire(&self, guard: &Guard, part: usize, meta: &MetaColumns, kept: &Kept, all: bool) -> Result<(), PageError> {
        let archive = self.parts[part].archive.load(guard);
        let has_ended = || self.is_pinned(part, archive) && kept.oldest() > archive.expired.kept.oldest();
        let has_changed = *kept != archive.expired.kept;
        if archive.history.len() == 0 || !has_changed || !(all || self.has_grown(part, archive) || has_ended()) {
            return Ok(());
        }
        // A base record that shows a version after a snapshot does not stand for it.
        let updates = meta.updates.as_ref().map(|updates| updates.hold(guard)).transpose()?;
        let last_updated = |slot: usize| updates.as_ref().map_or(0, |updates| updates.last_updated[slot]);
        let keep_origin = |oldest: Timestamp| move |slot: usize| last_updated(slot) > oldest.0;
        let expired = archive.history.expire(guard, kept, keep_origin(kept.oldest()))?;
        let history = expired.unwrap_or_else(|| archive.history.clone());
        let pinned = if kept.has_old() { history.pinned(guard, kept, keep_origin(kept.horizon()))? } else { 0 };
        let expired = ExpiryFindings { len: history.len(), kept: kept.clone(), pinned };
        self.parts[part].archive.replace_large(Archive::new(history, expired, &self.meter), guard);
        self.has_published();
        Ok(())
    }

    /// Keeps, as origins in the history, the base values that the merge is about to replace and that kept snapshots
    /// before the new version need: those of records that had their own history given up, be it only the snapshot
    /// record that a rolled-back update left. `newest` are the newest versions that the merge takes in, each with
    /// its commit time.
    pub(crate) fn keep_origins<'g>(
        &self,
        guard: &Guard,
        part: usize,
        meta: &MetaColumns,
        newest: impl Iterator<Item = (TailRecord<'g>, Timestamp)>,
        kept: &Kept,
    ) -> Result<(), PageError> {
        let (pages, history) = (self.pages.load(guard), &self.parts[part].archive.load(guard).history);
        if history.given_up() == 0 {
            return Ok(());
        }
        let lost: Vec<TailRecord<'_>> = newest
            .filter(|(_, committed)| *committed > kept.oldest())
            .filter(|(record, _)| self.has_lost_history(guard, part, history, record))
            .map(|(record, _)| record)
            .collect();
        if lost.is_empty() {
            return Ok(());
        }
        let lent = Lent::new(self.types.len());
        let mut values: Vec<Vec<(usize, Cell<'_>)>> = Vec::with_capacity(lost.len());
        for record in &lost {
            let value = |column: usize| {
                let base = lent.values(guard, &pages.columns[column], (column, column))?;
                Ok((column, base.cell(record.slot())))
            };
            values.push(record.ever().iter().map(value).collect::<Result<_, PageError>>()?);
        }
        let starts = meta.start.get(guard)?;
        let origins = lost.iter().zip(&values).map(|(record, values)| NewVersion {
            slot: record.slot(),
            sequence: history.through(),
            kind: Kind::Update,
            // Whatever the origin stands for was there at the oldest snapshot, or it would not have been given up.
            start: starts.word(record.slot()).load(Ordering::Relaxed),
            values: Values::from_slice(values),
        });
        let history = history.restore(guard, HistoryPage::build(&self.types, kept, origins), kept)?;
        self.publish_history(guard, part, history);
        Ok(())
    }

    /// Whether the chain that begins with this version ends in history that is not there any more.
    fn has_lost_history(&self, guard: &Guard, part: usize, history: &History, newest: &TailRecord<'_>) -> bool {
        let mut sequence = newest.prev();
        while sequence != 0 {
            match self.parts[part].tails.get(guard, sequence) {
                Some(record) => sequence = record.prev(),
                None => return !history.has_versions(newest.slot()),
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_by_slot_and_from_newest_to_oldest() {
        let linked = |slots: &[usize], is_needed: fn(usize) -> bool| {
            let mut chains = SlotChains::new(70, slots.len());
            slots.iter().enumerate().for_each(|(number, slot)| chains.push(*slot, number));
            let has_left_out = chains.slots.retain(is_needed);
            let mut found = Vec::new();
            for slot in chains.slots.iter() {
                chains.each_of(slot, |number| found.push((slot, number)));
            }
            (found, has_left_out)
        };
        assert_eq!(linked(&[69, 1, 69, 0, 1], |_| true), (vec![(0, 3), (1, 4), (1, 1), (69, 2), (69, 0)], false));
        assert_eq!(linked(&[69, 1, 69, 0, 1], |slot| slot != 1), (vec![(0, 3), (69, 2), (69, 0)], true));
        assert_eq!(linked(&[], |_| true), (vec![], false));
    }
}
