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
use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use sync::{CachePadded, thread_slot};

use super::shared::Shared;

/// How many threads count apart from each other.
const ANCHORS: usize = 64;

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
    shared: Arc<Shared>,
    /// The anchors of the database's handles, for an anchor that needs a handle.
    all: Arc<Mutex<AllAnchors>>,
}

type AllAnchors = Weak<[Arc<CachePadded<Root>>]>;

/// Keeps a database open.
#[derive(Clone)]
pub(crate) struct Anchor(Arc<CachePadded<Root>>);

impl Anchors {
    pub(crate) fn new(shared: Shared) -> Anchors {
        let none: AllAnchors = Weak::<[Arc<CachePadded<Root>>; 0]>::new();
        Anchors::of(&Arc::new(shared), &Arc::new(Mutex::new(none)))
    }

    fn of(shared: &Arc<Shared>, all: &Arc<Mutex<AllAnchors>>) -> Anchors {
        let root = || Root { shared: shared.clone(), all: all.clone() };
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

impl Deref for Anchors {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.0[0].shared
    }
}

impl Deref for Anchor {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.0.shared
    }
}

impl Anchor {
    /// A handle of the database, which may be the only one.
    pub(crate) fn database(&self) -> Database {
        let known = self.0.all.lock().upgrade();
        let shared = known.map_or_else(|| Anchors::of(&self.0.shared, &self.0.all), Anchors);
        Database { shared }
    }

    /// Whether both hold the same database.
    #[inline]
    pub(crate) fn is_of(&self, database: &Anchors) -> bool {
        std::ptr::eq::<Shared>(&**self, &**database)
    }
}

#[cfg(test)]
mod tests {
    use crate::Database;

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
