//! Appending a version of words; see the module above, and `write` for what is done.
use smallvec::SmallVec;
use sync::Guard;
use sync::atomic::Ordering;
use types::Timestamp;

use super::{PointColumns, PointHint};
use crate::page::base::{MetaPage, Pages};
use crate::page::tail::{CarriedWords, Head, NewWords, RecordPlace, TailPages};
use crate::record::append::AppendedRecords;
use crate::record::range::Range;
use crate::record::view::{Outcomes, View};
use crate::record::write::IndirectionLatch;
use crate::value::column_set::columns_of;
use crate::value::kind::Kind;

impl<'g> PointHint<'g> {
    /// Appends a version with new words for `columns`, in their order, on behalf of the transaction whose Start Time word is
    /// `start`. `None`, and nothing is done, where that takes more than a look: then [`crate::Table::append`] is to be asked.
    #[inline(always)]
    pub fn append<O: Outcomes>(
        &self,
        guard: &'g Guard,
        view: View<'_, O>,
        start: u64,
        columns: &PointColumns,
        words: &[u64],
    ) -> Option<AppendedRecords> {
        self.append_placed(guard, view, start, columns, words).map(|(appended, _)| appended)
    }

    /// As [`append`](Self::append), with the place of the version for a caller that keeps the guard until the transaction's outcome is
    /// there. The record that keeps old values has the time of these, and no outcome.
    #[inline(always)]
    pub fn append_placed<O: Outcomes>(
        &self,
        guard: &'g Guard,
        view: View<'_, O>,
        start: u64,
        columns: &PointColumns,
        words: &[u64],
    ) -> Option<(AppendedRecords, AppendedVersion<'g>)> {
        let (appended, place) = self.append_words(guard, view, start, (columns, words))?;
        Some((appended, AppendedVersion(place)))
    }
}

/// A version of a transaction that has not ended. Its page stays while the guard does, under which it was appended.
#[derive(Clone, Copy)]
pub struct AppendedVersion<'g>(RecordPlace<'g>);

impl AppendedVersion<'_> {
    /// Writes what became of the transaction: a commit timestamp or a tombstone.
    #[inline(always)]
    pub fn stamp(self, stamp: u64) {
        self.0.start().store(stamp, Ordering::Release);
    }
}

/// What a new version stands on.
struct Before<'g> {
    explicit: u64,
    ever: u64,
    nulls: u64,
    reset: u64,
    /// the version before, if that is in the tail
    record: Option<RecordPlace<'g>>,
}

impl<'g> PointHint<'g> {
    #[inline(always)]
    fn append_words<O: Outcomes>(
        &self,
        guard: &'g Guard,
        view: View<'_, O>,
        start: u64,
        (columns, words): (&PointColumns, &[u64]),
    ) -> Option<(AppendedRecords, RecordPlace<'g>)> {
        debug_assert_eq!(words.len(), columns.positions.len());
        let range = self.point.range;
        // Pages are not read back with the latch held.
        if range.meter.budget().has_evicted() {
            return None;
        }
        let slot = self.point.slot();
        let part = range.part_of(slot);
        let tails = &self.part().tails;
        range.indirection.touch(slot);
        let latch = IndirectionLatch::acquire(self.indirection);
        let pages = range.pages.load(guard);
        let (newest, floor) = (latch.sequence, pages.floor[part]);
        // Where some columns are further than others, a cumulative version may leave some out.
        if pages.meta.lineage()[part] != floor {
            return None;
        }
        let before = if newest > floor {
            let record = match self.record {
                Some(record) if self.newest == newest => record,
                _ => tails.place_of(guard, newest)?,
            };
            before_in_tail(record, view)?
        } else {
            before_in_base(guard, pages, view, slot, floor.min(newest))?
        };
        let kept = before.explicit & !columns.mask;
        if kept & tails.wide_columns() != 0 {
            return None;
        }
        let originals = columns.mask & !before.ever;
        let ever = before.ever | columns.mask;
        let (first, last, prev);
        if originals == 0 {
            first = tails.allocate(guard, 1, newest);
            (last, prev) = (first, newest);
        } else {
            first = range.keep_originals(guard, (pages, tails), slot, newest, (originals, ever))?;
            (last, prev) = (first + 1, first);
        }
        let head = Head {
            prev,
            slot,
            kind: Kind::Update,
            start,
            reset: before.reset,
            explicit: before.explicit | columns.mask,
            ever,
            nulls: before.nulls & kept,
        };
        let carried =
            before.record.filter(|_| kept != 0).map(|from| CarriedWords { from, sequence: newest, columns: kept });
        let record = NewWords { head, columns: &columns.positions, last: columns.last, words, carried };
        // SAFETY: `PointColumns::new` has made it the greatest.
        let place = unsafe { tails.write_words(guard, last, record) };
        latch.publish(last);
        Some((AppendedRecords { first, last }, place))
    }
}

impl Range {
    /// Takes the numbers for a snapshot record and the version behind it, and writes the first: the old values of columns that are
    /// updated for the first time.
    #[inline(never)]
    fn keep_originals(
        &self,
        guard: &Guard,
        (pages, tails): (&Pages, &TailPages),
        slot: usize,
        prev: u64,
        (originals, ever): (u64, u64),
    ) -> Option<u64> {
        let start = pages.meta.start(guard, slot).ok()?.load(Ordering::Acquire);
        if start == 0 || start > Timestamp::MAX.0 {
            return None;
        }
        let head = Head { prev, slot, kind: Kind::Snapshot, start, reset: 0, explicit: originals, ever, nulls: 0 };
        let first = tails.allocate(guard, 2, prev);
        if originals & tails.spilled_columns() != 0 {
            return keep_apart(guard, (pages, tails), first, head);
        }
        let (record, mut nulls) = (tails.place_to_write(guard, first), 0);
        if let Some(row) = pages.row(guard, slot, originals) {
            // SAFETY: the row has the columns for which it was asked.
            columns_of(originals).for_each(|column| record.put(column, unsafe { row.word_unchecked(column) }));
            record.write(head);
            return Some(first);
        }
        for column in columns_of(originals) {
            match pages.word(guard, column, slot) {
                Ok(Some(word)) => record.put(column, word),
                Ok(None) => nulls |= 1 << column,
                Err(_) => {
                    tails.bury(guard, first..first + 2);
                    return None;
                }
            }
        }
        record.write(Head { nulls, ..head });
        Some(first)
    }
}

/// Writes the snapshot record with these numbers where not all columns have their places in it.
#[inline(never)]
fn keep_apart(guard: &Guard, (pages, tails): (&Pages, &TailPages), first: u64, head: Head) -> Option<u64> {
    let (mut columns, mut words) = (SmallVec::<[usize; 16]>::new(), SmallVec::<[u64; 16]>::new());
    let mut nulls = 0;
    for column in columns_of(head.explicit) {
        match pages.word(guard, column, head.slot) {
            Ok(Some(word)) => {
                columns.push(column);
                words.push(word);
            }
            Ok(None) => nulls |= 1 << column,
            Err(_) => {
                tails.bury(guard, first..first + 2);
                return None;
            }
        }
    }
    let last = columns.iter().copied().max().unwrap_or(0);
    let record = NewWords { head: Head { nulls, ..head }, columns: &columns, last, words: &words, carried: None };
    // SAFETY: it is the greatest.
    unsafe { tails.write_words(guard, first, record) };
    Some(first)
}

/// The newest version, if the writer may write over it as it is.
#[inline]
fn before_in_tail<'g, O: Outcomes>(record: RecordPlace<'g>, view: View<'_, O>) -> Option<Before<'g>> {
    let start = record.start().load(Ordering::Acquire);
    let is_own = || view.snapshot.own.is_some_and(|own| own.has_written(start));
    if !(view.is_in_time(start) || is_own()) || !record.is_update() {
        return None;
    }
    let (explicit, ever, nulls) = record.sets();
    Some(Before { explicit, ever, nulls, reset: record.reset(), record: Some(record) })
}

/// The base record, if it has the newest version and the writer may write over it.
#[inline]
fn before_in_base<O: Outcomes>(
    guard: &Guard,
    pages: &Pages,
    view: View<'_, O>,
    slot: usize,
    reset: u64,
) -> Option<Before<'static>> {
    // Mostly nothing of the range is newer, and the record itself need not be asked.
    let is_visible = match &pages.meta {
        MetaPage::Base(meta) if meta.is_all_visible_at(view.snapshot.at) => true,
        meta => view.is_in_time(meta.settled(guard, slot).ok()??),
    };
    if !is_visible {
        return None;
    }
    let ever = match &pages.meta {
        MetaPage::Base(meta) => meta.updates(guard).ok()?.map_or(0, |updates| updates.ever[slot]),
        MetaPage::Insert { .. } => 0,
    };
    Some(Before { explicit: 0, ever, nulls: 0, reset, record: None })
}
