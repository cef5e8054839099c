//! crossbeam-skiplist: a skip list without latches.
use crossbeam_skiplist::SkipMap;

use super::Map;

impl Map for SkipMap<u64, u64> {
    type Pin = sync::Guard;

    const HAS_SHARED_WRITES: bool = true;

    fn pin(&self) -> sync::Guard {
        // The list pins for each call itself, which is quick where the thread is pinned already.
        sync::pin()
    }

    fn get(&self, key: u64, _pin: &sync::Guard) -> Option<u64> {
        SkipMap::get(self, &key).map(|entry| *entry.value())
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.insert(key, value);
    }

    fn set(&self, key: u64, value: u64, _pin: &sync::Guard) {
        self.insert(key, value);
    }
}
