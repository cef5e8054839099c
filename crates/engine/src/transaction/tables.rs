//! The tables that a transaction writes to, and those that it has for itself.
//!
//! Before its first write to a table a transaction notes that it uses it, until it ends; notes of a part that was
//! rolled back stay. A transaction that wants a table for itself sets the table's lock, so that no other begins to
//! write, and waits until the running writers have ended (`table_lock.rs`, `txn::TransactionTable::enter_table`).
//! Waits of both kinds are waits for transactions like those for rows: deadlocks are found, and the lock timeout
//! and interrupts end them. Readers take no part.
use std::sync::Arc;

use txn::RowName;
use types::{Snapshot, Timestamp, TxnId};

use super::{CatalogStep, Transaction};
use crate::database::handle::Anchor;
use crate::error::{Error, Result};
use crate::state::catalog::row_of_table;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::table::seen::SeenTables;
use crate::terms::isolation::{Isolation, LockWait};
use crate::terms::table_lock::Standing;
use crate::terms::table_modes::TableMode;

impl Transaction {
    /// The snapshot by which the transaction looks names up: with its own changes, and under READ COMMITTED with every commit
    /// so far, also later ones.
    pub fn catalog_snapshot(&self) -> Snapshot {
        self.sight()
    }

    /// Lets the transaction write to a table, which stays until its end.
    #[inline(never)]
    pub(super) fn begin_to_write(&mut self, table: &Table) -> Result<()> {
        self.check_readable(table)?;
        self.check_read_write()?;
        table.data.check_takes_rows()?;
        self.enter(&table.data)
    }

    /// As [`table_to_write`](Self::table_to_write), without the latch of the names where the caller has found the table before, and no
    /// name was about to be changed since.
    ///
    /// # Errors
    /// As [`table_to_write`](Self::table_to_write).
    pub fn seen_to_write<'s>(&mut self, seen: &'s mut SeenTables, name: &str) -> Result<&'s Table> {
        let turn = self.anchor.core.catalog.turn();
        // What a serializable transaction asks for is noted.
        if let Some(place) = seen.find(&self.anchor, self.sight(), name).filter(|_| self.reads.is_none()) {
            match self.begin_to_write(seen.at(place)) {
                // It may have waited for one that changed what the name means.
                Ok(()) if self.anchor.core.catalog.turn() == turn => return Ok(seen.at(place)),
                Ok(()) | Err(Error::NoSuchTable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(seen.keep(name, self.table_to_write(name)?))
    }

    #[inline]
    pub(super) fn check_read_write(&self) -> Result<()> {
        if self.options.read_only { Err(Error::ReadOnlyTransaction) } else { Ok(()) }
    }

    /// Waits for a transaction that has the table for itself, and keeps the table from others that want that.
    pub(crate) fn enter(&mut self, data: &Arc<TableData>) -> Result<()> {
        if data.array.is_some() {
            return self.enter_array(data);
        }
        match self.has_entered(data) {
            true => self.check_there(data)?,
            false => self.enter_first(data)?,
        }
        self.writable = Arc::as_ptr(data).addr();
        self.saw_catalog();
        Ok(())
    }

    #[inline]
    fn enter_first(&mut self, data: &Arc<TableData>) -> Result<()> {
        data.fill_indexes()?;
        loop {
            let handle = self.handle.as_mut().expect("the transaction has not ended");
            self.anchor.core.transactions.0.enter_table(handle, data.id);
            match data.lock.standing() {
                Standing::Open if data.modes.other(handle.id(), TableMode::RowExclusive).is_some() => {
                    self.anchor.core.transactions.0.leave_table(handle, data.id);
                    self.await_modes(data, TableMode::RowExclusive)?;
                }
                Standing::Open => break,
                Standing::Locked(owner) if owner == handle.id() => break self.check_there(data)?,
                // It waits for this one.
                Standing::Locked(_) if data.modes.has(handle.id()) => break,
                Standing::Locked(_) | Standing::Gone(_) => {
                    self.anchor.core.transactions.0.leave_table(handle, data.id);
                    self.await_owner(data)?;
                }
            }
        }
        self.tables.push(self.anchor.hold(data));
        debug_assert!(self.has_entered(data), "another table is held than the one that is written to");
        Ok(())
    }

    /// Whether the transaction has noted a table as one that it writes to.
    #[inline]
    pub(super) fn has_entered(&self, data: &Arc<TableData>) -> bool {
        self.tables.iter().any(|known| Arc::ptr_eq(known, data))
    }

    /// Refuses a table that was dropped or replaced, by this transaction or by another.
    pub(super) fn check_there(&self, data: &Arc<TableData>) -> Result<()> {
        let gone = match data.lock.standing() {
            Standing::Gone(at) => at,
            Standing::Locked(owner) if owner == self.id() && self.has_dropped(data) => Timestamp::ZERO,
            // A transaction that has locked it waits for this one.
            Standing::Open | Standing::Locked(_) => return Ok(()),
        };
        match self.options.isolation {
            Isolation::Snapshot | Isolation::Serializable if gone > self.at => {
                Err(self.lose(Error::TableChanged(data.name.to_string())))
            }
            _ => Err(Error::NoSuchTable(data.name.to_string())),
        }
    }

    /// Waits until no other transaction has the table for itself.
    #[cold]
    fn await_owner(&self, data: &Arc<TableData>) -> Result<()> {
        let (transactions, deadline) = (&self.transactions().0, self.lock_deadline());
        while let Standing::Locked(owner) = data.lock.standing() {
            let is_held = || data.lock.standing() == Standing::Locked(owner);
            let row = row_of_table(data);
            let waited = transactions.wait_part(self.handle(), owner, row, &is_held, deadline, self.part);
            waited.map_err(|error| self.wait_failed(error))?;
            // It has ended, and is about to tell what becomes of the table.
            std::thread::yield_now();
        }
        self.check_there(data)
    }

    /// Gets a table for this transaction alone.
    pub(super) fn lock_whole(&mut self, data: &Arc<TableData>) -> Result<()> {
        let is_held = |_: &Anchor, owner| data.lock.standing() == Standing::Locked(owner);
        self.when_granted(row_of_table(data), &is_held, &mut |transaction| {
            let own = transaction.id();
            loop {
                match data.lock.lock(own) {
                    Ok(()) => transaction.note_step(CatalogStep::Locked(data.clone())),
                    Err(Standing::Locked(owner)) if owner == own => {}
                    Err(Standing::Locked(owner)) => return Ok(Some(owner)),
                    Err(Standing::Gone(_)) => return Err(Error::NoSuchTable(data.name.to_string())),
                    Err(Standing::Open) => continue,
                }
                return Ok(None);
            }
        })?;
        self.await_users(data, LockWait::Block)?;
        self.await_modes(data, TableMode::AccessExclusive)?;
        debug_assert_eq!(
            data.lock.standing(),
            Standing::Locked(self.id()),
            "invariant 4: others could write to the table"
        );
        Ok(())
    }

    /// Tries until no other transaction has what is wanted, waiting in its queue in between. An attempt returns the
    /// transaction that has it.
    pub(super) fn when_granted(
        &mut self,
        wanted: RowName,
        is_held: &dyn Fn(&Anchor, TxnId) -> bool,
        attempt: &mut dyn FnMut(&mut Transaction) -> Result<Option<TxnId>>,
    ) -> Result<()> {
        let Some(mut owner) = attempt(self)? else { return Ok(()) };
        let (anchor, deadline) = (self.anchor.clone(), self.lock_deadline());
        let mut place = anchor.core.transactions.0.queue(self.handle(), wanted);
        loop {
            let is_held = || is_held(&anchor, owner);
            place.wait(owner, &is_held, deadline).map_err(|error| self.wait_failed(error))?;
            match attempt(self)? {
                None => return Ok(()),
                // It has ended, and is about to give up what it had.
                Some(same) if same == owner => std::thread::yield_now(),
                Some(other) => owner = other,
            }
        }
    }
}
