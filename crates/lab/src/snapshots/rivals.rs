//! Arrays that are updated and read as of an instant without this project's snapshots.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

/// The items of a chunk: a page of them.
const CHUNK_ITEMS: usize = 512;

/// An array that many threads update.
pub(super) trait Rival: Sync {
    /// Adds 1 to some items.
    fn update(&self, items: &[usize]);

    /// Takes a snapshot and gives the memory that it needs for itself, in bytes, when its successor is due.
    fn snapshot(&self) -> usize;
}

/// A plain array of atomic words: the bound. It has no snapshots.
pub(super) struct Plain(Vec<AtomicU64>);

impl Plain {
    pub(super) fn new(len: usize) -> Plain {
        Plain((0..len).map(|_| AtomicU64::new(1)).collect())
    }
}

impl Rival for Plain {
    fn update(&self, items: &[usize]) {
        for item in items {
            self.0[*item].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn snapshot(&self) -> usize {
        0
    }
}

/// A plain array behind a mutex; a snapshot is a copy with the mutex held.
pub(super) struct Locked {
    items: Mutex<Vec<u64>>,
    copy: Mutex<Vec<u64>>,
}

impl Locked {
    pub(super) fn new(len: usize) -> Locked {
        Locked { items: Mutex::new(vec![1; len]), copy: Mutex::new(vec![0; len]) }
    }
}

impl Rival for Locked {
    fn update(&self, items: &[usize]) {
        for item in items {
            let mut array = self.items.lock();
            array[*item] = array[*item].wrapping_add(1);
        }
    }

    fn snapshot(&self) -> usize {
        let mut copy = self.copy.lock();
        copy.copy_from_slice(&self.items.lock());
        copy.len() * size_of::<u64>()
    }
}

/// Chunks behind arc-swap: an update copies its chunk and swaps it in, a snapshot takes a reference to each. Its chunks are of
/// slightly different moments, so it is less than a snapshot of an instant.
pub(super) struct Chunks {
    chunks: Vec<ArcSwap<[u64; CHUNK_ITEMS]>>,
    last: Mutex<Vec<Arc<[u64; CHUNK_ITEMS]>>>,
}

impl Chunks {
    pub(super) fn new(len: usize) -> Chunks {
        let chunk = || ArcSwap::from_pointee([1; CHUNK_ITEMS]);
        Chunks { chunks: (0..len.div_ceil(CHUNK_ITEMS)).map(|_| chunk()).collect(), last: Mutex::new(Vec::new()) }
    }
}

impl Rival for Chunks {
    fn update(&self, items: &[usize]) {
        for item in items {
            self.chunks[item / CHUNK_ITEMS].rcu(|chunk| {
                let mut chunk = **chunk;
                chunk[item % CHUNK_ITEMS] = chunk[item % CHUNK_ITEMS].wrapping_add(1);
                chunk
            });
        }
    }

    fn snapshot(&self) -> usize {
        let mut last = self.last.lock();
        let replaced = last.iter().filter(|chunk| Arc::strong_count(chunk) == 1).count();
        *last = self.chunks.iter().map(ArcSwap::load_full).collect();
        replaced * CHUNK_ITEMS * size_of::<u64>()
    }
}

/// The children of a node of a persistent vector, and the items of a leaf: as many as those of `im` and of Clojure have.
const FANOUT_BITS: usize = 6;
const FANOUT: usize = 1 << FANOUT_BITS;

/// A node of a persistent vector.
#[derive(Clone)]
enum Node {
    Leaf(Box<[u64; FANOUT]>),
    Inner(Vec<Arc<Node>>),
}

impl Node {
    fn new(len: usize, level: usize) -> Node {
        if level == 0 {
            return Node::Leaf(Box::new([1; FANOUT]));
        }
        let below = FANOUT << (FANOUT_BITS * (level - 1));
        let child = |at: usize| Arc::new(Node::new(below.min(len - at * below), level - 1));
        Node::Inner((0..len.div_ceil(below)).map(child).collect())
    }

    /// Adds 1 to an item; a node that a snapshot shares is copied first.
    fn add(&mut self, item: usize, level: usize) {
        match self {
            Node::Leaf(items) => items[item % FANOUT] = items[item % FANOUT].wrapping_add(1),
            Node::Inner(children) => {
                let child = (item >> (FANOUT_BITS * level)) % FANOUT;
                Arc::make_mut(&mut children[child]).add(item, level - 1);
            }
        }
    }
}

/// A persistent vector behind a mutex: a tree of nodes with 64 children each. An update copies the nodes on its way that a snapshot shares,
/// a snapshot takes a reference to the root. It is what the vectors of `im` are for such updates; that library's licence
/// (MPL-2.0) is none of those that this project links.
pub(super) struct Persistent {
    root: Mutex<Arc<Node>>,
    last: Mutex<Option<Arc<Node>>>,
    levels: usize,
}

impl Persistent {
    pub(super) fn new(len: usize) -> Persistent {
        let levels = (1..).find(|levels| len <= FANOUT << (FANOUT_BITS * levels)).unwrap_or_default();
        Persistent { root: Mutex::new(Arc::new(Node::new(len, levels))), last: Mutex::new(None), levels }
    }

    #[cfg(test)]
    fn get(&self, item: usize) -> u64 {
        let (mut node, mut level) = (self.root.lock().clone(), self.levels);
        loop {
            node = match &*node {
                Node::Leaf(items) => return items[item % FANOUT],
                Node::Inner(children) => children[(item >> (FANOUT_BITS * level)) % FANOUT].clone(),
            };
            level = level.saturating_sub(1);
        }
    }
}

impl Rival for Persistent {
    fn update(&self, items: &[usize]) {
        for item in items {
            Arc::make_mut(&mut *self.root.lock()).add(*item, self.levels);
        }
    }

    fn snapshot(&self) -> usize {
        *self.last.lock() = Some(self.root.lock().clone());
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_count_every_update_of_two_threads() {
        let (plain, locked, chunks) = (Plain::new(1_024), Locked::new(1_024), Chunks::new(1_024));
        let tree = Persistent::new(1_024);
        let rivals: [&dyn Rival; 4] = [&plain, &locked, &chunks, &tree];
        for rival in rivals {
            std::thread::scope(|threads| {
                (0..2).for_each(|_| {
                    threads.spawn(|| rival.update(&[7, 600, 7, 1_023]));
                });
                rival.snapshot();
            });
            rival.snapshot();
        }
        let expected = |item: usize| match item {
            7 => 5,
            600 | 1_023 => 3,
            _ => 1,
        };
        for item in 0..1_024 {
            let chunk = chunks.chunks[item / CHUNK_ITEMS].load();
            let plain = plain.0[item].load(Ordering::Relaxed);
            let values = [plain, locked.copy.lock()[item], chunk[item % CHUNK_ITEMS], tree.get(item)];
            assert_eq!(values, [expected(item); 4]);
        }
    }
}
