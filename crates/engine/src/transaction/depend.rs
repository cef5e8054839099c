//! The commits that a transaction has seen: it depends on them, if it is to be acknowledged by its own log
//! partition ([`Durability::Partition`](crate::Durability)).
//!
//! A transaction depends on every commit that wrote a version which it has read or written over, and on those by
//! which a row was gone or a key free where it looked. They are noted as they are met:
//!
//! | what it does | what is noted |
//! |---|---|
//! | reads a row by key, and finds it | the commit that wrote the version |
//! | updates or deletes a row | the commit that wrote the version before |
//! | inserts a row with a key that no other record ever had | nothing |
//! | finds no row, finds another record with the key, locks a row | all commits so far |
//! | takes a view, for a scan | all commits that the view sees |
//! | begins to write to a table | the newest change of the catalog |
//!
//! So what stays within a few rows names a few commits, and anything else is covered by a number that is not less
//! than what it has seen. "All commits so far" is right wherever a fact was looked at before: whatever the
//! transaction can have seen has a lower number than the clock shows afterwards. Facts that an application learns
//! by other ways than through the transaction, such as another transaction's result, are not noted.
//!
//! Commits that are on disk already are not noted at all. `durability/src/log/dependency.rs` tells how the log goes on
//! with the rest.
//!
//! Only transactions pay for this that ask for it before they begin, but for a test of a pointer. One that asks
//! later depends on all commits so far. One that changes the catalog waits for all before it, like any other: which
//! tables are there must not depend on the partition.
use lineage::Validation;
use types::{Rid, Timestamp};

use super::Transaction;
use super::seen::SeenCommits;
use crate::state::table_data::TableData;

impl Transaction {
    /// Notes that it has seen what was committed up to `at`.
    #[inline]
    pub(super) fn saw_up_to(&self, at: Timestamp) {
        if let Some(seen) = &self.seen {
            seen.note_up_to(at.0);
        }
    }

    /// Notes that it has seen something that may rest on any commit so far.
    #[inline]
    pub(super) fn saw_anything(&self) {
        if let Some(seen) = &self.seen {
            seen.note_up_to(self.transactions().0.now().0);
        }
    }

    /// Notes that it has seen the version of a record that others had committed at `to`.
    #[inline]
    pub(super) fn saw_version(&self, data: &TableData, rid: Rid, to: Timestamp) {
        if let Some(seen) = &self.seen {
            self.note_version(seen, data, rid, to);
        }
    }

    #[cold]
    fn note_version(&self, seen: &SeenCommits, data: &TableData, rid: Rid, to: Timestamp) {
        let stable = self.anchor.log.as_ref().map_or(0, |log| log.stable_lsn());
        if to.0 > stable {
            let asked = Validation { from: Timestamp(stable), to, own: self.id(), outcomes: self.transactions() };
            // Where it can't be told it is as new as it may be.
            let newest = data.storage.newest_change(rid, asked).unwrap_or(to);
            debug_assert!(newest <= to, "invariant 4: {newest:?} was seen by a reader of {to:?}");
            seen.note(Some(newest.0).filter(|at| *at > stable).unwrap_or(0));
        }
    }

    /// Notes that the catalog is such that it may write to a table.
    pub(super) fn saw_catalog(&self) {
        if let Some(seen) = &self.seen {
            seen.note(self.anchor.core.catalog.newest_change().0);
        }
    }

    /// From here on what it sees is noted, if that is wanted; until now it may have seen anything.
    pub(super) fn begin_to_note(&mut self) {
        if self.seen.is_none() {
            self.seen = SeenCommits::wanted(self.anchor.log.as_ref(), &self.options);
            self.saw_anything();
        }
    }
}
