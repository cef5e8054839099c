//! A skip list (tle-multisocket, figure 17).
//!
//! ```text
//! node:  | key | height | next on level 0 | next on level 1 | ... |       three lines
//! ```
//!
//! The height of a node follows from a hash of its key, so that the list is the same whatever threads did.

use super::{Pool, Set};
use crate::machine::{Aborted, Address, LINE_WORDS};
use crate::memory::Memory;
use crate::random::Random;

const KEY: u64 = 0;
const HEIGHT: u64 = 1;
const NEXT: u64 = 2;
const LEVELS: usize = 18;

/// The list.
#[derive(Debug, Clone, Copy)]
pub struct SkipList {
    head: Address,
}

/// How many levels the node of a key has: each has half of the nodes of the one below.
fn height_of(key: u64) -> u64 {
    u64::from(Random::new(key).word().trailing_ones() + 1).min(LEVELS as u64)
}

impl SkipList {
    /// The words that lead past a key on each level, and the first node that is not before it, with its key.
    async fn find<M: Memory>(&self, memory: &M, key: u64) -> Result<([Address; LEVELS], Address, u64), Aborted> {
        let mut links = [0; LEVELS];
        let (mut node, mut next, mut found) = (self.head, 0, 0);
        for level in (0..LEVELS).rev() {
            loop {
                let link = node + NEXT + level as u64;
                links[level] = link;
                next = memory.load(link).await?;
                if next == 0 {
                    break;
                }
                found = memory.load(next + KEY).await?;
                if found >= key {
                    break;
                }
                node = next;
            }
        }
        Ok((links, next, found))
    }
}

impl Set for SkipList {
    const WORDS: u64 = 3 * LINE_WORDS;
    const NODE_WORDS: u64 = 3 * LINE_WORDS;

    fn at(address: Address) -> Self {
        SkipList { head: address }
    }

    async fn contains<M: Memory>(&self, memory: &M, key: u64) -> Result<bool, Aborted> {
        let (_, node, found) = self.find(memory, key).await?;
        Ok(node != 0 && found == key)
    }

    async fn insert<M: Memory>(&self, memory: &M, key: u64, pool: &Pool) -> Result<bool, Aborted> {
        pool.begin();
        let (links, next, found) = self.find(memory, key).await?;
        if next != 0 && found == key {
            return Ok(false);
        }
        let (node, height) = (pool.take(), height_of(key));
        memory.store(node + KEY, key).await?;
        memory.store(node + HEIGHT, height).await?;
        for (level, &link) in links.iter().enumerate().take(height as usize) {
            let next = memory.load(link).await?;
            memory.store(node + NEXT + level as u64, next).await?;
            memory.store(link, node).await?;
        }
        Ok(true)
    }

    async fn remove<M: Memory>(&self, memory: &M, key: u64, pool: &Pool) -> Result<bool, Aborted> {
        pool.begin();
        let (links, node, found) = self.find(memory, key).await?;
        if node == 0 || found != key {
            return Ok(false);
        }
        let height = memory.load(node + HEIGHT).await?;
        for (level, &link) in links.iter().enumerate().take(height as usize) {
            let next = memory.load(node + NEXT + level as u64).await?;
            memory.store(link, next).await?;
        }
        pool.give(node);
        Ok(true)
    }

    async fn search_and_replace<M: Memory>(&self, memory: &M, key: u64) -> Result<(), Aborted> {
        let (_, node, found) = self.find(memory, key).await?;
        if node != 0 {
            memory.store(node + KEY, found).await?;
        }
        Ok(())
    }

    async fn keys<M: Memory>(&self, memory: &M) -> Result<Vec<u64>, Aborted> {
        let mut keys = Vec::new();
        let mut node = memory.load(self.head + NEXT).await?;
        while node != 0 {
            keys.push(memory.load(node + KEY).await?);
            node = memory.load(node + NEXT).await?;
        }
        Ok(keys)
    }
}
