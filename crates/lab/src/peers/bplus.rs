//! Our B+tree, with any way of latching.
use index::{BPlusTree, Latching};

use super::{Contestant, Map};

impl<L: Latching> Map for BPlusTree<u64, u64, L> {
    type Pin = sync::Guard;

    const HAS_SHARED_WRITES: bool = true;
    const HAS_BATCHES: bool = true;

    fn pin(&self) -> sync::Guard {
        sync::pin()
    }

    fn get(&self, key: u64, pin: &sync::Guard) -> Option<u64> {
        self.get_pinned(key, pin)
    }

    fn get_batch(&self, keys: &[u64], found: &mut Vec<Option<u64>>) {
        BPlusTree::get_batch(self, keys, found);
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.upsert(key, value);
    }

    fn set(&self, key: u64, value: u64, _pin: &sync::Guard) {
        self.upsert(key, value);
    }

    fn bytes(&self) -> Option<u64> {
        Some(BPlusTree::bytes(self) as u64)
    }
}

/// An empty tree.
pub(crate) fn latched_by<L: Latching>() -> Box<dyn Contestant> {
    Box::new(BPlusTree::<u64, u64, L>::new())
}
