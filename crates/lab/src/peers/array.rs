//! Bare arrays: what is possible without an index where keys are positions, and the least memory where they are not.
use super::Map;

/// Values by position; zero is none.
pub(super) struct ByPosition(Vec<u64>);

impl ByPosition {
    pub(super) fn new(count: u32) -> Self {
        ByPosition(vec![0; count as usize])
    }
}

impl Map for ByPosition {
    type Pin = ();

    const HAS_SHARED_WRITES: bool = false;

    fn pin(&self) {}

    fn get(&self, key: u64, (): &()) -> Option<u64> {
        self.0.get(key as usize).copied().filter(|value| *value != 0)
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.0[key as usize] = value;
    }
}

/// Keys and their values in order, once the load has settled.
#[derive(Default)]
pub(super) struct SortedArray(Vec<(u64, u64)>);

impl Map for SortedArray {
    type Pin = ();

    const HAS_SHARED_WRITES: bool = false;

    fn pin(&self) {}

    fn get(&self, key: u64, (): &()) -> Option<u64> {
        let place = self.0.binary_search_by_key(&key, |entry| entry.0).ok()?;
        Some(self.0[place].1)
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.0.push((key, value));
    }

    fn settle(&mut self) {
        self.0.sort_unstable();
    }
}
