//! Taking back all that a transaction wrote.
//!
//! A rollback takes the keys of inserted records out of the indexes, and puts tombstones in place of versions. Both take time for
//! each row. A caller that cancelled a statement over millions of rows should not wait for that: so a long rollback is
//! done in the background, and the caller goes on at once.
//!
//! ```text
//! caller       locks and names given free, redo void --> hands over [ place in the transaction table | tables | records ]
//! background   keys out of the indexes --> aborted --> tombstones --> place given up
//! ```
//!
//! To all others the transaction is one that still runs until then: what it wrote is invisible, and a writer that meets one of its
//! keys waits for it. Writers do that at every isolation level, as it is known that the row will be free. The transaction belongs
//! to no session any more: its former session goes on with other transactions, and may wait for this one without a deadlock.
//! Closing the database waits for it.
use std::sync::Arc;

use smallvec::SmallVec;
use txn::Handle;
use types::{StartTime, TxnId};

use super::Transaction;
use super::notes::{CatalogStep, Savepoint, WrittenRecords, neighbours};
use super::running::{is_rolled_back, rolled_back};
use super::stamp::stamp_records;
use crate::state::core::Core;
use crate::state::table_data::TableData;
use crate::terms::outcomes::Transactions;

/// How many rows are taken back while the caller waits: some milliseconds of work.
const ROWS_AT_ONCE: u64 = 10_000;

impl Transaction {
    /// Takes back all that it wrote and locked, in the background if that is long.
    pub(super) fn undo(&mut self) {
        match self.is_long(0) && self.changed_no_table() {
            true => self.undo_in_background(),
            false => self.undo_at_once(),
        }
    }

    /// Whether its changes of the catalog, if any, are only tables that it made: nobody else has seen those. What it did to another
    /// table is taken back in one go, before others get that.
    fn changed_no_table(&self) -> bool {
        let is_new = |step: &CatalogStep| {
            matches!(step, CatalogStep::Claimed(_) | CatalogStep::Intended(..) | CatalogStep::Made(_))
        };
        self.steps().iter().all(is_new)
    }

    /// Takes back all that it wrote and locked, before it returns.
    pub(crate) fn undo_at_once(&mut self) {
        self.void_redo();
        self.forget_keys(0);
        self.unlock(0, 0);
        self.take_catalog_back(0);
        self.transactions().0.abort(self.handle());
        self.stamp_versions(0, StartTime::TOMBSTONE);
        self.leave();
        debug_assert!(self.handle.is_none(), "a transaction that is taken back would be taken back again");
    }

    fn undo_in_background(&mut self) {
        self.void_redo();
        self.unlock(0, 0);
        self.take_catalog_back(0);
        debug_assert!(
            self.locked.is_empty() && self.shared.is_empty() && self.catalog.is_none(),
            "locks or names outlive the transaction's caller"
        );
        self.wake_waiters();
        let Some(handle) = self.handle.take() else { return };
        self.transactions().0.describe_anew(&handle, rolled_back(&self.options));
        let rest =
            Rest { handle, tables: std::mem::take(&mut self.tables), written: std::mem::take(&mut self.written) };
        let core = self.anchor.core.clone();
        self.anchor.deferred.run(move || rest.take_back(&core));
    }

    /// Tells the log that no commit follows the redo that it has.
    fn void_redo(&self) {
        if let Some(log) = self.anchor.log.as_ref().filter(|_| self.redo_in_log > 0) {
            log.append_abort(self.log_place().partition, self.id().number());
        }
    }

    /// Whether rolling back to a savepoint takes so long that a caller had rather not wait for it.
    pub fn is_long_since(&self, savepoint: Savepoint) -> bool {
        self.savepoints.iter().any(|(known, marks)| *known == savepoint && self.is_long(marks.written))
    }

    /// Whether what was written from this place in the list on is long to take back.
    fn is_long(&self, from: usize) -> bool {
        let mut rows = self.written[from..].iter().map(|written| match written {
            WrittenRecords::Inserts { count, .. } => u64::from(*count),
            WrittenRecords::Versions { .. } => 1,
        });
        // The list may be as long as the transaction: no more of it is read than needed.
        rows.try_fold(0, |sum, rows| Some(sum + rows).filter(|sum| *sum <= ROWS_AT_ONCE)).is_none()
    }

    /// Takes the keys of records inserted from this place in the list on out of the index; no other transaction
    /// ever saw them.
    pub(super) fn forget_keys(&self, from: usize) {
        forget_keys(self.transactions(), self.id(), &self.tables, &self.written[from..]);
    }
}

/// What is left of a transaction whose caller has gone on.
struct Rest {
    handle: Handle,
    tables: SmallVec<[Arc<TableData>; 2]>,
    written: SmallVec<[WrittenRecords; 8]>,
}

impl Rest {
    fn take_back(self, core: &Core) {
        let Rest { handle, tables, written } = self;
        debug_assert!(
            core.transactions.0.description(handle.id()).is_some_and(is_rolled_back),
            "invariant 4: {handle:?} is taken back while its caller may still commit it"
        );
        forget_keys(&core.transactions, handle.id(), &tables, &written);
        core.transactions.0.abort(&handle);
        stamp_records(&tables, &written, handle.id(), StartTime::TOMBSTONE);
        core.transactions.0.release(handle);
    }
}

/// Takes the keys of records that the transaction `id` inserted out of the indexes.
fn forget_keys(transactions: &Transactions, id: TxnId, tables: &[Arc<TableData>], written: &[WrittenRecords]) {
    let own = transactions.newest(Some(id));
    for written in written {
        let WrittenRecords::Inserts { table, first, count } = written else { continue };
        let data = &tables[*table as usize];
        let indexes = data.indexes.all();
        for rid in neighbours(*first, *count) {
            // Where the own records are nothing is evicted.
            if let Some(primary_key) = &data.primary_key
                && let Ok(Some(key)) = data.storage.read(own, rid, &primary_key.columns, |cells| primary_key.key(cells))
            {
                primary_key.remove(&key, rid);
            }
            for index in &indexes {
                let keys = data.storage.read(own, rid, index.columns(), |cells| index.keys(cells));
                let keys = keys.ok().flatten().into_iter().flatten();
                keys.for_each(|keyed| index.entries().remove(&keyed.key, rid));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::sync::mpsc::{self, Sender};
    use std::time::Duration;

    use types::{Column, DataType, Schema, Value};

    use super::ROWS_AT_ONCE;
    use crate::terms::isolation::SessionNumber;
    use crate::{
        Database, Error, IndexDefinition, IndexMethod, RunningTransaction, Table, Transaction, TransactionOptions,
    };

    /// The keys of a row that is there before, and of one that each transaction inserts.
    const OLD: i64 = -1;
    const KEY: i64 = 7;

    fn schema() -> Schema {
        let columns = ["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
        Schema::new(columns, &["id"]).unwrap()
    }

    fn table(db: &Database) -> Table {
        let table = db.create_table("t", schema()).unwrap();
        db.create_index("t", IndexDefinition::new("t_n", &[1]).using(IndexMethod::Btree)).unwrap();
        db.run(TransactionOptions::default(), |transaction| insert(transaction, &table, OLD)).unwrap();
        table
    }

    fn insert(transaction: &mut Transaction, table: &Table, id: i64) -> Result<(), Error> {
        transaction.insert(table, &[Value::from(id), Value::from(id)]).map(drop)
    }

    fn update(transaction: &mut Transaction, table: &Table, id: i64) -> Result<(), Error> {
        transaction.update(table, &[Value::from(id)], &[("n", Value::from(0i64))]).map(|found| assert!(found))
    }

    /// A transaction with more rows than are taken back at once.
    fn long(db: &Database, table: &Table, options: TransactionOptions) -> Transaction {
        let mut transaction = db.begin_with(options).unwrap();
        update(&mut transaction, table, OLD).unwrap();
        (0..=ROWS_AT_ONCE as i64).for_each(|id| insert(&mut transaction, table, id).unwrap());
        transaction
    }

    fn count(db: &Database, table: &Table) -> usize {
        db.begin().unwrap().scan(table, &["id"]).unwrap().batches().map(|batch| batch.unwrap().num_rows()).sum()
    }

    /// Keeps the background from what follows, until the sender is dropped.
    fn hold(db: &Database) -> Sender<()> {
        let (held, until) = mpsc::channel();
        db.shared.deferred.run(move || until.into_iter().for_each(|()| ()));
        held
    }

    #[test]
    fn a_long_rollback_hides_its_rows_before_it_is_done_and_its_session_waits_for_their_keys() {
        let db = Database::in_memory();
        let table = table(&db);
        let session = Some(SessionNumber(NonZeroU32::MIN));
        let options = TransactionOptions { session, ..TransactionOptions::default() };
        let transaction = long(&db, &table, options);
        let id = transaction.id();
        let held = hold(&db);
        transaction.rollback();
        let is_there = |running: RunningTransaction| running.id == id;
        assert!(db.running_transactions().into_iter().any(is_there), "it is still to be taken back");
        assert_eq!(count(&db, &table), 1);

        let impatient = TransactionOptions { lock_timeout: Some(Duration::from_millis(1)), ..options };
        let refused = insert(&mut db.begin_with(impatient).unwrap(), &table, KEY);
        assert!(matches!(refused, Err(Error::LockTimeout)), "{refused:?}");
        std::thread::scope(|scope| {
            let wait = |write: fn(&mut Transaction, &Table, i64) -> Result<(), Error>, id| {
                let mut transaction = db.begin_with(options).unwrap();
                let table = &table;
                scope.spawn(move || write(&mut transaction, table, id).and_then(|()| transaction.commit()))
            };
            let both = [wait(insert, KEY), wait(update, OLD)];
            let waiting = || db.running_transactions().iter().filter(|running| running.waits.is_some()).count();
            while waiting() < both.len() {
                assert!(!both.iter().any(|one| one.is_finished()), "{:?}", both.map(|one| one.join()));
                std::thread::yield_now();
            }
            drop(held);
            both.into_iter().for_each(|one| assert!(one.join().unwrap().is_ok()));
        });
        assert_eq!(count(&db, &table), 2);
    }

    #[test]
    fn the_name_of_a_table_whose_making_is_rolled_back_is_free_at_once() {
        let db = Database::in_memory();
        let mut transaction = db.begin().unwrap();
        let made = transaction.create_table("t", schema()).unwrap();
        (0..=ROWS_AT_ONCE as i64).for_each(|id| insert(&mut transaction, &made, id).unwrap());
        let held = hold(&db);
        transaction.rollback();
        drop(made);
        let table = table(&db);
        assert_eq!(count(&db, &table), 1);
        drop(held);
    }

    #[test]
    fn a_database_is_closed_after_its_rollbacks() {
        let directory = tempfile::tempdir().unwrap();
        let db = Database::open(directory.path()).unwrap();
        let transaction = long(&db, &table(&db), TransactionOptions::default());
        let held = hold(&db);
        transaction.rollback();
        let closing = std::thread::spawn(move || drop(db));
        drop(held);
        closing.join().unwrap();

        let db = Database::open(directory.path()).unwrap();
        let table = db.table("t").unwrap();
        assert_eq!(count(&db, &table), 1);
        db.run(TransactionOptions::default(), |transaction| insert(transaction, &table, KEY)).unwrap();
        drop((table, db));
        assert_eq!(Database::verify(directory.path(), |_, _| ()).unwrap().faults, Vec::<String>::new());
    }
}
