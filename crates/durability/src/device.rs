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

use std::io;

/// A directory of files. Errors are plain [`io::Error`]s: the caller knows what it was doing and says so.
pub trait Device: Send + Sync + 'static {
    /// The directory in words, for messages.
    fn location(&self) -> String;

    /// Takes the exclusive lock of the directory, held until the returned value is dropped. Fails at once with
    /// [`io::ErrorKind::WouldBlock`] if another process holds it.
    fn lock(&self) -> io::Result<Box<dyn DirectoryLock>>;

    /// Takes the shared lock of a directory that may not be written to. Fails with [`io::ErrorKind::WouldBlock`] if
    /// another process holds the exclusive lock.
    fn lock_shared(&self) -> io::Result<Box<dyn DirectoryLock>>;

    /// The names of all files, in no particular order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DeviceFile>>;

    /// Creates an empty file; fails with [`io::ErrorKind::AlreadyExists`] if the name is taken.
    fn create(&self, name: &str) -> io::Result<Box<dyn DeviceFile>>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes created and removed names durable.
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
    fn size(&self) -> io::Result<u64>;

    /// Fills `bytes` from `offset`; fails with [`io::ErrorKind::UnexpectedEof`] beyond the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, extending the file where needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset` and makes them durable. Promises nothing of earlier writes.
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes several runs of bytes, each at its offset, and makes them durable together: until then any part of any of them
    /// may be kept or lost, in any order.
    fn write_parts_durably(&self, parts: &[(&[u8], u64)]) -> io::Result<()> {
        parts.iter().try_for_each(|(bytes, offset)| self.write_at(bytes, *offset))?;
        self.sync()
    }

    /// Extends the file to `size` bytes with zeros that take up room on the medium; does nothing to a file that
    /// is as long already. Overwriting such zeros costs no metadata update at the next sync.
    fn preallocate(&self, size: u64) -> io::Result<()>;

    /// Makes all earlier writes durable, and as much metadata as it takes to read them back.
    fn sync(&self) -> io::Result<()>;
}

/// The lock of a directory; dropping it releases the lock.
pub trait DirectoryLock: Send + Sync {}
