//! Rows locked for share: any number of transactions may share a row, and nobody else may change it meanwhile.
//!
//! A row that is locked for update needs no entry anywhere: the uncommitted version of its owner is the lock. Sharers leave
//! no version; they are listed here, by row. A table without any is told by one word that only sharers write, so writers pay
//! for share locks only where there are some.
//!
//! Nobody is missed: a sharer first enters itself and then looks at the row with the row's latch held for a moment; a
//! writer appends its version, for which it holds the same latch, and then looks here. Whoever has the latch second sees the
//! other one.
use std::collections::HashMap;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use smallvec::SmallVec;
use sync::CachePadded;
use sync::atomic::{AtomicUsize, Ordering};
use types::{Rid, TxnId};

const SHARDS: usize = 16;

type Sharers = SmallVec<[TxnId; 2]>;

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

    /// Enters a transaction; false if it shares the row already.
    pub(crate) fn enter(&self, rid: Rid, sharer: TxnId) -> bool {
        let mut shard = self.shard(rid).lock();
        let sharers = shard.entry(rid).or_default();
        if sharers.contains(&sharer) {
            return false;
        }
        sharers.push(sharer);
        self.count.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Takes a transaction out again.
    pub(crate) fn leave(&self, rid: Rid, sharer: TxnId) {
        let mut shard = self.shard(rid).lock();
        let Some(sharers) = shard.get_mut(&rid) else { return };
        if let Some(at) = sharers.iter().position(|known| *known == sharer) {
            sharers.swap_remove(at);
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
        if sharers.is_empty() {
            shard.remove(&rid);
        }
    }

    /// Whether a transaction shares the row.
    pub(crate) fn has(&self, rid: Rid, sharer: TxnId) -> bool {
        self.shard(rid).lock().get(&rid).is_some_and(|sharers| sharers.contains(&sharer))
    }

    /// Somebody else who shares the row.
    pub(crate) fn other(&self, rid: Rid, own: TxnId) -> Option<TxnId> {
        let shard = self.shard(rid).lock();
        shard.get(&rid)?.iter().copied().find(|sharer| *sharer != own)
    }

    fn shard(&self, rid: Rid) -> &Mutex<HashMap<Rid, Sharers, RandomState>> {
        &self.shards[rid.slot() % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharers_come_and_go() {
        let (locks, rid) = (ShareLocks::default(), Rid::base(1, 2));
        let [first, second] = [1, 2].map(TxnId::new);
        assert!(!locks.are_any() && locks.other(rid, first).is_none());
        assert!(locks.enter(rid, first) && !locks.enter(rid, first) && locks.are_any());
        assert_eq!((locks.other(rid, first), locks.other(rid, second)), (None, Some(first)));
        assert!(locks.has(rid, first) && !locks.has(rid, second));
        assert!(locks.enter(rid, second));
        assert_eq!((locks.other(rid, first), locks.other(rid, second)), (Some(second), Some(first)));
        locks.leave(rid, first);
        locks.leave(rid, first);
        assert!(locks.are_any() && locks.other(Rid::base(1, 3), first).is_none());
        locks.leave(rid, second);
        assert!(!locks.are_any() && locks.other(rid, first).is_none());
    }
}
