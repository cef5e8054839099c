//! Errors of a heap, shaped by what a caller can do about them.
//!
//! - Begin the transaction again: [`HeapError::Conflict`] ([`Heap::atomically`](crate::Heap::atomically) does so).
//! - Free something, or open the heap with more words: [`HeapError::OutOfSpace`], [`HeapError::TooSmall`].
//! - Free memory, or end other snapshots: [`HeapError::Snapshot`].
//! - Mend the call: [`HeapError::OutOfBounds`], [`HeapError::NotABlock`].
//! - Everything else is the log's, or the device's under it: [`HeapError::Log`], see [`LogError`].

use durability::LogError;
use snapshot::SnapshotError;
use thiserror::Error;

/// The result of an operation on a heap.
pub type HeapResult<T> = std::result::Result<T, HeapError>;

/// Why a heap could not do what was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HeapError {
    /// Another transaction has committed what this one would have to contradict. Nothing of it has happened; begun
    /// again it may succeed.
    #[error("the transaction met a conflicting one: begin it again")]
    Conflict,

    /// There is no room for a block.
    #[error("no room for a block of {words} words in a heap of {size_words}: free some, or open it with more words")]
    OutOfSpace {
        /// The size asked for.
        words: u64,
        /// The size of the heap.
        size_words: u64,
    },

    /// A word was read or written that belongs to no block, or to none yet.
    #[error("word {at} is outside of what was allocated, which ends at word {end}")]
    OutOfBounds {
        /// The word.
        at: u64,
        /// The first word that is out of bounds.
        end: u64,
    },

    /// No block that is in use begins there.
    #[error("no block in use begins at word {at}: was it freed before, or its first words overwritten?")]
    NotABlock {
        /// The word.
        at: u64,
    },

    /// The heap holds words beyond the size that it was to be opened with.
    #[error("the heap holds word {at}, but was to be opened with {size_words} words: open it with more")]
    TooSmall {
        /// The word.
        at: u64,
        /// The size asked for.
        size_words: u64,
    },

    /// A checkpoint was written by a program with another format.
    #[error(
        "{file} has heap checkpoint format version {found}, this program reads version {supported}: open it with the \
         program version that wrote it"
    )]
    UnknownVersion {
        /// The file.
        file: String,
        /// The version in its header.
        found: u32,
        /// The version this program reads and writes.
        supported: u32,
    },

    /// The system has no memory for a snapshot, or for what one is to keep. Nothing has happened.
    #[error("{0}")]
    Snapshot(#[from] SnapshotError),

    /// The log, or the device.
    #[error(transparent)]
    Log(Box<LogError>),
}

impl From<LogError> for HeapError {
    fn from(error: LogError) -> HeapError {
        HeapError::Log(Box::new(error))
    }
}
