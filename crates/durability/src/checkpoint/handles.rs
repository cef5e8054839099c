//! Files kept open for readers, the ones used last.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::header::BLOBS;
use crate::device::{Access, Device, DeviceFile};

pub(super) struct Handles {
    device: Arc<dyn Device>,
    limit: usize,
    /// The one used last stands last.
    open: Mutex<VecDeque<(u64, Arc<dyn DeviceFile>)>>,
}

impl Handles {
    pub(super) fn new(device: Arc<dyn Device>, limit: usize) -> Handles {
        Handles { device, limit, open: Mutex::new(VecDeque::new()) }
    }

    /// The open file of this number.
    pub(super) fn get(&self, number: u64) -> io::Result<Arc<dyn DeviceFile>> {
        if let Some(handle) = self.find(number) {
            return Ok(handle);
        }
        // Opened without the latch: two threads may do so at once, and one of the two handles goes unused.
        let handle: Arc<dyn DeviceFile> = Arc::from(self.device.open(&BLOBS.file_name(number), Access::Read)?);
        let mut open = self.open.lock();
        if open.iter().all(|(known, _)| *known != number) {
            open.push_back((number, Arc::clone(&handle)));
            if open.len() > self.limit {
                open.pop_front();
            }
            debug_assert!(open.len() <= self.limit, "{} files are open", open.len());
        }
        Ok(handle)
    }

    fn find(&self, number: u64) -> Option<Arc<dyn DeviceFile>> {
        let mut open = self.open.lock();
        let place = open.iter().rposition(|(known, _)| *known == number)?;
        let entry = open.remove(place)?;
        let handle = Arc::clone(&entry.1);
        open.push_back(entry);
        Some(handle)
    }

    /// Closes the files that are not needed, so that the disk gets its space back once they are removed.
    pub(super) fn retain(&self, is_needed: impl Fn(u64) -> bool) {
        self.open.lock().retain(|(number, _)| is_needed(*number));
    }

    /// Files open now.
    pub(super) fn count(&self) -> usize {
        self.open.lock().len()
    }
}
