//! Commits that were not waited for: which is the newest, and whether one is on disk by now (Hathi, section 3: `isStable`).
use std::time::{Duration, Instant};

use durability::LogError;
use types::Timestamp;

use crate::database::handle::Database;
use crate::error::{Error, Result};

impl Database {
    /// The newest commit: every transaction that has committed by now has this number or a lower one. The number of a single
    /// one is what [`Transaction::commit`](crate::Transaction::commit) returns.
    pub fn newest_commit(&self) -> Timestamp {
        self.shared.core.transactions.0.now()
    }

    /// Whether it is in memory alone: no commit waits for a disk.
    pub fn is_in_memory(&self) -> bool {
        self.shared.log.is_none()
    }

    /// The commit up to which all are on disk; in memory the newest.
    pub fn newest_durable_commit(&self) -> Timestamp {
        let durable = self.shared.log.as_ref().map_or_else(|| self.newest_commit(), |log| Timestamp(log.stable_lsn()));
        debug_assert!(durable <= self.newest_commit(), "invariant 8: {durable:?} is on disk, and no commit");
        durable
    }

    /// Whether a commit, and every one before it, is on disk; true of every commit of a database in memory. Tells of commits
    /// that were not waited for.
    pub fn is_durable(&self, at: Timestamp) -> bool {
        self.shared.log.as_ref().is_none_or(|log| log.is_stable(at.0))
    }

    /// Waits until a commit, and every one before it, is on disk.
    ///
    /// # Errors
    /// [`Error::Log`] if there is no such commit yet, or the log has failed.
    pub fn wait_durable(&self, at: Timestamp) -> Result<()> {
        self.wait_durable_until(at, None).map(drop)
    }

    /// Waits until a commit is on disk, for so long at most, or a little longer where the disk is slow. Returns
    /// whether it is.
    ///
    /// # Errors
    /// As [`wait_durable`](Self::wait_durable). That the time has passed is none.
    pub fn wait_durable_for(&self, at: Timestamp, time: Duration) -> Result<bool> {
        self.wait_durable_until(at, Instant::now().checked_add(time))
    }

    fn wait_durable_until(&self, at: Timestamp, deadline: Option<Instant>) -> Result<bool> {
        let Some(log) = self.shared.log.as_ref().filter(|log| !log.is_read_only()) else { return Ok(true) };
        loop {
            let newest = self.newest_commit();
            match log.wait_stable_until(at.0, deadline) {
                // Its number was taken, and its frame is about to be appended.
                Err(LogError::NotAppended { .. }) if at <= newest => std::thread::yield_now(),
                Err(LogError::NotAppended { lsn, .. }) => {
                    return Err(Error::Log(LogError::NotAppended { lsn, last: newest.0 }));
                }
                outcome => {
                    let is_durable = outcome?;
                    debug_assert!(!is_durable || log.is_stable(at.0), "invariant 8: {at:?} is told to be on disk");
                    return Ok(is_durable);
                }
            }
        }
    }
}
