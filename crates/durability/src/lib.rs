//! Durability, all that survives power loss: the redo log, checkpoints, and the device under both.
//!
//! The crate sees opaque frames and knows nothing of rows or pages. A log has one partition for each worker, with a
//! buffer and a chain of files of its own (Hathi, section 4). A transaction appends its redo to one partition, as any
//! number of data frames and a commit frame, which carries its LSN: a dense number that it took outside of the log, so
//! that no latch is common to all. [`Log::open`] hands what survived back in LSN order.
//!
//! ```text
//!   append_data / reserve, commit                wait_stable / wait_partition / flush
//!        |           |                                |
//!        v           v                                v
//!   +---------+ +---------+   the leader of a    +---------+   one durable write    +------------------+
//!   | buffer  | | buffer  | - partition takes -> |  flush  | ---------------------> | segment files of |
//!   +---------+ +---------+   (append latch)     +---------+   (no append latch)    | the partition    |
//!   partition 0 partition 1                           |                             +------------------+
//!                                                     v
//!                                         frontier: the LSN up to which nothing is missing
//! ```
//!
//! Each folder imports only those above it in this table:
//!
//! | folder | what it owns |
//! |---|---|
//! | `lsn`, `options`, `error` | files that all use: the number of a commit, the sizes of a log, what can fail |
//! | `device` | the [`Device`] trait, through which all I/O goes; [`FsDevice`], a directory of the file system; the lock |
//! | `format` | the bytes of frames, segments and the notes beside them, by which the loss of the last file is noticed |
//! | `checkpoint` | [`Checkpoints`]: blobs and manifests, from which recovery starts |
//! | `recovery` | what a crash left: read, merge, tell a torn tail from corruption, mend |
//! | `archive` | handing segments over; [`SegmentArchive`], their copies; [`GatheredLog`], a log put together out of them |
//! | `log` | [`Log`]: partitions, group commit, what a commit depends on ([`Dependencies`]), the frontier, trimming |
//!
//! The promises, and the tests that check them:
//! 1. An acknowledged commit survives power loss (`tests/crash.rs`).
//! 2. Commits are replayed in LSN order, up to the first that is missing; of those beyond only partition commits that depend
//!    on none of the missing ones (`tests/crash.rs`, `tests/dependencies.rs`).
//! 3. A transaction is replayed whole or not at all (`tests/crash.rs`, `tests/damage.rs`).
//! 4. After a failed write or sync nothing more is acknowledged; a full disk fails what does not fit, and the log
//!    goes on when there is space (`tests/faults.rs`).
//! 5. Damage to acknowledged frames is mended from a second place or refused with file and offset, never skipped, also where it
//!    hits the end of the log (`tests/damage.rs`, `tests/log_end.rs`). The limits of this promise are listed in `recovery/recover.rs`.
//!
//! The promises of checkpoints stand in `checkpoint.rs`.
#![deny(unsafe_code)]

mod archive;
mod checkpoint;
mod device;
mod error;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod log;
mod lsn;
mod options;
mod recovery;

pub use archive::copies::{ArchivedLog, Extent, SegmentArchive, archived_logs};
pub use archive::gather::{GatheredLog, gather_log};
pub use archive::outgoing::{ArchivedSegments, OldSegment};
pub use checkpoint::{
    BlobHold, CheckpointError, CheckpointFile, CheckpointFileKind, CheckpointOptions, CheckpointStats,
    CheckpointWriter, Checkpoints, FoundCheckpoints, LoadWriter, Manifest, PublishedCheckpoint,
};
pub use device::fs::FsDevice;
pub use device::lock::{lock_directory, lock_to_read};
pub use device::{Access, Device, DeviceFile, DirectoryLock};
pub use error::{LogError, OpenError, Result, device_error};
pub use format::frame::{Frame, FrameKind, MAX_PAYLOAD_BYTES, u32_at, u64_at};
pub use format::log_files::{LogFile, LogFileContent, log_files};
pub use format::trim::begin_log_at;
pub use log::commit::{CommitLocation, CommitMode};
pub use log::dependency::Dependencies;
pub use log::redo_log::{Log, LogStats, Reservation};
pub use lsn::Lsn;
pub use options::LogOptions;
pub use recovery::recover::{RecoveredLog, read_log, read_log_to_gap};
