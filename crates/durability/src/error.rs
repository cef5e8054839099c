//! Errors, shaped by what a caller can do about them.
//!
//! - Wait or look for the other process: [`LogError::Locked`].
//! - Free some space and try again: [`LogError::DiskFull`].
//! - Fix the directory and open again: [`LogError::ReadOnly`], [`LogError::Io`].
//! - Take another program version or a backup: [`LogError::UnknownVersion`], [`LogError::Corrupt`].
//! - Mend the call: [`LogError::FrameTooLarge`], [`LogError::NotAppended`].
//! - Make the archive work: [`LogError::NotArchived`].
//! - Close and open again: [`LogError::Poisoned`].

use std::io;

use thiserror::Error;

/// The result of an operation on the log.
pub type Result<T> = std::result::Result<T, LogError>;

/// Why the log could not do what was asked.
///
/// A failure of the device, or of the system under it, is [`DiskFull`](Self::DiskFull), [`ReadOnly`](Self::ReadOnly) or
/// [`Io`](Self::Io), by its kind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// Another process, or another log in this process, has the directory open.
    #[error("directory {directory} is in use: another process (or another part of this one) has it open")]
    Locked {
        /// The directory.
        directory: String,
    },

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

    /// The disk, or the quota, is used up. Everything acknowledged before is safe, and the log goes on as soon as
    /// there is space.
    #[error(
        "no space left to {action} in {directory} ({source}): free some space there and try again; nothing that was \
         acknowledged is lost"
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
        "{file} has redo log format version {found}, this program reads version {supported}: open it with the \
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

    /// Bytes that had been acknowledged are damaged or missing.
    #[error("{file} is damaged at byte {offset}: {detail}; restore it from a backup or a healthy copy of the disk")]
    Corrupt {
        /// The file.
        file: String,
        /// The offset of the first byte that cannot be trusted.
        offset: u64,
        /// The sign of the damage.
        detail: String,
    },

    /// The payload is larger than a frame may be.
    #[error("a payload of {bytes} bytes exceeds the limit of {limit}: append it in several data frames")]
    FrameTooLarge {
        /// The size of the payload.
        bytes: usize,
        /// The largest payload.
        limit: usize,
    },

    /// An LSN was waited for that no commit has yet.
    #[error("LSN {lsn} was not appended yet, the last one is {last}")]
    NotAppended {
        /// The LSN waited for.
        lsn: u64,
        /// The last LSN appended.
        last: u64,
    },

    /// A segment that is needed no more could not be archived. It stays until it is; the log goes on.
    #[error("cannot archive {file}: {source}; the log keeps it until this works")]
    NotArchived {
        /// The file.
        file: String,
        /// The archive's error.
        source: io::Error,
    },

    /// An earlier write or sync failed. Nothing more is accepted, as nothing more could be promised.
    #[error("the redo log takes no more writes after a failure ({cause}); close the database and open it again")]
    Poisoned {
        /// The failure.
        cause: String,
    },
}

/// Why a log could not be opened.
#[derive(Debug, Error)]
pub enum OpenError<E> {
    /// The log itself.
    #[error(transparent)]
    Log(#[from] LogError),

    /// The receiver of the frames refused one.
    #[error("cannot replay the frame at byte {offset} of {file}: {error}")]
    Apply {
        /// The file.
        file: String,
        /// Where the frame stands.
        offset: u64,
        /// The receiver's error.
        error: E,
    },
}

/// Puts a device's failure into words: what was being done, where.
pub fn device_error(action: String, directory: String, source: io::Error) -> LogError {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match source.kind() {
        StorageFull | QuotaExceeded => LogError::DiskFull { action, directory, source },
        PermissionDenied | ReadOnlyFilesystem => LogError::ReadOnly { action, directory, source },
        _ => LogError::Io { action, directory, source },
    }
}
