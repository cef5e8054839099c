//! Appending a version to a record: update and delete (L-Store, section 3; the latch of section 5).
//!
//! ```text
//! latch     compare-and-swap the latch bit of the record's Indirection word
//! look      at the newest version: another transaction's uncommitted one is its write lock
//! append    a snapshot record for columns updated for the first time, then the new version
//! publish   store the new sequence number with the latch bit clear
//! ```
//!
//! The new version is cumulative: it repeats the explicit values of the version before it, except those of columns
//! whose base page has merged that version in (the reset at the TPS, section 4.2).
//!
//! A *lock* is appended the same way and is no version: it keeps other writers off until its transaction ends. Then it is
//! a tombstone, also where the transaction commits, and so leaves nothing behind. Versions that the transaction appends
//! meanwhile stand on the lock, so that it holds again if they are taken back.
//!
//! A running transaction takes back what it wrote since a savepoint, newest first or in any order, by stamping it
//! as tombstones. Versions that it appends next stand on the newest version left, as after a rollback. A snapshot
//! record has the Start Time of its base record; only one for a record which the transaction itself inserted is
//! taken back, and then counts as little as a version taken back: the next update keeps the old values again, as
//! the history will not have it.
use sync::Guard;
use sync::atomic::{AtomicU64, Ordering};
use sync::hint::SpinWait;
use types::{Timestamp, TxnId};

use crate::memory::source::PageError;
use crate::page::base::MetaPage;
use crate::record::append::{Append, AppendedRecords, Newest};
use crate::record::hold::Hold;
use crate::record::range::{LATCH, Range};
use crate::record::view::{Outcomes, Resolved, View, resolve};
use crate::value::cell::Cell;
use crate::value::column_set::ColumnSet;
use crate::value::kind::Kind;

/// Why a version was not appended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// The view sees no such record.
    NotVisible,
    /// The named transaction has written the newest version or holds a lock on the record, and has not ended.
    Locked(TxnId),
    /// The newest version was committed after the view's snapshot.
    Changed(Timestamp),
    /// An evicted page that it takes can't be read back.
    Page(PageError),
}

impl From<PageError> for WriteError {
    fn from(error: PageError) -> Self {
        WriteError::Page(error)
    }
}

/// The writer of the newest version of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writer {
    /// Another transaction, which has not ended; it may be prepared. Or it has locked the newest version.
    Running(TxnId),
    /// No transaction: the one that inserted the record rolled back.
    Tombstone,
    /// A transaction that committed, or the view's own.
    Settled,
}

/// The change to append.
#[derive(Clone, Copy)]
pub enum Change<'a> {
    /// New values for some columns, each named once.
    Update(&'a [(usize, Cell<'a>)]),
    /// The end of the record.
    Delete,
}

/// The latch bit of one Indirection word, held; released with the old word unless a new one is published.
pub(crate) struct IndirectionLatch<'a> {
    word: &'a AtomicU64,
    pub(crate) sequence: u64,
}

impl<'a> IndirectionLatch<'a> {
    #[inline(always)]
    pub(crate) fn acquire(word: &'a AtomicU64) -> IndirectionLatch<'a> {
        IndirectionLatch { word, sequence: Self::try_latch(word).unwrap_or_else(|| Self::wait_and_latch(word)) }
    }

    /// Sets the latch bit if it is clear, and returns the word before.
    #[inline(always)]
    fn try_latch(word: &AtomicU64) -> Option<u64> {
        let seen = word.load(Ordering::Relaxed);
        let is_latched = seen & LATCH == 0
            && word.compare_exchange(seen, seen | LATCH, Ordering::Acquire, Ordering::Relaxed).is_ok();
        is_latched.then_some(seen)
    }

    #[cold]
    fn wait_and_latch(word: &AtomicU64) -> u64 {
        let mut wait = SpinWait::new();
        loop {
            wait.pause();
            if let Some(sequence) = Self::try_latch(word) {
                return sequence;
            }
        }
    }

    #[inline]
    pub(crate) fn publish(mut self, sequence: u64) {
        debug_assert!(sequence > self.sequence, "Indirection only grows");
        self.sequence = sequence;
    }
}

impl Drop for IndirectionLatch<'_> {
    #[inline]
    fn drop(&mut self) {
        self.word.store(self.sequence, Ordering::Release);
    }
}

/// Whether a transaction with the Start Time word `start` may append a version to the newest one.
fn check_writable<O: Outcomes>(view: View<'_, O>, start: u64, newest: &Newest<'_>) -> Result<(), WriteError> {
    match newest.writer {
        Resolved::Active(owner) | Resolved::Prepared(owner, _) if owner.has_written(start) => {}
        Resolved::Active(owner) if newest.is_update => return Err(WriteError::Locked(owner)),
        // Its insert may have been read already.
        Resolved::Prepared(owner, at) if newest.is_update || at <= view.snapshot.at => {
            return Err(WriteError::Locked(owner));
        }
        Resolved::Committed(at) if at <= view.snapshot.at => {}
        Resolved::Committed(at) if newest.is_update => return Err(WriteError::Changed(at)),
        _ => return Err(WriteError::NotVisible),
    }
    if newest.is_deleted { Err(WriteError::NotVisible) } else { Ok(()) }
}

impl Range {
    /// Appends a version to the record at `slot` on behalf of the transaction with the Start Time word `start`.
    pub(crate) fn append<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        start: u64,
        slot: usize,
        change: Change<'_>,
    ) -> Result<AppendedRecords, WriteError> {
        self.bring(guard, slot, Some(change))?;
        let latch = self.latch(slot);
        let newest = self.newest(guard, view, slot, latch.sequence)?;
        check_writable(view, start, &newest)?;
        let append = Append { range: self, guard, start, slot, newest };
        let appended = match change {
            Change::Update(values) => append.update(view, values, latch.sequence)?,
            Change::Delete => append.mark(Kind::Delete, latch.sequence),
        };
        latch.publish(appended.last);
        Ok(appended)
    }

    /// Locks the record at `slot` on behalf of the transaction with the Start Time word `start`. `None` if it holds
    /// as much of it already: then no other transaction can append anyway.
    pub(crate) fn lock<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        start: u64,
        slot: usize,
        hold: Hold,
    ) -> Result<Option<AppendedRecords>, WriteError> {
        self.bring(guard, slot, None)?;
        let latch = self.latch(slot);
        let newest = self.newest(guard, view, slot, latch.sequence)?;
        check_writable(view, start, &newest)?;
        if let Some(own) = newest.writer.unended()
            && (hold == Hold::Values || self.hold_at(guard, view, slot, (own, latch.sequence))? == Hold::Whole)
        {
            return Ok(None);
        }
        let kind = if hold == Hold::Whole { Kind::Lock } else { Kind::ValuesLock };
        let appended = Append { range: self, guard, start, slot, newest }.mark(kind, latch.sequence);
        latch.publish(appended.last);
        Ok(Some(appended))
    }

    /// Takes the latch of the record at `slot`.
    fn latch(&self, slot: usize) -> IndirectionLatch<'_> {
        self.indirection.touch(slot);
        IndirectionLatch::acquire(&self.indirection[slot])
    }

    /// Brings back the evicted pages that a writer is likely to need, before it has the record's latch: others spin
    /// for that, and should not do so while a page is read. A page that is missed here, or evicted again, is read
    /// with the latch held.
    fn bring(&self, guard: &Guard, slot: usize, change: Option<Change<'_>>) -> Result<(), PageError> {
        if !self.meter.budget().has_evicted() {
            return Ok(());
        }
        let (pages, part) = (self.pages.load(guard), self.part_of(slot));
        let MetaPage::Base(meta) = &pages.meta else { return Ok(()) };
        let newest = self.indirection[slot].load(Ordering::Acquire) & !LATCH;
        let pending = if newest > pages.floor[part] { self.parts[part].tails.get(guard, newest) } else { None };
        let ever = match pending {
            Some(record) => record.ever(),
            None => {
                meta.start.get(guard)?;
                meta.updates(guard)?.map_or(ColumnSet::EMPTY, |updates| updates.ever(slot))
            }
        };
        if let Some(Change::Update(values)) = change {
            for (column, _) in values.iter().filter(|(column, _)| !ever.contains(*column)) {
                pages.columns[*column].cell(guard, *column, slot)?;
            }
        }
        Ok(())
    }

    /// Finds the writer of the newest version of the record at `slot`.
    pub(crate) fn newest_writer<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        slot: usize,
    ) -> Result<Writer, PageError> {
        let sequence = self.indirection[slot].load(Ordering::Acquire) & !LATCH;
        self.newest_writer_at(guard, view, slot, sequence)
    }

    /// Finds the writer of the newest version with the record's latch held; see
    /// [`crate::Table::newest_writer_latched`].
    pub(crate) fn newest_writer_latched<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        slot: usize,
    ) -> Result<Writer, PageError> {
        self.bring(guard, slot, None)?;
        let latch = self.latch(slot);
        self.newest_writer_at(guard, view, slot, latch.sequence)
    }

    fn newest_writer_at<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        slot: usize,
        sequence: u64,
    ) -> Result<Writer, PageError> {
        Ok(match self.newest(guard, view, slot, sequence)?.writer {
            Resolved::Active(owner) | Resolved::Prepared(owner, _) if view.snapshot.own != Some(owner) => {
                Writer::Running(owner)
            }
            Resolved::Tombstone | Resolved::Unwritten => Writer::Tombstone,
            Resolved::Active(_) | Resolved::Prepared(..) | Resolved::Committed(_) => Writer::Settled,
        })
    }

    /// Finds the newest version behind the Indirection word `newest`: on the chain, as far as the pages have not
    /// all taken it in, and else in the base record's meta-data. A new version follows the top, not the rolled-back
    /// ones over it: writers that keep rolling back must not grow a chain that each of them walks.
    fn newest<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        view: View<'_, O>,
        slot: usize,
        newest: u64,
    ) -> Result<Newest<'g>, PageError> {
        let part = self.part_of(slot);
        let pages = self.pages.load(guard);
        let (meta, floor) = (&pages.meta, pages.floor[part]);
        let mut top: Option<(u64, ColumnSet)> = None;
        let mut locker: Option<TxnId> = None;
        let mut sequence = newest;
        while sequence > floor {
            let Some(record) = self.parts[part].tails.get(guard, sequence) else {
                // It was merged and became history since the page was loaded.
                return self.newest(guard, view, slot, newest);
            };
            let writer = record.resolve(view.outcomes);
            if writer == Resolved::Tombstone {
                sequence = record.prev();
                continue;
            }
            let (top_sequence, ever) = top.take().unwrap_or_else(|| (sequence, record.ever()));
            let kind = record.kind();
            match kind {
                Kind::Snapshot => {}
                Kind::Lock | Kind::ValuesLock => locker = writer.unended(),
                Kind::Update | Kind::Delete => {
                    let (top, is_deleted, writer) =
                        (top_sequence, kind == Kind::Delete, locker.map_or(writer, Resolved::Active));
                    let (version, is_update) = (Some(record), true);
                    return Ok(Newest { top, version, writer, is_deleted, is_update, ever, floor, pages });
                }
            }
            top = Some((top_sequence, ever));
            sequence = record.prev();
        }
        let base = match meta {
            MetaPage::Base(base) => base.updates(guard)?,
            MetaPage::Insert { .. } => None,
        };
        let last_updated = base.map_or(0, |updates| updates.last_updated[slot]);
        let writer = match last_updated {
            0 => resolve(meta.start(guard, slot)?, view.outcomes),
            at => Resolved::Committed(Timestamp(at)),
        };
        let (top, ever) = top.unwrap_or_else(|| (sequence, base.map_or(ColumnSet::EMPTY, |base| base.ever(slot))));
        let is_deleted = base.is_some_and(|updates| updates.is_deleted(slot));
        let (writer, is_update) = (locker.map_or(writer, Resolved::Active), last_updated > 0 || locker.is_some());
        Ok(Newest { top, version: None, writer, is_deleted, is_update, ever, floor, pages })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use types::{Column, DataType, Rid, Schema, Snapshot};

    use super::*;
    use crate::record::view::Outcome;
    use crate::{Table, TableOptions};

    struct AllRolledBack;

    impl Outcomes for AllRolledBack {
        fn outcome(&self, _: TxnId) -> Outcome {
            Outcome::Aborted
        }

        fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
            unreachable!("nothing is prepared")
        }

        fn await_decision(&self, _: TxnId) {}
    }

    fn table_abc() -> (Table, Rid) {
        let columns = ["k", "a", "b"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
        let table = Table::new(Schema::new(columns, &["k"]).unwrap(), TableOptions::default(), Arc::default());
        let rid = table.insert(&[Cell::Word(1), Cell::Word(2), Cell::Word(3)], 1);
        (table, rid)
    }

    /// However often another column is updated after the merge, one look at the newest version says that the base
    /// page has the column which it lacks.
    #[test]
    fn a_merged_column_is_two_hops_away() {
        let (table, rid) = table_abc();
        let view = View { snapshot: Snapshot::at(Timestamp(99)), outcomes: &AllRolledBack };
        let update = |at, column| table.append(view, at, rid, Change::Update(&[(column, Cell::Word(at))])).unwrap();
        let merged = update(5, 1).last;
        table.merge_range(0, &AllRolledBack, Timestamp::ZERO);
        for at in 10..50 {
            let guard = &sync::pin();
            let newest = table.range(0).parts[0].tails.get(guard, update(at, 2).last).unwrap();
            assert_eq!((newest.is_explicit(1), newest.reset()), (false, merged));
            let is_right = |cells: &[Cell<'_>]| cells == [Cell::Word(5), Cell::Word(at)];
            assert_eq!(table.read(view, rid, &[1, 2], is_right), Ok(Some(true)));
        }
    }

    /// The transaction that wrote the newest version rolls back between any two questions about it.
    #[derive(Default)]
    struct RollsBackMeanwhile(std::cell::Cell<bool>);

    impl Outcomes for RollsBackMeanwhile {
        fn outcome(&self, _: TxnId) -> Outcome {
            if self.0.replace(true) { Outcome::Aborted } else { Outcome::Active }
        }

        fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
            unreachable!("nothing is prepared")
        }

        fn await_decision(&self, _: TxnId) {}
    }

    #[test]
    fn a_writer_that_rolls_back_meanwhile_makes_no_record_vanish() {
        let (table, rid) = table_abc();
        let snapshot = Snapshot::at(Timestamp(9));
        let change = Change::Update(&[(1, Cell::Word(7))]);
        let other = TxnId::new(1);
        table.append(View { snapshot, outcomes: &AllRolledBack }, other.word(), rid, change).unwrap();
        let outcomes = RollsBackMeanwhile::default();
        let appended = table.append(View { snapshot, outcomes: &outcomes }, 20, rid, change);
        assert_eq!(appended, Err(WriteError::Locked(other)));
        let outcomes = RollsBackMeanwhile::default();
        assert_eq!(table.newest_writer(View { snapshot, outcomes: &outcomes }, rid), Ok(Writer::Running(other)));
    }

    #[test]
    fn rollbacks_leave_no_chain_behind() {
        let (table, rid) = table_abc();
        let view = |at| View { snapshot: Snapshot::at(Timestamp(at)), outcomes: &AllRolledBack };
        let update =
            |start, column, word| table.append(view(9), start, rid, Change::Update(&[(column, word)])).unwrap();
        let reads = |at, a, b| {
            let is_right = |cells: &[Cell<'_>]| cells == [Cell::Word(a), Cell::Word(b)];
            table.read(view(at), rid, &[1, 2], is_right) == Ok(Some(true))
        };
        for round in 0..100 {
            update(TxnId::new(round).word(), 1 + round as usize % 2, Cell::Word(7));
            table.append(view(9), TxnId::new(round).word(), rid, Change::Delete).unwrap();
            if round == 50 {
                update(5, 1, Cell::Word(20));
            }
        }
        let range = table.range(0);
        let newest = range.indirection[rid.slot()].load(Ordering::Relaxed);
        let guard = &sync::pin();
        let prev =
            |sequence: &u64| Some(range.parts[0].tails.get(guard, *sequence).unwrap().prev()).filter(|prev| *prev != 0);
        let chain: Vec<u64> = std::iter::successors(Some(newest), prev).collect();
        assert!(chain.len() <= 4, "two snapshot records, one version, one delete that was rolled back: {chain:?}");
        for _ in 0..2 {
            assert!(reads(4, 2, 3));
            assert!(reads(5, 20, 3));
            table.merge_range(0, &AllRolledBack, Timestamp::ZERO);
        }
    }
}
