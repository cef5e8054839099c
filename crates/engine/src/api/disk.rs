//! Checkpoints and archiving on demand.
use crate::database::handle::Database;
use crate::disk::archive::ArchiveStatus;
use crate::disk::checkpoint::CheckpointReport;
use crate::error::{Error, Result};

impl Database {
    /// Writes a checkpoint now, so that less of the log has to be replayed when the database is opened. Only the
    /// caller waits for it. Checkpoints are also taken by themselves as the log grows.
    ///
    /// # Errors
    /// [`Error::NotOnDisk`] for a database in memory; [`Error::Checkpoint`] if files can't be written, which leaves
    /// the checkpoints before it and the log as they are.
    pub fn checkpoint(&self) -> Result<CheckpointReport> {
        self.shared.checkpointer.as_ref().ok_or(Error::NotOnDisk)?.with_checkpoint(|_, report| Ok(report))
    }

    /// Brings the archive up to the newest commit, and returns what it holds. It happens by itself every few seconds and
    /// when the database is closed.
    ///
    /// # Errors
    /// [`Error::NoArchive`] if the database has none.
    pub fn archive_now(&self) -> Result<ArchiveStatus> {
        self.shared.archiver.as_ref().ok_or(Error::NoArchive)?.archive()
    }

    /// The contents of the archive, and whether archiving works; `None` without an archive.
    pub fn archive_status(&self) -> Option<ArchiveStatus> {
        self.shared.archiver.as_ref().map(|archiver| archiver.status())
    }
}
