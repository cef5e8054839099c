//! Errors of checkpoints, shaped by what a caller can do about them.
//!
//! - Free some space, then write another checkpoint: [`CheckpointError::DiskFull`].
//! - Fix the directory: [`CheckpointError::ReadOnly`], [`CheckpointError::Io`].
//! - Take another program version: [`CheckpointError::UnknownVersion`].
//! - Take the checkpoint before, or a backup: [`CheckpointError::Corrupt`].
//! - Write the bytes anew: [`CheckpointError::NotThere`].
//! - Mend the call: [`CheckpointError::Underway`], [`CheckpointError::GivenUp`].

use std::io;

use thiserror::Error;
use types::BlobRef;

use crate::device::Device;

/// The result of an operation on checkpoints.
pub(super) type Result<T> = std::result::Result<T, CheckpointError>;

/// Why something could not be done with checkpoints.
///
/// A failure of the device, or of the system under it, is [`DiskFull`](Self::DiskFull), [`ReadOnly`](Self::ReadOnly) or
/// [`Io`](Self::Io), by its kind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The directory may not be written to.
    #[error("cannot {action} in {directory}: it is read-only or not ours to write ({source})")]
    ReadOnly {
        /// The action that failed.
        action: String,
        /// The directory.
        directory: String,
        /// The device's error.
        source: io::Error,
    },

    /// The disk, or the quota, is used up. The checkpoint is given up and its files are removed; those before it are
    /// as they were, and so is the log.
    #[error(
        "no space left to {action} in {directory} ({source}): this checkpoint is given up, the ones before it and the \
         log are whole; free some space there and the next checkpoint will work"
    )]
    DiskFull {
        /// The action that failed.
        action: String,
        /// The directory.
        directory: String,
        /// The device's error.
        source: io::Error,
    },

    /// Any other failure of the device.
    #[error("cannot {action} in {directory}: {source}")]
    Io {
        /// The action that failed.
        action: String,
        /// The directory.
        directory: String,
        /// The device's error.
        source: io::Error,
    },

    /// The file was written by a program with another format.
    #[error(
        "{file} has checkpoint format version {found}, this program reads version {supported}: open it with the \
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

    /// Bytes of a published checkpoint are damaged or missing.
    #[error(
        "{file} is damaged at byte {offset}: {detail}; what needs it must be restored from an earlier checkpoint, a \
         backup or a healthy copy of the disk"
    )]
    Corrupt {
        /// The file.
        file: String,
        /// The offset of the first byte that cannot be trusted.
        offset: u64,
        /// The sign of the damage.
        detail: String,
    },

    /// The blob is in none of the checkpoints that are kept: it was put into one that was given up, or nothing has
    /// referred to it for too long.
    #[error("no checkpoint holds the blob of {blob}: it has to be written anew")]
    NotThere {
        /// The blob asked for.
        blob: BlobRef,
    },

    /// Another checkpoint is being written.
    #[error("a checkpoint is being written in {directory} already: wait until it is published or given up")]
    Underway {
        /// The directory.
        directory: String,
    },

    /// The checkpoint was given up after a failure.
    #[error("this checkpoint was given up ({cause}): begin another one")]
    GivenUp {
        /// The failure.
        cause: String,
    },
}

/// Puts a device's failure into words: what was being done, where.
pub(super) fn device_error(action: String, device: &dyn Device, source: io::Error) -> CheckpointError {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let directory = device.location();
    match source.kind() {
        StorageFull | QuotaExceeded => CheckpointError::DiskFull { action, directory, source },
        PermissionDenied | ReadOnlyFilesystem => CheckpointError::ReadOnly { action, directory, source },
        _ => CheckpointError::Io { action, directory, source },
    }
}

/// Says what is wrong with the bytes of a file.
pub(super) fn corrupt(file: &str, offset: u64, detail: impl Into<String>) -> CheckpointError {
    CheckpointError::Corrupt { file: file.to_string(), offset, detail: detail.into() }
}
