//! Rows locked for share, or for share of their key: any number of transactions may do so, and no other transaction
//! may change the row, or its key, meanwhile.
//!
//! A row that is locked for update needs no entry anywhere: the uncommitted version of its owner is the lock. Sharers leave
//! no version; they are listed here, by row. A table without any is told by one word that only sharers write, so writers pay
//! for share locks only where there are some.
//!
//! No sharer is missed: a sharer first enters itself and then looks at the row with the row's latch held for a
//! moment; a writer appends its version, for which it holds the same latch, and then looks here. The second of the
//! two to have the latch sees the other one, and gives way: a sharer leaves the list again before it waits, a
//! writer takes its version back. So a waiting transaction never keeps the row from others, and a transaction that
//! shares the row already goes on to change it beside others that wait for that. A writer looks here before it
//! appends, too, so that its version is not in the way where it can't stay.
use std::collections::HashMap;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use smallvec::SmallVec;
use sync::CachePadded;
use sync::atomic::{AtomicUsize, Ordering};
use types::{Rid, TxnId};

use crate::terms::isolation::LockStrength;

const SHARDS: usize = 16;

type Sharers = SmallVec<[(TxnId, LockStrength); 2]>;

/// The share locks on rows of one table.
#[derive(Default)]
pub(crate) struct ShareLocks {
    count: CachePadded<AtomicUsize>,
    shards: [Mutex<HashMap<Rid, Sharers, RandomState>>; SHARDS],
}

impl ShareLocks {
    /// Whether there are any.
    #[inline]
    pub(crate) fn are_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Enters a transaction; false if it shares the row so already.
    pub(crate) fn enter(&self, rid: Rid, sharer: TxnId, strength: LockStrength) -> bool {
        let mut shard = self.shard(rid).lock();
        let sharers = shard.entry(rid).or_default();
        if sharers.contains(&(sharer, strength)) {
            return false;
        }
        sharers.push((sharer, strength));
        self.count.fetch_add(1, Ordering::AcqRel);
        debug_assert!(self.are_any(), "writers would not look for sharers");
        true
    }

    /// Takes a transaction out again.
    pub(crate) fn leave(&self, rid: Rid, sharer: TxnId, strength: LockStrength) {
        let mut shard = self.shard(rid).lock();
        let Some(sharers) = shard.get_mut(&rid) else { return };
        if let Some(at) = sharers.iter().position(|known| *known == (sharer, strength)) {
            sharers.swap_remove(at);
            let before = self.count.fetch_sub(1, Ordering::AcqRel);
            debug_assert!(before > 0, "writers would look for sharers for ever");
        }
        if sharers.is_empty() {
            shard.remove(&rid);
        }
    }

    /// Whether a transaction shares the row at least so.
    pub(crate) fn has(&self, rid: Rid, sharer: TxnId, strength: LockStrength) -> bool {
        self.any(rid, |(known, shared)| known == sharer && shared >= strength).is_some()
    }

    /// Whether a transaction shares the row in a way that keeps others from locking it so.
    pub(crate) fn keeps_off(&self, rid: Rid, sharer: TxnId, strength: LockStrength) -> bool {
        self.any(rid, |(known, shared)| known == sharer && shared.conflicts_with(strength)).is_some()
    }

    /// Another transaction that shares the row in a way that keeps it from being locked so.
    pub(crate) fn other(&self, rid: Rid, own: TxnId, strength: LockStrength) -> Option<TxnId> {
        self.any(rid, |(known, shared)| known != own && shared.conflicts_with(strength))
    }

    fn any(&self, rid: Rid, is_meant: impl Fn((TxnId, LockStrength)) -> bool) -> Option<TxnId> {
        let shard = self.shard(rid).lock();
        shard.get(&rid)?.iter().copied().find(|sharer| is_meant(*sharer)).map(|(sharer, _)| sharer)
    }

    fn shard(&self, rid: Rid) -> &Mutex<HashMap<Rid, Sharers, RandomState>> {
        &self.shards[rid.slot() % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::LockStrength::{KeyShare, NoKeyUpdate, Share, Update};
    use super::*;

    #[test]
    fn sharers_come_and_go() {
        let (locks, rid) = (ShareLocks::default(), Rid::base(1, 2));
        let [first, second] = [1, 2].map(TxnId::new);
        assert!(!locks.are_any() && locks.other(rid, first, Update).is_none());
        assert!(locks.enter(rid, first, Share) && !locks.enter(rid, first, Share) && locks.are_any());
        assert_eq!((locks.other(rid, first, Update), locks.other(rid, second, NoKeyUpdate)), (None, Some(first)));
        assert!(locks.has(rid, first, KeyShare) && locks.has(rid, first, Share) && !locks.has(rid, second, KeyShare));
        assert!(locks.enter(rid, second, KeyShare) && !locks.has(rid, second, Share));
        assert_eq!((locks.other(rid, first, NoKeyUpdate), locks.other(rid, first, Update)), (None, Some(second)));
        assert!(!locks.keeps_off(rid, second, NoKeyUpdate) && locks.keeps_off(rid, second, Update));
        assert!(locks.enter(rid, first, KeyShare), "a savepoint may lead back to the weaker one");
        locks.leave(rid, first, Share);
        locks.leave(rid, first, Share);
        assert_eq!((locks.other(rid, second, NoKeyUpdate), locks.other(rid, second, Update)), (None, Some(first)));
        locks.leave(rid, first, KeyShare);
        assert!(locks.are_any() && locks.other(Rid::base(1, 3), first, Update).is_none());
        locks.leave(rid, second, KeyShare);
        assert!(!locks.are_any() && locks.other(rid, first, Update).is_none());
    }
}
