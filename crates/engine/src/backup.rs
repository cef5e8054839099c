//! Backups: a copy of the database in another directory, taken while it is used, which opens like any other.
//!
//! ```text
//! 1  a checkpoint; from here on none is taken and the log is not trimmed
//! 2  its manifest and the files of its blobs, copied
//! 3  until = the last commit that is on disk now
//! 4  a new log in the copy: the commits after the checkpoint up to `until`, with their numbers
//! ```
//!
//! The copy is the database as of `until`, with every version, its history and its Rids. Writers go on meanwhile; nobody waits
//! but the caller. To restore a backup, copy its directory
//! ([`Database::restore`]), or open it where it is.
use std::path::Path;
use std::sync::Arc;

use durability::{
    CheckpointFileKind, CommitMode, Device, FrameKind, Log, LogOptions, Lsn, OpenError, begin_log_at, lock_to_read,
    read_log,
};
use types::Timestamp;

use crate::checkpoint::{CheckpointReport, Taking};
use crate::database::Database;
use crate::directory;
use crate::error::{Error, Result};

/// What a backup holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupReport {
    /// every commit up to this one is in it, and none after it
    pub until: Timestamp,
    /// files of checkpoints copied
    pub files: u64,
    /// their bytes
    pub bytes: u64,
    /// commits copied from the log
    pub commits: u64,
}

/// Bytes copied at a time.
const CHUNK_BYTES: u64 = 1 << 20;

impl Database {
    /// Copies the database, as of a moment during the call, to a directory, which must be empty or missing.
    ///
    /// # Errors
    /// [`Error::NotOnDisk`] for a database in memory; [`Error::Directory`] if the target is not empty or can't be written.
    /// What was copied by then is left there, and does not open as a database.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport> {
        let checkpointer = self.shared.checkpointer.as_ref().ok_or(Error::NotOnDisk)?;
        let copy: Arc<dyn Device> = Arc::new(directory::empty(target.as_ref())?);
        checkpointer.with_checkpoint(|taking, report| copy_checkpoint(taking, &report, &copy))
    }

    /// Copies a backup, or any database that nobody has open, to a directory, which must be empty or missing. Returns the
    /// files copied.
    pub fn restore(backup: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<u64> {
        let from = directory::existing(backup.as_ref())?;
        let _lock = lock_to_read(&from)?;
        let to = directory::empty(target.as_ref())?;
        let mut names = from.list().map_err(failed(&from))?;
        // Manifests last: what was copied by then does not look like a database with nothing in it.
        names.sort_by_key(|name| name.ends_with(".manifest"));
        names.iter().try_for_each(|name| copy_file(&from, &to, name).map(drop))?;
        Ok(names.len() as u64)
    }
}

/// Copies a checkpoint, and the log after it as far as it is on disk.
fn copy_checkpoint(taking: &Taking, report: &CheckpointReport, copy: &Arc<dyn Device>) -> Result<BackupReport> {
    let mut needed = taking.checkpoints.files()?;
    needed.retain(|file| file.needed_by.contains(&report.number));
    // The manifest last: without it there is no database.
    needed.sort_by_key(|file| file.kind == CheckpointFileKind::Manifest);
    taking.log.flush()?;
    let until = taking.log.stable_lsn();
    let commits = copy_log(&*taking.device, copy, report.from.0, until)?;
    let mut bytes = 0;
    for file in &needed {
        bytes += copy_file(&*taking.device, &**copy, &file.name)?;
    }
    Ok(BackupReport { until: Timestamp(until), files: needed.len() as u64, bytes, commits })
}

fn failed(device: &dyn Device) -> impl Fn(std::io::Error) -> Error + '_ {
    |source| Error::Directory { path: device.location(), source }
}

fn copy_file(from: &dyn Device, to: &dyn Device, name: &str) -> Result<u64> {
    let source = from.open(name, durability::Access::Read).map_err(failed(from))?;
    let size = source.size().map_err(failed(from))?;
    let target = to.create(name).map_err(failed(to))?;
    let mut at = 0;
    while at < size {
        let mut chunk = vec![0; CHUNK_BYTES.min(size - at) as usize];
        source.read_at(&mut chunk, at).map_err(failed(from))?;
        target.write_at(&chunk, at).map_err(failed(to))?;
        at += chunk.len() as u64;
    }
    target.sync().and_then(|()| to.sync_dir()).map_err(failed(to))?;
    Ok(size)
}

/// Makes a log of the commits after `after` up to `until`; returns how many there are.
fn copy_log(from: &dyn Device, to: &Arc<dyn Device>, after: Lsn, until: Lsn) -> Result<u64> {
    begin_log_at(&**to, after + 1)?;
    let nothing = &mut |_: durability::Frame<'_>| Ok::<(), Error>(());
    let (log, _) = Log::open(to.clone(), LogOptions::default(), nothing, &mut |_, _| ())?;
    let (mut next, mut commits) = (after + 1, 0);
    let copied: std::result::Result<(), OpenError<Error>> = read_log(from, after + 1, until, &mut |frame| {
        if frame.kind == FrameKind::Data {
            return Ok(log.append_data(0, frame.txn, frame.payload)?);
        }
        void(&log, next..frame.lsn)?;
        log.append_commit(0, frame.txn, frame.payload, CommitMode::Async, || frame.lsn)?;
        (next, commits) = (frame.lsn + 1, commits + 1);
        Ok(())
    });
    copied?;
    void(&log, next..until + 1)?;
    log.close()?;
    Ok(commits)
}

/// Numbers that no commit has.
fn void(log: &Log, numbers: std::ops::Range<Lsn>) -> Result<()> {
    for number in numbers {
        log.reserve(0, 0)?.void(0, number);
    }
    Ok(())
}
