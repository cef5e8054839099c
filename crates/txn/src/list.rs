//! The list of the transactions that run now, and counts of rare events.
use sync::atomic::Ordering::{Acquire, Relaxed};

use sync::Clock;
use sync::atomic::fence;
use types::{Timestamp, TxnId};

use crate::snapshots::NO_SNAPSHOT;
use crate::table::{Handle, Slot, TransactionState, TransactionTable, state_of_word};
use crate::waits::{RowName, WaitError};

/// A transaction that runs, as it was at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunningTransaction {
    /// its id
    pub id: TxnId,
    /// what it does; a commit that is just taking its timestamp counts as active
    pub state: TransactionState,
    /// when it began, in the caller's microseconds; 0 if the caller has not said
    pub begun: u64,
    /// what it reads, if it has a snapshot now
    pub snapshot: Option<Timestamp>,
    /// what the caller has noted
    pub description: u64,
    /// what it waits for, if it sleeps
    pub waits: Option<WaitOfTransaction>,
}

/// The wait of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitOfTransaction {
    /// the transaction that holds the row, or that is before this one in its queue
    pub owner: TxnId,
    /// the row
    pub row: RowName,
    /// since when, in [`TransactionTable::micros`]
    pub since: u64,
}

/// The events that are counted.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    Waits,
    Sleeps,
    Deadlocks,
    TimedOut,
    Interrupted,
    Dependencies,
    Cascades,
}

impl Count {
    pub const ALL: usize = Count::Cascades as usize + 1;

    pub fn of_error(error: WaitError) -> Count {
        match error {
            WaitError::Deadlock => Count::Deadlocks,
            WaitError::TimedOut => Count::TimedOut,
            WaitError::Interrupted => Count::Interrupted,
        }
    }
}

/// Counts since the table was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitCounts {
    /// waits for a transaction that had not ended
    pub waits: u64,
    /// waits that were too long to spin
    pub sleeps: u64,
    /// waits that ended as the victim of a deadlock
    pub deadlocks: u64,
    /// waits that ended at their deadline
    pub timed_out: u64,
    /// waits that were interrupted
    pub interrupted: u64,
    /// commit dependencies
    pub dependencies: u64,
    /// commits that failed because of one
    pub cascades: u64,
}

impl TransactionTable {
    pub(crate) fn count(&self, what: Count) {
        self.counters.add(what as usize, 1);
    }

    /// The counts so far.
    pub fn counts(&self) -> WaitCounts {
        let sum = |what: Count| self.counters.sum(what as usize);
        WaitCounts {
            waits: sum(Count::Waits),
            sleeps: sum(Count::Sleeps),
            deadlocks: sum(Count::Deadlocks),
            timed_out: sum(Count::TimedOut),
            interrupted: sum(Count::Interrupted),
            dependencies: sum(Count::Dependencies),
            cascades: sum(Count::Cascades),
        }
    }

    /// Microseconds of the clock that [`WaitOfTransaction::since`] is told by.
    pub fn micros(&self) -> u64 {
        self.time.now_ns() / 1_000
    }

    /// Microseconds as [`micros`](Self::micros), from a clock that may be some milliseconds behind. Beginning a
    /// transaction must not cost twice as much for the sake of a list.
    #[inline]
    pub fn coarse_micros(&self) -> u64 {
        self.time.coarse_ns() / 1_000
    }

    /// Notes when the transaction began (usually [`coarse_micros`](Self::coarse_micros)) and what the caller likes to know
    /// of it, for [`list`](Self::list).
    #[inline]
    pub fn describe(&self, handle: &Handle, begun: u64, description: u64) {
        self.slots[handle.slot].begun.store(begun, Relaxed);
        self.describe_anew(handle, description);
    }

    /// Changes what [`describe`](Self::describe) noted, but for when the transaction began.
    #[inline]
    pub fn describe_anew(&self, handle: &Handle, description: u64) {
        self.slots[handle.slot].description.store(description, Relaxed);
    }

    /// The transactions that run now. Each is told of as it was at some moment of the call.
    pub fn list(&self) -> Vec<RunningTransaction> {
        self.slots.iter().filter_map(|slot| self.look_at(slot)).collect()
    }

    /// Describes the transaction of a slot, unless that ends meanwhile.
    fn look_at(&self, slot: &Slot) -> Option<RunningTransaction> {
        let id = slot.running(Acquire)?;
        let state = state_of_word(slot.state.load(Acquire));
        let (begun, description) = (slot.begun.load(Acquire), slot.description.load(Acquire));
        let snapshot = Some(slot.reads.load(Acquire)).filter(|at| *at != NO_SNAPSHOT).map(Timestamp);
        let waits =
            self.edge_of(id).map(|edge| WaitOfTransaction { owner: edge.owner, row: edge.row, since: edge.since });
        fence(sync::atomic::Ordering::Acquire);
        let is_same = slot.id.load(Relaxed) == id.word();
        is_same.then_some(RunningTransaction { id, state, begun, snapshot, description, waits })
    }
}
