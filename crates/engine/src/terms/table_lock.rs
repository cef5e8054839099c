//! The lock of a table: which transaction has the table for itself, and whether the table is still there.
//!
//! ```text
//! word:  0                      any transaction may write
//!        id of a transaction    it alone may write, until it ends: it has dropped, emptied, renamed or just locked the table
//!        commit timestamp       the table is gone since then: it was dropped, or an empty one stands in its place
//! ```
//!
//! This is PostgreSQL's ACCESS EXCLUSIVE without its harm to readers: they do not look here, as what they see
//! stays. Writers look once, before their first write to the table (`transaction/tables.rs`;
//! `txn::TransactionTable::enter_table` argues why none is missed).
use std::sync::atomic::{AtomicU64, Ordering};

use types::{StartTime, Timestamp, TxnId};

/// See the module.
#[derive(Default)]
pub(crate) struct TableLock(AtomicU64);

/// The meaning of the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    Open,
    Locked(TxnId),
    /// Since this commit; [`Timestamp::ZERO`] if only its maker ever saw it.
    Gone(Timestamp),
}

impl TableLock {
    /// Of a table that is gone, and that only its maker ever saw: no commit has this number, as the first is 1.
    const NEVER_WAS: u64 = Timestamp::MAX.0;

    /// The lock of a table that a transaction has just made.
    pub(crate) fn of(owner: TxnId) -> TableLock {
        TableLock(AtomicU64::new(owner.word()))
    }

    #[inline]
    pub(crate) fn standing(&self) -> Standing {
        match StartTime::from_word(self.0.load(Ordering::SeqCst)) {
            StartTime::Unwritten => Standing::Open,
            StartTime::Pending(owner) => Standing::Locked(owner),
            StartTime::Committed(Timestamp(Self::NEVER_WAS)) | StartTime::Tombstone => Standing::Gone(Timestamp::ZERO),
            StartTime::Committed(at) => Standing::Gone(at),
        }
    }

    /// Locks the table if no other transaction has; otherwise says how it stands.
    pub(crate) fn lock(&self, own: TxnId) -> Result<(), Standing> {
        match self.0.compare_exchange(0, own.word(), Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.standing()),
        }
    }

    /// Lets others in again. To be called by the owner.
    pub(crate) fn unlock(&self) {
        debug_assert!(matches!(self.standing(), Standing::Locked(_)), "only the owner lets others in");
        self.0.store(0, Ordering::SeqCst);
    }

    /// Ends all writing, as a commit has taken the table away. To be called by the owner.
    pub(crate) fn retire(&self, at: Timestamp) {
        debug_assert!(at > Timestamp::ZERO && at < Timestamp::MAX, "no commit has the number {at:?}");
        debug_assert!(!matches!(self.standing(), Standing::Gone(_)), "invariant 4: a table goes twice, now by {at:?}");
        self.0.store(at.0, Ordering::SeqCst);
    }

    /// Ends all writing, as the making of the table was taken back. To be called by the owner.
    pub(crate) fn never_was(&self) {
        debug_assert!(matches!(self.standing(), Standing::Locked(_)), "only the maker takes the making back");
        self.0.store(Self::NEVER_WAS, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_one_owner_at_a_time_and_goes_once() {
        let (lock, [first, second]) = (TableLock::default(), [1, 2].map(TxnId::new));
        assert_eq!(lock.standing(), Standing::Open);
        assert_eq!(lock.lock(first), Ok(()));
        assert_eq!(lock.lock(second), Err(Standing::Locked(first)));
        lock.unlock();
        assert_eq!(lock.lock(second), Ok(()));
        lock.retire(Timestamp(9));
        assert_eq!(lock.lock(first), Err(Standing::Gone(Timestamp(9))));
        let made = TableLock::of(first);
        assert_eq!(made.standing(), Standing::Locked(first));
        made.never_was();
        assert_eq!(made.standing(), Standing::Gone(Timestamp::ZERO));
    }
}
