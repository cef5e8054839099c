//! A hash table with batches that ask for the memory of all keys first. hashbrown does not say where a key would
//! be, so that its memory cannot be asked for from outside; this one is as simple as a table can be, and so a
//! bound.
//!
//! ```text
//! | key, value | key, value | (free: value 0) | ...      16 bytes an entry, twice as many as there will be keys at least
//!      ^ the hash chooses a place; a taken one is passed over for the next
//! ```
use super::Map;

/// Lookups side by side.
const BATCH: usize = 16;

/// A table of fixed size. No value is zero.
pub(super) struct PrefetchedHash {
    entries: Vec<(u64, u64)>,
    shift: u32,
}

impl PrefetchedHash {
    /// A table for so many keys, at most half full then.
    pub(super) fn new(count: u32) -> Self {
        let len = (2 * u64::from(count)).next_power_of_two().max(2);
        PrefetchedHash { entries: vec![(0, 0); len as usize], shift: u64::BITS - len.trailing_zeros() }
    }

    #[inline]
    fn place(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// The place of a key, or the free one where it would be.
    #[inline]
    fn find(&self, key: u64, mut place: usize) -> usize {
        loop {
            let (found, value) = self.entries[place];
            if value == 0 || found == key {
                return place;
            }
            place = (place + 1) & (self.entries.len() - 1);
        }
    }

    #[inline]
    fn value(&self, place: usize) -> Option<u64> {
        let value = self.entries[place].1;
        (value != 0).then_some(value)
    }
}

impl Map for PrefetchedHash {
    type Pin = ();

    const HAS_SHARED_WRITES: bool = false;
    const HAS_BATCHES: bool = true;

    fn pin(&self) {}

    fn get(&self, key: u64, (): &()) -> Option<u64> {
        self.value(self.find(key, self.place(key)))
    }

    fn get_batch(&self, keys: &[u64], found: &mut Vec<Option<u64>>) {
        found.reserve(keys.len());
        for group in keys.chunks(BATCH) {
            let mut places = [0; BATCH];
            for (key, place) in group.iter().zip(&mut places) {
                *place = self.place(*key);
                sync::prefetch(&raw const self.entries[*place]);
            }
            found.extend(group.iter().zip(places).map(|(key, place)| self.value(self.find(*key, place))));
        }
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        let place = self.find(key, self.place(key));
        self.entries[place] = (key, value);
    }
}
