//! The device: a directory of named files, and the only way to the disk.
//!
//! Everything that must survive power loss goes through [`Device`], so that a test can put a device in its place
//! that loses power, tears writes or fails at a chosen step.
//!
//! Assumptions made of the medium, which every implementation must keep:
//! - A write is durable once a later [`DeviceFile::sync`] of the same file returned `Ok`, or when
//!   [`DeviceFile::write_durably`] wrote it and returned `Ok`; before that any part of it may be kept or lost, in any
//!   order, in units of 512-byte sectors.
//! - A sector is written whole or not at all, and writing one sector does no harm to another.
//! - A created or removed name is durable once a later [`Device::sync_dir`] returned `Ok`.
//! - After a failed sync nothing is known of the writes before it, and a second sync proves nothing. Data that is
//!   written again and then synced is durable.
//!
//! Imports none of the other rooms; all others import it.

pub(crate) mod fs;
pub(crate) mod lock;

use std::io;

/// A directory of files. Errors are plain [`io::Error`]s: the caller knows what it was doing and says so.
pub trait Device: Send + Sync + 'static {
    /// The directory in words, for messages.
    fn location(&self) -> String;

    /// Takes the exclusive lock of the directory, held until the returned value is dropped. Does not wait for it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another process holds the lock, or another part of this one; what the system
    /// fails with otherwise, for example [`io::ErrorKind::PermissionDenied`].
    fn lock(&self) -> io::Result<Box<dyn DirectoryLock>>;

    /// Takes the shared lock of a directory that may not be written to. Does not wait for it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another process holds the exclusive lock; what the system fails with
    /// otherwise.
    fn lock_shared(&self) -> io::Result<Box<dyn DirectoryLock>>;

    /// The names of all files, in no particular order.
    ///
    /// # Errors
    /// If the directory cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such file; what the system fails with otherwise.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DeviceFile>>;

    /// Creates an empty file.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the name is taken; what the system fails with otherwise, for example
    /// [`io::ErrorKind::StorageFull`].
    fn create(&self, name: &str) -> io::Result<Box<dyn DeviceFile>>;

    /// Removes a file.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such file; what the system fails with otherwise.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes created and removed names durable.
    ///
    /// # Errors
    /// If the names may not be durable.
    fn sync_dir(&self) -> io::Result<()>;
}

/// The access for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// An open file of a [`Device`]. Offsets are in bytes from the start of the file.
pub trait DeviceFile: Send + Sync {
    /// The length of the file in bytes.
    ///
    /// # Errors
    /// If the system cannot tell the length.
    fn size(&self) -> io::Result<u64>;

    /// Fills `bytes` from `offset`.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the file ends before `bytes` is full; what the medium fails with
    /// otherwise.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, extending the file where needed.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] or [`io::ErrorKind::QuotaExceeded`] where there is no space; what the medium
    /// fails with otherwise. Any part of `bytes` may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset` and makes them durable. Promises nothing of earlier writes.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at) and [`sync`](Self::sync). Any part of `bytes` may have been written, and may
    /// be durable.
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes several runs of bytes, each at its offset, and makes them durable together: until then any part of any of them
    /// may be kept or lost, in any order.
    ///
    /// # Errors
    /// As [`write_durably`](Self::write_durably), of any of the parts.
    fn write_parts_durably(&self, parts: &[(&[u8], u64)]) -> io::Result<()> {
        parts.iter().try_for_each(|(bytes, offset)| self.write_at(bytes, *offset))?;
        self.sync()
    }

    /// Extends the file to `size` bytes with zeros that take up room on the medium; does nothing to a file that
    /// is as long already. Overwriting such zeros costs no metadata update at the next sync.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at). The file may have grown by a part.
    fn preallocate(&self, size: u64) -> io::Result<()>;

    /// Makes all earlier writes durable, and as much metadata as it takes to read them back.
    ///
    /// # Errors
    /// If earlier writes may not be durable. A second call that returns `Ok` proves nothing of them.
    fn sync(&self) -> io::Result<()>;
}

/// The lock of a directory; dropping it releases the lock.
pub trait DirectoryLock: Send + Sync {}
