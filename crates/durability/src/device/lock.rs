//! The lock of a directory, for all that opens files in it.

use std::io::{self, ErrorKind};

use crate::device::{Access, Device, DirectoryLock};
use crate::error::{LogError, Result, device_error};

fn refused(device: &dyn Device) -> impl Fn(io::Error) -> LogError + '_ {
    |source| match source.kind() {
        ErrorKind::WouldBlock => LogError::Locked { directory: device.location() },
        _ => device_error("lock the directory".to_string(), device.location(), source),
    }
}

/// Takes the lock of the directory, exclusive where it may be written to. Returns the lock and the access that it
/// gives. [`Log::open`](crate::Log::open) does so itself; a caller that reads checkpoints first takes the lock for
/// both ([`Log::open_locked`](crate::Log::open_locked)).
///
/// # Errors
/// [`LogError::Locked`] if another process, or another part of this one, has the directory open; a failure of the
/// device otherwise. That the directory may not be written to is none.
pub fn lock_directory(device: &dyn Device) -> Result<(Box<dyn DirectoryLock>, Access)> {
    match device.lock() {
        Err(source) if matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            lock_to_read(device)
        }
        locked => Ok((locked.map_err(refused(device))?, Access::Write)),
    }
}

/// Takes the shared lock of a directory that is only to be read.
///
/// # Errors
/// [`LogError::Locked`] if another process has the directory open for writing; a failure of the device otherwise.
pub fn lock_to_read(device: &dyn Device) -> Result<(Box<dyn DirectoryLock>, Access)> {
    Ok((device.lock_shared().map_err(refused(device))?, Access::Read))
}
