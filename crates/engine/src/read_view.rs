//! A snapshot that is held: what it sees stays readable until the view is dropped.
use std::sync::Arc;

use txn::Handle;
use types::{Snapshot, Timestamp};

use crate::database::{Database, Shared};
use crate::error::{Error, Result};

/// A snapshot in use. While it lives, no version that it sees is given up, whatever the retention of a table.
pub struct ReadView {
    shared: Arc<Shared>,
    /// `None` once it has ended.
    handle: Option<Handle>,
    snapshot: Snapshot,
}

impl ReadView {
    /// Holds the snapshot of everything committed so far.
    pub(crate) fn now(database: &Database) -> Result<ReadView> {
        let shared = database.shared.clone();
        let begun = shared.core.transactions.0.begin();
        let (handle, at) = begun.map_err(|error| Error::TooManyTransactions(error.limit))?;
        Ok(ReadView { handle: Some(handle), snapshot: Snapshot::at(at), shared })
    }

    /// Holds a snapshot. The caller asks afterwards whether a table still has what it sees.
    pub(crate) fn of(database: &Database, snapshot: Snapshot) -> Result<ReadView> {
        let shared = database.shared.clone();
        let begun = shared.core.transactions.0.begin_at(snapshot.at);
        let handle = begun.map_err(|error| Error::TooManyTransactions(error.limit))?;
        Ok(ReadView { handle: Some(handle), snapshot, shared })
    }

    /// What it sees.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// The newest commit that it sees.
    pub fn at(&self) -> Timestamp {
        self.snapshot.at
    }
}

impl Drop for ReadView {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.shared.core.transactions.0.release(handle);
        }
    }
}
