//! Looking at a database from outside: which files there are, and what is in them. Whether all of it is whole, `verify` tells.
//!
//! Nothing is changed. A database that another process has open is refused.
use std::path::Path;
use std::sync::Arc;

use durability::{
    Access, ArchivedLog, CheckpointFile, Checkpoints, Device, LogFile, Manifest, archived_logs, lock_to_read, log_files,
};

use crate::database::handle::Database;
use crate::disk::backup::BackupMark;
use crate::disk::checkpoint::{CheckpointedTable, tables_of};
use crate::disk::directory;
use crate::error::Result;

/// The contents of the directory of a database.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// the kept checkpoints, newest first
    pub checkpoints: Vec<CheckpointSummary>,
    /// their files
    pub checkpoint_files: Vec<CheckpointFile>,
    /// the files of the log
    pub log_files: Vec<LogFile>,
    /// the damage in the checkpoints
    pub damaged: Vec<String>,
    /// of a backup, what it has
    pub backup: Option<BackupSummary>,
}

/// The contents of a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupSummary {
    /// the number of the log that it was taken from
    pub log: u64,
    /// every commit up to this one
    pub until: u64,
    /// when that was the newest, in microseconds since 1970
    pub micros: i64,
}

/// A log in an archive: one life of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArchivedLife {
    /// the number of the log
    pub log: u64,
    /// the first and the last commit of what is there without a gap, if that is known
    pub commits: Option<(u64, u64)>,
    /// when that was so, in microseconds since 1970
    pub micros: i64,
    /// files with segments of the log
    pub segments: u64,
    /// their bytes
    pub bytes: u64,
}

/// The contents of a checkpoint.
#[derive(Clone, Debug)]
pub struct CheckpointSummary {
    /// counts the checkpoints
    pub number: u64,
    /// the log is needed from the commit after this one
    pub from: u64,
    /// blobs and their bytes
    pub live: (u64, u64),
    /// its tables
    pub tables: Vec<CheckpointedTable>,
}

impl Database {
    /// The contents of a directory.
    ///
    /// # Errors
    /// [`Error::Directory`](crate::Error::Directory) if there is no such directory; [`Error::Log`](crate::Error::Log)
    /// if another process has the database open for writing, or the files cannot be read;
    /// [`Error::Checkpoint`](crate::Error::Checkpoint) if the checkpoints are of another format or cannot be read;
    /// [`Error::BadBackup`](crate::Error::BadBackup) if the mark of a backup is damaged. Other damage is told in the
    /// answer.
    pub fn inspect(directory: impl AsRef<Path>) -> Result<Inspection> {
        let device: Arc<dyn Device> = Arc::new(directory::existing(directory.as_ref())?);
        let _lock = lock_to_read(&*device)?;
        let (checkpoints, found) = Checkpoints::open(device.clone(), Access::Read)?;
        let mut damaged: Vec<String> = found.damaged.iter().map(ToString::to_string).collect();
        let mut summary = |manifest: &Manifest| {
            let tables = tables_of(manifest).unwrap_or_else(|error| {
                damaged.push(error.to_string());
                Vec::new()
            });
            CheckpointSummary { number: manifest.number, from: manifest.low, live: manifest.live(), tables }
        };
        Ok(Inspection {
            checkpoints: found.manifests.iter().map(&mut summary).collect(),
            checkpoint_files: checkpoints.files()?,
            log_files: log_files(&*device)?,
            damaged,
            backup: BackupMark::read(&*device)?.map(|mark| {
                let BackupMark { log, until, micros, .. } = mark;
                BackupSummary { log, until, micros }
            }),
        })
    }

    /// The contents of an archive; nothing for a directory that is none.
    ///
    /// # Errors
    /// [`Error::Directory`](crate::Error::Directory) if there is no such directory; [`Error::Log`](crate::Error::Log)
    /// if a file cannot be read.
    pub fn inspect_archive(directory: impl AsRef<Path>) -> Result<Vec<ArchivedLife>> {
        let device = directory::existing(directory.as_ref())?;
        let life = |found: ArchivedLog| ArchivedLife {
            log: found.log,
            commits: found.extent.map(|extent| (extent.from, extent.until)),
            micros: found.extent.map_or(0, |extent| extent.micros),
            segments: found.segments,
            bytes: found.bytes,
        };
        let lives: Vec<ArchivedLife> = archived_logs(&device)?.into_iter().map(life).collect();
        debug_assert!(
            lives.iter().enumerate().all(|(at, life)| lives[..at].iter().all(|other| other.log != life.log)),
            "a life is told twice: {lives:?}"
        );
        Ok(lives)
    }
}
