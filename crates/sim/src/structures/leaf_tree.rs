//! An unbalanced binary search tree whose keys stand in the leaves (tle-multisocket, figures 8 and 16): a change touches the
//! leaf and its parent only, so that the upper part stays in all caches.
//!
//! ```text
//! inner node:  | smallest key of right | left | right |       leaf:  | key | 0 | 0 |       each a line
//! ```

use super::{Pool, Set};
use crate::machine::{Aborted, Address, LINE_WORDS};
use crate::memory::Memory;

const KEY: u64 = 0;
const LEFT: u64 = 1;
const RIGHT: u64 = 2;

/// The tree.
#[derive(Debug, Clone, Copy)]
pub struct LeafTree {
    root: Address,
}

/// A leaf with what leads to it.
struct Place {
    leaf: Address,
    key: u64,
    /// The word that leads to the leaf.
    link: Address,
    parent: Address,
    /// The word that leads to the parent.
    parent_link: Address,
}

impl LeafTree {
    /// The leaf at which the way to a key ends, or none in an empty tree.
    async fn find<M: Memory>(&self, memory: &M, key: u64) -> Result<Place, Aborted> {
        let leaf = memory.load(self.root).await?;
        let mut place = Place { leaf, key: 0, link: self.root, parent: 0, parent_link: 0 };
        if place.leaf == 0 {
            return Ok(place);
        }
        loop {
            place.key = memory.load(place.leaf + KEY).await?;
            // A word of this line: it comes with the key.
            if memory.load_ahead(place.leaf + LEFT).await? == 0 {
                return Ok(place);
            }
            place.parent = place.leaf;
            place.parent_link = place.link;
            place.link = place.parent + if key < place.key { LEFT } else { RIGHT };
            place.leaf = memory.load(place.link).await?;
        }
    }
}

async fn write_node<M: Memory>(memory: &M, node: Address, words: [u64; 3]) -> Result<(), Aborted> {
    memory.store(node + KEY, words[0]).await?;
    memory.store(node + LEFT, words[1]).await?;
    memory.store(node + RIGHT, words[2]).await
}

impl Set for LeafTree {
    const WORDS: u64 = LINE_WORDS;
    const NODE_WORDS: u64 = LINE_WORDS;

    fn at(address: Address) -> Self {
        LeafTree { root: address }
    }

    async fn contains<M: Memory>(&self, memory: &M, key: u64) -> Result<bool, Aborted> {
        let place = self.find(memory, key).await?;
        Ok(place.leaf != 0 && place.key == key)
    }

    async fn insert<M: Memory>(&self, memory: &M, key: u64, pool: &Pool) -> Result<bool, Aborted> {
        pool.begin();
        let place = self.find(memory, key).await?;
        if place.leaf != 0 && place.key == key {
            return Ok(false);
        }
        let leaf = pool.take();
        write_node(memory, leaf, [key, 0, 0]).await?;
        let mut top = leaf;
        if place.leaf != 0 {
            top = pool.take();
            let words = if key < place.key { [place.key, leaf, place.leaf] } else { [key, place.leaf, leaf] };
            write_node(memory, top, words).await?;
        }
        memory.store(place.link, top).await?;
        Ok(true)
    }

    async fn remove<M: Memory>(&self, memory: &M, key: u64, pool: &Pool) -> Result<bool, Aborted> {
        pool.begin();
        let place = self.find(memory, key).await?;
        if place.leaf == 0 || place.key != key {
            return Ok(false);
        }
        pool.give(place.leaf);
        if place.parent == 0 {
            memory.store(self.root, 0).await?;
            return Ok(true);
        }
        pool.give(place.parent);
        let sibling = memory.load(place.parent + LEFT + RIGHT - (place.link - place.parent)).await?;
        memory.store(place.parent_link, sibling).await?;
        Ok(true)
    }

    async fn search_and_replace<M: Memory>(&self, memory: &M, key: u64) -> Result<(), Aborted> {
        let place = self.find(memory, key).await?;
        if place.leaf != 0 {
            memory.store(place.leaf + KEY, place.key).await?;
        }
        Ok(())
    }

    async fn keys<M: Memory>(&self, memory: &M) -> Result<Vec<u64>, Aborted> {
        let mut keys = Vec::new();
        let mut left = vec![memory.load(self.root).await?];
        while let Some(node) = left.pop() {
            if node == 0 {
                continue;
            }
            let child = memory.load(node + LEFT).await?;
            if child == 0 {
                keys.push(memory.load(node + KEY).await?);
            } else {
                left.extend([child, memory.load(node + RIGHT).await?]);
            }
        }
        Ok(keys)
    }
}
