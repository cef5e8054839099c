//! Keeping a database open without a counter that all threads write.
//!
//! Everything that is short-lived, transactions and views foremost, keeps the database alive while it lives. One reference
//! counter would be one cache line that every transaction of every core writes twice. So there are several counters, one
//! for each of a number of threads, and a thread uses its own:
//!
//! ```text
//! Database -> Anchors -> [anchor 0][anchor 1] ...      a cache line each
//!                             ^ counted by the transactions of one thread
//!                             +-> Shared               counted by the anchors only
//! ```
//!
//! The counter of a table is one that all its writers change, too. So an anchor keeps the hold on a table that a transaction of
//! its threads had, for the next one, which mostly writes to the same table. A dropped table is let go of by all anchors:
//! a hold is given back while its transaction still notes the table as one that it uses, and the transaction that
//! drops the table waits for those before it tells the anchors (`transaction/tables.rs`).
use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use sync::{AtomicCell, CachePadded, thread_slot};

use super::shared::DatabaseState;
use crate::state::table_data::TableData;

/// How many threads count apart from each other.
const ANCHORS: usize = 64;

/// What is done with the last handle of a database in a directory, before that is closed.
pub(crate) type Closing = fn(&Database);

/// A database. Clones are handles to the same one; it is closed when the last handle, of the database, a table, a
/// scan or a transaction, is dropped.
#[derive(Clone)]
pub struct Database {
    pub(crate) shared: Anchors,
}

/// The counters of a database.
#[derive(Clone)]
pub(crate) struct Anchors(Arc<[Arc<CachePadded<Root>>]>);

/// The data that an anchor holds on to.
pub(crate) struct Root {
    /// The table that a transaction of the threads wrote to last; beside the line from which all threads may read the others.
    kept: CachePadded<AtomicCell<Option<Arc<TableData>>>>,
    shared: Arc<DatabaseState>,
    closing: Closing,
    /// The anchors of the database's handles, for an anchor that needs a handle.
    all: Arc<Mutex<AllAnchors>>,
}

type AllAnchors = Weak<[Arc<CachePadded<Root>>]>;

/// Keeps a database open.
#[derive(Clone)]
pub(crate) struct Anchor(Arc<CachePadded<Root>>);

impl Anchors {
    pub(crate) fn new(shared: DatabaseState, closing: Closing) -> Anchors {
        let none: AllAnchors = Weak::<[Arc<CachePadded<Root>>; 0]>::new();
        Anchors::of(&Arc::new(shared), closing, &Arc::new(Mutex::new(none)))
    }

    fn of(shared: &Arc<DatabaseState>, closing: Closing, all: &Arc<Mutex<AllAnchors>>) -> Anchors {
        let root = || Root { kept: CachePadded::default(), shared: shared.clone(), closing, all: all.clone() };
        let anchors: Arc<[_]> = (0..ANCHORS).map(|_| Arc::new(CachePadded::new(root()))).collect();
        *all.lock() = Arc::downgrade(&anchors);
        Anchors(anchors)
    }

    /// A hold on the database through this thread's counter.
    #[inline]
    pub(crate) fn anchor(&self) -> Anchor {
        Anchor(self.0[thread_slot() % ANCHORS].clone())
    }
}

impl Drop for Anchors {
    /// Of two that are dropped at once none may be the last here: what is done then is left undone at no harm.
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) == 1 && self.log.as_ref().is_some_and(|log| !log.is_read_only()) {
            (self.0[0].closing)(&Database { shared: self.clone() });
        }
    }
}

impl Deref for Anchors {
    type Target = DatabaseState;

    #[inline]
    fn deref(&self) -> &DatabaseState {
        &self.0[0].shared
    }
}

impl Deref for Anchor {
    type Target = DatabaseState;

    #[inline]
    fn deref(&self) -> &DatabaseState {
        &self.0.shared
    }
}

impl Anchor {
    /// A handle of the database, which may be the only one.
    pub(crate) fn database(&self) -> Database {
        let known = self.0.all.lock().upgrade();
        let shared = known.map_or_else(|| Anchors::of(&self.0.shared, self.0.closing, &self.0.all), Anchors);
        debug_assert!(self.is_of(&shared), "the handle is another database's");
        Database { shared }
    }

    /// A hold on a table, by its counter only where none was kept.
    #[inline]
    pub(crate) fn hold(&self, table: &Arc<TableData>) -> Arc<TableData> {
        self.0.kept.take().filter(|kept| Arc::ptr_eq(kept, table)).unwrap_or_else(|| table.clone())
    }

    /// Keeps a hold for the next transaction. The caller's transaction still uses the table, which nobody has locked.
    #[inline]
    pub(crate) fn keep(&self, table: Arc<TableData>) {
        self.0.kept.store(Some(table));
    }

    /// Lets go of the holds that are kept, as a table was dropped.
    pub(crate) fn let_go(&self) {
        let all = self.0.all.lock().upgrade();
        all.iter().flat_map(|all| all.iter()).chain([&self.0]).for_each(|root| drop(root.kept.take()));
    }

    /// Whether both hold the same database.
    #[inline]
    pub(crate) fn is_of(&self, database: &Anchors) -> bool {
        std::ptr::eq::<DatabaseState>(&**self, &**database)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use types::{Column, DataType, Schema};

    use crate::{Database, Table, TransactionOptions};

    fn table(db: &Database) -> Table {
        db.create_table("t", Schema::new(vec![Column::new("id", DataType::BigInt)], &["id"]).unwrap()).unwrap()
    }

    fn write_by_two_threads(db: &Database, table: &Table) {
        let write = |key: i64| {
            db.run(TransactionOptions::default(), |transaction| transaction.insert(table, &[key.into()])).unwrap();
        };
        write(1);
        std::thread::scope(|scope| scope.spawn(|| write(2)).join().unwrap());
    }

    #[test]
    fn the_next_transaction_of_a_thread_takes_over_the_hold_on_a_table() {
        let db = Database::in_memory();
        let table = table(&db);
        write_by_two_threads(&db, &table);
        let held = Arc::strong_count(&table.data);
        let mut transactions = [db.begin().unwrap(), db.begin().unwrap()];
        for (key, transaction) in (3_i64..).zip(&mut transactions) {
            transaction.insert(&table, &[key.into()]).unwrap();
            assert_eq!(Arc::strong_count(&table.data), held + key as usize - 3, "the second needs one of its own");
        }
        let [first, second] = transactions;
        first.commit().unwrap();
        second.rollback();
        assert_eq!(Arc::strong_count(&table.data), held);
    }

    #[test]
    fn a_dropped_table_is_let_go_of_by_all_threads() {
        let db = Database::in_memory();
        let table = table(&db);
        write_by_two_threads(&db, &table);
        let before = Arc::strong_count(&table.data);
        db.drop_table("t").unwrap();
        assert_eq!(Arc::strong_count(&table.data), before - 2, "the catalog and the handle are left");
    }

    #[test]
    fn a_database_closes_with_its_last_handle() {
        let directory = tempfile::tempdir().unwrap();
        let db = Database::open(directory.path()).unwrap();
        let view = db.read_view().unwrap();
        let transaction = std::thread::scope(|scope| scope.spawn(|| db.begin().unwrap()).join().unwrap());
        drop(db);
        assert!(Database::open(directory.path()).is_err(), "a transaction and a view hold it");
        drop(transaction);
        assert!(Database::open(directory.path()).is_err(), "a view holds it");
        drop(view);
        Database::open(directory.path()).unwrap();
    }
}
