//! Whether others changed what a transaction has read: the questions of a serializable transaction before its commit
//! (backward validation, as in Kung and Robinson, with predicates in the place of read sets).
//!
//! A transaction that read at `from` and is to commit at `to` may, if nothing that it read was changed by commits after
//! `from` and at or before `to`. Its own versions do not count. A prepared transaction that would commit in between is waited
//! for: whether the change exists is its decision. (It has the earlier timestamp, so that two never wait for each other.) All
//! that commits at or before `to` must have been written when this is asked.
//!
//! A record is decided by its newest version at or before `to`. A range is asked in two steps. First, which records changed,
//! in three places, each with a hint by which most of it is passed over:
//!
//! ```text
//! merged updates     Last Updated Time           the newest of every 512 slots, from the merge
//! pending versions   tail records above the TPS  the newest of a tail page
//! inserts            Start Time                  the newest of every 512 slots
//! ```
//!
//! The last two are found by validation itself: once all records of a page are decided, the newest commit among
//! them never changes again and is noted for the next validation. Writers pay nothing. Second, the record's images
//! at `from` and at `to`: it matters if it passes the predicate in one of them and, where only some columns were
//! read, differs in these.
//!
//! The validating transaction holds the snapshots at `from` and at `to`, so what they see is there. Versions that
//! commits in between wrote and others overwrote may have been given up: a value that was changed and changed back
//! counts as a change where any column counts, and may be missed where only the values of some do, which are then
//! what was read.
use smallvec::SmallVec;
use sync::Guard;
use sync::atomic::{AtomicU64, Ordering};
use types::{Command, Snapshot, Timestamp, TxnId};

use crate::content::meta_columns::HINT_SLOTS;
use crate::encoding::Test;
use crate::memory::source::PageError;
use crate::page::base::{MetaPage, Pages};
use crate::page::interrupted::Outdated;
use crate::page::lent::Lent;
use crate::page::tail::TailPageRecords;
use crate::record::range::{LATCH, Range};
use crate::record::view::{Outcomes, Resolved, View, resolve};
use crate::value::cell::Cell;
use crate::value::kind::Kind;

/// A transaction's question about others' changes.
pub struct Validation<'a, O> {
    /// the snapshot that it read, which is held
    pub from: Timestamp,
    /// when it is to commit
    pub to: Timestamp,
    /// the transaction itself
    pub own: TxnId,
    /// knows the outcome of other transactions
    pub outcomes: &'a O,
}

impl<O> Clone for Validation<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Validation<'_, O> {}

impl<O: Outcomes> Validation<'_, O> {
    /// Resolves a version; one that may be committed at or before `to` is waited for.
    fn decided(&self, resolve: impl Fn() -> Resolved) -> Resolved {
        loop {
            match resolve() {
                Resolved::Prepared(on, at) if at <= self.to && on != self.own => self.outcomes.await_decision(on),
                resolved => return resolved,
            }
        }
    }

    fn is_between(&self, at: Timestamp) -> bool {
        at > self.from && at <= self.to
    }

    /// The view of what others had committed at a time.
    fn view(&self, at: Timestamp) -> View<'_, O> {
        // Of its own commands, none is seen.
        let snapshot = Snapshot { at, own: Some(self.own), before: Command::FIRST };
        View { snapshot, outcomes: self.outcomes }
    }
}

/// Looks at Start Times that belong together, unless a hint says that nothing happened there after `from`.
struct Look<'h> {
    hint: &'h AtomicU64,
    /// the newest commit so far, `None` once something was met that is not decided
    newest: Option<Timestamp>,
}

impl<'h> Look<'h> {
    /// `None` where it is not worth it. A hint of 0 says nothing.
    fn begin(hint: &'h AtomicU64, from: Timestamp) -> Option<Look<'h>> {
        let newest = hint.load(Ordering::Relaxed);
        (newest == 0 || newest > from.0).then_some(Look { hint, newest: Some(Timestamp(1)) })
    }

    fn note(&mut self, resolved: Resolved) {
        match resolved {
            Resolved::Committed(at) => self.newest = self.newest.map(|newest| newest.max(at)),
            Resolved::Tombstone => {}
            Resolved::Unwritten | Resolved::Active(_) | Resolved::Prepared(..) => self.newest = None,
        }
    }

    /// Leaves a hint, if all that there will ever be was looked at.
    fn end(self, is_complete: bool) {
        // Any other thread that leaves a hint leaves the same one.
        if let (true, Some(newest)) = (is_complete, self.newest) {
            self.hint.store(newest.0, Ordering::Relaxed);
        }
    }
}

impl Range {
    /// Whether the record at `slot` was changed.
    pub(crate) fn changed_between<O: Outcomes>(
        &self,
        guard: &Guard,
        slot: usize,
        asked: Validation<'_, O>,
    ) -> Result<bool, PageError> {
        Ok(self.newest_change(guard, slot, asked)? > asked.from)
    }

    /// When the version of the record at `slot` was committed that others had made at `to`; 0 if there is none, or if it is
    /// so old that it is kept nowhere but in the base pages.
    pub(crate) fn newest_change<O: Outcomes>(
        &self,
        guard: &Guard,
        slot: usize,
        asked: Validation<'_, O>,
    ) -> Result<Timestamp, PageError> {
        let (pages, part) = (self.pages.load(guard), self.part_of(slot));
        let newest = self.indirection[slot].load(Ordering::Acquire) & !LATCH;
        let mut sequence = newest;
        if let MetaPage::Base(meta) = &pages.meta
            && newest <= meta.lineage[part]
        {
            match Timestamp(meta.last_updated(guard, slot)?) {
                Timestamp::ZERO => sequence = 0,
                at if at <= asked.to => return Ok(at),
                _ => {}
            }
        }
        while sequence != 0 {
            let Some(record) = self.parts[part].tails.get(guard, sequence) else {
                let history = &self.parts[part].archive.load(guard).history;
                for page in history.pages_of(slot) {
                    let mut seen = page.get(guard)?.versions_seen(slot, asked.to.0);
                    if let Some(version) = seen.find(|version| version.kind() != Kind::Snapshot) {
                        return Ok(Timestamp(version.start()));
                    }
                }
                break;
            };
            sequence = record.prev();
            if record.kind() == Kind::Snapshot {
                continue;
            }
            match asked.decided(|| record.resolve(asked.outcomes)) {
                Resolved::Committed(at) if at <= asked.to => return Ok(at),
                _ => {}
            }
        }
        let start = pages.meta.start(guard, slot)?;
        Ok(match asked.decided(|| resolve(start, asked.outcomes)) {
            Resolved::Committed(at) if at <= asked.to => at,
            _ => Timestamp::ZERO,
        })
    }

    /// Whether a record was changed that passed all tests before or does so after; if only some columns count, whether it
    /// differs in these or in those of the tests.
    pub(crate) fn range_changed_between<O: Outcomes>(
        &self,
        asked: Validation<'_, O>,
        tests: &[(usize, Test)],
        columns: Option<&[usize]>,
    ) -> Result<bool, PageError> {
        let guard = &sync::pin();
        let mut slots = loop {
            let mut slots = Vec::new();
            let pages = self.pages.load(guard);
            let lent = Lent::new(0);
            self.merged_since(guard, (pages, &lent), asked, &mut slots)?;
            if self.pending_since(guard, pages, asked, &mut slots).is_ok() {
                self.inserted_since(guard, (pages, &lent), asked, &mut slots)?;
                break slots;
            }
        };
        slots.sort_unstable();
        slots.dedup();
        let mut read: SmallVec<[usize; 8]> = tests.iter().map(|(column, _)| *column).collect();
        read.extend(columns.into_iter().flatten().copied());
        for slot in slots {
            if self.changed_between(guard, slot, asked)?
                && self.images_matter(guard, slot, asked, (tests, &read, columns.is_none()))?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the slots of which a merge has taken in a version committed after `from`.
    fn merged_since<O>(
        &self,
        guard: &Guard,
        (pages, lent): (&Pages, &Lent),
        asked: Validation<'_, O>,
        slots: &mut Vec<usize>,
    ) -> Result<(), PageError> {
        if let MetaPage::Base(meta) = &pages.meta
            && meta.newest > asked.from
            && let Some(updates) = lent.updates(guard, meta)?
        {
            let newest = updates.newest.iter().enumerate().filter(|(_, newest)| **newest > asked.from.0);
            for (chunk, _) in newest {
                let from = chunk * HINT_SLOTS;
                let to = updates.last_updated.len().min(from + HINT_SLOTS);
                slots.extend((from..to).filter(|slot| updates.last_updated[*slot] > asked.from.0));
            }
        }
        Ok(())
    }

    /// Adds the slots of changes that the pages have not taken in.
    fn pending_since<O: Outcomes>(
        &self,
        guard: &Guard,
        pages: &Pages,
        asked: Validation<'_, O>,
        slots: &mut Vec<usize>,
    ) -> Result<(), Outdated> {
        for (part, tps) in self.parts.iter().zip(pages.meta.lineage().iter()) {
            for page in part.tails.pages_above(guard, *tps)? {
                add_pending(&page, asked, slots);
            }
        }
        Ok(())
    }

    /// Adds the slots of new records.
    fn inserted_since<O: Outcomes>(
        &self,
        guard: &Guard,
        (pages, lent): (&Pages, &Lent),
        asked: Validation<'_, O>,
        slots: &mut Vec<usize>,
    ) -> Result<(), PageError> {
        if matches!(&pages.meta, MetaPage::Base(meta) if meta.inserted <= asked.from) {
            return Ok(());
        }
        let starts = lent.starts(guard, &pages.meta)?;
        let len = self.len();
        for (chunk, hint) in self.inserts_newest.iter().enumerate().take(len.div_ceil(HINT_SLOTS)) {
            let Some(mut look) = Look::begin(hint, asked.from) else { continue };
            let (from, to) = (chunk * HINT_SLOTS, self.options.range_records.min((chunk + 1) * HINT_SLOTS));
            for slot in from..to.min(len) {
                let start = starts.word(slot);
                let resolved = asked.decided(|| resolve(start, asked.outcomes));
                look.note(resolved);
                if matches!(resolved, Resolved::Committed(at) if asked.is_between(at)) {
                    slots.push(slot);
                }
            }
            look.end(to <= len);
        }
        Ok(())
    }

    /// Whether the record, in one of its images, is one that was looked for, and (unless `any` change counts) the images
    /// differ in the columns that were read.
    fn images_matter<O: Outcomes>(
        &self,
        guard: &Guard,
        slot: usize,
        asked: Validation<'_, O>,
        (tests, columns, any): (&[(usize, Test)], &[usize], bool),
    ) -> Result<bool, PageError> {
        let image = |at| {
            let mut cells: SmallVec<[Cell<'_>; 8]> = SmallVec::from_elem(Cell::Null, columns.len());
            let exists = self.read(guard, asked.view(at), slot, columns, &mut cells)?;
            Ok(exists.then_some(cells))
        };
        let images = [image(asked.from)?, image(asked.to)?];
        // The columns of the tests come first.
        let passes = |cells: &SmallVec<[Cell<'_>; 8]>| {
            tests.iter().zip(cells).all(|((column, test), cell)| test.passes(*cell, self.types[*column]))
        };
        Ok((any || images[0] != images[1]) && images.iter().flatten().any(passes))
    }
}

/// Adds the slots of a tail page that have versions committed in between.
fn add_pending<O: Outcomes>(page: &TailPageRecords<'_>, asked: Validation<'_, O>, slots: &mut Vec<usize>) {
    let Some(mut look) = Look::begin(page.newest(), asked.from) else { return };
    for record in page.records() {
        let resolved = asked.decided(|| record.resolve(asked.outcomes));
        look.note(resolved);
        // The Start Time of a snapshot record is its record's, which is then new.
        if matches!(resolved, Resolved::Committed(at) if asked.is_between(at)) {
            slots.push(record.slot());
        }
    }
    look.end(true);
}

#[cfg(test)]
mod tests {
    use types::Rid;

    use super::*;
    use crate::record::hold::Hold;
    use crate::record::view::Outcome;
    use crate::record::write::Change;
    use crate::tests::mechanism::{Ended, Fixture, options};

    fn asked(fixture: &Fixture, from: u64, to: u64) -> Validation<'_, Ended> {
        let (from, to) = (Timestamp(from), Timestamp(to));
        Validation { from, to, own: TxnId::new(99), outcomes: &fixture.ended }
    }

    fn has_changed(fixture: &Fixture, from: u64, to: u64) -> bool {
        fixture.table.range_changed_between(0, asked(fixture, from, to), &[], None).unwrap()
    }

    /// The hints of inserts, then those of tail pages.
    fn hints(fixture: &Fixture) -> [Vec<u64>; 2] {
        let guard = &sync::pin();
        let load = |hint: &AtomicU64| hint.load(Ordering::Relaxed);
        let tails = fixture.range().parts[0].tails.pages_above(guard, 0).unwrap().map(|page| load(page.newest()));
        [fixture.range().inserts_newest.iter().map(load).collect(), tails.collect()]
    }

    #[test]
    fn what_is_decided_is_looked_at_once_and_the_rest_again() {
        let fixture = Fixture::filled(1, options(1 << 12, 1 << 12), HINT_SLOTS + 1);
        let txn = TxnId::new(1);
        fixture.table.insert(&[Cell::Word(0)], txn.word());
        for slot in 0..200 {
            fixture.update(slot, 5 + slot as u64 / 100, &[(0, 7)]);
        }
        let late = fixture.update(200, txn.word(), &[(0, 7)]);
        assert!(has_changed(&fixture, 5, 9) && !has_changed(&fixture, 6, 9));
        let [inserts, tails] = hints(&fixture);
        assert_eq!((&inserts[..2], &tails[..]), (&[1, 0][..], &[6, 0][..]), "both have records that are not decided");
        assert!(late.last > 256, "in the second page");
        fixture.ended.end(txn, Outcome::Committed(Timestamp(8)));
        assert!(has_changed(&fixture, 7, 8) && !has_changed(&fixture, 8, 9));
        for _ in 0..3 {
            let changed = [(0, 1), (1, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 99)];
            let changed = changed.map(|(from, to)| has_changed(&fixture, from, to));
            // A commit that a later one of the same record follows is not told apart; here none does.
            assert_eq!(changed, [true, false, true, true, false, true, false]);
            fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO);
            fixture.table.archive_range(0, Timestamp::ZERO, true);
        }
    }

    #[test]
    fn a_hint_is_left_only_when_every_record_is_decided() {
        let fixture = Fixture::filled(1, options(16, 16), 16);
        let txn = TxnId::new(1);
        for slot in 0..16 {
            fixture.update(slot, 5, &[(0, 7)]);
        }
        let locked =
            fixture.table.lock(fixture.own_view(9, txn), txn.word(), Rid::base(0, 0), Hold::Whole).unwrap().unwrap();
        assert!(!has_changed(&fixture, 5, 9));
        let lock = locked.last as usize - 1;
        let [inserts, tails] = hints(&fixture);
        assert_eq!((inserts[0], tails[1], tails[lock]), (1, 5, 0), "a page of one record each");
        fixture.ended.end(txn, Outcome::Committed(Timestamp(7)));
        assert!(!has_changed(&fixture, 5, 9), "a lock is no change");
        assert_eq!(hints(&fixture)[1][lock], 1, "and then it is nothing");
    }

    /// Writes of the validating transaction do not count, prepared or not.
    #[test]
    fn nobody_is_in_his_own_way() {
        let fixture = Fixture::filled(1, options(16, 16), 2);
        let own = TxnId::new(99);
        let rid = fixture.table.insert(&[Cell::Word(0)], own.word());
        fixture.table.append(fixture.own_view(3, own), own.word(), Rid::base(0, 1), Change::Delete).unwrap();
        for outcome in [Outcome::Active, Outcome::Prepared(Timestamp(5))] {
            fixture.ended.end(own, outcome);
            assert!(!has_changed(&fixture, 3, 5));
            assert!(!fixture.table.changed_between(rid, asked(&fixture, 3, 5)).unwrap());
            assert!(!fixture.table.changed_between(Rid::base(0, 1), asked(&fixture, 3, 5)).unwrap());
        }
    }

    /// The image of a record is what others made of it, also where the own transaction has gone on from there.
    #[test]
    fn nobody_hides_what_others_did() {
        let fixture = Fixture::filled(1, options(16, 16), 2);
        fixture.update(1, 4, &[(0, 40)]);
        let own = TxnId::new(99);
        fixture.table.append(fixture.own_view(4, own), own.word(), Rid::base(0, 1), Change::Delete).unwrap();
        let equal = |number| [(0, Test::Compare(crate::Comparison::Eq, types::Value::BigInt(number)))];
        let asked = asked(&fixture, 3, 5);
        let affects = |number| fixture.table.range_changed_between(0, asked, &equal(number), None).unwrap();
        assert!(affects(1) && affects(40) && !affects(41));
    }
}
