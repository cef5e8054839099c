//! PT-4, a baseline of the KISS-Tree's paper.
use super::Map;
use crate::baselines::PrefixTree;

impl Map for PrefixTree {
    type Pin = ();

    const HAS_SHARED_WRITES: bool = true;
    const HAS_BATCHES: bool = true;

    fn pin(&self) {}

    fn get(&self, key: u64, (): &()) -> Option<u64> {
        PrefixTree::get(self, key as u32)
    }

    fn get_batch(&self, keys: &[u64], found: &mut Vec<Option<u64>>) {
        PrefixTree::get_batch(self, keys, found);
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.upsert(key as u32, value);
    }

    fn set(&self, key: u64, value: u64, (): &()) {
        self.upsert(key as u32, value);
    }

    fn bytes(&self) -> Option<u64> {
        Some(PrefixTree::bytes(self) as u64)
    }
}
