//! The memory of a database: what its tables take, the limit, and what was evicted.
use std::sync::Arc;

use lineage::EvictionStats;

use crate::database::handle::Database;
use crate::state::resident;
use crate::state::table_data::TableData;
use crate::table::{Table, TableMemory};
use crate::terms::table_lock::Standing;

impl Database {
    /// The memory that each table takes, by name; those that are gone and kept for the sake of their past have " (gone)" behind
    /// it.
    pub fn memory(&self) -> Vec<TableMemory> {
        let memory = |data: Arc<TableData>| {
            let is_gone = matches!(data.lock.standing(), Standing::Gone(_));
            let memory = Table::of(self.clone(), data).memory();
            TableMemory { table: if is_gone { format!("{} (gone)", memory.table) } else { memory.table }, ..memory }
        };
        let tables = self.shared.core.catalog.all_tables();
        tables.into_iter().filter(|data| !data.is_hidden()).map(memory).collect()
    }

    /// The bytes that all tables may take together, `None` for no limit.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        Some(self.shared.core.budget.limit_bytes()).filter(|limit| *limit < u64::MAX)
    }

    /// The limit that the database was opened with, whatever was set since:
    /// [`OpenOptions::memory_limit_bytes`](crate::OpenOptions::memory_limit_bytes).
    pub fn memory_limit_at_opening_bytes(&self) -> Option<u64> {
        self.shared.memory_limit_at_opening
    }

    /// Sets that limit. If more is in use already, pages are evicted; where that does not help, statements that need memory
    /// fail until it is not.
    pub fn set_memory_limit_bytes(&self, limit: Option<u64>) {
        resident::begin(limit);
        self.shared.core.budget.set_limit_bytes(limit.unwrap_or(u64::MAX));
    }

    /// The bytes that all tables take now, those of their indexes as far as they have been counted.
    pub fn memory_used_bytes(&self) -> u64 {
        self.shared.core.budget.used_bytes()
    }

    /// Whether more than half of the limit is in use, with what the process has resident beside the tables: what begins now is to take
    /// less.
    pub fn is_memory_short(&self) -> bool {
        !self.shared.core.budget.has_room_for_copies(0)
    }

    /// What each query that runs has a clone of, so that those can be counted that share the memory for queries.
    pub fn queries(&self) -> &Arc<()> {
        &self.shared.queries
    }

    /// How many pages were evicted and read back since the database was opened; what is away now is in
    /// [`Database::memory`].
    pub fn evictions(&self) -> EvictionStats {
        self.shared.core.budget.evictions()
    }

    /// Evicts pages of at least so many bytes that a checkpoint has, whatever the limit, and returns how many. For
    /// measurements and tests.
    #[doc(hidden)]
    pub fn evict_now(&self, bytes: u64) -> u64 {
        self.shared.core.budget.evict(bytes)
    }
}
