//! Commit and rollback.
use durability::Dependencies;
use types::{StartTime, Timestamp};

use super::Transaction;
use super::savepoint::stamp;
use crate::database::{Committed, LogPlace};
use crate::error::{Error, Result};
use crate::isolation::Durability;
use crate::{merger, redo};

impl Transaction {
    /// Commits. Returns the commit timestamp once the commit is durable, or at once for a database in memory, a transaction
    /// that wrote nothing, or one that was begun so ([`Durability`](crate::Durability)).
    ///
    /// # Errors
    /// [`Error::ReadChanged`] if the transaction is serializable and others have changed what it read;
    /// [`Error::DependencyFailed`] if it saw what a transaction wrote that could not commit; after both it is rolled back
    /// and may be tried again. [`Error::Log`] if the log failed; whether the commit survives is known when the database is
    /// opened again.
    pub fn commit(mut self) -> Result<Timestamp> {
        self.finish()
    }

    /// Commits where the transaction stands. Without success it is still to be rolled back, by dropping it.
    pub(crate) fn finish(&mut self) -> Result<Timestamp> {
        if self.transactions().0.await_dependencies(self.handle()).is_err() {
            return Err(Error::DependencyFailed);
        }
        if self.written.is_empty() && self.catalog.is_none() {
            return Ok(self.at);
        }
        if self.catalog.is_some() {
            self.settle_sequences()?;
        }
        if self.anchor.log.is_some()
            && let Some(time) = self.anchor.core.clock.mark_for_log()
        {
            redo::put_clock(&mut self.redo, time);
        }
        let committed = self.decide()?;
        let (at, id) = (committed.at, self.id());
        self.unlock(0, 0);
        let guard = sync::pin();
        self.written.iter().for_each(|written| stamp(&guard, &self.tables, id, written, at.0));
        drop(guard);
        self.publish_catalog(at);
        self.handle.take().into_iter().for_each(|handle| self.anchor.core.transactions.0.release(handle));
        if let Some((table, range)) = self.crowded {
            merger::merge_and_archive(&self.anchor.core, &self.tables[table as usize], range);
        }
        self.anchor.wait_durable(&committed)?;
        Ok(at)
    }

    /// Takes the timestamp; a serializable transaction finds out whether it may.
    fn decide(&mut self) -> Result<Committed> {
        match &self.seen {
            Some(seen) => seen.depend(|on| self.decide_with(on)),
            None => self.decide_with(Dependencies::default()),
        }
    }

    #[inline]
    fn decide_with(&self, on: Dependencies<'_>) -> Result<Committed> {
        let (handle, id, place) = (self.handle(), self.id(), self.log_place());
        match self.reads.as_ref().filter(|reads| !reads.is_empty()) {
            None => self.anchor.commit_to_log(handle, &self.redo, place, on),
            Some(reads) => {
                let validate = |at| reads.validate(&self.anchor.core, self.at, at, id);
                self.anchor.commit_if_valid(handle, &self.redo, (place, on), &validate)
            }
        }
    }

    /// Where its redo goes: to the partition that has the first part of it, if one has.
    pub(super) fn log_place(&self) -> LogPlace {
        // Which tables are there must not depend on the partition.
        let durability = match self.options.durability {
            Durability::Partition if self.catalog.is_some() => Durability::Sync,
            durability => durability,
        };
        let place = self.anchor.log_place(durability);
        LogPlace { partition: self.log_partition.unwrap_or(place.partition), ..place }
    }

    /// Rolls back everything that the transaction wrote.
    pub fn rollback(self) {
        drop(self);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        redo::give_back(std::mem::take(&mut self.redo));
        if self.handle.is_none() {
            return;
        }
        self.forget_keys(0);
        let id = self.id();
        self.unlock(0, 0);
        if self.catalog.is_some() {
            self.take_catalog_back(0);
        }
        if let Some(handle) = &self.handle {
            self.anchor.core.transactions.0.abort(handle);
        }
        let guard = sync::pin();
        self.written.iter().for_each(|written| stamp(&guard, &self.tables, id, written, StartTime::TOMBSTONE));
        if let Some(log) = self.anchor.log.as_ref().filter(|_| self.redo_in_log > 0) {
            log.append_abort(self.log_place().partition, id.number());
        }
        self.handle.take().into_iter().for_each(|handle| self.anchor.core.transactions.0.release(handle));
    }
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
                first.transactions().0.finish_commit(first.handle(), at);
            } else {
                first.transactions().0.abort(first.handle());
            }
            let transactions = &second.transactions().0;
            assert_eq!(transactions.await_dependencies(second.handle()).is_ok(), commits);
            if commits {
                transactions.finish_commit(second.handle(), second_at);
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
            writer.transactions().0.finish_commit(writer.handle(), at);
            assert_eq!(reading.join().unwrap(), crate::Sum::Integer(1));
        });
    }
}
