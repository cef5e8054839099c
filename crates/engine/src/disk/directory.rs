//! Directories of databases, as devices: opened, made or refused, with the path in the error.
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use durability::{Device, FsDevice};

use crate::error::{Error, Result};

/// The folder, in the directory of a database, for files that are of no use once it is closed.
pub(crate) const TEMPORARY: &str = "temporary";

/// Puts the path into an error of the device.
fn unusable(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::Directory { path: path.display().to_string(), source }
}

/// A directory, made if it is missing.
pub(crate) fn made(path: &Path) -> Result<FsDevice> {
    if path.is_file() {
        return Err(unusable(path)(io::Error::new(ErrorKind::NotADirectory, "it is a file")));
    }
    FsDevice::new(path).map_err(unusable(path))
}

/// The path of the folder for temporary files in a database's directory. What a process left there that did not end in order goes, if
/// the directory had a database before: otherwise it is somebody else's. What can't be removed stays.
pub(crate) fn temporary(database: &Path, was_there: bool) -> Result<PathBuf> {
    let folder = std::path::absolute(database).map_err(unusable(database))?.join(TEMPORARY);
    debug_assert!(
        folder.is_absolute(),
        "{} would be another folder for a process that goes elsewhere",
        folder.display()
    );
    if was_there {
        let _ = fs::remove_dir_all(&folder);
    }
    Ok(folder)
}

/// Whether a directory has files of a log or a checkpoint.
pub(crate) fn has_database(path: &Path) -> bool {
    let is_known = |name: &str| name.starts_with("redo") || name.starts_with("checkpoint-");
    let Ok(mut entries) = fs::read_dir(path) else { return false };
    entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_known)))
}

/// A directory that is there.
pub(crate) fn existing(path: &Path) -> Result<FsDevice> {
    if !path.is_dir() {
        return Err(unusable(path)(io::Error::new(ErrorKind::NotFound, "there is no such directory")));
    }
    made(path)
}

/// A directory with nothing in it, made if it is missing.
pub(crate) fn empty(path: &Path) -> Result<FsDevice> {
    let device = made(path)?;
    if !device.list().map_err(unusable(path))?.is_empty() {
        return Err(unusable(path)(io::Error::new(ErrorKind::AlreadyExists, "it is not empty")));
    }
    Ok(device)
}
