//! The transactions that run in a database, for people to look at.
use std::time::Duration;

use txn::TransactionState;
use types::Rid;

use crate::database::handle::Database;
use crate::state::catalog::is_no_row;
use crate::transaction::running::{
    Party, RowWait, RunningState, RunningTransaction, WaitCounts, is_read_only, is_rolled_back, isolation_of, party,
};

impl Database {
    /// The transactions and views in use now, oldest first; views that live for one read only do not tell their age.
    pub fn running_transactions(&self) -> Vec<RunningTransaction> {
        let core = &self.shared.core;
        let now = core.transactions.0.micros();
        let ago = |micros: u64| Duration::from_micros(if micros == 0 { 0 } else { now.saturating_sub(micros) });
        let running = core.transactions.0.list().into_iter().map(|running| RunningTransaction {
            id: running.id,
            isolation: isolation_of(running.description),
            read_only: is_read_only(running.description),
            state: match running.state {
                TransactionState::Active if is_rolled_back(running.description) => RunningState::Ended,
                TransactionState::Active => RunningState::Active,
                TransactionState::Prepared(_) => RunningState::Prepared,
                TransactionState::Committed(_) | TransactionState::Aborted | TransactionState::Released => {
                    RunningState::Ended
                }
            },
            // The beginning is told by a coarser clock than the wait.
            age: ago(running.begun).max(running.waits.as_ref().map_or(Duration::ZERO, |waits| ago(waits.since))),
            snapshot: running.snapshot,
            waits: running.waits.map(|waits| RowWait {
                owner: waits.owner,
                table: core.catalog.name_of(waits.row),
                rid: Rid::from_word(waits.row.rid),
                is_table: is_no_row(waits.row),
                since: ago(waits.since),
            }),
        });
        let mut running: Vec<RunningTransaction> = running.collect();
        running.sort_by_key(|running| std::cmp::Reverse(running.age));
        running
    }

    /// The waits for rows, tables and the catalog, each as the party that waits and the party that it waits for.
    /// All of them stand at one moment of the call, and none of a deadlock is missed. For callers whose sessions wait
    /// for other things as well, and that look for circles through both.
    pub fn waits(&self) -> Vec<(Party, Party)> {
        let core = &self.shared.core;
        let edges = core.transactions.0.edges();
        edges.into_iter().map(|(waits, owner)| (party(core, waits), party(core, owner))).collect()
    }

    /// How often transactions waited for each other, and how that ended, since the database was opened.
    pub fn wait_counts(&self) -> WaitCounts {
        self.shared.core.transactions.0.counts()
    }
}
