//! The storage without transactions, to measure what transactions cost.
//!
//! A key is looked up, a row read or a version appended, and nothing else: no snapshot, no conflicts beyond the
//! record's latch, nothing to stamp as versions are written with a timestamp that is committed already, no rollback
//! and no log. Concurrent operations of several threads are torn apart at will. Hidden from the documentation, as
//! it is no way to use a database.
use lineage::{Cell, Change, WriteError, word_of_value};
use smallvec::SmallVec;
use types::{DataType, Snapshot, Timestamp, Value};

use crate::error::Result;
use crate::table::Table;

/// A table's storage and its index, by key.
#[doc(hidden)]
pub struct BareTable<'t> {
    table: &'t Table,
}

/// Statements under one timestamp.
#[doc(hidden)]
pub struct BareStatements<'t> {
    table: &'t Table,
    at: Timestamp,
}

impl Table {
    /// The table without transactions. While it is in use, the database must not be used in another way.
    #[doc(hidden)]
    pub fn bare(&self) -> BareTable<'_> {
        BareTable { table: self }
    }
}

impl<'t> BareTable<'t> {
    /// Takes a timestamp for statements to come.
    pub fn begin(&self) -> BareStatements<'t> {
        BareStatements { table: self.table, at: self.table.database.shared.core.transactions.0.next_timestamp() }
    }
}

impl BareStatements<'_> {
    /// See [`Transaction::prefetch`](crate::Transaction::prefetch).
    pub fn prefetch<'k>(&self, rows: impl Iterator<Item = (&'k [Value], &'k [usize])>) {
        self.table.data.prefetch(rows);
    }

    /// See [`Transaction::read`](crate::Transaction::read).
    ///
    /// # Errors
    /// As [`Transaction::read`](crate::Transaction::read).
    pub fn read<R>(&self, key: &[Value], columns: &[usize], take: impl FnOnce(&[Cell<'_>]) -> R) -> Result<Option<R>> {
        let data = &self.table.data;
        let Some(key) = data.key_of_values(key)? else { return Ok(None) };
        let view = self.table.database.shared.core.transactions.view(Snapshot::at(Timestamp::MAX));
        data.read(view, &key, columns, |_, cells| take(cells))
    }

    /// See [`Transaction::update_columns`](crate::Transaction::update_columns), of bigints only.
    ///
    /// # Errors
    /// [`Error::NoPrimaryKey`](crate::Error::NoPrimaryKey), [`Error::WrongWidth`](crate::Error::WrongWidth) or
    /// [`Error::BadValue`](crate::Error::BadValue) if the table has no such key; [`Error::Page`](crate::Error::Page)
    /// if an evicted page cannot be read back.
    pub fn update_columns(&mut self, key: &[Value], changes: &[(usize, Value)]) -> Result<bool> {
        let data = &self.table.data;
        let Some(key) = data.key_of_values(key)? else { return Ok(false) };
        let mut cells = SmallVec::<[(usize, Cell<'_>); 8]>::new();
        for (column, value) in changes {
            cells.push((*column, word_of_value(value, DataType::BigInt).map_or(Cell::Null, Cell::Word)));
        }
        data.fill_indexes()?;
        let Some(rid) = data.primary_key()?.find(&sync::pin(), &key, Some)? else { return Ok(false) };
        let shared = &self.table.database.shared;
        let appended = loop {
            let view = shared.core.transactions.view(Snapshot::at(self.at));
            match data.storage.append(view, self.at.0, rid, Change::Update(&cells)) {
                Ok(appended) => break appended,
                // Versions of a record are in the order of their timestamps, also where another thread was faster.
                Err(WriteError::Changed(_)) => {
                    let next = shared.core.transactions.0.next_timestamp();
                    debug_assert!(next > self.at, "invariant 4: the clock went back from {:?} to {next:?}", self.at);
                    self.at = next;
                }
                Err(WriteError::Page(error)) => return Err(error.into()),
                Err(_) => return Ok(false),
            }
        };
        if appended.first % 16 == 1 && shared.merges.is_crowded(data, rid.range()) {
            crate::background::merger::merge_and_archive(&shared.core, data, rid.range());
        }
        Ok(true)
    }
}
