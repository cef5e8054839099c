//! [`FsDevice`]: the device on a directory of the file system.
//!
//! Positional reads and writes, `fdatasync` for files, `fsync` for the directory, and an advisory lock on the
//! file `LOCK` that the kernel releases when the process ends, however it ends. Preallocation writes real zeros:
//! blocks reserved by `fallocate` still cost a metadata update when they are first written.
//!
//! A durable write is one system call (`pwritev2` with `RWF_DSYNC`), which the kernel finishes a little sooner than a
//! write and an `fdatasync`; where the kernel or the file system does not know it, and on other systems, it is these two.

use std::fs::{File, TryLockError};
use std::io;
#[cfg(target_os = "linux")]
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::io::{Errno, ReadWriteFlags};

use crate::device::{Access, Device, DeviceFile, DirectoryLock};

const LOCK_FILE: &str = "LOCK";
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// A [`Device`] on a directory of the file system.
#[derive(Debug)]
pub struct FsDevice {
    directory: PathBuf,
}

impl FsDevice {
    /// A device on `directory`, which is created (with its parents) if it does not exist.
    ///
    /// # Errors
    /// What the system fails with if the directory or one of its parents cannot be created, or made durable in its
    /// parent.
    pub fn new(directory: impl Into<PathBuf>) -> io::Result<FsDevice> {
        let directory = directory.into();
        create_durably(&directory)?;
        Ok(FsDevice { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        debug_assert!(!name.contains('/'), "a name, not a path: {name}");
        self.directory.join(name)
    }
}

/// Creates the missing directories from the top down, each made durable in its parent.
fn create_durably(directory: &Path) -> io::Result<()> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    let parent = match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_durably(parent)?;
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !directory.is_dir() => {
            return Err(error);
        }
        _ => {}
    }
    File::open(parent)?.sync_all()
}

impl Device for FsDevice {
    fn location(&self) -> String {
        self.directory.display().to_string()
    }

    fn lock(&self) -> io::Result<Box<dyn DirectoryLock>> {
        let file = File::options().create(true).truncate(false).write(true).open(self.path(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(FsLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock_shared(&self) -> io::Result<Box<dyn DirectoryLock>> {
        let file = match File::open(self.path(LOCK_FILE)) {
            Ok(file) => file,
            // The directory was never written to, or the medium was copied without the lock.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Box::new(NoLock)),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Box::new(FsLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            // A name that is not UTF-8 is none of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DeviceFile>> {
        let file = File::options().read(true).write(access == Access::Write).open(self.path(name))?;
        Ok(Box::new(FsFile { file }))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DeviceFile>> {
        let file = File::options().read(true).write(true).create_new(true).open(self.path(name))?;
        Ok(Box::new(FsFile { file }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

#[derive(Debug)]
struct FsFile {
    file: File,
}

impl DeviceFile for FsFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    #[cfg(not(target_os = "linux"))]
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync()
    }

    #[cfg(target_os = "linux")]
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = [IoSlice::new(&bytes[done..])];
            match rustix::io::pwritev2(&self.file, &rest, offset + done as u64, ReadWriteFlags::DSYNC) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    self.write_at(&bytes[done..], offset + done as u64)?;
                    return self.sync();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn preallocate(&self, size: u64) -> io::Result<()> {
        let mut end = self.size()?;
        while end < size {
            let chunk = (ZEROS.len() as u64).min(size - end);
            self.file.write_all_at(&ZEROS[..chunk as usize], end)?;
            end += chunk;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Holds the `LOCK` file open; closing it releases the lock.
struct FsLock {
    _file: File,
}

impl DirectoryLock for FsLock {}

/// Stands for the lock where there is no `LOCK` file.
struct NoLock;

impl DirectoryLock for NoLock {}
