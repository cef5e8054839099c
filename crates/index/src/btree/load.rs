//! Bulk load: a tree from entries in key order, bottom up.
//!
//! Each level collects entries until a node is as full as wanted; the node then becomes an entry of the level above. At
//! the end the last nodes of the levels may be underfull, and are evened out with their neighbours like after a removal.
use std::fmt;
use std::marker::PhantomData;

use super::descent::into_word;
use super::key::Key;
use super::latching::Latching;
use super::node::{Node, Shape};
use super::{BPlusTree, Value};

/// The entries of a bulk load were not in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadError {
    /// Which entry, counted from 0, is not above the one before it.
    pub entry: usize,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} of a bulk load is not above the one before it; sort the entries by key first", self.entry)
    }
}

impl std::error::Error for LoadError {}

/// The entries for the next node of each level.
struct Loader<K: Key, V: Value, L: Latching> {
    levels: Vec<Vec<(K::Owned, u64)>>,
    /// The last key added.
    last: Option<K::Owned>,
    /// Where the leaf begins that is being collected; the first begins with its first key.
    leaf_begin: Option<K::Owned>,
    fill_percent: usize,
    tree: PhantomData<BPlusTree<K, V, L>>,
}

impl<K: Key, V: Value, L: Latching> BPlusTree<K, V, L> {
    /// Builds a tree of entries in ascending key order. Nodes are filled to about `fill_percent` (50 to 100).
    ///
    /// # Errors
    /// [`LoadError`] with the place of the first entry whose key is not above the key before it.
    pub fn from_sorted(
        entries: impl IntoIterator<Item = (K::Owned, V)>,
        fill_percent: usize,
    ) -> Result<Self, LoadError> {
        let fill_percent = fill_percent.clamp(50, 100);
        let mut loader = Loader { levels: vec![], last: None, leaf_begin: None, fill_percent, tree: PhantomData };
        let mut error = None;
        for (entry, (key, value)) in entries.into_iter().enumerate() {
            if loader.last.as_ref().is_some_and(|last| *last >= key) {
                error = Some(LoadError { entry });
                break;
            }
            loader.add(key, value);
        }
        let tree = loader.finish();
        error.map_or(Ok(tree), Err)
    }
}

impl<K: Key, V: Value, L: Latching> Loader<K, V, L> {
    fn is_complete(&self, level: usize) -> bool {
        let target = Node::<K, V, L>::capacity(level) * self.fill_percent / 100;
        self.levels.get(level).is_some_and(|entries| entries.len() >= target)
    }

    fn add(&mut self, key: K::Owned, value: V) {
        if self.is_complete(0) {
            let separator = self.last.as_ref().map(|last| K::separator(K::of(last), K::of(&key)));
            self.close(0);
            self.leaf_begin = separator;
        }
        self.push(0, key.clone(), value.word());
        self.last = Some(key);
    }

    fn push(&mut self, level: usize, key: K::Owned, word: u64) {
        if self.levels.len() == level {
            self.levels.push(vec![]);
        }
        self.levels[level].push((key, word));
    }

    /// Makes a node of the entries of a level.
    fn close(&mut self, level: usize) {
        let entries = std::mem::take(&mut self.levels[level]);
        let begin = self.leaf_begin.take().filter(|_| level == 0).unwrap_or_else(|| entries[0].0.clone());
        let node = into_word(node_of::<K, V, L>(level, &entries));
        if self.is_complete(level + 1) {
            self.close(level + 1);
        }
        self.push(level + 1, begin, node);
    }

    fn finish(mut self) -> BPlusTree<K, V, L> {
        let mut level = 0;
        while level + 1 < self.levels.len() {
            if !self.levels[level].is_empty() {
                self.close(level);
            }
            level += 1;
        }
        let root = node_of(level, self.levels.last().map_or(&[], Vec::as_slice));
        let tree = BPlusTree { root, latching: L::default() };
        if let Some(last) = &self.last {
            tree.tidy(K::of(last), &sync::pin());
        }
        tree
    }
}

/// A node with these entries.
fn node_of<K: Key, V: Value, L: Latching>(level: usize, entries: &[(K::Owned, u64)]) -> Box<Node<K, V, L>> {
    let node = Node::new(level);
    let shape = Shape { level, count: entries.len() };
    if let [(first, _), .., (last, _)] = &entries[shape.first_key().min(entries.len())..] {
        node.set_shared(&K::common(K::of(first), K::of(last)));
    }
    let shared = node.shared();
    for (index, (key, word)) in entries.iter().enumerate() {
        if index >= shape.first_key() {
            K::store(&shared, node.slot(level, index), K::of(key));
        }
        node.set_payload(level, index, *word);
    }
    node.set_shape(shape);
    node
}
