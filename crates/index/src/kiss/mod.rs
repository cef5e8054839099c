//! KISS-Tree: an ordered index without latches for readers, at two to three memory accesses a lookup
//! (Kissinger et al., *KISS-Tree: Smart Latch-Free In-Memory Indexing on Modern Architectures*, 2012).
//!
//! A 32-bit key is split 16/10/6 (section 3). The first 16 bits choose a page of the second level whose place is
//! computed, the next 10 a slot with a compact pointer of 4 bytes, the last 6 a value in a compressed node, which
//! every change replaces by a copy and one compare-and-swap:
//!
//! ```text
//!            key:  [ upper 32 bits | 16 | 10 | 6 ]
//!                       |             |    |   |
//!   trie ---------------+     page ---+    |   |        one mapping, memory only where something is written
//!   compressed nodes,         [ slot | slot | slot ... ]   pages of 1,024 slots
//!   for all that is           [ slot | SLOT | ...      ]
//!   not in a page                        |     |
//!                                        v     |
//!                             [ bitmap | value | VALUE ]   blocks of 64 sizes
//! ```
//!
//! Beyond the paper:
//! - **64-bit keys** (section 7): what is not in a page lives in a trie of compressed nodes ([`trie`]). The pages cover
//!   the 2^32 keys below one upper half, the home of the tree, which is chosen when it is made.
//! - **Small trees stay small**: also within the home a page is used only once its part of the trie is crowded
//!   ([`growth`]). The paper's tree takes 4 KiB for each of 1,000 keys at random; here it is about 60 bytes.
//! - **Values in place** (section 7): with [`Versioned`] slots an update of a value copies nothing ([`level_two`]).
//! - **No limit on the number of trees**: segments grow by chunks ([`blocks`]).
//! - **Large pages**, but only where they will be filled ([`Pages`]).
//!
//! A key has one value, a word of 64 bits. An index that needs several Rids for a key stores a word that leads to
//! them, and exchanges it under [`KissTree::change`]: the tree promises that the value seen is the one replaced.
//! A list in the tree would cost every node a tag bit and every reader a branch, for the rare case.
mod batch;
mod blocks;
mod growth;
mod iterate;
mod level_two;
mod link;
mod mapping;
mod node;
mod runs;
mod trie;

#[cfg(all(test, shuttle))]
mod models;
#[cfg(test)]
mod races;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use sync::Guard;
use sync::zeroed::AtomicU64;
use types::Rid;

pub use iterate::Range;
pub use level_two::{Compact, Versioned};
pub use mapping::{AddressSpaceError, Pages};
pub use node::Change;
pub(crate) use node::FANOUT;
pub use runs::LikelyRecords;
pub(crate) use runs::Runs;

use blocks::Arena;
use level_two::{LevelTwo, PAGE_SLOTS, Slot};
use node::{Edit, ManyKeys, OneKey, base_of, bit_of};
use trie::{Outcome, Trie};

/// A value of the tree: anything that is a word of 64 bits.
pub trait Word: Copy {
    /// The value as a word.
    fn word(self) -> u64;
    /// The value of a word that [`Word::word`] returned.
    fn from_word(word: u64) -> Self;
}

impl Word for u64 {
    #[inline]
    fn word(self) -> u64 {
        self
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        word
    }
}

impl Word for Rid {
    #[inline]
    fn word(self) -> u64 {
        Rid::word(self)
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Rid::from_word(word)
    }
}

/// How a tree is made.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct KissOptions {
    /// The upper 32 bits of the keys that get pages. Keys elsewhere are right as well, and live in the trie.
    pub home: u32,
    /// With what pages its memory is backed.
    pub pages: Pages,
}

/// What a tree takes, in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct KissMemory {
    /// Pages of the second level in use.
    pub page_bytes: u64,
    /// Blocks that threads have claimed for compressed nodes, free ones included.
    pub block_bytes: u64,
    /// Nodes and leaves of the trie.
    pub trie_bytes: u64,
    /// How many blocks hold a node.
    pub block_count: u64,
}

/// What readers, writers and work deferred to the end of a grace period share.
struct KissState<S> {
    arena: Arc<Arena>,
    level_two: LevelTwo<S>,
    trie: Trie,
}

/// An ordered index from 64-bit keys to words. All operations take `&self`, from any number of threads; readers take
/// no latch and never wait.
pub struct KissTree<V, S: Slot = Compact> {
    shared: Arc<KissState<S>>,
    values: PhantomData<fn(V) -> V>,
}

impl<V: Word> KissTree<V> {
    /// Creates an empty tree with the keys below 2^32 as its home. Reserves 257 MiB of address space and takes no
    /// memory.
    ///
    /// # Errors
    /// [`AddressSpaceError`] if the system refuses the address space.
    pub fn new() -> Result<Self, AddressSpaceError> {
        Self::with_options(KissOptions::default())
    }
}

impl<V: Word, S: Slot> KissTree<V, S> {
    /// An empty tree with options.
    ///
    /// # Errors
    /// [`AddressSpaceError`] if the system refuses the address space.
    pub fn with_options(options: KissOptions) -> Result<Self, AddressSpaceError> {
        let (arena, level_two) = (Arena::new(options.pages)?, LevelTwo::new(options)?);
        let shared = Arc::new(KissState { arena, level_two, trie: Trie::new() });
        Ok(KissTree { shared, values: PhantomData })
    }

    /// The value of a key. Pinning the epoch is about half of its cost; see [`KissTree::get_pinned`].
    #[inline]
    pub fn get(&self, key: u64) -> Option<V> {
        self.get_pinned(key, &sync::pin())
    }

    /// The value of a key, for a caller that has already pinned the epoch, for several lookups.
    #[inline(always)]
    pub fn get_pinned(&self, key: u64, guard: &Guard) -> Option<V> {
        self.shared.get(key, guard).map(V::from_word)
    }

    /// Looks up many keys, several at a time, and appends one answer for each to `found`, in their order.
    pub fn get_batch(&self, keys: &[u64], found: &mut Vec<Option<V>>) {
        let guard = sync::pin();
        found.reserve(keys.len());
        self.shared.get_many(keys, &guard, |word| found.push(word.map(V::from_word)));
    }

    /// Looks at most sixteen keys up for a caller that has pinned the epoch, and tells the place and the value of each
    /// that is there.
    ///
    /// # Panics
    /// If there are more keys.
    #[inline]
    pub fn get_few(&self, keys: &[u64], guard: &Guard, mut tell: impl FnMut(usize, V)) {
        self.shared.get_few(keys, guard, |at, word| tell(at, V::from_word(word)));
    }

    /// Tells the keys of a node that lie from `low` to `high`, in their order, each with its value, for a caller that has pinned the
    /// epoch. The way to the node is gone once for all of them.
    ///
    /// # Panics
    /// If these are keys of two nodes, which have 64 each.
    #[inline]
    pub fn each_of_node(&self, (low, high): (u64, u64), guard: &Guard, mut tell: impl FnMut(u64, V)) {
        assert_eq!(node::base_of(low), node::base_of(high), "keys of one node");
        let Some(node) = self.shared.node(low, guard) else { return };
        let keys = node.entries(node::base_of(low)).filter(|(key, _)| (low..=high).contains(key));
        keys.for_each(|(key, word)| tell(key, V::from_word(word)));
    }

    /// Gives a key a value unless it has one, and returns the one that it has.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn insert(&self, key: u64, value: V) -> Result<Option<V>, AddressSpaceError> {
        self.change(key, |found| if found.is_some() { Change::Keep } else { Change::Set(value) })
    }

    /// As [`insert`](Self::insert), for a caller that has pinned the epoch.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn insert_pinned(&self, key: u64, value: V, guard: &Guard) -> Result<Option<V>, AddressSpaceError> {
        self.change_pinned(key, guard, |found| if found.is_some() { Change::Keep } else { Change::Set(value) })
    }

    /// Gives a key a value, and returns the one that it had.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn upsert(&self, key: u64, value: V) -> Result<Option<V>, AddressSpaceError> {
        self.change(key, |_| Change::Set(value))
    }

    /// Removes a key, and returns the value that it had. The neighbours that stay need a smaller node, so this can fail
    /// like an insert.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn remove(&self, key: u64) -> Result<Option<V>, AddressSpaceError> {
        self.change(key, |_| Change::Remove)
    }

    /// Changes the entry of a key in one step: `decide` sees its value and says what to do. Returns the value before.
    /// `decide` may be asked again, when another thread has changed a neighbour meanwhile; its last answer counts.
    ///
    /// # Errors
    /// [`AddressSpaceError`] if the system refuses address space for a node, or all blocks of its size are in use.
    /// Nothing has changed then.
    pub fn change(&self, key: u64, decide: impl FnMut(Option<V>) -> Change<V>) -> Result<Option<V>, AddressSpaceError> {
        self.change_pinned(key, &sync::pin(), decide)
    }

    fn change_pinned(
        &self,
        key: u64,
        guard: &Guard,
        mut decide: impl FnMut(Option<V>) -> Change<V>,
    ) -> Result<Option<V>, AddressSpaceError> {
        let mut edit = OneKey::new(key, |found: Option<u64>| match decide(found.map(V::from_word)) {
            Change::Keep => Change::Keep,
            Change::Set(value) => Change::Set(value.word()),
            Change::Remove => Change::Remove,
        });
        self.shared.change(&mut edit, guard)?;
        Ok(edit.found.map(V::from_word))
    }

    /// Inserts many entries, replacing the values of keys that are there. Neighbours that follow one another in key
    /// order share one copy of their node, so sorted entries are loaded many times faster. Others may read and write
    /// meanwhile.
    ///
    /// # Errors
    /// [`AddressSpaceError`] as [`change`](Self::change). A prefix of the entries has been loaded then.
    pub fn load(&self, entries: impl IntoIterator<Item = (u64, V)>) -> Result<(), AddressSpaceError> {
        let (mut base, mut bitmap, mut values) = (0, 0u64, Vec::with_capacity(FANOUT));
        for (key, value) in entries {
            let is_next = base_of(key) == base && bitmap < bit_of(key);
            if !is_next {
                self.load_node(base, bitmap, &values)?;
                values.clear();
                (base, bitmap) = (base_of(key), 0);
            }
            bitmap |= bit_of(key);
            values.push(value.word());
        }
        self.load_node(base, bitmap, &values)
    }

    /// Inserts entries of one node, with keys in ascending order, if none of the keys is there; returns whether it did.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn insert_new(&self, keys: &[u64], values: &[V]) -> Result<bool, AddressSpaceError> {
        let Some(first) = keys.first() else { return Ok(true) };
        let bitmap = keys.iter().fold(0, |bitmap, key| bitmap | bit_of(*key));
        debug_assert!(keys.is_sorted() && keys.iter().all(|key| base_of(*key) == base_of(*first)));
        let words: SmallVec<[u64; FANOUT]> = values.iter().map(|value| value.word()).collect();
        let mut edit = ManyKeys::only_new(base_of(*first), bitmap, &words);
        self.shared.change(&mut edit, &sync::pin())?;
        Ok(!edit.has_met)
    }

    fn load_node(&self, base: u64, bitmap: u64, values: &[u64]) -> Result<(), AddressSpaceError> {
        if bitmap == 0 {
            return Ok(());
        }
        self.shared.change(&mut ManyKeys::new(base, bitmap, values), &sync::pin())
    }

    /// The entries with keys in `range`, in key order, from either end. While other threads write, the iterator
    /// sees every entry that is there all the time, and none that was gone before; an entry that changes meanwhile
    /// is seen as it was or as it is. The iterator holds back no memory between two steps.
    pub fn range(&self, range: impl RangeBounds<u64>) -> Range<'_, V, S> {
        Range::new(self, range)
    }

    /// The entries with keys that share their upper `bits` bits with `key`.
    pub fn prefix(&self, key: u64, bits: u32) -> Range<'_, V, S> {
        let below = u64::MAX.checked_shr(bits).unwrap_or(0);
        self.range(key & !below..=key | below)
    }

    /// What the tree takes at the moment. Walks the trie.
    pub fn memory(&self) -> KissMemory {
        let counts = self.shared.arena.counts();
        KissMemory {
            page_bytes: (self.shared.level_two.page_count() * PAGE_SLOTS * size_of::<S>()) as u64,
            block_bytes: counts.claimed_bytes,
            trie_bytes: self.shared.trie.bytes(&sync::pin()),
            block_count: counts.used,
        }
    }
}

impl<S: Slot> KissState<S> {
    /// Whether a key is to be found in a page.
    #[inline]
    fn is_dense(&self, key: u64) -> bool {
        self.level_two.page_of(key).is_some_and(|page| self.level_two.is_dense(page))
    }

    #[inline(always)]
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        let value = if self.is_dense(key) { self.value_in_page(key, guard) } else { self.value_in_trie(key, guard) };
        value.map(|value| value.load(Ordering::Acquire))
    }

    /// The node that has a key and its neighbours, if any of them is there.
    fn node<'g>(&'g self, key: u64, guard: &'g Guard) -> Option<node::Node<'g>> {
        if self.is_dense(key) {
            // SAFETY: the pointer comes from a slot of this tree, read under the guard.
            return unsafe { self.arena.node(self.level_two.pointer(key), guard) };
        }
        self.trie.node(key, guard)
    }

    #[inline(never)]
    fn value_in_trie<'g>(&'g self, key: u64, guard: &'g Guard) -> Option<&'g AtomicU64> {
        // Should the page become dense now, the trie keeps what it has of it until this guard is gone.
        self.trie.node(key, guard)?.value_of(key)
    }

    /// Where the value of a key of a dense page is: slot, node, value (section 4.2).
    #[inline(always)]
    fn value_in_page<'g>(&'g self, key: u64, guard: &'g Guard) -> Option<&'g AtomicU64> {
        let pointer = self.level_two.pointer(key);
        // SAFETY: the pointer comes from a slot of this tree, read under the guard.
        match unsafe { self.arena.full_node(pointer, guard) } {
            // SAFETY: the node is full.
            Some(node) => Some(unsafe { node.full_value(key) }),
            // SAFETY: as above.
            None => unsafe { self.arena.node(pointer, guard) }?.value_of(key),
        }
    }

    /// Applies an edit where its keys live.
    fn change<E: Edit>(self: &Arc<Self>, edit: &mut E, guard: &Guard) -> Result<(), AddressSpaceError> {
        loop {
            let page = self.level_two.page_of(edit.base());
            if page.is_some_and(|page| self.level_two.is_dense(page)) {
                return self.level_two.change(&self.arena, edit, guard);
            }
            match (self.trie.change(edit, guard), page) {
                (Outcome::Crowded, Some(page)) => {
                    self.grow(page, guard);
                    return Ok(());
                }
                (Outcome::Moved, Some(page)) => self.level_two.wait_while_closing(page),
                _ => return Ok(()),
            }
        }
    }
}
