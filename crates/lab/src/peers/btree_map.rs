//! The B-tree of `std`: alone, and under one reader-writer latch for all.
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::Map;

impl Map for BTreeMap<u64, u64> {
    type Pin = ();

    const HAS_SHARED_WRITES: bool = false;

    fn pin(&self) {}

    fn get(&self, key: u64, (): &()) -> Option<u64> {
        BTreeMap::get(self, &key).copied()
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.insert(key, value);
    }
}

/// A `BTreeMap` for several threads; every call takes the latch.
#[derive(Default)]
pub(super) struct LatchedBTreeMap(RwLock<BTreeMap<u64, u64>>);

impl Map for LatchedBTreeMap {
    type Pin = ();

    const HAS_SHARED_WRITES: bool = true;

    fn pin(&self) {}

    fn get(&self, key: u64, (): &()) -> Option<u64> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied()
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.set(key, value, &());
    }

    fn set(&self, key: u64, value: u64, (): &()) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, value);
    }
}
