//! The transactions that run now, for people to look at.
use std::num::NonZeroU32;
use std::time::Duration;

use txn::State;
use types::{Rid, Timestamp, TxnId};

use crate::catalog::is_no_row;
use crate::database::Database;
use crate::isolation::{Isolation, SessionNumber, TransactionOptions};

/// A transaction that runs, as it was at one moment. Views that are held count too: they read and write nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningTransaction {
    /// its id
    pub id: TxnId,
    /// what it promises; `None` for a view that belongs to no transaction
    pub isolation: Option<Isolation>,
    /// whether it refuses to write
    pub read_only: bool,
    /// what it does
    pub state: RunningState,
    /// how long ago it began
    pub age: Duration,
    /// the newest commit that it sees, if it holds a snapshot now
    pub snapshot: Option<Timestamp>,
    /// what it waits for, if it waits and does not just spin for a moment
    pub waits: Option<RowWait>,
}

/// What a transaction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunningState {
    /// It reads, writes, waits, or does nothing.
    Active,
    /// It has its commit timestamp, and finds out whether it may commit.
    Prepared,
    /// It has committed or rolled back, and is cleaning up.
    Ended,
}

/// A wait for a row, or for a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowWait {
    /// the transaction that holds the row, or is before this one in its queue
    pub owner: TxnId,
    /// the table's name, if it was not dropped
    pub table: Option<String>,
    /// the row
    pub rid: Rid,
    /// whether the whole table is waited for, or its name, as the owner changes the catalog or this transaction is about to
    pub is_table: bool,
    /// how long it has waited
    pub since: Duration,
}

/// One that waits, or is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Party {
    /// one of those that the caller has numbered, whichever of its transactions it is
    Session(SessionNumber),
    /// a transaction of nobody in particular
    Transaction(TxnId),
}

/// Where in a description the number of the session stands, and the rest.
const SESSION_SHIFT: u32 = 32;
const REST: u64 = (1 << SESSION_SHIFT) - 1;

/// The bits of a transaction's description in the transaction table; 0 for a view.
pub(crate) fn description(options: &TransactionOptions) -> u64 {
    let session = options.session.map_or(0, |session| u64::from(session.0.get()));
    let isolation = match options.isolation {
        Isolation::ReadCommitted => 1,
        Isolation::Snapshot => 2,
        Isolation::Serializable => 3,
    };
    let description = session << SESSION_SHIFT | isolation << 1 | u64::from(options.read_only);
    debug_assert_eq!(isolation_of(description), Some(options.isolation), "it would be told as another level");
    description
}

fn isolation_of(description: u64) -> Option<Isolation> {
    match (description & REST) >> 1 {
        1 => Some(Isolation::ReadCommitted),
        2 => Some(Isolation::Snapshot),
        3 => Some(Isolation::Serializable),
        _ => None,
    }
}

impl Database {
    /// The transactions and views in use now, oldest first; views that live for one read only do not tell their age.
    pub fn running_transactions(&self) -> Vec<RunningTransaction> {
        let core = &self.shared.core;
        let now = core.transactions.0.micros();
        let ago = |micros: u64| Duration::from_micros(if micros == 0 { 0 } else { now.saturating_sub(micros) });
        let running = core.transactions.0.list().into_iter().map(|running| RunningTransaction {
            id: running.id,
            isolation: isolation_of(running.description),
            read_only: running.description & 1 == 1 || running.description == 0,
            state: match running.state {
                State::Active => RunningState::Active,
                State::Prepared(_) => RunningState::Prepared,
                State::Committed(_) | State::Aborted | State::Released => RunningState::Ended,
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
        let edges = self.shared.core.transactions.0.edges();
        edges.into_iter().map(|(waits, owner)| (self.party(waits), self.party(owner))).collect()
    }

    /// Whose a transaction is, while it runs.
    pub(crate) fn party(&self, txn: TxnId) -> Party {
        let description = self.shared.core.transactions.0.description(txn).unwrap_or_default();
        let session = NonZeroU32::new((description >> SESSION_SHIFT) as u32);
        session.map_or(Party::Transaction(txn), |session| Party::Session(SessionNumber(session)))
    }

    /// How often transactions waited for each other, and how that ended, since the database was opened.
    pub fn wait_counts(&self) -> WaitCounts {
        self.shared.core.transactions.0.counts()
    }
}

pub use txn::WaitCounts;
