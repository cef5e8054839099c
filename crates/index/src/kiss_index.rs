//! A KISS-Tree of Rids: each integer key leads to the base Rids that had it, nearly always one.
//!
//! ```text
//! key -> value of the tree: one Rid, or the address of a list of several, oldest first (see `rids`)
//! ```
//!
//! Readers take no latch. The tree replaces values by compare-and-swap, but a list grows in place, and a new value is
//! published before the one that it replaces is given up; so a writer holds one of a few latches, chosen by the key,
//! meanwhile. Of two writers with one key, one thus sees the other's entry.
//!
//! Where neighbouring keys were given to records that follow one another, a reader that only needs a record to look at need not go to
//! the tree: see [`KissIndex::likely`].
use std::ops::RangeBounds;

use smallvec::SmallVec;
use sync::{CachePadded, Guard, Latch, SpinLatch};
use types::Rid;

use crate::Holder;
use crate::btree::KeyRids;
use crate::kiss::{AddressSpaceError, Compact, FANOUT, KissOptions, KissTree, LikelyRecords, Range, Runs};
use crate::rids::{self, RidRemoval};

/// Writers of different keys rarely meet at one of so many latches. A power of two.
const LATCHES: usize = 64;

/// Why a record was not entered under a key.
#[derive(Debug)]
pub enum InsertError {
    /// This record has the key already.
    Present(Rid),
    /// The index gets no address space for the key.
    NoRoom(AddressSpaceError),
}

impl From<AddressSpaceError> for InsertError {
    fn from(error: AddressSpaceError) -> InsertError {
        InsertError::NoRoom(error)
    }
}

/// Keys that one node may have.
const NEIGHBOURS: u64 = FANOUT as u64;

/// An ordered index from integer keys to base Rids.
pub struct KissIndex {
    tree: KissTree<u64>,
    latches: Box<[CachePadded<SpinLatch>]>,
    runs: Runs,
}

impl KissIndex {
    /// Keys of a run (see [`KissIndex::likely`]); the first is a multiple of it.
    pub const RUN_KEYS: u64 = NEIGHBOURS;

    /// Creates an empty index with the keys of these upper 32 bits as its home.
    ///
    /// # Errors
    /// If the process has no address space left for it.
    pub fn new(home: u32) -> Result<Self, AddressSpaceError> {
        let tree = KissTree::with_options(KissOptions { home, ..KissOptions::default() })?;
        let latches = (0..LATCHES).map(|_| CachePadded::default()).collect();
        Ok(KissIndex { tree, latches, runs: Runs::new(home) })
    }

    /// Does what one writer of a key at a time may do.
    fn latched<R>(&self, key: u64, work: impl FnOnce(&Guard) -> R) -> R {
        let guard = sync::pin();
        let _held = self.latches[(key ^ key >> 6) as usize % LATCHES].exclusive();
        work(&guard)
    }

    /// The first of the key's Rids, newest first, for which `accept` returns something. `accept` may be asked twice
    /// about a Rid.
    #[inline]
    pub fn find<T>(&self, guard: &Guard, key: u64, accept: impl FnMut(Rid) -> Option<T>) -> Option<T> {
        let value = self.tree.get_pinned(key, guard)?;
        // SAFETY: the value was read from an entry under this guard; the tree reads its nodes with acquire.
        unsafe { rids::find(value, guard, accept) }
    }

    /// Adds an entry, even if other records have the key.
    ///
    /// # Errors
    /// If the tree gets no address space for the key; nothing was added.
    pub fn insert(&self, key: u64, rid: Rid) -> Result<(), AddressSpaceError> {
        match self.insert_unique(key, rid, |_| Holder::Past) {
            Err(InsertError::NoRoom(error)) => Err(error),
            Ok(()) | Err(InsertError::Present(_)) => Ok(()),
        }
    }

    /// Adds an entry unless a record that has the key already is there; see
    /// [`UniqueTree::insert_unique`](crate::UniqueTree::insert_unique).
    ///
    /// # Errors
    /// - [`InsertError::Present`] with the record that has the key already, for which `holder` has said
    ///   [`Holder::Present`].
    /// - [`InsertError::NoRoom`] if the tree gets no address space for the key.
    ///
    /// Nothing was added then.
    pub fn insert_unique(&self, key: u64, rid: Rid, holder: impl FnMut(Rid) -> Holder) -> Result<(), InsertError> {
        debug_assert!(!rid.is_tail());
        self.latched(key, |guard| {
            // A key that is new, as most are, is entered by this one descent.
            let Some(value) = self.tree.insert_pinned(key, rid.word(), guard)? else {
                self.note_run(key, rid, guard);
                return Ok(());
            };
            self.runs.forget(key);
            // SAFETY: the value was read from an entry under the guard, and the key's latch is held; `replace` takes over both
            // values.
            if let Some(successor) = unsafe { rids::added(value, guard, rid, holder) }.map_err(InsertError::Present)? {
                // SAFETY: the value was read from the key's entry, under its latch, and `added` made the successor.
                unsafe { self.replace(key, value, successor, guard) }?;
            }
            Ok(())
        })
    }

    /// Adds entries of ascending keys, none of which is there, with Rids that follow one another: the first of them, as many as fit
    /// together. Returns how many; 0 where the first key, or one beside it, is there already, and is to be entered alone.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_new(&self, keys: &[u64], first: Rid) -> Result<usize, AddressSpaceError> {
        let together = |pair: &[u64]| pair[0] < pair[1] && pair[0] / NEIGHBOURS == pair[1] / NEIGHBOURS;
        let count = keys.len().min(1 + keys.windows(2).take_while(|pair| together(pair)).count());
        let rids: SmallVec<[u64; NEIGHBOURS as usize]> =
            (0..count).map(|at| Rid::base(first.range(), first.slot() + at).word()).collect();
        // A key that is not there has no list that another thread could be changing under its latch.
        if count == 0 || !self.tree.insert_new(&keys[..count], &rids)? {
            return Ok(0);
        }
        let last = Rid::base(first.range(), first.slot() + count - 1);
        if count as u64 == NEIGHBOURS {
            self.runs.note(keys[0], first);
        } else {
            self.note_run(keys[count - 1], last, &sync::pin());
        }
        Ok(count)
    }

    /// Adds entries of ascending keys, none of which is there: the first of them, as many as go into one node. Returns how many; 0 where
    /// one of these is there already, and the first is to be entered alone.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_sorted(&self, entries: &[(u64, Rid)]) -> Result<usize, AddressSpaceError> {
        let together = |pair: &[(u64, Rid)]| pair[0].0 < pair[1].0 && pair[0].0 / NEIGHBOURS == pair[1].0 / NEIGHBOURS;
        let count = entries.len().min(1 + entries.windows(2).take_while(|pair| together(pair)).count());
        let (keys, rids): (SmallVec<[u64; NEIGHBOURS as usize]>, SmallVec<[u64; NEIGHBOURS as usize]>) =
            entries[..count].iter().map(|(key, rid)| (*key, rid.word())).unzip();
        debug_assert!(entries[..count].iter().all(|(_, rid)| !rid.is_tail()));
        // A key that is not there has no list that another thread could be changing under its latch.
        if count == 0 || !self.tree.insert_new(&keys, &rids)? {
            return Ok(0);
        }
        let (last, rid) = entries[count - 1];
        if (count as u64) < NEIGHBOURS {
            self.note_run(last, rid, &sync::pin());
        } else if rids.is_sorted_by(|one, next| *next == one + 1) {
            self.runs.note(keys[0], entries[0].1);
        }
        Ok(count)
    }

    /// Notes the run that this entry ends, if it is the last of its neighbours and they are one.
    #[inline]
    fn note_run(&self, key: u64, rid: Rid, guard: &Guard) {
        if key % NEIGHBOURS == NEIGHBOURS - 1 && rid.slot() as u64 >= NEIGHBOURS - 1 {
            self.note_run_of(key - (NEIGHBOURS - 1), rid.word() - (NEIGHBOURS - 1), guard);
        }
    }

    #[inline(never)]
    fn note_run_of(&self, first_key: u64, first: u64, guard: &Guard) {
        if (0..NEIGHBOURS).all(|at| self.tree.get_pinned(first_key + at, guard) == Some(first + at)) {
            self.runs.note(first_key, Rid::from_word(first));
        }
    }

    /// Puts `successor` into a key's entry and retires `value`, which was there; or frees `successor`, where the tree gets no
    /// address space for a node with it.
    ///
    /// # Safety
    /// The caller holds the key's latch and read `value` from the entry under `guard`; no thread but the caller's has
    /// `successor`, which the caller gives up.
    unsafe fn replace(&self, key: u64, value: u64, successor: u64, guard: &Guard) -> Result<(), AddressSpaceError> {
        match self.tree.upsert(key, successor) {
            // SAFETY: this thread has taken the value out of its entry, as it alone writes the entry.
            Ok(_) => unsafe { rids::retire(value, guard) },
            Err(error) => {
                // SAFETY: the successor was not published, and the caller gave it up.
                unsafe { rids::free(successor) };
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes the entry of `rid` under `key`, if there is one.
    ///
    /// # Errors
    /// As [`KissIndex::remove_if`].
    pub fn remove(&self, key: u64, rid: Rid) -> Result<(), AddressSpaceError> {
        self.remove_if(key, rid, || true)
    }

    /// Removes the entry of `rid` under `key`, if there is one and `may_go` says so. `may_go` is called while no
    /// other thread can enter the key, and must not use the index.
    ///
    /// # Errors
    /// If the tree gets no address space for the smaller node of the keys that stay; the entry is still there.
    pub fn remove_if(&self, key: u64, rid: Rid, may_go: impl FnOnce() -> bool) -> Result<(), AddressSpaceError> {
        self.latched(key, |guard| {
            let Some(value) = self.tree.get_pinned(key, guard) else { return Ok(()) };
            if !may_go() {
                return Ok(());
            }
            self.runs.forget(key);
            // SAFETY: the value was read from an entry under the guard, and the key's latch is held; `replace` takes over both
            // values, or the value is retired here.
            match unsafe { rids::taken(value, guard, rid) } {
                RidRemoval::Nothing => Ok(()),
                // SAFETY: the value was read from the key's entry, under its latch, and `taken` made the successor.
                RidRemoval::Left(successor) => unsafe { self.replace(key, value, successor, guard) },
                RidRemoval::Last => {
                    self.tree.remove(key)?;
                    // SAFETY: this thread has taken the value out of its entry, as it alone writes the entry.
                    unsafe { rids::retire(value, guard) };
                    Ok(())
                }
            }
        })
    }

    /// A record that was given the key when it was inserted, most likely the newest such, without a look at the tree. `None` says
    /// nothing about the key.
    ///
    /// A caller that finds the record there, and knows that no record has changed its key, has the one that has the key, as a key has
    /// one record at a time. A caller that does not find it there has to ask further.
    #[inline(always)]
    pub fn likely(&self, key: u64) -> Option<Rid> {
        self.runs.record(key)
    }

    /// As [`likely`](Self::likely), for a caller that asks for many keys.
    #[inline(always)]
    pub fn likely_records(&self) -> LikelyRecords<'_> {
        self.runs.now()
    }

    /// Asks for many keys at a time, and appends the newest Rid of each to `found`, in their order.
    pub fn newest_batch(&self, keys: &[u64], found: &mut Vec<Option<Rid>>) {
        let (guard, mut values) = (sync::pin(), Vec::with_capacity(keys.len()));
        self.tree.get_batch(keys, &mut values);
        // SAFETY: the values were read from entries under the guard; the tree reads its nodes with acquire.
        let newest = |value: Option<u64>| value.and_then(|value| unsafe { rids::find(value, &guard, Some) });
        found.extend(values.into_iter().map(newest));
    }

    /// The key's newest Rid, for a caller that has pinned the epoch.
    #[inline(always)]
    pub fn newest(&self, key: u64, guard: &Guard) -> Option<Rid> {
        let value = self.tree.get_pinned(key, guard)?;
        // SAFETY: the value was read from an entry under this guard; the tree reads its nodes with acquire.
        rids::only(value).or_else(|| unsafe { rids::newest(value, guard) })
    }

    /// Tells the newest Rid of each of at most sixteen keys that has one, with the key's place, for a caller that has pinned the
    /// epoch.
    ///
    /// # Panics
    /// If there are more keys than that.
    #[inline]
    pub fn newest_few(&self, keys: &[u64], guard: &Guard, mut tell: impl FnMut(usize, Rid)) {
        self.tree.get_few(keys, guard, |at, value| {
            // SAFETY: the value was read from an entry under the guard; the tree reads its nodes with acquire.
            if let Some(rid) = unsafe { rids::find(value, guard, Some) } {
                tell(at, rid);
            }
        });
    }

    /// Tells the keys from `low` to `high`, of the same [`RUN_KEYS`](Self::RUN_KEYS), in their order, each with its newest Rid, for a
    /// caller that has pinned the epoch.
    ///
    /// # Panics
    /// If the keys are of two such groups.
    #[inline]
    pub fn newest_of_neighbours(&self, (low, high): (u64, u64), guard: &Guard, mut tell: impl FnMut(u64, Rid)) {
        self.tree.each_of_node((low, high), guard, |key, value| {
            // SAFETY: as in `newest_few`.
            if let Some(rid) = unsafe { rids::find(value, guard, Some) } {
                tell(key, rid);
            }
        });
    }

    /// The keys in `range`, in key order, from either end, each with its Rids, newest first.
    pub fn range(&self, range: impl RangeBounds<u64>) -> KissRids<'_> {
        KissRids { index: self, entries: self.tree.range(range) }
    }

    /// The Rids of a key, given a value that it had.
    fn rids(&self, key: u64, value: u64) -> Option<KeyRids> {
        if let Some(rid) = rids::only(value) {
            return Some(KeyRids::from_slice(&[rid]));
        }
        // The list may be gone by now: it is looked up again, under a guard.
        let mut rids = KeyRids::new();
        self.find(&sync::pin(), key, |rid| {
            rids.push(rid);
            None::<()>
        });
        (!rids.is_empty()).then_some(rids)
    }

    /// The memory that the index takes, lists left out. Walks the trie.
    pub fn bytes(&self) -> usize {
        let memory = self.tree.memory();
        (memory.page_bytes + memory.block_bytes + memory.trie_bytes + self.runs.bytes()) as usize
    }
}

impl Drop for KissIndex {
    fn drop(&mut self) {
        for (_, value) in self.tree.range(..) {
            // SAFETY: the value is in the tree once, and `&mut self` proves that nobody looks at it any more.
            unsafe { rids::free(value) };
        }
    }
}

/// An iterator over keys and their Rids; see [`KissIndex::range`].
pub struct KissRids<'t> {
    index: &'t KissIndex,
    entries: Range<'t, u64, Compact>,
}

impl Iterator for KissRids<'_> {
    type Item = (u64, KeyRids);

    fn next(&mut self) -> Option<Self::Item> {
        let (index, entries) = (self.index, &mut self.entries);
        entries.find_map(|(key, value)| index.rids(key, value).map(|rids| (key, rids)))
    }
}

impl DoubleEndedIterator for KissRids<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let (index, entries) = (self.index, self.entries.by_ref());
        entries.rev().find_map(|(key, value)| index.rids(key, value).map(|rids| (key, rids)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn rid(slot: usize) -> Rid {
        Rid::base(0, slot)
    }

    fn all(index: &KissIndex, key: u64) -> Vec<Rid> {
        let mut found = Vec::new();
        index.find(&sync::pin(), key, |rid| {
            found.push(rid);
            None::<()>
        });
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 128 }))]

        /// Within the home of the tree, below and above it.
        #[test]
        fn an_index_is_a_map_from_keys_to_lists(
            steps in prop::collection::vec((0..4u8, 0..6u64, 0..5usize), 1..150),
            home in 0..2u32,
        ) {
            let (index, mut model) = (KissIndex::new(home).unwrap(), BTreeMap::<u64, Vec<Rid>>::new());
            for (step, key, slot) in steps {
                let pair = [0, 1].map(|at| key / 2 * (1 << 32) + key / 2 * 2 + at);
                let key = key / 2 * (1 << 32) + key;
                if step == 3 {
                    let are_new = pair.iter().all(|key| model.get(key).is_none_or(Vec::is_empty));
                    prop_assert_eq!(index.insert_new(&pair, rid(slot)).unwrap(), if are_new { 2 } else { 0 });
                    if are_new {
                        (0..2).for_each(|at| model.entry(pair[at]).or_default().push(rid(slot + at)));
                    }
                    continue;
                }
                let rids = model.entry(key).or_default();
                let present = rids.iter().rev().copied().find(|rid| rid.slot() == 3 && slot != 3);
                match step {
                    0 => {
                        let holder = |rid: Rid| if rid.slot() == 3 { Holder::Present } else { Holder::Past };
                        let claimed = index.insert_unique(key, rid(slot), holder);
                        let holding = claimed.err().map(|error| match error {
                            InsertError::Present(rid) => rid,
                            InsertError::NoRoom(error) => panic!("{error}"),
                        });
                        prop_assert_eq!(holding, present);
                        if present.is_none() {
                            rids.retain(|known| *known != rid(slot));
                            rids.push(rid(slot));
                        }
                    }
                    1 => {
                        index.insert(key, rid(slot)).unwrap();
                        rids.retain(|known| *known != rid(slot));
                        rids.push(rid(slot));
                    }
                    _ => {
                        index.remove(key, rid(slot)).unwrap();
                        rids.retain(|known| *known != rid(slot));
                    }
                }
                let newest_first: Vec<Rid> = rids.iter().rev().copied().collect();
                prop_assert_eq!(all(&index, key), newest_first);
            }
            model.retain(|_, rids| !rids.is_empty());
            let expected: Vec<(u64, Vec<Rid>)> =
                model.into_iter().map(|(key, rids)| (key, rids.into_iter().rev().collect())).collect();
            let upward: Vec<_> = index.range(..).map(|(key, rids)| (key, rids.to_vec())).collect();
            let mut downward: Vec<_> = index.range(..).rev().map(|(key, rids)| (key, rids.to_vec())).collect();
            downward.reverse();
            prop_assert_eq!(&upward, &expected);
            prop_assert_eq!(&downward, &expected);
        }
    }

    #[test]
    fn neighbours_that_follow_one_another_are_a_run_until_one_changes() {
        let home = 1 << 31;
        let index = KissIndex::new(home).unwrap();
        let key = |at: u64| u64::from(home) << 32 | at;
        let keys = |from: u64, to: u64| (from..to).map(key).collect::<Vec<_>>();
        // All at once, in parts, one by one, and with one out of turn.
        assert_eq!(index.insert_new(&keys(0, 70), rid(5)).unwrap(), 64);
        assert_eq!(index.insert_new(&keys(64, 100), rid(100)).unwrap(), 36);
        assert_eq!(
            (index.likely(key(0)), index.likely(key(63)), index.likely(key(64))),
            (Some(rid(5)), Some(rid(68)), None)
        );
        assert_eq!(index.insert_new(&keys(100, 130), rid(136)).unwrap(), 28);
        (128..192).for_each(|at| index.insert(key(at), rid(1000 + at as usize)).unwrap());
        (192..256).for_each(|at| index.insert(key(at), rid(if at == 200 { 9 } else { 2000 + at as usize })).unwrap());
        for at in 64..192 {
            let expected = if at < 128 { 36 + at as usize } else { 1000 + at as usize };
            assert_eq!(index.likely(key(at)), Some(rid(expected)), "{at}");
        }
        assert!((192..256).all(|at| index.likely(key(at)).is_none()));
        let sorted = |from: u64, to: u64, step: usize| {
            (from..to).map(|at| (key(at), rid(step * at as usize))).collect::<Vec<_>>()
        };
        let enter = |entries: Vec<(u64, Rid)>| index.insert_sorted(&entries).unwrap();
        assert_eq!([enter(sorted(256, 330, 1)), enter(sorted(320, 384, 2)), enter(sorted(300, 310, 1))], [64, 64, 0]);
        assert_eq!([enter(sorted(384, 400, 1)), enter(sorted(400, 460, 1)), enter(sorted(448, 460, 1))], [16, 48, 12]);
        assert_eq!(enter(vec![(key(600), rid(6)), (key(600), rid(7))]), 1, "what has the same key is entered alone");
        let likely = [300, 330, 390].map(|at| index.likely(key(at)));
        assert_eq!(likely, [Some(rid(300)), None, Some(rid(390))]);
        assert_eq!([330, 600, 459].map(|at| all(&index, key(at))), [[rid(660)], [rid(6)], [rid(459)]]);
        index.insert(key(70), rid(7000)).unwrap();
        index.remove(key(140), rid(1140)).unwrap();
        assert!((64..192).all(|at| index.likely(key(at)).is_none()) && index.likely(key(1)).is_some());
    }

    #[test]
    fn one_of_many_wins_each_key_while_others_come_and_go() {
        let keys = if cfg!(miri) { 20 } else { 4_000 };
        let (index, wins) = (KissIndex::new(0).unwrap(), sync::atomic::AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (index, wins) = (&index, &wins);
                scope.spawn(move || {
                    for key in 0..keys {
                        if index.insert_unique(key, rid(thread), |_| Holder::Present).is_ok() {
                            wins.fetch_add(1, sync::atomic::Ordering::Relaxed);
                        }
                        // A list grows and shrinks while others read it.
                        index.insert(u64::MAX, rid(10 + thread)).unwrap();
                        index.remove(u64::MAX, rid(10 + (thread + 1) % 4)).unwrap();
                        assert!(all(index, u64::MAX).iter().all(|rid| (10..14).contains(&rid.slot())));
                    }
                });
            }
        });
        assert_eq!(wins.into_inner(), keys);
        let mut found = Vec::new();
        index.newest_batch(&(0..keys + 1).collect::<Vec<_>>(), &mut found);
        assert!(found.pop().unwrap().is_none() && found.iter().all(Option::is_some));
    }
}
