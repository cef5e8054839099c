//! Waiting until commits are on disk, as their modes promise.
//!
//! A sync commit waits for the flush of its own partition, and then until all before it is on disk as well; a partition
//! commit for its own partition and for what it depends on; an async commit for nothing.
//!
//! **Waiting for an LSN** flushes the partitions that hold LSNs up to it, one after the other, or waits for the
//! threads that are flushing them already. If an LSN before was taken and not appended yet there is nothing to
//! flush: its thread is a few instructions away, and is waited for without a wake-up.
use std::time::Instant;

use sync::Pause;

use crate::Lsn;
use crate::error::{LogError, Result};
use crate::log::commit::{CommitLocation, CommitMode};
use crate::log::partition::Partition;
use crate::log::redo_log::{Log, LogState};

impl Log {
    /// Waits for what the mode of a commit promises.
    ///
    /// # Errors
    /// As [`wait_partition`](Self::wait_partition) and [`wait_stable`](Self::wait_stable): it is not known whether
    /// the commit survives a crash. With mode [`CommitMode::Async`] there is none.
    #[inline]
    pub fn wait(&self, appended: &CommitLocation) -> Result<()> {
        match appended.mode {
            CommitMode::Async => Ok(()),
            CommitMode::Partition => {
                self.wait_partition(appended.partition, appended.flush)?;
                self.wait_stable(appended.depends_on)
            }
            CommitMode::Sync => {
                if !self.is_stable(appended.lsn) {
                    self.wait_partition(appended.partition, appended.flush)?;
                }
                self.wait_stable(appended.lsn)
            }
        }
    }

    /// Waits until a flush of a partition is on disk, and all before it. Flushes if no other thread does.
    ///
    /// # Errors
    /// [`LogError::DiskFull`] if there is no space even for the rewriting of what is allocated: the next flush tries
    /// again. [`LogError::Poisoned`] after a failure; a failure of the device to write, which poisons the log;
    /// [`LogError::ReadOnly`] if the log is read only.
    pub fn wait_partition(&self, partition: usize, flush: u64) -> Result<()> {
        self.partition(partition)?.wait_written(&self.shared.common, flush)
    }

    /// Waits until every LSN up to `lsn` is on disk. Flushes if no other thread does.
    ///
    /// # Errors
    /// [`LogError::NotAppended`] if `lsn` is higher than any that was appended. [`LogError::DiskFull`],
    /// [`LogError::Poisoned`] and failures of the device as [`wait_partition`](Self::wait_partition).
    pub fn wait_stable(&self, lsn: Lsn) -> Result<()> {
        self.wait_stable_until(lsn, None).map(drop)
    }

    /// Waits until every LSN up to `lsn` is on disk, or until `deadline` if there is one; returns whether it is. A
    /// flush under way is not broken off, so it may take a flush longer than that.
    ///
    /// # Errors
    /// As [`wait_stable`](Self::wait_stable). That the deadline has passed is none.
    pub fn wait_stable_until(&self, lsn: Lsn, deadline: Option<Instant>) -> Result<bool> {
        let LogState { common, partitions, .. } = &*self.shared;
        let mut pause = Pause::default();
        while !self.is_stable(lsn) {
            common.poison.check()?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(false);
            }
            let mut has_waited = false;
            for partition in partitions {
                has_waited |= partition.wait_lsns(common, lsn)?;
            }
            if !has_waited && !self.is_stable(lsn) {
                let last = partitions.iter().map(Partition::lsn_max).max().unwrap_or(0);
                if lsn > last {
                    return Err(LogError::NotAppended { lsn, last });
                }
                pause.wait();
            }
        }
        Ok(true)
    }

    /// Whether every LSN up to `lsn` is on disk.
    pub fn is_stable(&self, lsn: Lsn) -> bool {
        lsn <= self.stable_lsn()
    }

    /// The LSN up to which everything is on disk.
    pub fn stable_lsn(&self) -> Lsn {
        self.shared.common.frontier.stable()
    }

    /// Waits until everything appended so far is on disk.
    ///
    /// # Errors
    /// [`LogError::DiskFull`], [`LogError::Poisoned`] and failures of the device as
    /// [`wait_partition`](Self::wait_partition).
    pub fn flush(&self) -> Result<()> {
        self.shared.partitions.iter().try_for_each(|partition| partition.wait_all_written(&self.shared.common))
    }
}
