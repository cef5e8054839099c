//! Our KISS-Tree.
use index::{Compact, KissOptions, KissTree, Pages, Versioned};

use super::{Contestant, Map};
use crate::LabError;

macro_rules! kiss_is_a_map {
    ($slot:ty) => {
        impl Map for KissTree<u64, $slot> {
            type Pin = sync::Guard;

            const HAS_SHARED_WRITES: bool = true;
            const HAS_BATCHES: bool = true;

            fn pin(&self) -> sync::Guard {
                sync::pin()
            }

            fn get(&self, key: u64, pin: &sync::Guard) -> Option<u64> {
                self.get_pinned(key, pin)
            }

            fn get_batch(&self, keys: &[u64], found: &mut Vec<Option<u64>>) {
                KissTree::get_batch(self, keys, found);
            }

            fn set_alone(&mut self, key: u64, value: u64) {
                self.upsert(key, value).expect("there is address space");
            }

            fn set(&self, key: u64, value: u64, _pin: &sync::Guard) {
                self.upsert(key, value).expect("there is address space");
            }

            fn bytes(&self) -> Option<u64> {
                let memory = self.memory();
                Some(memory.page_bytes + memory.block_bytes + memory.trie_bytes)
            }
        }
    };
}

kiss_is_a_map!(Compact);
kiss_is_a_map!(Versioned);

fn failed(error: index::AddressSpaceError) -> LabError {
    LabError::Failed(error.to_string())
}

/// Slots of 4 bytes; large pages where they are filled.
pub(super) fn as_published() -> Result<Box<dyn Contestant>, LabError> {
    Ok(Box::new(KissTree::<u64, Compact>::with_options(KissOptions::default()).map_err(failed)?))
}

/// Slots of 4 bytes, and 4 KiB pages of the machine everywhere.
pub(super) fn on_small_pages() -> Result<Box<dyn Contestant>, LabError> {
    let options = KissOptions { pages: Pages::Small, ..KissOptions::default() };
    Ok(Box::new(KissTree::<u64, Compact>::with_options(options).map_err(failed)?))
}

/// Slots with versions.
pub(super) fn in_place() -> Result<Box<dyn Contestant>, LabError> {
    Ok(Box::new(KissTree::<u64, Versioned>::with_options(KissOptions::default()).map_err(failed)?))
}
