//! Our Delta Storage Index: keys are its values, and have the ids that it gives them.
use index::DeltaIndex;
use sync::latch::Latch;

use super::{Contestant, Map};
use crate::workload::value_of;

/// An index under some latch.
struct Delta<L>(DeltaIndex<u64, L>);

impl<L: Latch + 'static> Map for Delta<L> {
    type Pin = ();

    const HAS_SHARED_WRITES: bool = true;

    fn pin(&self) {}

    fn get(&self, key: u64, (): &()) -> Option<u64> {
        // The value of the id has just been compared with the key, and is in the cache.
        self.0.value(self.0.lookup(key)?).map(value_of)
    }

    fn set_alone(&mut self, key: u64, value: u64) {
        self.set(key, value, &());
    }

    fn set(&self, key: u64, _value: u64, (): &()) {
        self.0.encode(key).expect("there are ids left");
    }
}

/// An index as a contestant.
pub(crate) fn delta_of<L: Latch + 'static>(index: DeltaIndex<u64, L>) -> Box<dyn Contestant> {
    Box::new(Delta(index))
}
