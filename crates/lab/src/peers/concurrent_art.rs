//! congee: an adaptive radix tree with optimistic lock coupling, for any number of threads.
use congee::Congee;

use super::Map;

/// A tree of words.
pub(super) struct ConcurrentArt(Congee<usize, usize>);

impl ConcurrentArt {
    pub(super) fn new() -> Self {
        ConcurrentArt(Congee::default())
    }
}

impl Map for ConcurrentArt {
    type Pin = sync::Guard;

    const HAS_SHARED_WRITES: bool = true;

    fn pin(&self) -> sync::Guard {
        self.0.pin()
    }

    fn get(&self, key: u64, pin: &sync::Guard) -> Option<u64> {
        self.0.get(&(key as usize), pin).map(|value| value as u64)
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        let pin = self.0.pin();
        self.set(key, value, &pin);
    }

    fn set(&self, key: u64, value: u64, pin: &sync::Guard) {
        self.0.insert(key as usize, value as usize, pin).expect("there is memory");
    }
}
