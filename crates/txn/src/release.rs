//! Releasing the slot of a transaction that is over.
//!
//! What the slot tells of its transaction is taken out first, and the id last: another transaction takes the slot from then on.
use sync::atomic::Ordering;

use crate::snapshots::NO_SNAPSHOT;
use crate::table::{Handle, IN_USE, TransactionTable, phase, slot_of};
use crate::uses::NONE;

impl TransactionTable {
    /// Gives the slot back. Everything that the transaction wrote must be stamped. One that has neither committed nor
    /// rolled back rolls back here; it has written nothing.
    #[allow(clippy::needless_pass_by_value, reason = "the handle ends here")]
    #[inline]
    pub fn release(&self, handle: Handle) {
        let slot = &self.slots[handle.slot];
        debug_assert_eq!(slot_of(handle.id), handle.slot, "an id names its slot");
        let phase = phase::of(slot.state.load(Ordering::Relaxed));
        debug_assert!(
            phase != phase::COMMITTING && phase != phase::PREPARED,
            "invariant 4: readers wait for the outcome of a commit, and it is given up in phase {phase}"
        );
        if phase == phase::ACTIVE {
            self.abort(&handle);
        }
        let uses = &self.uses[handle.slot].0;
        for noted in &uses[..usize::from(handle.tables)] {
            noted.store(NONE, Ordering::Release);
        }
        debug_assert!(
            cfg!(any(loom, shuttle)) || uses.iter().all(|noted| noted.load(Ordering::Relaxed) == NONE),
            "the slot's next transaction would use the tables of {handle:?}"
        );
        slot.reads.store(NO_SNAPSHOT, Ordering::Release);
        slot.id.store(handle.id.word() & !IN_USE, Ordering::Release);
    }
}
