//! Looking at a database from outside: which files there are, and whether all of it is whole.
//!
//! ```text
//! verify   every blob of the kept checkpoints against its checksum
//!          every frame of the log, replayed upon the newest checkpoint
//!          every row: its primary key leads to it, and to no other; NOT NULL holds
//! ```
//!
//! Nothing is changed. A database that another process has open is refused.
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use durability::{
    Access, ArchivedLog, CheckpointFile, Checkpoints, Device, LogFile, Manifest, archived_logs, lock_to_read, log_files,
};
use types::Rid;

use crate::backup::BackupMark;
use crate::checkpoint::{CheckpointedTable, tables_of};
use crate::database::{Database, OpenOptions};
use crate::directory;
use crate::error::{Error, Result};
use crate::table::{ScanOptions, Table};

/// What is in the directory of a database.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// the kept checkpoints, newest first
    pub checkpoints: Vec<CheckpointSummary>,
    /// their files
    pub checkpoint_files: Vec<CheckpointFile>,
    /// the files of the log
    pub log_files: Vec<LogFile>,
    /// what of the checkpoints is damaged
    pub damaged: Vec<String>,
    /// of a backup, what it has
    pub backup: Option<BackupSummary>,
}

/// What a backup has.
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

/// What a checkpoint holds.
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

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// tables
    pub tables: u64,
    /// rows of the newest versions
    pub rows: u64,
    /// bytes of checkpoints
    pub checkpoint_bytes: u64,
    /// each with its place
    pub faults: Vec<String>,
}

/// Faults of one table that are told; more are counted.
const FAULTS_MAX: usize = 20;

impl Database {
    /// What is in a directory.
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

    /// What is in an archive; nothing in a directory that is none.
    pub fn inspect_archive(directory: impl AsRef<Path>) -> Result<Vec<ArchivedLife>> {
        let device = directory::existing(directory.as_ref())?;
        let life = |found: ArchivedLog| ArchivedLife {
            log: found.log,
            commits: found.extent.map(|extent| (extent.from, extent.until)),
            micros: found.extent.map_or(0, |extent| extent.micros),
            segments: found.segments,
            bytes: found.bytes,
        };
        Ok(archived_logs(&device)?.into_iter().map(life).collect())
    }

    /// Looks at every page, every frame of the log and every row of a database that nobody has open. `progress` is told
    /// (bytes done, bytes in all) of each stage.
    ///
    /// # Errors
    /// If it can't be looked at. What is wrong with it is in the answer.
    pub fn verify(directory: impl AsRef<Path>, mut progress: impl FnMut(u64, u64) + 'static) -> Result<Verification> {
        let device: Arc<dyn Device> = Arc::new(directory::existing(directory.as_ref())?);
        let mut verification = Verification::default();
        {
            let _lock = lock_to_read(&*device)?;
            let (checkpoints, found) = Checkpoints::open(device.clone(), Access::Read)?;
            verification.faults.extend(found.damaged.iter().map(ToString::to_string));
            let mut seen = 0;
            let damaged = checkpoints.verify(&mut |done, all| {
                seen = done;
                progress(done, all);
            });
            verification.checkpoint_bytes = seen;
            verification.faults.extend(damaged.iter().map(ToString::to_string));
        }
        let options = OpenOptions {
            read_only: true,
            merge_threads: Some(0),
            progress: Some(Box::new(progress)),
            ..OpenOptions::default()
        };
        match Database::open_on(device, options) {
            Ok(db) => db.table_names().iter().try_for_each(|name| db.table(name)?.verify(&mut verification))?,
            // Somebody opened it meanwhile; that is no fault.
            Err(error @ Error::Log(durability::LogError::Locked { .. })) => return Err(error),
            Err(error) => verification.faults.push(error.to_string()),
        }
        Ok(verification)
    }
}

impl Table {
    /// Every row against the index and the constraints.
    fn verify(&self, verification: &mut Verification) -> Result<()> {
        verification.tables += 1;
        let columns = self.schema().columns();
        let view = self.database.read_view()?;
        let scan = ScanOptions { columns: (0..columns.len()).collect(), with_rid: true, ..ScanOptions::default() };
        let storage = self.database.shared.core.transactions.view(view.snapshot());
        let mut faults = Vec::new();
        for batch in self.scan(&view, scan)?.batches() {
            let batch = batch?;
            verification.rows += batch.num_rows() as u64;
            for (at, column) in columns.iter().enumerate().filter(|(_, column)| !column.nullable) {
                let nulls = batch.column(at).null_count();
                if nulls > 0 {
                    faults.push(format!("\"{}\": {nulls} NULLs in column \"{}\"", self.name(), column.name));
                }
            }
            let Some(primary_key) = &self.data.primary_key else { continue };
            for word in batch.column(columns.len()).as_primitive::<UInt64Type>().values() {
                let rid = Rid::from_word(*word);
                let read =
                    self.data.storage.read(storage, rid, &primary_key.columns, |cells| primary_key.key(cells))?;
                let found = read.map(|key| self.data.find(storage, &key)).transpose()?.flatten();
                if found != Some(rid) {
                    faults.push(format!("\"{}\": the primary key of {rid:?} leads to {found:?}", self.name()));
                }
            }
        }
        let more = faults.len().saturating_sub(FAULTS_MAX);
        verification.faults.extend(faults.into_iter().take(FAULTS_MAX));
        if more > 0 {
            verification.faults.push(format!("\"{}\": {more} more", self.name()));
        }
        Ok(())
    }
}
