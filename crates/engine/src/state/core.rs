//! The part of a database that background threads need.
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use lineage::{Kept, MemoryBudget, TableOptions};
use txn::TransactionTable;
use types::Timestamp;

use crate::keys::computed::ExpressionCompiler;
use crate::state::catalog::{Catalog, Meanings};
use crate::state::resident::Resident;
use crate::state::table_data::TableData;
use crate::terms::outcomes::Transactions;
use crate::terms::settings::Retention;
use crate::terms::table_name::TableId;
use crate::terms::wall_clock::WallClock;

/// The part of a database that the merge threads need.
pub(crate) struct Core {
    pub(crate) transactions: Transactions,
    pub(crate) catalog: Catalog,
    pub(crate) table_options: TableOptions,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) resident: Resident,
    pub(crate) clock: WallClock,
    /// Bytes of the log that are redo of transactions that run: no checkpoint has what they say.
    pub(crate) running_redo: AtomicU64,
    pub(crate) expressions: OnceLock<Arc<dyn ExpressionCompiler>>,
}

impl Core {
    pub(crate) fn new(
        newest: Timestamp,
        meanings: Meanings,
        next_table: TableId,
        table_options: TableOptions,
        budget: Arc<MemoryBudget>,
        clock: WallClock,
    ) -> Arc<Core> {
        let TableOptions { range_records, update_range_records, .. } = table_options;
        debug_assert!(
            range_records.is_power_of_two() && update_range_records <= range_records,
            "ranges of {range_records} records, update ranges of {update_range_records}"
        );
        Arc::new(Core {
            transactions: Transactions(TransactionTable::starting_at(newest)),
            catalog: Catalog::new(meanings, next_table),
            table_options,
            budget,
            resident: Resident::default(),
            clock,
            running_redo: AtomicU64::new(0),
            expressions: OnceLock::new(),
        })
    }

    /// The compiler for the expressions of indexes.
    pub(crate) fn expressions(&self) -> Option<&dyn ExpressionCompiler> {
        self.expressions.get().map(|compiler| &**compiler)
    }

    /// A number that tells the tables and transactions of this database from those of others.
    pub(crate) fn home(&self) -> usize {
        Arc::as_ptr(&self.budget).addr()
    }

    /// The snapshots for which a table has to keep its rows: by its retention, and by those in use now. From here
    /// on no transaction can begin to read another one.
    pub(crate) fn kept(&self, table: &TableData) -> Kept {
        let transactions = &self.transactions.0;
        let horizon = match table.retention() {
            // Nothing more is given up, so snapshots in use do not matter.
            Retention::Forever => return table.storage.kept(),
            retention => retention.kept_from(&self.clock),
        };
        // Snapshots in use stay, in every table: a transaction that holds one may begin to read this table at any
        // time.
        table.storage.raise_horizon(horizon, || transactions.snapshots_in_use())
    }
}
