//! A hash index for keys that are no words, over a concurrent map. Readers that find their key take no latch.
//!
//! Each key has the short list of the base Rids that ever had it, oldest first: nearly always one. The list is
//! replaced whole under the latch of its bucket. A reader peeks without a latch; only if that finds nothing, which
//! may mean that the list was just being replaced, it looks again under the bucket's shared latch.
use std::hash::Hash;

use foldhash::fast::RandomState;
use scc::hash_index::Entry;
use smallvec::SmallVec;
use types::Rid;

type Rids = SmallVec<[Rid; 2]>;

/// The present state of a record that had a key at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// The record never came to be: the entry can go.
    Void,
    /// The record does not have the key now; older snapshots may still find it.
    Past,
    /// The record does not have the key now, but certainly had it when it was entered. Any record entered before it
    /// had let go of the key by then, and need not be asked about.
    Former,
    /// The record has the key, or may have it once a running transaction ends.
    Present,
}

/// A hash index from `K` to base Rids.
pub struct HashIndex<K> {
    map: scc::HashIndex<K, Rids, RandomState>,
}

impl<K: Hash + Eq> Default for HashIndex<K> {
    fn default() -> Self {
        HashIndex { map: scc::HashIndex::with_hasher(RandomState::default()) }
    }
}

impl<K: Hash + Eq + Clone> HashIndex<K> {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first of the key's Rids, newest first, for which `accept` returns something. `accept` may be asked twice
    /// about a Rid, and must not use the index.
    pub fn find<T>(&self, key: &K, mut accept: impl FnMut(Rid) -> Option<T>) -> Option<T> {
        let mut first = |rids: &Rids| rids.iter().rev().copied().find_map(&mut accept);
        let peeked = self.map.peek_with(key, |_, rids| first(rids)).flatten();
        peeked.or_else(|| self.map.read_sync(key, |_, rids| first(rids)).flatten())
    }

    /// Adds an entry, even if other records have the key.
    pub fn insert(&self, key: K, rid: Rid) {
        let _ = self.insert_unique(key, rid, |_| Holder::Past);
    }

    /// Adds an entry unless a record that has the key already is there. `holder` is asked
    /// about the other records of the key's list, newest first, and must not use the index; of two callers with one
    /// key, one sees the other's entry.
    ///
    /// # Errors
    /// The record that has the key already, for which `holder` has said [`Holder::Present`]; nothing was added.
    pub fn insert_unique(&self, key: K, rid: Rid, mut holder: impl FnMut(Rid) -> Holder) -> Result<(), Rid> {
        match self.map.entry_sync(key) {
            Entry::Vacant(entry) => drop(entry.insert_entry(Rids::from_slice(&[rid]))),
            Entry::Occupied(mut entry) => {
                let mut newest_first = Rids::from_slice(&[rid]);
                let mut is_settled = false;
                for &other in entry.get().iter().rev().filter(|other| **other != rid) {
                    match if is_settled { Holder::Past } else { holder(other) } {
                        Holder::Void => continue,
                        Holder::Past => {}
                        Holder::Former => is_settled = true,
                        Holder::Present => return Err(other),
                    }
                    newest_first.push(other);
                }
                newest_first.reverse();
                entry.update(newest_first);
            }
        }
        Ok(())
    }

    /// Removes the entry of `rid` under `key`, if there is one.
    pub fn remove(&self, key: &K, rid: Rid) {
        self.remove_if(key, rid, || true);
    }

    /// Removes the entry of `rid` under `key`, if there is one and `may_go` says so. `may_go` is called while no
    /// other thread can enter the key, and must not use the index.
    pub fn remove_if(&self, key: &K, rid: Rid, may_go: impl FnOnce() -> bool) {
        let Some(mut entry) = self.map.get_sync(key) else { return };
        if !may_go() {
            return;
        }
        let rest: Rids = entry.get().iter().copied().filter(|other| *other != rid).collect();
        if rest.is_empty() {
            entry.remove_entry();
        } else if rest.len() < entry.get().len() {
            entry.update(rest);
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Passes on every key with its Rids, newest first: all of them if none is added or removed meanwhile.
    pub fn for_each(&self, mut visit: impl FnMut(&K, &[Rid])) {
        self.map.iter_sync(|key, rids| {
            visit(key, &rids.iter().rev().copied().collect::<Vec<_>>());
            true
        });
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    fn rid(slot: usize) -> Rid {
        Rid::base(0, slot)
    }

    fn all(index: &HashIndex<u64>, key: u64) -> Vec<Rid> {
        index.map.peek_with(&key, |_, rids| rids.iter().rev().copied().collect()).unwrap_or_default()
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
    fn nobody_is_asked_who_was_entered_before_a_former_holder() {
        let index = HashIndex::new();
        (1..=4).for_each(|slot| index.insert(7u64, rid(slot)));
        let mut asked = Vec::new();
        let holder = |other| {
            asked.push(other);
            if other == rid(3) { Holder::Former } else { Holder::Past }
        };
        assert_eq!(index.insert_unique(7, rid(5), holder), Ok(()));
        assert_eq!(asked, [rid(4), rid(3)]);
        assert_eq!(all(&index, 7), [5, 4, 3, 2, 1].map(rid));
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

    #[test]
    fn a_reader_never_misses_an_entry_while_its_list_changes() {
        let index = HashIndex::new();
        for key in 0..64u64 {
            index.insert(key, rid(0));
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..3_000 {
                    let key = round as u64 % 64;
                    index.insert(key, rid(round));
                    index.insert(1_000_000 + round as u64, rid(round));
                    index.remove(&key, rid(round));
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                for key in 0..64 {
                    let found = index.find(&key, |found| (found == rid(0)).then_some(found));
                    assert_eq!(found, Some(rid(0)), "key {key}");
                }
            }
        });
    }
}
