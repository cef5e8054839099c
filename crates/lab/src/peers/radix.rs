//! rart: an adaptive radix tree for one thread that writes or several that read.
use rart::{AdaptiveRadixTree, ArrayKey};

use super::Map;

/// A tree from keys of four bytes, which is what the keys here fit in, to words.
pub(super) struct Radix(AdaptiveRadixTree<ArrayKey<4>, u64>);

impl Radix {
    pub(super) fn new() -> Self {
        Radix(AdaptiveRadixTree::new())
    }
}

impl Map for Radix {
    type Pin = ();

    const HAS_SHARED_WRITES: bool = false;

    fn pin(&self) {}

    fn get(&self, key: u64, (): &()) -> Option<u64> {
        self.0.get_k(&ArrayKey::from(key as u32)).copied()
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.0.insert_k(&ArrayKey::from(key as u32), value);
    }
}
