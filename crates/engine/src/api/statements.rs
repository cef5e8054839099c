//! Changes of the catalog as one statement each, in a transaction of its own that has committed when the call returns.
use std::collections::BTreeMap;

use types::{Schema, Snapshot, Timestamp};

use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::keys::data::Index;
use crate::keys::definition::IndexDefinition;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::isolation::{Isolation, TransactionOptions};
use crate::terms::sequence_options::SequenceOptions;
use crate::terms::settings::{Retention, TableSettings};
use crate::transaction::Transaction;
use crate::transaction::sequence::Sequence;

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
        let handle = |data| Table::of(self.clone(), data);
        found.map(handle).ok_or_else(|| Error::NoSuchTable(name.into()))
    }

    /// The names of all tables, sorted.
    pub fn table_names(&self) -> Vec<String> {
        self.names(TableData::is_plain)
    }

    /// Makes a sequence.
    ///
    /// # Errors
    /// As [`Transaction::create_sequence`] and [`Transaction::commit`].
    pub fn create_sequence(&self, name: &str, options: SequenceOptions) -> Result<()> {
        self.alone(|transaction| transaction.create_sequence(name, options))
    }

    /// Removes a sequence.
    ///
    /// # Errors
    /// As [`Transaction::drop_sequence`] and [`Transaction::commit`].
    pub fn drop_sequence(&self, name: &str) -> Result<()> {
        self.alone(|transaction| transaction.drop_sequence(name))
    }

    /// The sequence of this name.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if there is no such sequence; [`Error::WrongKind`] if it is a table.
    pub fn sequence(&self, name: &str) -> Result<Sequence> {
        let wrong_kind = || Error::WrongKind { name: name.into(), expected: "sequence" };
        self.table(name)?.sequence().ok_or_else(wrong_kind)
    }

    /// The names of all sequences, sorted.
    pub fn sequence_names(&self) -> Vec<String> {
        self.names(TableData::is_sequence)
    }

    /// Makes an index of a table, in a transaction of its own; waits for transactions that write to the table now.
    ///
    /// # Errors
    /// As [`Transaction::create_index`] and [`Transaction::commit`].
    pub fn create_index(&self, table: &str, definition: IndexDefinition) -> Result<Index> {
        self.alone(|transaction| transaction.create_index(table, definition))
    }

    /// Removes an index.
    ///
    /// # Errors
    /// As [`Transaction::drop_index`] and [`Transaction::commit`].
    pub fn drop_index(&self, name: &str) -> Result<()> {
        self.alone(|transaction| transaction.drop_index(name))
    }

    /// The texts that the database remembers, as of the newest commit.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`] if as many run as there may be; [`Error::Page`] if an evicted page cannot be
    /// read back.
    pub fn remembered(&self) -> Result<BTreeMap<String, String>> {
        self.begin()?.remembered()
    }

    fn names(&self, of: impl Fn(&TableData) -> bool) -> Vec<String> {
        let core = &self.shared.core;
        core.catalog.names(&core.transactions, Snapshot::at(Timestamp::MAX), of)
    }

    fn alone<T>(&self, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        let mut transaction = self.begin_with(TransactionOptions::at(Isolation::ReadCommitted))?;
        let done = work(&mut transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}
