//! The commit of a transaction, from its last check to the wait for the disk; and its rollback.
//!
//! ```text
//! refer     what was written breaks no foreign key
//! check     what it has seen of others that were still to commit has committed; its redo is complete
//! number    its state is *committing*, then the next commit timestamp is taken
//! log       the redo is in the log's buffer, the timestamp being its log sequence number
//! validate  (serializable) others have not changed what it read; meanwhile it is *prepared*, and others that see its
//!           writes depend on the outcome
//! publish   its state is *committed*: its writes are visible
//! stamp     locks are given free, versions and the catalog get the timestamp; its slot is given up
//! wait      until the log is on disk up to its number, if that was asked for
//! ```
//!
//! In a directory the number is taken under the append latch of the log's partition, once there is room for the
//! frame: no other transaction waits for this one's timestamp while the log waits for the disk. So the order of
//! visibility is the order of the log.
use std::sync::atomic::Ordering;

use durability::{CommitLocation, CommitMode, Dependencies};
use types::Timestamp;

use super::Transaction;
use super::noted_reads::Reads;
use super::taken_number::TakenNumber;
use crate::background::merger;
use crate::disk::redo;
use crate::error::{Error, Result};
use crate::terms::isolation::Durability;
use crate::terms::table_lock::Standing;

impl Transaction {
    /// Commits. Returns the commit timestamp once the commit is durable, or at once for a database in memory, a transaction
    /// that wrote nothing, or one that was begun so ([`Durability`](crate::Durability)).
    ///
    /// # Errors
    /// [`Error::NotReferenced`] and its like if a foreign key is broken that was not looked at before: the transaction is rolled back.
    /// [`Error::ReadChanged`] if the transaction is serializable and others have changed what it read;
    /// [`Error::DependencyFailed`] if it saw what a transaction wrote that could not commit; after both it is rolled back
    /// and may be tried again. [`Error::Log`] if the log failed; whether the commit survives is known when the database is
    /// opened again.
    pub fn commit(mut self) -> Result<Timestamp> {
        self.finish()
    }

    /// Commits where the transaction stands. Without success it is still to be rolled back, by dropping it.
    pub(crate) fn finish(&mut self) -> Result<Timestamp> {
        self.end_references()?;
        self.transactions().0.await_dependencies(self.handle()).map_err(|_| Error::DependencyFailed)?;
        if self.written.is_empty() && self.catalog.is_none() {
            debug_assert_eq!(self.redo_in_log, 0, "invariant 8: the log has redo of a transaction that wrote nothing");
            return Ok(self.at);
        }
        self.complete_redo()?;
        let committed = match self.arrays.take() {
            Some(own) => self.decide_with_arrays(&own)?,
            None => self.decide()?,
        };
        debug_assert!(
            committed.at > self.at,
            "invariant 4: {:?} is not after the snapshot {:?}",
            committed.at,
            self.at
        );
        self.load().into_iter().for_each(|load| load.named_by(committed.at));
        self.stamp(committed.at);
        self.leave();
        self.merge_what_is_crowded();
        self.wait_durable(&committed)?;
        Ok(committed.at)
    }

    /// Adds to the redo what was put off, and what is known only now: the rows of its own sequences and of array tables, and the time.
    fn complete_redo(&mut self) -> Result<()> {
        self.settle_redo()?;
        self.finish_load()?;
        if self.catalog.is_some() {
            self.settle_sequences()?;
            self.log_arrays()?;
        }
        if self.anchor.log.is_some()
            && let Some(time) = self.anchor.core.clock.mark_for_log()
        {
            redo::put_clock(&mut self.redo, time);
        }
        Ok(())
    }

    /// Takes the transaction from running to committed: its redo is in the log's buffer then, and its writes are visible.
    pub(super) fn decide(&self) -> Result<Committed> {
        match &self.seen {
            Some(seen) => seen.depend(|on| self.decide_with(on)),
            None => self.decide_with(Dependencies::default()),
        }
    }

    #[inline]
    fn decide_with(&self, on: Dependencies<'_>) -> Result<Committed> {
        let committed = if self.reads.as_ref().is_some_and(Reads::are_any) {
            self.number_validate_log(on)
        } else {
            self.number_and_log(on)
        }?;
        self.transactions().0.finish_commit(self.handle(), committed.at);
        Ok(committed)
    }

    /// The number and the log, for a transaction that nothing keeps from committing any more.
    #[inline]
    fn number_and_log(&self, on: Dependencies<'_>) -> Result<Committed> {
        let (transactions, handle) = (&self.transactions().0, self.handle());
        let take_number = || {
            transactions.start_commit(handle);
            transactions.next_timestamp()
        };
        let Some(log) = &self.anchor.log else { return Ok(Committed { at: take_number(), appended: None }) };
        let LogPlace { partition, mode } = self.log_place();
        let (txn, lsn) = (handle.id().number(), || take_number().0);
        let appended = match mode {
            CommitMode::Partition => log.append_partition_commit(partition, txn, &self.redo, on, lsn),
            _ => log.append_commit(partition, txn, &self.redo, mode, lsn),
        }?;
        Ok(Committed { at: Timestamp(appended.lsn), appended: Some(appended) })
    }

    /// The number and the log, for a serializable transaction, which may fail in between.
    fn number_validate_log(&self, on: Dependencies<'_>) -> Result<Committed> {
        let (transactions, handle) = (&self.transactions().0, self.handle());
        let (txn, place) = (handle.id().number(), self.log_place());
        let room = self.anchor.log.as_ref().map(|log| log.reserve(place.partition, self.redo.len())).transpose()?;
        transactions.start_commit(handle);
        let at = transactions.next_timestamp();
        let mut number = TakenNumber { room, txn, at };
        transactions.prepare(handle, at);
        self.validate_reads(at)?;
        transactions.await_dependencies(handle).map_err(|_| Error::DependencyFailed)?;
        let appended = number.room.take().map(|room| match place.mode {
            CommitMode::Partition => room.partition_commit(txn, at.0, &self.redo, on),
            mode => room.commit(txn, at.0, &self.redo, mode),
        });
        debug_assert!(
            appended.as_ref().is_none_or(|appended| appended.lsn == at.0),
            "invariant 8: the log has another number than {at:?}"
        );
        Ok(Committed { at, appended })
    }

    /// Gives its locks free, and writes the commit timestamp to what it wrote.
    pub(super) fn stamp(&mut self, at: Timestamp) {
        self.unlock(0, 0);
        self.stamp_versions(0, at.0);
        self.publish_catalog(at);
    }

    /// Gives its place in the transaction table up, and keeps its hold on the table that it wrote to for the next transaction.
    pub(super) fn leave(&mut self) {
        debug_assert!(
            self.locked.is_empty() && self.shared.is_empty(),
            "rows stay locked by a transaction that is gone"
        );
        debug_assert!(self.catalog.is_none(), "names stay claimed by a transaction that is gone");
        if let Some(handle) = self.handle.take() {
            if self.tables.len() == 1 && self.crowded.is_none() && self.tables[0].lock.standing() == Standing::Open {
                self.tables.pop().into_iter().for_each(|table| self.anchor.keep(table));
            }
            self.anchor.core.transactions.0.release(handle);
        }
    }

    /// Merges a range that the merge threads can't keep up with, so that writers slow down and none stops.
    fn merge_what_is_crowded(&self) {
        if let Some((table, range)) = self.crowded {
            merger::merge_and_archive(&self.anchor.core, &self.tables[table as usize], range);
        }
    }

    /// Waits for what was promised of the commit.
    fn wait_durable(&self, committed: &Committed) -> Result<()> {
        match (&self.anchor.log, &committed.appended) {
            (Some(log), Some(appended)) => {
                log.wait(appended)?;
                debug_assert!(
                    self.options.durability != Durability::Sync || log.is_stable(committed.at.0),
                    "invariant 8: {:?} is acknowledged and not on disk",
                    committed.at
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Where its redo goes: to the partition that has the first part of it, if one has.
    pub(super) fn log_place(&self) -> LogPlace {
        let mode = match self.options.durability {
            // Which tables are there must not depend on the partition.
            Durability::Partition if self.catalog.is_some() => CommitMode::Sync,
            Durability::Partition => CommitMode::Partition,
            Durability::Sync => CommitMode::Sync,
            Durability::Async => CommitMode::Async,
        };
        let partition = || self.anchor.log.as_ref().map_or(0, |log| log.partition_for(mode));
        LogPlace { partition: self.log_partition.unwrap_or_else(partition), mode }
    }

    /// Rolls back everything that the transaction wrote. Nobody sees any of it any more; after very many rows its keys are taken
    /// out of the indexes in the background, and those that need these keys wait for that.
    pub fn rollback(self) {
        drop(self);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        redo::give_back(std::mem::take(&mut self.redo));
        if self.redo_in_log > 0 {
            self.anchor.core.running_redo.fetch_sub(self.redo_in_log, Ordering::Relaxed);
        }
        if self.handle.is_some() {
            self.undo();
        }
    }
}

/// Where a transaction's redo goes, and when its commit is acknowledged.
#[derive(Clone, Copy)]
pub(super) struct LogPlace {
    pub(super) partition: usize,
    mode: CommitMode,
}

/// A commit that is visible, and may not be on disk yet.
pub(super) struct Committed {
    pub(super) at: Timestamp,
    appended: Option<CommitLocation>,
}

#[cfg(test)]
mod tests {
    use types::{Column, DataType, Schema, Value};

    use crate::{Database, Error, Isolation, Table, Transaction, TransactionOptions};

    const KEY: [Value; 1] = [Value::BigInt(1)];

    fn table(db: &Database, name: &str) -> Table {
        let columns = ["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
        let table = db.create_table(name, Schema::new(columns, &["id"]).unwrap()).unwrap();
        db.run(TransactionOptions::default(), |transaction| set(transaction, &table, 0)).unwrap();
        table
    }

    fn set(transaction: &mut Transaction, table: &Table, n: i64) -> Result<(), Error> {
        match transaction.update(table, &KEY, &[("n", Value::from(n))])? {
            true => Ok(()),
            false => transaction.insert(table, &[Value::from(1i64), Value::from(n)]).map(drop),
        }
    }

    fn n(transaction: &Transaction, table: &Table) -> Value {
        transaction.get(table, &KEY).unwrap().unwrap().remove(1)
    }

    /// Takes a transaction to where it has its timestamp and might still fail.
    fn prepare(transaction: &Transaction) -> types::Timestamp {
        let table = &transaction.transactions().0;
        table.start_commit(transaction.handle());
        let at = table.next_timestamp();
        table.prepare(transaction.handle(), at);
        at
    }

    /// Commits a transaction that was taken there.
    fn commit(transaction: &mut Transaction, at: types::Timestamp) {
        transaction.transactions().0.finish_commit(transaction.handle(), at);
        transaction.stamp(at);
        transaction.leave();
    }

    /// Three transactions, each of which has read what the one before wrote and was about to commit. When the first can't,
    /// all of them can't; when it can, they can.
    #[test]
    fn who_saw_what_could_not_commit_can_not_commit_either() {
        for commits in [true, false] {
            let db = Database::in_memory();
            let tables = ["a", "b", "c"].map(|name| table(&db, name));
            let mut first = db.begin().unwrap();
            set(&mut first, &tables[0], 1).unwrap();
            let at = prepare(&first);
            let mut second = db.begin_with(TransactionOptions::at(Isolation::ReadCommitted)).unwrap();
            assert_eq!(n(&second, &tables[0]), Value::from(1i64), "it does not wait");
            set(&mut second, &tables[1], 2).unwrap();
            let second_at = prepare(&second);
            let third = db.begin().unwrap();
            assert_eq!(n(&third, &tables[1]), Value::from(2i64));
            let bystander = db.begin().unwrap();
            assert_eq!(n(&bystander, &tables[2]), Value::from(0i64));
            if commits {
                commit(&mut first, at);
            } else {
                first.rollback();
            }
            assert_eq!(second.transactions().0.await_dependencies(second.handle()).is_ok(), commits);
            if commits {
                commit(&mut second, second_at);
                third.commit().unwrap();
            } else {
                second.rollback();
                assert!(matches!(third.commit(), Err(Error::DependencyFailed)));
            }
            bystander.commit().unwrap();
            assert_eq!(db.wait_counts().dependencies, 2);
        }
    }

    /// A view that belongs to no transaction could not take back what it told.
    #[test]
    fn who_is_no_transaction_waits_for_the_decision() {
        let db = Database::in_memory();
        let table = table(&db, "t");
        let mut writer = db.begin().unwrap();
        set(&mut writer, &table, 1).unwrap();
        let at = prepare(&writer);
        let view = db.read_view().unwrap();
        assert_eq!(view.at(), at);
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| table.aggregate(&view, &[], &[1]).unwrap().columns[0].sum);
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!reading.is_finished());
            commit(&mut writer, at);
            assert_eq!(reading.join().unwrap(), crate::Sum::Integer(1));
        });
    }
}
