//! Making, dropping and changing tables within a transaction.
//!
//! All of it takes effect for others at the commit, together with the rows that the transaction wrote, and not at all if it is
//! rolled back; the transaction itself sees it at once ([`Transaction::table`]), and a savepoint takes it back. It goes to
//! the log as a part of the transaction's redo, so that a crash leaves either all of it or nothing.
//!
//! **Names.** A statement first claims the names that it touches, until the transaction ends or the statement is
//! rolled back. Another transaction that wants to make, drop, empty, rename or set a table of that name waits, at
//! every isolation level, and then goes on from what the name means by then, or fails as it would have without
//! waiting: of two transactions that make a table of one name the second one is told that it exists, unless the
//! first one rolls back.
//!
//! **Tables.** Dropping, emptying and renaming a table, and [`Transaction::lock_table`], take it for the
//! transaction alone, like PostgreSQL's ACCESS EXCLUSIVE: they wait for every running transaction that has written
//! to the table or locked a row of it, and a transaction that wants to do so afterwards waits for them, at every
//! isolation level. Then it goes on, or the table is gone ([`Error::NoSuchTable`]); or, for a transaction with a
//! snapshot that still has the table, it is a conflict like any other. [`Transaction::table_to_write`] spares that
//! to a transaction that writes by name.
//!
//! **Readers** neither wait nor are waited for, unlike in PostgreSQL: those that see the table go on reading what
//! they see. Its data is freed when no snapshot in use sees it, its retention does not keep its past, and no handle
//! is left. Above READ COMMITTED a transaction sees the catalog of its snapshot (`catalog.rs`), with its own
//! changes: a table made later is not there, one that was dropped later still is, one that was emptied later is
//! full. To change what others have changed since the snapshot is a conflict. A serializable transaction that has
//! read a table, or asked what a name means, can't commit after a commit that took the table away or gave the name
//! another meaning; a list of all names is not looked at again.
//!
//! Settings take effect for the background work at the commit; they keep no writer out.
use std::sync::Arc;

use txn::TransactionState;
use types::{Schema, Snapshot, Timestamp};

use super::Transaction;
use super::indexes::publish_indexes;
use super::notes::CatalogStep;
use crate::database::handle::Anchor;
use crate::disk::redo;
use crate::error::{Error, Result};
use crate::state::catalog::{Intent, row_of_name};
use crate::state::rules::Rules;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::column_default::ColumnDefault;
use crate::terms::constraints::Check;
use crate::terms::settings::{Retention, TableSettings};
use crate::terms::table_lock::{Standing, TableLock};
use crate::terms::table_name::{is_hidden, is_temporary};

/// The table that a name means now and in the transaction's snapshot.
struct Meanings {
    now: Option<Arc<TableData>>,
    seen: Option<Arc<TableData>>,
}

impl Transaction {
    /// The table of this name as the transaction sees the catalog: under READ COMMITTED with every commit so far, else that
    /// of its snapshot; with its own changes.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if the transaction sees no such table.
    pub fn table(&self, name: &str) -> Result<Table> {
        let found = self.anchor.core.catalog.find(self.transactions(), self.sight(), name);
        // No other transaction can change the meaning of a name that this one has claimed.
        if let Some(reads) = self.reads()
            && !self.anchor.core.catalog.is_claimed_by(name, self.id())
        {
            reads.note_name(name, found.as_ref().map(|data| data.id));
        }
        found.map(|data| self.table_of(data).found_as(name, self.id())).ok_or_else(|| Error::NoSuchTable(name.into()))
    }

    /// The table of this name for writing to it, or for locking its rows: waits for a transaction that has it for
    /// itself, and keeps it there until this transaction ends.
    ///
    /// # Errors
    /// [`Error::TableChanged`] if the snapshot's table was dropped or replaced meanwhile; READ COMMITTED goes on with the
    /// new one.
    pub fn table_to_write(&mut self, name: &str) -> Result<Table> {
        self.check_read_write()?;
        loop {
            let table = self.table(name)?;
            table.data.check_takes_rows()?;
            match self.enter(&table.data) {
                Ok(()) if Arc::ptr_eq(&self.table(name)?.data, &table.data) => return Ok(table),
                Err(Error::NoSuchTable(_)) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The names of the tables that the transaction sees, sorted.
    pub fn table_names(&self) -> Vec<String> {
        self.names(TableData::is_plain)
    }

    pub(super) fn names(&self, of: impl Fn(&TableData) -> bool) -> Vec<String> {
        self.anchor.core.catalog.names(self.transactions(), self.sight(), of)
    }

    /// Whether names may mean something else to this transaction than to others.
    pub fn has_changed_catalog(&self) -> bool {
        self.steps().iter().any(|step| !matches!(step, CatalogStep::Locked(_) | CatalogStep::InMode(..)))
    }

    /// The settings of a table, with this transaction's changes.
    pub fn settings(&self, table: &Table) -> TableSettings {
        self.settings_of(&table.data)
    }

    /// Makes a table.
    ///
    /// # Errors
    /// As [`create_table_with`](Self::create_table_with).
    pub fn create_table(&mut self, name: &str, schema: Schema) -> Result<Table> {
        self.create_table_with(name, schema, TableSettings::default())
    }

    /// Makes a table with settings of its own.
    ///
    /// # Errors
    /// - [`Error::TableExists`] or [`Error::IndexExists`] if the name is taken; [`Error::TableChanged`] if it was
    ///   free only for the transaction's snapshot.
    /// - [`Error::BadSchema`] if the columns make no table; [`Error::OutOfMemory`] at the memory limit.
    /// - [`Error::ReadOnlyTransaction`]; [`Error::Log`]; those of a wait.
    pub fn create_table_with(&mut self, name: &str, schema: Schema, settings: TableSettings) -> Result<Table> {
        let settings = TableSettings { sequence: None, view: None, ..settings };
        self.change_catalog(|transaction| {
            transaction.claim_free(name)?;
            let data = transaction.make(name, schema, settings)?;
            Ok(transaction.table_of(data))
        })
    }

    /// Removes a table. Snapshots from before go on reading it, also those that are taken later, as long as its retention keeps
    /// them.
    ///
    /// # Errors
    /// - [`Error::NoSuchTable`] if the transaction sees no such table; [`Error::WrongKind`] if it is a sequence or a view.
    /// - [`Error::TableReferenced`] if another table refers to it.
    /// - [`Error::TableChanged`] if others have changed the meaning of the name since the transaction's snapshot.
    /// - [`Error::ReadOnlyTransaction`]; [`Error::Log`] if the redo cannot be passed on; those of a wait.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        self.change_catalog(|transaction| {
            let data = transaction.claim_plain(name)?;
            transaction.leave_references(name)?;
            transaction.drop_claimed(name, data)
        })
    }

    pub(super) fn drop_claimed(&mut self, name: &str, data: Arc<TableData>) -> Result<()> {
        self.lock_whole(&data)?;
        self.intend(name, Intent::Nothing);
        self.remove(data)
    }

    /// Removes all rows of a table at once, by putting an empty table in its place. Of the old one the rest is as with
    /// [`Transaction::drop_table`].
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table); [`Error::OutOfMemory`] at the memory limit.
    pub fn truncate_table(&mut self, name: &str) -> Result<()> {
        self.change_catalog(|transaction| {
            let old = transaction.claim_plain(name)?;
            transaction.lock_whole(&old)?;
            let (schema, settings) = (old.schema().clone(), transaction.settings_of(&old));
            let new = transaction.make(name, schema, settings)?;
            transaction.copy_indexes(&old, &new)?;
            transaction.remove(old)
        })
    }

    /// Puts an empty table of other columns in the place of one that is there, without its indexes. What the old one has can be
    /// read through its handles; of it the rest is as with [`Transaction::drop_table`].
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table); [`Error::BadSchema`] if the columns make no table; [`Error::OutOfMemory`] at the
    /// memory limit.
    pub fn replace_table(&mut self, name: &str, schema: Schema, settings: TableSettings) -> Result<Table> {
        let settings = TableSettings { sequence: None, view: None, ..settings };
        debug_assert!(
            settings.defaults.iter().all(|default| default.column < schema.columns().len()),
            "a default of no column of \"{name}\""
        );
        self.change_catalog(|transaction| {
            let old = transaction.claim_plain(name)?;
            transaction.lock_whole(&old)?;
            let new = transaction.make_in_place(&old, name, schema, settings)?;
            debug_assert!(new.indexes.all().is_empty(), "indexes of columns that \"{name}\" may not have");
            transaction.remove(old)?;
            Ok(transaction.table_of(new))
        })
    }

    /// Gives a table another name. Handles of the table tell it once this has committed.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table), but no [`Error::WrongKind`]; [`Error::TableExists`] or
    /// [`Error::IndexExists`] if the new name is taken.
    pub fn rename_table(&mut self, name: &str, to: &str) -> Result<()> {
        self.change_catalog(|transaction| {
            let data = transaction.claim_table(name)?;
            transaction.claim_free(to)?;
            debug_assert_eq!(data.is_temporary, is_temporary(to), "the log would have only a part of \"{name}\"");
            transaction.lock_whole(&data)?;
            if !data.is_sequence() {
                transaction.rename_in_references(name, to)?;
            }
            transaction.intend(name, Intent::Nothing);
            transaction.intend(to, Intent::Table(data.clone()));
            transaction.note_step(CatalogStep::Renamed(data.clone(), to.into()));
            transaction.log_catalog(&data, |redo| redo::put_rename(redo, data.id, to))
        })
    }

    /// Changes how long the old versions of a table are kept, and of those that are gone and had its name. Versions
    /// that a shorter retention gives up are gone for good once this has committed.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table).
    pub fn set_retention(&mut self, name: &str, retention: Retention) -> Result<()> {
        self.change_settings(name, |settings| settings.retention = retention)
    }

    /// Changes what fills the columns of a table that a statement gives no value for. The engine itself never fills a
    /// column.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table).
    pub fn set_defaults(&mut self, name: &str, defaults: Vec<ColumnDefault>) -> Result<()> {
        self.change_settings(name, |settings| settings.defaults = defaults)
    }

    /// Changes the conditions that the rows of a table must meet. Whether the rows that are there meet a new one is for the caller to
    /// look at, which locks the table first ([`lock_table`](Self::lock_table)), so that no other transaction writes a row meanwhile that
    /// does not.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table).
    pub fn set_checks(&mut self, name: &str, checks: Vec<Check>) -> Result<()> {
        self.change_settings(name, |settings| settings.checks = checks)
    }

    /// Names the primary key of a table; `None` for the name that is made of the table's.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table).
    pub fn set_key_name(&mut self, name: &str, key_name: Option<String>) -> Result<()> {
        self.change_settings(name, |settings| settings.key_name = key_name)
    }

    pub(super) fn change_settings(&mut self, name: &str, change: impl FnOnce(&mut TableSettings)) -> Result<()> {
        self.change_catalog(|transaction| {
            let data = transaction.claim_plain(name)?;
            let mut settings = transaction.settings_of(&data);
            change(&mut settings);
            debug_assert!(
                settings.defaults.iter().all(|default| default.column < data.schema().columns().len()),
                "a default of no column of \"{name}\""
            );
            transaction.log_catalog(&data, |redo| redo::put_settings(redo, data.id, &settings))?;
            let rules = Arc::new(Rules::of(&settings));
            transaction.note_step(CatalogStep::Set(data, Box::new(settings), rules));
            Ok(())
        })
    }

    /// Keeps all other transactions from claiming a name, or giving it to a table, until this one ends: what is made in a schema and
    /// what drops the schema wait for each other so.
    ///
    /// # Errors
    /// [`Error::ReadOnlyTransaction`]; those of a wait.
    pub fn claim_name(&mut self, name: &str) -> Result<()> {
        self.change_catalog(|transaction| transaction.claim(name))
    }

    /// Does one statement, of which nothing stays if it fails.
    pub(super) fn change_catalog<T>(&mut self, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        self.check_read_write()?;
        // The next write looks again whether its table is still there.
        self.writable = 0;
        self.whole(work)
    }

    /// Claims a name that is to mean nothing yet.
    pub(super) fn claim_free(&mut self, name: &str) -> Result<()> {
        self.claim(name)?;
        self.check_no_index(name)?;
        match self.meanings(name) {
            Meanings { now: Some(_), .. } => Err(Error::TableExists(name.into())),
            Meanings { seen: Some(_), .. } => Err(self.lose(Error::TableChanged(name.into()))),
            Meanings { now: None, seen: None } => Ok(()),
        }
    }

    /// Claims the name of a table that is no sequence and no view.
    pub(super) fn claim_plain(&mut self, name: &str) -> Result<Arc<TableData>> {
        let data = self.claim_table(name)?;
        match data.is_sequence() || data.is_view() {
            true => Err(Error::WrongKind { name: name.into(), expected: "table" }),
            false => Ok(data),
        }
    }

    /// Claims the name of a table, sequence or view.
    pub(super) fn claim_table(&mut self, name: &str) -> Result<Arc<TableData>> {
        self.claim(name)?;
        let Meanings { now, seen } = self.meanings(name);
        let seen = seen.ok_or_else(|| Error::NoSuchTable(name.into()))?;
        match now {
            Some(now) if Arc::ptr_eq(&now, &seen) => {
                debug_assert!(!self.has_dropped(&now), "\"{name}\" means what the transaction has dropped");
                Ok(now)
            }
            _ => Err(self.lose(Error::TableChanged(name.into()))),
        }
    }

    /// Keeps others from changing what a name means; waits for a transaction that is changing it.
    pub(super) fn claim(&mut self, name: &str) -> Result<()> {
        let is_held = |anchor: &Anchor, owner| anchor.core.catalog.is_claimed_by(name, owner);
        self.when_granted(row_of_name(name), &is_held, &mut |transaction| {
            match transaction.anchor.core.catalog.claim(name, transaction.id()) {
                Err(owner) => return Ok(Some(owner)),
                Ok(true) => transaction.note_step(CatalogStep::Claimed(name.into())),
                Ok(false) => {}
            }
            Ok(None)
        })?;
        debug_assert!(self.anchor.core.catalog.is_claimed_by(name, self.id()), "\"{name}\" is another transaction's");
        Ok(())
    }

    fn meanings(&self, name: &str) -> Meanings {
        let find = |seen| self.anchor.core.catalog.find(self.transactions(), seen, name);
        let now = Snapshot::of_transaction(Timestamp::MAX, self.id());
        Meanings { now: find(now), seen: find(self.sight()) }
    }

    /// The catalog that the transaction sees.
    pub(crate) fn sight(&self) -> Snapshot {
        Snapshot::of_transaction(self.newest_allowed(), self.id())
    }

    pub(super) fn table_of(&self, data: Arc<TableData>) -> Table {
        Table::of(self.anchor.database(), data)
    }

    fn settings_of(&self, data: &Arc<TableData>) -> TableSettings {
        let set = self.steps().iter().rev().find_map(|step| match step {
            CatalogStep::Set(table, settings, _) if Arc::ptr_eq(table, data) => Some((**settings).clone()),
            _ => None,
        });
        set.unwrap_or_else(|| data.settings())
    }

    /// Whether this transaction has dropped a table.
    pub(super) fn has_dropped(&self, data: &Arc<TableData>) -> bool {
        self.steps().iter().any(|step| matches!(step, CatalogStep::Dropped(table) if Arc::ptr_eq(table, data)))
    }

    /// Makes a table, which is this transaction's alone, under a name that it has claimed.
    pub(super) fn make(&mut self, name: &str, schema: Schema, settings: TableSettings) -> Result<Arc<TableData>> {
        if !is_hidden(name) {
            self.anchor.check_memory()?;
        }
        let core = &self.anchor.core;
        let mut data =
            TableData::new(core.catalog.next_id(), name, schema, settings.clone(), core.table_options, &core.budget)?;
        data.lock = TableLock::of(self.id());
        let data = Arc::new(data);
        self.note_step(CatalogStep::Made(data.clone()));
        self.intend(name, Intent::Table(data.clone()));
        debug_assert_eq!(
            data.lock.standing(),
            Standing::Locked(self.id()),
            "invariant 4: others could write to the table"
        );
        self.log_catalog(&data, |redo| redo::put_create(redo, data.id, name, data.schema(), &settings))?;
        Ok(data)
    }

    pub(super) fn remove(&mut self, data: Arc<TableData>) -> Result<()> {
        debug_assert_eq!(
            data.lock.standing(),
            Standing::Locked(self.id()),
            "invariant 3: others could write to what goes"
        );
        self.log_catalog(&data, |redo| redo::put_drop(redo, data.id))?;
        self.note_step(CatalogStep::Dropped(data));
        Ok(())
    }

    fn intend(&mut self, name: &str, intent: Intent) {
        debug_assert!(self.anchor.core.catalog.is_claimed_by(name, self.id()), "\"{name}\" was not claimed");
        let before = self.anchor.core.catalog.intend(name, intent);
        self.note_step(CatalogStep::Intended(name.into(), before));
    }

    pub(super) fn steps(&self) -> &[CatalogStep] {
        self.catalog.as_ref().map_or(&[], |changes| &changes.steps)
    }

    pub(super) fn note_step(&mut self, step: CatalogStep) {
        self.catalog.get_or_insert_default().steps.push(step);
    }

    /// Undoes what was done to the catalog from this step on, newest first.
    pub(super) fn take_catalog_back(&mut self, from: usize) {
        let own = self.handle.as_ref().map(|handle| handle.id());
        let (Some(changes), Some(own)) = (&mut self.catalog, own) else { return };
        debug_assert!(from <= changes.steps.len(), "{from} steps of {} were taken", changes.steps.len());
        let catalog = &self.anchor.core.catalog;
        for step in changes.steps.drain(from..).rev() {
            match step {
                CatalogStep::Claimed(name) => catalog.unclaim(&name),
                CatalogStep::Intended(name, before) => drop(catalog.intend(&name, before)),
                CatalogStep::Locked(table) => table.lock.unlock(),
                CatalogStep::InMode(table, mode) => table.modes.leave(own, mode),
                CatalogStep::Made(table) => table.lock.never_was(),
                CatalogStep::IndexMade(table, index) => {
                    index.standing.never_was();
                    table.indexes.remove(&index);
                }
                CatalogStep::Dropped(_)
                | CatalogStep::Renamed(..)
                | CatalogStep::Set(..)
                | CatalogStep::IndexDropped(..) => {}
            }
        }
        self.writable = 0;
        self.catalog.take_if(|changes| changes.steps.is_empty());
    }

    /// Tidies up after the commit at `at`, by which everything took effect.
    #[inline]
    pub(super) fn publish_catalog(&mut self, at: Timestamp) {
        if self.catalog.is_some() && !self.unlock_only() {
            self.publish_steps(at);
        }
    }

    #[cold]
    fn publish_steps(&mut self, at: Timestamp) {
        let core = &self.anchor.core;
        debug_assert_eq!(
            core.transactions.0.state(self.id()),
            TransactionState::Committed(at),
            "invariant 4: names change for others by the commit alone"
        );
        for step in self.steps() {
            match step {
                CatalogStep::Set(table, settings, _) => {
                    table.set_settings((**settings).clone());
                    core.catalog.set_former(table);
                }
                CatalogStep::Renamed(table, name) => table.name.set(name),
                _ => {}
            }
        }
        publish_indexes(self.steps(), at);
        let claimed = self.steps().iter().filter_map(|step| match step {
            CatalogStep::Claimed(name) => Some(name.as_str()),
            _ => None,
        });
        core.catalog.publish(claimed, at);
        for step in self.steps() {
            match step {
                CatalogStep::Locked(table) | CatalogStep::Made(table) if self.has_dropped(table) => {
                    table.lock.retire(at);
                    self.anchor.let_go();
                }
                CatalogStep::Locked(table) | CatalogStep::Made(table) => table.lock.unlock(),
                CatalogStep::InMode(table, mode) => table.modes.leave(self.id(), *mode),
                _ => {}
            }
        }
        debug_assert!(
            self.steps().iter().all(|step| match step {
                CatalogStep::Locked(table) | CatalogStep::Made(table) =>
                    table.lock.standing() != Standing::Locked(self.id()),
                _ => true,
            }),
            "a lock of a table outlives its transaction"
        );
        core.catalog.forget_past(&core.transactions, &core.clock);
        self.catalog = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use types::{Column, DataType, Schema};

    use crate::state::table_data::TableData;
    use crate::{Database, Isolation, Retention, TableSettings, TransactionOptions};

    fn schema() -> Schema {
        Schema::new(vec![Column::new("id", DataType::BigInt)], &["id"]).unwrap()
    }

    /// A database with a table that keeps nothing.
    fn database() -> Database {
        let db = Database::in_memory();
        let settings = TableSettings { retention: Retention::None, ..TableSettings::default() };
        db.create_table_with("t", schema(), settings).unwrap();
        db
    }

    fn data_of(db: &Database, name: &str) -> Weak<TableData> {
        Arc::downgrade(&db.table(name).unwrap().data)
    }

    #[test]
    fn a_dropped_table_is_freed_after_the_last_snapshot_and_the_last_handle() {
        let db = database();
        let handle = db.table("t").unwrap();
        let data = data_of(&db, "t");
        let transaction = db.begin().unwrap();
        let latest = db.begin_with(TransactionOptions::at(Isolation::ReadCommitted)).unwrap();
        db.drop_table("t").unwrap();
        assert!(transaction.table("t").is_ok() && latest.table("t").is_err());
        drop(transaction);
        let (catalog, transactions) = (&db.shared.core.catalog, &db.shared.core.transactions);
        catalog.forget_past(transactions, &db.shared.core.clock);
        assert_eq!(data.strong_count(), 1, "the handle holds it");
        drop(handle);
        assert_eq!(data.strong_count(), 0);
    }

    #[test]
    fn the_background_frees_what_the_last_snapshot_saw() {
        let db = database();
        let (data, transaction) = (data_of(&db, "t"), db.begin().unwrap());
        db.truncate_table("t").unwrap();
        assert_eq!(data.strong_count(), 1);
        drop(transaction);
        let started = std::time::Instant::now();
        while data.strong_count() > 0 {
            assert!(started.elapsed().as_secs() < 60, "nobody frees it");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Between the instant of a commit and its publication, and before that while it is not decided yet.
    #[test]
    fn a_change_counts_for_snapshots_from_its_commit_on_before_it_is_published() {
        let db = Database::in_memory();
        db.create_table("t", schema()).unwrap();
        let early = db.begin().unwrap();
        let mut changer = db.begin().unwrap();
        changer.truncate_table("t").unwrap();
        let new = changer.create_table("u", schema()).unwrap();
        let table = &changer.transactions().0;
        table.start_commit(changer.handle());
        let at = table.next_timestamp();
        table.prepare(changer.handle(), at);
        let late = db.begin().unwrap();
        assert_eq!(early.table_names(), ["t"]);
        std::thread::scope(|scope| {
            let looking = scope.spawn(move || (late.table_names(), late));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!looking.is_finished(), "it is not decided");
            table.finish_commit(changer.handle(), at);
            let (names, late) = looking.join().unwrap();
            assert_eq!((names, db.table_names()), (vec!["t".into(), "u".into()], vec!["t".into(), "u".into()]));
            let id = |table: crate::Result<crate::Table>| table.ok().map(|table| table.data.id);
            assert_eq!((id(early.table("u")), id(late.table("u"))), (None, Some(new.data.id)));
            assert!(id(early.table("t")) != id(late.table("t")) && id(late.table("t")) == id(db.table("t")));
        });
        changer.stamp(at);
        changer.leave();
        assert_eq!((early.table_names().len(), db.table_names().len()), (1, 2));
    }

    #[test]
    fn a_table_whose_making_is_rolled_back_leaves_nothing() {
        let db = Database::in_memory();
        let before = db.shared.core.budget.used_bytes();
        let mut transaction = db.begin().unwrap();
        let made = transaction.create_table("t", schema()).unwrap();
        transaction.insert(&made, &[1i64.into()]).unwrap();
        let data = Arc::downgrade(&made.data);
        drop(made);
        assert!(db.shared.core.budget.used_bytes() > before);
        transaction.rollback();
        assert_eq!((data.strong_count(), db.shared.core.budget.used_bytes()), (0, before));
        db.create_table("t", schema()).unwrap();
    }
}
