//! Changes of the catalog as one statement each, in a transaction of its own that has committed when the call returns.
use types::{Schema, Snapshot, Timestamp};

use super::Transaction;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::isolation::{Isolation, TransactionOptions};
use crate::settings::{Retention, TableSettings};
use crate::table::{Table, TableData};

/// One statement each, in a transaction of its own that has committed when the call returns. It waits without a limit for the
/// transactions that are in its way, also for those of the thread that calls; the rest is as in [`Transaction`].
impl Database {
    /// Makes a table.
    ///
    /// # Errors
    /// As [`Transaction::create_table_with`] and [`Transaction::commit`].
    pub fn create_table(&self, name: &str, schema: Schema) -> Result<Table> {
        self.create_table_with(name, schema, TableSettings::default())
    }

    /// Makes a table with settings of its own.
    ///
    /// # Errors
    /// As [`Transaction::create_table_with`] and [`Transaction::commit`].
    pub fn create_table_with(&self, name: &str, schema: Schema, settings: TableSettings) -> Result<Table> {
        self.alone(|transaction| transaction.create_table_with(name, schema, settings))
    }

    /// Removes a table, once the transactions that have written to it are over. Those that read it go on with what
    /// they see, and so do snapshots from before as long as its retention keeps them; it can no longer be written
    /// to.
    ///
    /// # Errors
    /// As [`Transaction::drop_table`] and [`Transaction::commit`].
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.alone(|transaction| transaction.drop_table(name))
    }

    /// Removes all rows of a table at once, by putting an empty table in its place; waits as [`Database::drop_table`] does.
    /// Handles of the old table can still read it, but not write to it.
    ///
    /// # Errors
    /// As [`Transaction::truncate_table`] and [`Transaction::commit`].
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        self.alone(|transaction| transaction.truncate_table(name))
    }

    /// Gives a table another name; waits as [`Database::drop_table`] does.
    ///
    /// # Errors
    /// As [`Transaction::rename_table`] and [`Transaction::commit`].
    pub fn rename_table(&self, name: &str, to: &str) -> Result<()> {
        self.alone(|transaction| transaction.rename_table(name, to))
    }

    /// Changes how long the old versions of a table are kept, and of those that are gone and had its name. Versions
    /// that a shorter retention gives up are gone for good.
    ///
    /// # Errors
    /// As [`Transaction::set_retention`] and [`Transaction::commit`].
    pub fn set_retention(&self, name: &str, retention: Retention) -> Result<()> {
        self.alone(|transaction| transaction.set_retention(name, retention))
    }

    /// The table of this name.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if there is no such table.
    pub fn table(&self, name: &str) -> Result<Table> {
        let core = &self.shared.core;
        let found = core.catalog.find(&core.transactions, Snapshot::at(Timestamp::MAX), name);
        let handle = |data| Table { database: self.clone(), data };
        found.map(handle).ok_or_else(|| Error::NoSuchTable(name.into()))
    }

    /// The names of all tables, sorted.
    pub fn table_names(&self) -> Vec<String> {
        self.names(TableData::is_plain)
    }

    pub(super) fn names(&self, of: impl Fn(&TableData) -> bool) -> Vec<String> {
        let core = &self.shared.core;
        core.catalog.names(&core.transactions, Snapshot::at(Timestamp::MAX), of)
    }

    pub(super) fn alone<T>(&self, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        let mut transaction = self.begin_with(TransactionOptions::at(Isolation::ReadCommitted))?;
        let done = work(&mut transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}
