//! Holds: files of blobs that stay for their readers although no kept checkpoint needs them.
//!
//! Data that is kept on disk only, and not in memory, needs a hold on its blob. Checkpoints go on as if there were
//! none: they copy the blob elsewhere, or forget it, and the file is no longer part of any. The file is removed
//! with the first sweep after its last hold was dropped, or when the directory is opened again.
//!
//! A hold is taken with the list of kept checkpoints latched for reading, and a sweep looks for holds after it has
//! changed that list: either the sweep sees the hold, or the taker sees that the file is not kept any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use types::BlobRef;

use super::Checkpoints;
use super::blob_file::{self, FileUse};
use super::error::{CheckpointError, Result, corrupt, device_error};

/// Keeps a file of blobs, whatever checkpoints are published. All holders of a file share one hold.
#[derive(Debug)]
pub struct BlobHold {
    file: FileUse,
}

/// The holds on files, by number.
#[derive(Default)]
pub(super) struct Holds(Mutex<BTreeMap<u64, Weak<BlobHold>>>);

impl Holds {
    /// The files that are held now.
    pub(super) fn files(&self) -> BTreeSet<u64> {
        let mut holds = self.0.lock();
        holds.retain(|_, hold| hold.strong_count() > 0);
        holds.keys().copied().collect()
    }

    /// A file that is held.
    pub(super) fn file(&self, number: u64) -> Option<FileUse> {
        self.0.lock().get(&number)?.upgrade().map(|hold| hold.file.unused())
    }

    fn get(&self, number: u64, kept: impl FnOnce() -> Option<FileUse>) -> Option<Arc<BlobHold>> {
        let mut holds = self.0.lock();
        if let Some(hold) = holds.get(&number).and_then(Weak::upgrade) {
            return Some(hold);
        }
        let hold = Arc::new(BlobHold { file: kept()? });
        holds.insert(number, Arc::downgrade(&hold));
        Some(hold)
    }
}

impl Checkpoints {
    /// Keeps the file of a blob for as long as the hold lives.
    ///
    /// # Errors
    /// [`CheckpointError::NotThere`] if neither a kept checkpoint nor another hold keeps the file;
    /// [`CheckpointError::Corrupt`] if the blob would stand beyond the end of the file.
    pub fn hold(&self, blob: BlobRef) -> Result<Arc<BlobHold>> {
        let state = self.state.read();
        let hold = self.holds.get(blob.file, || state.file(blob.file)).ok_or(CheckpointError::NotThere { blob })?;
        debug_assert_eq!(hold.file.number, blob.file, "invariant 6: another file is held than the blob's");
        hold.file.check_place(blob)?;
        Ok(hold)
    }

    /// Reads a blob of a file that is held, as [`read`](Checkpoints::read) does.
    ///
    /// # Errors
    /// [`CheckpointError::NotThere`] if the hold is on another file; [`CheckpointError::Corrupt`] if the file is
    /// missing or the bytes are not those that were put. A failure of the device to open or read the file.
    pub fn read_held(&self, hold: &BlobHold, blob: BlobRef) -> Result<Vec<u8>> {
        if hold.file.number != blob.file {
            return Err(CheckpointError::NotThere { blob });
        }
        hold.file.check_place(blob)?;
        let handle = match self.handles.get(blob.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(corrupt(&hold.file.name(), 0, "it is missing"));
            }
            opened => {
                opened.map_err(|source| device_error(format!("open {}", hold.file.name()), &*self.device, source))?
            }
        };
        blob_file::read(&*self.device, &*handle, blob)
    }
}
