//! The number of a commit: how it is announced and taken.
//!
//! A transaction announces that it is committing *before* it takes its timestamp from the clock. A reader that reads the clock
//! and then finds the transaction active therefore knows that its commit comes after the snapshot; one that finds it
//! committing waits the few instructions until the timestamp is known.
use sync::atomic::Ordering;
use types::Timestamp;

use crate::table::{Handle, TIMESTAMP_MAX, TransactionTable, phase};

impl TransactionTable {
    /// First step of a commit: from here on, a transaction that asks for the state waits for the timestamp.
    #[inline]
    pub fn start_commit(&self, handle: &Handle) {
        debug_assert!(self.is_in(handle, &[phase::ACTIVE]), "{handle:?} commits, and has begun to end before");
        self.slots[handle.slot].state.store(phase::COMMITTING, Ordering::Release);
    }

    /// Second step: takes the next commit timestamp. The transaction's state must be committing.
    #[inline]
    pub fn next_timestamp(&self) -> Timestamp {
        let at = Timestamp(self.clock.fetch_add(1, Ordering::AcqRel) + 1);
        debug_assert!(at.0 <= TIMESTAMP_MAX, "{at:?} does not fit a state word");
        at
    }
}
