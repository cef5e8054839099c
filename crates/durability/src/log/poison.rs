//! The memory of a failure: nothing is acknowledged after it.
//!
//! After a failed write or sync it is unknown what is on disk, and asking again proves nothing. So the first
//! failure of any partition poisons the whole log: the thread that met it is told the cause, all others from then
//! on [`LogError::Poisoned`], except for commits that were stable before. A full disk does not poison
//! (`partition.rs`). A panic while flushing does, as frames may have been taken that will never be written.

use std::sync::OnceLock;

use crate::error::{LogError, Result};

/// Whether the log failed, and why.
#[derive(Default)]
pub(crate) struct Poison {
    cause: OnceLock<String>,
}

impl Poison {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.cause.get().is_some()
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.cause.get() {
            Some(cause) => Err(LogError::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Runs `work` unless the log failed; a failure of it, a panic included, poisons the log.
    pub(crate) fn watch(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.check()?;
        let guard = OnUnwind { poison: self };
        let result = work();
        std::mem::forget(guard);
        if let Err(error) = &result
            && !matches!(error, LogError::DiskFull { .. } | LogError::Poisoned { .. })
        {
            self.cause.get_or_init(|| error.to_string());
        }
        result
    }
}

struct OnUnwind<'a> {
    poison: &'a Poison,
}

impl Drop for OnUnwind<'_> {
    fn drop(&mut self) {
        self.poison.cause.get_or_init(|| "the flushing thread panicked".to_string());
    }
}
