//! hashbrown: a hash table for one thread that writes or several that read, with a quick hash.
use super::Map;

/// A table from words to words.
pub(super) type Table = hashbrown::HashMap<u64, u64, foldhash::fast::FixedState>;

impl Map for Table {
    type Pin = ();

    const HAS_SHARED_WRITES: bool = false;

    fn pin(&self) {}

    fn get(&self, key: u64, (): &()) -> Option<u64> {
        Table::get(self, &key).copied()
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.insert(key, value);
    }
}
