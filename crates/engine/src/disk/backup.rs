//! Backups: a copy of the database in another directory, taken while it is used, which opens like any other.
//!
//! ```text
//! 1  a checkpoint; from here on none is taken and the log is not trimmed
//! 2  its manifest and the files of its blobs, copied
//! 3  until = the last commit that is on disk now
//! 4  a new log in the copy: the commits after the checkpoint up to `until`, with their numbers; the files of loads that they name
//! 5  backup.mark: which log the commits are from, so that what was archived of it can go on from there (`moment`)
//! ```
//!
//! Until all of it is on disk a sign stands in the directory that it is no database.
//!
//! The copy is the database as of `until`, with every version, its history and its Rids. Writers go on meanwhile;
//! only the caller waits. To restore a backup, copy its directory ([`Database::restore`](crate::Database::restore)), or open it
//! where it is.
use std::path::Path;
use std::sync::Arc;

use durability::{Device, Lsn, OpenError, lock_to_read, read_log};
use serde::{Deserialize, Serialize};
use types::Timestamp;

use crate::disk::archive::SETTING_FILE;
use crate::disk::checkpoint::{CheckpointParts, CheckpointReport};
use crate::disk::copy::{self, LogCopy, failed};
use crate::disk::directory;
use crate::disk::moment::{self, RecoveryTarget};
use crate::error::{Error, Result};
use crate::terms::wall_clock::Micros;

/// The contents of a backup.
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

/// Says of a directory that it is a backup.
const MARK_FILE: &str = "backup.mark";

/// The mark that a backup has of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct BackupMark {
    /// the number of the log that has its commits
    pub(crate) log: u64,
    /// its checkpoint
    pub(crate) checkpoint: u64,
    /// every commit up to this one is in it
    pub(crate) until: Lsn,
    /// when that was the newest one
    pub(crate) micros: Micros,
}

impl BackupMark {
    /// The mark in a directory; none where it is not a backup.
    pub(crate) fn read(device: &dyn Device) -> Result<Option<BackupMark>> {
        let Some(bytes) = copy::read_file(device, MARK_FILE).map_err(failed(device))? else { return Ok(None) };
        let damaged = |error: serde_json::Error| Error::BadBackup {
            backup: device.location(),
            why: format!("{MARK_FILE} is damaged: {error}"),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    fn write(&self, device: &dyn Device) -> Result<()> {
        copy::write_file(device, MARK_FILE, &serde_json::to_vec(self).expect("it is numbers"))
    }
}

/// Copies a checkpoint, and the log after it as far as it is on disk.
pub(crate) fn copy_checkpoint(
    taking: &CheckpointParts,
    report: &CheckpointReport,
    to: &Arc<dyn Device>,
) -> Result<BackupReport> {
    copy::begin(&**to)?;
    let (micros, until) = taking.put_on_disk()?;
    debug_assert!(until >= report.from.0, "invariant 8: the log ends with {until}, before the checkpoint {report:?}");
    let mut copied = LogCopy::begin(to, report.from.0, until)?;
    let read: std::result::Result<(), OpenError<Error>> =
        read_log(&*taking.device, report.from.0 + 1, until, &mut |frame| copied.take(frame));
    read?;
    let commits = copied.finish()?;
    debug_assert!(commits <= until - report.from.0, "{commits} commits between {:?} and {until}", report.from);
    let (from, device) = (report.from.0, &*taking.device);
    let (files, bytes) = copy::checkpoint(&taking.checkpoints, (device, &**to), Some(report.number), from)?;
    let mark = BackupMark { log: taking.log.number(), checkpoint: report.number, until, micros };
    mark.write(&**to)?;
    copy::finish(&**to)?;
    Ok(BackupReport { until: Timestamp(until), files, bytes, commits })
}

/// Copies a backup, or any database that is not open; returns the files copied. The target is made once the origin is known
/// to be whole.
pub(crate) fn restore(from: &Arc<dyn Device>, target: &Path) -> Result<u64> {
    copy::check_finished(&**from)?;
    let to: Arc<dyn Device> = Arc::new(directory::empty(target)?);
    if BackupMark::read(&**from)?.is_some() {
        return Ok(moment::restore(from, None, &to, RecoveryTarget::Latest, &mut |_, _| ())?.files);
    }
    let _lock = lock_to_read(&**from)?;
    copy::begin(&*to)?;
    let mut names = from.list().map_err(failed(&**from))?;
    // A copy does not go on in the archive of the other.
    names.retain(|name| name != SETTING_FILE && name != directory::TEMPORARY);
    names.iter().try_for_each(|name| copy::file(&**from, &*to, name).map(drop))?;
    copy::finish(&*to)?;
    Ok(names.len() as u64)
}
