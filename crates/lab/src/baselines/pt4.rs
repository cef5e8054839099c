//! The generalised prefix tree with fragments of 4 bits, PT-4: what KISS-Tree is measured against in its own paper
//! (KISS-Tree, section 2.2; Böhm et al., "Efficient in-memory indexing with generalized prefix trees", 2011).
//!
//! ```text
//! key, 32 bits:  [ 4 | 4 | 4 | 4 | 4 | 4 | 4 | 4 ]      each fragment selects one of 16 slots of a node
//!
//! slot:  0 empty | node number, 0 | content number, 1
//! content: | key | value |
//! ```
//!
//! A level is unrolled only where two keys share all fragments above (*dynamic expansion*), so a content holds its key.
//! Values change in place, and a slot is changed by compare-and-swap: readers and writers take no latch.
//!
//! Nodes and contents are numbered and lie in two arrays that are reserved at the start. That spares the baseline an
//! allocator: what is compared are the trees.
use std::sync::atomic::{AtomicU64, Ordering};

use sync::{prefetch, zeroed_atomics};

const FRAGMENT_BITS: u32 = 4;
const SLOTS: usize = 1 << FRAGMENT_BITS;
const LEVELS: u32 = 32 / FRAGMENT_BITS;
const CONTENT_WORDS: usize = 2;

/// Lookups side by side, as many as those of the KISS-Tree here.
const BATCH: usize = 16;

/// The contents of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Empty,
    Node(usize),
    Content(usize),
}

impl Slot {
    fn of(word: u64) -> Slot {
        match (word, word & 1) {
            (0, _) => Slot::Empty,
            (_, 0) => Slot::Node((word >> 1) as usize),
            _ => Slot::Content((word >> 1) as usize),
        }
    }

    fn word(self) -> u64 {
        match self {
            Slot::Empty => 0,
            Slot::Node(number) => (number as u64) << 1,
            Slot::Content(number) => (number as u64) << 1 | 1,
        }
    }
}

/// An array that only grows, up to a length that is reserved.
struct ReservedArray {
    words: Box<[AtomicU64]>,
    words_each: usize,
    next: AtomicU64,
}

impl ReservedArray {
    fn new(count_max: usize, words_each: usize) -> Self {
        // Number 0 is not used, as a slot with 0 is empty.
        ReservedArray { words: zeroed_atomics((count_max + 1) * words_each), words_each, next: AtomicU64::new(1) }
    }

    fn take(&self) -> usize {
        let number = self.next.fetch_add(1, Ordering::Relaxed) as usize;
        assert!((number + 1) * self.words_each <= self.words.len(), "the tree is larger than it was made for");
        number
    }

    #[inline]
    fn word(&self, number: usize, at: usize) -> &AtomicU64 {
        &self.words[number * self.words_each + at]
    }

    fn bytes(&self) -> usize {
        8 * self.words_each * self.next.load(Ordering::Relaxed) as usize
    }
}

/// The tree, from keys of 32 bits to words.
pub struct PrefixTree {
    nodes: ReservedArray,
    contents: ReservedArray,
    root: usize,
}

#[inline]
fn fragment(key: u32, level: u32) -> usize {
    (key >> (32 - FRAGMENT_BITS * (level + 1))) as usize % SLOTS
}

impl PrefixTree {
    /// An empty tree for so many keys.
    pub fn new(keys_max: usize) -> Self {
        // Each key adds at most one node that branches, and seven above it that do not; few do at random.
        let nodes = ReservedArray::new(2 * keys_max + 1_024, SLOTS);
        let root = nodes.take();
        PrefixTree { nodes, contents: ReservedArray::new(2 * keys_max, CONTENT_WORDS), root }
    }

    /// The memory of nodes and contents in use.
    pub fn bytes(&self) -> usize {
        self.nodes.bytes() + self.contents.bytes()
    }

    /// The slot at which the way of a key ends, and what it holds.
    #[inline]
    fn slot(&self, key: u32) -> (&AtomicU64, u32, Slot) {
        let mut node = self.root;
        for level in 0..LEVELS {
            let slot = self.nodes.word(node, fragment(key, level));
            match Slot::of(slot.load(Ordering::Acquire)) {
                Slot::Node(next) => node = next,
                end => return (slot, level, end),
            }
        }
        unreachable!("the last level holds contents only")
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: u32) -> Option<u64> {
        match self.slot(key).2 {
            Slot::Content(number) => self.value(number, key),
            _ => None,
        }
    }

    #[inline]
    fn value(&self, number: usize, key: u32) -> Option<u64> {
        let is_its_own = self.contents.word(number, 0).load(Ordering::Relaxed) == u64::from(key);
        is_its_own.then(|| self.contents.word(number, 1).load(Ordering::Acquire))
    }

    /// Looks up many keys of 32 bits, one level of several at a time, each step asking for the memory of the next.
    pub fn get_batch(&self, keys: &[u64], found: &mut Vec<Option<u64>>) {
        for group in keys.chunks(BATCH) {
            let mut ends = [Slot::Node(self.root); BATCH];
            for level in 0..LEVELS {
                let mut is_done = true;
                for (key, end) in group.iter().zip(&mut ends) {
                    if let Slot::Node(node) = *end {
                        *end = Slot::of(self.nodes.word(node, fragment(*key as u32, level)).load(Ordering::Acquire));
                        is_done &= !self.prefetch(*end, *key as u32, level + 1);
                    }
                }
                if is_done {
                    break;
                }
            }
            found.extend(group.iter().zip(ends).map(|(key, end)| match end {
                Slot::Content(number) => self.value(number, *key as u32),
                _ => None,
            }));
        }
    }

    /// Asks for what a slot leads to; says whether that is a node.
    #[inline]
    fn prefetch(&self, slot: Slot, key: u32, level: u32) -> bool {
        match slot {
            Slot::Node(node) => prefetch(self.nodes.word(node, fragment(key, level))),
            Slot::Content(number) => prefetch(self.contents.word(number, 0)),
            Slot::Empty => {}
        }
        matches!(slot, Slot::Node(_))
    }

    /// Gives a key a value.
    pub fn upsert(&self, key: u32, value: u64) {
        let mut new = None;
        loop {
            let (slot, level, end) = self.slot(key);
            if let Slot::Content(number) = end {
                let other = self.contents.word(number, 0).load(Ordering::Relaxed) as u32;
                if other == key {
                    self.contents.word(number, 1).store(value, Ordering::Release);
                    return;
                }
                self.expand(slot, level, end, other);
                continue;
            }
            let number = *new.get_or_insert_with(|| self.new_content(key, value));
            let content = Slot::Content(number).word();
            if slot.compare_exchange(0, content, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    fn new_content(&self, key: u32, value: u64) -> usize {
        let number = self.contents.take();
        self.contents.word(number, 0).store(u64::from(key), Ordering::Relaxed);
        self.contents.word(number, 1).store(value, Ordering::Relaxed);
        number
    }

    /// Puts a node between a slot and its content, which has the key `other`.
    fn expand(&self, slot: &AtomicU64, level: u32, content: Slot, other: u32) {
        let node = self.nodes.take();
        self.nodes.word(node, fragment(other, level + 1)).store(content.word(), Ordering::Relaxed);
        // Where another thread was faster, the node is lost; a baseline may lose a few.
        let _ = slot.compare_exchange(content.word(), Slot::Node(node).word(), Ordering::Release, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_prefix_tree_answers_like_a_map(
            steps in prop::collection::vec((prop_oneof![0..200u32, any::<u32>(), 0xABCD_0000..0xABCD_0100u32], any::<u64>()), 0..300),
        ) {
            let tree = PrefixTree::new(4_096);
            let mut model = BTreeMap::new();
            for (key, value) in &steps {
                tree.upsert(*key, *value);
                model.insert(*key, *value);
            }
            let keys: Vec<u32> = steps.iter().flat_map(|step| [step.0, step.0 ^ 1, step.0 ^ 0x8000_0000]).collect();
            let mut found = Vec::new();
            let wide: Vec<u64> = keys.iter().map(|key| u64::from(*key)).collect();
            tree.get_batch(&wide, &mut found);
            for (key, found) in keys.iter().zip(found) {
                prop_assert_eq!((tree.get(*key), found), (model.get(key).copied(), model.get(key).copied()));
            }
        }
    }

    #[test]
    fn threads_that_expand_the_same_slots_lose_no_key() {
        let tree = PrefixTree::new(100_000);
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let tree = &tree;
                scope.spawn(move || (0..5_000).for_each(|at| tree.upsert(at * 4 + thread, u64::from(at))));
            }
        });
        assert!((0..20_000).all(|key| tree.get(key) == Some(u64::from(key / 4))));
    }
}
