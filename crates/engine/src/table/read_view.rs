//! A view for reading: a snapshot, and its hold.
use std::sync::Arc;

use txn::Handle;
use types::{Snapshot, Timestamp};

use crate::database::handle::Anchor;
use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::table::read_set::ReadSet;

/// A snapshot in use; cheap to clone. While a clone lives, no version that it sees is given up, whatever the retention of a
/// table; the view of a transaction that reads one snapshot is held by that transaction.
///
/// A transaction's view also shows what the transaction wrote before the view was taken, and nothing that it writes later.
#[derive(Clone)]
pub struct ReadView {
    snapshot: Snapshot,
    /// `None` where the transaction holds the snapshot.
    held: Option<Arc<Held>>,
    /// Counts the views of a transaction since it last began a command.
    _open: Option<Arc<()>>,
    /// The reads of a serializable transaction.
    reads: Option<Arc<ReadSet>>,
}

/// A place in the transaction table, for the sake of its snapshot.
struct Held {
    anchor: Anchor,
    /// `None` once it has ended.
    handle: Option<Handle>,
}

impl ReadView {
    /// Holds the snapshot of everything committed so far.
    pub(crate) fn now(anchor: Anchor) -> Result<ReadView> {
        let begun = anchor.core.transactions.0.begin();
        let (handle, at) = begun.map_err(|error| Error::TooManyTransactions(error.limit))?;
        debug_assert!(
            at <= anchor.core.transactions.0.now(),
            "invariant 4: the view sees {at:?}, which is still to come"
        );
        Ok(ReadView::new(Snapshot::at(at), Some(Held { anchor, handle: Some(handle) })))
    }

    /// Holds a snapshot. The caller asks afterwards whether a table still has what it sees.
    pub(crate) fn of(database: &Database, snapshot: Snapshot) -> Result<ReadView> {
        let anchor = database.shared.anchor();
        let begun = anchor.core.transactions.0.begin_at(snapshot.at);
        let handle = begun.map_err(|error| Error::TooManyTransactions(error.limit))?;
        Ok(ReadView::new(snapshot, Some(Held { anchor, handle: Some(handle) })))
    }

    /// A transaction's snapshot, which the transaction holds.
    pub(crate) fn of_transaction(snapshot: Snapshot) -> ReadView {
        ReadView::new(snapshot, None)
    }

    fn new(snapshot: Snapshot, held: Option<Held>) -> ReadView {
        ReadView { snapshot, held: held.map(Arc::new), _open: None, reads: None }
    }

    /// The view as a transaction sees it: with its own writes so far.
    pub(crate) fn within(mut self, snapshot: Snapshot, open: Arc<()>, reads: Option<Arc<ReadSet>>) -> ReadView {
        self.snapshot = Snapshot { at: self.snapshot.at, ..snapshot };
        debug_assert_eq!(self.snapshot.at, snapshot.at, "invariant 4: the view would not be the one that is held");
        (self._open, self.reads) = (Some(open), reads);
        self
    }

    /// The view, with no more of the transaction's own writes than an earlier one shows.
    pub(crate) fn with_own_of(mut self, earlier: &ReadView) -> ReadView {
        debug_assert!(earlier.snapshot.before <= self.snapshot.before, "invariant 4: the earlier view shows more");
        self.snapshot.before = earlier.snapshot.before;
        self
    }

    /// The view for the sake of its moment: nothing is read through it any more, and what the transaction writes
    /// next need not be kept from it.
    pub fn closed(mut self) -> ReadView {
        self._open = None;
        self
    }

    /// The snapshot that it sees.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// Whether what is read through it is noted, as the transaction is serializable.
    pub fn notes_reads(&self) -> bool {
        self.reads.is_some()
    }

    /// The newest commit that it sees.
    pub fn at(&self) -> Timestamp {
        self.snapshot.at
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.anchor.core.transactions.0.release(handle);
        }
    }
}

/// The view of one read: a [`ReadView`], or a bare snapshot that only the read itself holds.
#[derive(Clone, Copy)]
pub struct Sight<'v> {
    pub(crate) snapshot: Snapshot,
    /// Whether the view holds the snapshot, whatever becomes of its transaction.
    pub(crate) is_held: bool,
    pub(crate) reads: Option<&'v ReadSet>,
}

impl From<Snapshot> for Sight<'_> {
    fn from(snapshot: Snapshot) -> Self {
        Sight { snapshot, is_held: false, reads: None }
    }
}

impl<'v> From<&'v ReadView> for Sight<'v> {
    fn from(view: &'v ReadView) -> Self {
        Sight { snapshot: view.snapshot, is_held: view.held.is_some(), reads: view.reads.as_deref() }
    }
}
