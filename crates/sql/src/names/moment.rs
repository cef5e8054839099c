//! The moments that a statement reads: its own, and those of the past that it names.
//!
//! A moment is held: what it sees stays readable as long as a copy of it lives, even in a table that keeps no history.
//! It goes with the statement's plan into every scan, and is given up when the rows were read or dropped. Every read of a
//! table goes through it, so that the engine knows what a serializable transaction has read.
use std::collections::BTreeMap;
use std::fmt;

use engine::{Database, ReadView, ScanOptions, Table, Timestamp, Value};

use crate::error::Result;

/// The snapshot that is seen, and its hold.
#[derive(Clone)]
pub(crate) struct Moment {
    view: ReadView,
    is_past: bool,
}

impl Moment {
    /// Everything committed so far.
    pub(crate) fn now(db: &Database) -> Result<Moment> {
        Ok(Moment::of(db.read_view()?))
    }

    /// Everything up to a commit.
    pub(crate) fn after(db: &Database, at: Timestamp) -> Result<Moment> {
        Ok(Moment { view: db.read_view_at(at)?, is_past: true })
    }

    /// The moment of a statement in a transaction.
    pub(crate) fn of(view: ReadView) -> Moment {
        Moment { view, is_past: false }
    }

    /// Whether a statement named its commit.
    pub(crate) fn is_past(&self) -> bool {
        self.is_past
    }

    pub(crate) fn view(&self) -> &ReadView {
        &self.view
    }

    /// Has the engine know that a row was read, by a way of which it does not notice that itself.
    pub(crate) fn note_row(&self, table: &Table, key: &[Value]) -> Result<()> {
        if !self.is_past {
            table.lookup(&self.view, key, &ScanOptions::default())?;
        }
        Ok(())
    }

    /// Has the engine know that all rows of a table were read, by a way of which it does not notice that itself.
    pub(crate) fn note_rows(&self, table: &Table) -> Result<()> {
        if !self.is_past {
            table.scan(&self.view, ScanOptions::default())?;
        }
        Ok(())
    }

    /// Writes which commit a statement named, where this is not its own moment, as `EXPLAIN` shows it.
    pub(crate) fn write_past(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_past { write!(f, ", as of commit {}", self.at().0) } else { Ok(()) }
    }

    /// The newest commit that is seen.
    pub(crate) fn at(&self) -> Timestamp {
        self.view.at()
    }
}

/// The moments of the past that a statement names, by their commits.
pub(crate) type Past = BTreeMap<u64, Moment>;
