//! scc's TreeIndex: a B+tree with readers that take no latch.
use scc::TreeIndex;

use super::Map;

impl Map for TreeIndex<u64, u64> {
    type Pin = scc::Guard;

    const HAS_SHARED_WRITES: bool = true;

    fn pin(&self) -> scc::Guard {
        scc::Guard::new()
    }

    fn get(&self, key: u64, pin: &scc::Guard) -> Option<u64> {
        self.peek(&key, pin).copied()
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.upsert_sync(key, value);
    }

    fn set(&self, key: u64, value: u64, _pin: &scc::Guard) {
        self.upsert_sync(key, value);
    }
}
