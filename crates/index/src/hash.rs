//! A hash index for primary keys, over a concurrent map whose readers take no latch.
//!
//! Each key has the short list of the base Rids that ever had it, oldest first: nearly always one. The list is
//! replaced whole by a compare-and-swap, so whoever reads it sees it before or after a change.
use std::hash::Hash;

use foldhash::fast::RandomState;
use papaya::{Compute, Operation};
use smallvec::SmallVec;
use types::Rid;

type Rids = SmallVec<[Rid; 2]>;

/// What a record that had a key at some time is doing now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// It never came to be: the entry can go.
    Void,
    /// It was deleted or has another key now; older snapshots may still find the key.
    Past,
    /// It has the key, or may have it once a running transaction ends.
    Present,
}

/// A hash index from `K` to base Rids.
pub struct HashIndex<K> {
    map: papaya::HashMap<K, Rids, RandomState>,
}

impl<K: Hash + Eq> Default for HashIndex<K> {
    fn default() -> Self {
        HashIndex { map: papaya::HashMap::with_hasher(RandomState::default()) }
    }
}

impl<K: Hash + Eq + Clone> HashIndex<K> {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first of the key's Rids, newest first, for which `accept` returns something.
    pub fn find<T>(&self, key: &K, accept: impl FnMut(Rid) -> Option<T>) -> Option<T> {
        let map = self.map.pin();
        map.get(key)?.iter().rev().copied().find_map(accept)
    }

    /// Adds an entry, whoever else has the key.
    pub fn insert(&self, key: K, rid: Rid) {
        let _ = self.insert_unique(key, rid, |_| Holder::Past);
    }

    /// Adds an entry unless a record that has the key already is there; returns that record then. `holder` is asked
    /// about each other record of the key's list, perhaps more than once; of two callers with one key, one sees the
    /// other's entry.
    pub fn insert_unique(&self, key: K, rid: Rid, mut holder: impl FnMut(Rid) -> Holder) -> Result<(), Rid> {
        let map = self.map.pin();
        let added = map.compute(key, |entry| {
            let mut kept = Rids::new();
            for &other in entry.map_or(&[][..], |(_, rids)| rids) {
                match holder(other) {
                    _ if other == rid => {}
                    Holder::Void => {}
                    Holder::Past => kept.push(other),
                    Holder::Present => return Operation::Abort(other),
                }
            }
            kept.push(rid);
            Operation::Insert(kept)
        });
        match added {
            Compute::Aborted(other) => Err(other),
            _ => Ok(()),
        }
    }

    /// Removes the entry of `rid` under `key`, if there is one.
    pub fn remove(&self, key: &K, rid: Rid) {
        self.map.pin().compute(key.clone(), |entry| match entry {
            Some((_, rids)) if rids.contains(&rid) => {
                let rest: Rids = rids.iter().copied().filter(|other| *other != rid).collect();
                if rest.is_empty() { Operation::Remove } else { Operation::Insert(rest) }
            }
            _ => Operation::Abort(()),
        });
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn rid(slot: usize) -> Rid {
        Rid::base(0, slot)
    }

    fn all(index: &HashIndex<u64>, key: u64) -> Vec<Rid> {
        let mut rids = Vec::new();
        index.find(&key, |rid| -> Option<()> {
            rids.push(rid);
            None
        });
        rids
    }

    #[test]
    fn past_holders_stay_and_void_ones_go() {
        let index = HashIndex::new();
        index.insert(7u64, rid(1));
        assert_eq!(index.insert_unique(7, rid(2), |_| Holder::Present), Err(rid(1)));
        assert_eq!(index.insert_unique(7, rid(2), |_| Holder::Past), Ok(()));
        assert_eq!(all(&index, 7), [rid(2), rid(1)]);
        let only_first_is_void = |other| if other == rid(1) { Holder::Void } else { Holder::Past };
        assert_eq!(index.insert_unique(7, rid(3), only_first_is_void), Ok(()));
        assert_eq!(all(&index, 7), [rid(3), rid(2)]);
        index.insert(7, rid(2));
        assert_eq!(all(&index, 7), [rid(2), rid(3)]);
        index.remove(&7, rid(2));
        index.remove(&7, rid(9));
        assert_eq!(all(&index, 7), [rid(3)]);
        index.remove(&7, rid(3));
        assert!(index.is_empty() && all(&index, 7).is_empty());
    }

    #[test]
    fn one_of_many_wins_each_key() {
        let index = HashIndex::new();
        let wins = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (index, wins) = (&index, &wins);
                scope.spawn(move || {
                    for key in 0..5_000u64 {
                        if index.insert_unique(key, rid(thread), |_| Holder::Present).is_ok() {
                            wins.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!((wins.into_inner(), index.len()), (5_000, 5_000));
    }
}
