//! Data structures over [`Memory`], written for one thread at a time: a section around them keeps others away.
//!
//! | structure | node | changes |
//! |---|---|---|
//! | [`AvlTree`] | a line | up the path, as far as heights change, by rotations |
//! | [`LeafTree`] | a line | the leaf and its parent |
//! | [`SkipList`] | three lines | a few towers |
//! | [`IndexTree`] | 8 or 6 lines | a leaf, and the nodes above where they are full |

mod avl;
mod index_tree;
mod leaf_tree;
mod pool;
mod skip_list;

pub use avl::AvlTree;
pub use index_tree::{IndexKind, IndexTree};
pub use leaf_tree::LeafTree;
pub use pool::Pool;
pub use skip_list::SkipList;

use crate::machine::{Aborted, Address};
use crate::memory::Memory;

/// A set of keys.
pub trait Set: Clone {
    /// Words of the structure itself.
    const WORDS: u64;
    /// Words of a node.
    const NODE_WORDS: u64;

    /// The empty set at an address where all words are 0.
    fn at(address: Address) -> Self;

    /// Whether a key is in the set.
    fn contains<M: Memory>(&self, memory: &M, key: u64) -> impl Future<Output = Result<bool, Aborted>>;

    /// Adds a key; whether it was not there. Nodes are taken from the pool.
    fn insert<M: Memory>(&self, memory: &M, key: u64, pool: &Pool) -> impl Future<Output = Result<bool, Aborted>>;

    /// Takes a key out; whether it was there. Nodes go to the pool.
    fn remove<M: Memory>(&self, memory: &M, key: u64, pool: &Pool) -> impl Future<Output = Result<bool, Aborted>>;

    /// Looks for a key and writes the key of the last node of the way into that node again, which changes nothing
    /// (tle-multisocket, section 3.2).
    fn search_and_replace<M: Memory>(&self, memory: &M, key: u64) -> impl Future<Output = Result<(), Aborted>>;

    /// All keys, in no particular order.
    fn keys<M: Memory>(&self, memory: &M) -> impl Future<Output = Result<Vec<u64>, Aborted>>;
}
