//! A commit in the log: the mode, which says when it is acknowledged, and where it stands.

use crate::Lsn;
use crate::format::frame::Tag;
use crate::log::partition::FrameLocation;

/// When a commit is acknowledged, and whether it can stand alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitMode {
    /// When every commit up to it is on disk.
    Sync,
    /// At once. [`Log::is_stable`](crate::Log::is_stable) and [`Log::wait_stable`](crate::Log::wait_stable) tell when it is on disk.
    Async,
    /// When its own partition is on disk up to it, and what it depends on is as well ([`Dependencies`](crate::Dependencies)). Survives
    /// even where commits before it did not. A commit appended without dependencies depends on none, by its
    /// caller's word.
    Partition,
}

impl CommitMode {
    /// The tag of a commit frame with the mode.
    pub(crate) fn tag(self) -> Tag {
        if self == CommitMode::Partition { Tag::PartitionCommit } else { Tag::Commit }
    }
}

/// Where a commit or a void stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitLocation {
    /// Its LSN.
    pub lsn: Lsn,
    /// Its partition.
    pub partition: usize,
    /// The flush of its partition that takes it to disk, for [`Log::wait_partition`](crate::Log::wait_partition).
    pub flush: u64,
    /// The mode that it was appended with.
    pub mode: CommitMode,
    /// Of a partition commit, the LSN that it depends on, with all before that one; 0 if on none that could be missing.
    pub depends_on: Lsn,
}

impl CommitLocation {
    pub(crate) fn new(partition: usize, mode: CommitMode, pushed: &FrameLocation) -> CommitLocation {
        let FrameLocation { lsn, flush, depends_on, .. } = *pushed;
        debug_assert!(lsn > 0 && flush > 0, "no commit has the number 0, nor a flush");
        debug_assert!(depends_on == 0 || mode == CommitMode::Partition, "{mode:?} waits for all before it anyway");
        CommitLocation { lsn, partition, flush, mode, depends_on }
    }
}
