//! The lock of a directory, for all that opens files in it.

use crate::device::{Access, Device, DirectoryLock};
use crate::error::{LogError, Result, device_error};

/// Takes the lock of the directory, exclusive where it may be written to. What the directory is locked for comes back
/// with the lock. [`Log::open`](crate::Log::open) does so itself; whoever reads checkpoints first does it for both
/// ([`Log::open_locked`](crate::Log::open_locked)).
pub fn lock_directory(device: &dyn Device) -> Result<(Box<dyn DirectoryLock>, Access)> {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, WouldBlock};
    let fail = |source: std::io::Error| match source.kind() {
        WouldBlock => LogError::Locked { directory: device.location() },
        _ => device_error("lock the directory".to_string(), device.location(), source),
    };
    match device.lock() {
        Ok(lock) => Ok((lock, Access::Write)),
        Err(source) if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            Ok((device.lock_shared().map_err(fail)?, Access::Read))
        }
        Err(source) => Err(fail(source)),
    }
}

/// Takes the shared lock of a directory that is only to be read.
pub fn lock_to_read(device: &dyn Device) -> Result<(Box<dyn DirectoryLock>, Access)> {
    let locked = device.lock_shared().map_err(|source| match source.kind() {
        std::io::ErrorKind::WouldBlock => LogError::Locked { directory: device.location() },
        _ => device_error("lock the directory for reading".to_string(), device.location(), source),
    });
    Ok((locked?, Access::Read))
}
