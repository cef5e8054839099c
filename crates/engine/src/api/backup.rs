//! Backups of a database, and databases out of backups.
use std::path::Path;
use std::sync::Arc;

use durability::Device;

use crate::database::handle::Database;
use crate::disk::backup::{self, BackupReport};
use crate::disk::directory;
use crate::disk::moment::{self, RecoveryTarget, RestoreReport};
use crate::error::{Error, Result};

impl Database {
    /// Copies the database, as of a moment during the call, to a directory, which must be empty or missing.
    ///
    /// # Errors
    /// [`Error::NotOnDisk`] for a database in memory; [`Error::Directory`] if the target is not empty or can't be
    /// written. Files that were copied by then are left there, and do not open as a database.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport> {
        if self.shared.checkpointer.is_none() {
            return Err(Error::NotOnDisk);
        }
        let copy: Arc<dyn Device> = Arc::new(directory::empty(target.as_ref())?);
        self.backup_on(&copy)
    }

    /// Copies the database to a device as [`Database::backup`] does. For tests.
    #[doc(hidden)]
    pub fn backup_on(&self, copy: &Arc<dyn Device>) -> Result<BackupReport> {
        let checkpointer = self.shared.checkpointer.as_ref().ok_or(Error::NotOnDisk)?;
        checkpointer.with_checkpoint(|taking, report| backup::copy_checkpoint(taking, &report, copy))
    }

    /// Copies a backup, or any database that is not open, to a directory, which must be empty or missing. Returns
    /// the files copied. The copy of a backup begins a life of its own: see [`Database::restore_to`].
    ///
    /// # Errors
    /// - [`Error::Directory`] if `backup` is no directory, or `target` is not empty or cannot be written.
    /// - [`Error::Unfinished`] or [`Error::BadBackup`] if the backup is only a part of one, or damaged.
    /// - [`Error::Log`] if the database is open, or something of its log is damaged; [`Error::Checkpoint`] if its
    ///   checkpoints cannot be read. What was copied by then is left in `target`, and does not open as a database.
    pub fn restore(backup: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<u64> {
        let from: Arc<dyn Device> = Arc::new(directory::existing(backup.as_ref())?);
        backup::restore(&from, target.as_ref())
    }

    /// Brings a database to a moment, in a directory that must be empty or missing: out of a backup and, for what
    /// came after it, the archive of the database's log. Instead of a backup it can be any database that is not
    /// open. `progress` is told (bytes done, bytes in all) while the log is read, and again while it is copied.
    ///
    /// The new database begins a life of its own: its commits go on with the next number, and are archived apart from those
    /// that its origin had after the moment.
    ///
    /// # Errors
    /// [`Error::OutOfReach`] if the moment is before the backup or after the end of the archive; it says what can be reached.
    /// [`Error::Log`] names what of the archive or the backup is damaged or missing.
    pub fn restore_to(
        backup: impl AsRef<Path>,
        archive: Option<&Path>,
        target: impl AsRef<Path>,
        to: RecoveryTarget,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<RestoreReport> {
        let from: Arc<dyn Device> = Arc::new(directory::existing(backup.as_ref())?);
        let archive = archive.map(directory::existing).transpose()?.map(|archive| Arc::new(archive) as Arc<dyn Device>);
        let target: Arc<dyn Device> = Arc::new(directory::empty(target.as_ref())?);
        moment::restore(&from, archive.as_ref(), &target, to, &mut progress)
    }

    /// Restores a database as [`Database::restore_to`] does, on devices, such as some that fail on purpose. For
    /// tests.
    #[doc(hidden)]
    pub fn restore_on(
        backup: &Arc<dyn Device>,
        archive: Option<&Arc<dyn Device>>,
        target: &Arc<dyn Device>,
        to: RecoveryTarget,
    ) -> Result<RestoreReport> {
        moment::restore(backup, archive, target, to, &mut |_, _| ())
    }
}
