//! Taking back a part of what a transaction did.
//!
//! A savepoint remembers how far the lists of the transaction were. Rolling back to it puts tombstones in place of the
//! versions written since, gives the locks taken since free, takes the keys entered since out of the index, and cuts the
//! redo; where that has partly gone to the log, the log is told from which byte on it does not hold.
use types::StartTime;

use super::Transaction;
use super::notes::{Marks, Savepoint};
use crate::disk::redo;
use crate::error::{Error, Result};

impl Transaction {
    /// A point to which the transaction can be rolled back, as often as is wanted.
    pub fn savepoint(&mut self) -> Savepoint {
        let savepoint = Savepoint(self.savepoints_made);
        self.savepoints_made += 1;
        debug_assert!(
            self.savepoints.last().is_none_or(|(last, _)| last.0 < savepoint.0),
            "savepoints are numbered in the order in which they were made"
        );
        self.savepoints.push((savepoint, self.marks()));
        savepoint
    }

    /// Takes back what was written and locked after the savepoint, and forgets the savepoints made after it.
    ///
    /// # Errors
    /// [`Error::NoSuchSavepoint`] if it was forgotten.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let known = self.savepoints.iter().position(|(known, _)| *known == savepoint).ok_or(Error::NoSuchSavepoint)?;
        self.savepoints.truncate(known + 1);
        let marks = self.savepoints[known].1.clone();
        self.take_back(marks);
        Ok(())
    }

    /// Forgets a savepoint and those made after it; what was done since stays.
    ///
    /// # Errors
    /// [`Error::NoSuchSavepoint`] if it was forgotten before.
    pub fn release(&mut self, savepoint: Savepoint) -> Result<()> {
        let known = self.savepoints.iter().position(|(known, _)| *known == savepoint).ok_or(Error::NoSuchSavepoint)?;
        self.savepoints.truncate(known);
        if let Some(references) = self.references.as_mut().filter(|_| known == 0) {
            references.forget_settled();
        }
        Ok(())
    }

    /// Does work of which nothing stays if it fails.
    pub(super) fn whole<T>(&mut self, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        let savepoint = self.savepoint();
        let done = work(self);
        match &done {
            Ok(_) => self.release(savepoint)?,
            Err(_) => {
                self.rollback_to(savepoint)?;
                self.release(savepoint)?;
            }
        }
        done
    }

    /// Whether the transaction may go back to a savepoint.
    pub(super) fn has_savepoints(&self) -> bool {
        !self.savepoints.is_empty()
    }

    /// The length of `written` at the newest savepoint: entries before it must stay as they are.
    pub(super) fn last_mark(&self) -> usize {
        self.savepoints.last().map_or(0, |(_, marks)| marks.written)
    }

    fn marks(&self) -> Marks {
        Marks {
            written: self.written.len(),
            locked: self.locked.len(),
            shared: self.shared.len(),
            catalog: self.steps().len(),
            redo: self.redo_in_log + self.redo.len() as u64,
            filling: self.filling.clone(),
            arrays: self.arrays.clone(),
            constraints: self.references.as_ref().map(|references| references.modes()),
        }
    }

    fn take_back(&mut self, marks: Marks) {
        if let Some(references) = &mut self.references {
            references.take_back(marks.constraints.unwrap_or_default());
        }
        // Before the locks of the tables: without one there is nothing written.
        self.arrays = marks.arrays;
        let has_anything = self.written.len() > marks.written
            || self.locked.len() > marks.locked
            || self.shared.len() > marks.shared
            || self.steps().len() > marks.catalog;
        debug_assert!(self.written.len() >= marks.written, "what was written before the savepoint is gone");
        debug_assert!(
            self.redo_in_log + self.redo.len() as u64 >= marks.redo,
            "invariant 8: redo from before the savepoint is gone"
        );
        if !has_anything {
            return;
        }
        self.filling = marks.filling;
        self.forget_keys(marks.written);
        self.stamp_versions(marks.written, StartTime::TOMBSTONE);
        self.written.truncate(marks.written);
        self.unlock(marks.locked, marks.shared);
        self.take_catalog_back(marks.catalog);
        if marks.redo >= self.redo_in_log {
            self.redo.truncate((marks.redo - self.redo_in_log) as usize);
        } else {
            self.redo.clear();
            redo::put_taken_back(&mut self.redo, marks.redo);
        }
        debug_assert_eq!(self.written.len(), marks.written, "invariant 4: what is taken back would be committed");
        debug_assert_eq!(
            (self.locked.len(), self.shared.len(), self.steps().len()),
            (marks.locked, marks.shared, marks.catalog),
            "locks and changes of the catalog outlive what they were for"
        );
        self.wake_waiters();
    }

    /// Gives rows free, from these places in the lists of locks on.
    #[inline]
    pub(super) fn unlock(&mut self, locked: usize, shared: usize) {
        if self.locked.len() > locked || self.shared.len() > shared {
            self.unlock_some(locked, shared);
        }
    }

    #[inline(never)]
    fn unlock_some(&mut self, locked: usize, shared: usize) {
        let id = self.id();
        for lock in self.locked.drain(locked..) {
            let storage = &self.tables[lock.table as usize].storage;
            storage.stamp_versions(&sync::pin(), lock.rid, lock.appended, id, StartTime::TOMBSTONE);
        }
        for (table, rid, strength) in self.shared.drain(shared..) {
            self.tables[table as usize].share_locks.leave(rid, id, strength);
        }
    }
}
