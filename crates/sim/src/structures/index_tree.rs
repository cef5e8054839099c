//! The indexes of tsx-index: a B+tree, and the Delta Storage Index, whose nodes hold numbers of entries of a dictionary.
//!
//! ```text
//! B+tree node:  | count, leaf | 31 keys of a word | 32 children |                                8 lines
//! Delta node:   | count, leaf; 31 numbers, two in a word | 32 children |         6 lines; a leaf uses 2 of them
//! dictionary:   | size | ... | entries, in the order of arrival |                 one, or one for each core
//! ```
//!
//! A search in the Delta Storage Index asks the dictionary for every number that it looks at, each on a line of its own (section
//! 2). The original form searches nodes from the left, appends to one dictionary and counts its nodes in one allocator; the tuned
//! form (section 5) searches by halves and has a dictionary and an allocator for each core.
//!
//! Nodes that are full are split on the way down, so that a split never goes up again.

use super::Pool;
use crate::machine::{Aborted, Address, LINE_WORDS};
use crate::memory::Memory;

/// Entries of a node.
const BRANCHING: u64 = 31;
const LEAF: u64 = 1 << 16;

/// Which of the indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// A B+tree of words.
    BPlus,
    /// The Delta Storage Index as it was.
    Delta,
    /// The Delta Storage Index after section 5.
    TunedDelta,
}

/// An index.
#[derive(Debug, Clone, Copy)]
pub struct IndexTree {
    kind: IndexKind,
    root: Address,
    /// A line with a size for each dictionary.
    sizes: Address,
    /// A line with a count for each allocator.
    allocators: Address,
    entries: Address,
    /// Entries of the first dictionary.
    capacity: u64,
}

/// Dictionaries of the tuned form. All but the first, with which the index is filled, have room for what a core inserts in a run.
const PARTS: u64 = 16;
const PART_ENTRIES: u64 = 1 << 16;

impl IndexTree {
    /// Words of a node.
    pub const NODE_WORDS: u64 = 64;

    /// An empty index with room for so many entries in its first dictionary; memory, all 0, comes from `allocate`.
    pub fn new(kind: IndexKind, capacity: u64, allocate: impl Fn(u64) -> Address) -> Self {
        let entries = match kind {
            IndexKind::BPlus => LINE_WORDS,
            IndexKind::Delta => capacity,
            IndexKind::TunedDelta => capacity + (PARTS - 1) * PART_ENTRIES,
        };
        IndexTree {
            kind,
            root: allocate(LINE_WORDS),
            sizes: allocate(LINE_WORDS * PARTS),
            allocators: allocate(LINE_WORDS * PARTS),
            entries: allocate(entries),
            capacity,
        }
    }

    /// Makes the empty root: a leaf.
    ///
    /// # Errors
    /// As the memory.
    pub async fn prepare<M: Memory>(&self, memory: &M, pool: &Pool) -> Result<(), Aborted> {
        let root = pool.take();
        memory.store(root, LEAF).await?;
        memory.store(self.root, root).await
    }

    fn is_packed(&self) -> bool {
        self.kind != IndexKind::BPlus
    }

    fn part_of<M: Memory>(&self, memory: &M) -> u64 {
        if self.kind == IndexKind::TunedDelta { memory.core() as u64 % PARTS } else { 0 }
    }

    fn child_at(&self, node: Address, at: u64) -> Address {
        node + if self.is_packed() { 16 } else { 32 } + at
    }

    /// How many entries a node has, and whether it is a leaf.
    async fn head<M: Memory>(&self, memory: &M, node: Address) -> Result<(u64, bool), Aborted> {
        let head = memory.load(node).await?;
        Ok((head & (LEAF - 1), head & LEAF != 0))
    }

    async fn set_head<M: Memory>(&self, memory: &M, node: Address, count: u64, is_leaf: bool) -> Result<(), Aborted> {
        let head = count | if is_leaf { LEAF } else { 0 };
        let others = if self.is_packed() { memory.load(node).await? & !0xffff_ffff } else { 0 };
        memory.store(node, others | head).await
    }

    async fn slot<M: Memory>(&self, memory: &M, node: Address, at: u64) -> Result<u64, Aborted> {
        let (word, shift) = self.place_of(node, at);
        Ok(memory.load(word).await? >> shift & self.slot_mask())
    }

    /// The word of a slot, and how many bits of that word lie below it.
    fn place_of(&self, node: Address, at: u64) -> (Address, u64) {
        if self.is_packed() { (node + at.div_ceil(2), (at + 1) % 2 * 32) } else { (node + 1 + at, 0) }
    }

    fn slot_mask(&self) -> u64 {
        if self.is_packed() { 0xffff_ffff } else { u64::MAX }
    }

    async fn set_slot<M: Memory>(&self, memory: &M, node: Address, at: u64, value: u64) -> Result<(), Aborted> {
        if !self.is_packed() {
            return memory.store(node + 1 + at, value).await;
        }
        let (word, shift) = self.place_of(node, at);
        let others = memory.load(word).await? & !(0xffff_ffff << shift);
        memory.store(word, others | value << shift).await
    }

    /// The key that a slot stands for.
    async fn key_of<M: Memory>(&self, memory: &M, slot: u64) -> Result<u64, Aborted> {
        if !self.is_packed() {
            return Ok(slot);
        }
        memory.load(self.entry(slot)).await
    }

    /// Where the dictionary has the key of a slot.
    fn entry(&self, slot: u64) -> Address {
        let (part, place) = (slot >> 24, slot & 0xff_ffff);
        let first = if part == 0 { 0 } else { self.capacity + (part - 1) * PART_ENTRIES };
        self.entries + first + place
    }

    /// The key of a slot, for a search. If it `is_ahead` the processor has gone on to it before it knew the key compared last.
    async fn key_at<M: Memory>(&self, memory: &M, node: Address, at: u64, is_ahead: bool) -> Result<u64, Aborted> {
        if !is_ahead {
            let slot = self.slot(memory, node, at).await?;
            return self.key_of(memory, slot).await;
        }
        let (word, shift) = self.place_of(node, at);
        let slot = memory.load_ahead(word).await? >> shift & self.slot_mask();
        if self.is_packed() { memory.load_ahead(self.entry(slot)).await } else { Ok(slot) }
    }

    /// The first slot of a node whose key is not below `key`, and whether it is that key.
    ///
    /// A search from the left is ahead all the time, as it goes on more often than it ends. A search by halves is ahead where
    /// the processor has guessed the half: here, that it is the right one.
    async fn search<M: Memory>(&self, memory: &M, node: Address, count: u64, key: u64) -> Result<(u64, bool), Aborted> {
        if self.kind == IndexKind::Delta {
            for at in 0..count {
                let found = self.key_at(memory, node, at, true).await?;
                if found >= key {
                    return Ok((at, found == key));
                }
            }
            return Ok((count, false));
        }
        let (mut low, mut high, mut is_found, mut is_ahead) = (0, count, false, false);
        while low < high {
            let middle = (low + high) / 2;
            let found = self.key_at(memory, node, middle, is_ahead).await?;
            is_ahead = found < key;
            if found < key {
                low = middle + 1;
            } else {
                high = middle;
                is_found = found == key;
                if is_found {
                    low = middle;
                }
            }
        }
        Ok((low, is_found))
    }

    /// Whether a key is in the index.
    ///
    /// # Errors
    /// As the memory.
    pub async fn contains<M: Memory>(&self, memory: &M, key: u64) -> Result<bool, Aborted> {
        let mut node = memory.load(self.root).await?;
        loop {
            let (count, is_leaf) = self.head(memory, node).await?;
            let (at, is_found) = self.search(memory, node, count, key).await?;
            if is_leaf {
                return Ok(is_found);
            }
            // A separator is the largest key of what is left of it.
            node = memory.load(self.child_at(node, at)).await?;
        }
    }

    /// Adds a key; whether it was not there.
    ///
    /// # Errors
    /// As the memory.
    pub async fn insert<M: Memory>(&self, memory: &M, key: u64, pool: &Pool) -> Result<bool, Aborted> {
        pool.begin();
        let mut node = memory.load(self.root).await?;
        if self.head(memory, node).await?.0 == BRANCHING {
            let top = self.new_node(memory, pool).await?;
            self.set_head(memory, top, 0, false).await?;
            memory.store(self.child_at(top, 0), node).await?;
            self.split(memory, top, 0, pool).await?;
            memory.store(self.root, top).await?;
            node = top;
        }
        loop {
            let (count, is_leaf) = self.head(memory, node).await?;
            let (at, is_found) = self.search(memory, node, count, key).await?;
            if is_leaf {
                if !is_found {
                    let slot = self.new_slot(memory, key).await?;
                    self.open(memory, node, count, at).await?;
                    self.set_slot(memory, node, at, slot).await?;
                    self.set_head(memory, node, count + 1, true).await?;
                }
                return Ok(!is_found);
            }
            let mut child = memory.load(self.child_at(node, at)).await?;
            if self.head(memory, child).await?.0 == BRANCHING {
                self.split(memory, node, at, pool).await?;
                let separator = self.slot(memory, node, at).await?;
                let is_right = key > self.key_of(memory, separator).await?;
                child = memory.load(self.child_at(node, at + u64::from(is_right))).await?;
            }
            node = child;
        }
    }

    /// What stands for a new key in a node: itself, or the number of a new entry of the dictionary.
    async fn new_slot<M: Memory>(&self, memory: &M, key: u64) -> Result<u64, Aborted> {
        if !self.is_packed() {
            return Ok(key);
        }
        let part = self.part_of(memory);
        let size = self.sizes + part * LINE_WORDS;
        let place = memory.load(size).await?;
        let room = if part == 0 { self.capacity } else { PART_ENTRIES };
        assert!(place < room, "the dictionary has room for all keys of a run");
        memory.store(size, place + 1).await?;
        let slot = part << 24 | place;
        memory.store(self.entry(slot), key).await?;
        Ok(slot)
    }

    /// A node of the pool, counted by the allocator.
    async fn new_node<M: Memory>(&self, memory: &M, pool: &Pool) -> Result<Address, Aborted> {
        let count = self.allocators + self.part_of(memory) * LINE_WORDS;
        let nodes = memory.load(count).await?;
        memory.store(count, nodes + 1).await?;
        Ok(pool.take())
    }

    /// Moves the slots of a node from `at` on by one.
    async fn open<M: Memory>(&self, memory: &M, node: Address, count: u64, at: u64) -> Result<(), Aborted> {
        for place in (at..count).rev() {
            let slot = self.slot(memory, node, place).await?;
            self.set_slot(memory, node, place + 1, slot).await?;
        }
        Ok(())
    }

    /// Splits the full child at `at` of a node that has room; its middle becomes their separator.
    async fn split<M: Memory>(&self, memory: &M, node: Address, at: u64, pool: &Pool) -> Result<(), Aborted> {
        let child = memory.load(self.child_at(node, at)).await?;
        let right = self.new_node(memory, pool).await?;
        let (count, is_leaf) = self.head(memory, child).await?;
        let middle = count / 2;
        for place in middle + 1..count {
            let slot = self.slot(memory, child, place).await?;
            self.set_slot(memory, right, place - middle - 1, slot).await?;
        }
        if !is_leaf {
            for place in middle + 1..=count {
                let below = memory.load(self.child_at(child, place)).await?;
                memory.store(self.child_at(right, place - middle - 1), below).await?;
            }
        }
        self.set_head(memory, right, count - middle - 1, is_leaf).await?;
        let separator = self.slot(memory, child, middle).await?;
        // A leaf keeps the separator, the largest of its keys.
        self.set_head(memory, child, middle + u64::from(is_leaf), is_leaf).await?;
        let (above, _) = self.head(memory, node).await?;
        self.open(memory, node, above, at).await?;
        for place in (at + 1..=above).rev() {
            let below = memory.load(self.child_at(node, place)).await?;
            memory.store(self.child_at(node, place + 1), below).await?;
        }
        self.set_slot(memory, node, at, separator).await?;
        memory.store(self.child_at(node, at + 1), right).await?;
        self.set_head(memory, node, above + 1, false).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineConfig;
    use crate::random::Random;
    use crate::simulation::{Simulation, complete};
    use std::collections::BTreeSet;

    #[test]
    fn an_index_of_each_kind_answers_as_a_model() {
        for kind in [IndexKind::BPlus, IndexKind::Delta, IndexKind::TunedDelta] {
            let simulation = Simulation::new(MachineConfig::I7_4770, 1);
            let index = IndexTree::new(kind, 5_000, simulation.allocator());
            let pool = Pool::of(&simulation, IndexTree::NODE_WORDS);
            let (memory, mut random, mut model) = (simulation.unclocked(), Random::new(2), BTreeSet::new());
            assert_eq!(complete(index.prepare(&memory, &pool)), Ok(()));
            pool.settle();
            for _ in 0..6_000 {
                let key = random.below(4_000);
                if random.below(4) == 0 {
                    assert_eq!(complete(index.contains(&memory, key)), Ok(model.contains(&key)), "{kind:?}");
                } else {
                    assert_eq!(complete(index.insert(&memory, key, &pool)), Ok(model.insert(key)), "{kind:?}");
                    pool.settle();
                }
            }
        }
    }
}
