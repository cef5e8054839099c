//! What can go wrong: a mechanism that cannot run here, a wrong index, a snapshot that was lost.
use std::io;

use thiserror::Error;

use crate::kind::Mechanism;

/// Why an array, a snapshot or an update failed. Each message says what can be done.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The system does not let this mechanism run, or run for so much memory.
    #[error("{mechanism} snapshots are refused: {step}: {reason}; {remedy}")]
    Refused {
        /// The mechanism that was asked for.
        mechanism: Mechanism,
        /// What was tried.
        step: String,
        /// The system's reason.
        reason: io::Error,
        /// What a user can do.
        remedy: &'static str,
    },
    /// An index or a range beyond the end of the array.
    #[error("item {index} was asked for, but the array has {len} items; use an index below {len}")]
    OutOfRange {
        /// The index, or the last one of a range.
        index: usize,
        /// The items of the array.
        len: usize,
    },
    /// A batch of updates began a snapshot of its own array, which would wait for the batch to end.
    #[error("a batch of updates cannot take a snapshot of its own array; take it before the batch or after it")]
    InsideBatch,
    /// A page that a snapshot still reads could not be copied. Nothing was written.
    #[error(
        "the page of item {index} could not be kept for a snapshot: {reason}; end snapshots, or free memory, and update again"
    )]
    NotKept {
        /// The item that was to be updated.
        index: usize,
        /// The system's reason.
        reason: io::Error,
    },
    /// The process that held the snapshot has gone.
    #[error("the process that serves the snapshot is gone: {reason}; take a new snapshot")]
    Lost {
        /// What was seen of it.
        reason: io::Error,
    },
    /// Options that do not fit together.
    #[error("the options of the array are wrong: {what}")]
    BadOptions {
        /// What is wrong, and what would be right.
        what: String,
    },
}

impl SnapshotError {
    /// A refusal of `mechanism` at `step`, with the remedy that belongs to the reason.
    pub(crate) fn refused(
        mechanism: Mechanism,
        step: impl Into<String>,
        reason: impl Into<io::Error>,
    ) -> SnapshotError {
        let reason = reason.into();
        let remedy = remedy(mechanism, &reason);
        SnapshotError::Refused { mechanism, step: step.into(), reason, remedy }
    }
}

impl SnapshotError {
    /// A refusal of `Stop::Protected` for physical snapshots.
    pub(crate) fn not_protected(reason: impl Into<io::Error>) -> SnapshotError {
        let reason = reason.into();
        let remedy = match reason.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "let the container's seccomp profile allow `userfaultfd`, or have updates announced (`Stop::Announced`)"
            }
            Some(libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP) => {
                "write protection of memory without pages needs Linux 6.4 or later; have updates announced (`Stop::Announced`)"
            }
            _ => remedy(Mechanism::Physical, &reason),
        };
        let step = "stopping writers by protection (userfaultfd)".to_owned();
        SnapshotError::Refused { mechanism: Mechanism::Physical, step, reason, remedy }
    }
}

/// What helps against `reason`.
fn remedy(mechanism: Mechanism, reason: &io::Error) -> &'static str {
    match (reason.raw_os_error(), mechanism) {
        (Some(libc::EMFILE | libc::ENFILE), _) => "end snapshots, or raise the limit on open files (`ulimit -n`)",
        (Some(libc::ENOMEM), Mechanism::Fork) => {
            "a child may write all memory of its parent, so allow overcommitment (`vm.overcommit_memory` 0 or 1), or use \
             another mechanism"
        }
        (Some(libc::ENOMEM), _) => {
            "free memory, raise `ulimit -v`, the memory limit of the container or `vm.max_map_count`, or take a smaller array"
        }
        (Some(libc::EAGAIN), Mechanism::Fork) => {
            "raise the limit on processes (`ulimit -u`, `pids.max` of the container), or use another mechanism"
        }
        (Some(libc::EPERM | libc::EACCES), Mechanism::Protect) => {
            "set `vm.unprivileged_userfaultfd` to 1 or let the container's seccomp profile allow `userfaultfd`, or use another \
             mechanism"
        }
        (Some(libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP), Mechanism::Protect) => {
            "write protection of shared memory needs Linux 5.19 or later; use another mechanism"
        }
        (Some(libc::EPERM | libc::EACCES), _) => {
            "let the container's seccomp profile allow the call, or use physical snapshots"
        }
        _ => "use another mechanism",
    }
}
