//! Images of ranges: what a checkpoint keeps of a table, and getting a table back from it (Hathi, sections 3 and 4;
//! L-Store, section 5).
//!
//! ```text
//! image at time c   base pages, history pages     a blob each, written once; later images refer to it again
//!                   range image                   a blob: records of insert pages, tail records that are not history, all
//!                                                 that committed at or before c; lineage; references to the pages
//! ```
//!
//! A table's ranges have images of different times. A restore replays for each range what the log has after the
//! time of its image.
//!
//! Nothing waits for an image: it reads what never changes, and resolves versions as readers do. Versions that had
//! not committed by c are missing in it; the numbers of missing tail records are tombstones. Numbers stay what they
//! were, so that the TPS of the pages stay true.
//!
//! A page knows the blob that has it, once the checkpoint that wrote it has been published ([`RangeImage::published`]). A
//! range to which nothing has happened since then gives its former image back.
//!
//! | module | subject |
//! |---|---|
//! | `range_bytes`, `records`, `outlines` | the bytes of an image |
//! | `check` | whether pages hold what they say |
//! | `take` | what belongs into an image, and why it is one moment of the range |
//! | `place` | writing its blobs, and noticing that nothing has happened |
//! | `restore` | a range from its image |
//! | `visit` | the versions of a restored range, for building an index |
pub(crate) mod check;
mod early;
pub(crate) mod outlines;
mod place;
pub(crate) mod range_bytes;
pub(crate) mod records;
mod restore;
mod take;
#[cfg(test)]
pub(crate) mod tests;
mod visit;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use types::{BlobRef, Timestamp};

use crate::memory::evictable::StoredBlob;
use crate::record::last_image::LastImage;

/// Takes the blobs of a checkpoint.
pub trait BlobSink {
    /// Why a blob was not taken.
    type Error;

    /// Writes a blob.
    ///
    /// # Errors
    /// Why the blob was not taken. The image that it belongs to is given up.
    fn put(&mut self, bytes: &[u8]) -> Result<BlobRef, Self::Error>;

    /// Makes a blob of an earlier checkpoint one of this too; where it was copied, the result says where to. `None`, and nothing was
    /// done, where it is damaged.
    ///
    /// # Errors
    /// Why the blob was not taken, or not copied. The image that it belongs to is given up.
    fn keep(&mut self, blob: BlobRef) -> Result<Option<BlobRef>, Self::Error>;

    /// Makes a blob one of this checkpoint that is damaged, as nothing can be put in its place.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    fn keep_damaged(&mut self, blob: BlobRef) -> Result<BlobRef, Self::Error>;
}

/// When the pages of a range that is restored are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageReading {
    /// At once: what can't be read, or is damaged, is told before anything of the range is changed.
    AtOnce,
    /// When they are first used, if the image says enough of them and the account of memory has a source of pages; otherwise at
    /// once. What is wrong with a page is told to the reader that needs it.
    WhenUsed,
}

/// Gives blobs back.
pub trait BlobSource {
    /// Why a blob could not be read.
    type Error;

    /// The bytes of a blob.
    ///
    /// # Errors
    /// Why the blob could not be read.
    fn get(&self, blob: BlobRef) -> Result<Vec<u8>, Self::Error>;
}

/// The image of a range as part of a checkpoint that is being written.
#[must_use = "a checkpoint names the image, and tells it once it is published"]
pub struct RangeImage {
    /// it has what committed at or before this time
    pub at: Timestamp,
    /// where the image is
    pub blob: BlobRef,
    /// whether it is the former image, as nothing has happened since
    pub is_unchanged: bool,
    /// the newest commit that it has; the log must be stable up to here before the checkpoint is published
    pub newest: Timestamp,
    /// what each page will remember
    placed: Vec<(Arc<StoredBlob>, BlobRef)>,
    /// what the range will remember
    last: Option<LastImage>,
    remembers: Arc<Mutex<Option<LastImage>>>,
}

impl RangeImage {
    /// The checkpoint that has this image can be found after a crash. Later ones may refer to its blobs; if this is never
    /// called, they write them again.
    pub fn published(self) {
        for (stored, blob) in self.placed {
            stored.set(blob);
        }
        *self.remembers.lock().unwrap_or_else(PoisonError::into_inner) = self.last;
    }
}

/// Why a range was not restored. Nothing of it was then.
#[derive(Debug, PartialEq, Eq)]
pub enum RestoreError<E> {
    /// A blob could not be read.
    Source {
        /// which
        blob: BlobRef,
        /// why
        error: E,
    },
    /// A blob was read, and what is in it can't be, or is not of this table.
    Damaged {
        /// which
        blob: BlobRef,
        /// what is wrong with it
        what: String,
    },
    /// The range has records: it was restored before, or written to.
    Occupied {
        /// its number
        range: usize,
    },
}

impl<E: fmt::Display> fmt::Display for RestoreError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Source { blob, error } => write!(f, "cannot read a page ({blob}): {error}"),
            RestoreError::Damaged { blob, what } => write!(f, "a page is damaged ({blob}): the {what}"),
            RestoreError::Occupied { range } => write!(f, "range {range} has records already"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for RestoreError<E> {}
