//! Locks of whole tables in a mode, as `LOCK TABLE` asks for them (`terms/table_modes.rs`).
//!
//! ```text
//! enter the list ──▶ no transaction with the table for itself ──▶ writers end, if the mode keeps them off ──▶ granted
//! ```
//!
//! A transaction that changes a table's definition has the table for itself (`tables.rs`) and waits for all modes of others; one that
//! asks for a mode waits for it. Each of the two enters first and then looks, so that one of them sees the other. A transaction that
//! is inside already, as a writer or in a mode, does not wait for those that wait for it.
use std::sync::Arc;

use types::TxnId;

use super::{CatalogStep, Transaction};
use crate::database::handle::Anchor;
use crate::error::{Error, Result};
use crate::state::catalog::row_of_table;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::isolation::{Isolation, LockWait};
use crate::terms::table_lock::Standing;
use crate::terms::table_modes::TableMode;

impl Transaction {
    /// Locks a table in a mode until the transaction ends or rolls back to an earlier savepoint. Reading takes no part in it.
    ///
    /// # Errors
    /// - [`Error::TableNotAvailable`] if another transaction is in the way, and `wait` says not to wait.
    /// - [`Error::NoSuchTable`] if the transaction sees no such table; [`Error::TableChanged`] if the snapshot's table was dropped or
    ///   replaced; those of a wait.
    pub fn lock_table_in(&mut self, name: &str, mode: TableMode, wait: LockWait) -> Result<Table> {
        loop {
            let table = self.table(name)?;
            match self.whole(|transaction| transaction.lock_in(&table.data, mode, wait)) {
                Ok(()) if Arc::ptr_eq(&self.table(name)?.data, &table.data) => return Ok(table),
                Err(Error::NoSuchTable(_)) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps all other transactions from writing to a table until this one ends.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table), but no [`Error::WrongKind`].
    pub fn lock_table(&mut self, name: &str) -> Result<()> {
        self.change_catalog(|transaction| {
            let data = transaction.claim_table(name)?;
            transaction.lock_whole(&data)
        })
    }

    /// Has what the transaction reads next be all that is committed by now, at every level. For a transaction that has read and
    /// written nothing so far.
    pub fn renew_snapshot(&mut self) {
        debug_assert!(self.tables.is_empty() && self.written.is_empty(), "it has written by the snapshot before");
        // Under READ COMMITTED each read takes its own.
        if self.options.isolation != Isolation::ReadCommitted {
            self.at = self.transactions().0.renew_snapshot(self.handle());
        }
    }

    fn lock_in(&mut self, data: &Arc<TableData>, mode: TableMode, wait: LockWait) -> Result<()> {
        let is_inside = self.has_entered(data) || data.modes.has(self.id());
        let is_held = |_: &Anchor, owner: TxnId| {
            data.modes.keeps_off(owner, mode) || data.lock.standing() == Standing::Locked(owner)
        };
        self.when_granted(row_of_table(data), &is_held, &mut |transaction| {
            let own = transaction.id();
            let in_the_way = match data.modes.enter(own, mode, transaction.has_entered(data)) {
                Some(other) => Some(other),
                None => match data.lock.standing() {
                    Standing::Locked(owner) if owner != own && !is_inside => {
                        data.modes.leave(own, mode);
                        transaction.wake_waiters();
                        Some(owner)
                    }
                    Standing::Gone(_) => {
                        data.modes.leave(own, mode);
                        return transaction.check_there(data).map(|()| None);
                    }
                    Standing::Open | Standing::Locked(_) => {
                        transaction.note_step(CatalogStep::InMode(data.clone(), mode));
                        None
                    }
                },
            };
            match in_the_way {
                Some(_) if wait != LockWait::Block => Err(not_available(data)),
                in_the_way => Ok(in_the_way),
            }
        })?;
        if mode.conflicts_with(TableMode::RowExclusive) {
            self.await_users(data, wait)?;
        }
        data.modes.grant(self.id());
        Ok(())
    }

    /// Waits until no other transaction uses the table as a writer. None begins to, as this one has locked it or is on its list.
    pub(super) fn await_users(&self, data: &Arc<TableData>, wait: LockWait) -> Result<()> {
        let (transactions, deadline) = (&self.transactions().0, self.lock_deadline());
        while let Some(user) = transactions.other_user(self.handle(), data.id) {
            if wait != LockWait::Block {
                return Err(not_available(data));
            }
            let is_used = || transactions.uses_table(user, data.id);
            let waited = transactions.wait_for(self.handle(), user, row_of_table(data), &is_used, deadline);
            waited.map_err(|error| self.wait_failed(error))?;
        }
        Ok(())
    }

    /// Waits until no other transaction holds the table in a mode that keeps this one from `mode`.
    #[cold]
    pub(super) fn await_modes(&self, data: &Arc<TableData>, mode: TableMode) -> Result<()> {
        let (transactions, deadline) = (&self.transactions().0, self.lock_deadline());
        while let Some(owner) = data.modes.other(self.id(), mode) {
            let is_held = || data.modes.keeps_off(owner, mode);
            let row = row_of_table(data);
            let waited = transactions.wait_part(self.handle(), owner, row, &is_held, deadline, self.part);
            waited.map_err(|error| self.wait_failed(error))?;
            // It has ended, and is about to leave the list.
            std::thread::yield_now();
        }
        Ok(())
    }
}

fn not_available(data: &TableData) -> Error {
    Error::TableNotAvailable(data.name.to_string())
}
