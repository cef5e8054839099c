//! Images of indexes that stay on a device: which there are, and what is left out when there is no room.
//!
//! An image never changes, and its id tells it from all others. Its owner, a part of an index, has it brought and drops it for another
//! one, or with the index; what is gone so is given up at the next look, and what was used longest ago where there is no room.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::ImageId;

use super::residents::Resident;
use super::{DeviceBoxes, DevicePoints};

/// An image there.
#[derive(Clone)]
pub(super) enum OnDevice {
    Points(Arc<dyn DevicePoints>),
    Boxes(Arc<dyn DeviceBoxes>),
}

impl OnDevice {
    /// Whether a search is at it.
    fn is_in_use(&self) -> bool {
        match self {
            OnDevice::Points(points) => Arc::strong_count(points) > 1,
            OnDevice::Boxes(boxes) => Arc::strong_count(boxes) > 1,
        }
    }
}

/// Whose it is: a table and its index, which views tell.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) table: String,
    pub(crate) index: String,
}

struct Kept {
    id: ImageId,
    owner: Owner,
    what: OnDevice,
    bytes: u64,
    uses: u64,
    last_used: u64,
}

/// All images on a device.
#[derive(Default)]
pub(super) struct Images {
    kept: Mutex<HashMap<u64, Kept>>,
    clock: AtomicU64,
    bytes: AtomicU64,
}

impl Images {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the device's memory that all of them take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// An image to be searched, if it is there.
    pub(super) fn find(&self, id: &ImageId) -> Option<OnDevice> {
        let mut kept = self.lock();
        let found = kept.get_mut(&id.number())?;
        found.uses += 1;
        found.last_used = self.clock.fetch_add(1, Ordering::Relaxed);
        Some(found.what.clone())
    }

    /// Keeps one that was brought, to be found from now on.
    pub(super) fn keep(&self, id: ImageId, owner: Owner, what: OnDevice, bytes: u64) {
        self.give_up(0);
        let last_used = self.clock.fetch_add(1, Ordering::Relaxed);
        let number = id.number();
        let before = self.lock().insert(number, Kept { id, owner, what, bytes, uses: 0, last_used });
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_sub(before.map_or(0, |before| before.bytes), Ordering::Relaxed);
    }

    /// Gives up images that were used longest ago until so many bytes are free or nothing is left that nobody searches; those that are
    /// gone go in any case.
    pub(super) fn give_up(&self, bytes: u64) {
        let (mut kept, mut freed) = (self.lock(), 0);
        let mut order: Vec<(bool, u64, u64)> =
            kept.iter().map(|(number, of)| (!of.id.is_gone(), of.last_used, *number)).collect();
        order.sort_unstable();
        for (is_wanted, _, number) in order {
            if is_wanted && freed >= bytes {
                break;
            }
            if kept.get(&number).is_some_and(|of| !of.what.is_in_use())
                && let Some(of) = kept.remove(&number)
            {
                freed += of.bytes;
            }
        }
        self.bytes.fetch_sub(freed, Ordering::Relaxed);
    }

    /// What there is, as views tell it.
    pub(super) fn all(&self) -> Vec<Resident> {
        self.give_up(0);
        let told = |of: &Kept| Resident {
            table: of.owner.table.clone(),
            column: of.owner.index.clone(),
            ranges: 0,
            bytes: of.bytes,
            uses: of.uses,
        };
        self.lock().values().map(told).collect()
    }
}
