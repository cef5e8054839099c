//! Loads: the base columns that a large transaction makes go to files of their own, and the log names these in place of the bytes.
//!
//! The bytes would be in the log and, a little later, in a checkpoint once more. A checkpoint refers to blobs of a load as to those of
//! other checkpoints. As the files are no part of the log, an archive of it would miss them: with an archive there are no loads, and the
//! columns are in the log. A backup copies the files that its log names (`disk/backup.rs`).
use std::sync::Arc;

use durability::{Checkpoints, LoadWriter};
use lineage::EarlyColumns;
use parking_lot::Mutex;
use types::{BlobRef, Timestamp};

use crate::error::Result;

/// A transaction that has less than so many bytes of columns has them in the log: two files and their syncs are not worth it.
const FROM_BYTES: usize = 4 << 20;

/// Where loads of a database go.
pub(crate) struct Loads {
    checkpoints: Arc<Checkpoints>,
    from_bytes: usize,
}

impl Loads {
    /// Those of a database without an archive, for transactions with at least so many bytes of columns, if that is said.
    pub(crate) fn new(checkpoints: Arc<Checkpoints>, from_bytes: Option<usize>) -> Loads {
        Loads { checkpoints, from_bytes: from_bytes.unwrap_or(FROM_BYTES) }
    }

    /// Whether the columns that follow so many bytes of them are to go to files.
    pub(crate) fn are_worth(&self, bytes: usize) -> bool {
        bytes >= self.from_bytes
    }

    /// Begins a load.
    pub(crate) fn begin(&self) -> Arc<Load> {
        Arc::new(Load(Mutex::new(self.checkpoints.begin_load())))
    }
}

/// The load of one transaction. Its files go with it, if it was not finished.
pub(crate) struct Load(Mutex<LoadWriter>);

/// Where the columns of a range are.
pub(crate) struct PlacedColumns {
    /// the number of their file, and what tells it from another one
    pub(crate) file: u64,
    pub(crate) salt: u64,
    /// the blob of each
    pub(crate) blobs: Vec<BlobRef>,
}

impl Load {
    /// Writes the columns of a range. `None` where that can't be done, which [`finish`](Load::finish) tells, or where the load is over.
    pub(crate) fn put(&self, columns: &EarlyColumns) -> Option<PlacedColumns> {
        let (salt, blobs) = self.0.lock().put(columns.blobs()).ok()?;
        debug_assert!(blobs.iter().all(|blob| blob.is_of_load()), "a checkpoint may remove {blobs:?}");
        let file = blobs.first()?.file;
        debug_assert!(blobs.iter().all(|blob| blob.file == file), "columns of a range are in several files: {blobs:?}");
        Some(PlacedColumns { file, salt, blobs })
    }

    /// Puts all of it on disk, before the commit that names it goes to the log.
    pub(crate) fn finish(&self) -> Result<()> {
        Ok(self.0.lock().finish()?)
    }

    /// Notes that a commit names it.
    pub(crate) fn named_by(&self, at: Timestamp) {
        self.0.lock().named_by(at.0);
    }
}
