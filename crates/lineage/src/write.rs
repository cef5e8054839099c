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
use std::sync::atomic::{AtomicU64, Ordering};

use sync::{Backoff, Guard};
use types::{StartTime, Timestamp, TxnId};

use crate::cell::Cell;
use crate::column_set::ColumnSet;
use crate::range::{LATCH, Range};
use crate::tail::{Kind, NewRecord, TailRecord};
use crate::view::{Outcomes, Resolved, View, resolve};

/// Why a version was not appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// The view sees no such record.
    NotVisible,
    /// This running transaction has written the newest version.
    Locked(TxnId),
    /// The newest version was committed after the view's snapshot.
    Changed(Timestamp),
}

/// What to append.
#[derive(Clone, Copy)]
pub enum Change<'a> {
    /// New values for some columns, each named once.
    Update(&'a [(usize, Cell<'a>)]),
    /// The end of the record.
    Delete,
}

/// The sequence numbers of the tail records that a write appended and its transaction must stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// the first one
    pub first: u64,
    /// the last one, the new version
    pub last: u64,
}

/// The latch bit of one Indirection word, held; released with the old word unless a new one is published.
struct Latched<'a> {
    word: &'a AtomicU64,
    sequence: u64,
}

impl<'a> Latched<'a> {
    fn acquire(word: &'a AtomicU64) -> Latched<'a> {
        let backoff = Backoff::new();
        loop {
            let seen = word.load(Ordering::Relaxed);
            if seen & LATCH == 0
                && word.compare_exchange_weak(seen, seen | LATCH, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return Latched { word, sequence: seen };
            }
            backoff.snooze();
        }
    }

    fn publish(mut self, sequence: u64) {
        debug_assert!(sequence > self.sequence, "Indirection only grows");
        self.sequence = sequence;
    }
}

impl Drop for Latched<'_> {
    fn drop(&mut self) {
        self.word.store(self.sequence, Ordering::Release);
    }
}

/// What the newest version of a record looks like to a writer.
struct Newest<'a> {
    /// the newest version that counts, `None` where the base record is it
    version: Option<TailRecord<'a>>,
    /// the columns updated so far
    ever: ColumnSet,
}

impl Range {
    /// Appends a version to the record at `slot` on behalf of the transaction whose Start Time word is `start`.
    pub(crate) fn append<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        start: u64,
        slot: usize,
        change: Change<'_>,
    ) -> Result<Appended, WriteError> {
        let latch = Latched::acquire(&self.indirection[slot]);
        let newest = self.newest(view, latch.sequence);
        self.check_writable(guard, view, start, slot, newest.version.as_ref())?;
        let appended = match change {
            Change::Update(values) => self.append_update(guard, view, start, slot, latch.sequence, &newest, values),
            Change::Delete => self.append_delete(start, slot, latch.sequence, &newest),
        };
        latch.publish(appended.last);
        Ok(appended)
    }

    fn newest<O: Outcomes>(&self, view: View<'_, O>, newest: u64) -> Newest<'_> {
        let mut ever = None;
        let mut sequence = newest;
        while sequence != 0 {
            let record = self.tails.published(sequence);
            let is_snapshot = record.kind() == Kind::Snapshot;
            if !is_snapshot && resolve(record.start(), view.outcomes) == Resolved::Tombstone {
                sequence = record.prev();
                continue;
            }
            let ever = *ever.get_or_insert_with(|| record.ever());
            if !is_snapshot {
                return Newest { version: Some(record), ever };
            }
            sequence = record.prev();
        }
        Newest { version: None, ever: ever.unwrap_or(ColumnSet::EMPTY) }
    }

    fn check_writable<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        start: u64,
        slot: usize,
        version: Option<&TailRecord<'_>>,
    ) -> Result<(), WriteError> {
        let word = version.map_or_else(|| self.meta.load(guard).start(slot), |record| record.start());
        match resolve(word, view.outcomes) {
            Resolved::Active(owner) if owner.word() == start => {}
            Resolved::Active(owner) if version.is_some() => return Err(WriteError::Locked(owner)),
            Resolved::Committed(at) if at <= view.snapshot.at => {}
            Resolved::Committed(at) if version.is_some() => return Err(WriteError::Changed(at)),
            _ => return Err(WriteError::NotVisible),
        }
        match version {
            Some(record) if record.kind() == Kind::Delete => Err(WriteError::NotVisible),
            _ => Ok(()),
        }
    }

    fn append_update<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        start: u64,
        slot: usize,
        newest: u64,
        seen: &Newest<'_>,
        values: &[(usize, Cell<'_>)],
    ) -> Appended {
        let originals: Vec<(usize, Cell<'_>)> = values
            .iter()
            .filter(|(column, _)| !seen.ever.contains(*column))
            .map(|&(column, _)| (column, self.columns[column].load(guard).cell(column, self.types[column], slot)))
            .collect();
        let mut cumulative = values.to_vec();
        if let Some(version) = &seen.version {
            let changed = ColumnSet::of(values.iter().map(|(column, _)| *column));
            let explicit = version.explicit();
            let carried = explicit.iter().filter(|&column| {
                !changed.contains(column) && self.columns[column].load(guard).tps() < version.sequence
            });
            cumulative.extend(carried.map(|column| (column, version.cell(column))));
        }
        let mut ever = seen.ever;
        values.iter().for_each(|(column, _)| ever.insert(*column));

        let has_originals = !originals.is_empty();
        let first = self.tails.allocate(1 + u64::from(has_originals));
        let mut prev = newest;
        if has_originals {
            let inserted = match resolve(self.meta.load(guard).start(slot), view.outcomes) {
                Resolved::Committed(at) => at.0,
                // Checked before: if it is not committed it is this transaction's own.
                _ => start,
            };
            let originals = NewRecord { prev, slot, kind: Kind::Snapshot, start: inserted, ever, values: &originals };
            self.tails.write(first, &originals);
            prev = first;
        }
        let last = first + u64::from(has_originals);
        self.tails.write(last, &NewRecord { prev, slot, kind: Kind::Update, start, ever, values: &cumulative });
        Appended { first, last }
    }

    fn append_delete(&self, start: u64, slot: usize, newest: u64, seen: &Newest<'_>) -> Appended {
        let sequence = self.tails.allocate(1);
        let record = NewRecord { prev: newest, slot, kind: Kind::Delete, start, ever: seen.ever, values: &[] };
        self.tails.write(sequence, &record);
        Appended { first: sequence, last: sequence }
    }

    /// Writes the outcome of a transaction, a commit timestamp or a tombstone, into what it appended.
    pub(crate) fn stamp_tail(&self, sequence: u64, owner: TxnId, stamp: u64) {
        let start = self.tails.published(sequence).start();
        // A snapshot record carries its base record's Start Time; unless this transaction inserted that, it stays.
        let _ = start.compare_exchange(owner.word(), stamp, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The same for a base record that the transaction inserted.
    pub(crate) fn stamp_base(&self, guard: &Guard, slot: usize, owner: TxnId, stamp: u64) {
        let start = self.meta.load(guard).start(slot);
        let _ = start.compare_exchange(owner.word(), stamp, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Marks every slot that was handed out and never written as a tombstone, after recovery.
    pub(crate) fn bury_unwritten(&self, guard: &Guard) {
        let meta = self.meta.load(guard);
        for slot in 0..self.len() {
            let _ = meta.start(slot).compare_exchange(0, StartTime::TOMBSTONE, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}
