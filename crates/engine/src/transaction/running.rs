//! The transactions that run now, for people to look at.
use std::num::NonZeroU32;
use std::time::Duration;

use types::{Rid, Timestamp, TxnId};

use crate::state::core::Core;
use crate::terms::isolation::{Isolation, SessionNumber, TransactionOptions};

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
const READ_ONLY: u64 = 1;
const ISOLATION_SHIFT: u32 = 1;
const ISOLATION: u64 = 3 << ISOLATION_SHIFT;
/// Its caller has been told that it is rolled back, and what it wrote is still to be taken back.
const ROLLED_BACK: u64 = 1 << 3;

/// The bits of a transaction's description in the transaction table; 0 for a view.
pub(crate) fn description(options: &TransactionOptions) -> u64 {
    let session = options.session.map_or(0, |session| u64::from(session.0.get()));
    let isolation = match options.isolation {
        Isolation::ReadCommitted => 1,
        Isolation::Snapshot => 2,
        Isolation::Serializable => 3,
    };
    let description =
        session << SESSION_SHIFT | isolation << ISOLATION_SHIFT | if options.read_only { READ_ONLY } else { 0 };
    debug_assert_eq!(isolation_of(description), Some(options.isolation), "it would be told as another level");
    description
}

/// The bits of a transaction that is rolled back and belongs to no session any more.
pub(super) fn rolled_back(options: &TransactionOptions) -> u64 {
    description(&TransactionOptions { session: None, ..*options }) | ROLLED_BACK
}

/// Whether a transaction that runs is rolled back, as its caller was told.
pub(crate) fn is_rolled_back(description: u64) -> bool {
    description & ROLLED_BACK != 0
}

/// Whether a description is of one that refuses to write, as views do.
pub(crate) fn is_read_only(description: u64) -> bool {
    description & READ_ONLY != 0 || description == 0
}

/// The isolation level in a description; none for a view.
pub(crate) fn isolation_of(description: u64) -> Option<Isolation> {
    match (description & ISOLATION) >> ISOLATION_SHIFT {
        1 => Some(Isolation::ReadCommitted),
        2 => Some(Isolation::Snapshot),
        3 => Some(Isolation::Serializable),
        _ => None,
    }
}

/// Whose a transaction is, while it runs.
pub(crate) fn party(core: &Core, txn: TxnId) -> Party {
    let description = core.transactions.0.description(txn).unwrap_or_default();
    let session = NonZeroU32::new((description >> SESSION_SHIFT) as u32);
    session.map_or(Party::Transaction(txn), |session| Party::Session(SessionNumber(session)))
}

pub use txn::WaitCounts;
