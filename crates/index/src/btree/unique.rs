//! A unique index: each key leads to the records that had it, of which one at most has it now.
//!
//! The value of a key is one Rid or the address of a list of several, oldest first, see [`crate::rids`]; the key's leaf
//! is latched while `insert_unique` asks about them, so that of two callers with one key one sees the other's entry.
use std::ops::RangeBounds;

use smallvec::SmallVec;
use sync::Guard;
use sync::atomic::Ordering;
use types::Rid;

use super::descent::Visit;
use super::key::Key;
use super::latching::{Latching, NodeLatches};
use super::{BPlusTree, TreeRange};
use crate::{Change, Holder, rids};

/// The Rids of a key: nearly always one.
pub type KeyRids = SmallVec<[Rid; 2]>;

/// An ordered index from keys to the base Rids that had them, as the engine needs it for unique keys.
pub struct UniqueTree<K: Key, L: Latching = NodeLatches> {
    tree: BPlusTree<K, u64, L>,
}

impl<K: Key, L: Latching> Default for UniqueTree<K, L> {
    fn default() -> Self {
        UniqueTree { tree: BPlusTree::new() }
    }
}

impl<K: Key, L: Latching> UniqueTree<K, L> {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first of the key's Rids, newest first, for which `accept` returns something. `accept` may be asked twice
    /// about a Rid.
    #[inline]
    pub fn find<T>(&self, guard: &Guard, key: K::Ref<'_>, accept: impl FnMut(Rid) -> Option<T>) -> Option<T> {
        let value = self.tree.get_pinned(key, guard)?;
        // SAFETY: the value was read from an entry under this guard, with a check behind that acquires.
        unsafe { rids::find(value, guard, accept) }
    }

    /// Adds an entry, even if other records have the key.
    pub fn insert(&self, key: K::Ref<'_>, rid: Rid) {
        let _ = self.insert_unique(key, rid, |_| Holder::Past);
    }

    /// Adds an entry unless a record that has the key already is there. `holder` is asked
    /// about the other records that had the key, newest first, and must not use the index; of two callers with one
    /// key, one sees the other's entry. Records entered before one that is [`Holder::Former`] are not asked about.
    ///
    /// # Errors
    /// The record that has the key already, for which `holder` has said [`Holder::Present`]; nothing was added.
    pub fn insert_unique(&self, key: K::Ref<'_>, rid: Rid, holder: impl FnMut(Rid) -> Holder) -> Result<(), Rid> {
        debug_assert!(!rid.is_tail());
        let (guard, mut result) = (&sync::pin(), Ok(()));
        self.tree.alter(key, guard, true, |value| {
            let Some(value) = value else { return Change::Set(rid.word()) };
            // SAFETY: the value is that of an entry whose leaf is held, and the guard was pinned before.
            result = unsafe { rids::add(value, guard, rid, holder) };
            Change::Keep
        });
        result
    }

    /// Adds entries of ascending keys, with Rids that follow one another, for the first of so many keys: as many as are new and
    /// go in together. Returns how many; 0 where the first key is there already, and is to be entered alone.
    pub fn insert_new<'k>(&self, len: usize, key: impl Fn(usize) -> &'k K::Owned, first: Rid) -> usize {
        debug_assert!(!first.is_tail());
        let rid = |at: usize| Rid::base(first.range(), first.slot() + at).word();
        // A key that is not there has no list of Rids.
        self.tree.add_run(&sync::pin(), len, |at| (key(at), rid(at)))
    }

    /// Adds the first of `len` entries whose keys ascend, as many as are new and go in together. Returns how many; 0 where the first
    /// key is there already, and is to be entered alone.
    pub fn insert_sorted<'k>(&self, len: usize, entry: impl Fn(usize) -> (&'k K::Owned, Rid)) -> usize {
        // A key that is not there has no list of Rids.
        self.tree.add_run(&sync::pin(), len, |at| {
            let (key, rid) = entry(at);
            debug_assert!(!rid.is_tail());
            (key, rid.word())
        })
    }

    /// Removes the entry of `rid` under `key`, if there is one.
    pub fn remove(&self, key: K::Ref<'_>, rid: Rid) {
        self.remove_if(key, rid, || true);
    }

    /// Removes the entry of `rid` under `key`, if there is one and `may_go` says so. `may_go` is called while no
    /// other thread can enter the key, and must not use the index.
    pub fn remove_if(&self, key: K::Ref<'_>, rid: Rid, may_go: impl FnOnce() -> bool) {
        let (guard, mut removed) = (&sync::pin(), None);
        self.tree.alter(key, guard, false, |value| {
            // SAFETY: the value is that of an entry whose leaf is held, and the guard was pinned before.
            match value.filter(|value| may_go() && unsafe { rids::take(value, guard, rid) }) {
                Some(value) => {
                    removed = Some(value.load(Ordering::Relaxed));
                    Change::Remove
                }
                None => Change::Keep,
            }
        });
        if let Some(value) = removed {
            // SAFETY: the entry is gone, and this thread removed it. A reader of its value was pinned before.
            unsafe { rids::retire(value, guard) };
        }
    }

    /// The keys in `range`, in key order, from either end, each with its Rids, newest first.
    pub fn range<'k>(&self, range: impl RangeBounds<K::Ref<'k>>) -> UniqueRange<'_, K, L> {
        UniqueRange { index: self, entries: self.tree.range(range) }
    }

    /// How many keys there are, counted leaf by leaf: exact if no thread writes meanwhile.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The memory that the index takes, looked up node by node: exact if no thread writes meanwhile.
    pub fn bytes(&self) -> usize {
        let lists = self.tree.sum_of_level(0, |leaf| {
            let values: SmallVec<[u64; 64]> = (0..leaf.shape().count).map(|index| leaf.value(index)).collect();
            leaf.check()?;
            // SAFETY: the check has shown that the values were those of entries, under the guard.
            Ok(values.iter().map(|value| unsafe { rids::bytes(*value, leaf.guard()) }).sum())
        });
        self.tree.bytes() + lists
    }

    /// The Rids of a key, given a value that it had.
    fn rids(&self, key: &K::Owned, value: u64) -> Option<KeyRids> {
        if let Some(rid) = rids::only(value) {
            return Some(KeyRids::from_slice(&[rid]));
        }
        // The list may be gone by now: it is looked up again, under a guard.
        let mut rids = KeyRids::new();
        self.find(&sync::pin(), K::of(key), |rid| {
            rids.push(rid);
            None::<()>
        });
        (!rids.is_empty()).then_some(rids)
    }
}

impl<K: Key, L: Latching> Drop for UniqueTree<K, L> {
    fn drop(&mut self) {
        let values = |leaf: &Visit<'_, '_, K, u64, L>| {
            Ok((0..leaf.shape().count).map(|index| leaf.value(index)).collect::<SmallVec<[u64; 64]>>())
        };
        self.tree.each_of_level(0, values, |values| {
            // SAFETY: each value is in the tree once, and `&mut self` proves that no thread looks at it any more.
            values.into_iter().for_each(|value| unsafe { rids::free(value) });
        });
    }
}

/// An iterator over keys and their Rids; see [`UniqueTree::range`].
pub struct UniqueRange<'t, K: Key, L: Latching = NodeLatches> {
    index: &'t UniqueTree<K, L>,
    entries: TreeRange<'t, K, u64, L>,
}

impl<K: Key, L: Latching> Iterator for UniqueRange<'_, K, L> {
    type Item = (K::Owned, KeyRids);

    fn next(&mut self) -> Option<Self::Item> {
        let (index, entries) = (self.index, &mut self.entries);
        entries.find_map(|(key, value)| index.rids(&key, value).map(|rids| (key, rids)))
    }
}

impl<K: Key, L: Latching> DoubleEndedIterator for UniqueRange<'_, K, L> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let (index, entries) = (self.index, self.entries.by_ref());
        entries.rev().find_map(|(key, value)| index.rids(&key, value).map(|rids| (key, rids)))
    }
}
