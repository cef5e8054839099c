//! The moments that a statement reads: its own, and those of the past that it names.
//!
//! A moment is held: what it sees stays readable as long as a copy of it lives, even in a table that keeps no history.
//! It goes with the statement's plan into every scan, and is given up when the rows were read or dropped. Within a block
//! the block's transaction holds the snapshot.
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use engine::{Database, ReadView, Snapshot, Timestamp};

use crate::error::Result;

/// A snapshot and what holds it.
#[derive(Clone)]
pub(crate) struct Moment {
    snapshot: Snapshot,
    /// `None` where a transaction does it.
    _held: Option<Arc<ReadView>>,
    is_past: bool,
}

impl Moment {
    /// Everything committed so far.
    pub(crate) fn now(db: &Database) -> Result<Moment> {
        Ok(Moment::held(db.read_view()?, false))
    }

    /// Everything up to a commit.
    pub(crate) fn after(db: &Database, at: Timestamp) -> Result<Moment> {
        Ok(Moment::held(db.read_view_at(at)?, true))
    }

    /// What a transaction sees, which holds it.
    pub(crate) fn of_transaction(snapshot: Snapshot) -> Moment {
        Moment { snapshot, _held: None, is_past: false }
    }

    fn held(view: ReadView, is_past: bool) -> Moment {
        Moment { snapshot: view.snapshot(), _held: Some(Arc::new(view)), is_past }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// Writes which commit a statement named, where this is not its own moment, as `EXPLAIN` shows it.
    pub(crate) fn write_past(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_past { write!(f, ", as of commit {}", self.snapshot.at.0) } else { Ok(()) }
    }

    /// The newest commit that is seen.
    pub(crate) fn at(&self) -> Timestamp {
        self.snapshot.at
    }
}

/// The moments of the past that a statement names, by their commits.
pub(crate) type Past = BTreeMap<u64, Moment>;
